#!/usr/bin/env bash
# Runs a command in another release of Debian: in a chroot, with this tree as its working directory and a build folder of its
# own. Chroot, build folder and compiler cache are kept for the next run, in ~/.cache/chunkhit/SUITE.
# usage: bash tests/on_debian.sh [--fresh] SUITE COMMAND...
#   SUITE     bookworm or trixie
#   --fresh   Run in a copy of the bare system, with a copy of the tree without build, and remove both afterwards
set -euo pipefail
cd "$(dirname "$0")/.."
fresh=
[ "${1:-}" != --fresh ] || { fresh=1; shift; }
[ $# -ge 2 ] || { echo "usage: bash tests/on_debian.sh [--fresh] SUITE COMMAND..." >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || exec sudo --preserve-env=XDG_CACHE_HOME,CI bash tests/on_debian.sh ${fresh:+--fresh} "$@"
suite=$1 tree=$PWD
shift
cache=${XDG_CACHE_HOME:-$HOME/.cache}/chunkhit
bare=$cache/$suite-bare system=$cache/$suite

if [ ! -d "$bare" ]; then
  bash samples/install_packages.sh mmdebstrap debian-archive-keyring
  # The registry is the one that this machine's packages come from.
  read -r registry < <(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian')
  mkdir -p "$cache"
  rm -rf "$bare.new"
  mmdebstrap --quiet --variant=apt --dpkgopt=force-unsafe-io "$suite" "$bare.new" \
    "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $registry $suite main"
  mv "$bare.new" "$bare"
fi
if [ -n "$fresh" ]; then
  system=$(mktemp -d "$cache/$suite-XXXXXX")
  trap 'rm -rf --one-file-system "$system"' EXIT
  cp -a "$bare/." "$system"
  mkdir "$system/chunkhit"
  tar -c --exclude=./build . | tar -x -C "$system/chunkhit"
elif [ ! -d "$system" ]; then
  cp -a "$bare" "$system.new"
  mkdir -p "$system.new/chunkhit" "$system.new/build"
  mv "$system.new" "$system"
fi

# Of a mount namespace nothing is left, however the command ends.
# shellcheck disable=SC2016
unshare --mount --propagation slave bash -euo pipefail -c '
  system=$1 tree=$2 fresh=$3
  shift 3
  for folder in proc sys dev; do mount --rbind "/$folder" "$system/$folder"; done
  cp /etc/hosts /etc/resolv.conf "$system/etc/"
  if [ -z "$fresh" ]; then
    mkdir -p "$tree/build"
    mount --bind "$tree" "$system/chunkhit"
    mount --bind "$system/build" "$system/chunkhit/build"
  fi
  exec env -i CI="${CI:-}" CCACHE_DIR=/var/cache/ccache HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" \
    chroot "$system" bash -euo pipefail -c "cd /chunkhit; exec \"\$@\"" - "$@"' - "$system" "$tree" "$fresh" "$@"

#!/usr/bin/env bash
# Installs those of the given Debian packages that are missing. NAME? is left out where this release has no such package.
set -euo pipefail

missing=() optional=()
for name in "$@"; do
  dpkg-query -W -f='${Status}' "${name%\?}" 2>/dev/null | grep -q 'install ok installed' && continue
  if [ "$name" = "${name%\?}" ]; then missing+=("$name"); else optional+=("${name%\?}"); fi
done
[ $((${#missing[@]} + ${#optional[@]})) -gt 0 ] || exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update -qq
for name in "${optional[@]}"; do
  # apt-cache also knows names that other packages only recommend.
  if apt-get install -s -qq "$name" >/dev/null 2>&1; then missing+=("$name"); else echo "not in this release of Debian: $name"; fi
done
[ ${#missing[@]} -gt 0 ] || exit 0
echo "installing ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

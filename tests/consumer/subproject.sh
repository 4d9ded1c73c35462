#!/usr/bin/env bash
# Configures a project that adds chunkhit (parent/), with scratch files below $1: its settings stay, and it installs nothing of
# chunkhit. With the folder of the commands as $2 it is also built, with a static library and without exceptions, and reads a pack;
# that library is then installed, and found by another project and by pkg-config.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$1"
mkdir -p "$1"
unset CMAKE_BUILD_TYPE

configure() { cmake -S "$here/parent" -B "$1/$2" -G Ninja -DCHUNKHIT_FOLDER="$here/../.." "${@:3}" >"$1/$2.log" 2>&1 || { cat "$1/$2.log"; exit 1; }; }
configure "$1" parent
for name in CMAKE_BUILD_TYPE CMAKE_INSTALL_LIBDIR CPACK_GENERATOR BUILD_SHARED_LIBS; do
  if grep -E "^$name:[A-Z]*=." "$1/parent/CMakeCache.txt"; then
    echo "chunkhit cached $name of the project"
    exit 1
  fi
done
cmake --install "$1/parent" --prefix "$1/installed" >/dev/null
[ "$(cd "$1/installed" && find . -type f)" = ./own/train.cpp ] || { find "$1/installed"; exit 1; }
# Its program has its options, and none of chunkhit's; chunkhit's sources have no warnings, and exceptions.
commands=$(ninja -C "$1/parent" -t commands train)
own=$(grep -m 1 'train.cpp.o ' <<<"$commands")
library=$(grep -m 1 'chunkhit_core.dir' <<<"$commands")
[[ $own == *-Wconversion*-fno-exceptions* && $own != *-fstack-protector* && $own != *-O3* && $own != *-ffp-contract* ]] || { echo "$own"; exit 1; }
[[ $library == *-fno-exceptions*" -w "*-fexceptions* && $library == *-O3* ]] || { echo "$library"; exit 1; }
[ -n "${2:-}" ] || exit 0

# ---- Built, static
mkdir -p "$1"/images/{ant,bee}
for digit in 0 1 2 3 4; do
  printf 'P6 2 1 255\n%s12345' "$digit" >"$1/images/ant/$digit.ppm"
  printf 'P6 2 1 255\n12345%s' "$digit" >"$1/images/bee/$digit.ppm"
done
"$2/pack-images" "$1/images" -o "$1/pack" --container hdf5 >/dev/null

links_statically() {
  if readelf -d "$1" | grep -E 'NEEDED.*(chunkhit|tbb|archive)'; then
    echo "$1 is not static, or links what only packing needs"
    exit 1
  fi
}
configure "$1" static -DBUILD_SHARED_LIBS=OFF -DCHUNKHIT_INSTALL=ON
cmake --build "$1/static" >"$1/static.log" 2>&1 || { cat "$1/static.log"; exit 1; }
links_statically "$1/static/train"
"$1/static/train" "$1/pack" 10
cmake --install "$1/static" --prefix "$1/prefix" >/dev/null

cmake -S "$here/static" -B "$1/found" -G Ninja -DCMAKE_PREFIX_PATH="$1/prefix" >/dev/null
cmake --build "$1/found" >/dev/null
links_statically "$1/found/train"
"$1/found/train" "$1/pack" 10
export PKG_CONFIG_PATH=$(dirname "$(find "$1/prefix" -name chunkhit.pc)")
${CXX:-c++} -std=c++20 "$here/parent/train.cpp" -o "$1/train" $(pkg-config --cflags --libs chunkhit)
links_statically "$1/train"
"$1/train" "$1/pack" 10

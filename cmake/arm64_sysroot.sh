#!/usr/bin/env bash
# Unpacks Debian's arm64 packages that the build and the C++ tests need below FOLDER, for cmake --preset arm64: nothing is
# installed. Usage: bash cmake/arm64_sysroot.sh [FOLDER]   (build/arm64-sysroot); needs mmdebstrap
set -euo pipefail
cd "$(dirname "$0")/.."
sysroot=${1:-build/arm64-sysroot}

# Those of the build that are not programs of this machine, or of its Python.
libraries=$(grep -vxE 'cmake|g\+\+|ninja-build|pkg-config|pybind11-dev|python3-dev' samples/build_packages.txt)
packages=$(echo libc6-dev libstdc++-12-dev $libraries libavif-dev libbenchmark-dev libgtest-dev libjxl-dev | tr ' ' ,)
[ "$(cat "$sysroot/packages" 2>/dev/null)" != "$packages" ] || exit 0

rm -rf "$sysroot"
mkdir -p "$(dirname "$sysroot")"
mmdebstrap --quiet --variant=extract --architectures=arm64 --include="$packages" bookworm "$sysroot"
echo "$packages" >"$sysroot/packages"

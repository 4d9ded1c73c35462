#!/usr/bin/env bash
# Installs the build in $1 below $2 and builds and runs a stranger's project against it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$2"
cmake --install "$1" --prefix "$2/prefix" >/dev/null
cmake -S "$here" -B "$2/build" -DCMAKE_PREFIX_PATH="$2/prefix" >/dev/null
cmake --build "$2/build"
"$2/build/stranger"
"$2/prefix/bin/pack-info" --version

#!/usr/bin/env bash
# Fails when clang-format would change a source of ROOT/lib, ROOT/samples, ROOT/tools or ROOT/tests. Usage: format.sh ROOT
# To put it right: the same command with -i in the place of --dry-run --Werror.
set -euo pipefail
cd "$1"
tool=$(command -v clang-format-14 || command -v clang-format) || { echo "clang-format is not installed" >&2; exit 1; }
find lib samples tools tests \( -name '*.h' -o -name '*.cpp' -o -name '*.c' -o -name '*.cu' \) -print0 |
  xargs -0 -n 16 -P "$(nproc)" "$tool" --dry-run --Werror

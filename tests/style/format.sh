#!/usr/bin/env bash
# Fails when clang-format would change a source of ROOT/lib, ROOT/samples, ROOT/tools or ROOT/tests. Usage: format.sh ROOT
# To put it right: the same command with -i in the place of --dry-run --Werror. Versions differ: Debian 12's is the one; without it
# the test is skipped (77).
set -euo pipefail
cd "$1"
tool=$(command -v clang-format-14 || command -v clang-format) || { echo "clang-format is not installed" >&2; exit 1; }
version=$("$tool" --version)
[[ $version == *"version 14."* ]] || { echo "skipped: expected clang-format 14, found $version"; exit 77; }
find lib samples tools tests \( -name '*.h' -o -name '*.cpp' -o -name '*.c' -o -name '*.cu' \) -print0 |
  xargs -0 -n 16 -P "$(nproc)" "$tool" --dry-run --Werror

#!/usr/bin/env bash
# Installs the build in $1 below $2, packs images and ratings with it, and builds and runs a stranger's project on them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$2"
cmake --install "$1" --prefix "$2/prefix" >/dev/null
"$2/prefix/bin/pack-info" --version

# Ten images of 2×1 pixels in two classes.
mkdir -p "$2"/images/{ant,bee}
for digit in 0 1 2 3 4; do
  printf 'P6 2 1 255\n%s12345' "$digit" >"$2/images/ant/$digit.ppm"
  printf 'P6 2 1 255\n12345%s' "$digit" >"$2/images/bee/$digit.ppm"
done
"$2/prefix/bin/pack-images" "$2/images" --chunk-samples 3 --progress none --output "$2/pack"

# Three users; nobody rated everything.
printf '%s\n' user,item,rating u1,a,3 u1,b,2 u2,a,1 u2,c,4.5 u3,d,5 >"$2/ratings.csv"
"$2/prefix/bin/pack-sparse" "$2/ratings.csv" --progress none --output "$2/ratings"

cmake -S "$here" -B "$2/build" -DCMAKE_PREFIX_PATH="$2/prefix" >/dev/null
cmake --build "$2/build"
"$2/build/stranger" "$2/pack" 10 "$2/ratings" 3

# The library exports what its headers declare and nothing else: no Impl, no HDF5, no zstd. What is weak or unique may
# also come from the standard library's templates, and names that begin with __ are the compiler's.
library=$(echo "$2"/prefix/lib*/libchunkhit.so "$2"/prefix/lib*/*/libchunkhit.so | tr ' ' '\n' | grep -v '\*')
nm -D --defined-only "$library" | c++filt | cut -d' ' -f2- >"$2/exports"
if grep -vE '^[WVu] .*\bstd::|^. __' "$2/exports" |
  grep -vE '^. (vtable for |typeinfo (name )?for )?chunkhit::' || grep '::Impl' "$2/exports"; then
  echo "is exported, but not public"
  exit 1
fi
grep -oE '^. (vtable for |typeinfo (name )?for )?chunkhit::[^(]*' "$2/exports" | sed -E 's/.*chunkhit:://; s/\[.*//' |
  grep -oE '[A-Za-z_][A-Za-z_0-9]*' | sort -u | while read -r name; do
  grep -rqwE "$name" "$2/prefix/include/chunkhit" || { echo "exported, but in no header: $name"; exit 1; }
done

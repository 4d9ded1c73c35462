#!/usr/bin/env bash
# Installs the build in $1 below $2, and builds and runs a project that packs images and ratings with it and reads them.
# Where $3 is given, what is installed there is taken instead.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$2"
prefix=${3:-$2/prefix}
[ -n "${3:-}" ] || cmake --install "$1" --prefix "$prefix" >/dev/null
libraries=$(dirname "$(ls "$prefix"/lib*/libchunkhit.so "$prefix"/lib*/*/libchunkhit.so 2>/dev/null)")
"$prefix/bin/pack-info" --version

# Ten images of 2×1 pixels in two classes.
mkdir -p "$2"/images/{ant,bee}
for digit in 0 1 2 3 4; do
  printf 'P6 2 1 255\n%s12345' "$digit" >"$2/images/ant/$digit.ppm"
  printf 'P6 2 1 255\n12345%s' "$digit" >"$2/images/bee/$digit.ppm"
done

# Three users; nobody rated everything.
printf '%s\n' user,item,rating u1,a,3 u1,b,2 u2,a,1 u2,c,4.5 u3,d,5 >"$2/ratings.csv"

cmake -S "$here" -B "$2/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$2/build"
"$2/build/consumer_pack" "$2/images" "$2/pack" "$2/ratings.csv" "$2/ratings"
"$2/build/stranger" "$2/pack" 10 "$2/ratings" 3

# The same by pkg-config.
export PKG_CONFIG_PATH=$libraries/pkgconfig
[ "$(pkg-config --modversion chunkhit)" = "$("$prefix/bin/pack-info" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)" ]
${CXX:-c++} -std=c++20 ${CXXFLAGS:-} "$here/main.cpp" -o "$2/stranger" $(pkg-config --cflags --libs chunkhit) -Wl,-rpath,"$libraries"
${CXX:-c++} -std=c++20 ${CXXFLAGS:-} "$here/pack.cpp" -o "$2/consumer_pack" $(pkg-config --cflags --libs chunkhit_pack) \
  -Wl,-rpath,"$libraries"
"$2/stranger" "$2/pack" 10 "$2/ratings" 3
# A program without exceptions ends at a failure, with its message.
${CXX:-c++} -std=c++20 -fno-exceptions -fno-rtti ${CXXFLAGS:-} "$here/parent/train.cpp" -o "$2/train" \
  $(pkg-config --cflags --libs chunkhit) -Wl,-rpath,"$libraries"
"$2/train" "$2/pack" 10
! "$2/train" "$2/none" 10 2>"$2/failure" || exit 1
grep -q "terminate called after throwing an instance of 'chunkhit::Error'" "$2/failure"
grep -q "$2/none" "$2/failure"
# An older standard is one error, not pages of them; the second line is the compiler's that it ends here.
! ${CXX:-c++} -std=c++17 -fsyntax-only "$here/main.cpp" $(pkg-config --cflags chunkhit) 2>"$2/old_standard" || exit 1
grep -q 'chunkhit needs C++20: compile with -std=c++20' "$2/old_standard"
[ "$(grep -c 'error' "$2/old_standard")" -le 4 ] || { cat "$2/old_standard"; exit 1; }
rm -r "$2/pack" "$2/ratings" && "$2/consumer_pack" "$2/images" "$2/pack" "$2/ratings.csv" "$2/ratings"

# A reader needs none of what packing needs but libjpeg, for images of their own sizes.
library=$libraries/libchunkhit.so
if readelf -d "$library" "$2/build/stranger" | grep -E 'NEEDED.*(tbb|archive|exif|tiff|webp|chunkhit_pack)'; then
  echo "the reader links what packing needs"
  exit 1
fi

# The libraries export what their headers declare and nothing else: no Impl, no HDF5, no zstd. What is weak or unique
# may also come from the standard library's templates, and names that begin with __ are the compiler's.
for each in "$library" "${library/libchunkhit.so/libchunkhit_pack.so}"; do
  nm -D --defined-only "$each" | c++filt | cut -d' ' -f2- >"$2/exports"
  grep -vE '^[WVu] .*\bstd::|^. __' "$2/exports" >"$2/own_exports"
  if grep -vE '^. (vtable for |typeinfo (name )?for )?chunkhit::' "$2/own_exports" || grep '::Impl' "$2/own_exports"; then
    echo "$each: is exported, but not public"
    exit 1
  fi
  grep -oE '^. (vtable for |typeinfo (name )?for )?chunkhit::[^(]*' "$2/exports" | sed -E 's/.*chunkhit:://; s/\[.*//' |
    grep -oE '[A-Za-z_][A-Za-z_0-9]*' | sort -u | while read -r name; do
    grep -rqwE "$name" "$prefix/include/chunkhit" || { echo "exported, but in no header: $name"; exit 1; }
  done
done

#!/usr/bin/env bash
# Measures the figures of README.md's table and prints them beside what stands there.
set -euo pipefail
cd "$(dirname "$0")/../.."
usage="usage: tests/bench/readme.sh [ROW...]
Rows: pack deflate crops peer-crops ratings batch sizes (all). Needs a release build, torchvision and h5py; peer-crops also FFCV
in PYTHONPATH. Inputs are made in \${CHUNKHIT_BENCH:-/tmp/chunkhit-readme} and kept. Some 8 minutes on 2 idle CPUs; clocks of a busy
machine say less than README.md does. What differs by more than a tenth is named; the status is 0 all the same."
case ${1:-} in -h | --help) echo "$usage"; exit 0 ;; esac
bash samples/install_packages.sh lomiri-wallpapers-16.04 mate-backgrounds plasma-workspace-wallpapers python3-h5py python3-pandas \
  python3-pil python3-scipy python3-torch python3-torchvision ukui-wallpapers
cmake --build build/release -j "$(nproc)" --target all bare_decode bare_resize sparse_bench >/dev/null

work=${CHUNKHIT_BENCH:-/tmp/chunkhit-readme}
mkdir -p "$work"
photos() { [ -e "$work/$1/datapath_with_label.csv" ] || /usr/bin/python3 tests/bench/make_photos.py "$work/$1" "${@:2}"; }
photos photos
photos varied 600 varied
[ -e "$work/ratings.csv" ] || { /usr/bin/python3 tests/bench/make_ratings.py "$work/new.csv" && mv "$work/new.csv" "$work/ratings.csv"; }
list=$work/photos/datapath_with_label.csv
{ head -1 "$list"; for _ in $(seq 8); do tail -n +2 "$list"; done; } >"$work/rows.csv"   # 20,216 samples
[ -e "$work/hdf5/manifest.json" ] ||
  build/release/tools/pack-images "$work/photos" --labels "$work/rows.csv" --resize 96x128 --crop 64 --progress none --output "$work/hdf5"
PYTHONPATH=build/release/lib/python${PYTHONPATH:+:$PYTHONPATH} exec /usr/bin/python3 tests/bench/readme.py "$work" "$@"

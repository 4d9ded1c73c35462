#!/usr/bin/env bash
# Builds and runs what needs a GPU: tests and figures, in C++ and Python. `tests/gpu/run.sh --help` lists the flags.
set -uo pipefail
cd "$(dirname "$0")/../.."

usage="usage: bash tests/gpu/run.sh [--compile-only | --bundle FILE.tar.xz | --training SEEDS [OPTION]...]
Builds and runs the tests and figures that need a GPU; says what it skips, and why. It installs and fetches nothing.
The exit status is 1 if something failed that ran.
  --compile-only    Compile for sm_80 and sm_90, and run nothing
  --bundle FILE     Run nothing; archive what a bare machine needs of the build: libraries, Python module (for the
                    Python that it was built for), packs. There: CHUNKHIT_BUILD=FILE bash tests/gpu/run.sh
  --training SEEDS  Run only tests/bench/gpu_training.py, with its options
  -h, --help        Print this help
Variables: CHUNKHIT_BUILD, a build folder or bundle (build/release); NVCC; PYTHON (python3); GPU_TESTS_OUT, where
programs are built (build/gpu)"
compile_only= bundle= training=()
while [ $# -gt 0 ]; do
  case $1 in
    --compile-only) compile_only=1; shift ;;
    --bundle) bundle=${2:?"--bundle: expected a file"}; shift 2 ;;
    --training) training=("${@:2}"); : "${2:?"--training: expected a folder of JPEGs"}"; break ;;
    -h | --help) echo "$usage"; exit 0 ;;
    *) echo "tests/gpu/run.sh: unknown argument: $1" >&2; echo "$usage" >&2; exit 2 ;;
  esac
done

build=${CHUNKHIT_BUILD:-build/release}
out=${GPU_TESTS_OUT:-build/gpu}
python=${PYTHON:-python3}
nvcc=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)}
repeats=40  # of the pack for figures: 5,120 images
failed=0
mkdir -p "$out"

skip() { echo "skipped: $1: $2"; }
# Runs a command of at most $1 seconds, and no longer than all may take; $2 says what it is.
try() {
  local seconds=$1 what=$2 left=$((460 - SECONDS))
  shift 2
  [ -n "$compile_only" ] || [ "$seconds" -le "$left" ] || seconds=$((left > 1 ? left : 1))
  echo "== $what"
  timeout "$seconds" "$@" || { echo "FAILED: $what: exit $?"; failed=1; return 1; }
}

# 128 images of 224×224 pixels of noise, which compress badly.
make_figure_pack() {
  mkdir -p "$1/noise/0"
  for number in $(seq 128); do
    { printf 'P6 224 224 255\n'; head -c 150528 /dev/urandom; } >"$1/noise/0/$number.ppm"
  done
  "$build/tools/pack-images" "$1/noise" --output "$1/figures" --codec none --chunk-samples 16 --progress none >"$1/pack.log" 2>&1 ||
    { cat "$1/pack.log"; return 1; }
  rm -r "$1/noise"
}

make_bundle() {
  local folder=$out/bundle
  rm -rf "$folder"
  mkdir -p "$folder/lib" "$folder/packs"
  cp -L "$build"/lib/libchunkhit.so{,.0} "$build"/lib/libchunkhit_pack.so.0 "$folder/lib/" || return 1
  [ -d "$build/lib/python/chunkhit" ] && mkdir -p "$folder/lib/python" && cp -rL "$build/lib/python/chunkhit" "$folder/lib/python/"
  # What they link, but the C and C++ libraries, which are the machine's own.
  find "$folder/lib" -name '*.so*' -exec ldd {} + | awk '$2 == "=>" && $3 ~ "^/" { print $3 }' | sort -u |
    grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s|ld-linux.*)\.so|/libchunkhit' | xargs -I{} cp -L {} "$folder/lib/"
  tar -xJf tests/golden/0.1.0-masks.tar.xz -C "$folder/packs" && make_figure_pack "$folder/packs" || return 1
  tar -C "$folder" -cf - lib packs | xz -3 -T 0 >"$bundle" && ls -sh "$bundle"
}

if [ -n "$bundle" ]; then
  make_bundle
  exit
fi

if [ -f "$build" ]; then
  mkdir -p "$out/bundle"
  tar -xJf "$build" -C "$out/bundle" || "$python" -m tarfile -e "$build" "$out/bundle" || exit 1
  build=$out/bundle
fi

has_gpu= architectures=(-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90)
if [ -z "$compile_only" ] && capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null); then
  has_gpu=1 capability=$(head -n 1 <<<"$capability")
  architectures=(-arch "sm_${capability/./}")
fi

# Compiles tests/gpu/$1.cu, or the sample of this name, beside the others; the other arguments are nvcc's.
compilers=()
compile() {
  local name=$1 source=tests/gpu/$1.cu
  [ -e "$source" ] || source=samples/$1.cu
  shift
  rm -f "$out/$name"
  try 900 "compile $name" "$nvcc" -std=c++20 -O2 "${architectures[@]}" -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror \
    -I lib/include -o "$out/$name" "$source" "$@" &
  compilers+=($!)
}

# A bundle's module is for the Python that made it; for another one it is built here, where pybind11 and Python.h are.
build_module() {
  local package=$1/python/chunkhit suffix includes sources
  suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))') || return
  [ -d "$package" ] && [ ! -e "$package/_chunkhit$suffix" ] || return 0
  includes=$("$python" -m pybind11 --includes 2>/dev/null) || { skip "building the Python module" "$python has no pybind11"; return; }
  # The binding, and what tables of fields need of the library's sources.
  sources=$(ls lib/python/binding_*.cpp)
  sources+=$(grep -A1 'set(field_sources' lib/python/CMakeLists.txt | grep -oE '[a-z_/]+\.cpp' | sed 's|^| lib/|' | tr -d '\n')
  xargs -n 1 -P "$(nproc)" sh -c 'g++ -std=c++20 -O1 -fPIC -fvisibility=hidden '"$includes"' -I lib -I lib/include \
    -c "$0" -o "'"$out"'/$(basename "$0").o"' <<<"$sources" &&
    g++ -shared -o "$package/_chunkhit$suffix" "$out"/*.cpp.o -L "$1" -l:libchunkhit.so.0 -l:libchunkhit_pack.so.0 \
      -Wl,--allow-shlib-undefined '-Wl,-rpath,$ORIGIN/../..'
}

# Only what uses the library gets its folder: a bundle's copies of other libraries are not for all programs.
library= with_library=()
if [ -e "$build/lib/libchunkhit.so" ]; then
  library=$(cd "$build/lib" && pwd)
  with_library=(env "LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PYTHONDONTWRITEBYTECODE=1
    "PYTHONPATH=$library/python${PYTHONPATH:+:$PYTHONPATH}")
fi
[ -z "$library" ] || [ -n "$compile_only" ] || build_module "$library" || { echo "FAILED: Python module"; failed=1; }
if [ ${#training[@]} -gt 0 ]; then
  try 400 "training" "${with_library[@]}" "$python" tests/bench/gpu_training.py "${training[@]}"
  exit $failed
fi
if [ -z "$nvcc" ]; then
  skip "C++ tests and figures" "no nvcc on PATH or in /usr/local/cuda/bin"
elif ! command -v g++ >/dev/null; then
  skip "C++ tests and figures" "no g++, which nvcc needs"
else
  compile kernels_test
  compile kernel_figures
  # Without the library they are compiled and not linked.
  for name in loaders_test loader_figures train_cuda; do
    if [ -n "$library" ]; then
      compile $name -L "$library" -lchunkhit -Xlinker --allow-shlib-undefined
    else
      compile $name -c
    fi
  done
  for compiler in "${compilers[@]}"; do wait "$compiler" || failed=1; done
  [ -n "$library" ] || skip "running the loaders' tests, figures and sample" "no $build/lib/libchunkhit.so; set CHUNKHIT_BUILD"
fi
[ -z "$compile_only" ] || exit $failed
if [ -z "$has_gpu" ]; then
  skip "running all tests and figures" "no GPU: nvidia-smi finds none"
  exit $failed
fi

packs=$build/packs
if [ ! -d "$packs/hdf5" ]; then
  packs=$out/packs
  mkdir -p "$packs"
  tar -xJf tests/golden/0.1.0-masks.tar.xz -C "$packs" || "$python" -m tarfile -e tests/golden/0.1.0-masks.tar.xz "$packs"
fi
if [ ! -d "$packs/figures" ]; then
  if [ -x "$build/tools/pack-images" ]; then
    make_figure_pack "$packs"
  else
    skip "figures of loaders" "no pack for them, and no $build/tools/pack-images that makes one"
  fi
fi

[ -x "$out/kernels_test" ] && try 60 "kernels" "$out/kernels_test"
[ -n "$library" ] && [ -x "$out/loaders_test" ] && try 60 "loaders" "${with_library[@]}" "$out/loaders_test" "$packs"
# Its loss falls from epoch to epoch.
rm -f "$out/train.log"
[ -n "$library" ] && [ -x "$out/train_cuda" ] && try 60 "sample train_cuda" "${with_library[@]}" "$out/train_cuda" "$packs/hdf5" 5 >"$out/train.log"
if [ -e "$out/train.log" ]; then
  cat "$out/train.log"
  grep -o 'loss .*' "$out/train.log" | cut -d' ' -f2 | sort -gr -C || { echo "FAILED: sample train_cuda: the loss rises"; failed=1; }
fi

if ! "$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  skip "Python tests and figures" "$python has no torch that finds a GPU"
else
  try 60 "figures of torch" "$python" tests/gpu/torch_figures.py
  if [ -z "$library" ]; then
    skip "Python tests" "no $build/lib/libchunkhit.so; set CHUNKHIT_BUILD"
  elif reason=$("${with_library[@]}" "$python" -c 'import chunkhit.torch, pytest, scipy, PIL' 2>&1); then
    try 90 "Python tests" "${with_library[@]}" "$python" -m pytest -q -p no:cacheprovider tests/python/torch_cuda_test.py
    [ ! -d "$packs/figures" ] ||
      try 60 "figures of chunkhit.torch" "${with_library[@]}" "$python" tests/gpu/torch_figures.py "$packs/figures" "$repeats"
  else
    skip "Python tests" "$(tail -n 1 <<<"$reason")"
  fi
fi
[ -x "$out/kernel_figures" ] && try 40 "figures of kernels" "$out/kernel_figures"
[ -n "$library" ] && [ -d "$packs/figures" ] && [ -x "$out/loader_figures" ] &&
  try 90 "figures of loaders" "${with_library[@]}" "$out/loader_figures" "$packs/figures" "$repeats"
exit $failed

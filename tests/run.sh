#!/usr/bin/env bash
# Installs what is missing, builds, and tests. `tests/run.sh --help` lists the flags, tests/README.md says what is tested where.
set -euo pipefail
cd "$(dirname "$0")/.."

usage="usage: bash tests/run.sh [--on SUITE] [--deep [STAGE...]] [--with-arm64] [--with-torch]
Installs what is missing, builds, and runs the tests that tell in minutes that the product works.
  --on SUITE     Do so in another release of Debian, bookworm or trixie: in a chroot, which is kept (tests/on_debian.sh)
  --deep         Run the rest instead: every stage of
                   tidy alone release asan tsan clang bundle
                 or those named, with a line and its time for each
  --with-arm64   Also build for arm64, run the C++ tests by qemu, and compare the bytes of packs
  --with-torch   Also install libtorch-dev, build samples/train_torch.cpp and test it
  -h, --help     Print this help"
if [ "${1:-}" = --on ] && [ $# -ge 2 ]; then
  exec bash tests/on_debian.sh "$2" bash -c 'bash samples/install_packages.sh ccache git
    CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache exec bash tests/run.sh "$@"' - "${@:3}"
fi

deep= stages=() torch_packages=() torch_required=OFF tests_arm64=
for argument in "$@"; do
  case $argument in
    --deep) deep=1 ;;
    --with-arm64) tests_arm64=1 ;;
    --with-torch) torch_packages=(libtorch-dev) torch_required=ON ;;
    -h | --help) echo "$usage"; exit 0 ;;
    tidy | alone | release | asan | tsan | clang | bundle) stages+=("$argument") ;;
    *) echo "tests/run.sh: unknown argument: $argument" >&2; echo "$usage" >&2; exit 2 ;;
  esac
done
[ ${#stages[@]} -gt 0 ] || stages=(tidy alone release asan tsan clang bundle)

bash samples/install_packages.sh $(cat samples/build_packages.txt) clang-format curl file hdf5-tools iproute2 libavif-dev libgtest-dev \
  libjpeg-turbo-progs libjxl-dev make mount mypy nginx-light openssl procps 'python3-anndata?' python3-h5py python3-jinja2 python3-jsonschema \
  python3-matplotlib python3-numpy python3-pandas python3-pil python3-pytest python3-scipy python3-sklearn python3-torch \
  python3-torchvision python3-yaml zstd "${torch_packages[@]}"

jobs=$(nproc)
# Configures a preset. A new folder takes warnings for errors; one that the quickstart built keeps its settings: others would
# compile all of it again.
configure() {
  local settings=()
  # With the sanitizers' calls in between, GCC warns of variables that are set.
  case $1 in
    asan | tsan) ;;
    *) [ -f "build/$1/CMakeCache.txt" ] || settings+=(-DCMAKE_COMPILE_WARNING_AS_ERROR=ON) ;;
  esac
  cmake --preset "$1" -DCHUNKHIT_TESTS=ON "${settings[@]}" "${@:2}" >/dev/null
}
build() { cmake --build "build/$1" -j "$jobs" "${@:2}"; }
# One more than there are CPUs: the Python tests of servers wait most of their time.
run() { ctest --test-dir "build/$1" --output-on-failure -j "$((jobs + 1))" "${@:2}"; }

# Where libtorch is, its sample is built and tested with all the others; here a CMake that does not find it is an error.
configure release -DCMAKE_REQUIRE_FIND_PACKAGE_Torch="$torch_required"

if [ -z "$deep" ]; then
  build release
  run release -LE 'deep|sanitized|bundle'
fi

# ---- What --deep adds

stage_tidy() { /usr/bin/python3 tests/style/tidy.py .; }

# Each source and header by itself: in the builds several share what they include.
stage_alone() { /usr/bin/python3 tests/style/alone.py .; }

# What needs minutes or many packages, and each point of the sweeps of which the default run takes every nth.
stage_release() {
  build release --target all benches
  CHUNKHIT_TEST_DEEP=1 run release -L 'deep|sweep'
}

# Under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer. Left out: kill, disk_full and io_faults,
# some hundred runs of the commands each, which LeakSanitizer makes minutes longer; what limits memory or time, which
# the sanitizers need themselves; and what does not run our code (style, include order, headers, consumer).
sanitized='chunkhit_tests|sparse_tests|reader_tests|replay_.*|.*_equals?_.*|order_is_as_described|external_hdf5'
sanitized+='|trusted_readers|matrix_(formats|readers)|hdf5_matrices|failures_(end_to_end|usage|flipped_bytes|pack_sparse)|batch_plan'
stage_asan() {
  configure asan
  build asan --target chunkhit_tests sparse_tests reader_tests \
    pack-bench pack-images pack-info pack-merge pack-run pack-sparse pack-verify fault_shim hdf5_zstd_plugin \
    {augment,decode,hdf5,loader,matrix,order,rating_packs,ratings,sparse_loader,store,transform}_probe replays
  run asan -R "^($sanitized)\$"
}

# The reader's threads under ThreadSanitizer.
stage_tsan() {
  configure tsan
  build tsan --target reader_tests
  run tsan -R '^reader_tests$'
}

# By clang: all is built, and the bytes of packs are those of the release build.
stage_clang() {
  configure clang
  build clang
  run clang -R '^((chunkhit|sparse|reader|tools)_tests|golden|pinned_hashes)$'
  /usr/bin/python3 tests/pinned/same_packs_test.py build/release build/clang
}

# The wheel and the bundle, in bare systems of both releases of Debian.
stage_bundle() { run release -L bundle; }

if [ -n "$deep" ]; then
  bash samples/install_packages.sh chromium clang clang-tidy doxygen dpkg-dev file fish fuse3 groff libbenchmark-dev libclang-rt-14-dev \
    lintian man-db mandoc mkdocs mkdocs-material moosefs-chunkserver moosefs-client moosefs-master parallel python3-distributed \
    python3-pip python3-setuptools python3-venv python3-wheel slurm-wlm zsh
  # An S3-compatible server for the tests of remote packs; where npm cannot get it, the one test that needs it is skipped.
  command -v npm >/dev/null || bash samples/install_packages.sh nodejs npm
  [ -d build/s3rver/node_modules/s3rver ] || npm install --silent --no-audit --no-fund --prefix build/s3rver s3rver@3.7.1 ||
    echo "tests/run.sh: npm could not install s3rver" >&2
  configure release  # with the packages that were missing
  build release >build/deep-build.log 2>&1 || { tail -n 100 build/deep-build.log; exit 1; }

  failed=0
  for stage in "${stages[@]}"; do
    begin=$SECONDS
    # In a shell of its own, because `set -e` has no effect in a function of which the result is asked for.
    if bash -euo pipefail -c "$(declare -f); $(declare -p jobs sanitized); stage_$stage" >"build/deep-$stage.log" 2>&1; then
      result=passed
    else
      result=FAILED failed=$((failed + 1))
      grep -E '\*\*\*|FAILED|Timeout|error:' "build/deep-$stage.log" || true
      tail -n 400 "build/deep-$stage.log"
    fi
    printf '%-8s %s in %d s\n' "$stage" "$result" $((SECONDS - begin))
  done
  echo "$((${#stages[@]} - failed)) passed, $failed failed"
  [ "$failed" -eq 0 ]
fi

# For arm64, run by qemu: the C++ tests, comparisons with trusted implementations where code differs by the machine, and packs,
# which must be those of the release build.
[ -n "$tests_arm64" ] || exit 0
bash samples/install_packages.sh g++-aarch64-linux-gnu mmdebstrap qemu-user
bash cmake/arm64_sysroot.sh
configure arm64
build arm64 --target chunkhit_tests sparse_tests tools_tests \
  pack-{images,info,merge,run,sparse,verify} {augment,loader,order,sparse_loader,transform}_probe
run arm64 -R '^((chunkhit|sparse|tools)_tests|(transform|resized_crop)_equals_pillow|augment_equals_torchvision)$'
/usr/bin/python3 tests/pinned/same_packs_test.py build/release build/arm64

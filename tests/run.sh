#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. `tests/run.sh --help` lists the flags.
set -euo pipefail
cd "$(dirname "$0")/.."

usage="usage: bash tests/run.sh [--with-arm64] [--with-clang] [--with-torch]
Installs what is missing, builds, and runs every test.
  --with-arm64   Also build for arm64, run the C++ tests by qemu, and compare the bytes of packs
  --with-clang   Also build with clang, run the C++ tests, and compare the bytes of packs
  --with-torch   Also install libtorch-dev, build samples/train_torch.cpp and test it
  -h, --help     Print this help"
torch_packages=() torch_required=OFF tests_arm64= tests_clang=
for argument in "$@"; do
  case $argument in
    --with-arm64) tests_arm64=1 ;;
    --with-clang) tests_clang=1 ;;
    --with-torch) torch_packages=(libtorch-dev) torch_required=ON ;;
    -h | --help) echo "$usage"; exit 0 ;;
    *) echo "tests/run.sh: unknown argument: $argument" >&2; echo "$usage" >&2; exit 2 ;;
  esac
done

bash samples/install_packages.sh $(cat samples/build_packages.txt) \
  ccache chromium clang-format clang-tidy curl doxygen dpkg-dev file fish fuse3 groff hdf5-tools iproute2 libavif-dev libbenchmark-dev \
  libgtest-dev libjpeg-turbo-progs libjxl-dev lintian man-db mandoc mkdocs mkdocs-material moosefs-chunkserver moosefs-client \
  moosefs-master mypy nginx-light openssl parallel procps python3-anndata python3-distributed python3-h5py python3-jinja2 \
  python3-jsonschema python3-matplotlib python3-numpy python3-pandas python3-pil python3-pip python3-pytest python3-scipy \
  python3-setuptools python3-sklearn python3-torch python3-torchvision python3-venv python3-wheel python3-yaml slurm-wlm \
  strace xxhash zsh zstd "${torch_packages[@]}"

# An S3-compatible server for the tests of remote packs; where npm cannot get it, the one test that needs it is skipped.
command -v npm >/dev/null || bash samples/install_packages.sh nodejs npm
[ -d build/s3rver/node_modules/s3rver ] || npm install --silent --no-audit --no-fund --prefix build/s3rver s3rver@3.7.1 ||
  echo "tests/run.sh: npm could not install s3rver" >&2

# What was compiled before, in any folder, is not compiled again.
export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

jobs=$(nproc)
# Where libtorch is, its sample is built and tested with all the others; here a CMake that does not find it is an error.
cmake --preset release -DCHUNKHIT_TESTS=ON -DCMAKE_REQUIRE_FIND_PACKAGE_Torch="$torch_required" >/dev/null
cmake --build --preset release -j "$jobs"
ctest --test-dir build/release --output-on-failure -j "$jobs"

# Again under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer. Left out: kill, disk_full and io_faults,
# some hundred runs of the commands each, which LeakSanitizer makes minutes longer; what limits memory or time, which
# the sanitizers need themselves; and what does not run our code (style, include order, headers, consumer).
cmake --preset asan -DCHUNKHIT_TESTS=ON >/dev/null
cmake --build --preset asan -j "$jobs" --target chunkhit_tests sparse_tests reader_tests \
  pack-images pack-info pack-merge pack-run pack-sparse pack-verify fault_shim hdf5_zstd_plugin \
  {augment,decode,hdf5,loader,matrix,order,rating_packs,ratings,sparse_loader,store,transform}_probe replays
sanitized='chunkhit_tests|sparse_tests|reader_tests|replay_.*|.*_equals?_.*|order_is_as_described|external_hdf5'
sanitized+='|trusted_readers|matrix_(formats|readers)|hdf5_matrices|failures_(end_to_end|usage|flipped_bytes|pack_sparse)|batch_plan'
ctest --test-dir build/asan --output-on-failure -j "$jobs" -R "^($sanitized)\$"

# The reader's threads under ThreadSanitizer.
cmake --preset tsan -DCHUNKHIT_TESTS=ON >/dev/null
cmake --build --preset tsan -j "$jobs" --target reader_tests
ctest --test-dir build/tsan --output-on-failure -R '^reader_tests$'

# By clang: all is built; what is tested is what the sanitizers test and what compares bytes with recorded ones, or with those
# of the release build.
if [ -n "$tests_clang" ]; then
  bash samples/install_packages.sh clang
  cmake --preset clang -DCHUNKHIT_TESTS=ON >/dev/null
  cmake --build --preset clang -j "$jobs"
  ctest --test-dir build/clang --output-on-failure -j "$jobs" -R "^($sanitized|(tools|stock_jpeg)_tests|golden|pinned_hashes)\$"
  /usr/bin/python3 tests/pinned/same_packs_test.py build/release build/clang
fi

# For arm64, run by qemu: the C++ tests, comparisons with trusted implementations where code differs by the machine, and packs,
# which must be those of the release build.
[ -n "$tests_arm64" ] || exit 0
bash samples/install_packages.sh g++-aarch64-linux-gnu mmdebstrap qemu-user
bash cmake/arm64_sysroot.sh
cmake --preset arm64 -DCHUNKHIT_TESTS=ON >/dev/null
cmake --build --preset arm64 -j "$jobs" --target chunkhit_tests sparse_tests tools_tests \
  pack-{images,info,merge,run,sparse,verify} {augment,loader,order,sparse_loader,transform}_probe
ctest --test-dir build/arm64 --output-on-failure -j "$jobs" \
  -R '^((chunkhit|sparse|tools)_tests|(transform|resized_crop)_equals_pillow|augment_equals_torchvision)$'
/usr/bin/python3 tests/pinned/same_packs_test.py build/release build/arm64

#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: release, then the C++ tests under ASan and UBSan.
set -euo pipefail
cd "$(dirname "$0")/.."

bash samples/install_packages.sh $(cat samples/build_packages.txt) \
  clang libclang-rt-14-dev clang-format dataset-fashion-mnist hdf5-tools libgtest-dev python3-h5py python3-jsonschema \
  python3-numpy python3-pil strace xxhash zstd

jobs=$(nproc)
cmake --preset release -DCHUNKHIT_TESTS=ON >/dev/null
cmake --build --preset release -j "$jobs"
ctest --test-dir build/release --output-on-failure -j "$jobs"

cmake --preset asan -DCHUNKHIT_TESTS=ON >/dev/null
cmake --build --preset asan -j "$jobs" --target chunkhit_tests
ctest --test-dir build/asan --output-on-failure -R '^(chunkhit_tests|.*_corpus)$'

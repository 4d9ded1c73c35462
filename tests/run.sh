#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test.
set -euo pipefail
cd "$(dirname "$0")/.."

bash samples/install_packages.sh $(cat samples/build_packages.txt) \
  hdf5-tools libgtest-dev python3-h5py python3-jsonschema \
  python3-numpy python3-pil strace xxhash zstd

jobs=$(nproc)
cmake --preset release -DCHUNKHIT_TESTS=ON >/dev/null
cmake --build --preset release -j "$jobs"
ctest --test-dir build/release --output-on-failure -j "$jobs"

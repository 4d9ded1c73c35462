#!/usr/bin/env bash
# From a fresh Debian 12 to a trained model: installs, builds, exports Fashion-MNIST to image files, packs, trains.
# usage: bash samples/quickstart.sh [FOLDER]   (default: build/quickstart)
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:-build/quickstart}

bash samples/install_packages.sh $(cat samples/build_packages.txt) \
  dataset-fashion-mnist python3-numpy python3-pil
cmake --preset release -DCHUNKHIT_TESTS=OFF >/dev/null
cmake --build --preset release

mkdir -p "$work"
bin=build/release/tools
/usr/bin/python3 samples/export_fashion_mnist.py "$work/images"
for split in train test; do
  "$bin/pack-images" "$work/images/$split" --labels "$work/images/$split/labels.csv" --channels gray \
    --output "$work/$split" --force
done
"$bin/pack-info" "$work/train"
"$bin/pack-verify" "$work/train"
build/release/samples/train_images "$work/train" "$work/test"

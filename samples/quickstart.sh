#!/usr/bin/env bash
# From a fresh Debian 12 to a trained model: installs, builds, exports Fashion-MNIST to image files, packs, trains.
# Where Python has torch, it also trains a convolutional net, and compares how long it waits with ImageFolder and a DataLoader.
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
/usr/bin/python3 samples/export_fashion_mnist.py "$work/fashion-mnist"
for split in train test; do
  "$bin/pack-images" "$work/fashion-mnist/$split" --channels gray --output "$work/$split" --force
done
"$bin/pack-info" "$work/train"
"$bin/pack-verify" "$work/train"
build/release/samples/train_images "$work/train" "$work/test"

train=(/usr/bin/python3 samples/python/cifar_like.py "$work/train" "$work/test" --files "$work/fashion-mnist/train")
export PYTHONPATH=build/release/lib/python
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  "${train[@]}"
else
  echo "a convolutional net on the same packs, to 92 % of the test set:"
  echo "  apt-get install python3-torch python3-torchvision libopenblas0-pthread"
  echo "  PYTHONPATH=$PYTHONPATH ${train[*]}"
fi

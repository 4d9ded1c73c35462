#!/usr/bin/python3
"""Exports Debian's Fashion-MNIST (package dataset-fashion-mnist) to PNG files in class folders.

usage: export_fashion_mnist.py OUT_FOLDER [--count N]
Writes OUT_FOLDER/{train,test}/<class>/<n>.png.
"""
import argparse
import gzip
import os
import struct

import numpy as np
from PIL import Image

SOURCE = "/usr/share/datasets/fashion-mnist"
CLASSES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]


def read_idx(path):
    """Returns the array of an IDX file of unsigned bytes."""
    with gzip.open(path) as file:
        data = file.read()
    kind, dimensions = data[2], data[3]
    assert kind == 8, f"{path}: expected unsigned bytes"
    shape = struct.unpack(f">{dimensions}I", data[4 : 4 + 4 * dimensions])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def export(prefix, out, count):
    images = read_idx(f"{SOURCE}/{prefix}-images-idx3-ubyte.gz")[:count]
    labels = read_idx(f"{SOURCE}/{prefix}-labels-idx1-ubyte.gz")[:count]
    for name in CLASSES:
        os.makedirs(f"{out}/{name}", exist_ok=True)
    for index, (image, label) in enumerate(zip(images, labels)):
        Image.fromarray(image).save(f"{out}/{CLASSES[label]}/{index:05d}.png", compress_level=1)
    print(f"{out}: {len(images)} images")


arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("out")
arguments.add_argument("--count", type=int, help="only the first N of each set")
options = arguments.parse_args()
export("train", f"{options.out}/train", options.count)
export("t10k", f"{options.out}/test", options.count)

#!/usr/bin/python3
"""Measures the reader beside h5py over an HDF5 file that h5py wrote: deflate, chunks of 100 samples.

usage: reader_h5py.py BUILD_FOLDER PART [SAMPLES]
PART is an uncompressed HDF5 part of pack-images, whose first SAMPLES (20,000) images are taken. Prints samples per
second: h5py's loop over shuffled samples (500 of them, chunk cache of one GiB as users set it, and untuned), h5py reading
whole chunks in order, and pack-bench.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

build, part = sys.argv[1:3]
samples = int(sys.argv[3]) if len(sys.argv) > 3 else 20000
path = os.path.join(tempfile.gettempdir(), "chunkhit-reader-h5py.h5")
with h5py.File(part) as source, h5py.File(path, "w") as out:
    images = source["images"][:samples]
    out.create_dataset("images", data=images, chunks=(100, *images.shape[1:]), compression="gzip", compression_opts=4)
    out.create_dataset("labels", data=source["labels"][:samples])


def rate(count, work):
    begin = time.perf_counter()
    work()
    return count / (time.perf_counter() - begin)


def shuffled(picks, **cache):
    with h5py.File(path, **cache) as file:
        images = file["images"]
        return rate(len(picks), lambda: [images[pick] for pick in picks])


def in_order():
    with h5py.File(path) as file:
        images = file["images"]
        return rate(len(images), lambda: [images[first:first + 100] for first in range(0, len(images), 100)])


def ours(*flags):
    text = subprocess.run([f"{build}/tools/pack-bench", path, "--batch-size", "100", "--epochs", "3", "--json", *flags],
                          check=True, stdout=subprocess.PIPE).stdout
    return json.loads(text)["samples_per_second"]


picks = np.random.default_rng(1).permutation(len(images))
rates = {
    "h5py, shuffled samples, untuned": shuffled(picks[:500]),
    "h5py, shuffled samples, 1 GiB cache": shuffled(picks, rdcc_nbytes=1 << 30, rdcc_nslots=11213, rdcc_w0=1),
    "h5py, whole chunks in order": in_order(),
    "pack-bench, window, stream": ours("--shuffle", "window", "--cache", "none"),
    "pack-bench, none, stream": ours("--shuffle", "none", "--cache", "none"),
    "pack-bench, global, decoded": ours("--shuffle", "global", "--cache", "decoded"),
}
os.remove(path)
for name, value in rates.items():
    print(f"{name:38} {value:9.0f} samples/s")

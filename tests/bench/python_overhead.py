#!/usr/bin/python3
"""Measures the Python package: what a batch costs, a pass beside the C++ loop, and beside DataLoader over tuned h5py.

usage: PYTHONPATH=BUILD_FOLDER/lib/python python_overhead.py BUILD_FOLDER [SAMPLES]
Makes an HDF5 file of SAMPLES (20,000) random images of 64 x 64 x 3, uncompressed, in the temporary folder. Runs take
turns; medians of 5, of the best of four epochs each. Prints one table.
"""
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import chunkhit
import chunkhit.torch

build = sys.argv[1]
samples = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
path = os.path.join(tempfile.gettempdir(), "chunkhit-python.h5")
tiny = os.path.join(tempfile.gettempdir(), "chunkhit-python-tiny.h5")
BATCH, ROUNDS = 256, 5
TUNED = dict(rdcc_nbytes=1 << 30, rdcc_nslots=11213, rdcc_w0=1)


class TunedH5py(Dataset):
    """A file that is opened in each worker, with a chunk cache that holds it all."""
    file = None

    def __len__(self):
        return samples

    def __getitem__(self, number):
        if self.file is None:
            self.file = h5py.File(path, **TUNED)
            self.images, self.labels = self.file["images"], self.file["labels"]
        return torch.from_numpy(self.images[number]), int(self.labels[number])


def make_files():
    with h5py.File(tiny, "w") as out:
        out.create_dataset("images", data=np.zeros((20000, 1, 1, 1), np.uint8))
        out.create_dataset("labels", data=np.arange(20000))
    random = np.random.default_rng(1)
    with h5py.File(path, "w") as out:
        images = out.create_dataset("images", (samples, 64, 64, 3), np.uint8, chunks=(100, 64, 64, 3))
        for first in range(0, samples, 1000):
            count = min(1000, samples - first)
            images[first : first + count] = random.integers(0, 256, (count, 64, 64, 3), np.uint8)
        out.create_dataset("labels", data=np.arange(samples))


def seconds(batches):
    begin = time.perf_counter()
    for _ in batches:
        pass
    return time.perf_counter() - begin


def cpp_rate(shuffle):
    """Of the epochs after the first, which checks hashes."""
    text = subprocess.run([f"{build}/tools/pack-bench", path, "--batch-size", str(BATCH), "--shuffle", shuffle, "--epochs", "5",
                           "--json"], check=True, stdout=subprocess.PIPE).stdout
    return max(each["samples_per_second"] for each in json.loads(text)["epochs"][1:])


def python_rate(make, shuffle):
    loader = make(path, batch_size=BATCH, shuffle=shuffle)
    seconds(loader.epoch(0))
    return samples / min(seconds(loader.epoch(epoch)) for epoch in range(1, 5))


def caller_microseconds(make):
    """What a batch takes of the caller's CPU where there is nothing to copy: 4 images of one byte."""
    loader = make(tiny, batch_size=4)
    found = []
    for epoch in range(5):
        begin = time.thread_time()
        batches = sum(1 for _ in loader.epoch(epoch))
        found.append((time.thread_time() - begin) / batches * 1e6)
    return min(found)


def data_loader_rate(workers):
    loader = DataLoader(TunedH5py(), batch_size=BATCH, shuffle=True, num_workers=workers)
    return samples / seconds(loader)


make_files()
for name, make in (("chunkhit", chunkhit.ImageLoader), ("chunkhit.torch", chunkhit.torch.ImageLoader)):
    print(f"{name + ', CPU of the caller':48} {caller_microseconds(make):9.1f} us a batch")
cases = {f"{what}, {shuffle}": (rate, shuffle) for shuffle in ("window", "global") for what, rate in (
    ("C++ (pack-bench)", cpp_rate), ("chunkhit", lambda each: python_rate(chunkhit.ImageLoader, each)),
    ("chunkhit.torch", lambda each: python_rate(functools.partial(chunkhit.torch.ImageLoader, layout=None), each)))}
rates = {case: [] for case in cases}
for _ in range(ROUNDS):
    for case, (rate, shuffle) in cases.items():
        rates[case].append(rate(shuffle))
for workers in (0, 1, 2):
    rates[f"DataLoader over tuned h5py, {workers} workers"] = [data_loader_rate(workers) for _ in range(2)]
for file in (path, tiny):
    os.remove(file)
for case, found in rates.items():
    print(f"{case:48} {statistics.median(found):9.0f} samples/s  ({min(found):.0f}-{max(found):.0f})")

#!/usr/bin/python3
"""CPU time of packing a torch Dataset by two workers, beside a DataLoader that only reads it, in turns.

usage: PYTHONPATH=build/release/lib/python tests/bench/dataset_bench.py FOLDER [ROUNDS]      (FOLDER/CLASS/…: images)
Prints seconds of all processes: a DataLoader of tensors; the samples as pack_dataset's workers hand them over; pack_dataset
with resize=256, crop=224, to HDF5 and to shards, which are compressed.
"""
import logging
import os
import resource
import statistics
import sys
import tempfile

import numpy as np
import torch
import torchvision

import chunkhit
from chunkhit._pack_dataset import BATCH, Samples, read_ahead

WORKERS = 2


class Tensors(torch.utils.data.Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image, label = self.files[index]
        return torch.from_numpy(np.array(image)), label


def cpu_seconds(run):
    def used():
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    begin = used()
    run()
    return used() - begin


def read_loader(files):
    for batch in torch.utils.data.DataLoader(Tensors(files), batch_size=BATCH, num_workers=WORKERS, collate_fn=list):
        pass


def read_handed_over(files):
    for sample in read_ahead(Samples(files, ("image", "label", None, None), {}, [], None), WORKERS):
        pass


def pack(files, container):
    with tempfile.TemporaryDirectory() as folder:
        chunkhit.pack_dataset(files, os.path.join(folder, "pack"), container=container, workers=WORKERS, resize=256, crop=224,
                              progress=False)


def main():
    torch.set_num_threads(1)
    logging.getLogger("chunkhit").setLevel(logging.ERROR)
    files = torchvision.datasets.ImageFolder(sys.argv[1])
    runs = {"DataLoader": read_loader, "handed over": read_handed_over, "pack_dataset to HDF5": lambda files: pack(files, "hdf5"),
            "pack_dataset to shards": lambda files: pack(files, "shard")}
    seconds = {name: [] for name in runs}
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 3):
        for name, run in runs.items():
            seconds[name].append(cpu_seconds(lambda: run(files)))
    peer = statistics.median(seconds["DataLoader"])
    for name, found in seconds.items():
        own = statistics.median(found)
        print(f"{name}: {own:.2f} s ({min(found):.2f}–{max(found):.2f}), {peer / own:.2f} of DataLoader's speed")


if __name__ == "__main__":
    main()

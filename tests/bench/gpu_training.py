#!/usr/bin/env python3
"""Measures one training on a GPU, fed from files, by h5py and by chunkhit, beside the same steps on a batch that stays there.

usage: gpu_training.py SEEDS [--images N] [--models resnet18,resnet50] [--device cpu] …      (--help: all)
SEEDS is a folder of JPEGs, as make_photos.py makes them; IMAGES links to them in ten class folders are the training data. All
ways give random crops of 224x224 pixels, mirrored at random, as uint8; the step normalises them. Prints a table and a line of JSON.
"""
import argparse
import gc
import glob
import itertools
import json
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback

import h5py
import numpy as np
import PIL
from PIL import Image
import torch
from torch.utils.data import DataLoader, Dataset
import torchvision

import chunkhit
import chunkhit.torch

try:
    from torchvision.transforms import v2 as transforms
    ANTIALIAS = dict(antialias=True)
except ImportError:  # before torchvision 0.15
    from torchvision import transforms
    ANTIALIAS = {}

SIDE, STORED_SIDE = 224, 256
CHUNK_IMAGES = 32  # of the HDF5 file with many images a chunk
CLASSES = 10
CPUS = len(os.sched_getaffinity(0))
STEPS_AHEAD = 2  # the CPU is so far ahead of the GPU: what it waits for then is data
CAPTION = """{images:,} files in {classes} folders, hard links to {seeds} photos of {bytes:,.0f} bytes on average: few distinct photos, and
the page cache is warm for all. Batches of {batch}; {workers} DataLoader workers; files read by {reader}, the faster one here.
Waiting: the epoch less the time of its steps on a batch that stays on the device. Idle: between steps, on the device's clock.
CPU: all processes, training included. A first epoch includes opening the loader. Files and chunkhit give random resized crops, the HDF5
files random crops of {stored}×{stored}."""


def cpu_seconds():
    """User and system time of this process and its living workers."""
    total = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for child in multiprocessing.active_children():
        with open(f"/proc/{child.pid}/stat", encoding="ascii") as file:
            total += sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    return total


class Clock:
    """Marks on the device's own time line, where there is one."""

    def __init__(self, device):
        self.is_cuda = device == "cuda"

    def mark(self):
        if not self.is_cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True, blocking=True)  # spinning would count as CPU time
        event.record()
        return event

    def wait(self, mark):
        if self.is_cuda:
            mark.synchronize()

    def seconds(self, begin, end):
        return begin.elapsed_time(end) / 1e3 if self.is_cuda else end - begin


def run_steps(batches, step, clock):
    """Steps, and seconds that the device was idle before them."""
    begins, ends = [], [clock.mark()]
    for images, labels in batches:
        begins.append(clock.mark())
        step(images, labels)
        ends.append(clock.mark())
        if len(ends) > STEPS_AHEAD:
            clock.wait(ends[-1 - STEPS_AHEAD])
    clock.wait(ends[-1])
    return len(begins), sum(map(clock.seconds, ends, begins))


def make_step(name, device):
    """A function that trains a new model with a batch."""
    model = (getattr(torchvision.models, name)(num_classes=CLASSES) if name != "tiny" else torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 7, 8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, CLASSES)))
    model = model.to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    mean, std = (torch.tensor(values, device=device).view(1, 3, 1, 1) * 255 for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))

    def step(images, labels):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            loss = torch.nn.functional.cross_entropy(model((images - mean) / std), labels)
        loss.backward()
        optimizer.step()

    return step


class Resident:
    """The limit: one batch that is on the device."""

    def __init__(self, options):
        images = torch.randint(0, 256, (options.batch, 3, SIDE, SIDE), dtype=torch.uint8)
        self.steps = min(options.steps or options.images, options.images // options.batch)
        self.batch = (images.to(options.device).contiguous(memory_format=torch.channels_last),
                      torch.randint(0, CLASSES, (options.batch,)).to(options.device))

    def epoch(self, _):
        return itertools.repeat(self.batch, self.steps)

    def stats(self):
        return {}

    def close(self):
        pass


class Workers(Resident):
    """A DataLoader's batches, copied to the device."""

    def __init__(self, dataset, options, is_nhwc=False):
        self.device, self.is_nhwc = options.device, is_nhwc
        self.loader = DataLoader(dataset, options.batch, shuffle=True, drop_last=True, num_workers=options.workers,
                                 pin_memory=options.device == "cuda", persistent_workers=True, prefetch_factor=4)

    def epoch(self, _):
        for images, labels in self.loader:
            images = images.to(self.device, non_blocking=True)
            images = images.permute(0, 3, 1, 2) if self.is_nhwc else images.contiguous(memory_format=torch.channels_last)
            yield images, labels.to(self.device, non_blocking=True)

    def close(self):
        del self.loader
        gc.collect()


class Chunkhit:
    """The batches of chunkhit.torch."""

    def __init__(self, pack, options, **more):
        crop = dict(flip_horizontal=0.5, resized_crop=dict(height=SIDE, width=SIDE))
        self.loader = chunkhit.torch.ImageLoader(pack, batch_size=options.batch, shuffle="window", drop_last=True, device=options.device,
                                                 layout="nhwc", augment=crop, **more)

    def epoch(self, epoch):
        if epoch == 1:
            self.loader.reset_stats()
        return ((images.permute(0, 3, 1, 2), labels) for images, labels in self.loader.epoch(epoch))

    def stats(self):
        """Of the epochs after the first."""
        found = self.loader.stats()
        return {"verdict": found.verdict(), "wait_fraction": found.wait_fraction, "cache": found.cache, "threads": found.threads}

    def close(self):
        self.loader.close()


def read_tensor(path):
    return torchvision.io.read_image(path, torchvision.io.ImageReadMode.RGB)


def read_pillow(path):
    with Image.open(path) as image:
        return image.convert("RGB")


def crop_of(read):
    changes = [transforms.RandomResizedCrop(SIDE, **ANTIALIAS), transforms.RandomHorizontalFlip()]
    return transforms.Compose(changes + [transforms.PILToTensor()] * (read is read_pillow))


def faster_reader(seeds):
    """The way of reading files whose crops take less time here."""
    def seconds(read):
        crop, begin = crop_of(read), time.perf_counter()
        for path in seeds[:60]:
            crop(read(path))
        return time.perf_counter() - begin

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as a worker has
    found = min((read_tensor, read_pillow), key=lambda read: min(seconds(read) for _ in range(2)))
    torch.set_num_threads(threads)
    return found


class InHdf5(Dataset):
    """Random crops of decoded images, mirrored at random."""

    def __init__(self, path):
        self.path, self.images = path, None
        with h5py.File(path) as file:
            self.labels = file["labels"][:]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, number):
        if self.images is None:  # each worker opens its own; no cache, as chunks are not compressed
            self.images = h5py.File(self.path, rdcc_nbytes=0)["images"]
        top, left, is_mirrored = torch.randint(0, 1 << 30, (3,)).tolist()
        top, left = (place % (STORED_SIDE - SIDE + 1) for place in (top, left))
        image = torch.from_numpy(self.images[number])[top:top + SIDE, left:left + SIDE]
        return image.flip(1) if is_mirrored % 2 else image.contiguous(), self.labels[number]


def write_hdf5(files, path, chunk_images, options):
    changes = [transforms.Resize(STORED_SIDE), transforms.CenterCrop(STORED_SIDE), transforms.PILToTensor()]
    dataset = torchvision.datasets.ImageFolder(files, loader=read_pillow, transform=transforms.Compose(changes))
    shape = (STORED_SIDE, STORED_SIDE, 3)
    with h5py.File(path, "w") as out:
        out["labels"] = np.array(dataset.targets)
        images = out.create_dataset("images", (len(dataset), *shape), np.uint8, chunks=(min(chunk_images, len(dataset)), *shape))
        first = 0
        for batch, _ in DataLoader(dataset, CHUNK_IMAGES, num_workers=options.workers):
            images[first:first + len(batch)] = batch.permute(0, 2, 3, 1).numpy()
            first += len(batch)


class Ways:
    """What is packed, once each, and the loaders by name."""

    def __init__(self, files, folder, options, read):
        own, fixed = f"{folder}/own", f"{folder}/fixed"
        one, many = f"{folder}/one.h5", f"{folder}/many.h5"
        self.seconds, self.failures = {}, 0
        self.pack = {
            one: lambda: write_hdf5(files, one, 1, options),
            many: lambda: write_hdf5(files, many, CHUNK_IMAGES, options),
            fixed: lambda: chunkhit.pack_images(files, fixed, resize=STORED_SIDE, crop=STORED_SIDE, progress=False),
            own: lambda: chunkhit.pack_images(files, own, sizes="own", progress=False)}
        # Name: what it reads, and a function that opens it.
        self.loaders = {
            "limit: a batch that stays": (None, lambda: Resident(options)),
            "files, DataLoader": (None, lambda: Workers(torchvision.datasets.ImageFolder(files, loader=read, transform=crop_of(read)), options)),
            "h5py, chunks of 1 image": (one, lambda: Workers(InHdf5(one), options, is_nhwc=True)),
            f"h5py, chunks of {CHUNK_IMAGES} images": (many, lambda: Workers(InHdf5(many), options, is_nhwc=True)),
            f"chunkhit, pixels, {STORED_SIDE}×{STORED_SIDE}": (fixed, lambda: Chunkhit(fixed, options)),
            "chunkhit, JPEG, own sizes": (own, lambda: Chunkhit(own, options)),
            "the same, decoded in each epoch": (own, lambda: Chunkhit(own, options, cache="compressed"))}

    def packing_seconds(self, path):
        """Packs it if it is not there yet; None for files."""
        if path and path not in self.seconds:
            begin = time.perf_counter()
            self.pack[path]()
            self.seconds[path] = time.perf_counter() - begin
        return self.seconds.get(path)


def measure_epochs(open_loader, step, options):
    """A record of each epoch, and what the loader says itself."""
    loader, epochs, clock = None, [], Clock(options.device)
    for epoch in range(options.epochs):
        cpu, begin = cpu_seconds(), time.perf_counter()
        loader = loader or open_loader()
        count, idle = run_steps(itertools.islice(loader.epoch(epoch), options.steps), step, clock)
        epochs.append(dict(seconds=time.perf_counter() - begin, cpu_seconds=cpu_seconds() - cpu, idle_seconds=idle, steps=count))
    stats = loader.stats()
    loader.close()
    return epochs, stats


def later(epochs):
    """The means of the epochs after the first."""
    counted = epochs[1:] or epochs
    return {key: sum(epoch[key] for epoch in counted) / len(counted) for key in epochs[0]}


def measure_model(model, ways, options, deadline):
    step, limit, rows = make_step(model, options.device), None, []
    run_steps(itertools.islice(Resident(options).epoch(0), 10), step, Clock(options.device))  # tries algorithms
    for name, (path, open_loader) in ways.loaders.items():
        if time.monotonic() > deadline:
            print(f"left out, no time: {model}, {name}", file=sys.stderr)
            continue
        try:
            packing = ways.packing_seconds(path)
            epochs, stats = measure_epochs(open_loader, step, options)
        except Exception:  # time on the device is short: the other ways are still measured
            ways.failures += 1
            print(f"FAILED: {model}, {name}: {traceback.format_exc()}", file=sys.stderr, flush=True)
            continue
        limit = limit or later(epochs)["seconds"] / epochs[0]["steps"]
        for epoch in epochs:
            epoch["wait_seconds"] = epoch["seconds"] - epoch["steps"] * limit
        rows.append(dict(model=model, way=name, packing_seconds=packing, first=epochs[0], later=later(epochs), **stats))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def print_table(rows, batch):
    print("| model | way | packing, s | first epoch, s | later, s | images/s | waiting | idle | CPU s, first | later |\n" + "|---" * 10 + "|")
    for row in rows:
        first, then = row["first"], row["later"]
        packing = "" if row["packing_seconds"] is None else f"{row['packing_seconds']:.1f}"
        print(f"| {row['model']} | {row['way']} | {packing} | {first['seconds']:.2f} | {then['seconds']:.2f} | "
              f"{then['steps'] * batch / then['seconds']:,.0f} | {then['wait_seconds'] / then['seconds']:.1%} | "
              f"{then['idle_seconds'] / then['seconds']:.1%} | {first['cpu_seconds']:.1f} | {then['cpu_seconds']:.1f} |")
    for row in rows:
        if "verdict" in row:
            print(f"\n{row['model']}, {row['way']} (cache {row['cache']}): {row['verdict']}")


def link_files(seeds, folder, count):
    """`count` hard links to copies of the seeds, in class folders."""
    copies = [shutil.copy(seed, f"{folder}/seed{number}.jpg") for number, seed in enumerate(seeds)]
    for label in range(CLASSES):
        os.makedirs(f"{folder}/files/class{label}")
    for number in range(count):
        os.link(copies[number % len(copies)], f"{folder}/files/class{number % CLASSES}/{number:06}.jpg")
    return f"{folder}/files"


def parse_options():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("seeds", metavar="SEEDS")
    arguments.add_argument("--images", type=int, default=25_000)
    arguments.add_argument("--models", default="resnet18,resnet50", help="of torchvision, or tiny (%(default)s)")
    arguments.add_argument("--batch", type=int, default=256)
    arguments.add_argument("--epochs", type=int, default=2, help="of each way; the last columns are the mean of all but the first (2)")
    arguments.add_argument("--steps", type=int, help="steps an epoch at most (all)")
    arguments.add_argument("--workers", type=int, default=CPUS, help="of a DataLoader (the CPUs)")
    arguments.add_argument("--seconds", type=float, default=230, help="begin nothing after so many (230)")
    arguments.add_argument("--folder", help="for files and packs (/dev/shm where 1 MB an image is free, else the temporary folder)")
    arguments.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options = arguments.parse_args()
    if not options.folder:
        has_room = os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > options.images * 1_000_000
        options.folder = "/dev/shm" if has_room else tempfile.gettempdir()
    return options


def main():
    options, deadline = parse_options(), time.monotonic()
    deadline += options.seconds
    torch.backends.cudnn.benchmark = True
    seeds = sorted(glob.glob(f"{options.seeds}/**/*.jpg", recursive=True))
    if not seeds:
        sys.exit(f"{options.seeds}: no .jpg files")
    read, rows = faster_reader(seeds), []
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="chunkhit-training-") as folder:
        ways = Ways(link_files(seeds, folder, options.images), folder, options, read)
        for model in options.models.split(","):
            rows += measure_model(model, ways, options, deadline)
    device = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    versions = {module.__name__: module.__version__ for module in (torch, torchvision, h5py, PIL, chunkhit)}
    header = dict(device=device, cpus=CPUS, python=sys.version.split()[0], **versions, folder=options.folder, date=time.strftime("%Y-%m-%d"))
    print(", ".join(f"{name} {value}" for name, value in header.items()))
    print(CAPTION.format(images=options.images, classes=CLASSES, seeds=len(seeds), bytes=sum(map(os.path.getsize, seeds)) / len(seeds),
                         batch=options.batch, workers=options.workers, stored=STORED_SIDE,
                         reader={read_tensor: "torchvision.io", read_pillow: "Pillow"}[read]) + "\n")
    print_table(rows, options.batch)
    print("\n" + json.dumps(dict(header, images=options.images, batch=options.batch, workers=options.workers, rows=rows)))
    sys.exit(1 if ways.failures else 0)


if __name__ == "__main__":
    main()

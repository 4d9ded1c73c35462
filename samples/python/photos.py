#!/usr/bin/python3
"""Trains a small convolutional network on a folder of photos, fed in four ways, and says how long each epoch took and how much
of it waited for data.

usage: photos.py PHOTOS [--epochs N] [--workers N] [--batch N] [--device cpu|cuda] [--no-training] [--json]
PHOTOS has class folders of images. The ways: decoding in __getitem__; decoding all up front; a chunked HDF5 file
through h5py with a chunk cache that holds it all; and a pack of chunkhit. All give 64 x 64 images, mirrored at random.
Utilisation is how long the same steps take on a batch that is there, beside how long they took.
"""
import argparse
import json
import os
import tempfile
import time

import h5py
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from training_clock import training_times, use_all_cpus

import chunkhit
import chunkhit.torch

TUNED = dict(rdcc_nbytes=1 << 30, rdcc_nslots=11213, rdcc_w0=1)


def read_photo(path):
    """uint8 (64, 64, 3): the shorter side resized to 64, and the middle cut out."""
    with Image.open(path) as photo:
        width, height = (64 * side // min(photo.size) for side in photo.size)
        small = photo.convert("RGB").resize((width, height), Image.BILINEAR)
    left, top = round((width - 64) / 2), round((height - 64) / 2)
    return np.asarray(small.crop((left, top, left + 64, top + 64)))


def as_input(pixels):
    """Mirrored at random, float32 (3, 64, 64) in 0..1."""
    image = torch.from_numpy(np.array(pixels[:, ::-1] if torch.rand(()) < 0.5 else pixels, order="C"))
    return image.permute(2, 0, 1).to(torch.float32).div_(255)


class Files(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        path, label = self.files[number]
        return as_input(self.pixels(number, path)), label

    def pixels(self, number, path):
        return read_photo(path)


class InMemory(Files):
    def __init__(self, files):
        super().__init__(files)
        self.images = [read_photo(path) for path, _ in files]

    def pixels(self, number, path):
        return self.images[number]


class InHdf5(Files):
    def __init__(self, files, path):
        super().__init__(files)
        self.path, self.images = path, None
        with h5py.File(path, "w") as out:
            images = out.create_dataset("images", (len(files), 64, 64, 3), np.uint8, chunks=(min(100, len(files)), 64, 64, 3))
            for first in range(0, len(files), 100):
                images[first : first + 100] = np.stack([read_photo(path) for path, _ in files[first : first + 100]])

    def pixels(self, number, path):
        if self.images is None:
            self.images = h5py.File(self.path, **TUNED)["images"]
        return self.images[number]


def network(classes, device):
    layers = []
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        layers += [torch.nn.Conv2d(inputs, outputs, 3, 2, 1), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, classes)).to(device)


def training_step(classes, device):
    """A function that trains a new model with a batch."""
    model = network(classes, device)
    optimizer = torch.optim.Adam(model.parameters())

    def step(batch):
        images, labels = (part.to(device) for part in batch)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def list_photos(folder):
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return classes, [(os.path.join(folder, name, file), number) for number, name in enumerate(classes)
                     for file in sorted(os.listdir(os.path.join(folder, name)))]


def ways(options, files, folder):
    """(name, a function that prepares it and gives batches that can be iterated once an epoch)."""
    def loaded(dataset):
        return DataLoader(dataset, batch_size=options.batch, shuffle=True, num_workers=options.workers, drop_last=True)

    def packed():
        chunkhit.pack_images(options.photos, f"{folder}/pack", resize=64, crop=64)
        return chunkhit.torch.ImageLoader(
            f"{folder}/pack", batch_size=options.batch, shuffle="window", drop_last=True, dtype="float32",
            augment=dict(flip_horizontal=0.5), normalize=dict(mean=[0, 0, 0], std=[1, 1, 1]), device=options.device)

    yield "decoding in __getitem__", lambda: loaded(Files(files))
    yield "decoding up front", lambda: loaded(InMemory(files))
    yield "h5py, tuned", lambda: loaded(InHdf5(files, f"{folder}/photos.h5"))
    yield "chunkhit", packed


def measure(options, classes, prepare):
    use_all_cpus()
    torch.manual_seed(0)
    begin = time.perf_counter()
    batches = prepare()
    prepared = time.perf_counter() - begin
    step = (lambda batch: None) if options.no_training else training_step(len(classes), options.device)
    resident = (torch.rand(options.batch, 3, 64, 64, device=options.device),
                torch.zeros(options.batch, dtype=torch.long, device=options.device))
    times = training_times([batches] * options.epochs, step, resident, options.device)
    if options.no_training:
        times["utilisation"] = None
    return {"prepare_seconds": prepared, **times, "images_per_second": options.batch / times["step_seconds"]}


def show(table, count):
    print(f"{count:,} photos\n{'':25}{'prepare':>10}{'epoch':>10}{'waited':>10}{'share':>8}{'utilisation':>13}{'images/s':>11}")
    for name, row in table.items():
        used = "" if row["utilisation"] is None else f"{row['utilisation']:.1%}"
        print(f"{name:25}{row['prepare_seconds']:9.2f}s{row['epoch_seconds']:9.3f}s{row['wait_seconds']:9.3f}s"
              f"{row['wait_fraction']:8.1%}{used:>13}{row['images_per_second']:11,.0f}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("photos")
    arguments.add_argument("--epochs", type=int, default=3)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--batch", type=int, default=100)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--no-training", action="store_true")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    classes, files = list_photos(options.photos)
    options.batch = min(options.batch, len(files))
    with tempfile.TemporaryDirectory() as folder:
        table = {name: measure(options, classes, prepare) for name, prepare in ways(options, files, folder)}
    if options.json:
        return print(json.dumps(table))
    show(table, len(files))


if __name__ == "__main__":
    main()

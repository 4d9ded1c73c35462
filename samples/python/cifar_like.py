#!/usr/bin/python3
"""Trains a small convolutional network on Fashion-MNIST to a stated test accuracy, and says how long that took.

usage: cifar_like.py [TRAIN TEST] [--files FOLDER] [--epochs N] [--aim ACCURACY] [--device cpu|cuda] [--json]
TRAIN and TEST are packs; without them those of samples/quickstart.sh, or, where it did not run, packs made from Debian's
package dataset-fashion-mnist. --files are the class folders of TRAIN's files: the same net is then fed some batches by
ImageFolder and a DataLoader, and what it waits for data is shown beside. The exit code is 1 where the accuracy stays below the aim.
"""
import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

import torch

import chunkhit
import chunkhit.torch
from training_clock import time_epoch, use_all_cpus

HERE = os.path.dirname(os.path.abspath(__file__))
QUICKSTART = os.path.normpath(os.path.join(HERE, "../../build/quickstart"))
BATCH = 250
AIM = 0.92
AIM_SECONDS = 180  # on two CPU cores, with packing or without
COMPARED = 60  # batches of each way
WARM = 5  # batches before them: workers start


def network(channels, height, width, classes):
    def block(inputs, outputs, *pooling):
        return [torch.nn.Conv2d(inputs, outputs, 3, padding=1), *pooling, torch.nn.BatchNorm2d(outputs), torch.nn.ReLU()]

    pool = torch.nn.MaxPool2d(2)
    return torch.nn.Sequential(*block(channels, 16, pool), *block(16, 32, pool), *block(32, 64), torch.nn.Flatten(),
                               torch.nn.Dropout(0.25), torch.nn.Linear(64 * (height // 4) * (width // 4), classes))


def pack(folder):
    """The packs of Fashion-MNIST."""
    subprocess.run([sys.executable, os.path.join(HERE, "../export_fashion_mnist.py"), f"{folder}/images"], check=True)
    for split in ("train", "test"):
        chunkhit.pack_images(f"{folder}/images/{split}", f"{folder}/{split}", channels="gray")
    return f"{folder}/train", f"{folder}/test"


def packs(options, folder):
    if options.packs:
        return options.packs
    found = [os.path.join(QUICKSTART, split) for split in ("train", "test")]
    is_ready = all(os.path.exists(os.path.join(path, "manifest.json")) for path in found)
    return found if is_ready else pack(folder)


def step_of(model, optimizer):
    def step(batch):
        images, labels = batch
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def train(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.005, total_steps=epochs * len(loader))
    step = step_of(model, optimizer)
    model.train()
    for epoch in range(epochs):
        for batch in loader.epoch(epoch):
            loss = step(batch)
            schedule.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}", file=sys.stderr)


def file_batches(folder, channels, info, device):
    """Endless batches of the files, decoded by workers, as most programs have it."""
    from torchvision import datasets, transforms

    steps = [transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize(info["mean"], info["std"])]
    files = datasets.ImageFolder(folder, transforms.Compose([transforms.Grayscale(channels), *steps] if channels == 1 else steps))
    loader = torch.utils.data.DataLoader(files, BATCH, shuffle=True, drop_last=len(files) >= BATCH,
                                         num_workers=len(os.sched_getaffinity(0)), persistent_workers=True)
    while True:
        for images, labels in loader:
            yield images.to(device), labels.to(device)


def loader_batches(loader):
    for epoch in itertools.count():
        yield from loader.epoch(epoch)


def compare(model, ways, device):
    """Seconds of a batch of each way, and the share of them that training waited. The model is trained on meanwhile."""
    step = step_of(model, torch.optim.SGD(model.parameters(), 1e-4))
    model.train()
    found = {}
    for name, batches in ways.items():
        for batch in itertools.islice(batches, WARM):
            step(batch)
        seconds, waited, steps = time_epoch(itertools.islice(batches, COMPARED), step, device)
        found[name] = {"batch_seconds": seconds / steps, "wait_fraction": waited / seconds}
    return found


def show(ways):
    print(f"{'fed by':<28}{'ms a batch':>12}{'of it waiting':>16}")
    for name, row in ways.items():
        print(f"{name:<28}{1000 * row['batch_seconds']:>12.1f}{100 * row['wait_fraction']:>14.1f} %")


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in loader)
    return right / loader.size


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("packs", nargs="*")
    arguments.add_argument("--files", metavar="FOLDER")
    arguments.add_argument("--epochs", type=int, default=12)
    arguments.add_argument("--aim", type=float, default=AIM)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    if len(options.packs) not in (0, 2):
        arguments.error("expected two packs, TRAIN and TEST, or none")
    begin = time.perf_counter()
    use_all_cpus()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        train_pack, test_pack = packs(options, folder)
        info = chunkhit.pack_info(train_pack)
        common = dict(batch_size=BATCH, dtype="float32", device=options.device, normalize=dict(
            mean=info["mean"], std=info["std"]))
        loader = chunkhit.torch.ImageLoader(train_pack, shuffle="window", augment=dict(flip_horizontal=0.5), **common)
        # Channels last is twice as fast on a CPU.
        model = network(*loader.batch_shape[1:], len(info["classes"])).to(options.device, memory_format=torch.channels_last)
        train(model, loader, options.epochs)
        found = accuracy(model, chunkhit.torch.ImageLoader(test_pack, **common))
        seconds, stats = time.perf_counter() - begin, loader.stats()
        ways = {}
        if options.files:
            ways = compare(model, {"chunkhit": loader_batches(loader), "ImageFolder and DataLoader": file_batches(
                options.files, loader.batch_shape[1], info, options.device)}, options.device)
    if options.json:
        print(json.dumps({"accuracy": found, "seconds": seconds, "wait_fraction": stats.wait_fraction, "ways": ways}))
    else:
        print(f"test accuracy {found:.2%} (aim {options.aim:.0%}) in {seconds:.0f} s (aim {AIM_SECONDS} s on two cores); "
              f"{stats.verdict()}")
    if ways and not options.json:
        show(ways)
    sys.exit(0 if found >= options.aim else 1)


if __name__ == "__main__":
    main()

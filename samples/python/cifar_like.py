#!/usr/bin/python3
"""Trains a small convolutional network on Fashion-MNIST to a stated test accuracy, and says how long that took.

usage: cifar_like.py [TRAIN TEST] [--epochs N] [--aim ACCURACY] [--device cpu|cuda] [--json]
TRAIN and TEST are packs; without them those of samples/quickstart.sh, or, where it did not run, packs made from Debian's
package dataset-fashion-mnist. The exit code is 1 where the accuracy stays below the aim.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import torch

import chunkhit
import chunkhit.torch

HERE = os.path.dirname(os.path.abspath(__file__))
QUICKSTART = os.path.normpath(os.path.join(HERE, "../../build/quickstart"))
BATCH = 250
AIM = 0.89
AIM_SECONDS = 90  # on two CPU cores, with packing or without


def network(channels, height, width, classes):
    def block(inputs, outputs):
        return [torch.nn.Conv2d(inputs, outputs, 3, padding=1), torch.nn.MaxPool2d(2), torch.nn.BatchNorm2d(outputs),
                torch.nn.ReLU()]

    return torch.nn.Sequential(*block(channels, 16), *block(16, 32), torch.nn.Flatten(), torch.nn.Dropout(0.25),
                               torch.nn.Linear(32 * (height // 4) * (width // 4), classes))


def pack(folder):
    """The packs of Fashion-MNIST."""
    subprocess.run([sys.executable, os.path.join(HERE, "../export_fashion_mnist.py"), f"{folder}/images"], check=True)
    for split in ("train", "test"):
        chunkhit.pack_images(f"{folder}/images/{split}", f"{folder}/{split}", labels=f"{folder}/images/{split}/labels.csv",
                             channels="gray")
    return f"{folder}/train", f"{folder}/test"


def packs(options, folder):
    if options.packs:
        return options.packs
    found = [os.path.join(QUICKSTART, split) for split in ("train", "test")]
    is_ready = all(os.path.exists(os.path.join(path, "manifest.json")) for path in found)
    return found if is_ready else pack(folder)


def train(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.005, total_steps=epochs * len(loader))
    model.train()
    for epoch in range(epochs):
        for images, labels in loader.epoch(epoch):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}", file=sys.stderr)


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in loader)
    return right / loader.size


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("packs", nargs="*")
    arguments.add_argument("--epochs", type=int, default=4)
    arguments.add_argument("--aim", type=float, default=AIM)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    if len(options.packs) not in (0, 2):
        arguments.error("expected two packs, TRAIN and TEST, or none")
    begin = time.perf_counter()
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
    seconds = time.perf_counter() - begin
    if options.json:
        print(json.dumps({"accuracy": found, "seconds": seconds, "wait_fraction": loader.stats().wait_fraction}))
    else:
        print(f"test accuracy {found:.2%} (aim {options.aim:.0%}) in {seconds:.0f} s (aim {AIM_SECONDS} s on two cores); "
              f"{loader.stats().verdict()}")
    sys.exit(0 if found >= options.aim else 1)


if __name__ == "__main__":
    main()

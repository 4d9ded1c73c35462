#!/usr/bin/python3
"""Trains a small U-Net on images with masks to a stated mean IoU, and says how much of the time it waited for data.

usage: segmentation.py [--images N] [--epochs N] [--aim IOU] [--device cpu|cuda] [--json]
It draws the images: plain disks, striped squares and grainy triangles of any color on a texture. The exit code is 1 where
the mean IoU stays below the aim.
"""
import argparse
import json
import os
import sys
import tempfile
import time

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch.nn import functional

import chunkhit
import chunkhit.torch

CLASSES = ["background", "disk", "square", "triangle"]
PALETTE = [0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0]  # of the masks, for people: a pixel's value is its class
IGNORED = 255  # pixels of no class; these images have none
SIZE = 64  # of crops
BATCH = 10
AIM = 0.85
AIM_SECONDS = 90  # on two CPU cores


def corners(kind, center, radius, angle):
    """The polygon of a class; a disk has many corners."""
    count = {"disk": 40, "square": 4, "triangle": 3}[kind]
    angles = angle + 2 * np.pi * np.arange(count) / count
    return [tuple(corner) for corner in center + radius * np.stack([np.cos(angles), np.sin(angles)], 1)]


def draw(random):
    """An image of any size, and its mask."""
    size = tuple(random.integers(96, 161, 2).tolist())
    coarse = Image.fromarray(random.integers(0, 160, (12, 12, 3), dtype=np.uint8))
    image, mask = coarse.resize(size, Image.BICUBIC), Image.new("P", size)
    mask.putpalette(PALETTE)
    for _ in range(3):
        number = int(random.integers(1, len(CLASSES)))
        polygon = corners(CLASSES[number], random.uniform(0, size), random.uniform(18, 32), random.uniform(0, 2 * np.pi))
        color = random.integers(60, 256, 3)
        color[random.integers(3)] = 255
        ImageDraw.Draw(image).polygon(polygon, tuple(color.tolist()))
        ImageDraw.Draw(mask).polygon(polygon, number)
    noise, classes = random.normal(0, 8, (size[1], size[0], 3)), np.asarray(mask)
    noise[(classes == 2) & (np.arange(size[1])[:, None] % 12 < 6)] -= 80
    noise[classes == 3] *= 8
    return Image.fromarray((np.asarray(image) + noise).clip(0, 255).astype(np.uint8)), mask


def pack(folder, count):
    """The packs train and val. A mask has the path of its image, below another folder."""
    random = np.random.default_rng(1)
    held_out = count // 6
    for split, images in (("val", held_out), ("train", count - held_out)):
        os.makedirs(f"{folder}/images/{split}")
        os.makedirs(f"{folder}/masks/{split}")
        for number in range(images):
            image, mask = draw(random)
            image.save(f"{folder}/images/{split}/{number}.jpg", quality=92)
            mask.save(f"{folder}/masks/{split}/{number}.png")
    chunkhit.pack_images(f"{folder}/images", f"{folder}/packs", split_folders=["train", "val"], pair=f"{folder}/masks",
                         sizes="own", progress=False)
    return f"{folder}/packs/train", f"{folder}/packs/val"


def block(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Conv2d(inputs, outputs, 3, padding=1), torch.nn.BatchNorm2d(outputs), torch.nn.ReLU(),
                               torch.nn.Conv2d(outputs, outputs, 3, padding=1), torch.nn.BatchNorm2d(outputs), torch.nn.ReLU())


class UNet(torch.nn.Module):
    """Ronneberger and others, 2015, with few channels."""

    def __init__(self, classes, widths=(8, 16, 32, 64)):
        super().__init__()
        self.down = torch.nn.ModuleList(map(block, (3, *widths), widths))
        self.up = torch.nn.ModuleList(block(low + high, high) for low, high in zip(widths[:0:-1], widths[-2::-1]))
        self.scores = torch.nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        skipped = []
        for stage in self.down:
            x = stage(functional.max_pool2d(x, 2) if skipped else x)
            skipped.append(x)
        for stage, high in zip(self.up, skipped[-2::-1]):
            x = stage(torch.cat([functional.interpolate(x, scale_factor=2), high], 1))
        return self.scores(x)


def train(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=epochs * len(loader))
    model.train()
    for epoch in range(epochs):
        for batch in loader.epoch(epoch):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(batch.images), batch.masks.long(), ignore_index=IGNORED)
            loss.backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}", file=sys.stderr)


def intersection_over_union(model, loader):
    """Of each class, over the pixels of all images."""
    count = len(CLASSES)
    confusion = torch.zeros(count * count, dtype=torch.long)
    model.eval()
    with torch.no_grad():
        for batch in loader:
            masks = batch.masks.long()
            pairs = count * masks + model(batch.images).argmax(1)
            confusion += torch.bincount(pairs[masks != IGNORED], minlength=count * count).cpu()
    confusion = confusion.view(count, count)
    right = confusion.diagonal()
    return (right / (confusion.sum(0) + confusion.sum(1) - right)).tolist()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--images", type=int, default=360, help="a sixth of them for validation")
    arguments.add_argument("--epochs", type=int, default=12)
    arguments.add_argument("--aim", type=float, default=AIM)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    begin = time.perf_counter()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        train_pack, val_pack = pack(folder, options.images)
        common = dict(batch_size=BATCH, dtype="float32", device=options.device)
        loader = chunkhit.torch.ImageLoader(train_pack, shuffle="window", drop_last=True, augment=dict(
            flip_horizontal=0.5, resized_crop=dict(height=SIZE, width=SIZE, area=(0.4, 1))), **common)
        val = chunkhit.torch.ImageLoader(val_pack, augment=dict(resize_short=SIZE, crop_height=SIZE, crop_width=SIZE), **common)
        model = UNet(len(CLASSES)).to(options.device, memory_format=torch.channels_last)
        train(model, loader, options.epochs)
        found = intersection_over_union(model, val)
    seconds, mean = time.perf_counter() - begin, sum(found) / len(found)
    if options.json:
        print(json.dumps({"mean_iou": mean, "iou": dict(zip(CLASSES, found)), "seconds": seconds,
                          "wait_fraction": loader.stats().wait_fraction}))
    else:
        print(", ".join(f"{name} {value:.3f}" for name, value in zip(CLASSES, found)))
        print(f"mean IoU of {val.size} validation images {mean:.3f} (aim {options.aim}) in {seconds:.0f} s "
              f"(aim {AIM_SECONDS} s on two cores); {loader.stats().verdict()}")
    sys.exit(0 if mean >= options.aim else 1)


if __name__ == "__main__":
    main()

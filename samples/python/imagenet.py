#!/usr/bin/python3
"""Trains ResNet-18 as on ImageNet: random resized crops and flips at reading, colour jitter, MixUp and CutMix on the
device, from batches that stay uint8 until then; then tests it on the middles of resized images.

usage: imagenet.py PHOTOS [--epochs N] [--steps N] [--batch N] [--size N] [--device cpu|cuda]
PHOTOS has class folders of images of any sizes. They are packed once, JPEG without loss; a tenth is held out.
"""
import argparse
import itertools
import os
import tempfile

import numpy as np
import torch
import torchvision

import chunkhit
import chunkhit.torch

try:
    from torchvision.transforms import v2 as transforms
except ImportError:  # before torchvision 0.15; both jitter uint8 batches
    from torchvision import transforms

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
JITTERED = 16  # images that share one draw of the jitter


def as_input(images):
    """uint8 (n, 3, height, width) to normalized float32, on the device of the images."""
    mean, std = (torch.tensor(values, device=images.device).view(3, 1, 1) * 255 for values in (MEAN, STD))
    return (images.float() - mean) / std


def mixup(images, labels, random, strength=0.2):
    """Each image mixed with another one of the batch, and both labels with the same shares."""
    share = random.beta(strength, strength)
    other = torch.from_numpy(random.permutation(len(images))).to(images.device)
    return share * images + (1 - share) * images[other], share * labels + (1 - share) * labels[other]


def cutmix(images, labels, random, strength=1.0):
    """A box of each image taken from another one of the batch, and its share of that one's label."""
    sides = np.array(images.shape[-2:])
    height, width = (sides * random.beta(strength, strength) ** 0.5).astype(int)
    top, left = random.integers(0, sides - (height, width) + 1)
    other = torch.from_numpy(random.permutation(len(images))).to(images.device)
    box = (..., slice(top, top + height), slice(left, left + width))
    images[box] = images[other][box]
    share = float(height * width / sides.prod())
    return images, (1 - share) * labels + share * labels[other]


def augmentation(classes, seed=0):
    """The loader's transform of uint8 batches and class ids: normalized float32, and shares of the classes."""
    jitter = transforms.ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4)

    def transform(images, labels, *, batch):
        random = np.random.default_rng([seed, batch.epoch, batch.index])
        images = torch.cat([jitter(part) for part in images.split(JITTERED)])
        mix = mixup if random.random() < 0.5 else cutmix
        return mix(as_input(images), torch.nn.functional.one_hot(labels, classes).float(), random)

    return transform


def train(model, loader, options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
    model.train()
    for epoch in range(options.epochs):
        for inputs, targets in itertools.islice(loader.epoch(epoch), options.steps):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(as_input(images)).argmax(1) == labels).sum().item() for images, labels in loader)
    return right / loader.size


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("photos", metavar="PHOTOS")
    arguments.add_argument("--epochs", type=int, default=1)
    arguments.add_argument("--steps", type=int, help="steps an epoch at most (all)")
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--size", type=int, default=224, help="of the crops, pixels (224)")
    arguments.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = arguments.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        pack = os.path.join(folder, "pack")
        chunkhit.pack_images(options.photos, pack, sizes="own", split={"train": 0.9, "val": 0.1})
        common = dict(batch_size=options.batch, layout="nchw", device=options.device)
        classes = len(chunkhit.pack_info(f"{pack}/train")["classes"])
        loader = chunkhit.torch.ImageLoader(
            f"{pack}/train", shuffle="window", drop_last=True, transform=augmentation(classes), augment=dict(
                flip_horizontal=0.5, resized_crop=dict(height=options.size, width=options.size)), **common)
        test = chunkhit.torch.ImageLoader(f"{pack}/val", augment=dict(
            resize_short=options.size * 8 // 7, crop_height=options.size, crop_width=options.size), **common)  # 256 for 224
        model = torchvision.models.resnet18(num_classes=classes).to(options.device)
        train(model, loader, options)
        print(f"{accuracy(model, test):.1%} of {test.size} images right; training: {loader.stats().verdict()}")


if __name__ == "__main__":
    main()

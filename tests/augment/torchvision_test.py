#!/usr/bin/env python3
"""Written samples equal torchvision's ToTensor, Normalize, CenterCrop and hflip, bit for bit. Usage: torchvision_test.py
AUGMENT_PROBE

torchvision's arithmetic in numpy; where torch is installed, its own kernels as well.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

try:
    import torch
except ImportError:
    torch = None

SAMPLES = 3
LAYOUTS = (0, 1)  # nhwc, nchw
CONSTANTS = {  # of ImageNet, CIFAR-10, MNIST and others
    1: [((0.1307,), (0.3081,)), ((0.2860,), (0.3530,)), ((0.5,), (0.5,))],
    3: [((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
        ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))],  # fmt: skip
    4: [((0.1, 0.2, 0.3, 0.4), (1 / 3, 0.7, 1e-3, 12345.0))],
}


def run_probe(probe, stored, stored_layout, layout, kind, augment, constants):
    """`stored`: (N, H, W, C). Returns the written samples as (N, H, W, C)."""
    height, width, channels = stored.shape[1:]
    crop = augment["crop"] or (0, 0)
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "in"), os.path.join(folder, "out")
        (stored.transpose(0, 3, 1, 2) if stored_layout else stored).tofile(source)
        words = [height, width, channels, stored_layout, layout, kind, augment["flip"], *crop, int(augment["random"]),
                 augment["padding"], source, target, *(repr(value) for values in constants for value in values)]  # fmt: skip
        subprocess.run([probe, *map(str, words)], check=True)
        out = np.fromfile(target, np.float32 if kind == "f32" else np.uint8)
    height, width = augment["crop"] or (height, width)
    if layout:
        return out.reshape(len(stored), channels, height, width).transpose(0, 2, 3, 1)
    return out.reshape(len(stored), height, width, channels)


def cut(stored, augment):
    """CenterCrop of the padded images, then hflip."""
    padding = augment["padding"]
    stored = np.pad(stored, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    if augment["crop"]:
        height, width = augment["crop"]
        top, left = (int(round((have - want) / 2.0)) for have, want in zip(stored.shape[1:3], augment["crop"]))
        stored = stored[:, top : top + height, left : left + width]
    return stored[:, :, ::-1] if augment["flip"] else stored


def normalize(pixels, constants):
    mean, std = (np.array(values, np.float32) for values in constants)
    return (pixels.astype(np.float32) / np.float32(255) - mean) / std


def normalize_by_torch(pixels, constants):
    tensor = torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy()).to(torch.float32).div(255)
    mean, std = (torch.tensor(values, dtype=torch.float32).view(-1, 1, 1) for values in constants)
    return tensor.sub_(mean).div_(std).numpy().transpose(0, 2, 3, 1)


def same_bits(a, b):
    return a.shape == b.shape and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def is_random_crop(got, stored, augment):
    """Whether every sample is some crop of its padded image, and not all of them the same."""
    padding, (height, width) = augment["padding"], augment["crop"]
    padded = np.pad(stored, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    places = set()
    for index in range(len(stored)):
        found = [(top, left) for top in range(padded.shape[1] - height + 1) for left in range(padded.shape[2] - width + 1)
                 if same_bits(got[index], padded[index, top : top + height, left : left + width])]  # fmt: skip
        if len(found) != 1:
            return False
        places.update(found)
    return len(places) > 1


def cases(height, width):
    plain = {"flip": 0, "crop": None, "random": False, "padding": 0}
    yield plain
    yield {**plain, "flip": 1}
    yield {**plain, "flip": 1, "crop": (max(1, height - 3), max(1, width - 2))}
    yield {**plain, "crop": (height + 1, width + 2), "padding": 2}


def main():
    probe, random = sys.argv[1], np.random.default_rng(1)
    checked, problems = 0, []
    for height, width in [(1, 1), (5, 3), (16, 16), (33, 47), (64, 64)]:
        for channels, all_constants in CONSTANTS.items():
            stored = random.integers(0, 256, (SAMPLES, height, width, channels), np.uint8)
            stored.flat[: min(256, stored.size)] = np.arange(256)[: stored.size]
            for number, augment in enumerate(cases(height, width)):
                constants = all_constants[number % len(all_constants)]
                for stored_layout, layout in [(a, b) for a in LAYOUTS for b in LAYOUTS]:
                    want = cut(stored, augment)
                    wanted = [("u8", want), ("f32", normalize(want, constants))]
                    if torch:
                        wanted.append(("f32", normalize_by_torch(want, constants)))
                    for kind, expected in wanted:
                        got = run_probe(probe, stored, stored_layout, layout, kind, augment, constants)
                        checked += 1
                        if not same_bits(got, expected):
                            problems.append(f"{stored.shape} {stored_layout} to {layout} {kind} {augment} {constants}")
    stored = random.integers(0, 256, (8, 20, 21, 3), np.uint8)
    augment = {"flip": 0, "crop": (18, 19), "random": True, "padding": 2}
    if not is_random_crop(run_probe(probe, stored, 0, 0, "u8", augment, ((), ())), stored, augment):
        problems.append("random crops are not crops of the padded images")
    print("\n".join(problems[:10]))
    print(f"{checked} results {'beside torch ' + torch.__version__ if torch else 'without torch'}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Random resized crops and evaluation crops equal Pillow's pixels bit for bit, in the boxes of schemas/order.md, which
are distributed as torchvision's. Usage: resized_crop_test.py AUGMENT_PROBE

torchvision's resized_crop, Resize and CenterCrop call Pillow's crop and resize on PIL images; where torchvision is
installed, its own functions and boxes are compared, too.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from described_order import is_flipped, resized_crop  # noqa: E402

try:
    import torch
    import torchvision
    from torchvision.transforms import functional
except ImportError:
    torchvision = None

FILTERS = ["bilinear", "bicubic", "lanczos", "box", "hamming", "nearest"]
AREA, ASPECT = (0.08, 1.0), (3 / 4, 4 / 3)
SEED = 11


def run_probe(probe, stored, out_shape, flip, stored_layout=0, layout=0, crop=(0, 0), random=0, **named):
    """`stored`: (n, height, width, channels). Returns the written samples as (n, height, width, channels)."""
    count, height, width, channels = stored.shape
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "in"), os.path.join(folder, "out")
        (stored.transpose(0, 3, 1, 2) if stored_layout else stored).tofile(source)
        words = [height, width, channels, stored_layout, layout, "u8", flip, *crop, random, 0, source, target]
        subprocess.run([probe, *map(str, words), *(f"{name}={value!r}" for name, value in named.items())], check=True)
        out = np.fromfile(target, np.uint8)
    if layout:
        return out.reshape(count, channels, *out_shape).transpose(0, 2, 3, 1)
    return out.reshape(count, *out_shape, channels)


def images_of(random, count, height, width, channels):
    """Smooth parts, edges and noise."""
    small = random.integers(0, 256, (count, (height + 7) // 8, (width + 7) // 8, channels), np.uint8)
    stored = small.repeat(8, axis=1).repeat(8, axis=2)[:, :height, :width].copy()
    stored[:, ::2] = np.clip(stored[:, ::2].astype(np.int16) + random.integers(-20, 20, stored[:, ::2].shape), 0, 255)
    return stored


def resize(pixels, size, resample):
    """The last of 2 or 4 channels is alpha, which weighs the others; else each channel by itself. size: (height, width)."""
    if pixels.shape[2] in (2, 4):
        image = Image.fromarray(np.ascontiguousarray(pixels), "LA" if pixels.shape[2] == 2 else "RGBA")
        return np.asarray(image.resize(size[::-1], getattr(Image, resample.upper())))
    planes = [np.asarray(Image.fromarray(np.ascontiguousarray(pixels[:, :, channel])).resize(size[::-1], getattr(Image, resample.upper())))
              for channel in range(pixels.shape[2])]  # fmt: skip
    return np.stack(planes, axis=2)


def expected_crop(pixels, box, size, resample, flipped):
    top, left, height, width = box
    out = resize(pixels[top : top + height, left : left + width], size, resample)
    return out[:, ::-1] if flipped else out


def check_crops(probe, random, problems):
    """1,000 and more random resized crops of all filters, shapes, layouts."""
    checked = 0
    cases = [(375, 500, 3, (224, 224), 0), (500, 375, 3, (224, 160), 0), (64, 64, 3, (64, 64), 0), (33, 47, 1, (96, 80), 0),
             (640, 90, 3, (128, 128), 0), (40, 60, 4, (32, 32), 0), (40, 60, 2, (33, 31), 0), (50, 40, 7, (24, 24), 0),
             (1, 300, 3, (20, 20), 0), (300, 1, 3, (7, 20), 0), (3, 3, 3, (224, 224), 0)]  # fmt: skip
    cases += [(120, 110, 3, (64, 64), resample) for resample in range(1, 6)]
    for number, (height, width, channels, size, resample) in enumerate(cases):
        stored = images_of(random, 80 if channels == 3 else 20, height, width, channels)
        named = {"height": size[0], "width": size[1], "seed": SEED, "epoch": number, "pass": number % 2, "resample": resample}
        area, aspect = (AREA, ASPECT) if number % 3 else ((0.5, 1.0), (0.2, 9.0))
        named.update(area0=area[0], area1=area[1], aspect0=aspect[0], aspect1=aspect[1])
        layouts = (number % 2, number // 2 % 2) if channels != 3 else (0, 0)
        got = run_probe(probe, stored, size, 0.5, *layouts, **named)
        for index in range(len(stored)):
            box = resized_crop(height, width, area, aspect, SEED, number, index, number % 2)
            flipped = is_flipped(0.5, SEED, number, index, number % 2)
            want = expected_crop(stored[index], box, size, FILTERS[resample], flipped)
            checked += 1
            if not np.array_equal(got[index], want):
                problems.append(f"crop {stored.shape} {size} filter {resample} sample {index} box {box} flipped {flipped}")
            if torchvision and channels == 3:
                image = functional.resized_crop(Image.fromarray(stored[index]), *box, size, functional.InterpolationMode(FILTERS[resample]))
                theirs = np.asarray(functional.hflip(image) if flipped else image)
                if not np.array_equal(got[index], theirs):
                    problems.append(f"torchvision's crop {stored.shape} {size} sample {index} box {box}")
    return checked


def check_padded_evaluation(probe, random, problems):
    """Crops larger than the resized image have zeros around it, as torchvision's CenterCrop."""
    for height, width, short, crop, channels, layout in [(20, 31, 16, (50, 50), 3, 0), (20, 31, 16, (20, 21), 3, 1),
                                                         (31, 20, 16, (17, 30), 4, 1), (16, 40, 16, (12, 60), 4, 0)]:  # fmt: skip
        stored = images_of(random, 4, height, width, channels)
        size = (int(short * height / width), short) if width <= height else (short, int(short * width / height))
        got = run_probe(probe, stored, crop, 0.5, layout, crop=crop, resize_short=short, seed=SEED)
        for index in range(len(stored)):
            full = resize(stored[index], size, "bilinear") if size != (height, width) else stored[index]
            missing = [max(crop[axis] - size[axis], 0) for axis in (0, 1)]
            full = np.pad(full, [(each // 2, (each + 1) // 2) for each in missing] + [(0, 0)])
            top, left = (int(round((side - each) / 2.0)) for side, each in zip(full.shape, crop))
            want = full[top : top + crop[0], left : left + crop[1]]
            if not np.array_equal(got[index], want[:, ::-1] if is_flipped(0.5, SEED, 0, index) else want):
                problems.append(f"padded centre {stored.shape} {short} {crop} sample {index}")
    return 16


def check_evaluation(probe, random, problems):
    """Resize of the short side and CenterCrop; also at a random position, and without a crop."""
    checked = 0
    for height, width, short, crop in [(375, 500, 256, 224), (500, 333, 256, 224), (90, 91, 64, 64), (20, 31, 64, 50), (64, 64, 64, 64)]:
        stored = images_of(random, 4, height, width, 3)
        size = (int(short * height / width), short) if width <= height else (short, int(short * width / height))
        got = run_probe(probe, stored, (crop, crop), 0.5, crop=(crop, crop), resize_short=short, seed=SEED)
        moved = run_probe(probe, stored, (crop, crop), 0, crop=(crop, crop), random=1, resize_short=short, seed=SEED)
        whole = run_probe(probe, stored, size, 0, 0, 1, resize_short=short, seed=SEED)
        for index in range(len(stored)):
            full = resize(stored[index], size, "bilinear")
            top, left = (int(round((side - crop) / 2.0)) for side in size)
            want = full[top : top + crop, left : left + crop]
            want = want[:, ::-1] if is_flipped(0.5, SEED, 0, index) else want
            found = [0 for y in range(size[0] - crop + 1) for x in range(size[1] - crop + 1)
                     if np.array_equal(moved[index], full[y : y + crop, x : x + crop])]  # fmt: skip
            checked += 3
            if not np.array_equal(got[index], want):
                problems.append(f"centre {stored.shape} {short} {crop} sample {index}")
            if not found:
                problems.append(f"random position {stored.shape} {short} {crop} sample {index}")
            if not np.array_equal(whole[index], full):
                problems.append(f"short side {stored.shape} {short} sample {index}")
    return checked


def distance(a, b):
    """Kolmogorov and Smirnov's: the largest distance of two samples' distributions, in units of the critical one at
    p = 0.001."""
    values = np.sort(np.concatenate([a, b]))
    gap = np.abs(np.searchsorted(np.sort(a), values, "right") / len(a) - np.searchsorted(np.sort(b), values, "right") / len(b)).max()
    return gap / (1.95 * np.sqrt((len(a) + len(b)) / (len(a) * len(b))))


def check_distribution(problems):
    if not torchvision:
        return
    torch.manual_seed(5)
    for height, width in [(375, 500), (150, 900)]:
        image = Image.new("L", (width, height))
        theirs = np.array([torchvision.transforms.RandomResizedCrop.get_params(image, AREA, ASPECT) for _ in range(10000)])
        ours = np.array([resized_crop(height, width, AREA, ASPECT, SEED, 0, sample) for sample in range(10000)])
        for name, of in [("top", lambda box: box[:, 0]), ("left", lambda box: box[:, 1]), ("height", lambda box: box[:, 2]),
                         ("width", lambda box: box[:, 3]), ("area", lambda box: box[:, 2] * box[:, 3]),
                         ("aspect", lambda box: box[:, 3] / box[:, 2])]:  # fmt: skip
            if distance(of(ours), of(theirs)) > 1:
                problems.append(f"boxes of {height} x {width}: {name} is not distributed as torchvision's")


def main():
    probe, random, problems = sys.argv[1], np.random.default_rng(3), []
    checked = check_crops(probe, random, problems) + check_evaluation(probe, random, problems)
    checked += check_padded_evaluation(probe, random, problems)
    check_distribution(problems)
    print("\n".join(problems[:10]))
    beside = "beside torchvision " + torchvision.__version__ if torchvision else "without torchvision"
    print(f"{checked} results {beside}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

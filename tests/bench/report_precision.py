#!/usr/bin/python3
"""Measures what pack-report finds: wrong labels are injected into packs, and the first findings are compared with them.

usage: PYTHONPATH=build/release/lib/python tests/bench/report_precision.py [WORK_FOLDER]
Also measures how long 120,000 images of 32 x 32 pixels take, without and with near-duplicates.
Fashion-MNIST (Debian's dataset-fashion-mnist): the last 10,000 images of 10 classes. Photographs (Debian's wallpapers): 2,000 crops of 40
photographs, each a class. 2 % of the labels are wrong, drawn by seed; the same packs without wrong labels show false accusations.
"""
import glob
import gzip
import os
import sys
import tempfile
import time

import numpy as np
from PIL import Image

import chunkhit
from chunkhit.report._duplicate_sections import duplicate_section, near_section
from chunkhit.report._image_findings import find_suspects
from chunkhit.report._image_scan import LookOptions, scan_images
from chunkhit.report._label_errors import MIN_SCORE

WRONG = 0.02
FASHION = "/usr/share/datasets/fashion-mnist/train-{}-idx{}-ubyte.gz"
PHOTOGRAPHS, CROPS, MANY = 40, 50, 120_000


def fashion():
    with gzip.open(FASHION.format("images", 3)) as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28, 1)
    with gzip.open(FASHION.format("labels", 1)) as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return images[50_000:], labels[50_000:].astype(np.int64)  # on which nothing was chosen


def photographs():
    """Crops of 60 to 100 % of the sides of a photograph, flipped or not."""
    random = np.random.default_rng(8)
    files = sorted(path for folder in ("wallpapers", "backgrounds") for path in glob.glob(f"/usr/share/{folder}/**/*.jpg", recursive=True)
                   if os.path.getsize(path) > 200_000)
    images, labels = [], []
    for label, file in enumerate(files[::max(1, len(files) // PHOTOGRAPHS)][:PHOTOGRAPHS]):
        photo = Image.open(file).convert("RGB")
        photo.thumbnail((640, 640))
        for _ in range(CROPS):
            width, height = (int(side * random.uniform(0.6, 1)) for side in photo.size)
            x, y = (int(random.integers(0, side - own + 1)) for side, own in zip(photo.size, (width, height)))
            crop = photo.resize((160, 120), Image.BICUBIC, box=(x, y, x + width, y + height))
            images.append(np.asarray(crop)[:, ::random.choice((-1, 1))])
            labels.append(label)
    return np.stack(images), np.array(labels, np.int64)


def with_wrong(labels, share):
    """Labels of which some are replaced by another class, and how many are."""
    random = np.random.default_rng(7)
    classes = int(labels.max()) + 1
    wrong = random.choice(len(labels), int(share * len(labels)), replace=False)
    changed = labels.copy()
    changed[wrong] = (changed[wrong] + random.integers(1, classes, len(wrong))) % classes
    return changed, len(wrong)


def time_near(folder):
    """CPU time of equal images and of near-duplicates among smooth random images."""
    random = np.random.default_rng(0)
    with chunkhit.ImageWriter(f"{folder}/many", classes=["one"]) as writer:
        for _ in range(MANY):
            coarse = Image.fromarray(random.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize((32, 32), Image.BICUBIC)
            writer.add(np.clip(np.asarray(coarse) + random.integers(-8, 9, (32, 32, 3)), 0, 255).astype(np.uint8), 0)
    for is_near in (False, True):
        begin = time.process_time()
        scans = [scan_images("many", f"{folder}/many", LookOptions(near_duplicates=is_near))]
        duplicate_section(scans)
        if is_near:
            near_section(scans)
        print(f"{MANY:,} images {'with' if is_near else 'without'} near-duplicates: {time.process_time() - begin:.1f} s of CPU time")


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        time_near(folder)
        for name, make in (("fashion-mnist", fashion), ("photographs", photographs)):
            if make is fashion and not os.path.exists(FASHION.format("images", 3)):
                print(f"fashion-mnist: not measured, as {FASHION.format('images', 3)} is not there: apt-get install dataset-fashion-mnist")
                continue
            images, labels = make()
            for share in (0, WRONG):
                changed, wrong = with_wrong(labels, share)
                with chunkhit.ImageWriter(f"{folder}/{name}-{share}", classes=[str(one) for one in range(int(labels.max()) + 1)]) as writer:
                    for number, (image, label) in enumerate(zip(images, changed)):
                        writer.add(image, int(label), key=str(number))
                scan = scan_images(name, f"{folder}/{name}-{share}", LookOptions(0, duplicates="none", label_images=20_000))
                begin = time.process_time()
                found = find_suspects([scan], 0.0)
                seconds = time.process_time() - begin
                keys = scan.dataset.keys([int(found.sample_of[suspect.at]) for suspect in found.found])
                hits = [changed[int(key)] != labels[int(key)] for key in keys]
                accused = sum(suspect.score > MIN_SCORE for suspect in found.found)
                print(f"{name}: {len(labels):,} images, {wrong} wrong labels: {sum(hits[:20])} of the first 20, {sum(hits[:200])} of the "
                      f"first 200; the page accuses {accused}, of which {sum(hits[:accused])} are; neighbors agree with "
                      f"{100 * found.agreement:.1f} %, {seconds:.1f} s of CPU time")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Draws README's picture of a report: the card of packs of photographs into which faults were put.

usage: PYTHONPATH=build/release/lib/python tests/bench/report_shot.py REPORT.png   (Debian's wallpapers: see README.md here)
Of 40 classes, each the crops of a photograph, validation has 12 images of training; 20 labels are wrong; 3 images are black.
"""
import os
import sys
import tempfile

import numpy as np
from PIL import Image

import chunkhit
from chunkhit.report import write_report
from report_precision import photographs

LEAKED, WRONG, BLACK, VALIDATION = 12, 20, 3, 300


def main():
    random = np.random.default_rng(1)
    images, labels = photographs()
    images = images.copy()
    chosen = random.permutation(len(images))
    images[chosen[-BLACK:]] //= 16
    wrong = chosen[-BLACK - WRONG:-BLACK]
    labels[wrong] = (labels[wrong] + 1) % (int(labels.max()) + 1)
    packs = {"train": chosen[VALIDATION:], "val": np.concatenate([chosen[:VALIDATION], chosen[VALIDATION:VALIDATION + LEAKED]])}
    with tempfile.TemporaryDirectory() as folder:
        for name, numbers in packs.items():
            with chunkhit.ImageWriter(f"{folder}/photos/{name}", classes=[f"photo {one}" for one in range(int(labels.max()) + 1)]) as writer:
                for number in numbers:
                    writer.add(images[number], int(labels[number]), key=f"{number}.png")
        write_report([f"{folder}/photos/{name}" for name in packs], f"{folder}/report.html", card=f"{folder}/card.png")
        Image.open(f"{folder}/card.png").convert("RGB").quantize(256).save(sys.argv[1], optimize=True)
    print(sys.argv[1], os.path.getsize(sys.argv[1]), "bytes")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Draws what README.md shows of images of shapes: the warnings and contact sheet of a report in Chromium.

usage: PYTHONPATH=build/release/lib/python tests/bench/report_shot.py REPORT.png
"""
import os
import sys
import tempfile

import numpy as np
from PIL import Image, ImageDraw

import chunkhit
from chunkhit.report import write_report

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import browser  # noqa: E402

WIDTH, HEIGHT = 860, 950
# What is left out of the screenshot: other sections, and all but a row of each class.
CROP = ("<style>section:not(#sheet), nav, .subtitle, .mosaic, #checks, #sheet .block:first-child, .block:nth-child(n + 5), "
        ".cell:nth-child(n + 4):not(:nth-child(n + 7)), .cell:nth-child(n + 10) { display: none; }</style>")
CLASSES = {"circle": 220, "square": 160, "triangle": 90, "star": 14}
NOISE = 12


def draw(label, random):
    """A shape on a ground, both of random colors, with noise."""
    width, height = (int(side) for side in random.integers(60, 160, 2))
    ground, ink = (tuple(int(level) for level in random.integers(20, 236, 3)) for _ in range(2))
    image = Image.new("RGB", (width, height), ground)
    radius = min(width, height) * random.uniform(0.2, 0.42)
    x, y = width / 2, height / 2
    turn, corners = random.uniform(0, 2 * np.pi), {"square": 4, "triangle": 3, "star": 10}.get(label, 60)
    angles = turn + np.arange(corners) * 2 * np.pi / corners
    reach = np.where(np.arange(corners) % 2, 0.45, 1) * radius if label == "star" else np.full(corners, radius)
    ImageDraw.Draw(image).polygon([(x + r * np.cos(a), y + r * np.sin(a)) for r, a in zip(reach, angles)], ink)
    noisy = np.asarray(image).astype(np.int16) + random.integers(-NOISE, NOISE + 1, (height, width, 3))
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def make_shapes(root):
    """Class folders; of each class an image is repeated, and one file is damaged."""
    random = np.random.default_rng(1)
    for label, count in CLASSES.items():
        os.makedirs(f"{root}/{label}")
        for number in range(count):
            image = draw(label, random)
            image.save(f"{root}/{label}/{number:03}.png")
            if number == 3:
                image.save(f"{root}/{label}/copy.png")
    with open(f"{root}/circle/damaged.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")


def save(image, path):
    image.convert("RGB").quantize(160, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path, os.path.getsize(path), "bytes")


def main():
    with tempfile.TemporaryDirectory() as folder:
        make_shapes(f"{folder}/shapes")
        options = dict(resize=64, crop=64, split={"train": 0.7, "val": 0.3}, progress=False)
        chunkhit.pack_images(f"{folder}/shapes", f"{folder}/packs", **options)
        write_report(f"{folder}/packs", f"{folder}/report.html")
        with open(f"{folder}/report.html", "r+", encoding="utf-8") as page:
            text = page.read().replace(folder, "/data").replace("</head>", f"{CROP}</head>")
            page.seek(0)
            page.truncate()
            page.write(text)
        browser.chromium(f"{folder}/report.html", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={folder}/shot.png")
        save(Image.open(f"{folder}/shot.png"), sys.argv[1])


if __name__ == "__main__":
    main()

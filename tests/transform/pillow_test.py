#!/usr/bin/python3
"""Compares transforms bit for bit with Pillow 9.4 and torchvision's arithmetic: pillow_test.py PROBE

PROBE is tests/support/transform_probe. Exits with 1 and names the first differences.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image, ImageOps

FILTERS = ["bilinear", "bicubic", "lanczos", "box", "hamming", "nearest"]
RESIZES = ["none", "exact", "short_side", "long_side", "fit"]
MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
KEEP = 3  # Channels::keep
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Down, up, odd, one pixel, extreme aspect, an axis unchanged (53 x 37 is a source's size).
SIZES = [
    (1, 1), (1, 2), (2, 1), (3, 3), (5, 7), (7, 5), (8, 8), (13, 1), (1, 17), (16, 16), (17, 19), (19, 17), (24, 32),
    (31, 33), (32, 24), (33, 31), (37, 53), (40, 3), (3, 40), (48, 48), (53, 37), (53, 12), (20, 37), (53, 90),
    (99, 37), (64, 64), (65, 63), (63, 65), (72, 10), (10, 72), (96, 128), (128, 96), (100, 100), (111, 77),
    (127, 129), (160, 20), (20, 160), (200, 2), (2, 200), (211, 199), (256, 1), (1, 256), (301, 150), (341, 256),
]  # fmt: skip
RNG = np.random.default_rng(20240229)


def photo(width, height, channels):
    """Smooth structure at many scales with some noise, as photographs have."""
    y, x = np.mgrid[0:height, 0:width].astype(float)
    planes = []
    for channel in range(channels):
        plane = 128 + 50 * np.sin(x / 23 + channel) + 40 * np.cos(y / 11 - x / 37) + 60 * ((x + 2 * y) % 41 > 30)
        planes.append(plane + RNG.normal(0, 9, (height, width)))
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def noise(width, height, channels):
    pixels = RNG.integers(0, 256, (height, width, channels), dtype=np.uint8)
    if channels in (2, 4):  # much of both ends, where alpha's arithmetic has its corners
        alpha = RNG.choice([0, 1, 2, 127, 128, 254, 255], (height, width))
        pixels[..., -1] = np.where(RNG.random((height, width)) < 0.6, alpha, pixels[..., -1])
    return pixels


def checks(width, height, channels):
    """Black and white only: the filters with negative lobes leave 0..255 here."""
    return RNG.choice(np.array([0, 255], np.uint8), (height, width, channels))


def image_of(pixels):
    channels = pixels.shape[2]
    return Image.fromarray(pixels[..., 0] if channels == 1 else pixels, MODES[channels])


def pixels_of(image):
    pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def center_crop(image, size):
    """torchvision 0.14's functional.center_crop on a PIL image."""
    crop_width, crop_height = size
    width, height = image.size
    if crop_width > width or crop_height > height:
        left, right = ((crop_width - width) // 2, (crop_width - width + 1) // 2) if crop_width > width else (0, 0)
        top, bottom = ((crop_height - height) // 2, (crop_height - height + 1) // 2) if crop_height > height else (0, 0)
        pixels = np.pad(pixels_of(image), ((top, bottom), (left, right), (0, 0)))
        image = image_of(pixels)
        width, height = image.size
    top = int(round((height - crop_height) / 2.0))
    left = int(round((width - crop_width) / 2.0))
    return image.crop((left, top, left + crop_width, top + crop_height))


def short_side(size, short):
    """torchvision 0.14's functional._compute_resized_output_size for one number."""
    width, height = size
    if width <= height:
        return short, int(short * height / width)
    return int(short * width / height), short


def long_side(size, length):
    width, height = size
    if width >= height:
        return length, max(1, int(length * height / width))
    return max(1, int(length * width / height)), length


def shrink_of(size, resized):
    for shrink in (8, 4, 2):
        area = size[0] * size[1] / (resized[0] * resized[1])
        enlarges = any(out * shrink > side >= out for side, out in zip(size, resized))
        if area**0.5 / shrink >= 2 and not enlarges:
            return shrink
    return 1


class Cases:
    def __init__(self):
        self.requests = []
        self.expected = []

    def add(self, pixels, filter_name, resize="none", size=(0, 0), crop=(0, 0), color=(0, 0, 0), planar=False,
            orientation=1, shrink=1, full_size=None):  # fmt: skip
        """One case; `pixels` are as stored, after shrinking an image of `full_size` by `shrink`."""
        stored_width, stored_height = full_size or (pixels.shape[1], pixels.shape[0])
        channels = pixels.shape[2]
        image = image_of(pixels)
        if orientation in TURNS:
            image = image.transpose(TURNS[orientation])
        upright = full_size or image.size
        method = Image.Resampling[filter_name.upper()]
        box = None if full_size is None else (0, 0, full_size[0] / shrink, full_size[1] / shrink)
        if resize == "exact":
            image = image.resize(size, method, box)
        elif resize == "short_side":
            image = image.resize(short_side(upright, size[0]), method, box)
        elif resize == "long_side":
            image = image.resize(long_side(upright, size[0]), method, box)
        elif resize == "fit":
            image = ImageOps.pad(image, size, method, color="#%02x%02x%02x" % color)
        if crop != (0, 0):
            image = center_crop(image, crop)
        want = pixels_of(image)
        if planar:
            want = want.transpose(2, 0, 1)
        header = [RESIZES.index(resize), *size, FILTERS.index(filter_name), *crop, *color, KEEP, int(shrink > 1)]
        header += [int(planar), stored_width, stored_height, channels, int(shrink > 1), orientation, pixels.size]
        self.requests.append(np.array(header, "<u4").tobytes() + pixels.tobytes())
        name = f"{filter_name} {stored_width}x{stored_height}x{channels} {resize} {size} crop {crop} color {color}"
        name += f" planar {planar} orientation {orientation} shrink {shrink}"
        self.expected.append((name, shrink, image.size, channels, np.ascontiguousarray(want)))


def add_sizes(cases):
    sources = [photo(53, 37, 3), noise(53, 37, 3), checks(120, 91, 3), photo(200, 150, 1), noise(33, 64, 1)]
    sources += [noise(53, 37, 4), noise(90, 41, 2), noise(1, 1, 3), noise(1, 50, 3), noise(50, 1, 4), noise(1, 1, 2)]
    for filter_name in FILTERS:
        for size in SIZES:
            for pixels in sources:
                cases.add(pixels, filter_name, "exact", size)
        cases.add(photo(512, 384, 3), filter_name, "exact", (96, 128))
        cases.add(noise(512, 384, 3), filter_name, "short_side", (256, 0))
        cases.add(checks(2000, 3, 3), filter_name, "exact", (7, 5))
        cases.add(checks(3, 2000, 1), filter_name, "exact", (5, 7))


def add_crops(cases):
    sources = [photo(131, 97, 3), noise(64, 65, 3), noise(41, 90, 1), noise(70, 50, 4), noise(55, 66, 2)]
    crops = [(1, 1), (16, 16), (17, 31), (40, 40), (41, 90), (64, 64), (65, 64), (80, 33), (33, 80), (140, 141)]
    for filter_name in FILTERS:
        for pixels in sources:
            for crop in crops:
                for planar in (False, True):
                    cases.add(pixels, filter_name, crop=crop, planar=planar)
                    cases.add(pixels, filter_name, "exact", (48, 80), crop, planar=planar)
                cases.add(pixels, filter_name, "short_side", (37, 0), crop)
                cases.add(pixels, filter_name, "long_side", (75, 0), crop)
        cases.add(photo(512, 384, 3), filter_name, "exact", (96, 128), (64, 64))
        cases.add(photo(512, 384, 3), filter_name, "short_side", (256, 0), (224, 224))


def add_geometry(cases):
    for width in range(1, 30):
        for height in (1, 2, 3, 7, 10, 16, 29):
            pixels = noise(width, height, 3)
            cases.add(pixels, "nearest", "short_side", (1 + (width * 7 + height) % 23, 0))
            cases.add(pixels, "bilinear", "long_side", (1 + (width * 5 + height) % 31, 0), crop=(width, 9))
            cases.add(pixels, "bilinear", crop=(1 + width * 3 % 17, 1 + height * 5 % 19))
    for width in range(200, 1400, 7):
        cases.add(noise(width, 3, 1), "nearest", "short_side", (5, 0), crop=(9, 9))


def can_fit(size, frame):
    """Pillow refuses to contain an image whose smaller side would be rounded to nothing."""
    width, height = size
    ratio, frame_ratio = width / height, frame[0] / frame[1]
    return round(height / width * frame[0] if ratio > frame_ratio else width / height * frame[1]) > 0


def add_fits(cases):
    colors = [(0, 0, 0), (255, 0, 17), (124, 116, 104)]
    # Twice as long as wide: half pixels in odd frames, which Python rounds to even.
    sizes = [(53, 37), (37, 53), (64, 64), (90, 13), (13, 90), (5, 4), (1, 9), (64, 32), (32, 64)]
    for index, (width, height) in enumerate(sizes):
        for channels in (1, 2, 3, 4):
            pixels = noise(width, height, channels)
            for frame in [(32, 32), (33, 20), (20, 33), (100, 99), (64, 64), (7, 50), (101, 41)]:
                if not can_fit((width, height), frame):
                    continue
                filter_name = FILTERS[(index + frame[0]) % 6]
                color = colors[(index + channels) % 3]
                cases.add(pixels, filter_name, "fit", frame, color=color, planar=channels == 3)
                cases.add(pixels, filter_name, "fit", frame, (24, 24), color)
                cases.add(pixels, filter_name, "fit", frame, (110, 21), color, planar=True)


def add_turns(cases):
    for orientation in range(1, 9):
        for channels in (1, 2, 3, 4):
            for width, height in [(1, 1), (5, 3), (70, 131), (150, 65)]:
                pixels = noise(width, height, channels)
                cases.add(pixels, "bilinear", orientation=orientation)
                cases.add(pixels, "bicubic", "exact", (21, 40), (16, 10), orientation=orientation)
                cases.add(pixels, "nearest", crop=(30, 35), orientation=orientation)


def add_shrunk(cases):
    """A decoder that shrinks leaves a box with fractional edges, as Pillow's thumbnail has it."""
    for width, height in [(512, 384), (511, 383), (1001, 333), (97, 640), (130, 131), (255, 1023)]:
        for resize, size in [("exact", (16, 20)), ("exact", (31, 12)), ("exact", (60, 40)), ("short_side", (23, 0)),
                             ("long_side", (61, 0))]:  # fmt: skip
            resized = {"exact": size, "short_side": short_side((width, height), size[0]),
                       "long_side": long_side((width, height), size[0])}[resize]  # fmt: skip
            shrink = shrink_of((width, height), resized)
            if shrink == 1:
                continue
            for filter_name in FILTERS:
                for channels in (1, 3):
                    pixels = noise(-(-width // shrink), -(-height // shrink), channels)
                    cases.add(pixels, filter_name, resize, size, shrink=shrink, full_size=(width, height))
                    cases.add(pixels, filter_name, resize, size, (14, 11), shrink=shrink, full_size=(width, height))


def describe(got, want):
    differs = np.argwhere(got != want)
    at = tuple(differs[0])
    return f"{len(differs)} of {want.size} bytes differ, the first at {at}: {got[at]}, Pillow has {want[at]}"


def compare(results, expected):
    problems, at = [], 0
    for name, shrink, size, channels, want in expected:
        head = np.frombuffer(results, "<u4", 11, at)
        at += 44
        got = np.frombuffer(results, np.uint8, int(head[10]), at)
        at += int(head[10])
        shape = (int(head[8]), int(head[7]), int(head[9]))
        if (int(head[0]), *shape) != (shrink, *size, channels):
            problems.append(f"{name}: shrink {head[0]}, width, height, channels {shape}; Pillow has {size}")
        elif not np.array_equal(got, want.ravel()):
            problems.append(f"{name}: {describe(got.reshape(want.shape), want)}")
    if at != len(results):
        problems.append(f"the probe wrote {len(results)} bytes, expected {at}")
    return problems


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cases = Cases()
    for add in (add_sizes, add_crops, add_geometry, add_fits, add_turns, add_shrunk):
        add(cases)
    with tempfile.TemporaryDirectory() as folder:
        requests, results = os.path.join(folder, "requests"), os.path.join(folder, "results")
        with open(requests, "wb") as file:
            file.writelines(cases.requests)
        subprocess.run([sys.argv[1], requests, results], check=True)
        with open(results, "rb") as file:
            problems = compare(file.read(), cases.expected)
    for error in problems[:10]:
        print(error)
    print(f"{len(cases.expected)} cases, {len(problems)} differ from Pillow {Image.__version__}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

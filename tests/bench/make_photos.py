#!/usr/bin/python3
"""Makes a photo corpus from Debian's wallpaper packages (plasma-workspace-wallpapers, mate-backgrounds, …).

usage: make_photos.py OUT [COUNT WIDTH HEIGHT]   (2527 512 384)
       make_photos.py OUT [COUNT] varied         sizes and bits a pixel as on the web: most 500 x 375 in either
                                                 orientation, others of 200 to 1200 pixels; about 4 bits a pixel; some
                                                 4:4:4, gray, progressive
       make_photos.py OUT [COUNT] large          as varied, the longer side evenly (by its logarithm) from 500 to 2,000 pixels
       make_photos.py OUT [COUNT] progressive    512 x 384, progressive, every other one 4:4:4
Writes OUT/images/class<c>/<n>.jpg and OUT/datapath_with_label.csv (file,label): random crops of real photographs at random
scales and qualities.
"""
import csv
import glob
import os
import random
import sys

from PIL import Image, ImageFile

Image.MAX_IMAGE_PIXELS = None
ImageFile.MAXBLOCK = 1 << 24  # else some progressive files find no room
QUALITIES = (75, 82, 87, 90, 92, 94, 95, 96, 97, 98, 99)


def sizes_of(arguments):
    """The count, and a function that draws a size."""
    if arguments[-1:] and arguments[-1] in KINDS:
        return int(arguments[0]) if len(arguments) > 1 else 2000, KINDS[arguments[-1]]
    count, width, height = map(int, arguments) if arguments else (2527, 512, 384)
    return count, lambda rng: (width, height)


def varied_size(rng):
    if rng.random() < 0.7:
        size = (500, rng.choice((375, 375, 333)))
    else:
        long_side = round(200 * 6 ** (rng.random() ** 1.3))
        size = (long_side, max(120, int(long_side * rng.uniform(0.55, 1))))
    return size if rng.random() < 0.65 else size[::-1]


def large_size(rng):
    long_side = round(500 * 4 ** rng.random())
    size = (long_side, int(long_side * rng.uniform(0.6, 0.8)))
    return size if rng.random() < 0.65 else size[::-1]


def progressive_size(rng):
    return (512, 384)


KINDS = {"varied": varied_size, "large": large_size, "progressive": progressive_size}


def save(tile, path, rng, size_of):
    if size_of not in (varied_size, large_size):
        options = dict(progressive=True, subsampling=rng.choice((0, 2))) if size_of is progressive_size else {}
        tile.save(path, quality=rng.choice((75, 85, 90, 95)), **options)
        return
    if rng.random() < 0.01:
        tile = tile.convert("L")
    wanted = tile.width * tile.height * min(10, max(1.2, rng.lognormvariate(1.84, 0.42))) / 8
    options = dict(subsampling=0 if rng.random() < 0.25 else 2, progressive=rng.random() < 0.02)
    for quality in QUALITIES:  # the first one that gives as many bytes
        tile.save(path, quality=quality, **options)
        if os.path.getsize(path) >= wanted:
            break


def main():
    out, arguments = sys.argv[1], sys.argv[2:]
    count, size_of = sizes_of(arguments)
    rng, rows = random.Random(1), []
    sources = sorted(path for folder in ("wallpapers", "backgrounds") for kind in ("jpg", "png")
                     for path in glob.glob(f"/usr/share/{folder}/**/*.{kind}", recursive=True) if os.path.getsize(path) > 200_000)
    if not sources:
        sys.exit("no photographs: apt-get install plasma-workspace-wallpapers mate-backgrounds")
    for number, source in enumerate(sources):
        photo = Image.open(source).convert("RGB")
        for _ in range((count * (number + 1)) // len(sources) - (count * number) // len(sources)):
            width, height = size_of(rng)
            most = min(photo.width / width, photo.height / height)
            scale = rng.uniform(1, min(3, most)) if most > 1 else most
            crop_width, crop_height = int(width * scale), int(height * scale)
            x, y = rng.randint(0, photo.width - crop_width), rng.randint(0, photo.height - crop_height)
            tile = photo.resize((width, height), Image.BICUBIC, box=(x, y, x + crop_width, y + crop_height))
            label = rng.randrange(6)
            name = f"images/class{label}/{len(rows):06d}.jpg"
            os.makedirs(os.path.dirname(f"{out}/{name}"), exist_ok=True)
            save(tile, f"{out}/{name}", rng, size_of)
            rows.append((name, label))
    rng.shuffle(rows)
    with open(f"{out}/datapath_with_label.csv", "w", newline="") as file:
        csv.writer(file).writerows([("file", "label")] + rows)
    print(len(rows), "photos from", len(sources), "sources")


if __name__ == "__main__":
    main()

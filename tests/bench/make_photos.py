#!/usr/bin/python3
"""Makes a photo corpus from Debian's wallpaper packages (plasma-workspace-wallpapers, mate-backgrounds, …).

usage: make_photos.py OUT [COUNT WIDTH HEIGHT]   (2527 512 384)
Writes OUT/images/class<c>/<n>.jpg and OUT/datapath_with_label.csv (file,label): random crops of real photographs at random
scales and qualities.
"""
import csv
import glob
import os
import random
import sys

from PIL import Image

Image.MAX_IMAGE_PIXELS = None
out = sys.argv[1]
count, width, height = map(int, sys.argv[2:5]) if len(sys.argv) > 2 else (2527, 512, 384)
rng = random.Random(1)
sources = sorted(path for folder in ("wallpapers", "backgrounds") for kind in ("jpg", "png")
                 for path in glob.glob(f"/usr/share/{folder}/**/*.{kind}", recursive=True) if os.path.getsize(path) > 200_000)
if not sources:
    sys.exit("no photographs: apt-get install plasma-workspace-wallpapers mate-backgrounds")
rows = []
for number, source in enumerate(sources):
    photo = Image.open(source).convert("RGB")
    for _ in range((count * (number + 1)) // len(sources) - (count * number) // len(sources)):
        most = min(photo.width / width, photo.height / height)
        scale = rng.uniform(1, min(3, most)) if most > 1 else most
        crop_width, crop_height = int(width * scale), int(height * scale)
        x, y = rng.randint(0, photo.width - crop_width), rng.randint(0, photo.height - crop_height)
        tile = photo.resize((width, height), Image.BICUBIC, box=(x, y, x + crop_width, y + crop_height))
        label = rng.randrange(6)
        name = f"images/class{label}/{len(rows):06d}.jpg"
        os.makedirs(os.path.dirname(f"{out}/{name}"), exist_ok=True)
        tile.save(f"{out}/{name}", quality=rng.choice((75, 85, 90, 95)))
        rows.append((name, label))
rng.shuffle(rows)
with open(f"{out}/datapath_with_label.csv", "w", newline="") as file:
    csv.writer(file).writerows([("file", "label")] + rows)
print(len(rows), "photos from", len(sources), "sources")

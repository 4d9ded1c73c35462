#!/usr/bin/python3
"""Draws the sheet that README.md shows: what a dry run makes of 16 photographs among Debian's wallpapers.

usage: PYTHONPATH=build/release/lib/python tests/bench/sheet_shot.py SHEET.png    (plasma-workspace-wallpapers, mate-backgrounds)
"""
import os
import sys
import tempfile

from PIL import Image

import chunkhit

SHEET_WIDTH = 590  # half of what pack-images draws
LONG_SIDE = 640
MATE = "/usr/share/backgrounds/mate/nature/{}.jpg"
PLASMA = "/usr/share/wallpapers/{}/contents/images/2560x1600.jpg"
PHOTOS = {
    "plants": [MATE.format(name) for name in ("FreshFlower", "Garden", "YellowFlower", "GreenMeadow")],
    "animals": [MATE.format(name) for name in ("LadyBird", "TwoWings")],
    "water": [MATE.format(name) for name in ("RainDrops", "Storm")] + [PLASMA.format(name) for name in ("BytheWater", "EveningGlow")],
    "land": [MATE.format(name) for name in ("Dune",)] + [PLASMA.format(name) for name in ("ColdRipple", "Path", "FallenLeaf", "ColorfulCups", "OneStandsOut")],
}


def write_photos(root):
    """Class folders of the photographs, of the size of a camera's previews."""
    for label, paths in PHOTOS.items():
        os.makedirs(f"{root}/{label}")
        for number, path in enumerate(paths):
            with Image.open(path) as image:
                image.draft("RGB", (LONG_SIDE, LONG_SIDE))
                image = image.convert("RGB")
                image.thumbnail((LONG_SIDE, LONG_SIDE))
                image.save(f"{root}/{label}/{number}.jpg", quality=92)


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_photos(f"{folder}/photos")
        chunkhit.pack_images(f"{folder}/photos", f"{folder}/small", resize=64, crop=64, dry_run=True, sheet=f"{folder}/sheet.png",
                             progress=False)
        sheet = Image.open(f"{folder}/sheet.png").convert("RGB")
        small = sheet.resize((SHEET_WIDTH, round(sheet.height * SHEET_WIDTH / sheet.width)), Image.LANCZOS)
        small.quantize(256, dither=Image.Dither.FLOYDSTEINBERG).save(sys.argv[1], optimize=True)
        print(sys.argv[1], os.path.getsize(sys.argv[1]), "bytes")


if __name__ == "__main__":
    main()

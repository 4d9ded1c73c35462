"""A pack of images whose classes a linear model can tell apart, for the tests of the training programs."""
import os
import subprocess

import numpy as np
from PIL import Image


def pack_bright_rows(tools, folder, name, classes, seed, side=8):
    """Packs 60 images a class into FOLDER/NAME; a class is bright in a row of its own, under noise."""
    draw = np.random.default_rng(seed)
    for row, label in enumerate(classes):
        os.makedirs(f"{folder}/{name}-images/{label}")
        for index in range(60):
            image = draw.integers(0, 120, (side, side), dtype=np.uint8)
            image[row] += 100
            Image.fromarray(image).save(f"{folder}/{name}-images/{label}/{index}.png")
    subprocess.run([f"{tools}/pack-images", f"{folder}/{name}-images", "--chunk-samples", "16", "--progress", "none",
                    "--output", f"{folder}/{name}"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return f"{folder}/{name}"

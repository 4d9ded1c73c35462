#!/usr/bin/env python3
"""The sample of ImageNet's recipe must train a step and test on what was held out. Usage: imagenet_test.py SAMPLES_FOLDER"""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from PIL import Image

SAMPLE = os.path.join(sys.argv[1], "python/imagenet.py")


class ImageNet(unittest.TestCase):
    def test_trains_two_steps_on_photos_of_all_sizes(self):
        draw = np.random.default_rng(1)
        with tempfile.TemporaryDirectory() as folder:
            for number in range(40):
                place = f"{folder}/{'ab'[number % 2]}"
                os.makedirs(place, exist_ok=True)
                height, width = draw.integers(40, 160, 2)
                Image.fromarray(draw.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(f"{place}/{number}.jpg")
            done = subprocess.run([sys.executable, SAMPLE, folder, "--steps", "2", "--batch", "8", "--size", "64", "--device",
                                   "cpu"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^epoch 0: loss \d+\.\d+$")
        self.assertRegex(lines[1], r"^\d+\.\d% of 4 images right; training: ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

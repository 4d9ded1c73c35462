#!/usr/bin/env python3
"""The sample of photos must time all its ways, with training and without.

Usage: photos_test.py SAMPLES_FOLDER"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from PIL import Image

SAMPLE = os.path.join(sys.argv[1], "python/photos.py")
WAYS = ["decoding in __getitem__", "decoding up front", "h5py, tuned", "chunkhit"]


class Photos(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        draw = np.random.default_rng(1)
        for number in range(24):
            place = f"{cls.folder.name}/{'ab'[number % 2]}"
            os.makedirs(place, exist_ok=True)
            Image.fromarray(draw.integers(0, 256, (128, 96, 3), dtype=np.uint8)).save(f"{place}/{number}.jpg")

    def run_sample(self, *arguments):
        done = subprocess.run([sys.executable, SAMPLE, self.folder.name, "--batch", "5", "--epochs", "2", "--workers", "0",
                               *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_every_way_trains_on_all_full_batches(self):
        table = json.loads(self.run_sample("--json"))
        self.assertEqual(list(table), WAYS)
        for row in table.values():
            self.assertAlmostEqual(row["epoch_seconds"] / row["step_seconds"], 4)  # 24 photos, 5 a batch
            self.assertTrue(0 < row["wait_seconds"] < row["epoch_seconds"] and row["utilisation"] > 0)

    def test_without_training_there_is_a_line_for_each_way_but_no_utilisation(self):
        lines = self.run_sample("--no-training").splitlines()
        self.assertEqual(lines[0], "24 photos")
        self.assertEqual([line[:25].strip() for line in lines[2:]], WAYS)
        self.assertEqual({line.count("%") for line in lines[2:]}, {1})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

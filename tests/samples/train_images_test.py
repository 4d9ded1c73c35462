#!/usr/bin/env python3
"""The training program of samples/ must learn what can be learnt, and refuse packs that do not belong together.

Usage: train_images_test.py TRAIN_IMAGES TOOLS_FOLDER"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from bright_rows import pack_bright_rows

TRAIN_IMAGES, TOOLS = sys.argv[1:3]


def pack(folder, name, classes, seed, side=8):
    return pack_bright_rows(TOOLS, folder, name, classes, seed, side)


def train(*packs):
    return subprocess.run([TRAIN_IMAGES, *packs], capture_output=True, text=True)


class TrainImages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.train_pack = pack(self.folder, "train", ["ant", "bee", "cat"], seed=1)

    def test_it_names_images_that_it_has_not_seen_and_tells_who_waited(self):
        done = train(self.train_pack, pack(self.folder, "test", ["ant", "bee", "cat"], seed=2))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(float(re.search(r"test accuracy ([0-9.]+) %", done.stdout).group(1)), 95)
        self.assertIn("training waited", done.stdout)

    def test_it_refuses_packs_of_other_classes(self):
        done = train(self.train_pack, pack(self.folder, "test", ["ant", "bee", "dog"], seed=2))
        self.assertEqual(done.returncode, 2)
        self.assertIn("same classes", done.stderr)

    def test_it_refuses_packs_of_another_shape(self):
        done = train(self.train_pack, pack(self.folder, "test", ["ant", "bee", "cat"], seed=2, side=9))
        self.assertEqual(done.returncode, 2)
        self.assertIn("one shape", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

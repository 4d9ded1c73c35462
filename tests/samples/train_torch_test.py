#!/usr/bin/env python3
"""The training program of libtorch must learn what can be learnt, and refuse what has no classes to learn.

Usage: train_torch_test.py TRAIN_TORCH TOOLS_FOLDER"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from bright_rows import pack_bright_rows

TRAIN_TORCH, TOOLS = sys.argv[1:3]


def train(*arguments):
    return subprocess.run([TRAIN_TORCH, *arguments], capture_output=True, text=True)


class TrainTorch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write_hdf5(self, **datasets):
        with h5py.File(f"{self.folder}/external.h5", "w") as file:
            for name, values in datasets.items():
                file[name] = values
        return f"{self.folder}/external.h5"

    def test_it_learns_to_tell_classes_apart_and_tells_who_waited(self):
        done = train(pack_bright_rows(TOOLS, self.folder, "train", ["ant", "bee", "cat"], seed=1), "40")
        self.assertEqual(done.returncode, 0, done.stderr)
        losses = [float(loss) for loss in re.findall(r"^epoch \d+: loss ([0-9.e-]+)$", done.stdout, re.MULTILINE)]
        self.assertEqual(len(losses), 40)
        self.assertLess(losses[-1], 0.1)  # ln 3 = 1.1 is a guess among three classes
        self.assertIn("80 batches, 7200 samples", done.stdout)
        self.assertIn("training waited", done.stdout)

    def test_it_refuses_samples_without_labels(self):
        done = train(self.write_hdf5(images=np.zeros((50, 8, 8), np.uint8)))
        self.assertEqual(done.returncode, 2)
        self.assertIn("needs the classes 0, 1, 2", done.stderr)

    def test_it_refuses_classes_that_it_cannot_number(self):
        done = train(self.write_hdf5(images=np.zeros((50, 8, 8), np.uint8), labels=np.arange(50) % 3 + 7))
        self.assertEqual(done.returncode, 2)
        self.assertIn("needs the classes 0, 1, 2", done.stderr)

    def test_it_names_a_pack_that_is_not_there(self):
        done = train(f"{self.folder}/absent")
        self.assertEqual(done.returncode, 65)
        self.assertIn(f"{self.folder}/absent", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""The training of samples/python to a stated accuracy must reach it where it can be reached, and fail where it cannot.

Usage: cifar_like_test.py SAMPLES_FOLDER TOOLS_FOLDER"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from bright_rows import pack_bright_rows

SAMPLE = os.path.join(sys.argv[1], "python/cifar_like.py")
TOOLS = sys.argv[2]


def train(*arguments):
    return subprocess.run([sys.executable, SAMPLE, *arguments], capture_output=True, text=True)


class CifarLike(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.packs = [pack_bright_rows(TOOLS, folder.name, name, ["ant", "bee", "cat"], seed)
                      for seed, name in enumerate(("train", "test"))]

    def test_it_reaches_an_accuracy_that_can_be_reached(self):
        done = train(*self.packs, "--epochs", "30", "--aim", "0.95", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreaterEqual(json.loads(done.stdout)["accuracy"], 0.95)

    def test_it_fails_where_the_accuracy_stays_below_the_aim(self):
        done = train(*self.packs, "--epochs", "1", "--aim", "1.01")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"^test accuracy [0-9.]+% \(aim 101%\) in \d+ s")

    def test_it_compares_what_it_waits_with_a_loader_of_files(self):
        done = train(*self.packs, "--epochs", "1", "--aim", "0", "--files", f"{self.folder}/train-images")
        self.assertEqual(done.returncode, 0, done.stderr)
        heads, *rows = done.stdout.splitlines()[1:]
        self.assertEqual(heads.split(), "fed by ms a batch of it waiting".split())
        self.assertEqual([row[:28].strip() for row in rows], ["chunkhit", "ImageFolder and DataLoader"])
        for row in rows:
            self.assertRegex(row[28:], r"^ +\d+\.\d +\d+\.\d %$")

    def test_it_asks_for_both_packs(self):
        done = train(self.packs[0])
        self.assertEqual(done.returncode, 2)
        self.assertIn("TRAIN and TEST", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

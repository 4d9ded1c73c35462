#!/usr/bin/env python3
"""The sample of segmentation must learn in a few epochs, reach its aim in the deep run, and fail below an aim.

Usage: segmentation_test.py SAMPLES_FOLDER"""
import json
import os
import subprocess
import sys
import unittest

SAMPLE = os.path.join(sys.argv[1], "python/segmentation.py")
DEEP = "CHUNKHIT_TEST_DEEP" in os.environ


def train(*arguments):
    return subprocess.run([sys.executable, SAMPLE, *arguments], capture_output=True, text=True)


class Segmentation(unittest.TestCase):
    def test_it_reaches_a_mean_iou_that_can_be_reached(self):
        done = train("--json", *([] if DEEP else ["--epochs", "4", "--aim", "0.5"]))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreaterEqual(json.loads(done.stdout)["mean_iou"], 0.85 if DEEP else 0.5)

    def test_it_fails_where_the_mean_iou_stays_below_the_aim(self):
        done = train("--images", "60", "--epochs", "1", "--aim", "1.01")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"mean IoU of 10 validation images [0-9.]+ \(aim 1.01\) in \d+ s")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

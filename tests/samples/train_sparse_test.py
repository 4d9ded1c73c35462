#!/usr/bin/env python3
"""Debian's own lists of dependencies, a matrix that nobody made for this, must pack and read back whole, and teach the sample's
autoencoder more than what is popular with everybody.

Usage: train_sparse_test.py TRAIN_SPARSE TOOLS_FOLDER EXPORT_DEPENDENCIES"""
import csv
import os
import re
import subprocess
import sys
import tempfile
import unittest

TRAIN_SPARSE, TOOLS, EXPORT = sys.argv[1:4]
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
sys.argv[1:] = [TOOLS, ""]  # what packing.py expects
from sparse_packs import Pack  # noqa: E402


def pack(table, output, *flags):
    subprocess.run([f"{TOOLS}/pack-sparse", table, "--user", "package", "--item", "dependency", "--output", output,
                    "--progress", "none", *flags], check=True, stdout=subprocess.DEVNULL)


class TrainSparse(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.table = f"{cls.folder.name}/dependencies.csv"
        export = subprocess.run([sys.executable, EXPORT, cls.table], capture_output=True, text=True)
        if "run apt-get update first" in export.stderr:
            raise unittest.SkipTest(export.stderr)
        if export.returncode != 0:
            raise RuntimeError(export.stderr)
        with open(cls.table, newline="") as file:
            cls.pairs = [(row["package"], row["dependency"]) for row in csv.DictReader(file)]

    def test_the_whole_matrix_reads_back(self):
        output = f"{self.folder.name}/all"
        pack(self.table, output, "--part-bytes", "200000")
        found = Pack(output)
        self.assertGreater(len(found.shards), 1)
        self.assertEqual(len(self.pairs), len(set(self.pairs)))
        self.assertEqual(found.x, {pair: 1.0 for pair in self.pairs})
        subprocess.run([f"{TOOLS}/pack-verify", output], check=True, stdout=subprocess.DEVNULL)

    def test_the_autoencoder_knows_more_than_what_is_popular(self):
        output = f"{self.folder.name}/split"
        pack(self.table, output, "--split-by", "users", "--validation", "0.02", "--test", "0.05", "--min-user", "8")
        done = subprocess.run([TRAIN_SPARSE, f"{output}/train", f"{output}/test", "16", "2"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = re.search(r"held-out users: ([0-9.]+), of the most popular items: ([0-9.]+)$", done.stdout, re.MULTILINE)
        autoencoder, popular = map(float, found.groups())
        self.assertGreater(popular, 0.05)
        self.assertGreater(autoencoder, 1.3 * popular)

    def test_packs_without_held_out_ratings_are_refused(self):
        output = f"{self.folder.name}/plain"
        pack(self.table, output)
        done = subprocess.run([TRAIN_SPARSE, output, output], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected held-out ratings", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

"""Reads files that hold a matrix by ratings_probe, the first argument of the script, for tests to compare."""
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np
import scipy.sparse as sp

PROBE = sys.argv[1]
warnings.simplefilter("ignore")


class Ratings:
    """What the probe printed: triplets in their order, and the lines of facts by their first word."""

    def __init__(self, text):
        self.triplets, self.facts = [], {}
        for line in text.splitlines():
            if line.startswith("#"):
                word, _, rest = line[1:].partition(" ")
                self.facts.setdefault(word, []).append(rest)
            else:
                user, item, value = line.split("\t")
                self.triplets.append((user, item, np.float32(value)))
        self.shape = tuple(int(side) for side in self.facts["shape"][-1].split())

    def matrix(self, first=0, users=None, items=None):
        """The triplets as scipy sums them; ids count from `first`, or are looked up in lists of names."""
        rows = [users.index(u) if users else int(u) - first for u, _, _ in self.triplets]
        columns = [items.index(i) if items else int(i) - first for _, i, _ in self.triplets]
        return sp.coo_matrix(([v for _, _, v in self.triplets], (rows, columns)), shape=self.shape).tocsr()


def probe(kind, *paths, transpose="automatic", layer="-"):
    """The ratings, or the reason why there are none."""
    done = subprocess.run([PROBE, kind, transpose, layer, *paths], capture_output=True, text=True,
                          errors="replace")
    if done.returncode != 0:
        assert done.returncode in (2, 65), (done.returncode, done.stderr)
        return done.stderr
    return Ratings(done.stdout)


def random_matrix(rows, columns, density=0.1, dtype=np.float32, seed=1):
    made = sp.random(rows, columns, density, "csr", random_state=seed, dtype=np.float64)
    made.data = np.ceil(made.data * 100)
    return made.astype(dtype)


class FormatsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def assert_equal(self, ratings, expected, **ids):
        self.assertIsInstance(ratings, Ratings, ratings)
        found = ratings.matrix(**ids)
        self.assertEqual(found.shape, expected.shape)
        self.assertEqual((found != sp.csr_matrix(expected, dtype=np.float32)).nnz, 0)

    def assert_refused(self, ratings, *words):
        self.assertIsInstance(ratings, str)
        for word in words:
            self.assertIn(word, ratings)

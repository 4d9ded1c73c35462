#!/usr/bin/env python3
"""The recommender of samples/python must train the same model in its three ways, and learn what there is to learn.

Usage: recommender_test.py SAMPLES_FOLDER"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

SAMPLE = os.path.join(sys.argv[1], "python/recommender.py")
KINDS, ITEMS_OF_KIND, USERS = 5, 40, 400


def write_ratings(path):
    """Each user likes 12 of the 40 items of one of five kinds: all items are as popular, the kind is to be learnt."""
    draw = np.random.default_rng(1)
    with open(path, "w") as out:
        out.write("userId,movieId,rating\n")
        for user in range(USERS):
            liked = draw.permutation(ITEMS_OF_KIND)[:12] + user % KINDS * ITEMS_OF_KIND
            out.writelines(f"{user},{item},{4 + user % 2}\n" for item in liked)


def recommend(*arguments):
    return subprocess.run([sys.executable, SAMPLE, *arguments], capture_output=True, text=True)


class Recommender(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.ratings = f"{cls.folder.name}/ratings.csv"
        write_ratings(cls.ratings)
        cls.options = [cls.ratings, "--epochs", "40", "--batch", "50", "--hidden", "32", "--latent", "8", "--held-out", "50"]

    def test_the_three_ways_train_one_model_which_knows_more_than_what_is_popular(self):
        done = recommend(*self.options, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        table = json.loads(done.stdout)
        self.assertEqual([table[name] for name in ("users", "items", "ratings", "steps")], [300, 200, 3600, 6])
        self.assertEqual(list(table["ways"]), ["toarray", "toarray in a thread", "chunkhit"])
        scipys, *others = table["ways"].values()
        for way in others:
            self.assertAlmostEqual(way["loss"], scipys["loss"], delta=1e-3 * scipys["loss"])
            self.assertAlmostEqual(way["recall_at_20"], scipys["recall_at_20"], delta=0.02)
        self.assertGreater(scipys["recall_at_20"], 2 * table["recall_of_popular"])

    def test_the_table_has_a_line_for_each_way(self):
        done = recommend(*self.options[:1], *"--epochs 1 --held-out 50 --hidden 8 --latent 2".split())
        self.assertEqual(done.returncode, 0, done.stderr)
        ways = [line[:22].strip() for line in done.stdout.splitlines() if "%" in line]
        self.assertEqual(ways, ["toarray", "toarray in a thread", "chunkhit"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

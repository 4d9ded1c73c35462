"""What the scripts on pack-sparse share: ratings, running the command, reading a pack without chunkhit's own code."""
import csv
import json
import os

import numpy as np

from packing import check, run
from shard_reader import Shard

# Small parts and blocks, so that the paths of many parts run on little data.
SMALL = ["--chunk-rows", "16", "--part-bytes", "3000"]


def random_ratings(seed, users=300, items=90, count=6000):
    """Different (user, item) pairs in a random order: ids with gaps, half stars, times with ties."""
    rng = np.random.default_rng(seed)
    popular = rng.zipf(1.4, 4 * count) % items
    pairs = np.unique(np.stack([rng.integers(0, users, 4 * count), popular], 1), axis=0)
    pairs = rng.permutation(pairs)[:count]
    return [(1000 + 7 * int(user), 50 + 3 * int(item), int(rng.integers(1, 11)) / 2, int(rng.integers(0, 500)))
            for user, item in pairs]


def write_csv(path, ratings, header="userId,movieId,rating,timestamp"):
    with open(path, "w") as file:
        file.write(header + "\n")
        file.writelines(",".join(map(str, rating)) + "\n" for rating in ratings)
    return path


def pack(*arguments, **how):
    return run("pack-sparse", *arguments, "--progress", "none", **how)


class Pack:
    """A pack of shards: `x` and `held_out` are {(user, item): value} of own ids, as text."""

    def __init__(self, folder):
        with open(os.path.join(folder, "manifest.json")) as file:
            self.manifest = json.load(file)
        self.users = self.read_list(folder, self.manifest["users"]["file"], "row", "user")
        self.items = self.read_list(folder, self.manifest["items"]["file"], "column", "item")
        self.shards = [Shard(os.path.join(folder, part["file"])) for part in self.manifest["parts"]]
        self.x = self.read_matrix(0)
        self.held_out = self.read_matrix(1) if len(self.manifest["matrices"]) == 2 else {}
        self.check_lists()

    @staticmethod
    def read_list(folder, name, number, own):
        with open(os.path.join(folder, name), newline="") as file:
            rows = list(csv.DictReader(file))
        check([int(row[number]) for row in rows] == list(range(len(rows))), name, "is not counted up")
        return [(row[own], int(row["ratings"])) for row in rows]

    def read_matrix(self, which):
        entries, first = {}, 0
        for shard in self.shards:
            matrix = shard.matrix(which).tocoo()
            for row, column, value in zip(matrix.row, matrix.col, matrix.data):
                entries[self.users[first + row][0], self.items[column][0]] = float(value)
            first += shard.sample_count
        check(len(entries) == self.manifest["matrices"][which]["nnz"], "another number of entries")
        return entries

    def check_lists(self):
        of_user = {}
        for user, _ in self.x:
            of_user[user] = of_user.get(user, 0) + 1
        check(all(of_user.get(user, 0) == ratings for user, ratings in self.users), "users.csv counts other ratings")
        check([user for shard in self.shards for user in shard.files] == [user for user, _ in self.users], "the parts' users")
        check(all(shard.classes == [item for item, _ in self.items] for shard in self.shards), "the parts' items")

    def item_counts(self):
        counts = {}
        for _, item in self.x:
            counts[item] = counts.get(item, 0) + 1
        return counts


def as_entries(ratings):
    return {(str(user), str(item)): value for user, item, value, *_ in ratings}

#!/usr/bin/env python3
"""A SparseLoader over packs of pack-sparse must give scipy's rows, in every form, order and cache.

Usage: sparse_python_test.py SPARSE_LOADER_PROBE PACK_SPARSE"""
import itertools
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from optional import optional  # noqa: E402

anndata = optional("anndata")
PROBE, PACK_SPARSE = sys.argv[1:3]
AUTOMATIC, DECODED, COMPRESSED, STREAM = range(4)
NONE, WINDOW, GLOBAL = range(3)
FORMS = {0: np.float32, 1: np.float16, 2: np.uint8}
CSR = 3
USERS, ITEMS = 211, 97


def read_ids(path):
    """The numbers in ids such as "u17", one a line."""
    with open(path) as file:
        return [int(line[1:]) for line in file]


class SparseLoader(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="chunkhit-sparse-")
        random = np.random.default_rng(1)
        cls.ratings = sp.random(USERS, ITEMS, 0.15, random_state=1, format="coo")
        cls.stars = random.integers(1, 11, cls.ratings.nnz)
        # Numbers that take a stored u8 (of half stars), u16 and f32.
        cls.values = {"u8": cls.stars / 2, "u16": cls.stars * 257.0, "f32": np.float32(cls.stars / 7)}
        cls.packs = {}
        small = ["--chunk-rows", "16"]
        for name, values, flags in (("shard", "u8", small), ("plain", "u8", [*small, "--codec", "none"]),
                                    ("hdf5", "u8", ["--container", "hdf5"]),
                                    ("split", "u8", [*small, "--split-by", "ratio", "--test", "0.3"]),
                                    ("u16", "u16", small), ("f32", "f32", small), ("hdf5-u16", "u16", ["--container", "hdf5"]),
                                    ("hdf5-f32", "f32", ["--container", "hdf5"])):
            cls.packs[name] = cls.path(name)
            csv = cls.write_csv(values)
            subprocess.run([PACK_SPARSE, csv, "--output", cls.packs[name], "--progress", "none", *flags], check=True,
                           stdout=subprocess.DEVNULL)

    @classmethod
    def write_csv(cls, values):
        csv = cls.path(f"{values}.csv")
        with open(csv, "w") as out:
            out.write("user,item,rating\n")
            for user, item, value in zip(cls.ratings.row, cls.ratings.col, cls.values[values]):
                out.write(f"u{user},i{item},{value:.9g}\n")
        return csv

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def load(self, pack, shuffle=GLOBAL, cache=AUTOMATIC, threads=2, form=0, epochs=1):
        out = self.path("out")
        request = f"{shuffle} 7 3 25 {cache} {threads} {form} {epochs}"
        text = subprocess.run([PROBE, request, out, pack], check=True, stdout=subprocess.PIPE).stdout
        rows, columns, self.scale = (float(word) for word in text.split())
        self.rows = read_ids(out + ".rows")
        self.columns = read_ids(out + ".columns")
        self.assertEqual(len(self.rows), rows * epochs)
        self.assertEqual(len(self.columns), columns)
        return out

    def dense(self, path, form):
        return np.fromfile(path, FORMS[form]).reshape(len(self.rows), len(self.columns))

    def expected(self, stored=False, values="u8"):
        """scipy's dense rows, in the loader's rows and columns."""
        values = self.stars if stored else self.values[values]
        whole = sp.csr_matrix((values, (self.ratings.row, self.ratings.col)), shape=(USERS, ITEMS)).toarray()
        return whole[self.rows][:, self.columns]

    def test_gives_scipys_rows_in_every_form_order_and_cache(self):
        for shuffle, cache, form in itertools.product((NONE, WINDOW, GLOBAL), (DECODED, COMPRESSED, STREAM), FORMS):
            with self.subTest(shuffle=shuffle, cache=cache, form=form):
                out = self.load(self.packs["shard"], shuffle, cache, form=form, epochs=2)
                np.testing.assert_array_equal(self.dense(out + ".x", form), self.expected(stored=form == 2))
                self.assertEqual(self.scale, 0.5)

    def test_gives_scipys_rows_for_any_number_of_threads(self):
        for threads in (1, 2, 4, 8):
            out = self.load(self.packs["shard"], threads=threads)
            np.testing.assert_array_equal(self.dense(out + ".x", 0), self.expected())

    def test_gives_scipys_rows_of_every_container(self):
        for pack in ("plain", "hdf5"):
            with self.subTest(pack=pack):
                out = self.load(self.packs[pack])
                np.testing.assert_array_equal(self.dense(out + ".x", 0), self.expected())

    def test_gives_every_rated_user_and_item_once(self):
        self.load(self.packs["shard"])
        self.assertEqual(sorted(self.rows), sorted(set(self.ratings.row)))
        self.assertEqual(sorted(self.columns), sorted(set(self.ratings.col)))

    def csr_cells(self, path):
        """The cells of an epoch's CSR lines "row column value", in the order of its rows."""
        table = np.loadtxt(path)
        place = np.empty(len(self.rows), int)
        place[list(dict.fromkeys(table[:, 0].astype(int)))] = np.arange(len(self.rows))
        cells = np.zeros((len(self.rows), len(self.columns)), np.float32)
        cells[place[table[:, 0].astype(int)], table[:, 1].astype(int)] = table[:, 2]
        return cells

    def test_gives_csr_batches_of_the_same_entries(self):
        for pack, shuffle, cache in itertools.product(("shard", "plain", "hdf5"), (NONE, WINDOW, GLOBAL),
                                                          (AUTOMATIC, DECODED, COMPRESSED, STREAM)):
            with self.subTest(pack=pack, shuffle=shuffle, cache=cache):
                out = self.load(self.packs[pack], shuffle, cache, form=CSR)
                np.testing.assert_array_equal(self.csr_cells(out + ".x"), self.expected())

    def test_gives_scipys_rows_of_hdf5_in_every_cache(self):
        for pack, shuffle, cache, form in itertools.product(("hdf5",), (NONE, GLOBAL),
                                                                (DECODED, COMPRESSED, STREAM), FORMS):
            with self.subTest(pack=pack, shuffle=shuffle, cache=cache, form=form):
                out = self.load(self.packs[pack], shuffle, cache, form=form)
                np.testing.assert_array_equal(self.dense(out + ".x", form), self.expected(stored=form == 2))

    def test_gives_scipys_rows_of_wider_values(self):
        for values, pack, cache in itertools.product(("u16", "f32"), ("", "hdf5-"), (DECODED, COMPRESSED, STREAM)):
            with self.subTest(values=values, pack=pack, cache=cache):
                out = self.load(self.packs[pack + values], cache=cache)
                np.testing.assert_array_equal(self.dense(out + ".x", 0), np.float32(self.expected(values=values)))
                out = self.load(self.packs[pack + values], cache=cache, form=CSR)
                np.testing.assert_array_equal(self.csr_cells(out + ".x"), np.float32(self.expected(values=values)))

    def test_gives_scipys_rows_of_files_that_anndata_wrote(self):
        whole = sp.csr_matrix((self.values["u16"].astype(np.float32), (self.ratings.row, self.ratings.col)), (USERS, ITEMS))
        for layout, cache in itertools.product(("csr", "csc", "dense"), (DECODED, COMPRESSED, STREAM)):
            data = anndata.AnnData(whole.toarray() if layout == "dense" else whole.asformat(layout), dtype=np.float32)
            data.obs_names = [f"u{i}" for i in range(USERS)]
            data.var_names = [f"i{i}" for i in range(ITEMS)]
            data.write_h5ad(self.path("a.h5ad"), compression="gzip")
            with self.subTest(layout, cache=cache):
                out = self.load(self.path("a.h5ad"), cache=cache)
                np.testing.assert_array_equal(self.dense(out + ".x", 0), whole.toarray()[self.rows][:, self.columns])
                out = self.load(self.path("a.h5ad"), cache=cache, form=CSR)
                np.testing.assert_array_equal(self.csr_cells(out + ".x"), whole.toarray()[self.rows][:, self.columns])

    def test_pairs_what_is_known_with_what_is_held_out(self):
        out = self.load(os.path.join(self.packs["split"], "test"))
        x, held_out = self.dense(out + ".x", 0), self.dense(out + ".held_out", 0)
        self.assertFalse(((x != 0) & (held_out != 0)).any())
        self.assertTrue((held_out != 0).any(axis=1).all())
        np.testing.assert_array_equal(x + held_out, self.expected())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

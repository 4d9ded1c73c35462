"""Matrices must read as the programs read them that own the formats (scipy, scikit-learn), or be refused with the reason.

Usage: matrix_formats_test.py RATINGS_PROBE"""
import gzip
import itertools
import os
import sys
import unittest

import numpy as np
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from read_ratings import FormatsTest, probe, random_matrix  # noqa: E402


class MatrixMarket(FormatsTest):
    def test_what_mmwrite_writes(self):
        square = random_matrix(40, 40)
        matrices = {
            "general": random_matrix(57, 23), "integer": random_matrix(57, 23, dtype=np.int32),
            "symmetric": square + square.T, "skew": square - square.T, "empty": sp.csr_matrix((5, 7), dtype=np.float32),
            "complex-free array": random_matrix(13, 11).toarray(), "array of integers": random_matrix(9, 4).toarray().astype(int),
            "symmetric array": (square + square.T).toarray(), "skew array": (square - square.T).toarray(),
            "doubles": random_matrix(20, 20, dtype=np.float64) / 7,
        }
        for name, matrix in matrices.items():
            for compress in (False, True):
                with self.subTest(name, compress=compress):
                    path = self.path("a.mtx" + (".gz" if compress else ""))
                    with (gzip.open if compress else open)(path, "wb") as file:
                        scipy.io.mmwrite(file, matrix)
                    self.assert_equal(probe("matrix-market", path), scipy.io.mmread(path), first=1)
                    self.assert_equal(probe("matrix-market", path, transpose="yes"), scipy.io.mmread(path).T, first=1)

    def test_a_pattern(self):
        path = self.path("a.mtx")
        matrix = random_matrix(30, 30)
        scipy.io.mmwrite(path, sp.coo_matrix(matrix), field="pattern", symmetry="general")
        self.assert_equal(probe("matrix-market", path), matrix != 0, first=1)

    def test_no_zeros_are_made_of_a_symmetric_diagonal(self):
        path = self.path("a.mtx")
        scipy.io.mmwrite(path, sp.eye(10, format="coo"), symmetry="symmetric")
        self.assertEqual(len(probe("matrix-market", path).triplets), 10)

    def test_a_cut_file_is_noticed(self):
        path = self.path("a.mtx")
        scipy.io.mmwrite(path, random_matrix(30, 30))
        with open(path) as file:
            lines = file.readlines()
        with open(path, "w") as file:
            file.writelines(lines[:-3])
        self.assert_refused(probe("matrix-market", path), "expected 90 entries, got 87")


class Svmlight(FormatsTest):
    def test_what_dump_svmlight_file_writes(self):
        for zero_based, seed in itertools.product((True, False), range(4)):
            matrix = random_matrix(50, 80, seed=seed).astype(np.float64)
            labels = np.arange(50) % 3
            queries = np.arange(50) + 72048431380967004
            path = self.path("a.svm")
            dump_svmlight_file(matrix, labels, path, zero_based=zero_based, query_id=queries, comment="made for a test")
            ratings = probe("svmlight", path)
            shape = (50, ratings.shape[1])
            read, read_labels = load_svmlight_file(path, n_features=shape[1], zero_based=zero_based)[:2]
            self.assert_equal(ratings, read, first=0) if zero_based else self.assert_shifted(ratings, read)
            self.assertEqual(ratings.facts["row"], [f"{int(label)} qid:{q}" for label, q in zip(read_labels, queries)])

    def assert_shifted(self, ratings, expected):
        rows = [int(user) for user, _, _ in ratings.triplets]
        columns = [int(item) - 1 for _, item, _ in ratings.triplets]
        found = sp.coo_matrix(([v for _, _, v in ratings.triplets], (rows, columns)), shape=expected.shape)
        self.assertEqual((found.tocsr() != expected.astype(np.float32)).nnz, 0)

    def test_many_labels_a_row(self):
        matrix = random_matrix(20, 10, 0.5)
        labels = sp.random(20, 4, 0.5, "csr", random_state=3)
        labels.data[:] = 1
        path = self.path("a.svm")
        dump_svmlight_file(matrix, labels, path, multilabel=True)
        read = load_svmlight_file(path, multilabel=True)[1]
        rows = [tuple(float(label) for label in row.split()) for row in probe("svmlight", path).facts["row"]]
        self.assertEqual(rows, read)

    def test_the_base_is_decided_over_all_files(self):
        train, test = self.path("train"), self.path("test")
        with open(train, "w") as file:
            file.write("1 0:1 3:2\n")
        with open(test, "w") as file:
            file.write("1 1:5 3:6\n")
        for paths in ((train, test), (test, train)):
            ratings = probe("svmlight", *paths)
            self.assertEqual(ratings.shape, (2, 4))
            self.assertIn("taken as 0", ratings.facts["notice"][0])
        self.assertEqual(probe("svmlight", test).shape, (1, 3))


class Npz(FormatsTest):
    FORMATS = ["csr", "csc", "coo"]
    TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "<f8", ">f8", ">i4", ">u2"]

    def test_what_save_npz_writes(self):
        for layout, compressed, dtype in itertools.product(self.FORMATS, (False, True), ["f4", "f8", "i4"]):
            matrix = random_matrix(42, 24, dtype=dtype)
            path = self.path("a.npz")
            sp.save_npz(path, matrix.asformat(layout), compressed=compressed)
            with self.subTest(layout, compressed=compressed, dtype=dtype):
                self.assert_equal(probe("npz", path), sp.load_npz(path))
                self.assert_equal(probe("npz", path, transpose="yes"), sp.load_npz(path).T)

    def test_all_types(self):
        for dtype, index in itertools.product(self.TYPES, ["<i4", "<i8", ">i8", "<u2", "<u8", ">u4"]):
            matrix = random_matrix(30, 20)
            path = self.path("a.npz")
            np.savez(path, format=np.array("csr".encode()), shape=np.array(matrix.shape, index),
                     data=matrix.data.astype(dtype), indices=matrix.indices.astype(index),
                     indptr=matrix.indptr.astype(index))
            expected = sp.csr_matrix((matrix.data.astype(dtype).astype(np.float32), matrix.indices, matrix.indptr), matrix.shape)
            with self.subTest(dtype=dtype, index=index):
                self.assert_equal(probe("npz", path), expected)

    def test_halves(self):
        halves = np.concatenate([np.arange(0x7c00), np.arange(0x8000, 0xfc00)]).astype(np.uint16).view(np.float16)
        path = self.path("a.npz")
        np.savez(path, data=halves, indices=np.arange(len(halves)), indptr=np.array([0, len(halves)]))
        found = np.array([value for _, _, value in probe("npz", path).triplets])
        np.testing.assert_array_equal(found, halves.astype(np.float32))

    def test_unsorted_and_doubled_indices_stay(self):
        matrix = sp.csr_matrix((np.array([1, 2, 3, 4], np.float32), [3, 0, 3, 1], [0, 3, 3, 4]), (3, 5))
        path = self.path("a.npz")
        sp.save_npz(path, matrix)
        ratings = probe("npz", path)
        self.assertEqual(ratings.triplets, [("0", "3", 1), ("0", "0", 2), ("0", "3", 3), ("2", "1", 4)])
        self.assert_equal(ratings, matrix)

    def test_many_blocks_of_ratings(self):
        matrix = random_matrix(3000, 1000, 0.8)
        path = self.path("a.npz")
        for layout in ("csr", "csc"):
            sp.save_npz(path, matrix.asformat(layout))
            self.assert_equal(probe("npz", path), matrix)

    def test_text_formats_of_old_files(self):
        matrix = random_matrix(10, 10)
        path = self.path("a.npz")
        for name in (np.array("csr"), np.array(b"csr"), np.array("csr", ">U3")):
            np.savez(path, format=name, shape=matrix.shape, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr)
            self.assert_equal(probe("npz", path), matrix)

    def test_rounded_values_are_counted(self):
        path = self.path("a.npz")
        sp.save_npz(path, sp.csr_matrix(np.array([[0.1, 0.5, 2.0**24 + 1]])))
        self.assertEqual(probe("npz", path).facts["rounded"], ["2"])

    def test_what_is_refused(self):
        m = random_matrix(10, 10)
        arrays = dict(format=np.array(b"csr"), shape=np.array(m.shape), data=m.data, indices=m.indices, indptr=m.indptr)
        falling = m.indptr.copy()
        falling[4] = 0
        cases = {
            "complex": dict(data=m.data.astype(np.complex64)), "objects": dict(data=m.data.astype(object)),
            "expected 0 to 9": dict(indices=m.indices + 9), "has index -": dict(indices=m.indices - 9),
            "must not fall": dict(indptr=falling), "expected 11": dict(indptr=m.indptr[:-1]),
            "expected whole numbers": dict(indices=m.indices.astype(float)), "NaN": dict(data=m.data * np.nan),
            "expected csr, csc or coo; convert it: scipy.sparse.save_npz(path, matrix.tocsr())": dict(format=np.array(b"bsr")),
            "coords.npy": dict(coords=np.zeros((2, 3))), "format \"lil\"": dict(format=np.array(b"lil")),
            "indptr ends": dict(indptr=np.minimum(m.indptr, m.indptr[-1] - 1)), "begin with 0": dict(indptr=np.maximum(m.indptr, 1)),
            "shape": dict(shape=np.array([-1, 10])), "dimensions": dict(data=m.data.reshape(1, -1)),
        }
        for words, changed in cases.items():
            with self.subTest(words):
                path = self.path("a.npz")
                np.savez(path, **{**arrays, **changed})
                self.assert_refused(probe("npz", path), words)

    def test_what_has_no_format(self):
        matrix = random_matrix(10, 10)
        path = self.path("a.npz")
        np.savez(path, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr)
        ratings = probe("npz", path)
        self.assertEqual(len(ratings.facts["notice"]), 2)
        self.assertEqual(ratings.shape, (10, matrix.indices.max() + 1))
        np.savez(path, data=np.ones(3))
        self.assert_refused(probe("npz", path), "does not say its format")
        np.savez(path, images=np.ones(3))
        self.assert_refused(probe("npz", path), "images.npy")

    def test_every_cut_and_many_flipped_bytes_are_noticed(self):
        path = self.path("a.npz")
        matrix = random_matrix(10, 10)
        for compressed in (False, True):
            sp.save_npz(path, matrix, compressed=compressed)
            with open(path, "rb") as file:
                whole = file.read()
            expected = probe("npz", path).triplets
            rng = np.random.default_rng(1)
            for _ in range(40):
                cut = whole[: rng.integers(len(whole))]
                flipped = bytearray(whole)
                flipped[rng.integers(len(whole))] ^= 1 << rng.integers(8)
                for name, damaged in (("cut", cut), ("flipped", bytes(flipped))):
                    with open(path, "wb") as file:
                        file.write(damaged)
                    ratings = probe("npz", path)
                    if isinstance(ratings, str):
                        continue
                    # A flipped bit in what a ZIP says beside the data (times, attributes) changes nothing.
                    self.assertEqual((name, ratings.triplets), ("flipped", expected))


unittest.main(argv=sys.argv[:1])

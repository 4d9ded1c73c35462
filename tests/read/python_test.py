#!/usr/bin/env python3
"""A loader over files that h5py wrote must give what h5py gives, in the order of schemas/order.md.

Usage: python_test.py LOADER_PROBE PLUGIN_FOLDER"""
import itertools
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

PROBE, PLUGINS = sys.argv[1:3]
os.environ["HDF5_PLUGIN_PATH"] = PLUGINS  # before h5py loads the library

import h5py  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from described_order import GLOBAL, NONE, WINDOW, batches_of, order_of  # noqa: E402

AUTOMATIC, DECODED, COMPRESSED, STREAM = range(4)
NHWC, NCHW, AS_STORED = range(3)
SAMPLE = (32, 32, 3)
COUNT = 613
# Smaller ones are taken together, several of the file's chunks at a time.
MIN_CHUNK_BYTES = 1 << 16
CHUNK = 25  # samples: 76,800 bytes; the last chunk of COUNT has 13
ONE_PIECE_CHUNK = (1 << 20) // 3072  # samples of SAMPLE into which an array without chunks is cut
FILTERS = {
    "none": {},
    "deflate": {"compression": "gzip", "compression_opts": 4},
    "shuffle and deflate": {"shuffle": True, "compression": "gzip"},
    "zstd": {"compression": 32015, "compression_opts": (3,)},
}


def images(count=COUNT, seed=1):
    """Each sample differs from all others; half of its bytes compress."""
    data = np.random.default_rng(seed).integers(0, 256, (count, *SAMPLE), dtype=np.uint8)
    data[:, ::2] = np.arange(count, dtype=np.uint8)[:, None, None, None]
    return data


def chunk_counts(count, chunk):
    return [min(chunk, count - first) for first in range(0, count, chunk)]


def load(paths, options, images="images", labels="labels"):
    """The batches' sizes of each epoch, and all batches' pixels, labels and samples as flat arrays of bytes."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out"
        done = subprocess.run([PROBE, " ".join(map(str, options)), out, images, labels, *paths], capture_output=True,
                              text=True)
        assert done.returncode == 0, (done.returncode, done.stderr)
        sizes = [list(map(int, line.split())) for line in done.stdout.splitlines()]
        return sizes, *(np.fromfile(f"{out}.{name}", np.uint8) for name in ("pixels", "labels", "samples"))


class PythonFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = f"{folder.name}/a.h5"
        self.second_path = f"{folder.name}/b.h5"

    def write(self, data, labels, path=None, **options):
        with h5py.File(path or self.path, "w") as file:
            file.create_dataset("images", data=data, **options)
            file["labels"] = labels

    def check(self, chunks, shuffle, seed=7, window=4, batch=100, cache=AUTOMATIC, threads=2, layout=AS_STORED,
              epochs=2, paths=None):
        """Compares a loader with h5py's arrays, taken in the order that the page describes for these chunks."""
        paths = paths or [self.path]
        data, labels = [], []
        for path in paths:
            with h5py.File(path) as file:
                data.append(file["images"][...])
                labels.append(file["labels"][...])
        data, labels = np.concatenate(data), np.concatenate(labels)
        if layout == NCHW:
            data = data.transpose(0, 3, 1, 2)
        sizes, pixels, found_labels, samples = load(
            paths, (shuffle, seed, window, batch, cache, threads, layout, epochs))
        expected = []
        for epoch in range(epochs):
            order = order_of(shuffle, seed, window, epoch, chunks)
            batches = batches_of(len(order), batch, 0, 1, True, False, 1, seed, epoch, 0)
            self.assertEqual(sizes[epoch], list(map(len, batches)))
            expected += [order[place] for places in batches for place in places]
        np.testing.assert_array_equal(samples.view(np.uint64), expected)
        np.testing.assert_array_equal(found_labels.view(labels.dtype), labels[expected].ravel())
        np.testing.assert_array_equal(pixels, data[expected].ravel())

    def test_every_filter_order_and_residency_gives_what_h5py_gives(self):
        self.assertGreaterEqual(CHUNK * np.prod(SAMPLE), MIN_CHUNK_BYTES)
        labels = np.arange(COUNT) % 10
        for name, filters in FILTERS.items():
            self.write(images(), labels, chunks=(CHUNK, *SAMPLE), **filters)
            for shuffle, cache in itertools.product((NONE, WINDOW, GLOBAL), (AUTOMATIC, DECODED, COMPRESSED, STREAM)):
                with self.subTest(filters=name, shuffle=shuffle, cache=cache):
                    self.check(chunk_counts(COUNT, CHUNK), shuffle, cache=cache)

    def test_seeds_windows_batches_and_threads_make_the_described_order(self):
        self.write(images(), np.arange(COUNT), chunks=(CHUNK, *SAMPLE), compression="gzip")
        for seed, window, batch, threads in ((0, 1, 1, 1), (1, 2, 7, 3), (1 << 63, 64, 613, 2), (5, 25, 1000, 8)):
            with self.subTest(seed=seed, window=window, batch=batch, threads=threads):
                self.check(chunk_counts(COUNT, CHUNK), WINDOW, seed, window, batch, threads=threads, epochs=3)

    def test_an_array_in_one_piece_is_cut_to_chunks_of_a_mebibyte(self):
        self.write(images(900), np.arange(900))
        for shuffle in (NONE, WINDOW):
            self.check(chunk_counts(900, ONE_PIECE_CHUNK), shuffle, window=2, epochs=3)

    def test_chunks_that_split_samples_are_put_together(self):
        guarded = {"compression": "gzip", "shuffle": True, "fletcher32": True}
        for filters in ({}, FILTERS["deflate"], FILTERS["zstd"], guarded):
            self.write(images(), np.arange(COUNT), chunks=(60, 16, 20, 2), **filters)
            for shuffle, cache in itertools.product((NONE, WINDOW, GLOBAL), (DECODED, STREAM)):
                with self.subTest(filters=filters, shuffle=shuffle, cache=cache):
                    self.check(chunk_counts(COUNT, 60), shuffle, cache=cache, threads=4)

    def test_two_files_of_split_samples_are_read_by_several_threads(self):
        for path, seed in ((self.path, 1), (self.second_path, 2)):
            self.write(images(seed=seed), np.arange(COUNT), path, chunks=(30, 8, 32, 3), compression="gzip")
        self.check(chunk_counts(COUNT, 30) * 2, WINDOW, threads=8, paths=[self.path, self.second_path])

    def test_small_chunks_are_taken_together(self):
        self.write(images(), np.arange(COUNT), chunks=(2, *SAMPLE), compression="gzip")
        together = MIN_CHUNK_BYTES // (2 * int(np.prod(SAMPLE))) * 2
        self.check(chunk_counts(COUNT, together), WINDOW)

    def test_planes_come_from_pixels_and_pixels_stay(self):
        self.write(images(), np.arange(COUNT), chunks=(CHUNK, *SAMPLE))
        for layout in (NCHW, NHWC):
            self.check(chunk_counts(COUNT, CHUNK), WINDOW, layout=layout)

    def test_labels_that_are_numbers_follow_their_samples(self):
        labels = np.random.default_rng(2).random((COUNT, 3), dtype=np.float32)
        self.write(images(), labels, chunks=(CHUNK, *SAMPLE))
        self.check(chunk_counts(COUNT, CHUNK), WINDOW)

    def test_two_files_are_one_source(self):
        self.write(images(), np.arange(COUNT), chunks=(CHUNK, *SAMPLE), compression="gzip")
        self.write(images(200, seed=2), np.arange(200), self.second_path, chunks=(30, *SAMPLE))
        chunks = chunk_counts(COUNT, CHUNK) + chunk_counts(200, 30)
        for shuffle in (NONE, WINDOW, GLOBAL):
            self.check(chunks, shuffle, paths=[self.path, self.second_path])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

"""HDF5 files that h5py wrote must read as h5py itself reads them, or be refused with the reason.

Usage: external_hdf5_test.py HDF5_PROBE PLUGIN_FOLDER"""
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zlib

import numpy as np

PROBE, PLUGINS = sys.argv[1:3]
os.environ["HDF5_PLUGIN_PATH"] = PLUGINS  # before h5py loads the library

import h5py  # noqa: E402

ZSTD = 32015
FILTERS = {
    "none": {},
    "deflate": {"compression": "gzip", "compression_opts": 4},
    "shuffle": {"shuffle": True},
    "shuffle+deflate": {"shuffle": True, "compression": "gzip"},
    "zstd": {"compression": ZSTD, "compression_opts": (3,)},
    "fletcher32": {"fletcher32": True},
    "deflate+fletcher32": {"compression": "gzip", "fletcher32": True},
}
# Array shapes with tile shapes: whole samples, split samples, tiles that reach over every edge, one sample a tile.
SHAPES = {
    (11, 9, 7, 3): [True, (4, 9, 7, 3), (3, 4, 7, 3), (4, 5, 3, 2), (2, 9, 7, 1), (1, 9, 7, 3), (11, 2, 2, 3)],
    (10, 3, 9, 7): [True, (4, 3, 9, 7), (4, 1, 9, 7), (3, 2, 4, 5)],
    (13, 8, 6): [True, (5, 8, 6), (4, 3, 6), (4, 8, 5)],
    (17, 20): [True, (6, 20), (6, 7)],
    (19,): [True, (4,)],
    (5, 4, 6, 5, 3): [(2, 4, 6, 5, 3), (2, 3, 2, 5, 3)],
}
SAMPLE_SHAPES = {(11, 9, 7, 3): (9, 7, 3, "nhwc"), (10, 3, 9, 7): (9, 7, 3, "nchw"), (13, 8, 6): (8, 6, 1, "nhwc"),
                 (17, 20): (1, 20, 1, "nhwc"), (19,): (1, 1, 1, "nhwc"), (5, 4, 6, 5, 3): (24, 5, 3, "nhwc")}


def pixels(shape, seed=1):
    """Smooth enough to compress, so that filters are really used."""
    values = np.arange(int(np.prod(shape)), dtype=np.int64) // 5 * 7 + seed
    return (values % 251).astype(np.uint8).reshape(shape)


def probe(path, images="images", labels="beside"):
    """Labels are next to the images unless they are named. Gives what the library says of a file, the bytes of its samples and its labels; or the reason why not."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([PROBE, path, images, labels, f"{folder}/out"], capture_output=True, text=True)
        if done.returncode != 0:
            assert done.returncode == 65, (path, done.returncode, done.stderr)
            return None, done.stderr, None
        facts = json.loads(done.stdout)
        kind = np.int64 if facts["class_labels"] else np.float32
        return facts, np.fromfile(f"{folder}/out.samples", np.uint8), np.fromfile(f"{folder}/out.labels", kind)


class ExternalHdf5(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = f"{self.folder.name}/a.h5"

    def write(self, data, name="images", labels=None, label_name="labels", libver=None, **options):
        with h5py.File(self.path, "w", libver=libver) as file:
            file.create_dataset(name, data=data, **options)
            if labels is not None:
                file[label_name] = labels

    def check_samples(self, images="images", labels=None):
        if labels is None:
            with h5py.File(self.path) as file:
                labels = "beside" if "labels" in file else ""
        facts, samples, found_labels = probe(self.path, images, labels)
        self.assertIsNotNone(facts, samples)
        with h5py.File(self.path) as file:
            np.testing.assert_array_equal(samples, file[images][...].ravel())
            self.assertEqual(facts["samples"], len(file[images]))
        return facts, found_labels

    def refused(self, *words, images="images", labels="beside"):
        facts, reason, _ = probe(self.path, images, labels)
        self.assertIsNone(facts, "was read")
        for word in words:
            self.assertIn(word, reason)

    def test_every_shape_of_chunks_and_every_filter_reads_as_h5py_reads_it(self):
        for shape, chunkings in SHAPES.items():
            for chunks, (name, options), libver in itertools.product(chunkings, FILTERS.items(), (None, "latest")):
                with self.subTest(shape=shape, chunks=chunks, filters=name, libver=libver):
                    self.write(pixels(shape), chunks=chunks, libver=libver, **options)
                    facts, _ = self.check_samples()
                    found = (facts["height"], facts["width"], facts["channels"], facts["layout"])
                    self.assertEqual(found, SAMPLE_SHAPES[shape])

    def test_an_array_in_one_piece_is_raw_chunks_of_about_a_mebibyte(self):
        for shape in SHAPES:
            with self.subTest(shape=shape):
                self.write(pixels(shape))
                facts, _ = self.check_samples()
                self.assertEqual(facts["raw_chunks"], facts["chunks"])
        self.write(pixels((3000, 28, 28)))
        facts, _ = self.check_samples()
        self.assertEqual((facts["chunk_samples"], facts["chunks"], facts["raw_chunks"]), (1337, 3, 3))

    def test_whole_samples_without_a_filter_are_raw(self):
        self.write(pixels((300, 32, 32, 3)), chunks=(50, 32, 32, 3))
        facts, _ = self.check_samples()
        self.assertEqual((facts["chunk_samples"], facts["raw_chunks"]), (50, 6))
        self.write(pixels((300, 32, 32, 3)), chunks=(50, 16, 32, 3))
        self.assertEqual(self.check_samples()[0]["raw_chunks"], 0)
        self.write(pixels((300, 32, 32, 3)), chunks=(50, 32, 32, 3), compression="gzip")
        self.assertEqual(self.check_samples()[0]["raw_chunks"], 0)

    def test_many_small_chunks_are_taken_together(self):
        self.write(pixels((1000, 28, 28)), chunks=(1, 28, 28), compression="gzip")
        facts, _ = self.check_samples()
        self.assertEqual((facts["chunk_samples"], facts["chunks"]), (83, 13))

    def test_the_layout_attribute_wins_over_the_guess(self):
        self.write(pixels((6, 3, 5, 4)))
        self.assertEqual(self.check_samples()[0]["layout"], "nhwc")
        with h5py.File(self.path, "a") as file:
            file["images"].attrs["layout"] = "nchw"
        facts, _ = self.check_samples()
        self.assertEqual((facts["layout"], facts["height"], facts["channels"]), ("nchw", 5, 3))
        with h5py.File(self.path, "a") as file:
            file["images"].attrs["layout"] = 17
        self.assertEqual(self.check_samples()[0]["layout"], "nhwc")
        self.write(pixels((6, 5, 4)))
        with h5py.File(self.path, "a") as file:
            file["images"].attrs["layout"] = "nchw"  # of one channel there is nothing to tell
        facts, _ = self.check_samples()
        self.assertEqual((facts["layout"], facts["height"], facts["width"]), ("nhwc", 5, 4))

    def test_chunks_that_were_never_written_are_the_fill_value(self):
        for fill, chunks, filters in itertools.product((None, 9), ((2, 4, 6), (3, 3, 4)), ({}, FILTERS["deflate"])):
            with self.subTest(fill=fill, chunks=chunks, filters=filters):
                for libver in (None, "latest"):
                    with h5py.File(self.path, "w", libver=libver) as file:
                        array = file.create_dataset("images", (20, 4, 6), np.uint8, chunks=chunks, fillvalue=fill,
                                                    **filters)
                        array[7:9] = 77
                    self.check_samples()
                with h5py.File(self.path, "w") as file:
                    file.create_dataset("images", (20, 4, 6), np.uint8, chunks=chunks, fillvalue=fill, **filters)
                self.check_samples()
        with h5py.File(self.path, "w") as file:
            file.create_dataset("images", (20, 4, 6), np.uint8, fillvalue=5)
            file.create_dataset("labels", (20,), "i8", chunks=(5,), fillvalue=7)[:10] = 1
        np.testing.assert_array_equal(self.check_samples()[1], [1] * 10 + [7] * 10)

    def test_an_array_that_may_grow_is_read_as_far_as_it_goes(self):
        for libver in (None, "latest"):
            with h5py.File(self.path, "w", libver=libver) as file:
                array = file.create_dataset("images", (7, 4, 4), np.uint8, chunks=(8, 8, 8), maxshape=(None, None, None))
                array[...] = pixels((7, 4, 4))
            self.check_samples()
        self.write(pixels((0, 4, 4)), chunks=(2, 4, 4), maxshape=(None, 4, 4))
        self.assertEqual(self.check_samples()[0]["chunks"], 0)

    def test_a_chunk_that_was_written_raw_among_filtered_ones_is_read(self):
        for filters, mask in (({"compression": "gzip"}, 1), ({"shuffle": True, "compression": "gzip"}, 2)):
            data = pixels((8, 5, 5))
            self.write(data, chunks=(4, 5, 5), **filters)
            with h5py.File(self.path, "a") as file:
                file["images"].id.write_direct_chunk((4, 0, 0), data[4:][::-1].tobytes(), filter_mask=mask)
            self.check_samples()

    def test_names_may_lie_in_groups(self):
        data, labels = pixels((6, 4, 4)), np.arange(6)
        self.write(data, "train/deep/x", labels, "train/y")
        for images in ("train/deep/x", "/train/deep/x"):
            _, found = self.check_samples(images, "/train/y")
            np.testing.assert_array_equal(found, labels)

    def test_whole_numbers_of_any_width_are_class_ids(self):
        kinds = "i1 u1 i2 u2 i4 u4 i8 u8 >i4 >u2 ?".split()
        for kind in kinds:
            with self.subTest(kind=kind):
                labels = np.array([0, 1, 1, 0, 1, 0]).astype(kind)
                self.write(pixels((6, 4, 4)), labels=labels)
                np.testing.assert_array_equal(self.check_samples()[1], labels.astype(np.int64))
                self.write(pixels((6, 4, 4)), labels=labels.reshape(6, 1))
                facts, found = self.check_samples()
                self.assertTrue(facts["class_labels"])
                np.testing.assert_array_equal(found, labels.astype(np.int64))

    def test_other_labels_are_numbers(self):
        for labels in (np.linspace(0, 1, 6), np.linspace(0, 1, 6, dtype=np.float16), np.eye(6, dtype=np.uint8),
                       np.linspace(-3, 5, 12, dtype=np.float32).reshape(6, 2)):
            self.write(pixels((6, 4, 4)), labels=labels)
            facts, found = self.check_samples()
            self.assertEqual((facts["class_labels"], facts["columns"]), (False, labels.size // 6))
            np.testing.assert_array_equal(found, labels.astype(np.float32).ravel())

    def test_labels_that_are_missing_were_minus_one_without_a_word(self):
        self.write(pixels((6, 4, 4)))
        self.refused("has no dataset /labels", "it has /images;", '; `labels`="" reads images without labels')
        self.refused("has no dataset /target", "/images", labels="target")
        np.testing.assert_array_equal(self.check_samples(labels="")[1], [-1] * 6)

    def test_labels_lie_next_to_the_images(self):
        self.write(pixels((6, 4, 4)), "train/images", np.arange(6), "train/labels")
        with h5py.File(self.path, "a") as file:
            file["labels"] = np.arange(6)[::-1]
        for images in ("train/images", "/train/images"):
            np.testing.assert_array_equal(self.check_samples(images, "beside")[1], np.arange(6))
        np.testing.assert_array_equal(self.check_samples("train/images", "labels")[1], np.arange(6)[::-1])
        with h5py.File(self.path, "a") as file:
            del file["train/labels"]
        self.refused("has no dataset /train/labels", images="train/images")

    def test_labels_need_not_be_read(self):
        self.write(pixels((6, 4, 4)), labels=np.arange(6))
        np.testing.assert_array_equal(self.check_samples(labels="")[1], [-1] * 6)

    def test_objects_that_our_own_parts_would_have_may_be_anything(self):
        self.write(pixels((6, 4, 4)), labels=np.arange(6))
        with h5py.File(self.path, "a") as file:
            file["classes"] = ["cat", "dog"]  # variable-length text, and too few
            file["rows"] = np.zeros((2, 2))
            file.create_group("files")
        self.check_samples()
        with h5py.File(self.path, "a") as file:
            del file["classes"]
            file["classes"] = np.array([b"cat", b"dog"])
        self.check_samples()

    def test_labels_that_do_not_fit_are_refused(self):
        for labels, words in ((np.arange(5), "5 labels, expected 6"), (np.zeros((6, 2, 2)), "3 dimensions"),
                              (np.array([b"a"] * 6), "does not hold numbers"), (np.int64(4), "0 dimensions")):
            self.write(pixels((6, 4, 4)), labels=labels)
            self.refused("/labels", words)

    def test_arrays_of_other_types_are_refused_by_name(self):
        for data, words in ((np.zeros((6, 4, 4), np.float32), "floating numbers of 32 bits"),
                            (np.zeros((6, 4, 4), np.int8), "signed numbers of 8 bits"),
                            (np.zeros((6, 4), np.uint16), "unsigned numbers of 16 bits"),
                            (np.zeros(6, [("a", "u1"), ("b", "u1")]), "compounds"), (np.array([b"a"] * 6), "bytes instead of pixels"),
                            (np.zeros((6, 4), bool), "truth values"), (np.uint8(3), "single value")):
            with self.subTest(words=words):
                self.write(data)
                self.refused("/images", words)

    def test_filters_that_are_not_known_are_refused_by_name(self):
        self.write(pixels((6, 40, 40)), compression="lzf")
        self.refused("/images has filter lzf (32000), expected none, deflate, shuffle, fletcher32 or zstd")
        self.write(pixels((6, 40, 40)), scaleoffset=0)
        self.refused("scaleoffset (6)")

    def test_what_is_no_array_in_this_file_is_refused(self):
        self.write(pixels((6, 4, 4)), name="x")
        self.refused("has no dataset /images", "/x")
        self.refused("/y", images="y")
        with h5py.File(self.path, "a") as file:
            file.create_group("group")
            file["soft"] = h5py.SoftLink("/x")
            file["outside"] = h5py.ExternalLink("other.h5", "/x")
            layout = h5py.VirtualLayout((6, 4, 4), np.uint8)
            layout[:] = h5py.VirtualSource("other.h5", "x", (6, 4, 4))
            file.create_virtual_dataset("virtual", layout)
            file.create_dataset("sides", (6, 0, 4), np.uint8)
        self.refused("open /group", images="group")
        self.refused("link to elsewhere", images="soft")
        self.refused("link to elsewhere", images="outside/x")
        self.refused("another file", images="virtual")
        self.refused("a sample without bytes", images="sides")

    def test_a_bit_that_flipped_in_a_guarded_chunk_is_found(self):
        for name in ("deflate", "fletcher32", "shuffle+deflate", "deflate+fletcher32"):
            for chunks in ((4, 8, 6), (4, 5, 4)):
                self.write(pixels((8, 8, 6)), chunks=chunks, **FILTERS[name])
                with h5py.File(self.path) as file:
                    places = [file["images"].id.get_chunk_info(i) for i in range(2)]
                for place in places:
                    for at in (0, place.size // 2, place.size - 1):
                        with open(self.path, "r+b") as file:
                            file.seek(place.byte_offset + at)
                            byte = file.read(1)[0]
                            file.seek(place.byte_offset + at)
                            file.write(bytes([byte ^ 4]))
                        self.refused("a.h5: chunk 0 (samples 0-7)", labels="")
                        with open(self.path, "r+b") as file:
                            file.seek(place.byte_offset + at)
                            file.write(bytes([byte]))
                self.check_samples()

    def test_a_chunk_that_decodes_to_fewer_bytes_crashed_the_hdf5_library(self):
        for filters in (FILTERS["deflate"], {"shuffle": True, "fletcher32": True, "compression": "gzip"}):
            for short, mask in ((zlib.compress(b"a" * 10), 0b110), (b"a" * 10, 0b111)):
                with h5py.File(self.path, "w") as file:
                    array = file.create_dataset("images", (64, 1024, 1024), np.uint8, chunks=(64, 512, 1024), **filters)
                    array.id.write_direct_chunk((0, 0, 0), short, filter_mask=mask if len(filters) > 1 else mask & 1)
                self.refused("a.h5: chunk 0 (samples 0-63)", labels="")

    def test_a_file_that_ends_early_is_refused(self):
        for options in ({}, {"chunks": (4, 8, 6)}, {"chunks": (4, 5, 4), "compression": "gzip"}):
            self.write(pixels((40, 8, 6)), **options)
            size = os.path.getsize(self.path)
            for end in range(size - 1, 0, -size // 9):
                os.truncate(self.path, end)
                self.refused("a.h5")

    def test_damaged_structures_give_an_error_or_the_right_number_of_samples(self):
        self.write(pixels((12, 8, 6)), chunks=(4, 5, 6), compression="gzip", labels=np.arange(12))
        with open(self.path, "rb") as file:
            whole = file.read()
        for at in range(0, len(whole), 37):
            damaged = bytearray(whole)
            damaged[at] ^= 0x55
            with open(self.path, "wb") as file:
                file.write(damaged)
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([PROBE, self.path, "images", "beside", f"{folder}/out"], capture_output=True,
                                      text=True, timeout=60)
                # HDF5 1.10 itself may crash over damaged structures; the library's own code must not.
                self.assertIn(done.returncode, (0, 65), f"byte {at}: {done.stderr}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""The reader of samples/python that needs no chunkhit must give what chunkhit.ImageDataset gives, and name what it cannot read.

Usage: plain_reader_test.py SAMPLES_FOLDER TOOLS_FOLDER"""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import scipy.sparse
from PIL import Image

import chunkhit

sys.path.insert(0, os.path.join(sys.argv[1], "python"))
import plain_reader

SAMPLE = os.path.join(sys.argv[1], "python/plain_reader.py")
PACK_IMAGES, PACK_MERGE, PACK_SPARSE = (os.path.join(sys.argv[2], name) for name in ("pack-images", "pack-merge", "pack-sparse"))
# Half of the images are smooth and the rest is noise, so that chunks are stored both ways.
COUNT, SIDES = 90, (21, 17)
FORMS = [("hdf5", "none"), ("hdf5", "deflate"), ("hdf5", "zstd"), ("shard", "none"), ("shard", "zstd"), ("shard", "photo")]


def write_images(folder, classes, mode):
    draw = np.random.default_rng(len(mode))
    shape = (*SIDES, 3) if mode == "RGB" else SIDES
    ramp = np.add.outer(np.arange(SIDES[0]), 3 * np.arange(SIDES[1]))
    for label in classes:
        os.makedirs(f"{folder}/{label}")
    for number in range(COUNT):
        smooth = (ramp + number).reshape(*SIDES, *[1] * (len(shape) - 2)) + np.zeros(shape)
        pixels = draw.integers(0, 256, shape) if number > COUNT // 2 else smooth
        Image.fromarray(pixels.astype(np.uint8), mode).save(f"{folder}/{classes[number % len(classes)]}/{number}.png")


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class PlainReader(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        for mode, classes in (("RGB", ["ant", "bee", "cat"]), ("L", ["cat", "ape"])):
            write_images(f"{cls.folder}/{mode}", classes, mode)

    def pack(self, mode, name, *flags):
        output = f"{self.folder}/{name}"
        run(PACK_IMAGES, f"{self.folder}/{mode}", "--output", output, "--order", "input", "--chunk-samples", "7",
            "--part-bytes", "40000", "--progress", "none", *flags)
        return output

    def assert_equal_to_ours(self, pack):
        ours = chunkhit.ImageDataset(pack)
        images, labels, classes = plain_reader.read_images(pack)
        np.testing.assert_array_equal(images, np.stack([ours[index][0] for index in range(len(ours))]))
        np.testing.assert_array_equal(labels, ours.labels())
        self.assertEqual((labels.dtype, classes), (ours.labels().dtype, list(ours.classes)))

    def test_every_container_and_codec_is_read(self):
        for container, codec in FORMS:
            for mode in ("RGB", "L"):
                for layout in ("nhwc", "nchw"):
                    with self.subTest(container=container, codec=codec, mode=mode, layout=layout):
                        flags = ["--container", container, "--codec", codec, "--layout", layout, "--channels", "rgb" if mode == "RGB" else "gray"]
                        self.assert_equal_to_ours(self.pack(mode, f"{mode}-{container}-{codec}-{layout}", *flags))

    def test_numbers_as_labels_are_read(self):
        with open(f"{self.folder}/numbers.csv", "w", encoding="utf-8") as table:
            table.write("file,x,y\n" + "".join(f"{'ant bee cat'.split()[n % 3]}/{n}.png,{n / 4},{-n}\n" for n in range(COUNT)))
        for container in ("hdf5", "shard"):
            pack = self.pack("RGB", f"numbers-{container}", "--labels", f"{self.folder}/numbers.csv", "--label-column", "x-y",
                             "--container", container)
            self.assert_equal_to_ours(pack)

    def test_a_merged_pack_has_the_ids_of_the_merged_classes(self):
        rgb = [self.pack(mode, f"source-{mode}", "--container", container, "--channels", "rgb")
               for mode, container in (("RGB", "hdf5"), ("L", "hdf5"))]
        run(PACK_MERGE, f"{self.folder}/merged", *rgb)
        self.assert_equal_to_ours(f"{self.folder}/merged")

    def test_ratings_are_read(self):
        with open(f"{self.folder}/ratings.csv", "w", encoding="utf-8") as table:
            table.write("user,item,rating\n" + "".join(f"{n % 13},{n % 7},{n % 5 + 1}\n" for n in range(91)))
        run(PACK_SPARSE, f"{self.folder}/ratings.csv", "--container", "hdf5", "--output", f"{self.folder}/ratings")
        ours = chunkhit.SparseDataset(f"{self.folder}/ratings").to_scipy()
        found = plain_reader.read_ratings(f"{self.folder}/ratings/part-00000.h5")
        self.assertGreater(found.nnz, 80)
        self.assertEqual((found != ours).nnz, 0)
        run(sys.executable, SAMPLE, f"{self.folder}/ratings", f"{self.folder}/ratings.npz")
        self.assertEqual((scipy.sparse.load_npz(f"{self.folder}/ratings.npz") != ours).nnz, 0)
        run(PACK_SPARSE, f"{self.folder}/ratings.csv", "--output", f"{self.folder}/shards")
        done = subprocess.run([sys.executable, SAMPLE, f"{self.folder}/shards"], stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "plain_reader.py: ratings in shards: pack-export writes them as "
                                                             "FILE.npz or FILE.csv\n"))

    def test_the_command_writes_an_npz(self):
        pack = self.pack("RGB", "command")
        done = subprocess.run([sys.executable, SAMPLE, pack, f"{self.folder}/out.npz"], capture_output=True, text=True,
                              env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{COUNT} images of (21, 17, 3), 3 classes", done.stdout)
        self.assertEqual(list(np.load(f"{self.folder}/out.npz")["classes"]), ["ant", "bee", "cat"])

    def test_images_of_their_own_sizes_are_an_error_that_names_the_way_out(self):
        pack = f"{self.folder}/own"
        run(PACK_IMAGES, f"{self.folder}/RGB", "--sizes", "own", "--output", pack)
        with self.assertRaisesRegex(ValueError, "own sizes; expected images of one shape: see pack-export"):
            plain_reader.read_images(pack)

    def test_a_damaged_chunk_is_an_error(self):
        pack = self.pack("RGB", "damaged", "--container", "shard", "--codec", "photo")
        with open(f"{pack}/part-00000.zst", "r+b") as file:
            file.seek(4096 + 20)
            file.write(b"\xff" * 16)
        with self.assertRaisesRegex(ValueError, "a chunk is damaged"):
            plain_reader.read_images(pack)

    def test_it_imports_nothing_of_ours(self):
        with open(SAMPLE, encoding="utf-8") as file:
            text = file.read()
        self.assertNotRegex(text, r"(?m)^\s*(import|from) chunkhit")
        self.assertLessEqual(len(text.splitlines()), 130)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

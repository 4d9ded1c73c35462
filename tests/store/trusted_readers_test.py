"""Parts must read back with readers that are not ours: h5py, h5dump, zstd, and a shard reader written from the page.

Usage: trusted_readers_test.py STORE_PROBE PLUGIN_FOLDER"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

PROBE, PLUGINS = sys.argv[1:3]
os.environ["HDF5_PLUGIN_PATH"] = PLUGINS  # before h5py loads the library

import h5py  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import shard_reader  # noqa: E402

SAMPLES, CHUNK_SAMPLES = 10, 4


def mix_bits(bits):
    """SplitMix64's finaliser, which makes the noise of known_parts.h."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def known_samples(height, width, channels, layout, chunk_samples=CHUNK_SAMPLES):
    s, y, x, c = np.meshgrid(*[np.arange(n, dtype=np.uint64) for n in (SAMPLES, height, width, channels)], indexing="ij")
    u = np.uint64
    noise = mix_bits((s << u(40)) + (y << u(24)) + (x << u(8)) + c)
    slope = s * u(7) + y * u(3) + x * u(2) + c * u(50)
    pixels = np.where(s // u(CHUNK_SAMPLES) % u(3) == 1, noise, slope).astype(np.uint8)
    return pixels if layout == "nhwc" else pixels.transpose(0, 3, 1, 2)


def known_labels(channels):
    if channels != 4:
        return np.arange(SAMPLES) % 3
    return np.arange(SAMPLES)[:, None] + np.arange(3)[None, :] / 4


def parts(pattern):
    found = sorted(glob.glob(os.path.join(FOLDER, pattern)))
    assert len(found) >= 6, pattern
    for path in found:
        kind, filter_name, layout, channels = os.path.splitext(os.path.basename(path))[0].split("-")
        yield path, filter_name, layout, int(channels)


FILES = [f"class/ä image {s * s}.jpg" for s in range(SAMPLES)]
CLASSES = ["cat", "dög", "a class with a longer name"]


class TrustedReaders(unittest.TestCase):
    def check_samples(self, part, filter_name, layout, channels):
        """Compares what an index says of the samples with what the probe wrote."""
        np.testing.assert_array_equal(part.labels, known_labels(channels))
        np.testing.assert_array_equal(part.rows, np.arange(SAMPLES) * 2 + 1)
        np.testing.assert_array_equal(part.mean, 0.5 + np.arange(channels) / 16)
        np.testing.assert_array_equal(part.std, 0.25 + np.arange(channels) / 16)
        self.assertEqual((part.files, part.codec, part.layout), (FILES, filter_name, layout))
        self.assertEqual(part.classes, [] if channels == 4 else CLASSES)
        self.assertEqual(part.label_columns, [f"column {i}" for i in range(3 if channels == 4 else 1)])
        self.assertEqual((part.pack_id, part.part_index), (0x0123456789ABCDEF, 7))

    def test_h5py_reads_the_pixels_of_every_layout_and_filter(self):
        for path, filter_name, layout, channels in parts("hdf5-*-*-[134].h5"):
            with self.subTest(path), h5py.File(path, "r") as file:
                images = file["images"]
                self.assertEqual(images.dtype, np.uint8)
                self.assertEqual(images.chunks, (CHUNK_SAMPLES,) + images.shape[1:])
                np.testing.assert_array_equal(images[:], known_samples(20, 17, channels, layout))
                self.assertEqual(list(images._filters), {"none": [], "deflate": ["gzip"], "zstd": ["32015"]}[filter_name])
                raw_chunks = [images.id.get_chunk_info(i).filter_mask for i in range(images.id.get_num_chunks())]
                self.assertEqual(raw_chunks, [0, 0, 0] if filter_name == "none" else [0, 1, 0])

    def test_h5py_reads_what_stands_beside_the_pixels(self):
        for path, filter_name, layout, channels in parts("hdf5-*-*-[134].h5"):
            with self.subTest(path), h5py.File(path, "r") as file:
                self.assertEqual(file["labels"].dtype, np.float32 if channels == 4 else np.int64)
                np.testing.assert_array_equal(file["labels"][:], known_labels(channels))
                np.testing.assert_array_equal(file["rows"][:], np.arange(SAMPLES) * 2 + 1)
                self.assertEqual(list(file["files"].asstr()[:]), FILES)
                if channels != 4:
                    self.assertEqual(list(file["classes"].asstr()[:]), CLASSES)
                self.assertEqual("classes" in file, channels != 4)
                attributes = dict(file["images"].attrs)
                self.assertEqual(attributes["layout"], layout)
                np.testing.assert_array_equal(attributes["mean"], 0.5 + np.arange(channels) / 16)
                np.testing.assert_array_equal(attributes["std"], 0.25 + np.arange(channels) / 16)
                advice = [attributes["suggested_rdcc_" + name] for name in ("nbytes", "nslots", "w0")]
                self.assertEqual(advice, [4 << 20, 521, 0.5])
                root = dict(file.attrs)
                columns = [f"column {i}" for i in range(3 if channels == 4 else 1)]
                self.assertEqual(list(file["label_columns"].asstr()[:]), columns)
                self.assertEqual(root, {"chunkhit_format": 3 if filter_name == "none" else 2, "pack_id": "0123456789abcdef", "part_index": 7,
                                        "filter": filter_name})

    def test_the_index_leads_to_the_chunks_that_the_library_finds(self):
        for path, filter_name, layout, channels in parts("hdf5-*-*-[134].h5"):
            with self.subTest(path), h5py.File(path, "r") as file:
                images, part = file["images"].id, shard_reader.Hdf5Part(path)
                self.assertEqual(len(part.chunks), images.get_num_chunks())
                for i, (offset, stored, raw, first, samples, checksum, filtered) in enumerate(part.chunks):
                    info = images.get_chunk_info(i)
                    self.assertEqual((info.byte_offset, info.size), (offset, stored))
                    self.assertEqual((raw, first), (CHUNK_SAMPLES * part.sample_bytes, i * CHUNK_SAMPLES))
                    self.assertEqual(samples, min(CHUNK_SAMPLES, SAMPLES - first))
                    self.assertEqual(filtered, int(info.filter_mask == 0 and filter_name != "none"))
                    if filter_name != "none":  # else hashes of samples, which the reader compared
                        self.assertEqual(shard_reader.xxh3(part.data[offset:offset + stored]), checksum)

    def test_the_index_repeats_what_h5py_reads(self):
        for path, filter_name, layout, channels in parts("hdf5-*-*-[134].h5"):
            with self.subTest(path):
                part = shard_reader.Hdf5Part(path)
                self.check_samples(part, filter_name, layout, channels)

    def test_the_tools_of_hdf5_do_not_mind_the_index(self):
        for filter_name in ("none", "deflate"):
            path, copy = (os.path.join(FOLDER, name) for name in (f"hdf5-{filter_name}-nhwc-3.h5", "repacked.h5"))
            whole = shard_reader.Hdf5Part(path).data
            for command in (["h5ls", "-r", path], ["h5dump", "-H", path], ["h5stat", path], ["h5repack", path, copy],
                            ["h5diff", path, copy]):
                # They load nothing of ours; with the sanitizer's library, h5repack never ends after its work.
                env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
                run = subprocess.run(command, capture_output=True, text=True, env=env)
                self.assertEqual((run.returncode, run.stderr), (0, ""), command)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), whole)
            with h5py.File(copy, "r") as file:
                np.testing.assert_array_equal(file["images"][:], known_samples(20, 17, 3, "nhwc"))

    def test_h5py_cuts_the_index_off_when_it_writes(self):
        path = os.path.join(FOLDER, "changed.h5")
        shutil.copy(os.path.join(FOLDER, "hdf5-none-nhwc-3.h5"), path)
        with h5py.File(path, "r+") as file:
            file["labels"][0] = 2
            file["more"] = np.arange(1000)
        self.assertRaises(ValueError, shard_reader.Hdf5Part, path)
        with h5py.File(path, "r") as file:
            np.testing.assert_array_equal(file["images"][:], known_samples(20, 17, 3, "nhwc"))
            np.testing.assert_array_equal(file["more"][:], np.arange(1000))

    def test_h5dump_reads_zstd_chunks(self):
        path = os.path.join(FOLDER, "hdf5-zstd-nhwc-3.h5")
        run = subprocess.run(["h5dump", "-d", "/images", "-s", "1,0,0,0", "-c", "1,1,1,3", path], capture_output=True)
        numbers = ", ".join(str(value) for value in known_samples(20, 17, 3, "nhwc")[1, 0, 0])
        self.assertIn(numbers, run.stdout.decode())

    def test_the_plugin_also_writes(self):
        path = os.path.join(FOLDER, "written.h5")
        pixels = known_samples(20, 17, 3, "nhwc")
        with h5py.File(path, "w") as file:
            file.create_dataset("images", data=pixels, chunks=(4, 20, 17, 3), compression=32015, compression_opts=(1,))
            self.assertLess(file["images"].id.get_storage_size(), pixels.nbytes)
        with h5py.File(path, "r") as file:
            np.testing.assert_array_equal(file["images"][:], pixels)

    def test_the_plugin_refuses_damaged_chunks(self):
        path = os.path.join(FOLDER, "damaged.h5")
        with open(os.path.join(FOLDER, "hdf5-zstd-nhwc-3.h5"), "rb") as file:
            data = bytearray(file.read())
        with h5py.File(os.path.join(FOLDER, "hdf5-zstd-nhwc-3.h5"), "r") as file:
            address = file["images"].id.get_chunk_info(0).byte_offset
        for at in range(address, address + 12):
            changed = bytes(data[:at]) + bytes([data[at] ^ 1]) + bytes(data[at + 1:])
            with open(path, "wb") as file:
                file.write(changed)
            with h5py.File(path, "r") as file, self.assertRaises(OSError):
                file["images"][0]

    def test_zstd_accepts_shards_and_gives_their_bytes(self):
        for path, filter_name, layout, channels in parts("shard-*-*-[134].zst"):
            with self.subTest(path):
                self.assertEqual(subprocess.run(["zstd", "-tq", path], capture_output=True).returncode, 0)
                found = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout
                expected = known_samples(20, 17, channels, layout)
                self.assertEqual(len(found), expected.nbytes)
                if filter_name != "photo":
                    self.assertEqual(found, expected.tobytes())

    def test_the_shard_page_is_enough_to_read_a_shard(self):
        for path, filter_name, layout, channels in parts("shard-*-*-[134].zst"):
            with self.subTest(path):
                shard = shard_reader.Shard(path)
                np.testing.assert_array_equal(shard.samples(), known_samples(20, 17, channels, layout))
                self.check_samples(shard, filter_name, layout, channels)
                flags = [chunk[6] for chunk in shard.chunks]
                self.assertEqual(flags, [0, 0, 0] if filter_name == "none" else [1, 0, 1])

    def test_raw_frames_of_several_blocks_are_read_by_arithmetic_and_by_zstd(self):
        path = os.path.join(FOLDER, "shard-large.zst")
        expected = known_samples(300, 400, 3, "nhwc")
        np.testing.assert_array_equal(shard_reader.Shard(path).samples(), expected)
        self.assertEqual(subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout, expected.tobytes())

    def test_chunks_of_several_frames_are_read_by_the_page(self):
        shard = shard_reader.Shard(os.path.join(FOLDER, "shard-frames.zst"))
        np.testing.assert_array_equal(shard.samples(), known_samples(150, 200, 3, "nhwc"))
        self.assertEqual([len(frames) for frames in shard.frames], [4, 1, 2])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        subprocess.run([PROBE, FOLDER], check=True)
        unittest.main(argv=sys.argv[:1])

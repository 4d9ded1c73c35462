"""Parts of matrices must read back with readers that are not ours (a shard reader written from the pages, h5py with scipy), and ours
must read what h5py and scipy write.

Usage: matrix_readers_test.py MATRIX_PROBE"""
import glob
import os
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np
import scipy.sparse as sp

PROBE = sys.argv[1]

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from optional import optional  # noqa: E402
import shard_reader  # noqa: E402
from known_matrices import CHUNK_ROWS, COLUMNS, ITEMS, ROWS, USERS, known_matrix  # noqa: E402

anndata = optional("anndata")


def parts(pattern):
    found = sorted(glob.glob(os.path.join(FOLDER, pattern)))
    assert len(found) >= 4, pattern
    for path in found:
        _, kind, matrices, last = os.path.splitext(os.path.basename(path))[0].split("-")
        yield path, kind, int(matrices), last


def csr_of(group):
    """As scipy's users do it."""
    return sp.csr_matrix((group["data"][:], group["indices"][:], group["indptr"][:]), group.attrs["shape"])


def read_with_probe(path, x="X"):
    run = subprocess.run([PROBE, "read", path, x], capture_output=True, text=True)
    return run.returncode, run.stdout, run.stderr


class MatrixReaders(unittest.TestCase):
    def assert_probe_reads(self, path, expected, x="X", users=(), items=()):
        """Our reader gives the rows of a scipy matrix, sorted, and the names."""
        code, text, error = read_with_probe(path, x)
        lines = text.splitlines()
        self.assertEqual((code, lines[:1]), (0, [f"columns {expected.shape[1]}"]), error)
        self.assertEqual([line[5:] for line in lines if line.startswith("user ")], list(users))
        self.assertEqual([line[5:] for line in lines if line.startswith("item ")], list(items))
        rows = [line.split()[1:] for line in lines if line.split()[0] == "x"]
        self.assertEqual(len(rows), expected.shape[0])
        dense = expected.toarray() if sp.issparse(expected) else expected
        for row, entries in zip(dense, rows):
            found = {int(entry.split(":")[0]): np.float32(entry.split(":")[1]) for entry in entries}
            self.assertEqual(sorted(found), [int(entry.split(":")[0]) for entry in entries])
            self.assertEqual(found, {int(i): np.float32(row[i]) for i in np.flatnonzero(row)})

    def assert_probe_refuses(self, path, *words):
        code, _, error = read_with_probe(path)
        self.assertEqual(code, 1)
        for word in words:
            self.assertIn(word, error)

    def test_the_pages_are_enough_to_read_a_shard_of_matrices(self):
        for path, kind, matrices, filter_name in parts("shard-*.zst"):
            with self.subTest(path):
                shard = shard_reader.Shard(path)
                self.assertEqual((shard.kind, shard.codec, shard.matrices, shard.columns), (2, filter_name, matrices, COLUMNS))
                for matrix in range(matrices):
                    np.testing.assert_array_equal(shard.matrix(matrix).toarray(), known_matrix(kind, matrix))
                self.assertEqual((shard.files, shard.classes), (USERS, ITEMS))
                np.testing.assert_array_equal(shard.rows, np.arange(ROWS) * 2 + 1)
                labels = np.arange(ROWS) * 5 if kind != "u16" else np.arange(ROWS)[:, None] + np.arange(2) / 4
                np.testing.assert_array_equal(shard.labels, labels)
                flags = [chunk[6] for chunk in shard.chunks]
                self.assertEqual(flags, [int(filter_name == "zstd")] * 3)
                self.assertEqual(subprocess.run(["zstd", "-tq", path]).returncode, 0)

    def test_scipy_reads_the_ratings_of_an_anndata_file(self):
        for path, kind, matrices, _ in parts("hdf5-*-csr.h5"):
            with self.subTest(path), h5py.File(path, "r") as file:
                x = csr_of(file["X"])
                np.testing.assert_array_equal(x.toarray().astype(np.float32), known_matrix(kind, 0))
                self.assertTrue(x.has_canonical_format)
                self.assertEqual([file["X"][name].dtype for name in ("indices", "indptr")], [np.int32, np.int32])
                data = {"none": np.uint8, "u8": np.uint8, "half": np.float32, "u16": np.uint16, "f32": np.float32}[kind]
                self.assertEqual(file["X/data"].dtype, data)
                self.assertEqual("held_out" in file["layers"], matrices == 2)
                if matrices == 2:
                    np.testing.assert_array_equal(csr_of(file["layers/held_out"]).toarray().astype(np.float32), known_matrix(kind, 1))
                self.assertEqual(file["X/indices"].compression, "gzip")
                self.assertTrue(file["X/indices"].shuffle)
                attributes = dict(file.attrs)
                scale = 0.5 if kind == "half" else 1
                expected = {"encoding-type": "anndata", "encoding-version": "0.1.0", "chunkhit_matrix": 1, "part_index": 7,
                            "pack_id": "0123456789abcdef", "matrices": matrices, "scale": scale, "chunk_rows": CHUNK_ROWS,
                            "value_type": "u8" if kind == "half" else kind}
                self.assertEqual(attributes, expected)

    def test_the_file_has_what_anndata_asks_for(self):
        """https://anndata.readthedocs.io/en/stable/fileformat-prose.html, checked by hand."""
        for path, kind, matrices, _ in parts("hdf5-*-csr.h5"):
            with self.subTest(path), h5py.File(path, "r") as file:
                def encoding(name):
                    return file[name].attrs["encoding-type"], file[name].attrs["encoding-version"]
                for name in ("layers", "obsm", "obsp", "varm", "varp", "uns"):
                    self.assertEqual(encoding(name), ("dict", "0.1.0"))
                for name in ["X"] + ["layers/held_out"] * (matrices == 2):
                    self.assertEqual(encoding(name), ("csr_matrix", "0.1.0"))
                    self.assertEqual(file[name].attrs["shape"].tolist(), [ROWS, COLUMNS])
                for frame, names in (("obs", USERS), ("var", ITEMS)):
                    self.assertEqual(encoding(frame), ("dataframe", "0.2.0"))
                    index = file[frame].attrs["_index"]
                    self.assertEqual(encoding(f"{frame}/{index}"), ("string-array", "0.2.0"))
                    self.assertTrue(h5py.check_string_dtype(file[f"{frame}/{index}"].dtype).length is None)
                    self.assertEqual(file[f"{frame}/{index}"].asstr()[:].tolist(), names)
                    columns = list(file[frame].attrs["column-order"])
                    self.assertEqual(sorted(columns + [index]), sorted(file[frame]))
                    for column in columns:
                        self.assertEqual(encoding(f"{frame}/{column}"), ("array", "0.2.0"))
                        self.assertEqual(len(file[f"{frame}/{column}"]), len(names))
                obs = {"none": ["row"], "u16": ["row", "label_0", "label_1"]}.get(kind, ["row", "label"])
                self.assertEqual(list(file["obs"].attrs["column-order"]), obs)
                np.testing.assert_array_equal(file["obs/row"][:], np.arange(ROWS) * 2 + 1)
                np.testing.assert_array_equal(file["var/ratings"][:], np.arange(COLUMNS) % 9)
                if kind == "u16":
                    self.assertEqual(file["uns/label_columns"].asstr()[:].tolist(), ["a/label 0", "a/label 1"])
                    np.testing.assert_array_equal(file["obs/label_1"][:], np.arange(ROWS) + 0.25)

    def test_anndata_and_scipy_take_rows_and_columns_of_our_parts(self):
        """They fail where indptr and indices are of different types."""
        for path, kind, matrices, _ in parts("hdf5-*-csr.h5"):
            with self.subTest(path):
                data = anndata.read_h5ad(path)
                for matrix, rows in enumerate([data.X, *data.layers.values()]):
                    self.assert_subsets(rows, known_matrix(kind, matrix))
                known = known_matrix(kind, 0)
                mask = np.arange(ROWS) % 3 == 0
                np.testing.assert_array_equal(data[mask].X.toarray(), known[mask])
                np.testing.assert_array_equal(data[[0, 1]].X.toarray(), known[:2])
                np.testing.assert_array_equal(data[[1, 0], ITEMS[3:9]].X.toarray(), known[[1, 0], 3:9])
                self.assertEqual(list(data[USERS[4]].obs_names), [USERS[4]])
                with h5py.File(path, "r") as file:
                    self.assert_subsets(csr_of(file["X"]), known)
                backed = anndata.read_h5ad(path, backed="r")
                np.testing.assert_array_equal(backed[2:5].X.toarray(), known[2:5])
                backed.file.close()

    def assert_subsets(self, found, known):
        mask = known.sum(axis=1) > np.median(known.sum(axis=1))
        for rows, columns in (([0, 1], slice(None)), (mask, slice(None)), (slice(2, 7), slice(None)), (slice(None), [4, 2]),
                              (slice(None), slice(1, 5)), (mask, 3)):
            np.testing.assert_array_equal(found[rows][:, columns].toarray().ravel(), known[rows][:, columns].ravel())
        np.testing.assert_array_equal(found.tocoo().toarray(), known)
        np.testing.assert_array_equal(found.tocsc().toarray(), known)
        np.testing.assert_array_equal(sp.vstack([found, found]).tocsr()[[0, -1]].toarray(), known[[0, -1]])

    def write_anndata(self, matrix, name="external.h5ad", path="X", **options):
        """As anndata 0.8 writes it."""
        file_path = os.path.join(FOLDER, name)
        with h5py.File(file_path, "w") as file:
            group = file.create_group(path)
            group.attrs["encoding-type"] = {"csr": "csr_matrix", "csc": "csc_matrix"}[matrix.format]
            group.attrs["encoding-version"] = "0.1.0"
            group.attrs["shape"] = matrix.shape
            for part in ("data", "indices", "indptr"):
                group.create_dataset(part, data=getattr(matrix, part), **options)
            for frame, count in (("obs", matrix.shape[0]), ("var", matrix.shape[1])):
                table = file.create_group(frame)
                table.attrs["_index"] = "names"
                table.create_dataset("names", data=[f"{frame} ä{i}" for i in range(count)], dtype=h5py.string_dtype())
        return file_path

    def test_our_reader_takes_csr_and_csc_of_every_type_and_storage(self):
        random = np.random.default_rng(5)
        for form in ("csr", "csc"):
            for dtype in (np.uint8, np.int16, np.int64, np.float32, np.float64, np.bool_, ">f4", ">i4"):
                for options in ({}, {"compression": "lzf"}, {"compression": "gzip", "shuffle": True, "chunks": (7,), "fletcher32": True}):
                    matrix = sp.random(40, 30, 0.2, form, random_state=random, data_rvs=lambda n: random.integers(1, 100, n)).astype(np.dtype(dtype).newbyteorder("="))
                    path = self.write_anndata(matrix, **options)
                    if dtype in (">f4", ">i4"):
                        with h5py.File(path, "r+") as file:
                            del file["X/data"]
                            file["X/data"] = matrix.data.astype(dtype)
                    with self.subTest(form=form, dtype=dtype, options=options):
                        self.assert_probe_reads(path, matrix.astype(np.float32), users=[f"obs ä{i}" for i in range(40)],
                                                items=[f"var ä{i}" for i in range(30)])

    def test_our_reader_sorts_rows(self):
        matrix = sp.csr_matrix((np.array([1, 2, 3, 4.0]), np.array([5, 2, 9, 0]), np.array([0, 3, 4])), (2, 10))
        self.assertFalse(matrix.has_sorted_indices)
        path = self.write_anndata(matrix)
        names = {"users": ["obs ä0", "obs ä1"], "items": [f"var ä{i}" for i in range(10)]}
        self.assert_probe_reads(path, matrix, **names)

    def test_our_reader_takes_indices_of_64_bits_layers_and_old_attributes(self):
        matrix = sp.random(6, 5, 0.5, "csr", random_state=1)
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.uint64)
        matrix = matrix.astype(np.float32)
        path = os.path.join(FOLDER, "layer.h5ad")
        with h5py.File(path, "w") as file:
            for name in ("layers/counts", "raw/X"):
                group = file.create_group(name)
                group.attrs["h5sparse_format"], group.attrs["h5sparse_shape"] = np.bytes_("csr"), matrix.shape
                for part in ("data", "indices", "indptr"):
                    group[part] = getattr(matrix, part)
        self.assert_probe_reads(path, matrix, "layers/counts")
        self.assert_probe_reads(path, matrix, "/raw/X")
        self.assert_probe_refuses(path, "has no /X")

    def test_our_reader_takes_more_rows_than_the_file_has_bytes(self):
        rows = 300_000
        matrix = sp.csr_matrix(([1, 2, 3], ([5, 7, rows - 1], [2, 0, 3])), (rows, 4), np.float32)
        path = os.path.join(FOLDER, "sparse.h5ad")
        for form in ("csr", "csc"):
            made = matrix.asformat(form)
            with h5py.File(path, "w") as file:
                group = file.create_group("X")
                group.attrs["encoding-type"], group.attrs["shape"] = f"{form}_matrix", made.shape
                for part in ("data", "indices", "indptr"):
                    group.create_dataset(part, data=getattr(made, part), compression="gzip", compression_opts=9)
            self.assertLess(os.path.getsize(path), rows)
            text = read_with_probe(path)[1]
            found = [(row, line) for row, line in enumerate(text.splitlines()[1:]) if line != "x"]
            self.assertEqual(found, [(5, "x 2:1"), (7, "x 0:2"), (rows - 1, "x 3:3")])

    def test_our_reader_takes_dense_arrays_without_their_zeros(self):
        dense = np.where(np.arange(3000).reshape(60, 50) % 7 == 0, np.arange(3000).reshape(60, 50), 0)
        for chunks in (None, (7, 9), (1, 50), (60, 1)):
            path = os.path.join(FOLDER, "dense.h5ad")
            with h5py.File(path, "w") as file:
                file.create_dataset("X", data=dense.astype(np.int32), chunks=chunks)
                file.create_group("obs").attrs["_index"] = "ids"
                file["obs/ids"] = np.arange(60) * 11
            self.assert_probe_reads(path, dense, users=[str(i * 11) for i in range(60)])

    def test_our_reader_refuses_what_does_not_fit(self):
        good = sp.random(20, 15, 0.3, "csr", random_state=2).astype(np.float32)
        changes = {
            "index 15 of 15": lambda x: x["indices"].__setitem__(3, 15),
            "index -1 of 15": lambda x: x["indices"].__setitem__(3, -1),
            "does not rise": lambda x: x["indptr"].__setitem__(4, x["indptr"][5] + 1),
            "does not rise from 0": lambda x: x["indptr"].__setitem__(0, 1),
            "does not rise from 0 to the number of entries": lambda x: x["indptr"].__setitem__(20, 3),
            "twice": lambda x: x["indices"].__setitem__(1, x["indices"][0]),
            "not a finite": lambda x: x["data"].__setitem__(0, np.nan),
            "numbers in indptr, expected 31": lambda x: x.attrs.__setitem__("shape", (30, 15)),
            "rows and 0 columns": lambda x: x.attrs.__setitem__("shape", (20, 0)),
            "a shape that is not two counts": lambda x: x.attrs.__setitem__("shape", (-1, 15)),
            "expected 1152921504606846977": lambda x: x.attrs.__setitem__("shape", (1 << 60, 15)),
            "expected csr_matrix": lambda x: x.attrs.__setitem__("encoding-type", "coo"),
            "lacks data, indices or indptr": lambda x: x.__delitem__("indptr"),
        }
        for word, change in changes.items():
            path = self.write_anndata(good)
            with h5py.File(path, "r+") as file:
                change(file["X"])
            with self.subTest(word):
                self.assert_probe_refuses(path, word)

    def test_our_reader_refuses_links_filters_and_numbers_that_it_cannot_hold(self):
        good = sp.random(20, 15, 0.3, "csr", random_state=2).astype(np.int64)
        path = self.write_anndata(good)
        with h5py.File(path, "r+") as file:
            file["X/data"][0] = (1 << 24) + 1
        self.assert_probe_refuses(path, "of 2^24 or more")
        self.assert_probe_refuses(self.write_anndata(good, scaleoffset=0), "compressed by scaleoffset (6)")
        path = self.write_anndata(good)
        with h5py.File(path, "r+") as file:
            del file["X/data"]
            file["X/data"] = h5py.ExternalLink("elsewhere.h5", "/X/data")
        self.assert_probe_refuses(path, "is a link to elsewhere")
        with h5py.File(path, "r+") as file:
            del file["X"]
            file["X"] = h5py.SoftLink("/obs")
        self.assert_probe_refuses(path, "/X is a link to elsewhere")

    def test_names_that_all_lie_in_one_place_are_refused_before_they_fill_memory(self):
        path = self.write_anndata(sp.csr_matrix((50000, 3), dtype=np.float32))
        with h5py.File(path, "r+") as file:
            del file["obs/names"]
            # A value that HDF5 writes once for all: what is not written is the fill value.
            long_text = np.array(["x" * 1_000_000], dtype=h5py.string_dtype())
            names = file.create_dataset("obs/names", (50000,), dtype=h5py.string_dtype())
            names[0] = long_text[0]
            address = names.id.get_offset()
        with open(path, "r+b") as stream:
            stream.seek(address)
            reference = stream.read(16)
            stream.seek(address)
            stream.write(reference * 50000)
        self.assert_probe_refuses(path, "names are larger than their file")

    def test_parts_of_ours_that_were_changed_are_refused(self):
        changes = {
            "version 4": lambda file: file.attrs.__setitem__("chunkhit_matrix", 4),
            "/layers/times": lambda file: file.attrs.__setitem__("chunkhit_matrix", 2),
            "scale": lambda file: file.attrs.__setitem__("scale", -1.0),
            "times 0.25": lambda file: file["X/data"].__setitem__(0, 0.3),
            "unknown value type": lambda file: file.attrs.__setitem__("value_type", "u4"),
            "other matrices": lambda file: file.__delitem__("layers/held_out"),
            "entries, expected 10": lambda file: (file.__delitem__("obs/row"), file.__setitem__("obs/row", np.arange(9))),
        }
        for word, change in changes.items():
            path = os.path.join(FOLDER, "changed.h5")
            with open(os.path.join(FOLDER, "hdf5-half-2-csr.h5"), "rb") as good, open(path, "wb") as copy:
                copy.write(good.read())
            with h5py.File(path, "r+") as file:
                if "0.25" in word:
                    file.attrs["scale"] = 0.25
                change(file)
            with self.subTest(word):
                self.assert_probe_refuses(path, word)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as FOLDER:
        subprocess.run([PROBE, "write", FOLDER], check=True)
        unittest.main(argv=sys.argv[:1])

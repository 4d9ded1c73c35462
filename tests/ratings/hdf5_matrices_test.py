"""HDF5 files of AnnData must read as anndata and scipy read them, or be refused with the reason.

Usage: hdf5_matrices_test.py RATINGS_PROBE"""
import itertools
import os
import struct
import sys
import unittest

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from optional import optional  # noqa: E402
from read_ratings import FormatsTest, probe, random_matrix  # noqa: E402

anndata = optional("anndata")


class AnnData(FormatsTest):
    def write(self, matrix, **options):
        data = anndata.AnnData(matrix, **options)
        data.obs_names = [f"cell {i}" for i in range(matrix.shape[0])]
        data.var_names = [f"gene{i}" for i in range(matrix.shape[1])]
        return data

    def check(self, data, expected, **options):
        self.assert_equal(probe("hdf5", self.path("a.h5ad"), **options), expected, users=list(data.obs_names),
                          items=list(data.var_names))

    def test_what_anndata_writes(self):
        for layout, compression, dtype in itertools.product(("csr", "csc", "dense"), (None, "gzip", "lzf"),
                                                            ("f4", "f8", "i4", "i8", "u1", "u2")):
            matrix = random_matrix(50, 30, dtype=dtype)
            data = self.write(matrix.toarray() if layout == "dense" else matrix.asformat(layout), dtype=dtype)
            data.write_h5ad(self.path("a.h5ad"), compression=compression)
            with self.subTest(layout, compression=compression, dtype=dtype):
                self.check(data, matrix)

    def test_layers_and_raw(self):
        x, counts = random_matrix(20, 10), random_matrix(20, 10, seed=2)
        data = self.write(x.copy())
        data.raw = data
        data.layers["counts"] = counts.tocsc()
        data.X = data.X * 2
        data.write_h5ad(self.path("a.h5ad"))
        self.check(data, 2 * x)
        self.check(data, counts, layer="counts")
        self.check(data, x, layer="raw")
        self.check(data, counts, layer="/layers/counts")
        self.assertEqual(probe("hdf5", self.path("a.h5ad"), transpose="yes").shape, (10, 20))
        self.assert_refused(probe("hdf5", self.path("a.h5ad"), layer="none"), "has no /layers/none; it has /layers/counts")

    def test_many_chunks(self):
        matrix = random_matrix(2000, 300, 0.5)
        data = self.write(matrix)
        data.write_h5ad(self.path("a.h5ad"), compression="gzip")
        self.check(data, matrix)
        with h5py.File(self.path("a.h5ad"), "a") as file:
            del file["X"]
            dense = file.create_dataset("X", data=matrix.toarray(), chunks=(7, 11), compression="gzip", shuffle=True)
            dense.attrs["encoding-type"] = "array"
        self.check(data, matrix)

    def test_names_that_come_twice(self):
        data = anndata.AnnData(random_matrix(4, 3, 1.0))
        data.obs_names, data.var_names = ["a", "b", "c", "d"], ["x", "x", "x"]
        data.write_h5ad(self.path("a.h5ad"))
        data.var_names_make_unique()
        ratings = probe("hdf5", self.path("a.h5ad"))
        self.check(data, data.X)
        self.assertIn("2 names of columns", ratings.facts["notice"][0])

    def test_names_that_all_lead_to_one_long_text_are_refused(self):
        data = anndata.AnnData(random_matrix(200, 3))
        data.obs_names = ["a" * 3000] + [str(i) for i in range(199)]
        data.write_h5ad(self.path("a.h5ad"))
        with h5py.File(self.path("a.h5ad")) as file:
            first = file["obs/_index"].id.get_offset()
        with open(self.path("a.h5ad"), "r+b") as file:
            file.seek(first)
            place = file.read(16)
            file.seek(first)
            file.write(place * 200)
        self.assert_refused(probe("hdf5", self.path("a.h5ad")), "names", "than their file")

    def test_missing_and_empty_names_are_told(self):
        matrix = random_matrix(4, 3, 1.0)
        data = self.write(matrix)
        data.obs_names = ["a", "", "b", "c"]
        data.write_h5ad(self.path("a.h5ad"))
        with h5py.File(self.path("a.h5ad"), "a") as file:
            del file["var"]
            file.create_group("var")
        ratings = probe("hdf5", self.path("a.h5ad"))
        self.assert_equal(ratings, matrix, users=["a", "", "b", "c"])
        self.assertIn("1 names of rows are empty", ratings.facts["notice"][0])
        self.assertIn("/var: has no names", ratings.facts["notice"][1])

    def test_categories_and_numbers_as_names(self):
        matrix = random_matrix(3, 2, 1.0)
        self.write(matrix).write_h5ad(self.path("a.h5ad"))
        with h5py.File(self.path("a.h5ad"), "a") as file:
            del file["obs/_index"], file["var/_index"]
            group = file.create_group("obs/_index")
            group.attrs["encoding-type"] = "categorical"
            group["codes"] = np.array([2, 0, 1], np.int8)
            group["categories"] = ["one", "two", "three"]
            file["var/_index"] = np.array([7, -3])
        self.assert_equal(probe("hdf5", self.path("a.h5ad")), matrix, users=["three", "one", "two"], items=["7", "-3"])

    def test_files_of_anndata_before_0_7(self):
        matrix = random_matrix(6, 4, 0.5)
        with h5py.File(self.path("a.h5ad"), "w") as file:
            group = file.create_group("X")
            group.attrs["h5sparse_format"], group.attrs["h5sparse_shape"] = "csr", matrix.shape
            group["data"], group["indices"], group["indptr"] = matrix.data, matrix.indices, matrix.indptr
            file["obs"] = np.array([(f"c{i}", i) for i in range(6)], [("index", "S3"), ("n", "i4")])
            file["var"] = np.array([(f"g{i}", i) for i in range(4)], [("index", "S2"), ("n", "f8")])
        self.assert_equal(probe("hdf5", self.path("a.h5ad")), matrix, users=[f"c{i}" for i in range(6)],
                          items=[f"g{i}" for i in range(4)])

    def test_what_is_refused(self):
        matrix = random_matrix(6, 4, 0.5)

        def change(name, value, **options):
            def apply(file):
                del file[name]
                file.create_dataset(name, data=value, **options)
            return apply

        def link_away(file):
            del file["X/data"]
            file["X/data"] = h5py.ExternalLink("/etc/passwd", "/data")

        def set_encoding(file):
            file["X"].attrs["encoding-type"] = "dataframe"

        def set_shape(file):
            file["X"].attrs["shape"] = [6, 2]

        def leave_out_a_chunk(file):
            del file["X/data"]
            never_filled = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            never_filled.set_chunk((5,))
            never_filled.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            h5py.h5d.create(file["X"].id, b"data", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple(matrix.data.shape), never_filled)
            file["X/data"][5:] = matrix.data[5:]

        def leave_out_a_chunk_that_would_be_zeros(file):
            del file["X/indices"]
            file.create_dataset("X/indices", matrix.indices.shape, "i4", chunks=(5,))[5:] = matrix.indices[5:]

        def lose_the_index(file):
            file["obs"].attrs["_index"] = "_indes"
            file["obs"].move("_index", "names")

        falling = matrix.indptr.copy()
        falling[3] = 0
        cases = {
            "must not fall": change("X/indptr", falling), "expected 7": change("X/indptr", matrix.indptr[:-1]),
            "index -": change("X/indices", matrix.indices - 4), "values and": change("X/data", matrix.data[1:]),
            "whole numbers": change("X/indices", matrix.indices.astype(float)), "expected 2": set_shape,
            "does not hold numbers": change("X/data", matrix.data.astype(complex)),
            "link to elsewhere": link_away, "dataframe": set_encoding,
            "expected 6": change("obs/_index", ["a"]), "infinity": change("X/data", matrix.data.astype(float) * 1e300),
            "NaN": change("X/data", matrix.data * np.nan), "lacks data, indices": lambda file: file["X"].pop("indices"),
            "chunks, expected 3": leave_out_a_chunk,
            "has 2 chunks at their positions, expected 3": leave_out_a_chunk_that_would_be_zeros, "index is \"_indes\"": lose_the_index,
        }
        for words, apply in cases.items():
            with self.subTest(words):
                self.write(matrix).write_h5ad(self.path("a.h5ad"))
                with h5py.File(self.path("a.h5ad"), "a") as file:
                    apply(file)
                self.assert_refused(probe("hdf5", self.path("a.h5ad")), words)


    def test_chunks_that_share_a_position_are_refused(self):
        matrix = random_matrix(60, 40, 0.5)
        self.write(matrix).write_h5ad(self.path("a.h5ad"))
        with h5py.File(self.path("a.h5ad"), "a") as file:
            del file["X/indices"]
            file["X"].create_dataset("indices", data=matrix.indices, chunks=(601,), compression="gzip")
        with open(self.path("a.h5ad"), "rb") as file:
            text = file.read()
        sides = struct.pack("<II", 601, 4)
        self.assertEqual(text.count(sides), 1)
        with open(self.path("a.h5ad"), "wb") as file:
            file.write(text.replace(sides, struct.pack("<II", 1 << 20, 4)))
        self.assert_refused(probe("hdf5", self.path("a.h5ad")), "/X/indices has 1 chunks at their positions, expected 2")

    def test_lzf_is_read_as_without_compression(self):
        matrix = random_matrix(900, 60, 0.2)
        names = {"users": [f"cell {i}" for i in range(900)], "items": [f"gene{i}" for i in range(60)]}
        self.write(matrix).write_h5ad(self.path("whole.h5ad"), compression="lzf")
        self.assert_equal(probe("hdf5", self.path("whole.h5ad")), matrix, **names)
        for options in ({"shuffle": True}, {"fletcher32": True}, {"shuffle": True, "fletcher32": True}):
            with self.subTest(options):
                self.write(matrix).write_h5ad(self.path("a.h5ad"))
                with h5py.File(self.path("a.h5ad"), "a") as file:
                    for name in ("data", "indices", "indptr"):
                        del file["X"][name]
                        file["X"].create_dataset(name, data=getattr(matrix, name), chunks=(100,), compression="lzf", **options)
                self.assert_equal(probe("hdf5", self.path("a.h5ad")), matrix, **names)
        self.write(matrix.toarray()).write_h5ad(self.path("dense.h5ad"), compression="lzf")
        self.assert_equal(probe("hdf5", self.path("dense.h5ad")), matrix, **names)

    def test_damaged_lzf_is_refused_or_gives_as_many_numbers(self):
        matrix = random_matrix(900, 60, 0.2)
        self.write(matrix).write_h5ad(self.path("a.h5ad"))
        with h5py.File(self.path("a.h5ad"), "a") as file:
            del file["X/data"]
            data = file["X"].create_dataset("data", data=matrix.data, chunks=(2000,), compression="lzf")
            chunks = [data.id.get_chunk_info(i) for i in range(data.id.get_num_chunks())]
        with open(self.path("a.h5ad"), "rb") as file:
            whole = file.read()
        refused, draw = 0, np.random.default_rng(1)
        for turn in range(60):
            damaged = bytearray(whole)
            chunk = chunks[turn % len(chunks)]
            damaged[chunk.byte_offset + draw.integers(chunk.size)] ^= 1 << int(draw.integers(8))
            with open(self.path("damaged.h5ad"), "wb") as file:
                file.write(damaged)
            read = probe("hdf5", self.path("damaged.h5ad"))
            if isinstance(read, str):
                refused += "LZF stream" in read
            else:
                self.assertLessEqual(len(read.triplets), matrix.nnz)
        self.assertGreater(refused, 5)

    def test_lzf_of_another_chunk_size_is_refused(self):
        matrix = random_matrix(900, 60, 0.2)
        self.write(matrix).write_h5ad(self.path("a.h5ad"))
        with h5py.File(self.path("a.h5ad"), "a") as file:
            del file["X/data"]
            file["X"].create_dataset("data", data=matrix.data, chunks=(2000,), compression="lzf")
        with open(self.path("a.h5ad"), "rb") as file:
            whole = file.read()
        parameters = np.array([4, 261, 2000 * matrix.data.itemsize], "<u4").tobytes()
        self.assertEqual(whole.count(parameters), 1)
        with open(self.path("a.h5ad"), "wb") as file:
            file.write(whole.replace(parameters, np.array([4, 261, 100], "<u4").tobytes()))
        self.assert_refused(probe("hdf5", self.path("a.h5ad")), "LZF chunks of 100 bytes")


class OtherHdf5(FormatsTest):
    def write_cells(self, cells, group="matrix", legacy=False):
        """As Cell Ranger writes cells × features: compressed columns of features × cells."""
        csc = cells.T.tocsc()
        ids = np.array([f"ENSG{i}" for i in range(cells.shape[1])], "S")
        with h5py.File(self.path("a.h5"), "a") as file:
            below = file.create_group(group)
            below.create_dataset("data", data=csc.data, compression="gzip", chunks=(16,))
            below.create_dataset("indices", data=csc.indices.astype("i8"), compression="gzip", chunks=(16,))
            below["indptr"], below["shape"] = csc.indptr.astype("i8"), np.array(csc.shape, "i4")
            below["barcodes"] = np.array([f"AAAC{i}-1" for i in range(cells.shape[0])], "S")
            if legacy:
                below["genes"], below["gene_names"] = ids, np.array(["SYMBOL"] * len(ids), "S")
            else:
                below["features/id"], below["features/name"] = ids, np.array(["SYMBOL"] * len(ids), "S")
                below["features/feature_type"] = np.array(["Gene Expression"] * (len(ids) - 4) + ["Antibody Capture"] * 4, "S")
        return {"users": [f"AAAC{i}-1" for i in range(cells.shape[0])], "items": [name.decode() for name in ids]}

    def test_cells_of_10x_genomics_are_users(self):
        for shape in ((12, 30), (30, 12), (20, 20)):
            for legacy in (False, True):
                if os.path.exists(self.path("a.h5")):
                    os.remove(self.path("a.h5"))
                cells = random_matrix(*shape, dtype=np.int32)
                names = self.write_cells(cells, "GRCh38" if legacy else "matrix", legacy)
                with self.subTest(shape, legacy=legacy):
                    self.assert_equal(probe("hdf5", self.path("a.h5")), cells, **names)
                    self.assertEqual(probe("hdf5", self.path("a.h5"), transpose="yes").shape, shape[::-1])

    def test_genomes_of_10x_genomics_are_layers(self):
        human, mouse = random_matrix(12, 30, dtype=np.int32), random_matrix(12, 20, dtype=np.int32, seed=2)
        self.write_cells(human, "GRCh38", legacy=True)
        names = self.write_cells(mouse, "mm10", legacy=True)
        self.assert_refused(probe("hdf5", self.path("a.h5")), "has matrices of 2 genomes, GRCh38, mm10: say which one")
        self.assert_equal(probe("hdf5", self.path("a.h5"), layer="mm10"), mouse, **names)
        self.assert_equal(probe("hdf5", self.path("a.h5"), layer="/mm10"), mouse, **names)
        self.assert_refused(probe("hdf5", self.path("a.h5"), layer="rn7"), "has no /layers/rn7")

    def test_broken_files_of_10x_genomics(self):
        def broken(change, *expected):
            if os.path.exists(self.path("a.h5")):
                os.remove(self.path("a.h5"))
            self.write_cells(random_matrix(12, 30, dtype=np.int32))
            with h5py.File(self.path("a.h5"), "a") as file:
                change(file["matrix"])
            self.assert_refused(probe("hdf5", self.path("a.h5")), *expected)

        def replace(name, values):
            def change(group):
                del group[name]
                if values is not None:
                    group[name] = values
            return change

        broken(replace("shape", None), "/matrix does not say its shape")
        broken(replace("shape", np.array([30, 13])), "/matrix has 13 numbers in indptr, expected 14")
        broken(replace("shape", np.array([29, 12])), "has 30 names, expected 29")
        broken(replace("barcodes", np.array(["A"], "S")), "/matrix/barcodes has 1 names, expected 12")
        broken(replace("features/feature_type", np.array(["A"], "S")), "feature_type has 1 names, expected 30")
        broken(replace("indices", np.full(3, 30)), "values and 3 indices")

    def test_a_list_of_molecules_says_what_it_is(self):
        with h5py.File(self.path("a.h5"), "w") as file:
            for name in ("barcode_idx", "umi", "count", "feature_idx", "gem_group"):
                file[name] = np.arange(5)
            file["barcodes"] = np.array(["AAAC"], "S")
        self.assert_refused(probe("hdf5", self.path("a.h5")), "is a molecule_info.h5 of 10x Genomics", "filtered_feature_bc_matrix.h5")

    def test_a_group_of_arrays(self):
        matrix = random_matrix(12, 9)
        with h5py.File(self.path("a.h5"), "w") as file:
            group = file.create_group("item_user_ratings")
            group["data"], group["indices"], group["indptr"] = matrix.data.astype(">f8"), matrix.indices, matrix.indptr
        ratings = probe("hdf5", self.path("a.h5"))
        self.assertEqual(ratings.shape, (12, matrix.indices.max() + 1))
        self.assert_equal(ratings, matrix[:, : ratings.shape[1]])
        self.assertIn("does not say its shape", ratings.facts["notice"][0])

    def test_truths_are_numbers(self):
        matrix = random_matrix(12, 9)
        with h5py.File(self.path("a.h5"), "w") as file:
            file["m/data"], file["m/indices"], file["m/indptr"] = matrix.data != 0, matrix.indices, matrix.indptr
            file["m/shape"] = matrix.shape
        self.assert_equal(probe("hdf5", self.path("a.h5")), matrix != 0)

    def test_what_has_no_matrix(self):
        with h5py.File(self.path("a.h5"), "w") as file:
            file["images"] = np.zeros((3, 2))
        self.assert_refused(probe("hdf5", self.path("a.h5")), "no matrix", "/images")


unittest.main(argv=sys.argv[:1])

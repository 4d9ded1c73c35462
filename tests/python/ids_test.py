"""Ids as arrays, and the row or column of an id, beside pandas."""
import pickle

import h5py
import numpy as np
import pytest

import chunkhit

from error_test import raised


@pytest.fixture(scope="module", params=["shard", "hdf5"])
def readers(request, tmp_path_factory):
    """A loader and a dataset of users 1000, 1003, ... with items "i0", "i1", ..."""
    folder = tmp_path_factory.mktemp("ids")
    random = np.random.default_rng(3)
    users = 1000 + 3 * random.permutation(500)
    (folder / "r.csv").write_text("user,item\n" + "".join(f"{u},i{i}\n" for u in users for i in random.permutation(60)[:3]))
    chunkhit.pack_sparse(folder / "r.csv", folder / "pack", container=request.param)
    return chunkhit.SparseLoader(folder / "pack"), chunkhit.SparseDataset(folder / "pack")


def test_ids_of_integers_are_an_int64_array_and_texts_are_objects(readers):
    for reader in readers:
        rows, columns = reader.row_ids(), reader.column_ids()
        assert rows.dtype == np.int64 and columns.dtype == object and type(columns[0]) is str
        assert [str(each) for each in rows] == [reader.row_id(row) for row in range(500)]
        assert columns.tolist() == [reader.column_id(column) for column in range(reader.column_count)]


def test_finds_the_row_of_every_id(readers):
    for reader in readers:
        ids = reader.row_ids()
        order = np.random.default_rng(1).permutation(500)
        for asked in (ids[order], ids[order].astype(np.uint64), ids[order].tolist(), ids[order].astype(str)):
            found = reader.rows_of(asked)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, order)
        items = reader.column_ids()
        np.testing.assert_array_equal(reader.columns_of(items), np.arange(len(items)))
        assert reader.row_of(ids[17]) == reader.row_of(str(ids[17])) == reader.row_of(int(ids[17])) == 17
        assert reader.column_of(items[5]) == 5


def test_an_unknown_id_is_a_key_error_or_minus_one(readers):
    for reader in readers:
        for unknown in (1001, "1003 ", "", -1, 2**63, "\ud800"):
            with pytest.raises(KeyError):
                reader.row_of(unknown)
        with pytest.raises(KeyError):
            reader.column_of(0)
        known = reader.row_id(7)
        np.testing.assert_array_equal(reader.rows_of([5, known, "x", 2**64]), [-1, 7, -1, -1])
        assert reader.rows_of([]).tolist() == [] and reader.rows_of(np.zeros(0)).tolist() == []


@pytest.mark.parametrize("ids", ["1003", 1003, [1.5], [None], [[1003]], [True], np.ones(2), b"1"])
def test_refuses_what_is_no_id(readers, ids):
    assert "expected" in raised("usage", readers[0].rows_of, ids)
    assert "id: expected a text or a whole number, found 1.0" in raised("usage", readers[0].row_of, 1.0)


def test_rows_of_several_packs_are_counted_through(tmp_path):
    for name, ratings in (("a", ["u1,x", "u2,y"]), ("b", ["u2,x", "u3,y"])):
        (tmp_path / f"{name}.csv").write_text("user,item\n" + "\n".join(ratings) + "\n")
    chunkhit.pack_sparse(tmp_path / "a.csv", tmp_path / "a")
    chunkhit.pack_sparse(tmp_path / "b.csv", tmp_path / "b", reuse_ids=tmp_path / "a")
    both = chunkhit.SparseDataset([tmp_path / "a", tmp_path / "b"])
    ids = both.row_ids().tolist()
    assert sorted(ids) == ["u1", "u2", "u2", "u3"]
    assert [both.row_of(user) for user in ("u1", "u2", "u3")] == [ids.index(user) for user in ("u1", "u2", "u3")]
    assert pickle.loads(pickle.dumps(both)).row_of("u3") == ids.index("u3")


def test_a_matrix_without_names_says_so(tmp_path):
    with h5py.File(tmp_path / "plain.h5ad", "w") as file:
        file["X"] = np.eye(4, dtype=np.float32)
    dataset = chunkhit.SparseDataset(tmp_path / "plain.h5ad")
    assert dataset.row_id(2) == ""
    for ask in (dataset.row_ids, dataset.column_ids, lambda: dataset.row_of("2"), lambda: dataset.columns_of([2])):
        assert "plain.h5ad: its " in (text := raised("usage", ask)) and "have no ids: use their numbers, 0 to 3" in text

"""SparseLoader beside scipy."""
import pickle

import numpy as np
import pytest

import chunkhit

TYPES = {"dense_f32": np.float32, "dense_f16": np.float16, "dense_u8": np.uint8}


@pytest.mark.parametrize("format", TYPES)
def test_gives_scipys_dense_rows(ratings, expected_rows, format):
    loader = chunkhit.SparseLoader(ratings[0] / "whole", batch_size=25, shuffle="window", seed=5, format=format)
    scale = loader.value_scale if format == "dense_u8" else 1
    for epoch in range(2):
        seen = []
        for batch in loader.epoch(epoch):
            assert batch.x.dtype == TYPES[format] and batch.held_out is None and batch.labels is None
            np.testing.assert_array_equal(batch.x * scale, expected_rows(loader, batch.rows))
            seen += batch.rows.tolist()
        assert sorted(seen) == list(range(loader.size))


def test_values_beyond_half_floats_are_refused_when_the_loader_is_made(tmp_path):
    (tmp_path / "r.csv").write_text("user,item,value\n" + "".join(f"{at % 9},{at},{at * 1000.5}\n" for at in range(1, 90)))
    chunkhit.pack_sparse(tmp_path / "r.csv", tmp_path / "pack")
    for options in ({}, {"scale": 0.8}):
        with pytest.raises(chunkhit.Error, match="dense_f16 holds numbers up to 65504"):
            chunkhit.SparseLoader(tmp_path / "pack", format="dense_f16", **options)
    for options in ({"scale": 0.5}, {"binarize": True}, {"normalize": "l2"}):
        (batch,) = chunkhit.SparseLoader(tmp_path / "pack", format="dense_f16", **options)
        assert np.isfinite(batch.x).all() and batch.x.any()


def test_half_floats_were_refused_for_a_value_that_only_another_pack_of_the_split_has(tmp_path):
    ratings = [(user, item) for user in range(40) for item in range(10)]
    large = None
    for _ in range(2):
        rows = [f"{user},{item},{1e5 if user == large else 3}" for user, item in ratings]
        (tmp_path / "r.csv").write_text("user,item,value\n" + "\n".join(rows) + "\n")
        chunkhit.pack_sparse(tmp_path / "r.csv", tmp_path / "out", split_by="users", test=0.2, force=True)
        large = chunkhit.SparseDataset(tmp_path / "out/train").row_ids()[0]
    batches = list(chunkhit.SparseLoader(tmp_path / "out/test", format="dense_f16", held_out=True))
    assert sum(int((batch.held_out == 3).sum()) for batch in batches) > 0
    with pytest.raises(chunkhit.Error, match="dense_f16 holds numbers up to 65504"):
        list(chunkhit.SparseLoader(tmp_path / "out/train", format="dense_f16"))


def test_gives_scipys_csr_rows(ratings, expected_rows):
    loader = chunkhit.SparseLoader(ratings[0] / "whole", batch_size=25, shuffle="global", format="csr")
    for batch in loader:
        scipys = batch.x.to_scipy()
        assert np.shares_memory(scipys.data, batch.x.values)
        scipys.check_format(full_check=True)
        np.testing.assert_array_equal(scipys.toarray(), expected_rows(loader, batch.rows))
        np.testing.assert_array_equal(batch.x.to_dense(), scipys.toarray())


def test_pairs_what_is_known_with_what_is_held_out(ratings, expected_rows):
    loader = chunkhit.SparseLoader(ratings[0] / "split" / "test", batch_size=25)
    assert loader.has_held_out
    for batch in loader:
        np.testing.assert_array_equal(batch.x + batch.held_out, expected_rows(loader, batch.rows))
        assert (batch.held_out != 0).any(axis=1).all()


def test_serves_x_alone_where_held_out_is_not_wanted(ratings):
    loader = chunkhit.SparseLoader(ratings[0] / "split" / "test", held_out=False)
    assert not loader.has_held_out and next(iter(loader)).held_out is None


def test_binarizes_scales_and_normalises(ratings, expected_rows):
    loader = chunkhit.SparseLoader(ratings[0] / "whole", binarize=True, scale=3, normalize="l2")
    for batch in loader:
        x = (expected_rows(loader, batch.rows) != 0).astype(np.float64) * 3
        np.testing.assert_allclose(batch.x, x / np.linalg.norm(x, axis=1, keepdims=True), rtol=1e-6)


def test_dense_arrays_cannot_be_written_to(ratings):
    batch = next(iter(chunkhit.SparseLoader(ratings[0] / "whole")))
    with pytest.raises(ValueError, match="read-only"):
        batch.x[0, 0] = 1


@pytest.mark.parametrize("format", TYPES)
def test_what_is_written_to_a_writable_batch_is_in_no_later_one(ratings, expected_rows, format):
    loader = chunkhit.SparseLoader(ratings[0] / "whole", batch_size=25, format=format, writable=True, prefetch=1, threads=1)
    scale = loader.value_scale if format == "dense_u8" else 1
    for epoch in range(4):
        for batch in loader.epoch(epoch):
            np.testing.assert_array_equal(batch.x * scale, expected_rows(loader, batch.rows))
            batch.x[:] = 9


def test_held_batches_keep_their_rows(ratings, expected_rows):
    loader = chunkhit.SparseLoader(ratings[0] / "whole", batch_size=25, prefetch=1, threads=1, shuffle="global")
    held = [batch for epoch in range(3) for batch in loader.epoch(epoch)]
    expected = [expected_rows(loader, batch.rows) for batch in held]
    del loader
    for batch, rows in zip(held, expected):
        np.testing.assert_array_equal(batch.x, rows)


def test_counts_the_ratings_of_items(ratings):
    loader = chunkhit.SparseLoader(ratings[0] / "whole")
    _, matrix = ratings
    own = [int(loader.column_id(column)[1:]) for column in range(loader.column_count)]
    np.testing.assert_array_equal(loader.item_counts(), np.diff(matrix.tocsc().indptr)[own])


def test_numbers_of_rows_and_counts_were_unsigned_which_no_tensor_is(ratings):
    loader = chunkhit.SparseLoader(ratings[0] / "whole", batch_size=5)
    batch = next(iter(loader))
    assert batch.rows.dtype == loader.item_counts().dtype == (batch.rows + np.arange(5)).dtype == np.int64
    assert not batch.rows.flags.owndata


def test_goes_on_where_a_state_was_taken(ratings):
    options = dict(batch_size=25, shuffle="window", seed=5)
    loader = chunkhit.SparseLoader(ratings[0] / "whole", **options)
    left = loader.epoch(2)
    next(left)
    state = loader.state_dict()
    other = chunkhit.SparseLoader(ratings[0] / "whole", **options)
    other.load_state_dict(state)
    for mine, theirs in zip(left, other, strict=True):
        np.testing.assert_array_equal(mine.x, theirs.x)
        np.testing.assert_array_equal(mine.rows, theirs.rows)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_a_batch_is_x_and_held_out(ratings, kind):
    loaders = chunkhit if kind == "numpy" else pytest.importorskip("chunkhit.torch")
    for pack, has_held_out in (("split/test", True), ("split/train", False)):
        batch = next(iter(loaders.SparseLoader(ratings[0] / pack, batch_size=10)))
        x, held_out = batch
        assert x is batch.x and held_out is batch.held_out and (held_out is not None) == has_held_out
        again = pickle.loads(pickle.dumps(batch))
        assert type(again) is chunkhit.SparseBatch and again.rows.tolist() == batch.rows.tolist() and again.index == 0
        moved = type(batch)(*(part for part in batch))  # as torch and Lightning make named tuples again
        assert moved.x is x and moved.held_out is held_out and moved._asdict() == {"x": x, "held_out": held_out}

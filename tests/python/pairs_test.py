"""Pairs of SparseLoader: each rating once, in the described order, with negatives that its user has not rated."""
import os
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import chunkhit

from error_test import raised

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from described_order import GLOBAL, NONE, WINDOW, AliasTables, batches_of, negatives_of, order_of, sampled_order_of, streamed  # noqa: E402

SHUFFLES = {"none": NONE, "window": WINDOW, "global": GLOBAL}
ROWS = 16  # of a chunk


def write_matrix(path, matrix):
    """Rows and columns keep their numbers, also rows without ratings."""
    ad = pytest.importorskip("h5py")
    with ad.File(path, "w") as file:
        x = file.create_group("X")
        x.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": matrix.shape})
        for name, array in (("data", matrix.data.astype(np.float32)), ("indices", matrix.indices), ("indptr", matrix.indptr)):
            x[name] = array


def rows_of(paths):
    """All rows of X as a sorted CSR matrix of scipy."""
    matrix = chunkhit.SparseDataset(paths, format="csr").to_scipy().tocsr()
    matrix.sort_indices()
    return matrix


def counts_of(matrix, rows=ROWS):
    """The ratings of each chunk of so many rows."""
    return [int(matrix.indptr[min(first + rows, matrix.shape[0])] - matrix.indptr[first]) for first in range(0, matrix.shape[0], rows)]


def pairs_of(loader, epoch=0):
    """Each batch of an epoch: users, items, values, negatives."""
    found = []
    for batch in loader.epoch(epoch):
        users, items, values, negatives = batch.x
        assert isinstance(batch.x, chunkhit.Pairs) and batch.held_out is None and batch.times is None
        assert (users.dtype, items.dtype, values.dtype, negatives.dtype) == (np.int64, np.int64, np.float32, np.int64)
        assert users.shape == items.shape == values.shape == negatives.shape[:1]
        np.testing.assert_array_equal(users, batch.rows)
        found.append([each.copy() for each in batch.x])
    return found


def joined(batches):
    return [np.concatenate(parts) for parts in zip(*batches)]


def assert_ratings(batches, matrix, ratings):
    """Batches are these ratings of the matrix, in this order."""
    users, items, values, _ = joined(batches)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    np.testing.assert_array_equal(users, rows[ratings])
    np.testing.assert_array_equal(items, matrix.indices[ratings])
    np.testing.assert_array_equal(values, matrix.data[ratings].astype(np.float32))


@pytest.fixture(scope="module")
def holes(tmp_path_factory):
    """A file of a matrix that begins and ends with rows without ratings, of which the first chunk is."""
    folder = tmp_path_factory.mktemp("pairs")
    matrix = sp.random(1200, 70, 0.1, random_state=4, format="lil")
    for first, end in ((0, 600), (1100, 1200)):
        matrix[first:end] = 0
    matrix = matrix.tocsr()
    matrix.eliminate_zeros()
    matrix.data = np.random.default_rng(1).integers(1, 11, matrix.nnz).astype(np.float32) / 2
    write_matrix(folder / "holes.h5ad", matrix)
    return folder / "holes.h5ad", matrix


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("options", [dict(chunk_rows=ROWS), dict(chunk_rows=ROWS, codec="none"), dict(container="hdf5"),
                                     dict(chunk_rows=ROWS, part_bytes=1 << 12)], ids=str)
def test_an_epoch_has_each_rating_once_in_the_described_order(ratings, tmp_path, options, shuffle):
    chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "out", **options)
    matrix = rows_of(tmp_path / "out")
    assert matrix.nnz == ratings[1].nnz
    parts = [part["rows"] for part in chunkhit.pack_info(tmp_path / "out")["parts"]]
    assert (len(parts) > 1) == ("part_bytes" in options)
    ends = np.cumsum(parts)
    counts = [count for first, end in zip(ends - parts, ends) for count in counts_of(matrix[first:end], options.get("chunk_rows", 1 << 20))]
    for cache in ("decoded", "none"):
        loader = chunkhit.SparseLoader(tmp_path / "out", format="pairs", batch_size=101, shuffle=shuffle, seed=3, window_chunks=3,
                                       cache=cache)
        assert (loader.size, loader.epoch_samples, len(loader)) == (matrix.nnz, matrix.nnz, -(-matrix.nnz // 101))
        for epoch in (0, 2):
            found = pairs_of(loader, epoch)
            assert_ratings(found, matrix, order_of(SHUFFLES[shuffle], 3, 3, epoch, counts))
            assert found[0][3].shape == (101, 0)


@pytest.mark.parametrize("shuffle", ["none", "window"])
def test_chunks_without_ratings_were_loaded_ahead(tmp_path, shuffle):
    cells = sp.lil_matrix((60 * 256, 9))
    for row in (3, 30 * 256, 59 * 256 + 255):
        cells[row, row % 9] = 1
    write_matrix(tmp_path / "few.h5ad", cells.tocsr())
    loader = chunkhit.SparseLoader(tmp_path / "few.h5ad", format="pairs", batch_size=1, shuffle=shuffle, window_chunks=4, cache="none")
    for epoch in range(2):
        assert sorted(int(batch.rows[0]) for batch in loader.epoch(epoch)) == [3, 30 * 256, 59 * 256 + 255]
    assert 3 <= loader.stats().chunk_fetches < 60  # of a few epochs, as some are made ahead; an epoch visits 60 chunks


@pytest.mark.parametrize("container", ["shard", "hdf5"])
def test_times_of_pairs_are_given_where_they_are_asked_for(ratings, tmp_path, container):
    header, *lines = (ratings[0] / "ratings.csv").read_text().splitlines()
    timed = [f"{header},timestamp", *(f"{line},{1_500_000_000 + at * 37 % 100_000}" for at, line in enumerate(lines))]
    (tmp_path / "timed.csv").write_text("\n".join(timed) + "\n")
    chunkhit.pack_sparse(tmp_path / "timed.csv", tmp_path / "out", keep_times=True, container=container)
    rows = chunkhit.SparseDataset(tmp_path / "out", format="csr")[:]
    found = list(chunkhit.SparseLoader(tmp_path / "out", format="pairs", batch_size=101, negatives=2, pair_times=True))
    times = np.concatenate([batch.times for batch in found])
    assert times.dtype == np.int64 and len(times) == len(lines)
    np.testing.assert_array_equal(times, rows.times)
    for batch, other in zip(found, chunkhit.SparseLoader(tmp_path / "out", format="pairs", batch_size=101, negatives=2)):
        assert other.times is None
        for one, two in zip(batch.x, other.x):
            np.testing.assert_array_equal(one, two)
    chunkhit.pack_sparse(tmp_path / "timed.csv", tmp_path / "without")
    assert next(iter(chunkhit.SparseLoader(tmp_path / "without", format="pairs", pair_times=True))).times is None
    with pytest.raises(chunkhit.Error, match="pair_times: for format pairs"):
        chunkhit.SparseLoader(tmp_path / "out", format="csr", pair_times=True)


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_rows_and_chunks_without_ratings(holes, shuffle):
    path, matrix = holes
    counts = counts_of(matrix, 256)
    assert len(counts) == 5 and counts[:2] == [0, 0] and (np.diff(matrix.indptr) == 0).sum() >= 700
    options = dict(format="pairs", batch_size=50, shuffle=shuffle, seed=8, window_chunks=2)
    assert_ratings(pairs_of(chunkhit.SparseLoader(path, **options), 1), matrix, order_of(SHUFFLES[shuffle], 8, 2, 1, counts))
    if shuffle == "global":
        return
    ranks = [pairs_of(chunkhit.SparseLoader(path, rank=rank, world_size=2, **options), 1) for rank in range(2)]
    order = streamed(lambda stream: order_of(SHUFFLES[shuffle], 8, 2, 1, counts, stream), 2, 50)
    for rank, batches in enumerate(ranks):
        positions = batches_of(len(order), 50, rank, 2, True, False, 1, 8, 1, 0, True)
        assert_ratings(batches, matrix, [order[position] for batch in positions for position in batch])


def test_a_matrix_without_ratings_is_an_error(tmp_path):
    write_matrix(tmp_path / "none.h5ad", sp.csr_matrix((5, 4), dtype=np.float32))
    assert "none.h5ad: holds no ratings" in raised("bad_data", chunkhit.SparseLoader, tmp_path / "none.h5ad", format="pairs")


def test_a_list_of_packs_is_one_source(ratings, tmp_path):
    lines = (ratings[0] / "ratings.csv").read_text().splitlines()
    paths = [tmp_path / "0", tmp_path / "1"]
    for number, path in enumerate(paths):
        users = [line for line in lines[1:] if int(line.split(",")[0][1:]) % 2 == number]
        (tmp_path / f"{number}.csv").write_text("\n".join([lines[0], *users, ""]))
        chunkhit.pack_sparse(tmp_path / f"{number}.csv", path, chunk_rows=ROWS, reuse_ids=ratings[0] / "whole" / "items.csv")
    matrix = rows_of(paths)
    counts = [count for path in paths for count in counts_of(rows_of(path))]
    loader = chunkhit.SparseLoader(paths, format="pairs", batch_size=64, shuffle="window", window_chunks=2, seed=5)
    assert_ratings(pairs_of(loader), matrix, order_of(WINDOW, 5, 2, 0, counts))


@pytest.mark.parametrize("power", [0, 0.75, 1])
@pytest.mark.parametrize("path", ["whole", "split/test"])
def test_negatives_are_those_described_and_never_of_the_user(ratings, path, power):
    """Those of split/test are not held out either."""
    path = ratings[0] / path
    matrix = rows_of(path)
    owned = matrix.toarray() != 0
    if path.name == "test":
        held_out = chunkhit.SparseDataset(path)[np.arange(matrix.shape[0])][1]
        assert (held_out != 0).sum() > 500
        owned |= held_out != 0
    options = dict(format="pairs", batch_size=77, negatives=5, negatives_power=power, seed=9)
    loader = chunkhit.SparseLoader(path, shuffle="none", **options)
    users, items, _, negatives = joined(pairs_of(loader, 3))
    assert not owned[users[:, None], negatives].any() and owned[users, items].all()
    tables = AliasTables([int(count) for count in loader.item_counts()], power) if power else None
    for rating in range(0, matrix.nnz, 7):
        own = np.flatnonzero(owned[users[rating]]).tolist()
        assert negatives[rating].tolist() == negatives_of(own, matrix.shape[1], 5, 9, 3, rating, tables=tables)
    by_rating = {(user, item): each for user, item, each in zip(users.tolist(), items.tolist(), negatives.tolist())}
    shuffled = joined(pairs_of(chunkhit.SparseLoader(path, shuffle="global", threads=3, cache="none", **{**options, "batch_size": 30}), 3))
    assert by_rating == {(user, item): each for user, item, each in zip(*(shuffled[part].tolist() for part in (0, 1, 3)))}
    other = joined(pairs_of(chunkhit.SparseLoader(path, shuffle="none", **options), 4))[3]
    assert (other != negatives).mean() > 0.8
    if path.name == "test":
        wanted = joined(pairs_of(chunkhit.SparseLoader(path, held_out=False, **options), 3))
        assert owned[wanted[0][:, None], wanted[3]].any()


def test_columns_of_four_bytes(tmp_path):
    matrix = sp.random(40, 70_000, 0.0005, random_state=7, format="csr", dtype=np.float32)
    matrix.sort_indices()
    write_matrix(tmp_path / "wide.h5ad", matrix)
    found = pairs_of(chunkhit.SparseLoader(tmp_path / "wide.h5ad", format="pairs", negatives=4, seed=2))
    assert_ratings(found, matrix, range(matrix.nnz))
    users, _, _, negatives = joined(found)
    for rating in range(0, matrix.nnz, 100):
        assert negatives[rating].tolist() == negatives_of(matrix[users[rating]].indices.tolist(), 70_000, 4, 2, 0, rating)


@pytest.mark.parametrize("power", [0, 1])
def test_negatives_have_their_distribution(ratings, power):
    """Of each user, by chi-square; the seed is fixed."""
    loader = chunkhit.SparseLoader(ratings[0] / "whole", format="pairs", negatives=400, negatives_power=power, seed=1)
    matrix = rows_of(ratings[0] / "whole")
    users, _, _, negatives = joined(pairs_of(loader))
    weights = loader.item_counts().astype(float) ** power
    sums = []
    for user in range(0, 60):
        others = np.setdiff1d(np.arange(matrix.shape[1]), matrix[user].indices)
        counts = np.bincount(negatives[users == user].ravel(), minlength=matrix.shape[1])[others]
        expected = counts.sum() * weights[others] / weights[others].sum()
        statistic, freedom = ((counts - expected) ** 2 / expected).sum(), len(others) - 1
        assert abs(statistic - freedom) < 5 * np.sqrt(2 * freedom)
        sums.append((statistic - freedom) / np.sqrt(2 * freedom))
    assert abs(np.mean(sums)) < 0.6


@pytest.mark.parametrize("power", [0, 1])
def test_users_with_nearly_all_items_get_what_is_left_and_with_all_an_error(tmp_path, power):
    items = 300
    lines = [f"{user},{item},1\n" for user in range(3) for item in range(items) if user == 2 or item != 7 * (user + 1)]
    lines = [line for line in lines if not line.startswith("2,")] + ["2,7,1\n", "2,14,1\n"]
    (tmp_path / "a.csv").write_text("user,item,rating\n" + "".join(lines))
    chunkhit.pack_sparse(tmp_path / "a.csv", tmp_path / "nearly", id_order="sorted")
    options = dict(format="pairs", negatives=3, negatives_power=power, batch_size=100)
    loader = chunkhit.SparseLoader(tmp_path / "nearly", **options)
    ids, matrix = loader.column_ids(), rows_of(tmp_path / "nearly")
    users, _, _, negatives = joined(pairs_of(loader))
    for user in (0, 1):
        assert (ids[negatives[users == loader.row_of(user)]] == 7 * (user + 1)).all()
    tables = AliasTables([int(count) for count in loader.item_counts()], power) if power else None
    for rating in range(0, 40):
        own = matrix[users[rating]].indices.tolist()
        assert negatives[rating].tolist() == negatives_of(own, items, 3, 0, 0, rating, tables=tables)

    (tmp_path / "b.csv").write_text("user,item,rating\n" + "".join([*lines, *(f"9,{item},1\n" for item in range(items))]))
    chunkhit.pack_sparse(tmp_path / "b.csv", tmp_path / "all", id_order="sorted")
    loader = chunkhit.SparseLoader(tmp_path / "all", **options)
    message = raised("usage", pairs_of, loader)
    assert f"negatives: row {loader.row_of(9)} has all items" in message and "take negatives 0, or pack without this user" in message
    assert len(joined(pairs_of(chunkhit.SparseLoader(tmp_path / "all", format="pairs")))[0]) == len(lines) + items


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("drop", [False, True])
def test_ranks_share_an_epoch_and_states_resume_it(ratings, shuffle, drop):
    path = ratings[0] / "whole"
    matrix = rows_of(path)
    options = dict(format="pairs", batch_size=32, shuffle=shuffle, seed=6, window_chunks=4, negatives=2,
                   rank_remainder="drop" if drop else "pad", drop_last=drop)
    ranks = [pairs_of(chunkhit.SparseLoader(path, rank=rank, world_size=3, **options), 2) for rank in range(3)]
    order_in = lambda stream: order_of(SHUFFLES[shuffle], 6, 4, 2, counts_of(matrix), stream)  # noqa: E731
    order = order_in((0, 1)) if shuffle == "global" else streamed(order_in, 3, 32)
    for rank, batches in enumerate(ranks):
        positions = batches_of(len(order), 32, rank, 3, not drop, drop, 1, 6, 2, 0, shuffle != "global")
        assert_ratings(batches, matrix, [order[position] for batch in positions for position in batch])
    pairs = [pair for batches in ranks for pair in zip(*(part.tolist() for part in joined(batches)[:2]))]
    assert len(pairs) - len(set(pairs)) in range(3) and matrix.nnz - len(set(pairs)) in (range(32 * 3 + 3) if drop else [0])

    whole = chunkhit.SparseLoader(path, rank=1, world_size=3, **options)
    epoch = whole.epoch(2)
    for _ in range(5):
        next(epoch)
    state = whole.state_dict()
    resumed = chunkhit.SparseLoader(path, rank=1, world_size=3, **{**options, "threads": 2, "cache": "none"})
    resumed.load_state_dict(state)
    rest = pairs_of(resumed, 2)
    assert len(rest) == len(ranks[1]) - 5
    for found, expected in zip(rest, ranks[1][5:]):
        for part, other in zip(found, expected):
            np.testing.assert_array_equal(part, other)
    rows = chunkhit.SparseLoader(path, rank=1, world_size=3, **{**options, "format": "csr", "negatives": 0, "batch_size": 2})
    assert "belongs to another source" in raised("usage", rows.load_state_dict, state)


def test_echoes_and_samplers_are_of_ratings(ratings):
    path = ratings[0] / "whole"
    matrix = rows_of(path)
    chosen = np.arange(5, matrix.nnz, 9)
    loader = chunkhit.SparseLoader(path, format="pairs", subset=chosen, shuffle="window", window_chunks=2, seed=2, negatives=3, echo=2)
    order = sampled_order_of(WINDOW, 2, 2, 1, counts_of(matrix), chosen.tolist())
    expected = [order[position][0] for batch in batches_of(len(order), 500, 0, 1, True, False, 2, 2, 1, 0) for position in batch]
    found = pairs_of(loader, 1)
    assert_ratings(found, matrix, expected)
    half = len(expected) // 2
    passes = [{rating: each for rating, each in zip(expected[part], joined(found)[3][part].tolist())} for part in (slice(half), slice(half, None))]
    for rating in chosen[:50].tolist():
        own = matrix[int(np.searchsorted(matrix.indptr, rating, "right")) - 1].indices.tolist()
        for number, drawn in enumerate(passes):
            assert drawn[rating] == negatives_of(own, matrix.shape[1], 3, 2, 1, rating, number)
    weights = np.zeros(matrix.nnz)
    weights[[3, 100]] = 1, 3
    drawn = joined(pairs_of(chunkhit.SparseLoader(path, format="pairs", sampler=weights, epoch_samples=400, seed=1, negatives=8)))
    assert {*zip(drawn[0], drawn[1])} == {(np.searchsorted(matrix.indptr, at, "right") - 1, matrix.indices[at]) for at in (3, 100)}
    assert len({tuple(each) for each in drawn[3].tolist()}) > 390  # a repeat has others
    assert f"rating {matrix.nnz}, expected a number below" in raised("usage", chunkhit.SparseLoader, path, format="pairs", subset=[matrix.nnz])


def test_values_are_binarized_and_scaled(ratings):
    path = ratings[0] / "whole"
    values = rows_of(path).data.astype(np.float32)
    for options, expected in ((dict(scale=2), values * 2), (dict(binarize=True), np.ones_like(values)), (dict(binarize=True, scale=3), values * 0 + 3)):
        np.testing.assert_array_equal(joined(pairs_of(chunkhit.SparseLoader(path, format="pairs", **options)))[2], expected)


def test_tensors_are_the_arrays(ratings):
    torch = pytest.importorskip("torch")
    import chunkhit.torch
    from chunkhit._torch_cuda import DeviceRows

    options = dict(format="pairs", negatives=2, shuffle="global", batch_size=100)
    path = ratings[0] / "whole"
    loaders = chunkhit.torch.SparseLoader(path, **options), chunkhit.SparseLoader(path, **options), chunkhit.SparseLoader(path, **options)
    loaders[2]._core.begin(0)
    device_rows = DeviceRows(torch.device("cpu"), "pairs", loaders[0].column_count)
    for batch, expected in zip(*loaders[:2], strict=True):
        copied = chunkhit.SparseBatch(*device_rows(loaders[2]._core.next()))
        for name in chunkhit.Pairs._fields:
            for found in (getattr(batch.x, name), getattr(copied.x, name)):
                assert isinstance(found, torch.Tensor)
                np.testing.assert_array_equal(found.numpy(), getattr(expected.x, name))
    assert "101" not in repr(loaders[0]) and "ratings of 97 columns" in repr(loaders[0])


def test_misuse_is_an_error(ratings, holes):
    path = ratings[0] / "whole"

    def message(path=path, **options):
        return raised("usage", chunkhit.SparseLoader, path, **{"format": "pairs", **options})

    assert "format: pairs are not cut; length and cut belong to sequences" in message(length=20)
    assert "format: pairs are not cut" in message(cut="random")
    assert "format: pairs are no rows" in message(normalize="l2")
    assert "negatives: are drawn for format pairs" in message(format="csr", negatives=1)
    assert "at most 1 GiB is handed out; take a smaller batch_size" in message(negatives=1 << 20, batch_size=200)
    assert "negatives: " in message(negatives=(1 << 20) + 1)
    assert "negatives_power: must be finite and at least 0" in message(negatives_power=-1.0)
    assert "needs samples with class labels" in message(sampler="balanced")
    assert "negatives_power: " in message(holes[0], negatives=1, negatives_power=1.0)
    batch = next(iter(chunkhit.SparseLoader(path, format="pairs")))
    sampler = chunkhit.PopularitySampler(np.ones(97, int))
    assert "x: expected rows, found pairs" in raised("usage", sampler.draw_batch, batch, 3, seed=1)


def test_a_damaged_header_is_named(ratings, tmp_path):
    """Its count is the order's, so that no epoch can be without it."""
    chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "out", chunk_rows=ROWS)
    part = next((tmp_path / "out").glob("part-*.zst"))
    loader = chunkhit.SparseLoader(tmp_path / "out", format="pairs", on_corrupt="skip", batch_size=64)
    counts = counts_of(rows_of(tmp_path / "out"))
    data = bytearray(part.read_bytes())
    frame = data.index(b"\x28\xb5\x2f\xfd", data.index(b"\x28\xb5\x2f\xfd", 4096) + 4)
    data[frame] ^= 1
    part.write_bytes(bytes(data))
    found = joined(pairs_of(loader))[0]
    assert len(found) == sum(counts) - counts[1] and loader.stats().corrupt_samples == counts[1]
    assert "chunk 1 (rows 16-31" in raised("bad_data", chunkhit.SparseLoader, tmp_path / "out", format="pairs", on_corrupt="skip")

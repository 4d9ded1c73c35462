"""Sequences of SparseLoader beside pandas: each user's items by time, equal times as in the input, cut to a length."""
import os
import sys

import numpy as np
import pandas as pd
import pytest

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from described_order import sequence_window  # noqa: E402

LENGTH = 12


def table_of(users, items, count, seed, days=40):
    """Lines in no order; a user has many ratings of one day, as in many datasets, and few of others."""
    random = np.random.default_rng(seed)
    cells = random.permutation(users * items)[:count]
    day = np.minimum(random.geometric(0.1, count), days)
    return pd.DataFrame({"user": cells // items + 10, "item": cells % items + 1000, "rating": random.integers(1, 11, count) / 2,
                         "timestamp": 1_500_000_000 + 86_400 * day - 4_000_000_000 * (day == days)})


@pytest.fixture(scope="module")
def table():
    return table_of(300, 150, 9000, 3)


@pytest.fixture(scope="module")
def csv(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("sequences") / "ratings.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def pack(csv, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequences") / "pack"
    chunkhit.pack_sparse(csv, folder, keep_times=True, chunk_rows=16)
    return folder


def histories(table):
    """{user: (items, times)} by time; equal times keep the order of the lines."""
    ordered = table.sort_values("timestamp", kind="stable")
    return {user: (rows["item"].tolist(), rows["timestamp"].tolist()) for user, rows in ordered.groupby("user")}


def sequences(loader, epoch=0, of="x"):
    """{user: (items, times)} of an epoch, after the padding was compared."""
    users, items = loader.row_ids(), loader.column_ids()
    found = {}
    for batch in loader.epoch(epoch):
        x, times, lengths = ((batch.x, batch.times, batch.lengths) if of == "x" else
                             (batch.held_out, batch.held_out_times, batch.held_out_lengths))
        assert (x.dtype, times.dtype, lengths.dtype) == (np.int64,) * 3 and x.shape == times.shape
        for row, sequence, when, length in zip(batch.rows, x, times, lengths):
            cut = len(sequence) - length
            assert (sequence[:cut] == loader.column_count).all() and (when[:cut] == 0).all()
            found[users[row]] = ([int(items[column]) for column in sequence[cut:]], when[cut:].tolist())
    return found


def last(histories, length=LENGTH):
    return {user: (items[-length:], times[-length:]) for user, (items, times) in histories.items()}


@pytest.mark.parametrize("options", [dict(chunk_rows=16), dict(container="hdf5"), dict(chunk_rows=16, codec="none"),
                                     dict(chunk_rows=16, part_bytes=1 << 14, order="shuffle")], ids=str)
@pytest.mark.parametrize("length", [1, LENGTH, 200])
def test_the_last_items_are_those_of_pandas(table, csv, tmp_path, options, length):
    chunkhit.pack_sparse(csv, tmp_path / "out", keep_times=True, **options)
    assert chunkhit.verify_pack(tmp_path / "out")["problems"] == []
    for cache in ("decoded", "none"):
        loader = chunkhit.SparseLoader(tmp_path / "out", format="sequences", length=length, batch_size=37, shuffle="window",
                                       cache=cache)
        assert sequences(loader) == last(histories(table), length)


def test_equal_times_came_in_the_order_of_columns(table, pack):
    """That is by popularity, which a model then learns from the ties."""
    loader = chunkhit.SparseLoader(pack, format="sequences", length=200)
    rows = chunkhit.SparseLoader(pack, format="csr")
    by_column = {}
    for batch in rows:
        for index, row in enumerate(batch.rows):
            entries = slice(*batch.x.indptr[index:index + 2])
            order = np.argsort(batch.times[entries], kind="stable")
            by_column[rows.row_ids()[row]] = [int(item) for item in rows.column_ids()[batch.x.indices[entries][order]]]
    found = sequences(loader)
    assert sum(by_column[user] != items for user, (items, _) in found.items()) > 250
    assert all(sorted(by_column[user]) == sorted(items) for user, (items, _) in found.items())


def test_ties_of_hdf5_that_no_row_has_are_found(csv, tmp_path):
    h5py = pytest.importorskip("h5py")
    chunkhit.pack_sparse(csv, tmp_path / "out", keep_times=True, container="hdf5")
    part = tmp_path / "out" / "part-00000.h5"
    with h5py.File(part, "r+") as file:  # which leaves out what is behind the HDF5 file, and so its hash
        file["layers/ties/data"][5] = 4000
    found = chunkhit.verify_pack(part)["problems"]
    assert any("/layers/ties: row 0: position 4000 among equal times" in problem for problem in found), found
    with pytest.raises(chunkhit.Error, match="position 4000 among equal times, expected one below its [0-9]+ entries"):
        chunkhit.SparseLoader(part, format="sequences")


def test_fractions_of_a_second_order_what_the_kept_times_do_not(tmp_path):
    (tmp_path / "a.csv").write_text("user,item,rating,time\n1,5,1,1577836800.9\n1,6,1,1577836800.25\n1,7,1,1577836800.5\n2,7,1,1577836800\n")
    for name, options in (("whole", {}), ("again", {"container": "hdf5"})):
        chunkhit.pack_sparse(tmp_path / "a.csv" if name == "whole" else tmp_path / "whole", tmp_path / name, keep_times=True, **options)
        assert sequences(chunkhit.SparseLoader(tmp_path / name, format="sequences"))[1][0] == [6, 7, 5]


@pytest.mark.parametrize("container", ["shard", "hdf5"])
@pytest.mark.parametrize("split", [dict(split_by="leave-one-out", validation=1), dict(split_by="time", test=0.2, validation=0.1),
                                   dict(split_by="ratio", test=0.3), dict(split_by="users", test=40)], ids=lambda split: split["split_by"])
def test_packs_of_a_split_keep_the_order(table, csv, tmp_path, container, split):
    chunkhit.pack_sparse(csv, tmp_path / "out", keep_times=True, container=container, **split)
    whole = histories(table)
    for name in ("train", "test"):
        loader = chunkhit.SparseLoader(tmp_path / "out" / name, format="sequences", length=200, batch_size=50)
        parts = [sequences(loader)] + ([sequences(loader, of="held_out")] if loader.has_held_out else [])
        assert parts[0]
        for part in parts:
            for user, (items, times) in part.items():
                kept = set(items)
                assert (items, times) == tuple(map(list, zip(*(pair for pair in zip(*whole[user]) if pair[0] in kept))))
        if split["split_by"] == "leave-one-out" and name == "test":
            for user, (items, _) in parts[1].items():
                assert parts[0][user][0] + items == [item for item in whole[user][0] if item in {*parts[0][user][0], *items}]
                assert items == whole[user][0][-1:]


def test_merged_and_repacked_packs_keep_the_order(table, csv, pack, tmp_path):
    chunkhit.pack_sparse(pack, tmp_path / "again", keep_times=True)
    assert sequences(chunkhit.SparseLoader(tmp_path / "again", format="sequences", length=200)) == histories(table)
    for number in range(2):
        part = table[table["user"] % 2 == number]
        part.to_csv(tmp_path / f"{number}.csv", index=False)
        chunkhit.pack_sparse(tmp_path / f"{number}.csv", tmp_path / str(number), keep_times=True, reuse_ids=pack / "items.csv")
    chunkhit.merge_packs([tmp_path / "0", tmp_path / "1"], tmp_path / "merged")
    for paths in (tmp_path / "merged", [tmp_path / "0", tmp_path / "1"]):
        assert sequences(chunkhit.SparseLoader(paths, format="sequences", length=LENGTH)) == last(histories(table))


def test_an_exported_table_has_the_order(table, csv, tmp_path):
    chunkhit.pack_sparse(csv, tmp_path / "out", keep_times=True, split_by="leave-one-out", chunk_rows=16)
    chunkhit.export_pack(tmp_path / "out" / "test", tmp_path / "back.csv")
    rows = pd.concat([pd.read_csv(tmp_path / name) for name in ("back.csv", "back.held_out.csv")])
    expected = {user: history for user, history in histories(table).items() if len(history[0]) > 1}
    assert {user: (own["item"].tolist(), own["time"].tolist()) for user, own in rows.groupby("user")} == expected
    values = table.set_index(["user", "item"])["rating"]
    assert (rows.set_index(["user", "item"])["value"].to_numpy() == values[list(zip(rows["user"], rows["item"]))].to_numpy()).all()
    chunkhit.pack_sparse(tmp_path / "back.csv", tmp_path / "again", keep_times=True)
    again = sequences(chunkhit.SparseLoader(tmp_path / "again", format="sequences", length=200))
    assert again == {user: (items[:-1], times[:-1]) for user, (items, times) in expected.items()}


def test_a_writer_and_duplicates_keep_the_order(tmp_path):
    with chunkhit.RatingWriter(tmp_path / "out", keep_times=True, duplicates="last") as writer:
        writer.add([1, 1, 1, 1], [30, 20, 10, 30], None, [5, 5, 5, 5])
        writer.add([2, 2, 1], [10, 20, 40], None, [7, 6, 5])
    assert sequences(chunkhit.SparseLoader(tmp_path / "out", format="sequences")) == {
        1: ([20, 10, 30, 40], [5] * 4), 2: ([20, 10], [6, 7])}


def sliding(items, length, epoch):
    """Windows from the last one back, which share an item."""
    step = max(length - 1, 1)
    ends = [len(items)]
    while ends[-1] > length:
        ends.append(ends[-1] - step)
    end = ends[epoch % len(ends)]
    return items[max(end - length, 0):end]


@pytest.mark.parametrize("length", [1, 2, LENGTH])
def test_sliding_windows_have_each_step_once(table, pack, length):
    loader = chunkhit.SparseLoader(pack, format="sequences", length=length, cut="sliding", batch_size=37)
    pairs = {user: [] for user in table["user"]}
    for epoch in range(5):
        for user, (items, _) in sequences(loader, epoch).items():
            assert items == sliding(histories_of(table)[user][0], length, epoch)
            pairs[user] += zip(items, items[1:])
    if length == LENGTH:
        for user, (items, _) in histories_of(table).items():
            windows = -(-(len(items) - 1) // (length - 1))
            if windows == 5:
                assert sorted(pairs[user]) == sorted(zip(items, items[1:]))


CACHE = {}


def histories_of(table):
    return CACHE.setdefault(id(table), histories(table))


def test_random_cuts_depend_on_seed_epoch_and_row_alone(table, pack):
    def cuts(epoch, **options):
        return sequences(chunkhit.SparseLoader(pack, format="sequences", length=LENGTH, cut="random", **options), epoch)

    first = cuts(0, seed=1)
    begins = []
    for user, (items, times) in first.items():
        whole, when = histories_of(table)[user]
        begin = whole.index(items[0])
        assert items == whole[begin:begin + LENGTH] and times == when[begin:begin + LENGTH] and len(items) == min(len(whole), LENGTH)
        begins += [begin / (len(whole) - LENGTH)] if len(whole) > LENGTH else []
    assert 0.4 < np.mean(begins) < 0.6 and {0, 1} < set(begins)
    assert first == cuts(0, seed=1, batch_size=7, threads=3, shuffle="global", cache="none")
    assert first != cuts(1, seed=1) != cuts(0, seed=2) != first


@pytest.mark.parametrize("cut", ["last", "sliding", "random"])
@pytest.mark.parametrize("length", [1, 2, LENGTH, 500])
def test_windows_are_those_that_the_page_describes(table, pack, cut, length):
    loader = chunkhit.SparseLoader(pack, format="sequences", length=length, cut=cut, seed=11, batch_size=37, shuffle="global")
    whole = {user: list(zip(*history)) for user, history in histories(table).items()}
    for epoch in (0, 1, 2, 9, 40):
        found = sequences(loader, epoch)
        for row, user in enumerate(loader.row_ids()):
            begin, end = sequence_window(len(whole[user]), length, cut, 11, epoch, row)
            assert list(zip(*found[user])) == whole[user][begin:end], (epoch, user)


def test_ranks_and_a_resumed_state_give_the_same_sequences(pack):
    options = dict(format="sequences", length=LENGTH, cut="random", seed=4, shuffle="window", batch_size=10)
    whole = sequences(chunkhit.SparseLoader(pack, **options), 3)
    ranks = [sequences(chunkhit.SparseLoader(pack, rank=rank, world_size=3, **options), 3) for rank in range(3)]
    assert {user: rows for rank in ranks for user, rows in rank.items()} == whole
    batches = [batch.x.copy() for batch in chunkhit.SparseLoader(pack, **options).epoch(3)]
    loader = chunkhit.SparseLoader(pack, **options)
    epoch = loader.epoch(3)
    for _ in range(4):
        next(epoch)
    state = loader.state_dict()
    resumed = chunkhit.SparseLoader(pack, **options)
    resumed.load_state_dict(state)
    rest = [batch.x.copy() for batch in resumed]
    assert len(rest) == len(batches) - 4
    for found, expected in zip(rest, batches[4:]):
        np.testing.assert_array_equal(found, expected)


def test_tensors_and_negatives_of_sequences(table, csv, tmp_path):
    torch = pytest.importorskip("torch")
    import chunkhit.torch
    from chunkhit._torch_cuda import DeviceRows

    chunkhit.pack_sparse(csv, tmp_path / "out", keep_times=True, split_by="leave-one-out")
    options = dict(format="sequences", length=LENGTH, batch_size=64)
    arrays = chunkhit.SparseLoader(tmp_path / "out" / "test", **options)
    loader = chunkhit.torch.SparseLoader(tmp_path / "out" / "test", **options)
    sampler = chunkhit.PopularitySampler(np.ones(loader.column_count, int))
    embedding = torch.nn.Embedding(loader.column_count + 1, 4, padding_idx=loader.column_count)
    device_rows = DeviceRows(torch.device("cpu"), "sequences", loader.column_count)
    raw = chunkhit.SparseLoader(tmp_path / "out" / "test", **options)
    raw._core.begin(0)
    for batch, expected in zip(loader, arrays, strict=True):
        copied = chunkhit.SparseBatch(*device_rows(raw._core.next()))
        for name in ("x", "held_out", "times", "held_out_times", "lengths", "held_out_lengths", "rows"):
            found = getattr(batch, name)
            assert found.dtype == torch.int64
            np.testing.assert_array_equal(found.numpy(), getattr(expected, name))
            np.testing.assert_array_equal(getattr(copied, name).numpy(), getattr(expected, name))
        assert (embedding(batch.x)[batch.x == loader.column_count] == 0).all()
        assert batch.held_out.shape == (len(batch.rows), LENGTH) and (batch.held_out_lengths == 1).all()
        negatives = sampler.draw_batch(batch, 60, seed=1)
        np.testing.assert_array_equal(negatives, sampler.draw_batch(expected, 60, seed=1))
        for row, drawn in enumerate(negatives):
            assert not {*drawn.tolist()} & {*batch.x[row].tolist(), *batch.held_out[row].tolist()}


def test_times_are_left_out_on_demand_and_pickled_batches_are_whole(pack):
    import pickle

    batch = next(iter(chunkhit.SparseLoader(pack, format="sequences", times=False)))
    assert batch.times is None and batch.lengths is not None and batch.x.shape == (len(batch.rows), 50)
    copy = pickle.loads(pickle.dumps(batch))
    np.testing.assert_array_equal(copy.lengths, batch.lengths)


def test_misuse_is_an_error(csv, pack, tmp_path):
    chunkhit.pack_sparse(csv, tmp_path / "bare")
    with pytest.raises(chunkhit.Error, match="bare: its ratings have no times, which order sequences: pack it with keep_times"):
        chunkhit.SparseLoader(tmp_path / "bare", format="sequences")
    for options in (dict(binarize=True), dict(scale=2), dict(normalize="l2")):
        with pytest.raises(chunkhit.Error, match="format: sequences have no values"):
            chunkhit.SparseLoader(pack, format="sequences", **options)
    with pytest.raises(chunkhit.Error, match="length: a batch of .* at most 1 GiB is handed out"):
        chunkhit.SparseLoader(pack, format="sequences", length=1 << 20, batch_size=300)
    with pytest.raises(chunkhit.Error, match="length"):
        chunkhit.SparseLoader(pack, format="sequences", length=0)
    with pytest.raises(chunkhit.Error, match="cut: expected last, sliding, random"):
        chunkhit.SparseLoader(pack, format="sequences", cut="first")


def test_packs_whose_ties_are_in_the_order_of_columns_have_no_more_bytes(table, tmp_path):
    """Such a pack has blocks of version 2, as before ties were kept."""
    sys.path.insert(0, __file__.rsplit("/", 2)[0] + "/support")
    from shard_reader import Shard

    ordered = table.sort_values(["user", "item"])
    for name, rows in (("ordered", ordered), ("tied", ordered.sample(frac=1, random_state=1))):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        chunkhit.pack_sparse(tmp_path / f"{name}.csv", tmp_path / name, keep_times=True, id_order="sorted", chunk_rows=16)
    versions = {name: {Shard(str(tmp_path / name / "part-00000.zst")).raw_chunk(index)[4] for index in range(5)}
                for name in ("ordered", "tied")}
    assert versions == {"ordered": {2}, "tied": {3}}
    assert sequences(chunkhit.SparseLoader(tmp_path / "ordered", format="sequences", length=200)) == histories(ordered)

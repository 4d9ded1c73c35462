"""The times of ratings: kept by pack_sparse and RatingWriter, stored where other readers find them, given with each entry."""
import csv
import json
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from shard_reader import Shard  # noqa: E402


def ratings(seed=5, users=400, items=150, count=6000):
    """{(user, item): (value, time)}, some times before 1970."""
    random = np.random.default_rng(seed)
    cells = random.permutation(users * items)[:count]
    times = 1_500_000_000 + random.integers(0, 10**8, count) - 2 * 10**9 * (random.random(count) < 0.02)
    return {(int(cell // items) + 10, int(cell % items) + 1000): (int(value) / 2, int(time))
            for cell, value, time in zip(cells, random.integers(1, 11, count), times)}


def write_csv(path, rated):
    with open(path, "w") as file:
        file.write("user,item,rating,timestamp\n")
        file.writelines(f"{user},{item},{value},{time}\n" for (user, item), (value, time) in rated.items())
    return path


@pytest.fixture(scope="module")
def rated():
    return ratings()


@pytest.fixture(scope="module")
def table(rated, tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("times") / "ratings.csv", rated)


def entries_of(rows, numbers, source):
    """{(user, item): (value, time)} of CsrRows."""
    users, items = source.row_ids(), source.column_ids()
    row_of = np.repeat(np.asarray(numbers, int), np.diff(rows.indptr))
    return {(int(users[row]), int(items[column])): (float(value), int(time))
            for row, column, value, time in zip(row_of, rows.indices, rows.values, rows.times)}


def loaded(folder, **options):
    """All that a loader gives of X and of held_out."""
    x, held_out = {}, {}
    loader = chunkhit.SparseLoader(folder, format="csr", batch_size=37, shuffle="window", **options)
    for batch in loader:
        assert batch.times is batch.x.times
        x.update(entries_of(batch.x, batch.rows, loader))
        if batch.held_out is not None:
            assert batch.held_out_times is batch.held_out.times
            held_out.update(entries_of(batch.held_out, batch.rows, loader))
    return x, held_out


@pytest.mark.parametrize("container", ["shard", "hdf5"])
@pytest.mark.parametrize("memory_bytes", [None, 40 << 20])
def test_each_entry_comes_with_its_time_however_it_was_packed(rated, table, tmp_path, container, memory_bytes):
    info = chunkhit.pack_sparse(table, tmp_path / "out", keep_times=True, container=container, memory_bytes=memory_bytes)
    assert info["times"] == "seconds" and chunkhit.verify_pack(tmp_path / "out")["problems"] == []
    for cache in ("decoded", "compressed", "none"):
        assert loaded(tmp_path / "out", cache=cache) == (rated, {})
    dataset = chunkhit.SparseDataset(tmp_path / "out", format="csr")
    some = [7, 3, 399, 3, 0]
    for number, row in zip(some, dataset.__getitems__(some)):
        assert entries_of(row, [number], dataset) == {
            key: entry for key, entry in rated.items() if key[0] == dataset.row_ids()[number]}


def test_ratings_that_are_packed_from_disk_keep_their_times(tmp_path):
    """With 32 MB of memory 1,500,000 ratings spill; the packs are those of a run that has memory."""
    random = np.random.default_rng(2)
    count = 1_500_000
    cells = random.permutation(20_000 * 200)[:count]
    packs = {}
    for name, memory_bytes in (("small", 32 << 20), ("large", 2 << 30)):
        with chunkhit.RatingWriter(tmp_path / name, keep_times=True, split_by="ratio", test=0.2, memory_bytes=memory_bytes,
                                   threads=1) as writer:
            writer.add(cells // 200, cells % 200, None, cells.astype(np.int64) * 3 - 5)
        packs[name] = {part: (tmp_path / name / "test" / part).read_bytes()
                       for part in os.listdir(tmp_path / name / "test") if part.endswith(".zst")}
    assert packs["small"] == packs["large"]
    loader = chunkhit.SparseLoader(tmp_path / "small" / "test", format="csr")
    for batch in loader:
        for rows in (batch.x, batch.held_out):
            for (user, item), (_, time) in entries_of(rows, batch.rows, loader).items():
                assert time == (user * 200 + item) * 3 - 5


@pytest.mark.parametrize("container", ["shard", "hdf5"])
def test_what_is_held_out_has_times_too(rated, table, tmp_path, container):
    chunkhit.pack_sparse(table, tmp_path / "out", keep_times=True, split_by="leave-one-out", container=container)
    train, _ = loaded(tmp_path / "out" / "train")
    x, held_out = loaded(tmp_path / "out" / "test")
    assert x and held_out and all(rated[key] == entry for part in (train, x, held_out) for key, entry in part.items())
    for (user, _), (_, last) in held_out.items():
        assert last >= max(time for (other, _), (_, time) in x.items() if other == user)


def test_other_readers_find_the_times(rated, table, tmp_path):
    anndata = pytest.importorskip("anndata")
    chunkhit.pack_sparse(table, tmp_path / "out", keep_times=True, container="hdf5")
    part = tmp_path / "out" / "part-00000.h5"
    with h5py.File(part) as file:
        assert file.attrs["chunkhit_matrix"] == 2
        assert file["layers/times/indices"] == file["X/indices"]  # the same object, not a copy
    found = anndata.read_h5ad(part)
    times = found.layers["times"].tocoo()
    assert times.dtype == np.int64
    assert {(int(found.obs_names[row]), int(found.var_names[column])): int(time)
            for row, column, time in zip(times.row, times.col, times.data)} == {key: time for key, (_, time) in rated.items()}


def test_the_page_is_enough_to_read_the_times_of_a_shard(rated, table, tmp_path):
    chunkhit.pack_sparse(table, tmp_path / "out", keep_times=True)
    shard = Shard(str(tmp_path / "out" / "part-00000.zst"))
    users, items = shard.files, shard.classes
    times, values = shard.matrix(0, "times").tocoo(), shard.matrix(0).tocoo()
    assert {(int(users[row]), int(items[column])): (float(value), int(time)) for row, column, value, time in zip(
        times.row, times.col, values.data, times.data)} == rated


def test_a_pack_without_times_is_what_it_was(table, tmp_path):
    chunkhit.pack_sparse(table, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["version"] == 1 and "times" not in manifest and "keep-times" not in manifest["spec"]
    batch = next(iter(chunkhit.SparseLoader(tmp_path / "out", format="csr")))
    assert batch.times is None and batch.x.times is None
    assert chunkhit.SparseDataset(tmp_path / "out", format="csr")[0].times is None


def test_dense_batches_and_times_false_give_none(table, tmp_path):
    chunkhit.pack_sparse(table, tmp_path / "out", keep_times=True)
    for options in ({}, {"format": "dense_f16"}, {"format": "csr", "times": False}):
        assert next(iter(chunkhit.SparseLoader(tmp_path / "out", **options))).times is None


def test_tensors_of_times_come_beside_the_matrix(rated, table, tmp_path):
    torch = pytest.importorskip("torch")
    from chunkhit.torch import SparseLoader

    chunkhit.pack_sparse(table, tmp_path / "out", keep_times=True, split_by="ratio", test=0.3)
    loader = SparseLoader(tmp_path / "out" / "test", format="csr")
    users, items = loader.row_ids(), loader.column_ids()
    for batch in loader:
        for matrix, times in ((batch.x, batch.times), (batch.held_out, batch.held_out_times)):
            assert times.dtype == torch.int64
            rows = torch.repeat_interleave(batch.rows.long(), matrix.crow_indices().diff().long())
            for row, column, value, time in zip(rows.tolist(), matrix.col_indices().tolist(), matrix.values().tolist(),
                                                times.tolist()):
                assert rated[int(users[row]), int(items[column])] == (value, time)


def test_a_pack_is_packed_again_with_its_times(rated, table, tmp_path):
    for container in ("shard", "hdf5"):
        chunkhit.pack_sparse(table, tmp_path / container, keep_times=True, container=container)
        chunkhit.pack_sparse(tmp_path / container, tmp_path / f"{container}-again", keep_times=True)
        assert loaded(tmp_path / f"{container}-again") == (rated, {})
    chunkhit.pack_sparse(tmp_path / "shard", tmp_path / "split", split_by="leave-one-out")  # by the times of the pack
    chunkhit.pack_sparse(table, tmp_path / "split-of-file", split_by="leave-one-out")
    held_out = [chunkhit.pack_info(tmp_path / name)["test"]["matrices"][1]["nnz"] for name in ("split", "split-of-file")]
    assert held_out[0] == held_out[1]


def test_a_merged_pack_keeps_times(tmp_path):
    all_rated = {}
    for number in range(3):
        part = {(user + 1000 * number, item): entry for (user, item), entry in ratings(number, 60, 40, 700).items()}
        write_csv(tmp_path / f"{number}.csv", part)
        all_rated.update(part)
    files = [tmp_path / f"{number}.csv" for number in range(3)]
    chunkhit.pack_sparse(files[0], tmp_path / "first", keep_times=True)
    items = tmp_path / "first" / "items.csv"
    for number in (1, 2):
        chunkhit.pack_sparse(files[number], tmp_path / str(number), keep_times=number == 1, reuse_ids=items)
    chunkhit.merge_packs([tmp_path / "first", tmp_path / "1"], tmp_path / "merged")
    known = {item for _, item in loaded(tmp_path / "first")[0]}
    assert loaded(tmp_path / "merged")[0] == {key: entry for key, entry in all_rated.items() if key[0] < 2000 and key[1] in known}
    with pytest.raises(chunkhit.Error, match="has times of ratings: none"):
        chunkhit.merge_packs([tmp_path / "first", tmp_path / "2"], tmp_path / "refused")


def test_times_of_different_units_are_not_mixed(tmp_path):
    for name, users, times in (("s", 0, 1577836800), ("ms", 10, 1577836800123), ("near", 20, 5)):
        with chunkhit.RatingWriter(tmp_path / name, keep_times=True,
                                   **({} if name == "s" else {"reuse_ids": tmp_path / "s"})) as writer:
            writer.add([users, users + 1], [1, 2], None, [times, times + 1])
    assert [chunkhit.pack_info(tmp_path / name)["times"] for name in ("s", "ms", "near")] == ["seconds", "milliseconds", "numbers"]
    with pytest.raises(chunkhit.Error, match="has times of ratings: milliseconds"):
        chunkhit.merge_packs([tmp_path / "s", tmp_path / "ms"], tmp_path / "refused")
    with pytest.raises(chunkhit.Error, match="has times in milliseconds, .* in seconds: they cannot be read as one"):
        chunkhit.SparseLoader([tmp_path / "s", tmp_path / "ms"])
    chunkhit.merge_packs([tmp_path / "near", tmp_path / "s"], tmp_path / "merged")
    assert chunkhit.pack_info(tmp_path / "merged")["times"] == "seconds"
    assert next(iter(chunkhit.SparseLoader([tmp_path / "ms", tmp_path / "near"], format="csr"))).times.tolist() == [
        1577836800123, 1577836800124, 5, 6]


def test_fractions_of_times_are_told(tmp_path):
    tool = os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-sparse")
    (tmp_path / "a.csv").write_text("user,item,rating,time\n1,1,1,1577836800.9\n1,2,5,1577836800.0\n2,2,3,2020-01-01T00:00:00.250\n")
    said = subprocess.run([tool, tmp_path / "a.csv", "--keep-times", "-o", tmp_path / "out"], capture_output=True, text=True)
    assert said.returncode == 0 and "2 times have a fraction of a second" in said.stdout + said.stderr
    said = subprocess.run([tool, tmp_path / "a.csv", "-o", tmp_path / "without"], capture_output=True, text=True)
    assert said.returncode == 0 and "fraction of a second" not in said.stdout + said.stderr


def test_fractions_of_a_second_did_not_order_ratings(tmp_path):
    rows = ["1,1,1,1577836800.9", "1,2,5,1577836800.25", "2,1,3,2020-01-01 00:00:00.500", "2,2,3,2020-01-01 00:00:00.125",
            "3,1,1,1577836801", "3,2,1,1577836800", "4,1,2,1577836800", "4,3,2,1577836801"]
    (tmp_path / "a.csv").write_text("user,item,rating,time\n" + "\n".join(rows) + "\n")
    chunkhit.pack_sparse(tmp_path / "a.csv", tmp_path / "out", split_by="leave-one-out", keep_times=True, id_order="sorted")
    train, test = (chunkhit.SparseDataset(tmp_path / "out" / name, format="csr") for name in ("train", "test"))
    assert sorted(train[:].indices.tolist()) == [0, 1, 1, 1] and test[:][1].indices.tolist() == [0] * 3
    assert set(train[:].times.tolist()) == {1577836800} and sorted(test[:][1].times.tolist()) == [1577836800] * 2 + [1577836801]
    assert chunkhit.pack_info(tmp_path / "out" / "train")["times"] == "seconds"
    (tmp_path / "b.csv").write_text("user,item,rating,time\n1,1,1,1577836800.9\n1,2,5,1577836799.5\n1,3,5,1577836800.0\n"
                                   + "".join(f"2,{item},5,1577836000\n" for item in (1, 2, 3)))
    chunkhit.pack_sparse(tmp_path / "b.csv", tmp_path / "before", split_by="time", before=1577836800)
    assert chunkhit.pack_info(tmp_path / "before" / "train")["matrices"][0]["nnz"] == 4


@pytest.mark.parametrize("times", [[1.0, 2.5], np.array(["2020-01-01T00:00:00", "2020-01-01T00:00:00.900"], "datetime64[ms]"), [0.0, 1e19]])
def test_times_that_would_lose_something_are_errors_of_the_writer(tmp_path, times):
    writer = chunkhit.RatingWriter(tmp_path / "out", keep_times=True)
    with pytest.raises(chunkhit.Error, match="times"):
        writer.add([1, 2], [3, 4], None, times)
    writer.close()


def test_exported_files_have_the_times(rated, table, tmp_path):
    from chunkhit.export import export_pack

    chunkhit.pack_sparse(table, tmp_path / "out", keep_times=True, split_by="ratio", test=0.3)
    export_pack(tmp_path / "out" / "test", tmp_path / "test.csv")
    for name in ("test.csv", "test.held_out.csv"):
        with open(tmp_path / name, newline="") as file:
            for line in csv.DictReader(file):
                assert rated[int(line["user"]), int(line["item"])] == (float(line["value"]), int(line["time"]))
    files = export_pack(tmp_path / "out" / "test", tmp_path / "test.npz")["files"]
    assert str(tmp_path / "test.held_out.times.npz") in files
    times, values = sp.load_npz(tmp_path / "test.times.npz"), sp.load_npz(tmp_path / "test.npz")
    assert times.dtype == np.int64 and (times.indices == values.indices).all() and (times.indptr == values.indptr).all()
    chunkhit.pack_sparse(tmp_path / "test.csv", tmp_path / "again", keep_times=True)
    assert loaded(tmp_path / "again")[0] == loaded(tmp_path / "out" / "test")[0]


def test_times_that_are_not_there_or_have_no_room_are_errors(table, tmp_path):
    with pytest.raises(chunkhit.Error, match="keep_times: the ratings have no times: time none leaves them out"):
        chunkhit.pack_sparse(table, tmp_path / "out", keep_times=True, time="none")
    (tmp_path / "bare.csv").write_text("user,item\n1,2\n")
    with pytest.raises(chunkhit.Error, match="keep_times: the ratings have no times: time names their column"):
        chunkhit.pack_sparse(tmp_path / "bare.csv", tmp_path / "out", keep_times=True)
    with pytest.raises(chunkhit.Error, match="keep_times: the ratings have no times"):
        with chunkhit.RatingWriter(tmp_path / "out", keep_times=True) as writer:
            writer.add([1, 2], [3, 4])
    assert not (tmp_path / "out").exists() or not os.listdir(tmp_path / "out")

"""Packs of `duplicates` keep beside pandas: every rating of a user and an item stays, in the order of time."""
import json
import os
import shutil
import sys

import numpy as np
import pytest

import chunkhit
from chunkhit.export import export_pack

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from shard_reader import Shard  # noqa: E402

pd = pytest.importorskip("pandas")

KEEP = dict(duplicates="keep", keep_times=True)


def table_of(users=120, items=40, count=9000, seed=4, days=60):
    """Plays in no order: a user has more of them than there are items, many of one item, many of one day."""
    random = np.random.default_rng(seed)
    return pd.DataFrame({"user": random.integers(0, users, count) ** 2 // users + 10,
                         "item": (random.random(count) ** 2 * items).astype(int) + 1000,
                         "rating": random.integers(1, 11, count) / 2,
                         "timestamp": 1_500_000_000 + 86_400 * random.integers(0, days, count)})


@pytest.fixture(scope="module")
def table():
    return table_of()


@pytest.fixture(scope="module")
def csv(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("repeats") / "plays.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def pack(csv, tmp_path_factory):
    folder = tmp_path_factory.mktemp("repeats") / "pack"
    chunkhit.pack_sparse(csv, folder, chunk_rows=16, **KEEP)
    return folder


def histories(table):
    """{user: [(item, time)]} by time; equal times keep the order of the lines."""
    ordered = table.sort_values("timestamp", kind="stable")
    return {user: list(zip(rows["item"], rows["timestamp"])) for user, rows in ordered.groupby("user")}


def entries(table):
    """{user: [(item, time, rating)]} by item, then time, then line, as a pack has them."""
    ordered = table.sort_values(["user", "item", "timestamp"], kind="stable")
    return {user: list(zip(rows["item"], rows["timestamp"], rows["rating"])) for user, rows in ordered.groupby("user")}


def sequences(folder, of="x", length=2000, **options):
    """The same of a pack as a loader gives it."""
    loader = chunkhit.SparseLoader(folder, format="sequences", length=length, batch_size=29, **options)
    users, items, found = loader.row_ids(), loader.column_ids(), {}
    for batch in loader:
        x, times, lengths = ((batch.x, batch.times, batch.lengths) if of == "x" else
                             (batch.held_out, batch.held_out_times, batch.held_out_lengths))
        for row, sequence, when, count in zip(batch.rows, x, times, lengths):
            columns = sequence[len(sequence) - count:]
            found[users[row]] = list(zip(items[columns].tolist(), when[len(when) - count:].tolist()))
    return found


def stored(folder, **options):
    """Entries of a pack as CSR batches have them, by item."""
    loader = chunkhit.SparseLoader(folder, format="csr", batch_size=29, **options)
    users, items, found = loader.row_ids(), loader.column_ids(), {}
    for batch in loader:
        for index, row in enumerate(batch.rows):
            of_row = slice(*batch.x.indptr[index:index + 2])
            columns = batch.x.indices[of_row]
            assert (np.diff(columns) >= 0).all()
            found[users[row]] = sorted(zip(items[columns].tolist(), batch.times[of_row].tolist(), batch.x.values[of_row].tolist()),
                                       key=lambda entry: entry[0])  # stable: within an item as stored
    return found


def bytes_of(folder):
    return {name: open(os.path.join(folder, name), "rb").read() for name in sorted(os.listdir(folder)) if name != "run.json"}


@pytest.mark.parametrize("options", [dict(chunk_rows=16), dict(container="hdf5"), dict(chunk_rows=16, codec="none"),
                                     dict(part_bytes=1 << 14, chunk_rows=8), dict(order="input", id_order="sorted")], ids=str)
def test_every_rating_is_there_in_the_order_of_pandas(table, csv, tmp_path, options):
    info = chunkhit.pack_sparse(csv, tmp_path / "out", **KEEP, **options)
    assert info["repeats"] and info["matrices"][0]["nnz"] == len(table) and info["matrices"][0]["longest_row"] > info["columns"]
    assert chunkhit.verify_pack(tmp_path / "out")["problems"] == []
    for cache in ("decoded", "compressed", "none"):
        assert sequences(tmp_path / "out", cache=cache, shuffle="window") == histories(table)
        assert stored(tmp_path / "out", cache=cache) == entries(table)
    assert sequences(tmp_path / "out", length=7) == {user: items[-7:] for user, items in histories(table).items()}


def test_packs_without_keep_are_what_they_were(csv, tmp_path):
    info = chunkhit.pack_sparse(csv, tmp_path / "out", duplicates="last", keep_times=True)
    assert "repeats" not in info
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["version"] == 3
    assert Shard(tmp_path / "out" / "part-00000.zst").has_repeats is False


def test_earlier_readers_find_a_version_that_they_do_not_know(csv, pack, tmp_path):
    h5py = pytest.importorskip("h5py")
    assert json.loads((pack / "manifest.json").read_text())["version"] == 4
    assert (pack / "part-00000.zst").read_bytes()[24] == 2  # they know shards of version 1
    chunkhit.pack_sparse(csv, tmp_path / "hdf5", container="hdf5", **KEEP)
    with h5py.File(tmp_path / "hdf5" / "part-00000.h5") as file:
        assert file.attrs["chunkhit_matrix"] == 3  # they know 1 and 2


def test_the_pages_are_enough_to_read_a_shard(table, pack):
    shard = Shard(pack / "part-00000.zst")
    users, items = np.array(shard.files), np.array(shard.classes)
    ratings, times, ties = (shard.matrix(0, of) for of in ("ratings", "times", "ties"))
    found = {}
    for row, user in enumerate(users):
        of_row = slice(*ratings.indptr[row:row + 2])
        order = np.lexsort((ties.data[of_row], times.data[of_row]))
        found[int(user)] = list(zip(items[ratings.indices[of_row][order]].astype(int), times.data[of_row][order]))
    assert found == histories(table)


def test_scipy_adds_up_what_repeats(table, pack):
    pytest.importorskip("scipy")
    sums = table.pivot_table("rating", "user", "item", "sum", fill_value=0)
    dataset = chunkhit.SparseDataset(pack)
    matrix = dataset.to_scipy()
    assert matrix.nnz == len(table)
    read = pd.DataFrame(matrix.toarray(), dataset.row_ids(), dataset.column_ids())
    assert (read.loc[sums.index, sums.columns] == sums).all(axis=None)
    assert (dataset[:] == matrix.toarray()).all()


def test_anndata_adds_up_what_repeats(table, csv, tmp_path):
    anndata = pytest.importorskip("anndata")
    chunkhit.pack_sparse(csv, tmp_path / "out", container="hdf5", **KEEP)
    found = anndata.read_h5ad(tmp_path / "out" / "part-00000.h5")
    sums = table.pivot_table("rating", "user", "item", "sum", fill_value=0)
    read = pd.DataFrame(found.X.toarray(), found.obs_names.astype(int), found.var_names.astype(int))
    assert (read.loc[sums.index, sums.columns] == sums).all(axis=None)


@pytest.mark.parametrize("format, options", [("dense_f32", {}), ("dense_f16", {}), ("dense_f32", dict(normalize="l2", scale=2.0)),
                                             ("dense_f32", dict(binarize=True)), ("dense_f32", dict(binarize=True, normalize="l1"))], ids=str)
def test_dense_cells_are_sums(pack, format, options):
    expected = chunkhit.SparseDataset(pack)[:]
    expected = (expected != 0).astype(np.float32) if options.get("binarize") else expected
    expected = expected * np.float32(options.get("scale", 1))
    if "normalize" in options:
        expected /= np.linalg.norm(expected, ord=int(options["normalize"][1]), axis=1, keepdims=True)
    loader = chunkhit.SparseLoader(pack, format=format, batch_size=29, shuffle="window", **options)
    for _ in range(2):  # cells of the batch before are cleared
        for batch in loader:
            np.testing.assert_allclose(batch.x, expected[batch.rows.astype(int)], rtol=1e-6 if format == "dense_f32" else 1e-3)


def test_bytes_that_sums_do_not_fit_are_an_error(table, csv, tmp_path):
    chunkhit.pack_sparse(csv, tmp_path / "plays", value="none", **KEEP)
    counts = table.groupby(["user", "item"]).size().unstack(fill_value=0)
    loader = chunkhit.SparseLoader(tmp_path / "plays", format="dense_u8")
    cells = np.concatenate([batch.x for batch in loader])
    assert cells.dtype == np.uint8
    read = pd.DataFrame(cells, loader.row_ids(), loader.column_ids())
    assert (read.loc[counts.index, counts.columns] == counts).all(axis=None)
    chunkhit.pack_sparse(csv, tmp_path / "out", **KEEP)
    with pytest.raises(chunkhit.Error, match="format: dense_u8 holds numbers up to 255, .* add up to .*; take dense_f32"):
        for batch in chunkhit.SparseLoader(tmp_path / "out", format="dense_u8"):
            pass
    assert next(iter(chunkhit.SparseLoader(tmp_path / "out", format="dense_u8", binarize=True))).x.max() == 1


@pytest.mark.parametrize("power", [0.0, 0.75])
def test_pairs_are_ratings_and_negatives_none_of_the_users_items(tmp_path, power):
    table_of(items=900).to_csv(tmp_path / "plays.csv", index=False)
    chunkhit.pack_sparse(tmp_path / "plays.csv", tmp_path / "out", split_by="leave-one-out", min_user=5, above=1.5, **KEEP)
    loader = chunkhit.SparseLoader(tmp_path / "out" / "test", format="pairs", batch_size=64, negatives=3, negatives_power=power)
    rows = chunkhit.SparseDataset(tmp_path / "out" / "test", format="csr")[:]
    x, held_out = ([matrix.indices[begin:end].tolist() for begin, end in zip(matrix.indptr, matrix.indptr[1:])] for matrix in rows)
    assert any(len(set(items)) < len(items) for items in x)
    seen = []
    for batch in loader:
        for user, item, negatives in zip(batch.x.users.tolist(), batch.x.items.tolist(), batch.x.negatives.tolist()):
            seen.append((user, item))
            assert not {*x[user], *held_out[user]} & set(negatives)
    assert seen == [(row, item) for row, items in enumerate(x) for item in items]


def test_rules_count_ratings(table, csv, tmp_path):
    chunkhit.pack_sparse(csv, tmp_path / "out", above=2.0, min_user=40, min_item=60, **KEEP)
    left, before = table[table["rating"] > 2], None
    while before != len(left):
        before = len(left)
        left = left[left.groupby("user")["user"].transform("size") >= 40]
        left = left[left.groupby("item")["item"].transform("size") >= 60]
    assert 0 < len(left) < len(table) and left["item"].nunique() < table["item"].nunique()
    assert sequences(tmp_path / "out") == histories(left)
    steps = {step["name"]: step["ratings"] for step in chunkhit.pack_info(tmp_path / "out")["stats"]["steps"]}
    assert steps["duplicates"] == len(table) and steps["above"] == (table["rating"] > 2).sum()


@pytest.mark.parametrize("container", ["shard", "hdf5"])
@pytest.mark.parametrize("memory_bytes", [None, 40 << 20])
def test_leave_one_out_holds_out_the_last_rating(table, csv, tmp_path, container, memory_bytes):
    chunkhit.pack_sparse(csv, tmp_path / "out", split_by="leave-one-out", validation=1, container=container,
                         memory_bytes=memory_bytes, **KEEP)
    whole = {user: items for user, items in histories(table).items()}
    assert sequences(tmp_path / "out" / "train") == {user: items[:-2] or items[:1] for user, items in whole.items()}
    assert sequences(tmp_path / "out" / "test") == {user: items[:-1] for user, items in whole.items() if len(items) > 1}
    assert sequences(tmp_path / "out" / "test", of="held_out") == {user: items[-1:] for user, items in whole.items() if len(items) > 1}
    for name in ("train", "validation", "test"):
        assert chunkhit.verify_pack(tmp_path / "out" / name)["problems"] == []


@pytest.mark.parametrize("split", [dict(split_by="time", test=0.2), dict(split_by="ratio", test=0.3, split_order="time"),
                                   dict(split_by="ratio", test=0.3, seed=7), dict(split_by="users", test=30),
                                   dict(split_by="users-by-id", test=0.3)], ids=str)
def test_each_rating_is_in_one_place_of_a_split(table, csv, tmp_path, split):
    chunkhit.pack_sparse(csv, tmp_path / "out", **split, **KEEP)
    whole, parts = histories(table), []
    for name, of in (("train", "x"), ("test", "x"), ("test", "held_out")):
        parts.append(sequences(tmp_path / "out" / name, of=of))
        assert parts[-1]
        for user, found in parts[-1].items():  # in the order of the whole history, of which it is a part
            left = iter(whole[user])
            assert all(pair in left for pair in found)
    train, x, held_out = parts
    if split["split_by"].startswith("users"):
        assert not set(train) & set(x)
        for user in x:
            assert not {item for item, _ in x[user]} & {item for item, _ in held_out[user]}
            assert sorted(x[user] + held_out[user]) == sorted(whole[user])
            count = len({item for item, _ in whole[user]})
            assert len({item for item, _ in held_out[user]}) == int(count * 0.2 + 1e-9)
    elif split["split_by"] == "time":
        cut = min(time for items in held_out.values() for _, time in items)
        assert all(time < cut for items in train.values() for _, time in items)
    else:
        shared = 0
        for user, items in held_out.items():
            assert len(items) == int(len(whole[user]) * 0.3 + 1e-9)
            assert sorted(train[user] + items) == sorted(whole[user])
            shared += len({item for item, _ in train[user]} & {item for item, _ in items})
            if "split_order" in split:
                assert items == whole[user][-len(items):]
        assert shared > 100  # ratings are divided, not items


def test_a_given_split_keeps_the_ratings_of_each_file(table, tmp_path):
    cut = 6000
    table[:cut].to_csv(tmp_path / "a.csv", index=False)
    table[cut:].to_csv(tmp_path / "b.csv", index=False)
    chunkhit.pack_sparse(None, tmp_path / "out", split_by="given", train_file=[tmp_path / "a.csv"], test_file=[tmp_path / "b.csv"], **KEEP)
    known = histories(table[:cut])
    assert sequences(tmp_path / "out" / "train") == known
    expected = {user: items for user, items in histories(table[cut:]).items() if user in known}
    assert sequences(tmp_path / "out" / "test", of="held_out") == expected


def test_a_report_takes_no_repeated_item_for_a_leak(csv, tmp_path):
    from chunkhit.report import write_report

    for name, duplicates in (("keep", "keep"), ("last", "last")):
        chunkhit.pack_sparse(csv, tmp_path / name, split_by="leave-one-out", duplicates=duplicates, keep_times=True)
        write_report(tmp_path / name, tmp_path / f"{name}.html")
        assert "rating in common" not in (tmp_path / f"{name}.html").read_text()
        assert "ratings in common" not in (tmp_path / f"{name}.html").read_text()


def test_python_and_packs_of_packs_give_the_same(table, csv, pack, tmp_path):
    chunkhit.pack_ratings(table, tmp_path / "frame", chunk_rows=16, **KEEP)
    chunkhit.pack_sparse(pack, tmp_path / "again", chunk_rows=16, **KEEP)
    for name in ("frame", "again"):
        assert sequences(tmp_path / name) == histories(table) and stored(tmp_path / name) == entries(table)
    with pytest.raises(chunkhit.Error, match="has several ratings of item .*choose duplicates sum, last, first, max or keep"):
        chunkhit.pack_sparse(pack, tmp_path / "refused", keep_times=True)


@pytest.mark.parametrize("split", [{}, dict(split_by="ratio", test=0.4, split_order="time")], ids=str)
def test_exported_tables_are_packed_to_the_same_pack(table, csv, tmp_path, split):
    how = dict(order="input", id_order="sorted", chunk_rows=16, **KEEP)
    chunkhit.pack_sparse(csv, tmp_path / "first", **how, **split)
    first = tmp_path / "first" / "test" if split else tmp_path / "first"
    export_pack(first, tmp_path / "out.csv")
    exported = pd.read_csv(tmp_path / "out.csv")
    assert len(exported) == chunkhit.pack_info(first)["matrices"][0]["nnz"]
    chunkhit.pack_sparse(tmp_path / "out.csv", tmp_path / "second", **how)
    assert sequences(tmp_path / "second") == sequences(first) and stored(tmp_path / "second") == stored(first)
    export_pack(tmp_path / "second", tmp_path / "out2.csv")
    assert (tmp_path / "out2.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()
    chunkhit.pack_sparse(tmp_path / "out2.csv", tmp_path / "third", **how)
    assert (tmp_path / "third" / "part-00000.zst").read_bytes()[4096:] == (tmp_path / "second" / "part-00000.zst").read_bytes()[4096:]


def test_merged_parts_are_one_run(table, csv, pack, tmp_path):
    for number in range(3):
        table[table["user"] % 3 == number].to_csv(tmp_path / f"{number}.csv", index=False)
        chunkhit.pack_sparse(tmp_path / f"{number}.csv", tmp_path / str(number), reuse_ids=pack, chunk_rows=16, **KEEP)
    chunkhit.merge_packs([tmp_path / "0", tmp_path / "1", tmp_path / "2"], tmp_path / "merged")
    info = chunkhit.pack_info(tmp_path / "merged")
    assert info["repeats"] and info["matrices"] == chunkhit.pack_info(pack)["matrices"]
    assert chunkhit.verify_pack(tmp_path / "merged")["problems"] == []
    assert sequences(tmp_path / "merged") == histories(table) and stored(tmp_path / "merged") == entries(table)
    chunkhit.pack_sparse(tmp_path / "1.csv", tmp_path / "last", reuse_ids=pack, duplicates="last", keep_times=True)
    with pytest.raises(chunkhit.Error, match="has items that repeat in a row: no"):
        chunkhit.merge_packs([tmp_path / "0", tmp_path / "last"], tmp_path / "refused")
    with pytest.raises(chunkhit.Error, match="last.* has no items that repeat in a row, and .* has items that repeat"):
        chunkhit.SparseLoader([tmp_path / "0", tmp_path / "last"])


def test_memory_and_threads_change_no_byte(tmp_path):
    """1,500,000 ratings of few items spill with 32 MB."""
    random = np.random.default_rng(2)
    users, items = random.integers(0, 3000, 1_500_000), random.integers(0, 300, 1_500_000)
    times = random.integers(0, 1000, 1_500_000)
    for name, options in (("small", dict(memory_bytes=32 << 20, threads=1)), ("large", dict(memory_bytes=2 << 30, threads=3))):
        with chunkhit.RatingWriter(tmp_path / name, split_by="leave-one-out", chunk_rows=64, **options, **KEEP) as writer:
            writer.add(users, items, None, times)
    for split in ("train", "test"):
        assert bytes_of(tmp_path / "small" / split) == bytes_of(tmp_path / "large" / split)


def test_a_run_continues_and_ranks_share_the_rows(table, csv, tmp_path):
    how = dict(part_bytes=1 << 14, chunk_rows=8, **KEEP)
    chunkhit.pack_sparse(csv, tmp_path / "whole", **how)
    shutil.copytree(tmp_path / "whole", tmp_path / "out")
    parts = sorted(name for name in os.listdir(tmp_path / "out") if name.endswith(".zst"))
    assert len(parts) > 3
    for name in ["manifest.json", "users.csv", "run.json", *parts[2:], *(part[:-4] + ".json" for part in parts[2:])]:
        os.remove(tmp_path / "out" / name)
    chunkhit.pack_sparse(csv, tmp_path / "out", **how)
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "whole")
    shares = [sequences(tmp_path / "out", rank=rank, world_size=2, shuffle="window", rank_remainder="drop") for rank in range(2)]
    assert not set(shares[0]) & set(shares[1])
    assert all(histories(table)[user] == items for share in shares for user, items in share.items())


def test_what_orders_them_must_be_there(csv, tmp_path):
    with pytest.raises(chunkhit.Error, match="duplicates keep: expected keep_times") as error:
        chunkhit.pack_sparse(csv, tmp_path / "out", duplicates="keep")
    assert error.value.code == "usage"
    with pytest.raises(chunkhit.Error, match="keep_times: the ratings have no times"):
        chunkhit.pack_sparse(csv, tmp_path / "out", time="none", **KEEP)


def test_flipped_bytes_are_found(table, tmp_path):
    table[:300].to_csv(tmp_path / "few.csv", index=False)
    chunkhit.pack_sparse(tmp_path / "few.csv", tmp_path / "out", codec="none", **KEEP)
    part = tmp_path / "out" / "part-00000.zst"
    whole = part.read_bytes()
    for at in [*range(20, 140, 7), *range(4096, len(whole), 61)]:
        part.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1:])
        assert chunkhit.verify_pack(tmp_path / "out")["problems"], at


def test_tensors_add_them_up_or_have_each(table, pack):
    pytest.importorskip("torch")
    from chunkhit.torch import SparseLoader

    dense = np.concatenate([batch.x.numpy() for batch in SparseLoader(pack)])
    assert (dense == chunkhit.SparseDataset(pack)[:]).all()
    sequences_of = SparseLoader(pack, format="sequences", length=2000)
    assert sum(int(batch.lengths.sum()) for batch in sequences_of) == len(table)
    with pytest.raises(chunkhit.Error, match="format: items repeat in the pack's rows, which PyTorch's CSR does not hold"):
        SparseLoader(pack, format="csr")

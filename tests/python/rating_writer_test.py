"""RatingWriter: ratings in memory become the packs that pack_sparse makes of files."""
import concurrent.futures
import datetime
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import chunkhit

USERS = np.array([7, 7, 3, 3, 3, 9])
ITEMS = np.array([20, 30, 20, 10, 30, 10])
VALUES = np.array([5, 4, 3, 2, 1, 4.5])


def dense(folder, rows, columns):
    dataset = chunkhit.SparseDataset(folder)
    return dataset[dataset.rows_of(rows)][:, dataset.columns_of(columns)].tolist()


def files(folder):
    """The bytes of parts and tables; the manifest also says how large the input was as a file."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in ("run.json", "manifest.json")}


def test_a_pack_holds_what_was_added(tmp_path):
    with chunkhit.RatingWriter(tmp_path / "out") as writer:
        writer.add(USERS[:2], ITEMS[:2], VALUES[:2])
        writer.add(USERS[2:], ITEMS[2:], VALUES[2:])
    assert dense(tmp_path / "out", [3, 7, 9], [10, 20, 30]) == [[2, 3, 1], [0, 5, 4], [4.5, 0, 0]]
    assert chunkhit.verify_pack(tmp_path / "out")["problems"] == []


def test_the_pack_is_that_of_a_file_with_the_same_entries_however_they_are_divided(tmp_path):
    """More entries than a block has: 2,500,000, of 131,072 each."""
    random = np.random.default_rng(3)
    cells = random.permutation(5000 * 1000)[:2_500_000]
    users, items, values = cells // 1000, cells % 1000, random.integers(1, 11, len(cells)) / 2
    sp.save_npz(tmp_path / "file.npz", sp.coo_matrix((values, (users, items)), shape=(5000, 1000)))
    expected = chunkhit.pack_sparse(tmp_path / "file.npz", tmp_path / "file", min_user=3, split_by="users", test=0.1)
    for name, ends in (("whole", [len(cells)]), ("odd", [1, 1, 700_001, 917_504, 2_097_152, len(cells)])):
        with chunkhit.RatingWriter(tmp_path / name, min_user=3, split_by="users", test=0.1) as writer:
            for begin, end in zip([0, *ends], ends):
                writer.add(users[begin:end], items[begin:end], values[begin:end])
        assert chunkhit.pack_info(tmp_path / name)["train"]["pack_id"] == expected["train"]["pack_id"]
        for pack in ("train", "test"):
            assert files(tmp_path / name / pack) == files(tmp_path / "file" / pack)


def test_the_preset_makes_the_packs_of_the_file(ratings, tmp_path):
    folder = ratings[0]
    users, items, values = zip(*(line.split(",") for line in (folder / "ratings.csv").read_text().splitlines()[1:]))
    options = dict(preset="vae-cf", validation=20, test=20)
    by_file = chunkhit.pack_sparse(folder / "ratings.csv", tmp_path / "file", **options)
    with chunkhit.RatingWriter(tmp_path / "out", **options) as writer:
        writer.add(list(users), np.array(items), np.array(values, float))
    written = chunkhit.pack_info(tmp_path / "out")
    assert sorted(written) == sorted(by_file) == ["test", "train", "validation"]
    for name, info in written.items():
        assert {key: info[key] for key in ("rows", "columns", "matrices", "spec")} == {
            key: by_file[name][key] for key in ("rows", "columns", "matrices", "spec")}


def test_matrices_of_scipy_are_blocks(ratings, tmp_path):
    matrix = ratings[1]
    names = [f"i{item}" for item in range(matrix.shape[1])]
    for name, form in (("csr", sp.csr_matrix), ("coo", sp.coo_matrix), ("csc", sp.csc_matrix)):
        with chunkhit.RatingWriter(tmp_path / name) as writer:
            for first in range(0, matrix.shape[0], 50):
                block = form(matrix[first:first + 50])
                writer.add_matrix(block, users=np.arange(first, first + block.shape[0]), items=names)
        used = [row for row in range(matrix.shape[0]) if matrix[row].nnz]
        assert dense(tmp_path / name, used, names) == matrix[used].toarray().tolist()


def test_columns_of_pandas_are_taken(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"user": pandas.Categorical(["ann", "bob", "ann"]), "item": [1, 2, 2], "rating": [1, 2, 3],
                              "time": pandas.to_datetime(["2020-01-02", "2020-01-01", "2020-01-03"])})
    with chunkhit.RatingWriter(tmp_path / "out", split_by="leave-one-out", id_order="sorted") as writer:
        writer.add(table["user"], table["item"], table["rating"], table["time"])
    assert dense(tmp_path / "out/train", ["ann", "bob"], [1, 2]) == [[1, 0], [0, 2]]
    x, held_out = chunkhit.SparseDataset(tmp_path / "out/test")[:]
    assert (x.tolist(), held_out.tolist()) == ([[1, 0]], [[0, 3]])


def test_nullable_numbers_of_pandas_are_those_numbers(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"user": USERS, "item": ITEMS, "rating": VALUES}).astype(
        {"user": "Int64", "item": "UInt32", "rating": "Float64"})
    for name, values in (("out", table["rating"]), ("whole", table["rating"].round().astype("Int64"))):
        with chunkhit.RatingWriter(tmp_path / name) as writer:
            writer.add(table["user"], table["item"], values)
    assert dense(tmp_path / "out", [3, 7, 9], [10, 20, 30]) == [[2, 3, 1], [0, 5, 4], [4.5, 0, 0]]
    assert dense(tmp_path / "whole", [3, 7, 9], [10, 20, 30]) == [[2, 3, 1], [0, 5, 4], [4, 0, 0]]


@pytest.mark.parametrize("name", ["users", "items", "values", "times"])
@pytest.mark.parametrize("dtype", ["Int64", "Float64", "float64"])
def test_a_missing_value_of_pandas_is_named(tmp_path, name, dtype):
    pandas = pytest.importorskip("pandas")
    columns = {column: [1, 2, 3] for column in ("users", "items", "values", "times")}
    columns[name] = pandas.Series([1, None, 3], index=[7, 8, 9], dtype=dtype)
    with chunkhit.RatingWriter(tmp_path / "out") as writer:
        with pytest.raises(chunkhit.Error) as caught:
            writer.add(**columns)
        assert caught.value.code == "bad_data"
        assert re.match({("values", "float64"): "entry 1, counted from 0: value: expected a finite number",
                         ("times", "float64"): r"times\[1\]: expected a time, found nan"}.get(
                             (name, dtype), rf"{name}\[1\]: expected a value, found a missing one"), str(caught.value))
        writer.add([1], [1])


@pytest.mark.parametrize("times", [["2020-01-02", "2020-01-03"], [datetime.date(2020, 1, 2), datetime.date(2020, 1, 3)]])
def test_an_error_over_texts_as_times_says_what_makes_times_of_them(tmp_path, times):
    pandas = pytest.importorskip("pandas")
    with chunkhit.RatingWriter(tmp_path / "out", split_by="leave-one-out") as writer:
        with pytest.raises(chunkhit.Error, match=r"times: expected numbers or datetime64, found .*; pandas.to_datetime\(times\)"):
            writer.add([1, 1], [1, 2], times=times)
        writer.add([1, 1, 2, 2], [1, 2, 2, 1], times=pandas.to_datetime(times * 2))


def test_times_with_a_time_zone_are_those_of_utc(tmp_path):
    pandas = pytest.importorskip("pandas")
    times = pandas.Series(pandas.to_datetime(["2020-01-02", "2020-01-01"] * 2))
    packs = []
    for name, column in (("plain", times), ("zone", times.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))):
        with chunkhit.RatingWriter(tmp_path / name, split_by="leave-one-out") as writer:
            writer.add([1, 1, 2, 2], [1, 2, 2, 1], times=column)
        packs.append(chunkhit.pack_info(tmp_path / name)["test"]["pack_id"])
    assert packs[0] == packs[1]


def test_times_decide_what_is_held_out_and_which_pack_it_is(tmp_path):
    options = dict(split_by="leave-one-out", order="input", id_order="sorted")
    ids = []
    for name, times in (("up", [1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3]), ("down", [1e9 + 3, 1e9 + 2, 1e9 + 1, 1e9])):
        with chunkhit.RatingWriter(tmp_path / name, **options) as writer:
            writer.add([1, 1, 2, 2], [1, 2, 2, 1], times=times)
        ids.append(chunkhit.pack_info(tmp_path / name)["test"]["pack_id"])
        _, held_out = chunkhit.SparseDataset(tmp_path / name / "test")[:]
        assert held_out.tolist() == {"up": [[0, 1], [1, 0]], "down": [[1, 0], [0, 1]]}[name]
    assert ids[0] != ids[1]


@pytest.mark.parametrize("code, message, add", [
    ("usage", "items: found 2, expected 3", lambda w: w.add([1, 2, 3], [1, 2])),
    ("usage", "values: found 1, expected 2", lambda w: w.add([1, 2], [1, 2], [1.0])),
    ("usage", r"users: expected whole numbers or texts, found float64", lambda w: w.add([1.5], [1])),
    ("usage", r'users: expected whole numbers or texts, found float64; .astype\("int64"\) makes', lambda w: w.add([1.0], [1])),
    ("bad_data", r"items\[1\]: expected a value, found a missing one", lambda w: w.add([1, 2], [1, np.nan])),
    ("usage", r"users: expected shape \(n,\), found \(1, 2\)", lambda w: w.add([[1, 2]], [1])),
    ("bad_data", r"users\[1\]: expected a text or a whole number, found None", lambda w: w.add(["a", None], [1, 2])),
    ("bad_data", 'entry 1, counted from 0: item: expected an id, found "NaN"', lambda w: w.add([1, 2], ["a", "NaN"])),
    ("bad_data", "entry 2, counted from 0: value: expected a finite number.*found nan", lambda w: w.add([1, 2, 3], [1, 2, 3],
                                                                                                   [1, 2, np.nan])),
    ("bad_data", "entry 0, counted from 0: value: expected a number that a 32-bit float holds, found 16777217",
     lambda w: w.add([1], [1], [16777217])),
    ("usage", "times: expected for all entries or for none", lambda w: w.add([1], [1], times=[1])),
    ("bad_data", r"times\[1\]: expected a time, found NaT",
     lambda w: w.add([1, 1], [1, 2], times=np.array(["2020-01-01", "NaT"], "datetime64[s]"))),
    ("usage", "items: expected 3 ids, as the matrix has, found 2", lambda w: w.add_matrix(sp.eye(3), items=[1, 2])),
])
def test_a_wrong_block_is_named_and_nothing_of_it_added(tmp_path, code, message, add):
    with chunkhit.RatingWriter(tmp_path / "out") as writer:
        writer.add(USERS, ITEMS, VALUES)
        with pytest.raises(chunkhit.Error, match=message) as caught:
            add(writer)
        assert caught.value.code == code
    assert chunkhit.pack_info(tmp_path / "out")["matrices"][0]["nnz"] == len(USERS)


@pytest.mark.parametrize("options, message", [
    (dict(split_by="given"), "split_by given: has no meaning for a RatingWriter"),
    (dict(container="zip"), "container"),
    (dict(split_by="users"), "split_by"),
])
def test_options_that_make_no_sense_are_errors_at_once(tmp_path, options, message):
    with pytest.raises(chunkhit.Error, match=message) as caught:
        chunkhit.RatingWriter(tmp_path / "out", **options)
    assert caught.value.code == "usage" and not (tmp_path / "out").exists()


def test_an_exception_in_the_body_publishes_nothing(tmp_path):
    with pytest.raises(ValueError, match="enough"):
        with chunkhit.RatingWriter(tmp_path / "out") as writer:
            writer.add(USERS, ITEMS, VALUES)
            raise ValueError("enough")
    assert not (tmp_path / "out").exists()
    with pytest.raises(chunkhit.Error, match="closed"):
        writer.add(USERS, ITEMS, VALUES)


def test_errors_of_packing_are_raised_by_a_later_call(tmp_path):
    chunkhit.RatingWriter(tmp_path / "none").close()
    with pytest.raises(chunkhit.Error, match="there are no ratings"):
        chunkhit.RatingWriter(tmp_path / "none").finish()
    with pytest.raises(chunkhit.Error, match="user 1 has several ratings of item 2") as caught:
        with chunkhit.RatingWriter(tmp_path / "twice") as writer:
            writer.add([1, 1], [2, 2])
    assert caught.value.code == "bad_data"
    (tmp_path / "file").write_text("")
    with pytest.raises(chunkhit.Error) as caught:
        with chunkhit.RatingWriter(tmp_path / "file") as writer:
            writer.add([1], [2])
    assert caught.value.code == "cannot_write"
    assert not (tmp_path / "twice").exists()


def test_the_same_program_again_finds_its_pack_finished_and_other_ratings_are_an_error(tmp_path):
    def write(values):
        with chunkhit.RatingWriter(tmp_path / "out") as writer:
            writer.add(USERS, ITEMS, values)

    write(VALUES)
    written = (tmp_path / "out/manifest.json").stat().st_mtime_ns
    write(VALUES)
    assert (tmp_path / "out/manifest.json").stat().st_mtime_ns == written
    with pytest.raises(chunkhit.Error, match="holds another pack"):
        write(VALUES[::-1])
    assert chunkhit.verify_pack(tmp_path / "out")["problems"] == []


KILLED = """
import os, signal, sys
import numpy as np
import chunkhit
writer = chunkhit.RatingWriter(sys.argv[1], memory_bytes=48 << 20, threads=1)
for block in range(4):
    cells = np.arange(block << 20, (block + 1) << 20)
    writer.add(cells // 500, cells % 500)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_leaves_no_pack_and_the_next_one_starts_from_scratch(tmp_path):
    """The ratings do not fit into memory: some were on disk when the process was killed."""
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out")])
    assert killed.returncode == -signal.SIGKILL
    assert not any(name.startswith(("manifest", "part")) for name in os.listdir(tmp_path / "out"))
    with chunkhit.RatingWriter(tmp_path / "out") as writer:
        writer.add(USERS, ITEMS, VALUES)
    assert sorted(name.split(".")[0] for name in os.listdir(tmp_path / "out")) == ["items", "manifest", "part-00000",
                                                                                   "part-00000", "run", "users"]


def test_progress_is_given_while_blocks_are_added_and_while_packing(tmp_path):
    events = []
    with chunkhit.RatingWriter(tmp_path / "out", progress=events.append) as writer:
        writer.add(USERS, ITEMS, VALUES)
    assert events[-1]["phase"] == "finishing" and events[-1]["rows_done"] == events[-1]["rows_total"] == 3


@pytest.mark.parametrize("make", [chunkhit.ImageWriter, chunkhit.RatingWriter])
def test_a_writer_of_the_parent_is_refused_in_a_forked_child(tmp_path, make):
    """A child's images replaced its parent's; one that held a RatingWriter never ended."""
    entry = (np.zeros((4, 4, 3), np.uint8), 0) if make is chunkhit.ImageWriter else (USERS, ITEMS, VALUES)
    writer = make(tmp_path / "out")
    writer.add(*entry)
    child = os.fork()
    if child == 0:
        for use in (lambda: writer.add(*entry), writer.finish):
            try:
                use()
                os._exit(1)
            except chunkhit.Error as error:
                if error.code != "usage" or "make one in each child" not in str(error):
                    os._exit(2)
        writer.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    writer.finish()
    assert chunkhit.verify_pack(tmp_path / "out")["problems"] == []


@pytest.mark.parametrize("make", [chunkhit.ImageWriter, chunkhit.RatingWriter])
def test_a_writer_that_another_thread_is_in_is_an_error(tmp_path, make):
    """Two threads in a writer crashed it."""
    entry = (np.zeros((4, 4, 3), np.uint8), 0) if make is chunkhit.ImageWriter else (USERS, ITEMS, VALUES)
    errors = []

    def use_from_another_thread(_):
        for use in (lambda: writer.add(*entry), writer.finish, writer.close):
            with concurrent.futures.ThreadPoolExecutor(1) as threads:
                errors.append(threads.submit(use).exception())

    writer = make(tmp_path / "out", progress=lambda event: finishing and use_from_another_thread(event))
    finishing = False
    writer.add(*entry)
    finishing = True
    writer.finish()
    assert errors and all(isinstance(error, chunkhit.Error) and error.code == "usage" for error in errors)
    assert "another thread is using this writer" in str(errors[0])
    assert chunkhit.verify_pack(tmp_path / "out")["problems"] == []

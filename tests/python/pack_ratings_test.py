"""pack_ratings: tables of other libraries become the packs that pack_sparse makes of the same tables as CSV."""
import csv
import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import arrow_producer as arrow  # noqa: E402

COLUMNS = ("userId", "movieId", "rating", "timestamp")


def ratings(count=6000, users=400, items=150, seed=5):
    """Columns by name; times all differ."""
    random = np.random.default_rng(seed)
    cells = random.permutation(users * items)[:count]
    return dict(zip(COLUMNS, (cells // items + 10, cells % items + 1000, random.integers(1, 11, count) / 2,
                              1_500_000_000 + random.permutation(count * 10)[:count])))


def write_csv(path, columns):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values())))
    return path


def packed(folder):
    """The bytes of each pack's parts and tables by name, but the pack's id and the hash of the header with it: that of a text
    is made of its bytes."""
    info = chunkhit.pack_info(folder)
    return {name: {path.name: without_id(path.read_bytes()) if path.suffix == ".zst" else path.read_bytes()
                   for path in (folder / name).iterdir() if path.suffix != ".json"}
            for name in ([""] if "pack_id" in info else info)}


def ids_of(info):
    return info.get("pack_id") or {name: each["pack_id"] for name, each in info.items()}


def without_id(part):
    return part[:32] + part[40:4088] + part[4096:]


def batches(columns, ends, make, **options):
    """A table of ours with the columns in batches that end there."""
    cuts = [slice(begin, end) for begin, end in zip([0, *ends], ends)]
    return arrow.Table([{name: make(name, column[cut]) for name, column in columns.items()} for cut in cuts], **options)


def number_column(name, values, offset=0):
    return arrow.numbers(values, "float64" if name == "rating" else "int64", offset=offset)


def is_released(table):
    gc.collect()
    return table.released == table.given and all(table.given.values())


def raises(match, table, folder, code="bad_data", **options):
    with pytest.raises(chunkhit.Error, match=match) as caught:
        chunkhit.pack_ratings(table, folder / "failed", **options)
    assert caught.value.code == code
    assert not (folder / "failed" / "manifest.json").exists()


@pytest.mark.parametrize("options", [{}, dict(min_user=12, min_item=20), dict(split_by="users", validation=0.1, test=0.1),
                                     dict(split_by="leave-one-out", keep_times=True, container="shard"),
                                     dict(split_by="time", test=0.2), dict(keep_times=True, above=2, values="u8:0.5")])
def test_a_stream_makes_the_pack_of_a_csv(tmp_path, options):
    columns = ratings()
    chunkhit.pack_sparse(write_csv(tmp_path / "ratings.csv", columns), tmp_path / "file", **options)
    table = batches(columns, [1, 700, 700, 6000], number_column)
    info = chunkhit.pack_ratings(table, tmp_path / "stream", **options)
    assert packed(tmp_path / "stream") == packed(tmp_path / "file")
    assert dict(info) == chunkhit.pack_info(tmp_path / "stream")
    assert is_released(table)
    chunkhit.pack_ratings(columns, tmp_path / "dict", **options)
    with chunkhit.RatingWriter(tmp_path / "written", **options) as writer:
        writer.add(*columns.values())
    assert packed(tmp_path / "dict") == packed(tmp_path / "file")
    for name in ("dict", "written"):
        assert ids_of(chunkhit.pack_info(tmp_path / name)) == ids_of(info)


def test_offsets_of_batches_and_columns_are_skipped(tmp_path):
    columns = ratings(500)
    ids = [f"user-{user} of the island" if user % 2 else f"u{user}" for user in columns["userId"]]
    columns["userId"] = ids
    chunkhit.pack_sparse(write_csv(tmp_path / "ratings.csv", columns), tmp_path / "file")
    for form in ("u", "U", "vu"):
        table = {"rating": arrow.numbers([9, 9, *columns["rating"]], "float32", offset=1),
                 "userId": arrow.texts(["skipped", "a text that is skipped", *ids], form, offset=1),
                 "movieId": arrow.numbers([7, *columns["movieId"]], "int32"),
                 "timestamp": arrow.numbers([0, 0, 0, 0, *columns["timestamp"]], "int64", offset=3)}
        made = arrow.Table([table], offset=1)
        chunkhit.pack_ratings(made, tmp_path / form)
        assert packed(tmp_path / form) == packed(tmp_path / "file") and is_released(made)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_ids_values_and_times_of_each_width_are_read(tmp_path, dtype):
    users, items, values, times = [3, 3, 7, 100], [1, 2, 2, 1], [5, 4, 3, 2], [1, 2, 3, 4]
    columns = dict(zip(COLUMNS, (users, items, values, times)))
    chunkhit.pack_sparse(write_csv(tmp_path / "ratings.csv", columns), tmp_path / "file", keep_times=True)
    table = arrow.Table([{name: arrow.numbers(column, dtype) for name, column in columns.items()}])
    chunkhit.pack_ratings(table, tmp_path / "stream", keep_times=True)
    assert packed(tmp_path / "stream") == packed(tmp_path / "file")


def test_ids_that_int64_does_not_hold_are_texts_as_in_a_csv(tmp_path):
    columns = {"user": [2**64 - 1, 2**63, 5, 2**63 - 1], "item": [1, 2, 3, 4]}
    chunkhit.pack_sparse(write_csv(tmp_path / "ratings.csv", columns), tmp_path / "file")
    table = arrow.Table([{"user": arrow.numbers(columns["user"], "uint64"), "item": arrow.numbers(columns["item"])}])
    chunkhit.pack_ratings(table, tmp_path / "stream")
    assert packed(tmp_path / "stream") == packed(tmp_path / "file")
    assert sorted(chunkhit.SparseDataset(tmp_path / "stream").row_ids()) == sorted(map(str, columns["user"]))


def test_dictionaries_may_change_from_batch_to_batch(tmp_path):
    first = {"user": arrow.words([1, 0, 1], arrow.texts(["ann", "bob"]), "int8"),
             "item": arrow.words([0, 0, 1], arrow.numbers([30, 40, 50]), "uint16")}
    second = {"user": arrow.words([9, 0, 2, 1], arrow.texts(["", "bob", "eve", "ann"], offset=1), "int8", offset=1),
              "item": arrow.words([0, 1, 0], arrow.numbers([40, 50, 60], offset=1), "uint16")}
    chunkhit.pack_ratings(arrow.Table([first, second]), tmp_path / "out")
    dataset = chunkhit.SparseDataset(tmp_path / "out")
    x = dataset[dataset.rows_of(["ann", "bob", "eve"])][:, dataset.columns_of([30, 40, 50, 60])]
    assert x.tolist() == [[1, 0, 0, 1], [1, 1, 1, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize("form, units", [("tss:", 1), ("tsm:UTC", 1000), ("tsu:", 10**6), ("tsn:Asia/Tokyo", 10**9), ("tdm", 1000)])
def test_timestamps_are_seconds(tmp_path, form, units):
    columns = ratings(300)
    columns["timestamp"] -= 1_600_000_000  # before 1970, too
    chunkhit.pack_sparse(write_csv(tmp_path / "ratings.csv", columns), tmp_path / "file", keep_times=True)
    table = {name: number_column(name, column) for name, column in columns.items()}
    table["timestamp"] = arrow.numbers(columns["timestamp"] * units, form=form)
    chunkhit.pack_ratings(arrow.Table([table]), tmp_path / "stream", keep_times=True)
    assert packed(tmp_path / "stream") == packed(tmp_path / "file")
    if units > 1:
        table["timestamp"] = arrow.numbers([*columns["timestamp"][:-1] * units, 1], form=form)
        raises(f'row 299, counted from 0: column "timestamp": expected whole seconds, found 1 of which {units} are one; a cast',
               arrow.Table([table]), tmp_path)


def test_days_and_booleans_are_read(tmp_path):
    table = {"user": [1, 1, 2], "item": [1, 2, 1], "click": ["1", "0", "1"], "date": ["1970-01-02", "2020-02-29", "1969-12-31"]}
    chunkhit.pack_sparse(write_csv(tmp_path / "ratings.csv", table), tmp_path / "file", keep_times=True, zeros="keep")
    made = arrow.Table([{"user": arrow.numbers([1, 1, 2]), "item": arrow.numbers([1, 2, 1]),
                         "click": arrow.booleans([False, True, False, True], offset=1),
                         "date": arrow.numbers([1, 18321, -1], "int32", form="tdD")}])
    chunkhit.pack_ratings(made, tmp_path / "stream", keep_times=True, zeros="keep")
    assert packed(tmp_path / "stream") == packed(tmp_path / "file")


@pytest.mark.parametrize("name", COLUMNS)
def test_a_null_is_named_by_row_and_column(tmp_path, name):
    def make(column, values):
        nulls = (170,) if column == name and len(values) == 200 else ()
        return arrow.numbers(values, "float64" if column == "rating" else "int64", offset=20, nulls=nulls)

    columns = {each: np.concatenate([column[:120], column]) for each, column in ratings(200).items()}
    table = batches(columns, [120, 320], make)
    raises(f'row 250, counted from 0: column "{name}": expected a value, found null; leave such rows out', table, tmp_path)
    assert is_released(table)


def test_an_id_or_a_value_that_is_none_is_named_by_its_row_over_all_batches(tmp_path):
    fine = {"user": arrow.texts(["a", "b"]), "item": arrow.numbers([1, 2]), "rating": arrow.numbers([1, 2], "float32")}
    for name, column, message in (("user", arrow.texts(["c", ""]), "user: expected an id, found nothing"),
                                  ("user", arrow.texts(["c", b"\xff\xfe"]), 'user: expected UTF-8 without NUL, found "'),
                                  ("rating", arrow.numbers([1, np.nan], "float32"), "value: expected a finite number")):
        table = arrow.Table([fine, {**fine, name: column}])
        raises(f"entry 3, counted from 0: {message}", table, tmp_path)
        assert is_released(table)
    dictionary = arrow.Table([{"user": arrow.words([0, 2], arrow.texts(["a", "b"])), "item": arrow.numbers([1, 2])}])
    raises('row 1, counted from 0: column "user": expected an index below 2, as its dictionary has, found 2', dictionary, tmp_path)


def test_a_producer_that_fails_publishes_nothing(tmp_path):
    table = batches(ratings(), [3000, 6000], number_column, fails_at=1)
    raises("table: its producer fails: the cable is cut", table, tmp_path)
    assert is_released(table)


def test_arrays_that_do_not_fit_their_type_are_errors(tmp_path):
    ids = arrow.numbers([1, 2])
    short = arrow.Column("l", [None, np.arange(2).tobytes()], 1)
    views = arrow.texts(["long enough for a buffer", "b"], "vu")
    views.buffers[-1] = np.frombuffer(np.array([3, 3]).tobytes(), np.uint8)
    ends = arrow.Column("u", [None, np.array([0, 4, 2], np.int32).tobytes(), b"abcd"], 2)
    for name, column, message in (
            ("short", short, 'table: its producer gave a batch with a column "item" that is no int64'),
            ("offset", arrow.Column("l", [None, b"0" * 16], 2, offset=-1), 'a column "item" that is no int64'),
            ("length", arrow.Column("l", [None, b"0" * 16], 2**62), 'a column "item" that is no int64'),
            ("buffers", arrow.Column("u", [None, b"0" * 16], 2), 'a column "item" that is no text'),
            ("missing", arrow.Column("l", [None, None], 2), 'a column "item" that is no int64'),
            ("views", views, 'row 0, counted from 0: column "item": expected a text in its buffer, found one outside'),
            ("ends", ends, 'row 1, counted from 0: column "item": expected a text in its buffer, found one outside')):
        table = arrow.Table([{"user": ids, "item": column}])
        raises(message, table, tmp_path)
        assert is_released(table), name


def test_types_that_are_no_ratings_are_errors(tmp_path):
    ids = arrow.numbers([1, 2])
    decimal = arrow.Column("d:10,2", [None, b"0" * 32], 2)
    for columns, message in (({"user": ids, "item": arrow.numbers([1, 2], "float64")},
                              r'column "item": expected whole numbers or texts, found float64 \(g\); cast it to int64 or a text'),
                             ({"user": ids, "item": ids, "rating": decimal},
                              r'column "rating": expected numbers, found decimal \(d:10,2\); cast it to float64'),
                             ({"user": ids, "item": ids, "rating": arrow.words([0, 0], ids)},
                              r'column "rating": expected numbers, found a dictionary of int64')):
        table = arrow.Table([columns])
        raises(message, table, tmp_path, code="usage")
        assert table.released["stream"] == 1
    raises('column "day": expected numbers, dates or timestamps, found text',
           arrow.Table([{"user": ids, "item": ids, "day": arrow.texts(["a", "b"])}]), tmp_path, code="usage", time="day")


def test_a_column_that_is_named_as_times_and_holds_none_is_left_out_with_a_warning(tmp_path, logs):
    table = arrow.Table([{"user": arrow.numbers([1]), "item": arrow.numbers([2]), "date": arrow.texts(["May"])}])
    with logs("column date is not used as time: it holds neither numbers nor dates"):
        chunkhit.pack_ratings(table, tmp_path / "out")


@pytest.mark.parametrize("names, options, message", [
    ("a b", {}, "table: no column for user among 'a', 'b'; give its name"),
    ("user b", {}, "table: no column for item among 'user', 'b'"),
    ("user item", dict(item="itm"), "item: no column 'itm' among 'user', 'item'; did you mean \"item\""),
    ("user item", dict(item="user", user="user"), "user and item: both are column 'user'; give both"),
    ("user item", dict(user=3), "user: expected a name, or a number from 1 to 2, found 3"),
    ("user item", dict(item=0), "item: expected a name, or a number from 1 to 2, found 0"),
    ("user user_ item", {}, "")])
def test_columns_are_found_by_name(tmp_path, names, options, message):
    columns = {name: np.array([1, 2]) for name in names.split()}
    if not message:
        message = "table: columns 'user' and 'user_' both may be user; give its name"
    raises(message, columns, tmp_path, code="usage", **options)


def test_ids_in_the_index_of_a_frame_are_named_with_the_way_out(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"reviewerID": [1, 2], "asin": [3, 4]})
    raises("no column for user among 'asin'; the index has it: pass table.reset_index()", frame.set_index("reviewerID"), tmp_path, code="usage")
    chunkhit.pack_ratings(frame.set_index("reviewerID").reset_index(), tmp_path / "out")


def test_columns_are_found_by_usual_names_or_chosen(tmp_path):
    columns = {"sid": [8, 8], "Movie_ID": [1, 2], "extra": ["x", "y"], "User Id": [5, 6], "stars": [3, 4], "stars2": [1, 2]}
    for options, values in (({}, [[3, 0], [0, 4]]), (dict(value="stars2"), [[1, 0], [0, 2]]), (dict(value=6), [[1, 0], [0, 2]]),
                            (dict(value="none"), [[1, 0], [0, 1]])):
        folder = tmp_path / str(options)
        chunkhit.pack_ratings(columns, folder, **options)
        dataset = chunkhit.SparseDataset(folder)
        assert dataset[dataset.rows_of([5, 6])][:, dataset.columns_of([1, 2])].tolist() == values


def test_tables_are_appended(tmp_path):
    columns = ratings(900)
    chunkhit.pack_ratings(columns, tmp_path / "one")

    def tables():
        cuts = [{name: column[begin:begin + 300] for name, column in columns.items()} for begin in (0, 300, 600)]
        yield {name: column.tolist() for name, column in cuts[0].items()}
        yield arrow.Batch([{name: number_column(name, column) for name, column in cuts[1].items()}])
        yield batches(cuts[2], [300], number_column)

    chunkhit.pack_ratings(tables(), tmp_path / "several")
    assert packed(tmp_path / "several") == packed(tmp_path / "one")
    raises("table: batch 0: expected Arrow's __arrow_c_stream__, a DataFrame of pandas or a dict of arrays, found a int", [1, 2],
           tmp_path, code="usage")
    raises("or an iterable of them, found a int", 3, tmp_path, code="usage")
    raises("pack_sparse reads text files, and pyarrow.parquet", "ratings.parquet", tmp_path, code="usage")
    raises("expected columns of one length, found", {"user": [1], "item": [1, 2]}, tmp_path, code="usage")
    raises("column 'item': expected an array or a list, found a int", {"user": [1], "item": 1}, tmp_path, code="usage")
    read = batches(columns, [900], number_column).__arrow_c_stream__()

    class Again:
        def __arrow_c_stream__(self):
            return read

    raises("its batches were read before", [Again(), Again()], tmp_path, code="usage")


def test_tables_of_pandas_are_those_of_a_csv(tmp_path):
    pandas = pytest.importorskip("pandas")
    columns = ratings(800)
    frame = pandas.DataFrame(columns)
    frame["userId"] = [f"u{user}" for user in frame["userId"]]
    frame.to_csv(tmp_path / "ratings.csv", index=False)
    chunkhit.pack_sparse(tmp_path / "ratings.csv", tmp_path / "file", keep_times=True)
    nullable = frame.astype({"userId": "string", "movieId": "Int32", "rating": "Float32", "timestamp": "Int64"})
    category = frame.astype({"userId": "category", "movieId": "category"})
    category["timestamp"] = pandas.to_datetime(frame["timestamp"], unit="s")
    for name, table in (("plain", frame), ("nullable", nullable), ("category", category), ("index", frame.set_index(frame["movieId"]))):
        chunkhit.pack_ratings(table, tmp_path / name, keep_times=True)
        assert packed(tmp_path / name) == packed(tmp_path / "file"), name
    for name, column in (("userId", frame), ("userId", nullable), ("movieId", nullable), ("movieId", frame), ("timestamp", frame)):
        table = column.copy()
        table[name] = table[name].where(table.index != 7)
        raises(rf"rows from 800, counted from 0: {name}\[7\]: expected ", [frame, table], tmp_path)
    said = subprocess.check_output([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-info"), tmp_path / "plain"], text=True)
    assert ": ratings of a program (RatingWriter, pack_ratings) --keep-times\n" in said and "pack-sparse INPUT" not in said
    frame.loc[5, "rating"] = np.nan
    raises("entry 5, counted from 0: value: expected a finite number .*value is column 'rating'", frame, tmp_path)


@pytest.mark.parametrize("library", ["pyarrow", "polars", "duckdb"])
def test_tables_of_other_libraries_are_those_of_a_csv(tmp_path, library):
    module = pytest.importorskip(library)
    columns = ratings(800)
    columns["userId"] = [f"the user {user}" for user in columns["userId"]]
    path = write_csv(tmp_path / "ratings.csv", columns)
    chunkhit.pack_sparse(path, tmp_path / "file", keep_times=True)
    if library == "pyarrow":
        table = module.table(columns)
        tables = [table, module.concat_tables([table[:100], table[100:]]), iter(table.to_batches(max_chunksize=77)),
                  module.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=77))]
    elif library == "polars":
        tables = [module.DataFrame(columns), module.DataFrame(columns).with_columns(module.col("userId").cast(module.Categorical))]
    else:
        tables = [module.sql(f"SELECT * FROM '{path}'").fetch_record_batch(100)]
    for index, table in enumerate(tables):
        chunkhit.pack_ratings(table, tmp_path / str(index), keep_times=True)
        assert packed(tmp_path / str(index)) == packed(tmp_path / "file")

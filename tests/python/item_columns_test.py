"""Columns beside items and users: what the CSVs say is what loaders, datasets, lists, h5py and exports give."""
import csv
import json
import math
import os
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from servers import Nginx  # noqa: E402

ITEMS, USERS = range(60), range(1100)
GENRES = ["Action|Sci-Fi", "", "a,\"b\"", "Köln"]
# By name: the text in the CSV, and the value in the pack.
ITEM_COLUMNS = {
    "title": lambda n: (f"Movie {n}, the", f"Movie {n}, the"),
    "genres": lambda n: (GENRES[n % 4], GENRES[n % 4]),
    "year": lambda n: (str(1930 + n), 1930 + n),
    "score": lambda n: ("" if n % 7 == 0 else f"{n / 8:g}", math.nan if n % 7 == 0 else n / 8),
    "code": lambda n: (f"{n:05}", f"{n:05}"),
    "ratings": lambda n: (str(2**60 + n), 2**60 + n),  # the name of a column of the list itself
}
USER_COLUMNS = {"age": lambda n: (str(n - 40), n - 40), "a/b": lambda n: (f"{n}%", f"{n}%")}
TYPES = {"title": "text", "genres": "text", "year": "int64", "score": "float64", "code": "text", "ratings": "int64",
         "age": "int64", "a/b": "text"}


def write_table(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """ratings.csv, of items m0, m1, ... and users 0, 1, ...; movies.csv and users.csv."""
    folder = tmp_path_factory.mktemp("tables")
    random = np.random.default_rng(5)
    write_table(folder / "ratings.csv", ["userId", "movieId", "rating", "timestamp"],
                [(user, f"m{item}", random.integers(1, 11) / 2, 10**9 + int(random.integers(10**6)))
                 for user in USERS for item in random.permutation(len(ITEMS))[: 8 + user % 20]])
    write_table(folder / "movies.csv", ["movieId", *ITEM_COLUMNS],
                [(f"m{n}", *(of(n)[0] for of in ITEM_COLUMNS.values())) for n in ITEMS])
    write_table(folder / "users.csv", ["age", "userId", "a/b"],
                [(USER_COLUMNS["age"](n)[0], n, USER_COLUMNS["a/b"](n)[0]) for n in USERS])
    return folder


def options(tables):
    return dict(user="userId", item_columns=tables / "movies.csv", user_columns=tables / "users.csv")


@pytest.fixture(scope="module", params=["shard", "hdf5", "little memory"])
def pack(request, tables, tmp_path_factory):
    path = tmp_path_factory.mktemp("pack") / request.param
    how = {"shard": dict(chunk_rows=16, part_bytes=700), "hdf5": dict(container="hdf5", part_bytes=2000),
           "little memory": dict(chunk_rows=16, threads=1, memory_bytes=34 << 20)}[request.param]
    chunkhit.pack_sparse(tables / "ratings.csv", path, **options(tables), **how)
    return path


def numbers(ids):
    return [int(str(each).lstrip("m")) for each in ids]


def assert_column(found, of, name, ids):
    wanted = [of[name](n)[1] for n in numbers(ids)]
    if TYPES[name] == "text":
        assert found.dtype == object and found.tolist() == wanted
    else:
        assert found.dtype == TYPES[name]
        np.testing.assert_array_equal(found, np.array(wanted, TYPES[name]))


def assert_columns(reader):
    for name in ITEM_COLUMNS:
        assert_column(reader.item_column(name), ITEM_COLUMNS, name, reader.column_ids())
    for name in USER_COLUMNS:
        assert_column(reader.user_column(name), USER_COLUMNS, name, reader.row_ids())


def listed(columns):
    return [{"name": name, "type": TYPES[name]} for name in columns]


def test_loaders_and_datasets_give_the_columns(pack):
    for reader in (chunkhit.SparseDataset(pack), chunkhit.SparseLoader(pack, batch_size=16)):
        assert reader.info["item_columns"] == listed(ITEM_COLUMNS)
        assert reader.info["user_columns"] == listed(USER_COLUMNS)
        assert_columns(reader)


def test_a_batch_is_mapped_by_its_rows_and_columns(pack):
    loader = chunkhit.SparseLoader(pack, batch_size=9, shuffle="global", seed=3, format="csr")
    users, items = loader.row_ids(), loader.column_ids()
    for batch in loader:
        assert_column(loader.user_column("age", batch.rows), USER_COLUMNS, "age", users[batch.rows.astype(int)])
        assert_column(loader.item_column("title", batch.x.indices), ITEM_COLUMNS, "title", items[batch.x.indices])


def test_tensors_are_mapped_too(pack):
    torch = pytest.importorskip("torch")
    import chunkhit.torch

    loader = chunkhit.torch.SparseLoader(pack, batch_size=9, shuffle="global")
    batch = next(iter(loader))
    assert isinstance(batch.rows, torch.Tensor)
    assert_column(loader.user_column("a/b", batch.rows), USER_COLUMNS, "a/b", loader.row_ids()[batch.rows.numpy().astype(int)])


def test_the_method_of_a_csr_tensor_is_no_row_of_columns(pack):
    torch = pytest.importorskip("torch")
    import chunkhit.torch

    loader = chunkhit.torch.SparseLoader(pack, batch_size=9, format="csr")
    batch = next(iter(loader))
    with pytest.raises(chunkhit.Error, match="columns: expected whole numbers from 0, found the method indices; .*col_indices") as error:
        loader.item_column("title", batch.x.indices)
    assert error.value.code == "usage" and isinstance(batch.x, torch.Tensor)
    columns = batch.x.col_indices()
    assert_column(loader.item_column("title", columns), ITEM_COLUMNS, "title", loader.column_ids()[columns.numpy()])


def test_lists_are_tables_that_other_programs_read(pack):
    with open(pack / "items.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["column", "ratings", "item", *ITEM_COLUMNS]
    for row in rows[1:]:
        number = numbers([row[2]])[0]
        # A float64 keeps its type when it is read again: 2 is written as 2.0.
        assert row[3:] == [str(value) if isinstance(value, float) and text else text
                           for text, value in (of(number) for of in ITEM_COLUMNS.values())]
    report = json.loads((pack / "manifest.json").read_text())["stats"]
    used = len(rows) - 1
    assert report["item_columns"] == {"file": "movies.csv", "rows": 60, "unused_rows": 60 - used, "without_row": 0}
    assert report["user_columns"] == {"file": "users.csv", "rows": 1100, "unused_rows": 0, "without_row": 0}


def test_h5py_reads_the_columns(pack):
    if not (pack / "part-00000.h5").exists():
        pytest.skip("no HDF5")
    parts = sorted(pack.glob("part-*.h5"))
    assert len(parts) > 1
    for part in parts:
        with h5py.File(part) as file:
            for table, of, names in (("var", ITEM_COLUMNS, {"ratings": "column_5"}), ("obs", USER_COLUMNS, {"a/b": "column_1"})):
                ids = file[table]["_index"].asstr()[:]
                for name in of:
                    column = file[table][names.get(name, name)]
                    values = np.asarray(column.asstr()[:], object) if TYPES[name] == "text" else column[:]
                    assert_column(values, of, name, ids)
                assert set(file[table].attrs["column-order"]) >= {names.get(name, name) for name in of}


def test_anndata_reads_the_columns(tables, tmp_path):
    anndata = pytest.importorskip("anndata")
    chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / "pack", container="hdf5", **options(tables))
    found = anndata.read_h5ad(tmp_path / "pack" / "part-00000.h5")
    assert_column(found.var["title"].to_numpy(object), ITEM_COLUMNS, "title", found.var_names)
    assert_column(found.obs["age"].to_numpy(), USER_COLUMNS, "age", found.obs_names)


def test_all_packs_of_a_split_have_the_columns(tables, tmp_path):
    chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / "split", split_by="users", validation=10, test=15, min_user=10,
                         min_item=10, **options(tables))
    names = ("train", "validation", "test")
    for name in names:
        assert_columns(chunkhit.SparseDataset(tmp_path / "split" / name))
    lists = {(tmp_path / "split" / name / "items.csv").read_bytes() for name in names}
    assert len(lists) == 1
    both = chunkhit.SparseLoader([tmp_path / "split" / name for name in names[1:]])
    assert_columns(both)


def test_items_without_a_row_have_missing_values(tables, tmp_path):
    rows = list(csv.reader(open(tables / "movies.csv", newline="")))
    write_table(tmp_path / "some.csv", rows[0], [row for row in rows[1:] if row[0] not in ("m3", "m8")] + [["m99"] + ["1"] * 6])
    chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / "pack", item_columns=tmp_path / "some.csv")
    dataset = chunkhit.SparseDataset(tmp_path / "pack")
    kinds = {each["name"]: each["type"] for each in dataset.info["item_columns"]}
    assert kinds == {"title": "text", "genres": "text", "year": "float64", "score": "float64", "code": "text", "ratings": "text"}
    columns = [dataset.column_of("m3"), dataset.column_of("m4")]
    np.testing.assert_array_equal(dataset.item_column("year", columns), [math.nan, 1934])
    assert dataset.item_column("ratings", columns).tolist() == ["", str(2**60 + 4)]
    assert dataset.info["stats"]["item_columns"]["without_row"] == 2
    assert dataset.info["stats"]["item_columns"]["unused_rows"] >= 1


def test_ids_are_in_the_column_named_as_detected_in_the_ratings(tables, tmp_path):
    rows = list(csv.reader(open(tables / "movies.csv", newline="")))
    write_table(tmp_path / "numbered.csv", ["", *rows[0]], [[number, *row] for number, row in enumerate(rows[1:])])
    write_table(tmp_path / "moved.csv", ["number", *rows[0]], [[f"m{number}", *row] for number, row in enumerate(rows[1:], 7)])
    chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / "pack", item_columns=tmp_path / "moved.csv")
    dataset = chunkhit.SparseDataset(tmp_path / "pack")
    assert_column(dataset.item_column("title"), ITEM_COLUMNS, "title", dataset.column_ids())
    assert [each["name"] for each in dataset.info["item_columns"]] == ["number", *ITEM_COLUMNS]
    with pytest.raises(chunkhit.Error, match="column 1 has no name"):
        chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / "none", item_columns=tmp_path / "numbered.csv")
    pack_sparse = [os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-sparse"), "-", "--item-columns", tmp_path / "moved.csv"]
    with open(tables / "ratings.csv") as ratings:  # a usual name
        subprocess.run([*pack_sparse, "-o", tmp_path / "usual"], stdin=ratings, check=True, capture_output=True)
    assert (tmp_path / "usual" / "items.csv").read_text() == (tmp_path / "pack" / "items.csv").read_text()
    write_table(tmp_path / "moved.csv", ["id", *rows[0]], [[f"m{number}", *row] for number, row in enumerate(rows[1:], 7)])
    with open(tables / "ratings.csv") as ratings:
        run = subprocess.run([*pack_sparse, "-o", tmp_path / "stdin"], stdin=ratings, capture_output=True, text=True)
    assert run.returncode == 2 and 'the ratings have them in "movieId": give --item movieId' in run.stderr
    with open(tables / "ratings.csv") as ratings:
        subprocess.run([*pack_sparse, "--item", "movieId", "-o", tmp_path / "stdin"], stdin=ratings, check=True, capture_output=True)


def test_a_large_table_goes_with_few_ratings_but_not_with_those_of_other_items(tables, tmp_path):
    def pack(name, ids):
        write_table(tmp_path / "movies.csv", ["movie", "title"], [(each, "x") for each in ids])
        return chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / name, item_columns=tmp_path / "movies.csv")

    pack("large", [f"m{number}" for number in range(20000)])
    with pytest.raises(chunkhit.Error, match='column "code" has 1 of the 1,100 users') as error:
        write_table(tmp_path / "users.csv", ["code", "age"], [(5, 30), *((f"x{number}", 30) for number in range(900))])
        chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / "other", user_columns=tmp_path / "users.csv")
    assert error.value.code == "bad_data"


def grouped(tables, folder):
    """The ratings as two inputs, each with its own users."""
    rows = list(csv.reader(open(tables / "ratings.csv", newline="")))
    for part in range(2):
        write_table(folder / f"{part}.csv", rows[0], [row for row in rows[1:] if int(row[0]) % 2 == part])
    return [folder / "0.csv", folder / "1.csv"]


def test_merged_packs_keep_the_columns(tables, tmp_path):
    first, second = grouped(tables, tmp_path)
    chunkhit.pack_sparse(first, tmp_path / "a", **options(tables))
    how = dict(reuse_ids=tmp_path / "a", values="u8:0.5")
    chunkhit.pack_sparse(second, tmp_path / "b", **options(tables), **how)
    chunkhit.merge_packs([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    merged = chunkhit.SparseDataset(tmp_path / "merged")
    assert len(merged) == 1100
    assert_columns(merged)
    chunkhit.pack_sparse(second, tmp_path / "c", **how)
    with pytest.raises(chunkhit.Error, match=r"has columns of items: none, expected title \(text\), genres"):
        chunkhit.merge_packs([tmp_path / "a", tmp_path / "c"], tmp_path / "none")
    several = chunkhit.SparseDataset([tmp_path / "a", tmp_path / "c"])
    assert "user_columns" not in several.info and len(several.item_column("title")) == several.column_count


def test_lists_of_a_pack_are_tables_for_the_next(tables, pack, tmp_path):
    chunkhit.pack_sparse(pack, tmp_path / "again", item_columns=pack / "items.csv", user_columns=pack / "users.csv")
    assert_columns(chunkhit.SparseDataset(tmp_path / "again"))


def test_the_same_command_again_does_nothing_and_another_table_is_another_pack(tables, tmp_path):
    chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / "pack", **options(tables))
    before = (tmp_path / "pack" / "manifest.json").stat().st_mtime_ns
    chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / "pack", **options(tables))
    assert (tmp_path / "pack" / "manifest.json").stat().st_mtime_ns == before
    (tmp_path / "other.csv").write_text("movieId,title\nm1,x\n")
    with pytest.raises(chunkhit.Error, match="item-columns: [0-9a-f]{16} before, [0-9a-f]{16} now") as error:
        chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / "pack", **{**options(tables), "item_columns": tmp_path / "other.csv"})
    assert error.value.code == "cannot_write"


def test_a_pack_without_columns_has_none(tables, tmp_path):
    chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / "pack")
    manifest = json.loads((tmp_path / "pack" / "manifest.json").read_text())
    assert manifest["version"] == 1 and not [key for key in [*manifest, *manifest["spec"]] if "_columns" in key and key != "label_columns"]
    dataset = chunkhit.SparseDataset(tmp_path / "pack")
    with pytest.raises(chunkhit.Error, match='item_column: found "title", expected one of none') as error:
        dataset.item_column("title")
    assert error.value.code == "usage"


def test_wrong_names_and_indices_are_errors(pack):
    dataset = chunkhit.SparseDataset(pack)
    for wrong, message in ((("ages",), 'user_column: found "ages", expected one of age, a/b'), (("age", [1100]), "row 1100 of 1100"),
                           (("age", [-1]), "whole numbers from 0"), (("age", [0.5]), "whole numbers from 0")):
        with pytest.raises(chunkhit.Error, match=message) as error:
            dataset.user_column(*wrong)
        assert error.value.code == "usage"


def test_a_single_part_has_no_columns(pack):
    part = sorted(pack.glob("part-00000.[hz]*"))[0]
    with pytest.raises(chunkhit.Error, match="expected one of none"):
        chunkhit.SparseDataset(part).user_column("age")


def test_a_remote_pack_gives_the_columns(pack, network, tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "pack").symlink_to(pack)
    with Nginx(tmp_path / "root", tmp_path) as server:
        remote = chunkhit.SparseLoader(f"{server.url}/pack", batch_size=16)
        assert remote.info["item_columns"] == listed(ITEM_COLUMNS)
        assert_columns(remote)


def test_a_damaged_list_is_bad_data(pack, tmp_path):
    shutil.copytree(pack, tmp_path / "pack")
    users = tmp_path / "pack" / "users.csv"
    whole = users.read_bytes()
    for place in (4, len(whole) // 2, len(whole) - 2):
        users.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1:])
        with pytest.raises(chunkhit.Error, match="users.csv: checksum") as error:
            chunkhit.SparseDataset(tmp_path / "pack").user_column("age")
        assert error.value.code == "bad_data"
        assert any("users.csv" in problem for problem in chunkhit.verify_pack(tmp_path / "pack")["problems"])
    users.write_bytes(whole[:-20])
    with pytest.raises(chunkhit.Error) as error:
        chunkhit.SparseDataset(tmp_path / "pack").user_column("age")
    assert error.value.code == "bad_data"


@pytest.mark.parametrize("text, message", [
    ("movieId,title\nm1,x\nm1,y\n", ':3: item "m1" has a row already'),
    ("movieId,title\nm1\n", ":2: row has 1 field, expected 2"),
    ("movieId\nm1\n", "1 to 1,024 further columns, found 0"),
    ("title,film\nx,m1\n", 'column "title" has 0 of the 60 items of the ratings: found ids such as "x", expected such as "m'),
    ("film,title\n" + "".join(f"{n},x\n" for n in range(2000)), 'column "film" has 0 of the 60 items'),
    ("", "is empty, expected a header line"),
])
def test_a_table_that_cannot_be_used_is_bad_data(tables, tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(chunkhit.Error, match=message) as error:
        chunkhit.pack_sparse(tables / "ratings.csv", tmp_path / "pack", item_columns=tmp_path / "bad.csv")
    assert error.value.code == "bad_data"
    assert not (tmp_path / "pack" / "manifest.json").exists()


def test_commands_print_and_export_the_columns(tables, tmp_path):
    tools = os.environ["CHUNKHIT_TOOLS"]

    def run(*command):
        return subprocess.run([os.path.join(tools, command[0]), *command[1:]], check=True, capture_output=True, text=True).stdout

    flags = ["--user", "userId", "--item-columns", tables / "movies.csv", "--user-columns", tables / "users.csv"]
    assert "movies.csv: 60 rows" in run("pack-sparse", tables / "ratings.csv", *flags, "--dry-run")
    report = run("pack-sparse", tables / "ratings.csv", *flags, "-o", tmp_path / "pack")
    assert 'note: --user-columns: users.csv: 1,100 rows with ids in "userId"; age (int64), a/b (text)' in report
    assert "of items   title, text" in run("pack-info", tmp_path / "pack")
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out.npz")
    with open(tmp_path / "out.items.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["column", "item", *ITEM_COLUMNS]
    for row in rows:
        number = numbers([row["item"]])[0]
        assert row["genres"] == GENRES[number % 4] and row["year"] == str(1930 + number)
        assert row["score"] == "" if number % 7 == 0 else float(row["score"]) == number / 8


def test_writers_take_tables_in_memory(tables, tmp_path):
    frame = {"movieId": [f"m{n}" for n in ITEMS], "title": [f"Movie {n}, the" for n in ITEMS],
             "year": np.arange(1930, 1930 + len(ITEMS)), "score": [math.nan if n % 7 == 0 else n / 8 for n in ITEMS]}
    given = {"dict": frame, "path": tables / "movies.csv"}
    try:
        import pandas

        given["frame"] = pandas.DataFrame(frame).set_index("movieId")
    except ImportError:
        pass
    rows = list(csv.reader(open(tables / "ratings.csv", newline="")))[1:]
    for name, table in given.items():
        with chunkhit.RatingWriter(tmp_path / name, item_columns=table) as writer:
            writer.add([int(row[0]) for row in rows], [row[1] for row in rows], [float(row[2]) for row in rows])
        dataset = chunkhit.SparseDataset(tmp_path / name)
        for column in ("title", "year", "score"):
            assert_column(dataset.item_column(column), ITEM_COLUMNS, column, dataset.column_ids())
    with pytest.raises(chunkhit.Error) as error:
        with chunkhit.RatingWriter(tmp_path / "none", item_columns={"id": ["m1", "m2", "m1"], "title": ["a\nb", "c", "d"]}) as writer:
            writer.add([1], ["m1"])
    assert str(error.value) == 'item_columns: row 2, counted from 0: item "m1" has a row already; ids are in column "item"'
    assert error.value.code == "bad_data"
    with pytest.raises(TypeError, match="item_columns: expected a DataFrame, a dict of arrays or a path, found a list"):
        chunkhit.RatingWriter(tmp_path / "none", item_columns=[1])
    pandas = pytest.importorskip("pandas")
    with pytest.raises(chunkhit.Error, match="item_columns: expected an index of ids, found the one that pandas makes"):
        chunkhit.RatingWriter(tmp_path / "none", item_columns=pandas.DataFrame(frame))
    with pytest.raises(chunkhit.Error, match="item_columns: expected arrays of one length"):
        chunkhit.RatingWriter(tmp_path / "none", item_columns={"id": [1], "a": [1, 2]})


def test_ids_are_found_by_near_and_usual_names(tmp_path):
    (tmp_path / "ratings.csv").write_text("user,movieId,rating\n1,1,5\n2,2,4\n")
    tables = {"near": "year,movie_id\n1,2\n2,1\n", "capitals": "year,MovieID\n1,2\n2,1\n", "usual": "year,asin\n1,2\n2,1\n",
              "first": "movie,item\n2,1\n1,2\n", "id": "id,item\n2,1\n1,2\n"}
    kept = {"near": ("year", [2, 1]), "capitals": ("year", [2, 1]), "usual": ("year", [2, 1]), "first": ("item", [2, 1]),
            "id": ("item", [2, 1])}
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text)
        chunkhit.pack_sparse(tmp_path / "ratings.csv", tmp_path / name, item_columns=tmp_path / f"{name}.csv", id_order="sorted")
        assert chunkhit.SparseDataset(tmp_path / name).item_column(kept[name][0]).tolist() == kept[name][1], name


def test_the_index_of_a_frame_is_its_ids_whatever_its_columns_are_called(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"item": [20, 10], "year": [1, 2]}, index=pandas.Index([1, 2], name="number"))
    for name, table in (("frame", frame), ("dict", {"number": [1, 2], "movieId": [20, 10], "year": [1, 2]})):
        with chunkhit.RatingWriter(tmp_path / name, item_columns=table, id_order="sorted") as writer:
            writer.add([1, 2], [1, 2])
        assert chunkhit.SparseDataset(tmp_path / name).item_column("year").tolist() == [1, 2]


def test_frames_with_ids_from_1_are_taken_and_others_explained(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"year": [7, 8]}, index=pandas.RangeIndex(1, 3))
    with chunkhit.RatingWriter(tmp_path / "out", item_columns=frame, id_order="sorted") as writer:
        writer.add([1, 2], [1, 2])
    assert chunkhit.SparseDataset(tmp_path / "out").item_column("year").tolist() == [7, 8]
    with pytest.raises(chunkhit.Error, match="item_columns: expected columns beside the index, found none"):
        chunkhit.RatingWriter(tmp_path / "none", item_columns=pandas.DataFrame(index=[1, 2]))
    for table in (frame, {"item": [1], "year": [2]}):
        with pytest.raises(chunkhit.Error, match="item_columns: expected the path of a CSV, found a .*; RatingWriter takes"):
            chunkhit.pack_sparse("ratings.csv", tmp_path / "path", item_columns=table)

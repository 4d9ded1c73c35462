"""Labels, classes, keys and columns of packs as files of other tools, and packed again from these."""
import csv
import json
import tarfile

import numpy as np
import pytest

import chunkhit

from export_test import command, groups_of

COLUMNS = ["age", "big", "score", "whole", "city", "class"]
CITIES = ["Köln", "a,\"b\"", "", "007", "two\nlines"]


def row(number):
    return [f"{'ab'[number % 2]}/{number:03}.png", ["dog", "cat", "a b"][number % 3], number - 50, 2**62 + number,
            "" if number % 7 == 0 else number / 8, f"{number}.0", CITIES[number % 5], f"c{number % 4}"]


@pytest.fixture(scope="module", params=["shard", "own sizes"])
def pack(request, packs, tmp_path_factory):
    """A pack with columns, one of which has a name that exports use, too."""
    folder = tmp_path_factory.mktemp("columns")
    with open(folder / "rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([["file", "label", *COLUMNS], *map(row, range(100))])
    sizes = {"sizes": "own"} if request.param == "own sizes" else {}
    chunkhit.pack_images(packs / "images", folder / "pack", labels=folder / "rows.csv", keep_columns=COLUMNS,
                         container="shard", **sizes)
    return folder / "pack"


def assert_same(found, expected, columns=COLUMNS):
    """Pixels, labels, classes and columns; found["key"] has the keys."""
    assert found.info["classes"] == expected.info["classes"]
    np.testing.assert_array_equal(found.labels(), expected.labels())
    assert found.column("key").tolist() == expected.keys()
    types = {each["name"]: each["type"] for each in expected.info["columns"]}
    assert {each["name"]: each["type"] for each in found.info["columns"]} == {**types, "key": "text"}
    for name in columns:
        np.testing.assert_array_equal(found.column(name), expected.column(name))
    for (image, _), (wanted, _) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(image, wanted)


def options_of(pack):
    return {"sizes": "own"} if "own_sizes" in chunkhit.pack_info(pack) else {}


def test_a_tar_packed_again_is_the_same_pack(pack, tmp_path):
    chunkhit.export_pack(pack, tmp_path / "out.tar")
    chunkhit.pack_images(tmp_path / "out.tar", tmp_path / "again", label_column="class-2", keep_columns=[*COLUMNS, "key"],
                         order="input", container="shard", **options_of(pack))
    assert_same(chunkhit.ImageDataset(tmp_path / "again"), chunkhit.ImageDataset(pack))
    # Without a class list in the tar, ids alone are the same, too.
    chunkhit.pack_images(tmp_path / "out.tar", tmp_path / "ids", order="input", **options_of(pack))
    np.testing.assert_array_equal(chunkhit.ImageDataset(tmp_path / "ids").labels(), chunkhit.ImageDataset(pack).labels())


def test_a_folder_packed_again_is_the_same_pack(pack, tmp_path):
    chunkhit.export_pack(pack, tmp_path / "out")
    with open(tmp_path / "out" / "labels.csv", newline="") as file:
        assert next(csv.reader(file)) == ["file", "label", "key", *COLUMNS]
    chunkhit.pack_images(tmp_path / "out", tmp_path / "again", labels=tmp_path / "out" / "labels.csv",
                         keep_columns=[*COLUMNS, "key"], order="input", container="shard", **options_of(pack))
    assert_same(chunkhit.ImageDataset(tmp_path / "again"), chunkhit.ImageDataset(pack))


def test_json_of_a_tar_has_types(pack, tmp_path):
    chunkhit.export_pack(pack, tmp_path / "out.tar")
    dataset = chunkhit.ImageDataset(pack)
    for parts, key in zip(groups_of(tmp_path / "out.tar").values(), dataset.keys(), strict=True):
        number = int(key[2:5])
        kind = ["dog", "cat", "a b"][number % 3]
        _, _, age, big, score, whole, city, own_class = row(number)
        found = json.loads(parts["json"])
        assert found == {"label": ["a b", "cat", "dog"].index(kind), "class-2": kind, "key": key, "age": age, "big": big,
                         "score": None if score == "" else score, "whole": float(whole), "city": city, "class": own_class}
        assert isinstance(found["whole"], float) and isinstance(found["age"], int)


def test_arrays_have_keys_classes_and_columns(packs, tmp_path):
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([["file", "label", *COLUMNS], *map(row, range(100))])
    chunkhit.pack_images(packs / "images", tmp_path / "pack", labels=tmp_path / "rows.csv", keep_columns=COLUMNS)
    dataset = chunkhit.ImageDataset(tmp_path / "pack")
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "cats.npz", classes=["cat"])
    with np.load(tmp_path / "cats.npz") as arrays:
        chosen = np.flatnonzero(dataset.labels() == 1)
        assert arrays["keys"].tolist() == dataset.keys(chosen)
        assert arrays["classes"].tolist() == ["a b", "cat", "dog"]
        for name in COLUMNS:
            found, expected = arrays[f"columns/{name}"], dataset.column(name, chosen)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype.kind == ("U" if expected.dtype == object else expected.dtype.kind)


def test_ids_that_no_list_names_stay(packs, tmp_path):
    rows = "\n".join(f"{'ab'[n % 2]}/{n:03}.png,{[-1, 7, 300][n % 3]}" for n in range(12))
    (tmp_path / "rows.csv").write_text("file,breed\n" + rows)
    chunkhit.pack_images(packs / "images", tmp_path / "pack", labels=tmp_path / "rows.csv", label_column="breed")
    labels = chunkhit.ImageDataset(tmp_path / "pack").labels().tolist()
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out.tar")
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out")
    chunkhit.pack_images(tmp_path / "out.tar", tmp_path / "tar", label_column="breed", order="input")
    chunkhit.pack_images(tmp_path / "out", tmp_path / "folder", labels=tmp_path / "out" / "labels.csv", label_column="breed",
                         order="input")
    assert chunkhit.ImageDataset(tmp_path / "tar").labels().tolist() == labels
    assert chunkhit.ImageDataset(tmp_path / "folder").labels().tolist() == labels
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert b"class" not in tar.extractfile("a/000.json").read()


def test_a_folder_of_a_split_names_its_packs(packs, tmp_path):
    chunkhit.pack_images(packs / "images", tmp_path / "split", split={"train": 0.5, "val": 0.5})
    done = command(tmp_path / "split", "-o", tmp_path / "out.tar")
    assert done.returncode == 2
    assert f"{tmp_path}/split: holds the packs train, val; export one of them, as {tmp_path}/split/train" in done.stderr


def test_a_carriage_return_in_a_key_or_column_is_one_in_the_exported_csv(tmp_path):
    """Exported without quotes, it ended the line."""
    with chunkhit.ImageWriter(tmp_path / "pack", keep_columns=["city"]) as writer:
        writer.add(np.zeros((4, 4, 3), np.uint8), 0, key="a\rb", columns={"city": "two\rlines"})
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out")
    with open(tmp_path / "out" / "labels.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(each["key"], each["city"]) for each in rows] == [("a\rb", "two\rlines")]

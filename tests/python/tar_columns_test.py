"""Columns that are kept from the .json files of tars."""
import io
import json
import math
import tarfile

import numpy as np
import pytest

import chunkhit


def write_tar(path, members):
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def shard(path, packs, rows, cls=True, folder=""):
    """A tar with an image, a .cls and a .json for each of `rows`, which are objects or texts of JSON."""
    members = {}
    for number, row in enumerate(rows):
        key = f"{folder}{number:03}"
        members[f"{key}.png"] = (packs / "images" / "ab"[number % 2] / f"{number:03}.png").read_bytes()
        if cls:
            members[f"{key}.cls"] = b"%d" % (number % 2)
        if row is not None:
            members[f"{key}.json"] = (row if isinstance(row, str) else json.dumps(row)).encode()
    return write_tar(path, members)


def packed(tar, output, **options):
    chunkhit.pack_images(tar, output, order="input", **options)
    return chunkhit.ImageDataset(output)


@pytest.mark.parametrize("values, kind, expected", [
    ([3, -4], "int64", [3, -4]),
    ([2**62, 0], "int64", [2**62, 0]),
    ([1, 0.5], "float64", [1, 0.5]),
    ([2.0, 3.0], "float64", [2, 3]),
    ([1, None], "float64", [1, math.nan]),
    (["Köln", ""], "text", ["Köln", ""]),
    (["7", "8"], "text", ["7", "8"]),  # texts in JSON stay texts
    (["7", None], "text", ["7", ""]),
    ([1, "x"], "text", ["1", "x"]),
    ([True, False], "text", ["true", "false"]),
])
def test_values_of_json_decide_the_type(packs, tmp_path, values, kind, expected):
    rows = [{"value": values[n % 2], "unused": [1]} for n in range(10)]
    dataset = packed(shard(tmp_path / "a.tar", packs, rows), tmp_path / "pack", keep_columns=["value"])
    assert dataset.info["columns"] == [{"name": "value", "type": kind}]
    assert dataset.info["spec"]["keep-columns"] == "value"
    np.testing.assert_array_equal(dataset.column("value"), np.array(expected * 5, object if kind == "text" else kind))
    assert dataset.labels().tolist() == [0, 1] * 5


def test_a_key_that_some_lack_is_a_missing_value(packs, tmp_path):
    rows = [{"age": 1}, {"other": 5}, None, {"age": 4}]
    dataset = packed(shard(tmp_path / "a.tar", packs, rows), tmp_path / "pack", keep_columns=["age"])
    np.testing.assert_array_equal(dataset.column("age"), [1, math.nan, math.nan, 4])


def test_labels_and_columns_of_one_json(packs, tmp_path):
    rows = [{"kind": "dog" if n % 3 else "cat", "age": n} for n in range(10)]
    tar = shard(tmp_path / "a.tar", packs, rows, cls=False)
    dataset = packed(tar, tmp_path / "pack", label_column="kind", keep_columns=["age"])
    assert dataset.column("age").tolist() == list(range(10))
    assert [each["name"] for each in dataset.info["classes"]] == ["cat", "dog"]
    assert dataset.labels().tolist() == [int(n % 3 > 0) for n in range(10)]


def test_columns_beside_class_folders_in_a_tar(packs, tmp_path):
    cats = shard(tmp_path / "a.tar", packs, [{"age": n} for n in range(4)], cls=False, folder="cat/")
    dogs = shard(tmp_path / "b.tar", packs, [{"age": -n} for n in range(4)], cls=False, folder="dog/")
    dataset = packed([cats, dogs], tmp_path / "pack", keep_columns=["age"])
    assert dataset.column("age").tolist() == [0, 1, 2, 3, 0, -1, -2, -3]
    assert dataset.labels().tolist() == [0] * 4 + [1] * 4


@pytest.mark.parametrize("row, reason", [
    ({"age": [1, 2]}, 'key "age" of its .json is an array, expected a number or a text'),
    ({"age": {"years": 1}}, 'key "age" of its .json is an object, expected a number or a text'),
    ("[1]", "its .json is no JSON object"),
    ("{", "its .json is no JSON object"),
    ({"age": "x" * 1025}, 'column "age": has 1,025 bytes, expected at most 1,024'),
])
def test_a_value_that_is_no_column_s_is_a_reject(packs, tmp_path, row, reason):
    rows = [{"age": n} for n in range(10)]
    rows[3] = row
    dataset = packed(shard(tmp_path / "a.tar", packs, rows), tmp_path / "pack", keep_columns=["age"], max_errors=1)
    assert dataset.column("age").tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert reason in (tmp_path / "pack" / "rejects.csv").read_text().replace('""', '"')


@pytest.mark.parametrize("options, message", [
    (dict(keep_columns=["agee"]), 'keep_columns: no image has a .json with the key "agee" beside it; one has "age", '
                                  '"size"; did you mean "age"'),
    (dict(keep_columns=["age", "age"]), 'column "age" is given twice'),
    (dict(keep_columns=["label"]), 'column "label" is given twice'),
])
def test_wrong_columns_are_errors(packs, tmp_path, options, message):
    tar = shard(tmp_path / "a.tar", packs, [{"age": 1, "size": 2}] * 4)
    with pytest.raises(chunkhit.Error) as error:
        chunkhit.pack_images(tar, tmp_path / "pack", **options)
    assert message in str(error.value)


def test_a_plan_has_the_columns_of_tars(packs, tmp_path):
    tar = shard(tmp_path / "a.tar", packs, [{"age": n, "name": f"n{n}"} for n in range(20)])
    options = dict(keep_columns=["age", "name"], container="shard", chunk_samples=2, part_bytes=800)
    chunkhit.pack_images(tar, tmp_path / "alone", **options)
    chunkhit.pack_images(tar, tmp_path / "planned", plan=3, **options)
    chunkhit.run_plan(tmp_path / "planned")
    parts = chunkhit.pack_info(tmp_path / "alone")["parts"]
    assert len(parts) > 1
    for part in parts:
        assert (tmp_path / "planned" / part["file"]).read_bytes() == (tmp_path / "alone" / part["file"]).read_bytes()


def test_a_missing_tar_was_taken_for_class_folders(tmp_path):
    with pytest.raises(chunkhit.Error, match="missing.tar: cannot be opened as a folder: No such file or directory"):
        chunkhit.pack_images(tmp_path / "missing.tar", tmp_path / "pack", keep_columns=["age"])


def test_a_label_column_that_no_json_has_is_named_with_the_keys_that_there_are(packs, tmp_path):
    tar = shard(tmp_path / "a.tar", packs, [{"label": number, "age": 3} for number in range(5)], cls=False)
    with pytest.raises(chunkhit.Error, match='its .json has no key "class", only "age", "label"'):
        chunkhit.pack_images(tar, tmp_path / "out", label_column="class")

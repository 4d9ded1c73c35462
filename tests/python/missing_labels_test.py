"""missing: blanks in label columns of numbers, as CheXpert's tables have them."""
import csv
import json
import os
import subprocess

import numpy as np
import pytest

import chunkhit

from tar_columns_test import shard

COUNT = 10
FILES = [f"{'ab'[n % 2]}/{n:03}.png" for n in range(COUNT)]
CELLS = [("1", "0"), ("0", ""), ("", "1"), (" NA ", "-1"), ("True", "false"), ("nan", "1"), ("1.0", "0"), ("0", "0"), ("1", "1"), ("0", "1")]
ROWS = [{"file": file, "x": x, "y": y} for file, (x, y) in
        zip(FILES, [(1, 0), (0, None), (None, 1), (None, -1), (True, False), (None, 1), (1.0, 0), (0, 0), (1, 1), (0, 1)])]
PACKED = [[1, 0], [0, None], [None, 1], [None, -1], [1, 0], [None, 1], [1, 0], [0, 0], [1, 1], [0, 1]]


def expected(missing):
    return np.array([[missing if value is None else value for value in row] for row in PACKED], np.float32)


def tool(name, *arguments, code=0):
    done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], name), *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == code, done.stdout
    return done.stdout


def command(*arguments, code=0):
    return tool("pack-images", *arguments, "--progress", "none", code=code)


def table(path, cells=CELLS, header="file,x,y"):
    path.write_text("\n".join([header, *(",".join([file, *row]) for file, row in zip(FILES, cells))]) + "\n")
    return path


def source_of(kind, packs, tmp_path):
    """ROOT and the options of labels: a CSV, JSON lines or a tar."""
    if kind == "csv":
        return packs / "images", {"labels": table(tmp_path / "rows.csv")}
    if kind == "jsonl":
        rows = [{key: value for key, value in row.items() if value is not None or n % 2} for n, row in enumerate(ROWS)]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return packs / "images", {"labels": tmp_path / "rows.jsonl"}
    return shard(tmp_path / "a.tar", packs, ROWS, cls=False), {}


@pytest.mark.parametrize("container", ["hdf5", "shard"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "tar"])
@pytest.mark.parametrize("missing, value", [("0", 0), (0, 0), ("nan", np.nan)])
def test_blanks_are_packed(packs, tmp_path, kind, container, missing, value):
    root, options = source_of(kind, packs, tmp_path)
    chunkhit.pack_images(root, tmp_path / "out", label_column="x,y", missing=missing, order="input", container=container, **options)
    dataset = chunkhit.ImageDataset(tmp_path / "out")
    np.testing.assert_array_equal(dataset.labels(), expected(value))
    assert dataset.labels().dtype == np.float32 and dataset.info["spec"]["missing"] == str(missing)
    batch = next(iter(chunkhit.ImageLoader(tmp_path / "out", batch_size=COUNT)))
    np.testing.assert_array_equal(batch.labels, expected(value))
    tool("pack-verify", tmp_path / "out")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_blanks_were_rejects_and_say_what_packs_them(packs, tmp_path, kind):
    root, options = source_of(kind, packs, tmp_path)
    flags = [root, "--labels", options["labels"], "--label-column", "x,y", "-o", tmp_path / "out", "--max-errors", "9"]
    said = command(*flags)
    assert "note: 4 rows lack a label and are rejected; --missing 0 or nan packs them\n" in said
    with open(tmp_path / "out/rejects.csv", newline="") as file:
        assert [row["reason"] for row in csv.DictReader(file)][:2] == ['column "y": label is missing', 'column "x": label is missing']
    assert "missing" not in chunkhit.pack_info(tmp_path / "out")["spec"]
    said = command(*flags, "--missing", "reject")
    assert "already packed" in said


def test_null_in_a_tar_was_a_reject_and_says_what_packs_it(packs, tmp_path):
    root, _ = source_of("tar", packs, tmp_path)
    said = command(root, "--label-column", "x,y", "-o", tmp_path / "out", "--max-errors", "9")
    assert "6 of 10 rows packed" in said
    with open(tmp_path / "out/rejects.csv", newline="") as file:
        assert next(csv.DictReader(file))["reason"] == 'key "y" of its .json is null; `missing` 0 or nan packs numbers that are missing'


def test_another_value_is_another_pack(packs, tmp_path):
    root, options = source_of("csv", packs, tmp_path)
    flags = [root, "--labels", options["labels"], "--label-column", "x,y", "-o", tmp_path / "out"]
    said = command(*flags, "--missing", "nan", "--save-config", tmp_path / "recipe.toml")
    assert "note: 4 labels are blank and packed as NaN\n" in said
    assert "already packed" in command("--config", tmp_path / "recipe.toml", "-o", tmp_path / "out")
    said = command(*flags, "--missing", "0", code=73)
    assert "missing" in said and "nan" in said
    assert "--missing nan" in tool("pack-info", tmp_path / "out")


def test_a_list_of_the_pack_packs_the_same(packs, tmp_path):
    root, options = source_of("csv", packs, tmp_path)
    chunkhit.pack_images(root, tmp_path / "out", label_column="x,y", missing="nan", order="input", **options)
    (tmp_path / "list.csv").write_text(tool("pack-info", tmp_path / "out", "--list"))
    assert (tmp_path / "list.csv").read_text().splitlines()[2] == f"{FILES[1]},0,,1"
    chunkhit.pack_images(root, tmp_path / "again", labels=tmp_path / "list.csv", label_column="x,y", missing="nan", order="input")
    np.testing.assert_array_equal(chunkhit.ImageDataset(tmp_path / "again").labels(), expected(np.nan))


def test_a_plan_packs_the_same_bytes(packs, tmp_path):
    root, options = source_of("csv", packs, tmp_path)
    options |= {"label_column": "x,y", "missing": "nan", "container": "shard"}
    chunkhit.pack_images(root, tmp_path / "whole", **options)
    chunkhit.pack_images(root, tmp_path / "planned", plan=1, **options)
    tool("pack-run", tmp_path / "planned")
    parts = [{path.name: path.read_bytes() for path in (tmp_path / name).glob("part-*") if path.suffix not in (".json", ".inputs")}
             for name in ("whole", "planned")]
    assert parts[0] == parts[1] and parts[0]


@pytest.mark.parametrize("output", ["out.tar", "folder"])
def test_exports_have_blanks_and_are_packed_again(packs, tmp_path, output):
    root, options = source_of("csv", packs, tmp_path)
    chunkhit.pack_images(root, tmp_path / "out", label_column="x,y", missing="nan", order="input", **options)
    chunkhit.export_pack(tmp_path / "out", tmp_path / output)
    labels = {"labels": tmp_path / "folder/labels.csv"} if output == "folder" else {}
    chunkhit.pack_images(tmp_path / output, tmp_path / "again", label_column="x,y", missing="nan", order="input", **labels)
    np.testing.assert_array_equal(chunkhit.ImageDataset(tmp_path / "again").labels(), expected(np.nan))


@pytest.mark.parametrize("missing, values", [("nan", [1, 0, np.nan, 0.5, np.nan]), ("0", [1, 0, 0, 0.5, 0])])
def test_one_column_of_numbers_has_truth_values_and_blanks(packs, tmp_path, missing, values):
    rows = table(tmp_path / "rows.csv", [("True",), ("false",), ("",), ("0.5",), ("NaN",)], "file,label")
    chunkhit.pack_images(packs / "images", tmp_path / "out", labels=rows, label_type="numbers", missing=missing, order="input")
    np.testing.assert_array_equal(chunkhit.ImageDataset(tmp_path / "out").labels()[:, 0], np.array(values, np.float32))


def test_truth_values_of_one_column_were_rejects(packs, tmp_path):
    rows = table(tmp_path / "rows.csv", [(("True", "False", "true", "false", "1")[n % 5],) for n in range(COUNT)], "file,label")
    chunkhit.pack_images(packs / "images", tmp_path / "out", labels=rows, label_type="numbers", order="input")
    assert chunkhit.ImageDataset(tmp_path / "out").labels()[:, 0].tolist() == [1, 0, 1, 0, 1] * 2
    chunkhit.pack_images(packs / "images", tmp_path / "classes", labels=rows, label_type="classes", order="input")
    assert chunkhit.ImageDataset(tmp_path / "classes").classes == ["1", "False", "True", "false", "true"]


@pytest.mark.parametrize("options, words", [
    ({}, "missing: is for labels that are numbers: give several label_column, or label_type numbers"),
    ({"label_separator": "|"}, "missing: is for labels that are numbers; empty_labels is for label_separator"),
    ({"label_type": "classes"}, "missing: is for labels that are numbers: give several label_column, or label_type numbers"),
    ({"labels": None}, "missing: is for a CSV or for .json files in tars, found class folders"),
])
def test_missing_is_for_numbers(packs, tmp_path, options, words):
    options = {"labels": table(tmp_path / "rows.csv", header="file,label,y"), **options}
    with pytest.raises(chunkhit.Error, match=words):
        chunkhit.pack_images(packs / "images", tmp_path / "out", missing="nan", **options)


def test_columns_of_blanks_alone_are_said(packs, tmp_path):
    rows = table(tmp_path / "rows.csv", [(str(n % 2), "") for n in range(COUNT)])
    said = command(packs / "images", "--labels", rows, "--label-column", "x,y", "--missing", "0", "-o", tmp_path / "out")
    assert 'note: 10 labels are blank and packed as 0\nnote: column "y": all labels are blank\n' in said
    tar = shard(tmp_path / "a.tar", packs, [{"a": 1}] * COUNT, cls=False)
    said = command(tar, "--label-column", "x,y", "--missing", "0", "-o", tmp_path / "tar", code=65)
    assert "--missing: found no number, all labels are blank; is it the right --label-column?" in said
    table(tmp_path / "rows.csv", [("", "")] * COUNT)
    said = command(packs / "images", "--labels", rows, "--label-column", "x,y", "-o", tmp_path / "none", code=65)
    assert 'column "x": label is missing; 10 rows lack a label and are rejected; --missing 0 or nan packs them' in said

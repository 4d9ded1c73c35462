"""label_type: what the labels of one column are, of CSVs, tars and IDX; what is detected is said."""
import os
import re
import struct
import subprocess

import numpy as np
import pytest

import chunkhit

from tar_columns_test import write_tar

FILES = [f"{'ab'[n % 2]}/{n:03}.png" for n in range(10)]


def command(*arguments):
    done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-images"), *map(str, arguments), "--progress", "none"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def table(tmp_path, labels):
    (tmp_path / "rows.csv").write_text("\n".join(["file,label", *map(",".join, zip(FILES, labels))]))
    return tmp_path / "rows.csv"


def shard(packs, path, labels):
    members = {}
    for number, (file, label) in enumerate(zip(FILES, labels)):
        members[f"{number:03}.png"] = (packs / "images" / file).read_bytes()
        members[f"{number:03}.cls"] = label.encode()
    return write_tar(path, members)


def idx(path, array, code):
    path.write_bytes(struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape) + array.tobytes())
    return path


def packed(output, *arguments, **options):
    chunkhit.pack_images(*arguments, output, order="input", **options)
    dataset = chunkhit.ImageDataset(output)
    return dataset.info["labels"]["kind"], dataset.labels().reshape(-1).tolist()


@pytest.mark.parametrize("source", ["csv", "tar"])
@pytest.mark.parametrize("label_type, labels, expected", [
    (None, "1234567890", ("class_id", [1, 2, 3, 4, 5, 6, 7, 8, 9, 0])),
    ("auto", "1234567890", ("class_id", [1, 2, 3, 4, 5, 6, 7, 8, 9, 0])),
    ("classes", "1234567890", ("class_id", [1, 2, 3, 4, 5, 6, 7, 8, 9, 0])),
    ("numbers", "1234567890", ("numbers", [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 0])),
    (None, ["7.0"] * 10, ("numbers", [7.0] * 10)),
    ("classes", ["7.0"] * 10, ("class_id", [7] * 10)),
    ("classes", list("aabbccddee"), ("class_id", [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])),
])
def test_the_type_decides(packs, tmp_path, source, label_type, labels, expected):
    options = dict(label_type=label_type)
    if source == "csv":
        options["labels"] = table(tmp_path, labels)
        root = packs / "images"
    else:
        root = shard(packs, tmp_path / "a.tar", labels)
    assert packed(tmp_path / "out", root, **options) == expected
    spec = chunkhit.pack_info(tmp_path / "out")["spec"]
    assert spec.get("label-type") == (None if label_type == "auto" else label_type)


def test_whole_numbers_taken_for_class_ids_are_warned_of_unless_their_type_is_given(packs, tmp_path, logs):
    labels = table(tmp_path, "1234567890")
    with logs('whole numbers, which were taken for the ids of 10 classes: label_type="numbers"'):
        chunkhit.pack_images(packs / "images", tmp_path / "out", labels=labels)
    with logs("whole numbers"):
        chunkhit.pack_images(packs / "images", tmp_path / "planned", labels=labels, plan=1)
    with logs(None):
        for label_type in ("numbers", "classes"):
            chunkhit.pack_images(packs / "images", tmp_path / label_type, labels=labels, label_type=label_type)
        chunkhit.pack_images(packs / "images", tmp_path / "folders", split={"train": 0.9, "val": 0.1})


def test_a_fraction_among_cls_files_is_named(packs, tmp_path):
    tar = shard(packs, tmp_path / "a.tar", [*"01010101", "0.5", "1"])
    code, said = command(tar, "-o", tmp_path / "out")
    assert code == 0 and "labels: numbers, 1 column of float32 (detected)" in said
    assert ('column "label": 1 label of 10 (the first: "0.5" of a.tar/008.png) is no whole number; all are packed as floats, '
            "none is a class id: --label-type numbers says so, classes makes rejects of the former") in said
    code, said = command(tar, "-o", tmp_path / "floats", "--label-type", "numbers")
    assert code == 0 and "no whole number" not in said and "float32\n" in said
    code, said = command(tar, "-o", tmp_path / "ids", "--label-type", "classes", "--max-errors", "1")
    assert code == 0 and "whose ids are the whole numbers that labels are\n" in said
    assert re.search("a.tar/008.png,0.5,.*not a whole number, as `?label_type`? classes needs",
                     (tmp_path / "ids" / "rejects.csv").read_text().replace("--label-type", "label_type"))


def test_whole_numbers_as_ids_are_said(packs, tmp_path):
    said = "labels: 2 classes, whose ids are the whole numbers that labels are (detected; --label-type numbers packs them as float32)"
    code, found = command(shard(packs, tmp_path / "a.tar", "0101010101"), "-o", tmp_path / "tar")
    assert code == 0 and said in found
    code, found = command(packs / "images", "--labels", table(tmp_path, "0101010101"), "-o", tmp_path / "csv")
    assert code == 0 and said in found


@pytest.mark.parametrize("dtype, code, values, kind", [
    ("u1", 0x08, [0, 1, 255], "class_id"), ("i1", 0x09, [-1, 1, 127], "class_id"), (">i2", 0x0b, [-300, 300, 0], "class_id"),
    (">i4", 0x0c, [7, 2**31 - 1, -(2**31)], "class_id"), (">f4", 0x0d, [0.1, 2, -1e30], "numbers"),
    (">f8", 0x0e, [0.5, 2, -3], "numbers"),
])
def test_labels_of_every_type_of_idx(tmp_path, dtype, code, values, kind):
    images = idx(tmp_path / "images", np.arange(3 * 16, dtype=np.uint8).reshape(3, 4, 4), 0x08)
    labels = idx(tmp_path / "labels", np.array(values, dtype), code)
    found, taken = packed(tmp_path / "out", images, labels=labels)
    assert found == kind and taken == np.array(values, "f4" if kind == "numbers" else "i8").tolist()
    if kind == "class_id":
        assert packed(tmp_path / "floats", images, labels=labels, label_type="numbers")[0] == "numbers"


def test_a_label_of_idx_that_is_no_number_is_a_reject(tmp_path):
    images = idx(tmp_path / "images", np.arange(3 * 16, dtype=np.uint8).reshape(3, 4, 4), 0x08)
    labels = idx(tmp_path / "labels", np.array([0.5, np.nan, 1], ">f4"), 0x0d)
    assert packed(tmp_path / "out", images, labels=labels, max_errors=1) == ("numbers", [0.5, 1.0])
    assert "images/1,nan,label is not a finite number" in (tmp_path / "out" / "rejects.csv").read_text()


@pytest.mark.parametrize("options, message", [
    (dict(label_type="numbers"), "label_type: is for a CSV or for .json files in tars, found class folders"),
    (dict(label_type="numbers", labels=True, classes=True), "label_type numbers: excludes classes"),
    (dict(label_type="classes", labels=True, label_column=["x", "y"]), "label_type classes: is for one label_column"),
    (dict(label_type="floats"), "label_type: expected auto, classes, numbers, none, found 'floats'"),
])
def test_types_that_make_no_sense_are_errors(packs, tmp_path, options, message):
    if "labels" in options:
        options["labels"] = table(tmp_path, "1234567890")
    if "classes" in options:
        (tmp_path / "names").write_text("1\n2\n")
        options["classes"] = tmp_path / "names"
    with pytest.raises(chunkhit.Error) as error:
        chunkhit.pack_images(packs / "images", tmp_path / "out", **options)
    assert error.value.code == "usage" and message in str(error.value)

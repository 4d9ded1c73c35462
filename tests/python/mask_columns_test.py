"""Masks that a label CSV names, as Pillow reads and resizes them."""
import csv
import os
import random
import subprocess

import chunkhit
import numpy as np
import pytest
from PIL import Image

from masks_test import COUNT, FORMS, masked, pairs, resized  # noqa: F401: a fixture


def write_csv(path, rows, header=("image", "mask", "label")):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture
def named(pairs, tmp_path):
    """ROOT of train/ and segmentation/, whose names have nothing in common, rows of train.csv, and arrays by image."""
    _, arrays = pairs
    root = tmp_path / "root"
    (root / "train").mkdir(parents=True)
    (root / "segmentation").mkdir()
    numbers = list(range(COUNT))
    random.Random(7).shuffle(numbers)
    rows, known = [], {}
    for number, (_, (image, mask)) in zip(numbers, arrays.items()):
        names = f"train/{number:03}.png", f"segmentation/map {COUNT - number}.png"
        for name, array in zip(names, (image, mask)):
            Image.fromarray(array).save(root / name)
        rows.append([*names, "ab"[number % 2]])
        known[names[0]] = image, mask
    write_csv(root / "train.csv", rows)
    return root, rows, known


def options_of(root, **more):
    return dict(labels=root / "train.csv", file_column="image", mask_column="mask", progress=False, **more)


def check_masks(pack, known, count=COUNT, size=None):
    dataset = masked(pack)
    assert len(dataset) == count and dataset.info["fields"] == {"mask": "mask"}
    for key, image, mask in zip(dataset.keys(), *dataset[:]):
        expected = known[key]
        if size:
            expected = resized(expected[0], size, Image.BILINEAR), resized(expected[1], size, Image.NEAREST)
        np.testing.assert_array_equal(image, expected[0])
        np.testing.assert_array_equal(mask, expected[1])
    return dataset


@pytest.mark.parametrize("container, sizes", FORMS)
def test_masks_of_any_name_are_those_of_the_rows(named, tmp_path, container, sizes):
    root, rows, known = named
    size = (48, 40) if sizes == "fixed" else None
    report = chunkhit.pack_images(root, tmp_path / "out", container=container, sizes=sizes, **options_of(root, **({"resize": size} if size else {})))
    assert report["samples"] == COUNT and report["rejected"] == 0
    dataset = check_masks(tmp_path / "out", known, size=size)
    names = {row[0]: row[2] for row in rows}
    assert [dataset.classes[label] for label in dataset.labels()] == [names[key] for key in dataset.keys()]
    assert chunkhit.verify_pack(tmp_path / "out")["problems"] == []


def test_paths_are_below_the_folder_of_pair(named, tmp_path):
    """Relative ones, and absolute ones below it."""
    root, rows, known = named
    os.rename(root / "segmentation", tmp_path / "elsewhere")
    rows = [[image, mask.split("/")[1] if number % 2 else f"{tmp_path}/elsewhere/{mask.split('/')[1]}", label]
            for number, (image, mask, label) in enumerate(rows)]
    write_csv(root / "train.csv", rows)
    chunkhit.pack_images(root, tmp_path / "out", pair=tmp_path / "elsewhere", sizes="own", **options_of(root))
    check_masks(tmp_path / "out", known)


def test_a_table_of_masks_needs_no_labels(named, tmp_path, logs):
    root, rows, known = named
    write_csv(root / "train.csv", [row[:2] for row in rows], ("image", "mask"))
    info = chunkhit.pack_images(root, tmp_path / "out", sizes="own", **options_of(root))
    assert [each["id"] for each in info["classes"]] == [-1]
    check_masks(tmp_path / "out", known)
    write_csv(root / "train.csv", rows, ("image", "mask", "class"))
    with logs('has no column "label": samples have no labels; give label_column class'):
        chunkhit.pack_images(root, tmp_path / "more", sizes="own", **options_of(root))
    for wrong in (dict(label_column="name"), dict(label_type="classes")):
        with pytest.raises(chunkhit.Error, match="expected a header with a column"):
            chunkhit.pack_images(root, tmp_path / "wrong", sizes="own", **options_of(root, **wrong))


def test_ids_of_images_and_masks_get_their_extensions(named, tmp_path, logs):
    """Those of images had one, ids of masks were files that do not exist."""
    root, rows, known = named
    write_csv(root / "train.csv", [[image[:-4], mask[:-4], label] for image, mask, label in rows])
    with logs("names of masks in .*/train.csv have no extension: .png is appended"):
        chunkhit.pack_images(root, tmp_path / "out", sizes="own", **options_of(root))
    check_masks(tmp_path / "out", known)
    write_csv(root / "train.csv", [[image[:-4], mask[13:-4], label] for image, mask, label in rows])
    with pytest.raises(chunkhit.Error, match="names of masks are paths below .*root: none of them is there, the first is map .*, but "
                                             "segmentation/map .*png is; write the folders into the table"):
        chunkhit.pack_images(root, tmp_path / "wrong", sizes="own", **options_of(root))


@pytest.mark.parametrize("container", ["hdf5", "shard"])
def test_the_list_and_the_rejects_name_the_masks(named, tmp_path, container):
    """Neither could be packed again, as they lacked the column."""
    root, rows, known = named
    write_csv(root / "train.csv", [*rows, ["train/none.png", "segmentation/none.png", "a"]])
    chunkhit.pack_images(root, tmp_path / "out", container=container, resize=(48, 40), max_errors=1, **options_of(root))
    listed = subprocess.check_output([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-info"), tmp_path / "out", "--list"], text=True)
    assert list(csv.reader(listed.splitlines())) == [["image", "label", "mask", "row"],
                                                     *([image, label, mask, str(row)] for row, (image, mask, label) in enumerate(rows))]
    assert (tmp_path / "out/rejects.csv").read_text().splitlines() == [
        "row,image,label,mask,reason", f"{COUNT},train/none.png,a,segmentation/none.png,no such file"]
    (tmp_path / "list.csv").write_text(listed)
    chunkhit.pack_images(root, tmp_path / "again", container=container, resize=(48, 40), **{**options_of(root), "labels": tmp_path / "list.csv"})
    check_masks(tmp_path / "again", known, size=(48, 40))


def test_rows_that_are_no_samples_are_rejects(named, tmp_path):
    """The masks of the rows behind a reject stay theirs."""
    root, rows, known = named
    Image.new("L", (3, 4)).save(root / "segmentation/small.png")
    Image.new("L", (3, 4)).save(tmp_path / "outside.png")
    wrong = {0: "", 2: "segmentation/none.png", 3: "segmentation/small.png", 5: "../outside.png", 6: rows[6][0]}
    rows = [[image, wrong.get(number, mask), 1] for number, (image, mask, _) in enumerate(rows)]
    rows[9:9] = [[*rows[9][:2], "a"]]  # one label of 401 that is no integer, which is known once all were read
    rows += [[*rows[20][:2], 2]] * 360
    write_csv(root / "train.csv", rows)
    info = chunkhit.pack_images(root, tmp_path / "out", sizes="own", max_errors=10, keep_columns=[], **options_of(root))
    assert info["samples"] == COUNT - 5 + 360
    with open(tmp_path / "out/rejects.csv", newline="") as file:
        reasons = {int(row["row"]): row["reason"] for row in csv.DictReader(file)}
    assert sorted(reasons) == [0, 2, 3, 5, 6, 9]
    for row, words in ((0, "mask is missing"), (2, "its mask segmentation/none.png: no such file"),
                       (3, "its mask segmentation/small.png: has 3 x 4 pixels, expected"), (5, "leads out of the root folder"),
                       (6, "has colors: red 66, green 194, blue 247 at (0, 0): expected one value"), (9, "label is not an integer")):
        assert words in reasons[row], reasons[row]
    check_masks(tmp_path / "out", known, COUNT - 5 + 360)


def test_a_changed_mask_is_packed_again(named, tmp_path):
    root, rows, known = named

    def pack_again():
        chunkhit.pack_images(root, tmp_path / "out", **options_of(root, resize=(48, 40)))
        return (tmp_path / "out/part-00000.h5").stat().st_mtime_ns

    first = pack_again()
    assert pack_again() == first
    Image.fromarray(known[rows[0][0]][1] // 2 + 100).save(root / rows[0][1])
    second = pack_again()
    assert second > first
    rows[0][1], rows[1][1] = rows[1][1], rows[0][1]
    write_csv(root / "train.csv", rows)
    with pytest.raises(chunkhit.Error, match="the input list changed"):
        pack_again()


def test_a_plan_has_the_masks_of_its_rows(named, tmp_path):
    root, _, known = named
    for seed, name in enumerate(("one", "two")):
        chunkhit.pack_images(root, tmp_path / name, seed=seed, plan=2, part_bytes=100_000, **options_of(root, resize=(48, 40)))
    for task in (0, 1, None):
        chunkhit.run_plan(tmp_path / "one", task=task, progress=False)
    check_masks(tmp_path / "one", known, size=(48, 40))
    os.rename(root, tmp_path / "there")
    with pytest.raises(chunkhit.Error, match="its mask segmentation/.*no such file.*pair names the folder of the field"):
        chunkhit.run_plan(tmp_path / "two", root=tmp_path / "there", pair=tmp_path / "there/segmentation", progress=False)
    chunkhit.run_plan(tmp_path / "two", root=tmp_path / "there", progress=False)
    check_masks(tmp_path / "two", known, size=(48, 40))
    chunkhit.merge_packs([tmp_path / "one", tmp_path / "two"], tmp_path / "both")
    assert chunkhit.verify_pack(tmp_path / "both")["problems"] == []


def test_a_column_that_cannot_be_is_an_error(named, tmp_path):
    root, rows, _ = named

    def raises(words, code, **options):
        with pytest.raises(chunkhit.Error, match=words) as error:
            chunkhit.pack_images(options.pop("root", root), tmp_path / "out", **{**options_of(root), **options})
        assert error.value.code == code and not (tmp_path / "out").exists()

    raises('column "image" is given twice', "usage", mask_column="image")
    raises('a column "seg" for mask_column, found "image", "mask", "label"; give mask_column mask', "bad_data", mask_column="seg")
    raises("mask_column: is for a CSV .*, found class folders", "usage", labels=None, file_column=None)
    with pytest.raises(chunkhit.Error, match="mask_column: no such option"):
        chunkhit.ImageWriter(tmp_path / "out", mask_column="mask")

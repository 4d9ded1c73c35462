"""Splits that a column of the list says: folds, and names of packs."""
import os
import subprocess

import numpy as np
import pytest
from PIL import Image

import chunkhit
from error_test import raised


@pytest.fixture(scope="module")
def folds(tmp_path_factory):
    """60 images of folds 0 to 5, whose set is a word."""
    folder = tmp_path_factory.mktemp("folds")
    with open(folder / "list.csv", "w") as file:
        file.write("file,label,fold,set\n")
        for number in range(60):
            Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number:02}.png")
            file.write(f"{number:02}.png,{'ab'[number % 2]},{number % 6},{('train', 'dev')[number % 6 == 0]}\n")
    return folder


def pack(folds, out, split, column="fold", **options):
    return chunkhit.pack_images(folds, out, labels=folds / "list.csv", split=split, split_column=column, progress=False, **options)


def test_folds_of_a_column_could_not_name_the_packs(folds, tmp_path):
    pack(folds, tmp_path / "out", {"train": "1-3,5", "val": 0, "test": "4"})
    for name, wanted in (("train", {1, 2, 3, 5}), ("val", {0}), ("test", {4})):
        assert set(chunkhit.ImageDataset(tmp_path / "out" / name).column("fold")) == wanted
    assert chunkhit.pack_info(tmp_path / "out/train")["samples"] == 40
    said = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-images"), folds, "--labels", folds / "list.csv", "--split",
                           "train=1-3,5,val=0,test=4", "--split-column", "fold", "-o", tmp_path / "same", "--progress", "none"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert said.returncode == 0 and "in several packs" not in said.stdout, said.stdout
    for part in sorted((tmp_path / "out/train").glob("part-*.h5")):
        assert part.read_bytes() == (tmp_path / "same/train" / part.name).read_bytes()


def test_words_and_numbers_with_missing_ones_name_packs(folds, tmp_path):
    pack(folds, tmp_path / "words", {"train": "train", "val": "dev"}, column="set")
    assert chunkhit.pack_info(tmp_path / "words/val")["samples"] == 10
    pack(folds, tmp_path / "planned", {"train": "train", "val": "dev"}, column="set", plan=2)
    chunkhit.run_plan(tmp_path / "planned")
    samples = [np.sort(chunkhit.ImageDataset(tmp_path / name / "val")[list(range(10))][0][:, 0, 0, 0]) for name in ("words", "planned")]
    np.testing.assert_array_equal(*samples)


@pytest.mark.parametrize("split, words", [
    ({"train": "1-4", "val": "0"}, "split_column fold: no pack of split has the value 5"),
    ({"train": "0-5", "val": "0"}, "split_column fold: train and val both have the value 0"),
    ({"train": "0-5", "val": "9"}, "split_column fold: no image has a value of val=9")])
def test_each_value_belongs_to_one_pack(folds, tmp_path, split, words):
    assert words in raised("bad_data", pack, folds, tmp_path / "out", split)


def test_says_what_it_is_for(folds, tmp_path):
    assert "split_column and split_group exclude each other" in raised(
        "usage", pack, folds, tmp_path / "out", {"a": "0-5"}, split_group="set")
    assert "split_column: is for split" in raised("usage", chunkhit.pack_images, folds, tmp_path / "out", labels=folds / "list.csv",
                                                  split_column="fold")
    assert "or values of split_column, found {'train': '1-4'}" in raised("usage", chunkhit.pack_images, folds, tmp_path / "out",
                                                                         labels=folds / "list.csv", split={"train": "1-4"})
    said = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-images"), folds, "--split", "train=1-4,val=0", "-o",
                           tmp_path / "out"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert said.returncode == 2 and "train: expected a share above 0, found 1-4; --split-column takes values" in said.stdout
    assert 'expected a header with a column "nothing"' in raised("bad_data", pack, folds, tmp_path / "out", {"a": "0-5"}, column="nothing")

"""label_type none: folders, CSVs and tars of images without labels, packed, read, merged and divided."""
import shutil

import h5py
import numpy as np
import pytest

import chunkhit

from label_type_test import command
from tar_columns_test import shard

COUNT = 10


@pytest.fixture(scope="module")
def flat(packs, tmp_path_factory):
    """A folder of images without class folders, as a competition's test set."""
    folder = tmp_path_factory.mktemp("flat")
    for number in range(COUNT):
        shutil.copy(packs / "images" / "ab"[number % 2] / f"{number:03}.png", folder / f"{number:03}.png")
    (folder / "notes.txt").write_text("no image")
    return folder


def check_unlabelled(pack, count=COUNT):
    dataset = chunkhit.ImageDataset(pack)
    assert dataset.labels().tolist() == [-1] * count
    assert chunkhit.pack_info(pack)["classes"] == [{"id": -1, "samples": count}]


@pytest.mark.parametrize("container", ["hdf5", "shard"])
def test_a_flat_folder_is_packed_without_labels(flat, tmp_path, container):
    chunkhit.pack_images(flat, tmp_path / "out", label_type="none", container=container, chunk_samples=3)
    check_unlabelled(tmp_path / "out")
    assert sorted(chunkhit.ImageDataset(tmp_path / "out").keys()) == [f"{n:03}.png" for n in range(COUNT)]
    loader = chunkhit.ImageLoader(tmp_path / "out", batch_size=4)
    assert [label for _, labels in loader.epoch(0) for label in labels.tolist()] == [-1] * COUNT
    if container == "hdf5":
        with h5py.File(tmp_path / "out" / "part-00000.h5") as part:
            assert set(np.asarray(part["labels"])) == {-1}


def test_the_command_says_that_there_are_no_labels(flat, tmp_path):
    code, text = command(flat, "--label-type", "none", "-o", tmp_path / "out")
    assert code == 0 and "labels: none\n" in text and "10 of 10 rows packed" in text, text
    code, text = command(flat, "--label-type", "none", "-o", tmp_path / "out")
    assert code == 0 and "already" in text, text


def test_errors_of_missing_labels_name_the_option(flat, tmp_path):
    code, text = command(flat, "-o", tmp_path / "out")
    assert code == 65 and "--label-type none packs them without labels" in text, text
    (tmp_path / "files.csv").write_text("file\n" + "".join(f"{n:03}.png\n" for n in range(COUNT)))
    code, text = command(flat, "--labels", tmp_path / "files.csv", "-o", tmp_path / "out")
    assert code == 65 and 'column "label"' in text and "--label-type none packs without labels" in text, text


def test_a_column_of_files_is_enough(flat, tmp_path):
    (tmp_path / "files.csv").write_text("file,age\n" + "".join(f"{n:03}.png,{n}\n" for n in range(0, COUNT, 2)))
    chunkhit.pack_images(flat, tmp_path / "out", labels=tmp_path / "files.csv", label_type="none", keep_columns=["age"],
                         order="input")
    check_unlabelled(tmp_path / "out", 5)
    assert chunkhit.ImageDataset(tmp_path / "out").column("age").tolist() == [0, 2, 4, 6, 8]


def test_class_folders_are_read_at_any_depth(packs, tmp_path):
    chunkhit.pack_images(packs / "images", tmp_path / "out", label_type="none")
    check_unlabelled(tmp_path / "out", 100)


def test_labels_in_tars_are_left_out(packs, tmp_path):
    tar = shard(tmp_path / "a.tar", packs, [{"age": n} for n in range(COUNT)])
    chunkhit.pack_images(tar, tmp_path / "out", label_type="none", keep_columns=["age"], order="input")
    check_unlabelled(tmp_path / "out")
    assert chunkhit.ImageDataset(tmp_path / "out").column("age").tolist() == list(range(COUNT))
    bare = shard(tmp_path / "b.tar", packs, [None] * COUNT, cls=False)
    chunkhit.pack_images(bare, tmp_path / "bare", label_type="none")
    check_unlabelled(tmp_path / "bare")


def test_a_split_and_a_merge_have_no_labels(flat, tmp_path):
    chunkhit.pack_images(flat, tmp_path / "out", label_type="none", split={"train": 0.7, "val": 0.3})
    check_unlabelled(tmp_path / "out" / "train", 7)
    check_unlabelled(tmp_path / "out" / "val", 3)
    chunkhit.merge_packs([tmp_path / "out" / "train", tmp_path / "out" / "val"], tmp_path / "all")
    check_unlabelled(tmp_path / "all")


def test_a_plan_packs_the_same(flat, tmp_path):
    options = dict(label_type="none", chunk_samples=2)
    chunkhit.pack_images(flat, tmp_path / "one", **options)
    chunkhit.pack_images(flat, tmp_path / "two", plan=2, **options)
    chunkhit.run_plan(tmp_path / "two")
    check_unlabelled(tmp_path / "two")
    assert chunkhit.pack_info(tmp_path / "one")["pack_id"] == chunkhit.pack_info(tmp_path / "two")["pack_id"]


@pytest.mark.parametrize("options, message", [
    (dict(classes=True), "label_type none: excludes classes"),
    (dict(label_column=["x"]), "label_type none: excludes label_column"),
    (dict(label_separator="|"), "label_type: excludes label_separator"),
])
def test_options_of_labels_are_errors(flat, tmp_path, options, message):
    (tmp_path / "files.csv").write_text("file,x\n000.png,1\n")
    if "classes" in options:
        options["classes"] = tmp_path / "files.csv"
    with pytest.raises(chunkhit.Error) as error:
        chunkhit.pack_images(flat, tmp_path / "out", labels=tmp_path / "files.csv", label_type="none", **options)
    assert message in str(error.value)


def test_folders_of_systems_are_skipped(packs, tmp_path):
    shutil.copytree(packs / "images", tmp_path / "images")
    for folder in ("@eaDir", "$RECYCLE.BIN", "lost+found", "__MACOSX", "a/@eaDir"):
        shutil.copytree(packs / "images" / "a", tmp_path / "images" / folder)
    code, text = command(tmp_path / "images", "-o", tmp_path / "out")
    names = "$RECYCLE.BIN, @eaDir, __MACOSX, a/@eaDir, lost+found"
    assert code == 0 and f"note: 5 folders are skipped as those that systems leave beside files: {names}\n" in text, text
    code, text = command(tmp_path / "images", "--label-type", "none", "-o", tmp_path / "flat")
    assert code == 0 and f"note: 5 folders are skipped as those that systems leave beside files: {names}\n" in text, text
    info = chunkhit.pack_info(tmp_path / "out")
    assert [each["name"] for each in info["classes"]] == ["a", "b"] and info["samples"] == 100

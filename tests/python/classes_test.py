"""Class ids and names: of packs that are read as one."""
import os
import subprocess

import numpy as np
import pytest
from PIL import Image

import chunkhit

# The gray value of each class's images, so that pixels tell what labels should.
GRAYS = {"ant": 20, "bee": 60, "cat": 100, "dog": 140, "eel": 180}


def write_images(root, classes, count=6):
    for name in classes:
        (root / name).mkdir(parents=True)
        for number in range(count):
            Image.new("L", (8, 6), GRAYS[name]).save(root / name / f"{number}.png")
    return root


def assert_labels_are_those_of_pixels(loader):
    names = {each["id"]: each["name"] for each in loader.info["classes"]}
    for images, labels in loader.epoch(0):
        assert [GRAYS[names[label]] for label in labels.tolist()] == images[:, 0, 0, 0].tolist()


def test_packs_with_other_classes_gave_two_classes_one_id(tmp_path):
    for pack, classes in (("a", ("cat", "dog")), ("b", ("dog", "eel"))):
        chunkhit.pack_images(write_images(tmp_path / f"{pack}-images", classes), tmp_path / pack, channels="gray")
    loader = chunkhit.ImageLoader([tmp_path / "a", tmp_path / "b"], batch_size=5, shuffle="global")
    assert [(each["id"], each["name"], each["samples"]) for each in loader.info["classes"]] == [
        (0, "cat", 6), (1, "dog", 12), (2, "eel", 6)]
    assert_labels_are_those_of_pixels(loader)
    dataset = chunkhit.ImageDataset([tmp_path / "a", tmp_path / "b"])
    assert np.bincount(dataset.labels()).tolist() == [6, 12, 6]


def test_ids_without_names_are_not_joined_with_names(tmp_path):
    chunkhit.pack_images(write_images(tmp_path / "images", ("cat", "dog")), tmp_path / "named")
    (tmp_path / "ids.csv").write_text("file,label\ncat/0.png,7\ndog/0.png,9\n")
    chunkhit.pack_images(tmp_path / "images", tmp_path / "ids", labels=tmp_path / "ids.csv")
    with pytest.raises(chunkhit.Error, match="ids: has class ids without names, but .*named has names"):
        chunkhit.ImageLoader([tmp_path / "named", tmp_path / "ids"])


def test_packs_with_labels_in_another_order_were_read_as_one(tmp_path):
    """Numbers as labels were distinguished by how many there are alone: x of one pack was y of the other."""
    write_images(tmp_path / "images", ("cat", "dog"))
    (tmp_path / "boxes.csv").write_text("file,x,y\ncat/0.png,7.5,1\ndog/0.png,9,2\n")
    for pack, columns in (("a", ["x", "y"]), ("b", ["y", "x"]), ("c", ["x", "y"])):
        chunkhit.pack_images(tmp_path / "images", tmp_path / pack, labels=tmp_path / "boxes.csv", label_column=columns,
                             channels="gray")
    for reader in (chunkhit.ImageLoader, chunkhit.ImageDataset):
        with pytest.raises(chunkhit.Error, match="/b/part-00000.h5: labels y, x, expected x, y as in .*/a/"):
            reader([tmp_path / "a", tmp_path / "b"])
    assert chunkhit.ImageDataset([tmp_path / "a", tmp_path / "c"]).labels().tolist() == [[7.5, 1], [9, 2]] * 2


@pytest.mark.parametrize("kind", [chunkhit.ImageLoader, chunkhit.ImageDataset])
def test_names_and_counts_of_classes_are_in_the_order_of_labels(tmp_path, kind):
    for pack, classes, count in (("a", ("cat", "dog"), 6), ("b", ("ant", "dog"), 3)):
        chunkhit.pack_images(write_images(tmp_path / f"{pack}-images", classes, count), tmp_path / pack, channels="gray")
    both = kind([tmp_path / "a", tmp_path / "b"])
    assert both.classes == ["cat", "dog", "ant"]
    assert both.class_counts == [6, 9, 3]
    assert both.class_to_idx == {"cat": 0, "dog": 1, "ant": 2}


def test_classes_without_names_are_named_by_their_ids(tmp_path):
    write_images(tmp_path / "images", ("cat", "dog"))
    (tmp_path / "ids.csv").write_text("file,label\ncat/0.png,7\ndog/0.png,9\ndog/1.png,9\n")
    chunkhit.pack_images(tmp_path / "images", tmp_path / "ids", labels=tmp_path / "ids.csv")
    dataset = chunkhit.ImageDataset(tmp_path / "ids")
    assert (dataset.classes, dataset.class_counts, dataset.class_to_idx) == (["7", "9"], [1, 2], {"7": 7, "9": 9})


def test_labels_that_are_numbers_have_no_classes(packs):
    dataset = chunkhit.ImageDataset(packs / "numbers")
    assert (dataset.classes, dataset.class_counts, dataset.class_to_idx) == ([], [], {})


@pytest.mark.parametrize("options, message", [
    (dict(sampler={"dog": 1, "cats": 1}), 'sampler: class "cats": no sample of .*/a has it; did you mean "cat"\\?'),
    (dict(sampler={"cats": 1}), 'sampler: class "cats": no sample of .*/a has it; did you mean "cat"\\?'),
    (dict(sampler={"zebra": 1, "dog": 1}), "sampler: class \"zebra\": .* has it; its classes are cat, dog"),
    (dict(subset=["cat", "dgo"]), 'subset: class "dgo": .* did you mean "dog"\\?'),
    (dict(sampler={"cat": 1}), 'sampler: class "dog" of 6 samples has no weight')])
def test_a_class_that_there_is_not_is_named_before_one_without_a_weight(tmp_path, options, message):
    chunkhit.pack_images(write_images(tmp_path / "images", ("cat", "dog")), tmp_path / "a", channels="gray")
    with pytest.raises(chunkhit.Error, match=f"^{message}"):
        chunkhit.ImageLoader(tmp_path / "a", **options)


def test_spellings_of_one_class_were_classes_without_a_word(tmp_path):
    """café in both Unicode forms, and cat with a blank or a capital."""
    for number, name in enumerate(("cafe\u0301", "caf\u00e9", "cat", "Cat", "cat ", "dog")):
        (tmp_path / "images" / name).mkdir(parents=True)
        Image.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / "images" / name / "0.png")
    said = subprocess.check_output([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-images"), tmp_path / "images", "-o", tmp_path / "pack"],
                                   stderr=subprocess.STDOUT, text=True)
    note = next(line for line in said.splitlines() if "classes that differ only in case, blanks, accents or Unicode form: " in line)
    assert '"Cat" and "cat"' in note and "caf\u00e9" in note and "dog" not in note

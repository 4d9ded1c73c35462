"""Masks as files of other tools, and packed again from these."""
import functools
import io

import numpy as np
import pytest
from PIL import Image

import chunkhit

from export_test import groups_of, pixels


ImageDataset = functools.partial(chunkhit.ImageDataset, fields=("image", "mask"))


def assert_same(found, expected):
    for parts in zip(found, expected, strict=True):
        for read, wanted in zip(*parts, strict=True):
            np.testing.assert_array_equal(read, wanted)


def test_a_folder_that_is_packed_again_has_the_same_images_and_masks(masked, tmp_path):
    before = ImageDataset(masked / "pack")
    chunkhit.export_pack(masked / "pack", tmp_path / "out")
    for labels in ({}, dict(labels=tmp_path / "out/labels.csv", order="input")):
        chunkhit.pack_images(tmp_path / "out/images", tmp_path / f"again{len(labels)}", pair=tmp_path / "out/masks",
                             sizes="own" if before.info.get("own_sizes") else "fixed", **labels)
    after = ImageDataset(tmp_path / "again2")
    assert_same(after, before)
    np.testing.assert_array_equal(after.labels(), before.labels())
    assert sorted(map(tuple, map(np.shape, chunkhit.ImageDataset(tmp_path / "again0").masks(slice(None))))) == \
        sorted(map(tuple, map(np.shape, before.masks(slice(None)))))


def test_a_tar_has_the_mask_beside_its_image(masked, tmp_path):
    dataset = ImageDataset(masked / "pack")
    chunkhit.export_pack(masked / "pack", tmp_path / "out.tar")
    found = [(pixels(parts.get("png") or parts["jpg"]), np.asarray(Image.open(io.BytesIO(parts["mask.png"]))))
             for parts in groups_of(tmp_path / "out.tar").values()]
    assert_same(found, dataset)
    info = chunkhit.pack_images(tmp_path / "out.tar", tmp_path / "again", label_column="class", sizes="own")
    assert info["samples"] == len(dataset) and info["rejected"] == 0, "a mask is no image"


@pytest.mark.parametrize("masked", ["fixed"], indirect=True)
def test_arrays_have_the_masks_of_the_chosen_samples(masked, tmp_path):
    dataset = ImageDataset(masked / "pack")
    chunkhit.export_pack(masked / "pack", tmp_path / "out.npz", classes=["b"])
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["masks"].dtype == np.uint8
        assert_same(zip(arrays["images"], arrays["masks"]), zip(*dataset[dataset.labels() == 1]))

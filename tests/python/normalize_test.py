"""What f32 batches are normalised with: the training pack's statistics, in validation too."""
import json
import os
import shutil
import subprocess

import h5py
import numpy as np
import pytest
from PIL import Image

import chunkhit
from classes_test import write_images

PACK_INFO = os.path.join(os.path.dirname(chunkhit.__file__), "../../../tools/pack-info")


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """Packs of one split, whose own statistics differ; and `alone`, packed by itself."""
    folder = tmp_path_factory.mktemp("normalize")
    write_images(folder / "root" / "train", ("ant", "bee", "cat"))
    write_images(folder / "root" / "val", ("ant", "bee"))
    chunkhit.pack_images(folder / "root", folder / "packs", split_folders=["train", "val"], channels="gray")
    chunkhit.pack_images(folder / "root" / "val", folder / "alone", channels="gray")
    return folder


def values_of(path, **options):
    loader = chunkhit.ImageLoader(path, dtype="float32", batch_size=100, **options)
    return next(iter(loader)).images, loader


def expected(path, mean, std):
    images = chunkhit.ImageDataset(path)[:][0].astype(np.float32)
    return (images / 255 - np.float32(mean)) / np.float32(std)


def test_validation_was_normalised_by_its_own_mean_and_std(split):
    train = chunkhit.pack_info(split / "packs" / "train")
    assert chunkhit.pack_info(split / "packs" / "val")["mean"] != train["mean"]
    for name in ("train", "val"):
        found, loader = values_of(split / "packs" / name)
        np.testing.assert_allclose(found, expected(split / "packs" / name, train["mean"][0], train["std"][0]), rtol=1e-6, atol=1e-6)
        assert loader.stats().notices == []


def test_another_pack_is_normalised_like_the_training_pack(split):
    train = chunkhit.pack_info(split / "packs" / "train")
    for like in (split / "packs" / "train", str(split / "packs" / "val"), split / "packs" / "train" / "part-00000.h5"):
        found, loader = values_of(split / "alone", normalize_like=like)
        np.testing.assert_allclose(found, expected(split / "alone", train["mean"][0], train["std"][0]), rtol=1e-6, atol=1e-6)
        assert loader.stats().notices == []


def test_mean_and_std_of_a_pack_had_another_unit_than_normalize(split):
    """pack_info gave 0..255, normalize took 0..1."""
    path, info = split / "alone", chunkhit.pack_info(split / "alone")
    pixels = chunkhit.ImageDataset(path)[:][0] / 255
    np.testing.assert_allclose((info["mean"], info["std"]), (pixels.mean((0, 1, 2)), pixels.std((0, 1, 2))), rtol=1e-9)
    with h5py.File(path / "part-00000.h5") as part:
        assert list(part["images"].attrs["mean"]) == info["mean"] and list(part["images"].attrs["std"]) == info["std"]
    given, _ = values_of(path, normalize=dict(mean=info["mean"], std=info["std"]))
    np.testing.assert_array_equal(given, values_of(path)[0])


def test_a_pack_that_is_normalised_by_itself_is_noted(split):
    own = chunkhit.pack_info(split / "alone")
    found, loader = values_of(split / "alone")
    np.testing.assert_allclose(found, expected(split / "alone", own["mean"][0], own["std"][0]), rtol=1e-6, atol=1e-6)
    assert loader.stats().notices == [f"{split / 'alone'}: normalised by its own mean and std; for validation pass "
                                      "normalize_like=TRAIN_PACK"]
    assert "note: " in str(loader.stats()) and "normalize_like" in str(loader.stats())
    for options in (dict(dtype="uint8"), dict(dtype="float32", normalize=dict(mean=[0.5], std=[0.5]))):
        assert chunkhit.ImageLoader(split / "alone", **options).stats().notices == []
    with pytest.raises(chunkhit.Error, match="mean goes with std"):
        chunkhit.ImageLoader(split / "alone", dtype="float32", normalize=dict(mean=[0.5]))


@pytest.mark.parametrize("options, words", [
    (dict(dtype="float32", normalize=dict(mean=[0.5], std=[0.5])), "normalize_like: excludes normalize"),
    (dict(dtype="uint8"), "is for dtype float32"),
])
def test_refuses_what_contradicts_itself(split, options, words):
    with pytest.raises(chunkhit.Error, match=words):
        chunkhit.ImageLoader(split / "alone", normalize_like=split / "packs" / "train", **options)
    with pytest.raises(chunkhit.Error, match="gone"):
        chunkhit.ImageLoader(split / "alone", dtype="float32", normalize_like=split / "gone")


def test_info_says_what_packs_of_a_split_share(split):
    val = chunkhit.ImageLoader(split / "packs" / "val").info
    with open(split / "packs" / "train" / "manifest.json") as file:
        train = json.load(file)
    assert val["normalize"] == {"from": "train", "mean": train["mean"], "std": train["std"]}


def test_a_split_with_another_training_pack_was_whole_for_verify(split, tmp_path):
    """pack-verify compared all of a manifest but what normalises the pack."""
    shutil.copytree(split / "packs", tmp_path / "packs")
    assert all(chunkhit.verify_pack(tmp_path / "packs" / name)["problems"] == [] for name in ("train", "val"))
    shutil.copytree(split / "root", tmp_path / "root")
    Image.new("L", (8, 6), 255).save(tmp_path / "root" / "train" / "ant" / "0.png")
    chunkhit.pack_images(tmp_path / "root", tmp_path / "other", split_folders=["train", "val"], channels="gray")
    shutil.rmtree(tmp_path / "packs" / "train")
    shutil.move(tmp_path / "other" / "train", tmp_path / "packs" / "train")
    assert chunkhit.verify_pack(tmp_path / "packs" / "train")["problems"] == []
    problems = chunkhit.verify_pack(tmp_path / "packs" / "val")["problems"]
    assert problems == [f"{tmp_path}/packs/val/manifest.json: normalize: its mean and std are not those of train"]
    shutil.rmtree(tmp_path / "packs" / "train")
    assert chunkhit.verify_pack(tmp_path / "packs" / "val")["problems"] == []


def test_pack_info_names_what_normalises(split):
    said = subprocess.run([PACK_INFO, split / "packs" / "val"], capture_output=True, text=True, check=True).stdout
    train = chunkhit.pack_info(split / "packs" / "train")
    assert f"normalize  {train['mean'][0]:.4f} | {train['std'][0]:.4f} (those of train" in said

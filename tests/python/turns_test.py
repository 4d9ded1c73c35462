"""Vertical flips and quarter turns: NumPy's, of image, mask and view alike, drawn as schemas/order.md says."""
import json
import os
import sys

import chunkhit
import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from described_order import is_flipped, is_flipped_vertically, quarter_turns  # noqa: E402
from error_test import raised  # noqa: E402
from masks_test import save_pairs  # noqa: E402

COUNT, SEED = 60, 9
TURNS = dict(flip_vertical=0.5, quarter_turns=True)
FIELDS = ("image", "mask", "view")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folders of images, of masks (the green channel) and of other images, each square."""
    folder = tmp_path_factory.mktemp("turns")
    save_pairs(folder, np.random.default_rng(4).integers(0, 256, (COUNT, 20, 20, 3), np.uint8), 1)
    return folder


PACKS = [("mask", dict(sizes="own")), ("mask", dict(sizes="fixed")), ("view", {}), ("view", dict(layout="nchw", container="shard"))]


@pytest.fixture(scope="module", params=range(len(PACKS)), ids=["own", "masks", "views", "planes"])
def pack(request, folder):
    kind, options = PACKS[request.param]
    out = folder / f"pack{request.param}"
    chunkhit.pack_images(folder / "images", out, pair={kind: folder / f"{kind}s"}, chunk_samples=None if "own" in options.values() else 7,
                         progress=False, **options)
    return out


def loader_of(path, augment, **options):
    return chunkhit.ImageLoader(path, **{**dict(batch_size=8, shuffle="window", seed=SEED, layout="nhwc", augment=augment), **options})


def turned(array, epoch, sample, use=0):
    """The sample as the options change it, after crop and horizontal flip."""
    if is_flipped_vertically(0.5, SEED, epoch, sample, use):
        array = np.flipud(array)
    return np.rot90(array, quarter_turns(SEED, epoch, sample, use))


CROPS = [dict(resized_crop=dict(height=12, width=12), flip_horizontal=0.5), dict(resize_short=16, crop_height=13, crop_width=13, random_crop=True),
         dict(resize_short=14, crop_height=19, crop_width=19, flip_horizontal=0.5),
         dict(crop_height=11, crop_width=11, random_crop=True, crop_padding=3, flip_horizontal=0.5), {}]


@pytest.mark.parametrize("crop", CROPS)
def test_fields_are_those_without_the_options_flipped_and_turned(pack, crop):
    """So a seed crops and mirrors as it did before there were such options."""
    if chunkhit.pack_info(pack).get("own_sizes") and not {"resized_crop", "resize_short"} & set(crop):
        pytest.skip("images of their own sizes are resized")
    seen = set()
    for layout in ("nhwc", "nchw"):
        loaders = [loader_of(pack, augment, layout=layout) for augment in (crop, {**crop, **TURNS})]
        for before, after in zip(*(loader.epoch(3) for loader in loaders), strict=True):
            assert before.samples.tolist() == after.samples.tolist()
            for at, sample in enumerate(map(int, after.samples)):
                seen.add((is_flipped_vertically(0.5, SEED, 3, sample), quarter_turns(SEED, 3, sample)))
                for field in FIELDS:
                    if field == "mask" and before.masks is None or field == "view" and before.views is None:
                        continue
                    found, expected = after[field][at], before[field][at]
                    if layout == "nchw" and field != "mask":
                        found, expected = found.transpose(1, 2, 0), expected.transpose(1, 2, 0)
                    np.testing.assert_array_equal(found, turned(expected, 3, sample))
    assert len(seen) == 8


def test_stored_images_are_flipped_and_turned(folder, pack):
    if chunkhit.pack_info(pack).get("own_sizes"):
        pytest.skip("images of their own sizes are resized")
    stored = [np.asarray(Image.open(folder / f"images/{number:02}.png")) for number in range(COUNT)]
    for batch in loader_of(pack, dict(flip_horizontal=0.3, **TURNS)).epoch(1):
        for key, sample, image in zip(batch.keys, map(int, batch.samples), batch.images):
            expected = stored[int(key[:2])]
            expected = np.fliplr(expected) if is_flipped(0.3, SEED, 1, sample) else expected
            np.testing.assert_array_equal(image, turned(expected, 1, sample))


def test_floats_and_repeats_are_turned_too(pack):
    crop = dict(resized_crop=dict(height=12, width=12))
    options = dict(dtype="float32", normalize=dict(mean=[0.5] * 3, std=[0.25] * 3), echo=2)
    for before, after in zip(loader_of(pack, crop, **options), loader_of(pack, {**crop, **TURNS}, **options), strict=True):
        for at, (sample, use) in enumerate(zip(map(int, after.samples), map(int, after.uses))):
            np.testing.assert_array_equal(after.images[at], turned(before.images[at], 0, sample, use=use))


def test_a_flip_of_one_is_of_every_image(pack):
    crop = dict(resized_crop=dict(height=9, width=14))
    for before, after in zip(loader_of(pack, crop), loader_of(pack, {**crop, "flip_vertical": 1}), strict=True):
        np.testing.assert_array_equal(after.images, before.images[:, ::-1])


def test_samples_that_are_not_square_are_an_error(packs, pack):
    for path, augment, shape in ((packs / "hdf5", dict(quarter_turns=True), "6 x 8"),
                                 (pack, dict(quarter_turns=True, resized_crop=dict(height=9, width=14)), "9 x 14")):
        message = raised("usage", chunkhit.ImageLoader, path, augment=augment)
        assert f"augment.quarter_turns: samples of {shape} pixels, expected square ones" in message
    chunkhit.ImageLoader(packs / "hdf5", augment=dict(quarter_turns=True, crop_height=6, crop_width=6))
    assert "augment.flip_vertical: must be from 0 to 1" in raised("usage", chunkhit.ImageLoader, packs / "hdf5", augment=dict(flip_vertical=2))
    assert "augment.quarter_turns: expected True or False, found 0.5" in raised(
        "usage", chunkhit.ImageLoader, packs / "hdf5", augment=dict(quarter_turns=0.5))


def test_a_state_names_them(packs):
    crop = dict(crop_height=6, crop_width=6)
    plain, turning = (chunkhit.ImageLoader(packs / "hdf5", batch_size=8, augment=augment) for augment in (crop, {**crop, **TURNS}))
    assert not {"flip_vertical", "quarter_turns"} & set(json.loads(plain.state_dict()["chunkhit"])["augment"])
    assert "augment.flip_vertical: 0.5, expected nothing" in raised("usage", plain.load_state_dict, turning.state_dict())
    next(iter(turning))
    again = chunkhit.ImageLoader(packs / "hdf5", batch_size=8, augment={**crop, **TURNS})
    again.load_state_dict(turning.state_dict())
    np.testing.assert_array_equal(next(iter(again)).images, list(turning.epoch(0))[1].images)


def test_evaluation_that_turns_is_training(packs):
    """Samples used twice by padding are noted for what is not random."""
    options = dict(rank=0, world_size=3)
    crop = dict(crop_height=6, crop_width=6)
    assert any("used twice" in note for note in chunkhit.ImageLoader(packs / "hdf5", augment=crop, **options).stats().notices)
    for random in (dict(flip_vertical=0.5), dict(quarter_turns=True)):
        assert chunkhit.ImageLoader(packs / "hdf5", augment={**crop, **random}, **options).stats().notices == []

"""Class ids around images: what fit and crops pad masks with at packing, and what augment pads them with at reading."""
import chunkhit
import numpy as np
import pytest
from error_test import raised
from PIL import Image, ImageOps

COUNT = 12


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """images/N.png and masks/N.png, and both as arrays by N.png; values are above 0, so that padding shows."""
    folder = tmp_path_factory.mktemp("padded")
    random = np.random.default_rng(3)
    arrays = {}
    for kind in ("images", "masks"):
        (folder / kind).mkdir()
    for number in range(COUNT):
        height, width = (int(side) for side in random.integers(20, 60, 2))
        image = random.integers(1, 256, (height, width, 3), dtype=np.uint8)
        mask = random.integers(1, 100, (height, width), dtype=np.uint8)
        Image.fromarray(image).save(folder / f"images/{number}.png")
        Image.fromarray(mask).save(folder / f"masks/{number}.png")
        arrays[f"{number}.png"] = image, mask
    return folder, arrays


def pack(folder, out, **options):
    return chunkhit.pack_images(folder / "images", out, pair=folder / "masks", container="shard", progress=False, **options)


def stored(path):
    dataset = chunkhit.ImageDataset(path, fields=("image", "mask"))
    return {key: (image, mask) for key, image, mask in zip(dataset.keys(), *dataset[:])}


def centered(mask, height, width, padding):
    """torchvision's CenterCrop of a smaller or larger mask, with another padding."""
    high, wide = max(height - mask.shape[0], 0), max(width - mask.shape[1], 0)
    mask = np.pad(mask, ((high // 2, high - high // 2), (wide // 2, wide - wide // 2)), constant_values=padding)
    top, left = (int(round((side - crop) / 2.0)) for side, crop in zip(mask.shape, (height, width)))
    return mask[top:top + height, left:left + width]


def test_fit_pads_masks_as_pillow(pairs, tmp_path):
    folder, arrays = pairs
    info = pack(folder, tmp_path / "out", fit=(48, 40), mask_pad=255, pad_color="1,2,3")
    assert info["spec"]["mask-pad"] == "255"
    for key, (image, mask) in stored(tmp_path / "out").items():
        expected = ImageOps.pad(Image.fromarray(arrays[key][1]), (48, 40), Image.NEAREST, color=255)
        np.testing.assert_array_equal(mask, np.asarray(expected))
        np.testing.assert_array_equal(image, np.asarray(ImageOps.pad(Image.fromarray(arrays[key][0]), (48, 40), Image.BILINEAR,
                                                                     color=(1, 2, 3))))


@pytest.mark.parametrize("options", [dict(), dict(resize=30, crop=(38, 30))])
def test_crops_beyond_the_image_pad_masks(pairs, tmp_path, options):
    folder, arrays = pairs
    crop = options.get("crop", (64, 52))
    pack(folder, tmp_path / "out", mask_pad=200, **{"crop": crop, **options})
    pack(folder, tmp_path / "plain", **{"crop": crop, **options})
    plain, padded = stored(tmp_path / "plain"), 0
    for key, (image, mask) in stored(tmp_path / "out").items():
        np.testing.assert_array_equal(image, plain[key][0])
        np.testing.assert_array_equal(mask, np.where(plain[key][1] == 0, 200, plain[key][1]))
        if not options:
            np.testing.assert_array_equal(mask, centered(arrays[key][1], crop[1], crop[0], 200))
        padded += (mask == 200).any()
    assert padded >= 2


def test_masks_of_writers_are_padded(pairs, tmp_path):
    _, arrays = pairs
    with chunkhit.ImageWriter(tmp_path / "out", fit=32, mask_pad=9, progress=False) as writer:
        for key, (image, mask) in arrays.items():
            writer.add(image, key=key, mask=mask)
    for key, (_, mask) in stored(tmp_path / "out").items():
        np.testing.assert_array_equal(mask, np.asarray(ImageOps.pad(Image.fromarray(arrays[key][1]), (32, 32), Image.NEAREST, color=9)))


def test_packs_without_the_option_stay_as_they_are(pairs, tmp_path):
    folder, _ = pairs
    info = pack(folder, tmp_path / "out", fit=(48, 40), mask_pad=0)
    assert "mask-pad" not in info["spec"]
    assert info["pack_id"] == pack(folder, tmp_path / "same", fit=(48, 40))["pack_id"]
    assert info["pack_id"] != pack(folder, tmp_path / "other", fit=(48, 40), mask_pad=1)["pack_id"]
    assert "mask_pad: is for fit and crop, which pad" in raised("usage", pack, folder, tmp_path / "x", sizes="own", mask_pad=255)
    assert "mask_pad: expected a whole number from 0 to 255" in raised("usage", pack, folder, tmp_path / "x", fit=8, mask_pad=256)


AUGMENTS = [dict(crop_height=52, crop_width=56), dict(crop_height=30, crop_width=34, random_crop=True, crop_padding=12, flip_horizontal=0.5),
            dict(crop_height=34, crop_width=34, random_crop=True, crop_padding=12, flip_vertical=0.5, quarter_turns=True),
            dict(resize_short=20, crop_height=36, crop_width=28), dict(resize_short=20, crop_height=36, crop_width=28, flip_horizontal=0.5)]


@pytest.mark.parametrize("sizes, augment", [("fixed", augment) for augment in AUGMENTS] + [("own", augment) for augment in AUGMENTS[-2:]])
def test_augment_pads_masks_where_images_are_black(pairs, tmp_path, sizes, augment):
    """The same masks as without the option but in the padding, which images show: no pixel of theirs is 0."""
    folder, _ = pairs
    pack(folder, tmp_path / "out", sizes=sizes, **(dict(resize=(48, 40)) if sizes == "fixed" else {}))
    padded = 0
    loaders = [chunkhit.ImageLoader(tmp_path / "out", batch_size=5, shuffle="window", seed=3, augment=augment, mask_padding=value)
               for value in (0, 255)]
    for plain, batch in zip(*(loader.epoch(1) for loader in loaders)):
        np.testing.assert_array_equal(batch.images, plain.images)
        is_padding = plain.masks == 0
        np.testing.assert_array_equal(is_padding, (batch.images == 0).all(-1))
        np.testing.assert_array_equal(batch.masks, np.where(is_padding, 255, plain.masks))
        padded += int(is_padding.sum())
    assert padded > 0


def test_states_hold_for_one_padding(pairs, tmp_path):
    folder, _ = pairs
    pack(folder, tmp_path / "out", resize=(48, 40))
    options = dict(batch_size=5, augment=dict(crop_height=52, crop_width=56))
    loader = chunkhit.ImageLoader(tmp_path / "out", mask_padding=255, **options)
    next(iter(loader))
    state = loader.state_dict()
    other = chunkhit.ImageLoader(tmp_path / "out", **options)
    assert "mask_padding" in raised("usage", other.load_state_dict, state)
    again = chunkhit.ImageLoader(tmp_path / "out", mask_padding=255, **options)
    again.load_state_dict(state)
    assert (next(iter(again)).masks[:, 0] == 255).all()
    assert "mask_padding: expected a whole number from 0 to 255" in raised("usage", chunkhit.ImageLoader, tmp_path / "out", mask_padding=300)

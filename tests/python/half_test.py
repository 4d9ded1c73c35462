"""Batches of float16 and bfloat16: those of float32, rounded as NumPy and torch round."""
import chunkhit
import numpy as np
import pytest
from PIL import Image

from error_test import raised

CONSTANTS = [None, dict(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]), dict(mean=[0, 0, 0], std=[1, 1, 1]),
             dict(mean=[0.1, -3, 0.5], std=[1e-6, 1e-3, 7e4])]
AUGMENTS = [{}, dict(flip_horizontal=0.5, flip_vertical=0.5, quarter_turns=True, crop_height=16, crop_width=16, random_crop=True),
            dict(resized_crop=dict(height=60, width=60), quarter_turns=True)]


@pytest.fixture(scope="module")
def every_byte(tmp_path_factory):
    """Images that have each byte in each channel, and views that have them, too."""
    folder = tmp_path_factory.mktemp("bytes")
    random = np.random.default_rng(2)
    for kind in ("images", "views"):
        (folder / kind / "a").mkdir(parents=True)
        for number in range(20):
            planes = [random.permutation(256 * 2) % 256 for _ in range(3)]
            Image.fromarray(np.stack(planes, -1).astype(np.uint8).reshape(16, 32, 3)).save(folder / f"{kind}/a/{number:02}.png")
    chunkhit.pack_images(folder / "images", folder / "nhwc", pair={"view": folder / "views"}, chunk_samples=7)
    chunkhit.pack_images(folder / "images", folder / "nchw", layout="nchw", container="shard")
    return folder


def pairs(of_float32, of_half):
    """Images and views of both, which belong together."""
    for expected, found in zip(of_float32.epoch(1), of_half.epoch(1), strict=True):
        assert found.samples.tolist() == expected.samples.tolist() and found.labels.tolist() == expected.labels.tolist()
        yield expected.images, found.images
        assert (found.views is None) == (expected.views is None)
        if found.views is not None:
            yield expected.views, found.views


@pytest.mark.parametrize("stored", ["nhwc", "nchw"])
@pytest.mark.parametrize("normalize", CONSTANTS)
@pytest.mark.parametrize("augment", AUGMENTS)
def test_float16_is_numpys(every_byte, stored, normalize, augment):
    for layout in ("nhwc", "nchw"):
        options = dict(batch_size=8, shuffle="window", seed=3, normalize=normalize, layout=layout, augment=augment)
        loaders = [chunkhit.ImageLoader(every_byte / stored, dtype=dtype, **options) for dtype in ("float32", np.float16)]
        for expected, found in pairs(*loaders):
            assert found.dtype == np.float16 and found.shape == expected.shape
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(found.view(np.uint16), expected.astype(np.float16).view(np.uint16))


@pytest.mark.parametrize("normalize", CONSTANTS)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_tensors_are_torchs(every_byte, normalize, name):
    torch = pytest.importorskip("torch")
    import chunkhit.torch
    kind = getattr(torch, name)
    for stored, augment, layout in (("nhwc", {}, "nchw"), ("nchw", AUGMENTS[1], "nchw"), ("nhwc", AUGMENTS[2], "nhwc")):
        options = dict(batch_size=8, shuffle="window", seed=3, normalize=normalize, layout=layout, augment=augment)
        loaders = [chunkhit.torch.ImageLoader(every_byte / stored, dtype=dtype, **options) for dtype in (torch.float32, kind)]
        for expected, found in pairs(*loaders):
            assert found.dtype == kind and found.shape == expected.shape
            assert torch.equal(found.view(torch.int16), expected.to(kind).view(torch.int16))
    words = chunkhit.torch.ImageLoader(every_byte / "nhwc", dtype=name, normalize=normalize)
    assert next(iter(words)).images.dtype == kind


def test_numpy_gets_the_bits_of_bfloat16(every_byte):
    torch = pytest.importorskip("torch")
    options = dict(batch_size=20, normalize=CONSTANTS[1])
    expected = next(iter(chunkhit.ImageLoader(every_byte / "nhwc", dtype="float32", **options)))
    found = next(iter(chunkhit.ImageLoader(every_byte / "nhwc", dtype="bfloat16", **options)))
    for field in ("image", "view"):
        assert found[field].dtype == np.uint16
        rounded = torch.from_numpy(expected[field]).bfloat16().view(torch.int16).numpy()
        np.testing.assert_array_equal(found[field].view(np.int16), rounded)


def test_masks_and_labels_stay_as_they_are(masked):
    options = dict(batch_size=8, augment=dict(resized_crop=dict(height=12, width=12)))
    for expected, found in zip(chunkhit.ImageLoader(masked / "pack", **options), chunkhit.ImageLoader(masked / "pack", dtype="float16", **options), strict=True):
        assert found.masks.dtype == np.uint8 and found.labels.dtype == np.int64
        np.testing.assert_array_equal(found.masks, expected.masks)


def test_a_batch_takes_half_the_bytes(every_byte):
    taken = {}
    for dtype in ("float32", "float16", "bfloat16"):
        loader = chunkhit.ImageLoader(every_byte / "nchw", batch_size=20, dtype=dtype)
        assert next(iter(loader)).images.nbytes == loader.stats().batch_bytes
        taken[dtype] = loader.stats().batch_bytes
    assert taken["float32"] == 2 * taken["float16"] == 2 * taken["bfloat16"]


def test_they_are_normalised_by_the_packs_numbers_with_a_notice(every_byte):
    loader = chunkhit.ImageLoader(every_byte / "nchw", dtype="float16")
    assert ["normalised by its own mean and std" in note for note in loader.stats().notices] == [True]
    assert "normalize: mean goes with std" in raised("usage", chunkhit.ImageLoader, every_byte / "nchw", dtype="bfloat16",
                                                     normalize=dict(mean=[0, 0, 0]))
    assert "dtype: expected uint8, float32, float16, bfloat16, found 'float64'" in raised(
        "usage", chunkhit.ImageLoader, every_byte / "nchw", dtype=np.float64)


def test_a_sample_transform_is_not_for_them(every_byte):
    torch = pytest.importorskip("torch")
    import chunkhit.torch
    for dtype in ("float16", torch.bfloat16):
        assert 'sample_transform: is for dtype="uint8"' in raised("usage", chunkhit.torch.ImageLoader, every_byte / "nchw", dtype=dtype,
                                                                   sample_transform=lambda image: image)

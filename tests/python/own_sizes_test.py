"""Packs of images of their own sizes: every pixel, every crop, and what the pack says of itself."""
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image, ImageOps

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from described_order import is_flipped, resized_crop  # noqa: E402

COUNT = 96
KINDS = ("jpeg", "photo", "zstd", "raw")
AREA, ASPECT = (0.08, 1.0), (3 / 4, 4 / 3)


def photo(random, width, height):
    coarse = random.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.BICUBIC)).astype(np.int16)
    return Image.fromarray(np.clip(smooth + random.integers(-12, 13, smooth.shape), 0, 255).astype(np.uint8))


def save(image, path, number):
    """As files come: other samplings, gray, progressive, CMYK, turned, PNG."""
    kind = number % 8
    if kind == 7:
        return image.save(path.with_suffix(".png"))
    exif = Image.Exif()
    if kind in (2, 5):
        exif[0x112] = 1 + number // 8 % 8
    if kind == 4:
        image = image.convert("L")
    if kind == 6 and number % 3 == 0:
        image = image.convert("CMYK")
    return image.save(path.with_suffix(".jpg"), quality=60 + number % 40, subsampling=number % 3, exif=exif,
                      progressive=kind == 3, optimize=kind == 1)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(3)
    for number in range(COUNT):
        place = folder / "images" / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        width, height = (int(side) for side in random.integers(17, 420, 2))
        save(photo(random, width, height), place / f"{number:03}", number)
    return folder


def upright(path):
    return ImageOps.exif_transpose(Image.open(path)).convert("RGB")


def files_of(photos):
    """In the order of packing with order="input"."""
    return sorted((photos / "images").glob("*/*"), key=lambda path: (path.parent.name, path.name))


@pytest.fixture(scope="module")
def pack(photos):
    folder = photos / "shard"
    chunkhit.pack_images(photos / "images", folder, sizes="own", order="input", chunk_bytes=100_000, part_samples=40, progress=False)
    return folder


def test_gives_every_image_with_pillows_pixels_at_its_shape(photos, pack):
    assert chunkhit.verify_pack(pack)["problems"] == []
    dataset = chunkhit.ImageDataset(pack)
    files = files_of(photos)
    assert len(dataset) == len(files) == COUNT
    images, labels = dataset[:]
    for number, file in enumerate(files):
        expected = np.asarray(upright(file))
        image, label = dataset[number]
        assert image.shape == expected.shape, file
        np.testing.assert_array_equal(image, expected, str(file))
        np.testing.assert_array_equal(images[number], expected)
        assert label == labels[number] == "ab".index(file.parent.name)


def test_says_how_the_sizes_are_distributed(photos, pack):
    info = chunkhit.pack_info(pack)
    shapes = np.array([np.asarray(upright(file)).shape for file in files_of(photos)])
    assert info["own_sizes"] and info["samples"] == COUNT and "height" not in info["sample"]
    for axis, name in enumerate(("height", "width")):
        middle = int(np.sort(shapes[:, axis])[(COUNT - 1) // 2])
        assert info["sizes"][name] == {"min": shapes[:, axis].min(), "median": middle, "max": shapes[:, axis].max()}
    plain = [Image.open(file) for file in files_of(photos)]
    kept = sum(image.format == "JPEG" and image.mode != "CMYK" for image in plain)
    assert [info["sizes"][kind] for kind in ("jpeg", "photo", "zstd", "raw")] == [kept, COUNT - kept, 0, 0]
    assert info["raw_bytes"] == shapes.prod(axis=1).sum()
    pixels = np.concatenate([np.asarray(upright(file)).reshape(-1, 3) for file in files_of(photos)]) / 255
    np.testing.assert_allclose(info["mean"], pixels.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(info["std"], pixels.std(axis=0), rtol=1e-9)


def check_crops(photos, pack, epochs, **options):
    """Returns the statistics of a loader, all of whose crops in `epochs` epochs equal Pillow's."""
    images = [upright(file) for file in files_of(photos)]
    height, width, seed = 48, 64, 5
    loader = chunkhit.ImageLoader(pack, batch_size=7, shuffle="window", seed=seed, threads=3, augment=dict(
        flip_horizontal=0.5, resized_crop=dict(height=height, width=width)), **options)
    for epoch in range(epochs):
        checked = 0
        for batch in loader.epoch(epoch):
            for out, sample in zip(batch.images, batch.samples, strict=True):
                image = images[sample]
                top, left, rows, columns = resized_crop(image.height, image.width, AREA, ASPECT, seed, epoch, int(sample))
                expected = image.crop((left, top, left + columns, top + rows)).resize((width, height), Image.BILINEAR)
                if is_flipped(0.5, seed, epoch, int(sample)):
                    expected = ImageOps.mirror(expected)
                np.testing.assert_array_equal(out, np.asarray(expected), f"epoch {epoch}, sample {sample}")
                checked += 1
        assert checked == COUNT
    return loader.stats()


@pytest.mark.parametrize("cache", ["automatic", "decoded", "compressed", "none"])
def test_a_thousand_crops_equal_pillows(photos, pack, cache):
    stats = check_crops(photos, pack, 3, cache=cache)
    keeps_all = cache in ("automatic", "decoded")
    raw = chunkhit.pack_info(pack)["sizes"]["raw"]  # stored as they would be kept
    assert stats.decoded_images == (COUNT - raw if keeps_all else 0)
    assert stats.cache == ("decoded" if keeps_all else cache)
    assert stats.decode_seconds > 0


def test_pixels_of_as_many_images_as_fit_stay_in_memory(photos, pack):
    info = chunkhit.pack_info(pack)
    shapes = np.array([np.asarray(upright(file)).shape for file in files_of(photos)])
    threads_room = 3 * (3 * info["sizes"]["stored_bytes"]["max"] + 2 * int(shapes.prod(axis=1).max()))
    some = info["stored_bytes"] + threads_room + info["raw_bytes"] // 3
    stats = check_crops(photos, pack, 2, cache_bytes=some)
    assert stats.cache == "compressed" and 0.2 * COUNT < stats.decoded_images < 0.75 * COUNT
    assert check_crops(photos, pack, 1, cache_bytes=threads_room).decoded_images == 0
    with pytest.raises(chunkhit.Error, match="cache decoded needs .* take cache automatic, which keeps"):
        check_crops(photos, pack, 1, cache="decoded", cache_bytes=some)


@pytest.mark.parametrize("height, width", [(64, 56), (75, 110)])
def test_evaluation_crops_equal_torchvisions_and_are_padded_with_zeros(photos, pack, height, width):
    torchvision = pytest.importorskip("torchvision")
    steps = torchvision.transforms.Compose([torchvision.transforms.Resize(72), torchvision.transforms.CenterCrop((height, width))])
    loader = chunkhit.ImageLoader(pack, batch_size=10, augment=dict(resize_short=72, crop_height=height, crop_width=width))
    files = files_of(photos)
    for batch in loader:
        for out, sample in zip(batch.images, batch.samples, strict=True):
            np.testing.assert_array_equal(out, np.asarray(steps(upright(files[sample]))), str(files[sample]))


@pytest.mark.parametrize("limit", [dict(max_side=96), dict(short_side=64)])
@pytest.mark.parametrize("store", ["jpeg", "photo", "zstd", "raw"])
def test_shrinks_as_pillow_does(photos, tmp_path, limit, store):
    options = dict(limit, **(dict(quality=75) if store == "jpeg" else {}))
    chunkhit.pack_images(photos / "images", tmp_path / "small", sizes="own", order="input", store=store, progress=False, **options)
    assert chunkhit.verify_pack(tmp_path / "small")["problems"] == []
    kinds = chunkhit.pack_info(tmp_path / "small")["sizes"]
    assert kinds[store] > (0.1 if store == "zstd" else 0.7) * COUNT and sum(kinds[kind] for kind in ("jpeg", "photo", "zstd", "raw")) == COUNT
    for file, (image, _) in zip(files_of(photos), chunkhit.ImageDataset(tmp_path / "small")):
        expected = upright(file)
        width, height = expected.size
        long, short = max(width, height), min(width, height)
        if "max_side" in limit and long > 96:
            size = (96, max(96 * height // width, 1)) if width >= height else (max(96 * width // height, 1), 96)
        elif "short_side" in limit and short > 64:
            size = (64, 64 * height // width) if width <= height else (64 * width // height, 64)
        else:
            size = None
        if size is not None:
            expected = expected.resize(size, Image.BILINEAR)
        if size is not None and store == "jpeg":
            coded = io.BytesIO()
            expected.save(coded, "JPEG", quality=75)
            expected = Image.open(coded)
        assert image.shape[:2] == (expected.height, expected.width), file
        np.testing.assert_array_equal(image, np.asarray(expected.convert("RGB")), str(file))


@pytest.mark.parametrize("channels", ["gray", "rgba", "rgb"])
def test_converts_channels_as_pillow_does(photos, tmp_path, channels):
    chunkhit.pack_images(photos / "images", tmp_path / "p", sizes="own", order="input", channels=channels, progress=False)
    mode = {"gray": "L", "rgba": "RGBA", "rgb": "RGB"}[channels]
    for file, (image, _) in zip(files_of(photos), chunkhit.ImageDataset(tmp_path / "p")):
        plain = ImageOps.exif_transpose(Image.open(file))
        if plain.mode == "CMYK":
            plain = plain.convert("RGB")
        expected = np.asarray(plain.convert(mode))
        np.testing.assert_array_equal(image.reshape(expected.shape), expected, str(file))


def contents(pack):
    """All payloads, by the command zstd."""
    return b"".join(subprocess.run(["zstd", "-dc", part], capture_output=True, check=True).stdout for part in sorted(pack.glob("part-*.zst")))


def test_bytes_of_files_are_kept_where_jpeg_has_no_tiles(photos, pack, tmp_path):
    chunkhit.pack_images(photos / "images", tmp_path / "p", sizes="own", order="input", jpeg_tile=0, chunk_bytes=100_000,
                         part_samples=40, progress=False)
    assert chunkhit.verify_pack(tmp_path / "p")["problems"] == []
    kept, tiled = chunkhit.pack_info(tmp_path / "p"), chunkhit.pack_info(pack)
    assert [kept[name] for name in ("mean", "std", "raw_bytes")] == [tiled[name] for name in ("mean", "std", "raw_bytes")]
    assert [kept["sizes"][kind] for kind in KINDS] == [tiled["sizes"][kind] for kind in KINDS]
    stored, at, found = contents(tmp_path / "p"), 0, 0
    for file in files_of(photos):
        image = Image.open(file)
        if image.format == "JPEG" and image.mode != "CMYK":
            at = stored.index(file.read_bytes(), at) + file.stat().st_size
            found += 1
    assert found == kept["sizes"]["jpeg"] > 0.7 * COUNT
    check_crops(photos, tmp_path / "p", 2, cache="compressed")
    for file, (image, _) in zip(files_of(photos), chunkhit.ImageDataset(tmp_path / "p")):
        np.testing.assert_array_equal(image, np.asarray(upright(file)), str(file))


def test_shrunk_images_have_no_tiles_where_jpeg_has_none(photos, tmp_path):
    for tile in (0, 4):
        chunkhit.pack_images(photos / "images", tmp_path / str(tile), sizes="own", order="input", jpeg_tile=tile, max_side=96, progress=False)
    for (image, _), (tiled, _) in zip(chunkhit.ImageDataset(tmp_path / "0"), chunkhit.ImageDataset(tmp_path / "4")):
        np.testing.assert_array_equal(image, tiled)
    restart_interval = b"\xff\xdd\0\4"
    assert restart_interval not in contents(tmp_path / "0") and restart_interval in contents(tmp_path / "4")


@pytest.mark.parametrize("progressive", [False, True])
def test_pixels_of_damaged_files_that_are_accepted_are_kept(photos, tmp_path, progressive):
    """Loaders would take the file's bytes for damage."""
    (tmp_path / "images" / "a").mkdir(parents=True)
    path = tmp_path / "images" / "a" / "0.jpg"
    photo(np.random.default_rng(4), 200, 150).save(path, progressive=progressive)
    os.truncate(path, path.stat().st_size * 3 // 4)
    info = chunkhit.pack_images(tmp_path / "images", tmp_path / "p", sizes="own", jpeg_tile=0, accept_warnings=True, progress=False)
    assert (info["sizes"]["jpeg"], info["sizes"]["photo"]) == (0, 1)
    assert chunkhit.verify_pack(tmp_path / "p")["problems"] == []


def test_exif_is_ignored_where_it_is_to_be(photos, tmp_path):
    chunkhit.pack_images(photos / "images", tmp_path / "p", sizes="own", order="input", exif="ignore", progress=False)
    for file, (image, _) in zip(files_of(photos), chunkhit.ImageDataset(tmp_path / "p")):
        np.testing.assert_array_equal(image, np.asarray(Image.open(file).convert("RGB")), str(file))


def test_batches_without_a_shape_are_refused_with_the_way_out(pack):
    with pytest.raises(chunkhit.Error, match="sizes of their own: give resized_crop") as caught:
        chunkhit.ImageLoader(pack, batch_size=4)
    assert caught.value.code == "usage"


@pytest.mark.parametrize("options, message", [
    (dict(sizes="own", resize=32), "give all images one shape"), (dict(sizes="own", crop=32), "give all images one shape"),
    (dict(max_side=32), "for `?sizes`? own"), (dict(quality=80), "for `?sizes`? own"), (dict(store="raw"), "for `?sizes`? own"),
    (dict(sizes="own", max_side=32, short_side=32), "exclude each other"), (dict(sizes="own", quality=0), "from 1 to 100"),
    (dict(sizes="own", container="hdf5"), "container: expected shard, found hdf5"), (dict(sizes="own", codec="zstd"), "codec"),
    (dict(sizes="own", chunk_samples=3), "chunk_bytes"), (dict(sizes="own", layout="nchw"), "layout"),
    (dict(sizes="own", store="photo", channels="gray"), "zstd takes any"), (dict(sizes="own", quality=80), "what is encoded"),
    (dict(sizes="own", max_side=9, store="raw", quality=80), "what is encoded"),
    (dict(sizes="own", store="raw", jpeg_tile=2), "store jpeg"), (dict(sizes="own", jpeg_tile=1 << 21), "from 0 to 8192"), (dict(sizes="all"), "sizes")])
def test_refuses_what_would_have_no_effect(photos, tmp_path, options, message):
    with pytest.raises(chunkhit.Error, match=message) as caught:
        chunkhit.pack_images(photos / "images", tmp_path / "p", progress=False, **options)
    assert caught.value.code == "usage" and not (tmp_path / "p").exists()


def test_pack_bench_says_its_own_flag(packs, tmp_path):
    """It asked for resized_crop, as Python calls it."""
    chunkhit.pack_images(packs / "images", tmp_path / "own", sizes="own")
    command = [os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-bench"), tmp_path / "own"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr.startswith(
        f"pack-bench: --resized-crop: is needed: {tmp_path}/own holds images of their own sizes, and all of a batch have one\n"), done.stderr
    assert subprocess.run([*command, "--resized-crop", "4", "--epochs", "1"], stdout=subprocess.DEVNULL).returncode == 0

"""Sizes of the input images: what a manifest counts is what Pillow and NumPy find in the files."""
import io
import json
import shutil

import numpy as np
import pytest
from PIL import Image

import chunkhit

SIZES = [(40, 30), (30, 40), (41, 30), (64, 64), (129, 65), (640, 480), (200, 50), (16, 17), (17, 16), (300, 299), (90, 200)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Images of two formats, one turned by EXIF, and two that are rejected."""
    folder = tmp_path_factory.mktemp("inputs") / "photos"
    for number, size in enumerate(SIZES):
        image = Image.fromarray(np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))
        place = folder / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        exif = Image.Exif()
        exif[0x0112] = 6 if number == 5 else 1
        image.save(place / (f"{number:02}.jpg" if number % 3 else f"{number:02}.png"), exif=exif)
    (folder / "a/text.png").write_text("no image")
    (folder / "b/cut.jpg").write_bytes((folder / "b/05.jpg").read_bytes()[:2000])
    return folder


def ranges_of(numbers):
    """By float logarithms, where C++ takes the leading bits of whole numbers."""
    counts = {}
    for number in numbers:
        step = 2.0 ** (np.floor(np.log2(number)) - 3) if number >= 8 else 1
        begin = number // step * step
        counts[begin] = counts.get(begin, 0) + 1
    return counts


def expected_of(sizes):
    """What the manifest says of (width, height) of each image of a format."""
    widths, heights = zip(*sizes)
    ratios = [width / height for width, height in sizes]
    return {key: {"min": min(numbers), "max": max(numbers)} for key, numbers in
            (("width", widths), ("height", heights), ("aspect_ratio", ratios))}, ranges_of(widths), ranges_of(heights)


def sizes_by_format(folder):
    found = {"jpeg": [], "png": []}
    for file in sorted(folder.glob("*/[0-9]*")):
        image = Image.open(file)
        turned = image.getexif().get(0x0112) == 6
        found[image.format.lower()].append(image.size[::-1] if turned else image.size)
    return found


def assert_counts_are_right(inputs, by_format):
    assert [entry["format"] for entry in inputs["formats"]] == sorted(by_format)
    for entry in inputs["formats"]:
        ends, widths, heights = expected_of(by_format[entry["format"]])
        assert entry["images"] == len(by_format[entry["format"]])
        for key, own in ends.items():
            assert {end: entry[key][end] for end in ("min", "max")} == own
        assert {float(begin): count for begin, count in entry["width"]["ranges"].items()} == widths
        assert {float(begin): count for begin, count in entry["height"]["ranges"].items()} == heights
        ratios = {float(begin): count for begin, count in entry["aspect_ratio"]["ranges"].items()}
        for begin in ratios:
            assert begin * 8 / 2 ** np.floor(np.log2(begin)) in range(8, 16), "an eighth of a power of two"
            step = 2.0 ** (np.floor(np.log2(begin)) - 3)
            own = [width / height for width, height in by_format[entry["format"]]]
            assert ratios[begin] == sum(begin <= ratio < begin + step for ratio in own)
        assert sum(ratios.values()) == entry["images"]


def squeeze_of(size, target):
    factor = size[0] / size[1] * target[1] / target[0]
    return max(factor, 1 / factor)


@pytest.mark.parametrize("options", [dict(resize=(32, 24)), dict(sizes="own"), dict(sizes="own", max_side=50)])
def test_counts_are_those_of_the_files(files, tmp_path, options):
    info = chunkhit.pack_images(files, tmp_path / "pack", max_errors=2, progress=False, **options)
    by_format = sizes_by_format(files)
    assert_counts_are_right(info["inputs"], by_format)
    assert json.loads((tmp_path / "pack/manifest.json").read_text())["inputs"] == info["inputs"]
    assert info["rejected"] == 2 and chunkhit.verify_pack(tmp_path / "pack")["problems"] == []
    if "resize" in options:
        squeezes = [squeeze_of(size, options["resize"]) for sizes in by_format.values() for size in sizes]
        assert info["inputs"]["squeezed"] == sum(squeeze > 1.5 for squeeze in squeezes) > 0
        assert info["inputs"]["max_squeeze"] == pytest.approx(max(squeezes), rel=1e-12)
    else:
        assert info["inputs"]["squeezed"] == 0 and info["inputs"]["max_squeeze"] < 1.05


def test_a_crop_larger_than_the_images_gave_black_borders_without_a_note(files, tmp_path, logs):
    sizes = [size for found in sizes_by_format(files).values() for size in found]
    with logs("5 of 11 images are smaller than the crop: black borders, at most 90.9 % of a sample"):
        info = chunkhit.pack_images(files, tmp_path / "pack", max_errors=2, progress=False, crop=(60, 50))
    shares = [1 - min(width, 60) * min(height, 50) / 3000 for width, height in sizes]
    assert info["inputs"]["padded"] == sum(share > 0 for share in shares) == 5
    assert info["inputs"]["max_padding"] == pytest.approx(max(shares), rel=1e-12)
    assert "padded" not in chunkhit.pack_images(files, tmp_path / "fit", max_errors=2, progress=False, fit=(60, 50))["inputs"]


@pytest.mark.parametrize("options, words", [
    (dict(resize=64, crop=100), "^crop 100x100: resize 64 leaves a short side of 64, so that every sample would have black borders"),
    (dict(resize=(64, 80), crop=(64, 81)), "^crop 64x81: resize 64x80 leaves less"),
    (dict(fit=64, crop=(20, 65)), "^crop 20x65: fit 64x64 leaves less")])
def test_a_crop_that_pads_every_image_was_no_error(files, tmp_path, options, words):
    with pytest.raises(chunkhit.Error, match=words):
        chunkhit.pack_images(files, tmp_path / "pack", progress=False, **options)
    assert not (tmp_path / "pack").exists()


def test_exif_is_ignored_where_the_pack_ignores_it(files, tmp_path):
    info = chunkhit.pack_images(files, tmp_path / "pack", max_errors=2, exif="ignore", resize=8, crop=8, progress=False)
    jpeg = next(entry for entry in info["inputs"]["formats"] if entry["format"] == "jpeg")
    assert jpeg["width"]["max"] == 640 and jpeg["height"]["max"] == 480


def test_manifests_are_equal_whatever_threads_parts_and_tasks(files, tmp_path):
    how = dict(resize=(8, 6), max_errors=2, chunk_samples=2, part_bytes=300, progress=False)
    infos = [chunkhit.pack_images(files, tmp_path / f"{threads}", threads=threads, **how) for threads in (1, 4)]
    chunkhit.pack_images(files, tmp_path / "planned", plan=3, **how)
    for task in (2, 0, 1):
        chunkhit.run_plan(tmp_path / "planned", task=task, progress=False)
    chunkhit.run_plan(tmp_path / "planned", progress=False)
    shutil.copytree(tmp_path / "1", tmp_path / "resumed")
    for name in ("manifest.json", "part-00001.h5", "part-00001.json"):
        (tmp_path / "resumed" / name).unlink()
    chunkhit.pack_images(files, tmp_path / "resumed", **how)
    manifests = {(tmp_path / name / "manifest.json").read_bytes() for name in ("1", "4", "planned", "resumed")}
    assert len(manifests) == 1 and len(infos[0]["parts"]) > 2
    assert_counts_are_right(infos[0]["inputs"], sizes_by_format(files))


def test_merged_packs_have_the_sum(files, tmp_path):
    how = dict(resize=(8, 6), max_errors=2, progress=False)
    whole = chunkhit.pack_images(files, tmp_path / "whole", **how)
    for name in "ab":
        (tmp_path / f"{name}-in").mkdir()
        shutil.copytree(files / name, tmp_path / f"{name}-in" / name)
        chunkhit.pack_images(tmp_path / f"{name}-in", tmp_path / name, **how)
    merged = chunkhit.merge_packs([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    assert merged["inputs"] == whole["inputs"]
    assert chunkhit.verify_pack(tmp_path / "merged")["problems"] == []


def test_a_writer_counts_encoded_bytes_and_pixels(tmp_path):
    random = np.random.default_rng(3)
    with chunkhit.ImageWriter(tmp_path / "pack", resize=(8, 8)) as writer:
        for number, (width, height) in enumerate([(40, 30), (100, 30), (32, 32)]):
            image = Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))
            encoded = io.BytesIO()
            image.save(encoded, "webp" if number else "jpeg")
            writer.add(encoded.getvalue(), "a", f"{number}")
        writer.add(random.integers(0, 256, (20, 80, 3), dtype=np.uint8), "b", "pixels")
    inputs = chunkhit.pack_info(tmp_path / "pack")["inputs"]
    assert [(entry["format"], entry["images"], entry["width"]["max"]) for entry in inputs["formats"]] == \
        [("jpeg", 1, 40), ("pnm", 1, 80), ("webp", 2, 100)]
    assert inputs["squeezed"] == 2 and inputs["max_squeeze"] == 4

"""16-bit images whose values fill a part of their range, and files of several pages or frames: what is lost of them is said."""
import os
import subprocess

import numpy as np
import pytest
from PIL import Image

import chunkhit
from chunkhit.report import write_report
from error_test import raised

RANGE = (100, 4095)


def write_deep(path, pixels):
    if path.suffix == ".pgm":
        path.write_bytes(b"P5 %d %d 65535\n" % pixels.shape[::-1] + pixels.astype(">u2").tobytes())
    else:
        Image.fromarray(pixels).save(path)


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """Three 12-bit images of each kind, by name."""
    folder = tmp_path_factory.mktemp("scans")
    random = np.random.default_rng(5)
    (folder / "in/a").mkdir(parents=True)
    images = {}
    for number in range(9):
        name = f"{number}.{('png', 'tif', 'pgm')[number % 3]}"
        images[name] = random.integers(0, 4096, (6, 8)).astype(np.uint16)
        images[name][0, 0] = 4095
        write_deep(folder / "in/a" / name, images[name])
    return folder, images


def packed(pack, images):
    """The samples by name, of a pack in the order of its list."""
    return zip(sorted(images), chunkhit.ImageDataset(pack)[list(range(len(images)))][0].squeeze())


def command(name, *arguments):
    return subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], name), *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True).stdout


SAID = "9 images have 16 bits a value and none above 4,095: samples are dark, with 16 of 256 levels; --scale-from 0,4095 makes"


def test_16_bit_images_of_a_low_range_became_black_without_a_word(scans, tmp_path):
    folder, images = scans
    said = command("pack-images", folder / "in", "--channels", "gray", "--order", "input", "-o", tmp_path / "dark",
                   "--progress", "none")
    assert "note: " + SAID in said
    assert SAID in command("pack-info", tmp_path / "dark")
    info = chunkhit.pack_info(tmp_path / "dark")
    assert info["inputs"]["deep"] == 9 and info["inputs"]["max_value"] == 4095
    assert any(SAID in line for line in write_report(tmp_path / "dark", tmp_path / "dark.html"))
    for name, pixels in packed(tmp_path / "dark", images):
        expected = np.rint(images[name] / 65535 * 255) if name.endswith("pgm") else images[name] >> 8
        np.testing.assert_array_equal(pixels, expected)


def test_16_bit_views_of_a_low_range_became_black_without_a_word(tmp_path):
    random = np.random.default_rng(5)
    for kind in ("images", "depth", "bright"):
        (tmp_path / kind).mkdir()
        for number in range(10):
            pixels = random.integers(0, {"images": 256, "depth": 4096, "bright": 65536}[kind], (6, 8))
            pixels[0, 0] = {"images": 255, "depth": 4095, "bright": 65535}[kind]
            Image.fromarray(pixels.astype(np.uint8 if kind == "images" else np.uint16)).save(tmp_path / kind / f"{number}.png")
    said = command("pack-images", tmp_path / "images", "--pair", f"depth={tmp_path / 'depth'}:view", "--pair",
                   f"bright={tmp_path / 'bright'}:view", "-o", tmp_path / "out", "--progress", "none")
    assert ("note: views 'depth' that were looked at: 8 images have 16 bits a value and none above 4,095: samples are dark, with 16 of 256 "
            "levels; --scale-from 0,4095 makes the largest value white\n") in said
    assert "bright" not in said.replace(str(tmp_path), "")
    said = command("pack-images", tmp_path / "images", "--pair", f"depth={tmp_path / 'depth'}:view", "--scale-from", "0,4095",
                   "-o", tmp_path / "scaled", "--progress", "none")
    assert "dark" not in said


def test_a_range_is_mapped_to_all_levels(scans, tmp_path):
    folder, images = scans
    low, high = RANGE
    for sizes in ("fixed", "own"):
        info = chunkhit.pack_images(folder / "in", tmp_path / sizes, channels="gray", order="input", scale_from=RANGE, sizes=sizes,
                                    progress=False)
        assert info["spec"]["scale-from"] == "100,4095" and info["input_notices"] == []
    for name, pixels in packed(tmp_path / "fixed", images):
        above = np.clip(images[name].astype(int), low, high) - low
        np.testing.assert_array_equal(pixels, (above * 255 + (high - low) // 2) // (high - low))
    chunkhit.pack_images(folder / "in", tmp_path / "plain", channels="gray", progress=False)
    assert "scale-from" not in chunkhit.pack_info(tmp_path / "plain")["spec"]


def test_images_that_use_their_range_are_not_named(tmp_path):
    (tmp_path / "in/a").mkdir(parents=True)
    ramp = np.linspace(0, 65535, 48).reshape(6, 8).astype(np.uint16)
    write_deep(tmp_path / "in/a/ramp.png", ramp)
    write_deep(tmp_path / "in/a/dark.png", ramp // 100)
    info = chunkhit.pack_images(tmp_path / "in", tmp_path / "out", channels="gray", progress=False)
    assert info["inputs"]["deep"] == 2 and info["inputs"]["max_value"] == 65535 and info["input_notices"] == []


@pytest.mark.parametrize("value, words", [("4095,0", "expected a lower and a higher value, found 4095,0"), ("4095", "expected two values"),
                                          ("0,70000", "expected a whole number from 0 to 65535")])
def test_ranges_that_are_none_are_errors(scans, tmp_path, value, words):
    done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-images"), scans[0] / "in", "--scale-from", value, "-o",
                           tmp_path / "out"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 2 and "--scale-from: " + words in done.stdout
    assert "scale_from: expected two whole numbers" in raised("usage", chunkhit.pack_images, scans[0] / "in", tmp_path / "out",
                                                              scale_from=4095)


def frames(count):
    random = np.random.default_rng(7)
    return [Image.fromarray(random.integers(0, 256, (6, 8, 3), dtype=np.uint8)) for _ in range(count)]


@pytest.mark.parametrize("kind", ["tif", "gif", "webp", "png"])
def test_only_the_first_frame_was_packed_without_a_word(tmp_path, kind):
    (tmp_path / "in/a").mkdir(parents=True)
    for number, count in enumerate((1, 3, 2)):
        first, *others = frames(count)
        first.save(tmp_path / f"in/a/{number}.{kind}", save_all=True, append_images=others)
    info = chunkhit.pack_images(tmp_path / "in", tmp_path / "out", progress=False)
    assert info["inputs"]["frames_dropped"] == 2
    assert info["input_notices"] == ["2 images are the first page or frame of a file with more, which were left out"]


def test_a_thumbnail_is_no_page(tmp_path):
    """A smaller copy of the first page, as cameras and pyramids have it: its NewSubfileType is 1."""
    (tmp_path / "in/a").mkdir(parents=True)
    path = tmp_path / "in/a/0.tif"
    first, second = frames(2)
    first.save(path, save_all=True, append_images=[second], tiffinfo={254: 0})
    data = bytearray(path.read_bytes())
    at = int.from_bytes(data[4:8], "little")
    at = int.from_bytes(data[at + 2 + 12 * int.from_bytes(data[at:at + 2], "little"):][:4], "little")  # the second page's tags
    tags = [at + 2 + 12 * tag for tag in range(int.from_bytes(data[at:at + 2], "little"))]
    subfile = next(tag for tag in tags if data[tag:tag + 2] == (254).to_bytes(2, "little"))
    data[subfile + 8:subfile + 12] = (1).to_bytes(4, "little")
    path.write_bytes(data)
    assert "frames_dropped" not in chunkhit.pack_images(tmp_path / "in", tmp_path / "out", progress=False)["inputs"]

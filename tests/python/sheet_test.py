"""The sheet of a dry run: images before and after, side by side."""
import colorsys
import os
import subprocess

import numpy as np
import pytest
from PIL import Image

import chunkhit

TILE, GAP, BETWEEN = 128, 14, 4  # pixels
BLANK = 216


def pair(sheet, number):
    """Both images of a pair, from 0: (128, 128, 3) each."""
    x, y = GAP + number % 4 * (2 * TILE + BETWEEN + GAP), GAP + number // 4 * (TILE + GAP)
    return sheet[y:y + TILE, x:x + TILE], sheet[y:y + TILE, x + TILE + BETWEEN:x + 2 * TILE + BETWEEN]


def dry_run(folder, **options):
    """The sheet as an array; the dry run writes nothing else."""
    before = sorted(os.listdir(folder))
    chunkhit.pack_images(folder / "photos", folder / "pack", dry_run=True, sheet=folder / "sheet.png", progress=False,
                         **options)
    assert sorted(os.listdir(folder)) == sorted({*before, "sheet.png"})
    return np.asarray(Image.open(folder / "sheet.png"))


@pytest.fixture
def photos(tmp_path):
    """20 images of one class, of 128 x 128 pixels, which a tile shows as they are."""
    (tmp_path / "photos" / "a").mkdir(parents=True)
    random = np.random.default_rng(1)
    pixels = [random.integers(0, 256, (TILE, TILE, 3), dtype=np.uint8) for _ in range(20)]
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"photos/a/{number:02}.png")
    return tmp_path, pixels


def test_shows_16_images_of_the_whole_list_pixel_by_pixel(photos):
    folder, pixels = photos
    sheet = dry_run(folder)
    assert sheet.shape == (4 * (TILE + GAP) + GAP, 4 * (2 * TILE + BETWEEN + GAP) + GAP, 3)
    for number in range(16):
        before, after = pair(sheet, number)
        np.testing.assert_array_equal(before, after)
        assert any(np.array_equal(before, pixels[at]) for at in range(number * 20 // 16, (number + 1) * 20 // 16))


def test_showed_one_camera_alone_where_five_take_turns(tmp_path):
    (tmp_path / "photos" / "a").mkdir(parents=True)
    for number in range(80):
        Image.new("RGB", (8, 8), (number % 5 * 50, 0, 0)).save(tmp_path / f"photos/a/{number:02}.png")
    shown = [dry_run(tmp_path, seed=seed) for seed in (1, 1, 2)]
    cameras = [{int(pair(sheet, number)[0][64, 64, 0]) for number in range(16)} for sheet in shown]
    assert all(len(seen) >= 4 for seen in cameras)
    assert np.array_equal(shown[0], shown[1]) and not np.array_equal(shown[0], shown[2])  # drawn by seed


def test_the_right_one_is_the_sample(photos):
    folder, pixels = photos
    sheet = dry_run(folder, crop=64, channels="gray", layout="nchw", container="shard")
    gray = Image.fromarray(pixels[0]).convert("L").crop((32, 32, 96, 96)).resize((TILE, TILE), Image.BILINEAR)
    before, after = pair(sheet, 0)
    np.testing.assert_array_equal(before, pixels[0])
    np.testing.assert_array_equal(after, np.repeat(np.asarray(gray)[..., None], 3, axis=2))


def test_a_squeezed_and_a_turned_image_are_seen(tmp_path):
    (tmp_path / "photos" / "a").mkdir(parents=True)
    image = Image.new("RGB", (256, 128), (0, 0, 0))
    image.paste((255, 0, 0), (0, 0, 64, 64))  # the top left corner
    exif = Image.Exif()
    exif[0x112] = 6  # to be turned clockwise
    image.save(tmp_path / "photos/a/0.png")
    image.save(tmp_path / "photos/a/1.png", exif=exif)
    sheet = dry_run(tmp_path, resize=(64, 64))
    assert sheet.shape[0] == TILE + 2 * GAP, "a row for two images"
    for number, corner in ((0, (8, 8)), (1, (8, 119))):
        before, after = pair(sheet, number)
        assert np.all(before[:30] == BLANK) and before[40, 8].tolist() == [255, 0, 0], "as the file has it"
        assert not np.any(np.all(after == BLANK, axis=2)), "squeezed: it fills the square"
        assert after[corner].tolist() == [255, 0, 0]
    sheet = dry_run(tmp_path, sizes="own", max_side=64)
    assert np.all(pair(sheet, 1)[1][:, :30] == BLANK), "own sizes: upright, with its aspect ratio"


def test_an_image_that_would_be_rejected_stays_blank(photos):
    folder, pixels = photos
    (folder / "photos/a/00.png").write_bytes((folder / "photos/a/00.png").read_bytes()[:9000])
    sheet = dry_run(folder)
    assert all(np.all(shown == BLANK) for shown in pair(sheet, 0))
    np.testing.assert_array_equal(pair(sheet, 1)[1], pixels[1])


def test_an_image_too_large_to_be_shown_whole_was_said_to_be_rejected(tmp_path, capfd):
    """It is decoded at an eighth of its size."""
    (tmp_path / "photos" / "a").mkdir(parents=True)
    Image.new("RGB", (2000, 2000), (200, 0, 0)).save(tmp_path / "photos/a/0.jpg")
    command = [os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-images"), tmp_path / "photos", "--resize", "64x64",
               "--decode", "fast", "--max-decode-bytes", "4M", "-o"]
    subprocess.run([*command, tmp_path / "out", "--dry-run", "--sheet", tmp_path / "sheet.png"], check=True)
    assert "would be rejected" not in capfd.readouterr().out
    before, after = pair(np.asarray(Image.open(tmp_path / "sheet.png")), 0)
    assert np.all(before == BLANK) and after[64, 64, 0] > 190
    subprocess.run([*command, tmp_path / "out"], check=True)
    assert "1 of 1 row packed" in capfd.readouterr().out


@pytest.mark.parametrize("channels", ["rgb", "gray"])
def test_colors_hidden_by_transparency_were_shown_beside_a_background(tmp_path, channels):
    (tmp_path / "photos" / "a").mkdir(parents=True)
    pixels = np.random.default_rng(2).integers(0, 256, (2, TILE, TILE, 4), dtype=np.uint8)
    pixels[0, :, :64, 3] = 0
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"photos/a/{number}.png")
    Image.fromarray(pixels[1]).convert("LA").save(tmp_path / "photos/a/2.png")
    sheet = dry_run(tmp_path, background="#30c0f0", channels=channels)
    for number in range(3):
        image = Image.open(tmp_path / f"photos/a/{number}.png").convert("RGBA")
        composed = Image.alpha_composite(Image.new("RGBA", image.size, "#30c0f0"), image).convert("RGB")
        before, after = pair(sheet, number)
        np.testing.assert_allclose(before.astype(int), np.asarray(composed), atol=1)
        if channels == "rgb":
            np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(pair(dry_run(tmp_path), 0)[0], pixels[0, :, :, :3])


@pytest.mark.parametrize("options", [{}, dict(sizes="own"), dict(layout="nchw", container="shard")])
def test_classes_of_masks_are_colors_over_the_sample(photos, options):
    folder, pixels = photos
    values = np.arange(256, dtype=np.uint8)
    mask = np.zeros((TILE, TILE), np.uint8)
    mask[8:72, 8:72] = np.repeat(np.repeat(values.reshape(16, 16), 4, 0), 4, 1)
    (folder / "masks/a").mkdir(parents=True)
    for number in range(1, 20):
        Image.fromarray(mask).save(folder / f"masks/a/{number:02}.png")
    sheet = dry_run(folder, pair=folder / "masks", **options)
    colors = np.array([np.rint(255 * np.array(colorsys.hsv_to_rgb(value * 2 ** 0.5 % 1, 0.85, 0.9))) for value in values])
    colors[255] = 128
    before, after = pair(sheet, 3)
    np.testing.assert_array_equal(before, pixels[3 * 20 // 16], "the file stays as it is")
    laid = np.where(mask[..., None] == 0, before, np.rint(0.55 * colors[mask] + 0.45 * before))
    np.testing.assert_allclose(after.astype(int), laid, atol=1)
    np.testing.assert_array_equal(after[mask == 0], before[mask == 0])
    assert np.all(pair(sheet, 0)[1] == BLANK), "an image without a mask is a reject"


def test_a_mask_is_cropped_as_its_sample(photos):
    folder, pixels = photos
    mask = np.zeros((TILE, TILE), np.uint8)
    mask[40:, 70:] = 255
    (folder / "masks/a").mkdir(parents=True)
    for number in range(20):
        Image.fromarray(mask).save(folder / f"masks/a/{number:02}.png")
    sample, classes = pixels[0][32:96, 32:96], mask[32:96, 32:96, None]
    laid = np.where(classes == 0, sample, np.rint(0.55 * 128 + 0.45 * sample)).astype(np.uint8)
    shown = np.asarray(Image.fromarray(laid).resize((TILE, TILE), Image.BILINEAR))
    after = pair(dry_run(folder, pair=folder / "masks", crop=64), 0)[1]
    np.testing.assert_allclose(after.astype(int), shown, atol=1)


@pytest.mark.parametrize("name", ["sheet.jpg", "sheet", "png"])
def test_a_sheet_of_another_name_was_a_png(photos, name):
    folder, _ = photos
    with pytest.raises(chunkhit.Error, match="sheet.*found .*" + name + ", expected a name that ends in .png") as error:
        chunkhit.pack_images(folder / "photos", folder / "pack", dry_run=True, sheet=folder / name, progress=False)
    assert error.value.code == "usage" and sorted(os.listdir(folder)) == ["photos"]


def test_only_a_dry_run_draws(photos):
    folder, _ = photos
    with pytest.raises(chunkhit.Error, match="sheet.*without.*dry_run") as error:
        chunkhit.pack_images(folder / "photos", folder / "pack", sheet=folder / "sheet.png", progress=False)
    assert error.value.code == "usage" and sorted(os.listdir(folder)) == ["photos"]
    (folder / "a-file").write_text("")
    with pytest.raises(chunkhit.Error) as error:
        chunkhit.pack_images(folder / "photos", folder / "pack", dry_run=True, sheet=folder / "a-file" / "sheet.png")
    assert error.value.code == "cannot_write"

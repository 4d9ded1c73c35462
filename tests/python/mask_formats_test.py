"""Masks of each type whose values fit 8 bits without loss, and what is said of values that do not."""
import csv
import io
import os
import sys
import tarfile

import chunkhit
import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "decode"))
import image_files as files  # noqa: E402

HEIGHT, WIDTH = 23, 37
MASK = np.random.default_rng(11).integers(0, 256, (HEIGHT, WIDTH), dtype=np.uint8)
SMALL = MASK % 4
GRAYS = [value for k in range(256) for value in (k, k, k)]
OPAQUE = np.full_like(MASK, 255)


def saved(array, kind, mode=None, **options):
    stream = io.BytesIO()
    Image.fromarray(array, mode).save(stream, kind, **options)
    return stream.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def palette_image(mask, kind):
    image = Image.fromarray(mask, "P")
    image.putpalette([value for k in range(256) for value in (k * 7 % 256, k * 31 % 256, 255 - k)])
    stream = io.BytesIO()
    image.save(stream, kind)
    return stream.getvalue()


def pgm(magic, largest, array, comment=b""):
    """A PNM of its definition: numbers as text, or as bytes, the high one first."""
    header = magic + b"\n" + comment + b"%d %d\n%d\n" % (array.shape[1], array.shape[0], largest)
    if magic in (b"P2", b"P3"):
        return header + b"\n".join(b" ".join(b"%d" % value for value in row) for row in array.reshape(array.shape[0], -1))
    return header + array.astype(">u2" if largest > 255 else "u1").tobytes()


def pam(kind, largest, array):
    header = b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n" % (*array.shape[1::-1], array.shape[2], largest, kind)
    return header + array.astype(">u2" if largest > 255 else "u1").tobytes()


def stacked(*channels):
    return np.stack(channels, -1)


DEEP = MASK.astype(np.uint16)
RGB = stacked(MASK, MASK, MASK)
ACCEPTED = {
    "tif-8": (".tif", saved(MASK, "TIFF"), MASK),
    "tif-16": (".tiff", saved(DEEP, "TIFF"), MASK),
    "tif-16-big": (".tif", files.tiff(DEEP[..., None], bits=16, byte_order=">"), MASK),
    "tif-lzw": (".tif", saved(MASK, "TIFF", compression="tiff_lzw"), MASK),
    "tif-deflate": (".TIF", saved(DEEP, "TIFF", compression="tiff_adobe_deflate"), MASK),
    "tif-palette": (".tif", palette_image(MASK, "TIFF"), MASK),
    "tif-tiles": (".tif", files.tiff(MASK[..., None], tile=(16, 16), deflated=True), MASK),
    "tif-tiles-16": (".tif", files.tiff(DEEP[..., None], bits=16, tile=(16, 16)), MASK),
    "tif-strips": (".tif", files.tiff(DEEP[..., None], bits=16, strip_rows=5), MASK),
    "tif-2-bits": (".tif", files.tiff(SMALL[..., None], bits=2), SMALL),
    "tif-rgb": (".tif", saved(RGB, "TIFF"), MASK),
    "tif-planes": (".tif", files.tiff(RGB.astype(np.uint16), bits=16, photometric=2, planar=True, strip_rows=4), MASK),
    "tif-alpha": (".tif", files.tiff(stacked(MASK, OPAQUE), extras=(2,)), MASK),
    "tif-alpha-16": (".tif", files.tiff(stacked(DEEP, OPAQUE.astype(np.uint16) * 257), bits=16, extras=(2,)), MASK),
    "png-16": (".png", files.raw_png(DEEP[..., None], 16, 0), MASK),
    "png-16-interlaced": (".png", files.raw_png(DEEP[..., None], 16, 0, interlaced=True), MASK),
    "png-2-bits": (".png", files.raw_png(SMALL[..., None], 2, 0), SMALL),
    "png-rgb": (".png", saved(RGB, "PNG"), MASK),
    "png-rgb-16": (".png", files.raw_png(RGB.astype(np.uint16), 16, 2, interlaced=True), MASK),
    "png-rgba": (".png", saved(stacked(MASK, MASK, MASK, OPAQUE), "PNG"), MASK),
    "png-rgba-16": (".png", files.raw_png(stacked(DEEP, DEEP, DEEP, OPAQUE.astype(np.uint16) * 257), 16, 6), MASK),
    "png-gray-alpha": (".png", saved(stacked(MASK, OPAQUE), "PNG", "LA"), MASK),
    "bmp-rgb": (".bmp", saved(RGB, "BMP"), MASK),
    "bmp-gray": (".bmp", saved(MASK, "BMP"), MASK),
    "gif": (".gif", saved(MASK, "GIF"), MASK),
    "p5": (".pgm", pgm(b"P5", 255, MASK), MASK),
    "p5-small": (".pgm", pgm(b"P5", 3, SMALL, b"# classes\n"), SMALL),
    "p5-16": (".pgm", pgm(b"P5", 65535, DEEP), MASK),
    "p5-1000": (".PGM", pgm(b"P5", 1000, DEEP), MASK),
    "p2": (".pgm", pgm(b"P2", 255, MASK), MASK),
    "p2-65535": (".pgm", pgm(b"P2", 65535, MASK) + b"\n", MASK),
    "p6": (".pgm", pgm(b"P6", 255, RGB), MASK),
    "p3": (".pgm", pgm(b"P3", 255, RGB), MASK),
    "pam-alpha": (".pgm", pam(b"GRAYSCALE_ALPHA", 300, stacked(DEEP, np.full_like(DEEP, 300))), MASK),
    "npy-bool": (".npy", npy(MASK > 99), (MASK > 99).astype(np.uint8)),
    "npy-rgb": (".npy", npy(RGB), MASK),
    **{f"npy-{kind}": (".npy", npy(MASK.astype(kind)), MASK) for kind in ("u1", "<i2", ">i2", "<u2", ">u4", "<i4", ">i8", "<i8", "<u8")},
    "npy-i1": (".npy", npy((MASK % 100).astype(np.int8)), MASK % 100),
}


def changed(array, x, y, value):
    """The array with another value in one pixel, and behind it in the next row."""
    array = array.copy()
    array[y, x] = array[y + 1, 0] = value
    return array


MISFITS = {
    "tif-16": (".tif", saved(changed(DEEP, 12, 7, 300), "TIFF"), "value 300 at (12, 7) does not fit 8 bits; map class ids to 0-255"),
    # A tile to the left comes first in the file, and has a row below.
    "tif-tiles": (".tif", files.tiff(changed(DEEP, 30, 3, 256)[..., None], bits=16, tile=(16, 16)), "value 256 at (30, 3) does"),
    "tif-rgb": (".tif", saved(changed(RGB, 5, 6, (12, 13, 12)), "TIFF"), "red 12, green 13, blue 12 at (5, 6): expected one value a pixel"),
    "png-16": (".png", files.raw_png(changed(DEEP, 0, 0, 65535)[..., None], 16, 0), "value 65535 at (0, 0) does not fit 8 bits"),
    "png-rgb": (".png", saved(changed(RGB, 36, 9, (0, 0, 255)), "PNG"), "red 0, green 0, blue 255 at (36, 9): expected one value"),
    "png-rgb-16": (".png", files.raw_png(changed(RGB.astype(np.uint16), 4, 5, 700), 16, 2), "value 700 at (4, 5) does not fit"),
    "png-alpha": (".png", saved(stacked(MASK, changed(OPAQUE, 8, 2, 128)), "PNG", "LA"), "alpha 128 at (8, 2): expected an opaque mask (255)"),
    "png-rgba": (".png", saved(stacked(MASK, MASK, MASK, changed(OPAQUE, 8, 2, 0)), "PNG"), "alpha 0 at (8, 2): expected an opaque"),
    "bmp-palette": (".bmp", palette_image(MASK, "BMP"), ": expected one value a pixel; map colors to class ids, or make a second image of it by :view"),
    "bmp-16-bits": (".bmp", files.bmp((WIDTH, HEIGHT), 16), "has 5 or 6 bits a color, expected class ids of 8 bits"),
    "p5": (".pgm", pgm(b"P5", 65535, changed(DEEP, 3, 4, 256)), "value 256 at (3, 4) does not fit 8 bits"),
    "p2": (".pgm", pgm(b"P2", 65535, changed(DEEP, 3, 4, 65000)), "value 65000 at (3, 4) does not fit 8 bits"),
    "p2-short": (".pgm", pgm(b"P2", 255, MASK)[:-300], "truncated: the data ends near row"),
    "p2-word": (".pgm", pgm(b"P2", 255, MASK) .replace(b"255\n", b"255\n1.5 ", 1), 'expected a number, found "1.5" near row 0 of 23'),
    "p5-short": (".pgm", pgm(b"P5", 255, MASK)[:-1], "truncated: the data ends near row 22 of 23"),
    "npy-negative": (".npy", npy(changed(MASK.astype(np.int64), 2, 3, -1)), "value -1 at (2, 3) does not fit 8 bits; map class ids to 0-255"),
    "npy-big": (".npy", npy(changed(MASK.astype(">u8"), 2, 3, 1 << 63)), "value 9223372036854775808 at (2, 3) does not fit 8 bits"),
    "npy-float": (".npy", npy(MASK / 2), 'has type "<f8", expected class ids: bool or integers'),
    "npy-fortran": (".npy", npy(np.asfortranarray(MASK)), "is in Fortran order"),
    "tif-white": (".tif", files.tiff(MASK[..., None], photometric=0), "is a TIFF whose 0 is white"),
    "tif-jpeg": (".tif", saved(MASK, "TIFF", compression="jpeg"), "is a JPEG, which changes values along edges; expected PNG, TIFF"),
    "tif-cmyk": (".tif", files.tiff(np.stack([MASK] * 4, -1), photometric=5), "has colors of CMYK"),
    "tif-float": (".tif", saved(MASK.astype(np.float32), "TIFF"), "TIFF of floating-point samples is not supported"),
    "tif-short": (".tif", files.tiff(MASK[..., None])[:300], "truncated: the data ends"),
    "jpeg": (".jpg", saved(MASK, "JPEG", quality=95), "is a JPEG, which changes values along edges; expected PNG, TIFF, npy, BMP, GIF or PGM"),
    "jpeg-inside": (".png", saved(MASK, "JPEG", quality=95), "is a JPEG, which changes values along edges"),
    "webp": (".webp", saved(RGB, "WEBP", lossless=True), "is of another type, expected PNG, TIFF, npy, BMP, GIF or PGM"),
    "size": (".tif", saved(MASK[:, :-1], "TIFF"), "has 36 x 23 pixels, expected 37 x 23 as its image"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """images/NAME.png of every case, and masks/NAME.EXTENSION."""
    root = tmp_path_factory.mktemp("formats")
    for kind in ("images", "masks"):
        (root / kind).mkdir()
    for name, (extension, data, _) in [*ACCEPTED.items(), *(("bad-" + name, case) for name, case in MISFITS.items())]:
        Image.new("RGB", (WIDTH, HEIGHT), (9, 8, 7)).save(root / "images" / f"{name}.png")
        (root / "masks" / f"{name}{extension}").write_bytes(data)
    return root


def by_key(path):
    dataset = chunkhit.ImageDataset(path, fields=("image", "mask"))
    return dict(zip(dataset.keys(), dataset[:][1]))


def expect_all(found, name_of):
    assert sorted(found) == sorted(map(name_of, ACCEPTED))
    for name, (_, _, mask) in ACCEPTED.items():
        np.testing.assert_array_equal(found[name_of(name)], mask, err_msg=name)


@pytest.mark.parametrize("sizes", ["fixed", "own"])
def test_values_are_the_numbers_in_the_file(folder, tmp_path, sizes):
    chunkhit.pack_images(folder / "images", tmp_path / "out", pair=folder / "masks", sizes=sizes, container="shard", progress=False,
                         max_errors=len(MISFITS))
    expect_all(by_key(tmp_path / "out"), "{}.png".format)
    with open(tmp_path / "out" / "rejects.csv", newline="") as file:
        reasons = {row["file"]: row["reason"] for row in csv.DictReader(file)}
    assert sorted(reasons) == sorted(f"bad-{name}.png" for name in MISFITS)
    for name, (extension, _, words) in MISFITS.items():
        assert reasons[f"bad-{name}.png"].startswith(f"its mask bad-{name}{extension}: ") and words in reasons[f"bad-{name}.png"], name


def test_masks_of_a_table_and_of_a_tar(folder, tmp_path):
    """Extensions may be left out of a table where all are alike; a tar names one."""
    with open(tmp_path / "list.csv", "w") as table:
        table.write("file,mask\n")
        table.writelines(f"images/{name}.png,masks/{name}{case[0]}\n" for name, case in ACCEPTED.items())
    chunkhit.pack_images(folder, tmp_path / "table", labels=tmp_path / "list.csv", mask_column="mask", progress=False)
    expect_all(by_key(tmp_path / "table"), "images/{}.png".format)
    tifs = [name for name, case in ACCEPTED.items() if case[0] == ".tif"]
    with open(tmp_path / "tifs.csv", "w") as table:
        table.write("file,mask\n")
        table.writelines(f"images/{name}.png,masks/{name}\n" for name in tifs)
    chunkhit.pack_images(folder, tmp_path / "tifs", labels=tmp_path / "tifs.csv", mask_column="mask", progress=False)
    with tarfile.open(tmp_path / "all.tar", "w") as tar:
        for name in tifs:
            tar.add(folder / "images" / f"{name}.png", f"{name}.png")
            tar.add(folder / "masks" / f"{name}.tif", f"{name}.seg.tif")
    chunkhit.pack_images(tmp_path / "all.tar", tmp_path / "tar", mask_column="seg.tif", progress=False)
    for found, name_of in ((by_key(tmp_path / "tifs"), "images/{}.png".format), (by_key(tmp_path / "tar"), "{}.png".format)):
        assert len(found) == len(tifs)
        for (key, mask), name in zip(sorted(found.items()), sorted(tifs)):
            np.testing.assert_array_equal(mask, ACCEPTED[name][2], err_msg=key)


def test_a_mask_of_earlier_types_is_the_first_of_several(tmp_path):
    """Packs of masks in two types are not packed again from the other one."""
    for kind in ("images", "masks"):
        (tmp_path / kind).mkdir()
    Image.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / "images/1.jpg")
    Image.fromarray(MASK).save(tmp_path / "masks/1.GIF")
    Image.fromarray(255 - MASK).save(tmp_path / "masks/1.tif")
    chunkhit.pack_images(tmp_path / "images", tmp_path / "out", pair=tmp_path / "masks", progress=False)
    np.testing.assert_array_equal(by_key(tmp_path / "out")["1.jpg"], MASK)


@pytest.mark.parametrize("limit", ["80M", "90M"])
def test_large_files_of_masks_count_as_memory(tmp_path, limit):
    """int64 has 8 bytes a pixel: a file of 72 MB, and twice 9 MB of class ids."""
    for kind in ("images", "masks"):
        (tmp_path / kind).mkdir()
    Image.new("L", (3000, 3000)).save(tmp_path / "images/1.png")
    np.save(tmp_path / "masks/1.npy", np.full((3000, 3000), 7, np.int64))
    options = dict(pair=tmp_path / "masks", channels="gray", max_decode_bytes=limit, progress=False)
    if limit == "80M":
        with pytest.raises(chunkhit.Error, match="1.png: its mask: needs 86M of memory to decode, over the limit of 80M"):
            chunkhit.pack_images(tmp_path / "images", tmp_path / "out", on_error="fail", **options)
        return
    chunkhit.pack_images(tmp_path / "images", tmp_path / "out", **options)
    assert (by_key(tmp_path / "out")["1.png"] == 7).all()


WRITTEN = [MASK > 99, *(MASK.astype(kind) for kind in ("u1", "i2", ">i2", "u2", "i4", "u4", ">i8", "u8")), MASK[..., None].astype(int),
           MASK.T.copy().T.astype(np.int32)]  # the last one lies column by column


def test_writers_take_bool_and_integers(tmp_path):
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    given = [*WRITTEN, Image.fromarray(MASK > 99), Image.fromarray(DEEP), Image.fromarray(MASK.astype(np.int32))]
    with chunkhit.ImageWriter(tmp_path / "written", order="input", progress=False) as writer:
        for mask in given:
            writer.add(image, mask=mask)
    chunkhit.pack_dataset([dict(image=image, label=3, mask=mask) for mask in given], tmp_path / "dataset", mask="mask", order="input",
                          progress=False)
    for name in ("written", "dataset"):
        found = chunkhit.ImageDataset(tmp_path / name).masks(range(len(given)))
        for mask, expected in zip(found, given):
            np.testing.assert_array_equal(mask, np.asarray(expected).reshape(HEIGHT, WIDTH).astype(np.uint8))
    assert set(chunkhit.ImageDataset(tmp_path / "dataset").labels()) == {3}


def test_integers_of_the_images_size_are_masks_behind_labels(tmp_path):
    torch = pytest.importorskip("torch")
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    masks = [torch.from_numpy(MASK.astype(np.int64)), torch.from_numpy(MASK > 99), MASK.astype(np.int32)]
    images = [torch.from_numpy(image), image, Image.fromarray(image)]
    chunkhit.pack_dataset([(image, 3, mask) for image, mask in zip(images, masks)], tmp_path / "out", order="input", progress=False)
    for mask, expected in zip(chunkhit.ImageDataset(tmp_path / "out").masks(range(3)), masks):
        np.testing.assert_array_equal(mask, np.asarray(expected).astype(np.uint8))


@pytest.mark.parametrize("mask, words", [
    (changed(MASK.astype(np.int64), 12, 7, 300), r"mask: value 300 at \(12, 7\) does not fit 8 bits; map class ids to 0-255"),
    (changed(MASK.astype(np.int16), 36, 0, -1), r"mask: value -1 at \(36, 0\) does not fit 8 bits"),
    (changed(MASK.astype(np.uint64), 1, 2, 1 << 63), r"mask: value 9223372036854775808 at \(1, 2\) does not fit"),
    (MASK / 2, "mask: expected class ids, bool or integers, found float64"),
    (RGB, r"mask: expected class ids of shape \(height, width\), found \(23, 37, 3\)"),
    (MASK.tolist(), "mask: expected a NumPy array, a torch tensor or an image of Pillow, found a list")])
def test_writers_name_the_first_value_that_does_not_fit(tmp_path, mask, words):
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    with chunkhit.ImageWriter(tmp_path / "written", progress=False) as writer:
        with pytest.raises(chunkhit.Error, match=words):
            writer.add(image, mask=mask)
        writer.close()
    with pytest.raises(chunkhit.Error, match="sample 1: " + words):
        chunkhit.pack_dataset([{"image": image, "label": 0, "mask": each} for each in (MASK, mask)], tmp_path / "dataset", mask="mask",
                              progress=False)


def test_integers_of_other_sizes_are_no_masks(tmp_path):
    """Boxes of whole numbers stand where a mask may."""
    image, boxes = np.zeros((HEIGHT, WIDTH, 3), np.uint8), np.ones((5, 4), np.int64)
    chunkhit.pack_dataset([{"image": image, "label": 0, "boxes": boxes}], tmp_path / "boxes", progress=False)
    assert not chunkhit.pack_info(tmp_path / "boxes").get("fields")
    with pytest.raises(chunkhit.Error, match="sample 0: has 'seg', which may be a mask: mask='seg' packs it"):
        chunkhit.pack_dataset([{"image": image, "label": 0, "seg": MASK.astype(np.int32)}], tmp_path / "seg", progress=False)

"""Masks that are members of tars, as Pillow reads and resizes them."""
import csv
import io
import os
import subprocess
import tarfile

import chunkhit
import numpy as np
import pytest
from PIL import Image

from masks_test import COUNT, FORMS, masked, pairs, resized  # noqa: F401: a fixture


def encoded(array, **options):
    file = io.BytesIO()
    Image.fromarray(array).save(file, **options)
    return file.getvalue()


def write_tar(path, members, mode="w"):
    with tarfile.open(path, mode) as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


@pytest.fixture(scope="module")
def shards(pairs, tmp_path_factory):
    """Two shards as WebDataset has them, one in gzip; arrays by TAR/MEMBER, and their labels."""
    _, arrays = pairs
    folder = tmp_path_factory.mktemp("shards")
    known = {}
    members = {"000.tar": [], "001.tar.gz": []}
    for number, (image, mask) in enumerate(arrays.values()):
        tar = ("000.tar", "001.tar.gz")[number % 2]
        members[tar] += [(f"{number:06}.seg.png", encoded(mask, format="PNG")), (f"{number:06}.png", encoded(image, format="PNG")),
                         (f"{number:06}.cls", b"%d" % (number % 3))]
        known[f"{tar}/{number:06}.png"] = image, mask, number % 3
    for tar, files in members.items():
        write_tar(folder / tar, files, "w:gz" if tar.endswith("gz") else "w")
    return folder, known


def check_masks(pack, known, size=None):
    dataset = masked(pack)
    assert sorted(dataset.keys()) == sorted(known) and dataset.info["fields"] == {"mask": "mask"}
    assert chunkhit.verify_pack(pack)["problems"] == []
    for key, label, image, mask in zip(dataset.keys(), dataset.labels(), *dataset[:]):
        expected = known[key]
        assert label == expected[2]
        if size:
            expected = resized(expected[0], size, Image.BILINEAR), resized(expected[1], size, Image.NEAREST)
        np.testing.assert_array_equal(image, expected[0])
        np.testing.assert_array_equal(mask, expected[1])


@pytest.mark.parametrize("container, sizes", FORMS)
def test_masks_stand_beside_images_and_labels(shards, tmp_path, container, sizes):
    folder, known = shards
    size = (48, 40) if sizes == "fixed" else None
    report = chunkhit.pack_images(folder, tmp_path / "out", mask_column="seg.png", container=container, sizes=sizes, progress=False,
                                  **({"resize": size} if size else {}))
    assert report["rejected"] == 0
    check_masks(tmp_path / "out", known, size)


def test_without_labels_folders_are_no_classes(pairs, tmp_path):
    """A mask of the plain extension, in upper case, beside a JPEG; columns of a .json stay."""
    _, arrays = pairs
    members, known = [], {}
    for number, (image, mask) in enumerate(arrays.values()):
        jpeg = encoded(image, format="JPEG", quality=95)
        key = f"street {number % 2}/{number:03}"
        members += [(f"{key}.jpg", jpeg), (f"{key}.PNG", encoded(mask, format="PNG")), (f"{key}.json", b'{"city": "Ulm"}')]
        known[f"all.tar/{key}.jpg"] = np.asarray(Image.open(io.BytesIO(jpeg))), mask, -1
    write_tar(tmp_path / "all.tar", members)
    chunkhit.pack_images(tmp_path / "all.tar", tmp_path / "out", mask_column="png", keep_columns=["city"], sizes="own", progress=False)
    check_masks(tmp_path / "out", known)
    assert set(chunkhit.ImageDataset(tmp_path / "out").column("city")) == {"Ulm"}


def test_groups_that_are_no_samples_are_rejects(shards, tmp_path):
    folder, known = shards
    image, mask = (encoded(array, format="PNG") for array in list(known.values())[0][:2])
    members = [(f"{number}.{extension}", data) for number in range(20)
               for extension, data in (("png", image), ("seg.png", mask), ("cls", b"1"))]
    wrong = dict([("1.seg.png", None), ("2.png", None), ("2.cls", None), ("3.seg.png", encoded(np.zeros((3, 4), np.uint8), format="PNG")),
                  ("4.cls", None), ("5.seg.png", encoded(list(known.values())[0][0], format="JPEG"))])
    members = [(name, wrong.get(name, data)) for name, data in members if wrong.get(name, data)]
    write_tar(tmp_path / "a.tar", [*members, ("6.webp", image)])
    chunkhit.pack_images(tmp_path / "a.tar", tmp_path / "out", mask_column="seg.png", max_errors=10, sizes="own", progress=False)
    with open(tmp_path / "out/rejects.csv", newline="") as file:
        reasons = {row["file"]: row["reason"] for row in csv.DictReader(file)}
    assert len(chunkhit.ImageDataset(tmp_path / "out")) == 20 - 6
    for name, words in (("1.png", "has no mask: expected 1.seg.png beside it"), ("2", "has a mask and no image"),
                        ("3.png", "its mask a.tar/3.seg.png: has 4 x 3 pixels, expected"), ("4.png", "has no label: expected .cls or .json"),
                        ("5.png", "its mask a.tar/5.seg.png: is a JPEG, which changes values"), ("6.png", "has 2 images, 6.png and 6.webp")):
        assert words in reasons[f"a.tar/{name}"], reasons


def test_a_csv_names_members(shards, tmp_path):
    folder, known = shards
    rows = [(key, key.replace(".png", ".seg.png"), 7) for key in known]
    rows[0] = rows[0][0], "000.tar/none.png", 7
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([("file", "mask", "label"), *rows])
    chunkhit.pack_images([folder / "000.tar", folder / "001.tar.gz"], tmp_path / "out", labels=tmp_path / "rows.csv", mask_column="mask",
                         sizes="own", max_errors=1, progress=False)
    check_masks(tmp_path / "out", {key: (*known[key][:2], 7) for key, _, _ in rows[1:]})
    assert "its mask 000.tar/none.png: no such file" in (tmp_path / "out/rejects.csv").read_text()


def test_a_plan_has_the_masks_of_tars(shards, tmp_path):
    folder, known = shards
    (tmp_path / "here").mkdir()
    (tmp_path / "here/000.tar").write_bytes((folder / "000.tar").read_bytes())
    chunkhit.pack_images(tmp_path / "here", tmp_path / "pack", mask_column="seg.png", resize=(48, 40), plan=2, part_bytes=100_000)
    os.rename(tmp_path / "here", tmp_path / "there")
    with pytest.raises(chunkhit.Error, match="masks are members of tars") as error:
        chunkhit.run_plan(tmp_path / "pack", root=tmp_path / "there", pair=tmp_path / "there", progress=False)
    assert error.value.code == "usage"
    for task in (0, 1, None):
        chunkhit.run_plan(tmp_path / "pack", task=task, root=tmp_path / "there", progress=False)
    check_masks(tmp_path / "pack", {key: each for key, each in known.items() if key.startswith("000")}, (48, 40))


def test_only_a_changed_tar_is_packed_again(shards, tmp_path):
    folder, known = shards
    tar = tmp_path / "000.tar"
    tar.write_bytes((folder / "000.tar").read_bytes())

    def pack_again():
        chunkhit.pack_images(tar, tmp_path / "out", mask_column="seg.png", resize=(48, 40), progress=False)
        return (tmp_path / "out/part-00000.h5").stat().st_mtime_ns

    first = pack_again()
    assert pack_again() == first
    os.utime(tar, (1e9, 1e9))
    assert pack_again() > first


@pytest.mark.parametrize("options, words", [
    (dict(mask_column="seg.png", pair="."), "pair: mask_column names masks that are members of the tars"),
    (dict(pair="."), "pair: is for images that are files of a folder.*mask_column seg.png"),
    (dict(mask_column=".seg.png"), "mask_column: expected the extension of masks in tars, as seg.png, found .seg.png")])
def test_what_has_no_meaning_is_an_error(shards, tmp_path, options, words):
    with pytest.raises(chunkhit.Error, match=words) as error:
        chunkhit.pack_images(shards[0], tmp_path / "out", sizes="own", progress=False, **options)
    assert error.value.code == "usage" and not (tmp_path / "out").exists()


def test_another_extension_is_an_error_that_names_it(shards, tmp_path):
    with pytest.raises(chunkhit.Error, match="none of the 40 samples can be used.*has no mask: expected 000000.mask.png beside it"):
        chunkhit.pack_images(shards[0], tmp_path / "out", mask_column="mask.png", sizes="own", progress=False)


def test_an_exported_tar_comes_back(shards, tmp_path):
    folder, known = shards
    chunkhit.pack_images(folder, tmp_path / "one", mask_column="seg.png", sizes="own", order="input", progress=False)
    chunkhit.export_pack(tmp_path / "one", tmp_path / "one.tar")
    chunkhit.pack_images(tmp_path / "one.tar", tmp_path / "two", mask_column="mask.png", sizes="own", order="input", progress=False)
    one, two = (masked(tmp_path / name) for name in ("one", "two"))
    assert len(two) == COUNT
    for before, after in zip(zip(*one[:]), zip(*two[:])):
        for expected, found in zip(before, after):
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(one.labels(), two.labels())


@pytest.mark.parametrize("field", ["seg.png", "other=SEG.png"])
def test_a_list_names_the_members_of_masks(shards, tmp_path, field):
    """Masks of tars were not in the list of a pack."""
    folder, known = shards
    tars = [folder / "000.tar", folder / "001.tar.gz"]
    chunkhit.pack_images(tars, tmp_path / "pack", mask_column=field, sizes="own", order="input")
    listed = subprocess.check_output([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-info"), tmp_path / "pack", "--list"], text=True)
    rows = list(csv.DictReader(io.StringIO(listed)))
    assert [row["seg.png"] for row in rows] == [row["file"].replace(".png", ".seg.png") for row in rows] and len(rows) == COUNT
    (tmp_path / "list.csv").write_text(listed)
    chunkhit.pack_images(tars, tmp_path / "again", labels=tmp_path / "list.csv", mask_column=field.lower(), sizes="own", order="input")
    before, after = (chunkhit.ImageDataset(tmp_path / name, fields=["image", field.partition("=")[0] if "=" in field else "mask"])
                     for name in ("pack", "again"))
    for one, other in zip(before, after, strict=True):
        for read, wanted in zip(one, other):
            np.testing.assert_array_equal(read, wanted)

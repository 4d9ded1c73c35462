"""Masks and views as files of other tools, and packed again from these."""
import functools
import io

import numpy as np
import pytest
from PIL import Image

import chunkhit

from export_test import groups_of, pixels
from fields_test import COUNT, folders, pack, pairs  # noqa: F401: a fixture


ImageDataset = functools.partial(chunkhit.ImageDataset, fields=("image", "mask"))


def assert_same(found, expected):
    for parts in zip(found, expected, strict=True):
        for read, wanted in zip(*parts, strict=True):
            np.testing.assert_array_equal(read, wanted)


def test_a_folder_that_is_packed_again_has_the_same_images_and_masks(masked, tmp_path):
    before = ImageDataset(masked / "pack")
    chunkhit.export_pack(masked / "pack", tmp_path / "out")
    for labels in ({}, dict(labels=tmp_path / "out/labels.csv", order="input")):
        chunkhit.pack_images(tmp_path / "out/images", tmp_path / f"again{len(labels)}", pair=tmp_path / "out/masks",
                             sizes="own" if before.info.get("own_sizes") else "fixed", **labels)
    after = ImageDataset(tmp_path / "again2")
    assert_same(after, before)
    np.testing.assert_array_equal(after.labels(), before.labels())
    assert sorted(map(tuple, map(np.shape, chunkhit.ImageDataset(tmp_path / "again0").masks(slice(None))))) == \
        sorted(map(tuple, map(np.shape, before.masks(slice(None)))))


def test_a_tar_has_the_mask_beside_its_image(masked, tmp_path):
    dataset = ImageDataset(masked / "pack")
    chunkhit.export_pack(masked / "pack", tmp_path / "out.tar")
    found = [(pixels(parts.get("png") or parts["jpg"]), np.asarray(Image.open(io.BytesIO(parts["mask.png"]))))
             for parts in groups_of(tmp_path / "out.tar").values()]
    assert_same(found, dataset)
    info = chunkhit.pack_images(tmp_path / "out.tar", tmp_path / "again", label_column="class", sizes="own")
    assert info["samples"] == len(dataset) and info["rejected"] == 0, "a mask is no image"


@pytest.mark.parametrize("masked", ["fixed"], indirect=True)
def test_arrays_have_the_masks_of_the_chosen_samples(masked, tmp_path):
    dataset = ImageDataset(masked / "pack")
    chunkhit.export_pack(masked / "pack", tmp_path / "out.npz", classes=["b"])
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["masks"].dtype == np.uint8
        assert_same(zip(arrays["images"], arrays["masks"]), zip(*dataset[dataset.labels() == 1]))


@pytest.fixture(params=["all fields", "nchw", "view"])
def with_fields(request, folders, tmp_path):  # noqa: F811
    """A pack of classes a and b with three fields, or with a view alone."""
    files = sorted(str(path.relative_to(folders / "images")) for path in (folders / "images").rglob("*.png"))
    (tmp_path / "list.csv").write_text("file,label\n" + "".join(f"{file},{file[0]}\n" for file in files))
    options = {"pair": f"{folders / 'depth'}:view"} if request.param == "view" else {"container": "shard"}
    pack(folders, tmp_path / "pack", labels=tmp_path / "list.csv", chunk_samples=5,
         layout="nchw" if request.param == "nchw" else "nhwc", **options)
    return tmp_path / "pack"


def fields_of(pack):
    """All fields of a pack by name, views and images as (n, height, width, channels)."""
    dataset = chunkhit.ImageDataset(pack)
    found = {"image": dataset[:][0], **{name: dataset.field(name, range(len(dataset))) for name in dataset.info["fields"]}}
    is_nchw = dataset.info["sample"]["layout"] == "nchw"
    return {name: values.transpose(0, 2, 3, 1) if is_nchw and values.ndim == 4 else values for name, values in found.items()}


def test_each_field_is_a_folder_that_is_packed_again(with_fields, tmp_path):
    expected = fields_of(with_fields)
    roles = chunkhit.pack_info(with_fields)["fields"]
    chunkhit.export_pack(with_fields, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == \
        {".pack-export", "labels.csv", "images", *("masks" if name == "mask" else name for name in roles)}
    again = {name: f"{tmp_path / 'out' / ('masks' if name == 'mask' else name)}:{role}" for name, role in roles.items()}
    chunkhit.pack_images(tmp_path / "out/images", tmp_path / "again", pair=again, labels=tmp_path / "out/labels.csv", order="input")
    found = fields_of(tmp_path / "again")
    assert list(found) == list(expected) and chunkhit.pack_info(tmp_path / "again")["fields"] == roles
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name])
    np.testing.assert_array_equal(chunkhit.ImageDataset(tmp_path / "again").labels(), chunkhit.ImageDataset(with_fields).labels())


def test_a_tar_has_each_field_beside_its_image(with_fields, tmp_path):
    expected = fields_of(with_fields)
    chunkhit.export_pack(with_fields, tmp_path / "out.tar")
    groups = list(groups_of(tmp_path / "out.tar").values())
    assert len(groups) == COUNT
    for name, values in expected.items():
        ending = "png" if name == "image" else f"{name}.png"
        for parts, wanted in zip(groups, values, strict=True):
            np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(parts[ending]))), wanted)
    masks = [name for name, values in expected.items() if values.ndim == 3]
    for name in masks:
        chunkhit.pack_images(tmp_path / "out.tar", tmp_path / f"again-{name}", mask_column=f"{name}.png", order="input")
        again = fields_of(tmp_path / f"again-{name}")
        np.testing.assert_array_equal(again["mask"], expected[name])
        np.testing.assert_array_equal(again["image"], expected["image"])
    assert chunkhit.pack_images(tmp_path / "out.tar", tmp_path / "images", label_column="class")["samples"] == COUNT


def test_arrays_have_each_field(with_fields, tmp_path):
    dataset = chunkhit.ImageDataset(with_fields)
    chosen = dataset.labels() == 1
    chunkhit.export_pack(with_fields, tmp_path / "out.npz", classes=["b"])
    with np.load(tmp_path / "out.npz") as arrays:
        for name, values in fields_of(with_fields).items():
            found = arrays[{"image": "images", "mask": "masks"}.get(name, name)]
            assert found.dtype == np.uint8
            np.testing.assert_array_equal(found, values[chosen])


def test_a_field_of_the_name_of_an_array_left_the_keys_unread(folders, tmp_path):  # noqa: F811
    pack(folders, tmp_path / "pack", pair={"keys": folders / "masks"})
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as arrays:
        np.testing.assert_array_equal(arrays["keys"], fields_of(tmp_path / "pack")["keys"])
        assert arrays["keys-2"].tolist() == chunkhit.ImageDataset(tmp_path / "pack").keys()

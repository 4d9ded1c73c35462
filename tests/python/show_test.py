"""Contact sheets for notebooks: images as they are stored, with their classes."""
import base64
import html
import io
import re
import sys

import numpy as np
import pytest
from PIL import Image

import chunkhit

from error_test import raised
from fields_test import folders, pack  # noqa: F401: a fixture

CELL = r'<figure title="#(\d+) .*?src="data:image/png;base64,(.*?)".*?<figcaption.*?>(.*?)</figcaption>'


def cells(page):
    """Number, pixels and caption of each image of a sheet."""
    return [(int(number), np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))), html.unescape(caption))
            for number, data, caption in re.findall(CELL, page)]


def test_shows_images_as_stored_with_their_classes(packs):
    dataset = chunkhit.ImageDataset(packs / "hdf5")
    sheet = chunkhit.show(packs / "hdf5", n=5)
    assert repr(sheet).startswith("<Sheet: hdf5: 5 of 100 images, 2 classes; ")
    found = cells(sheet._repr_html_())
    assert [number for number, _, _ in found] == [0, 24, 49, 74, 99]
    for number, pixels, caption in found:
        image, label = dataset[number]
        np.testing.assert_array_equal(pixels, image)
        assert caption == "ab"[label]


@pytest.mark.parametrize("kind", [chunkhit.ImageDataset, chunkhit.ImageLoader])
def test_a_notebook_shows_16_images_of_a_dataset_or_loader(packs, kind):
    reader = kind(packs / "shard")
    assert len(cells(reader._repr_html_())) == 16
    assert len(cells(kind([packs / "hdf5", packs / "shard"])._repr_html_())) == 16


def test_shows_the_packs_of_a_loader(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5")
    assert chunkhit.show(loader, n=4)._repr_html_() == chunkhit.show(packs / "hdf5", n=4)._repr_html_()


def test_a_sheet_leaves_the_epoch_of_a_loader_as_it_is(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=10)
    batches = iter(loader)
    seen = [next(batches).samples.tolist()]
    loader._repr_html_()
    seen += [batch.samples.tolist() for batch in batches]
    assert sorted(sum(seen, [])) == list(range(100))


def test_what_cannot_be_shown_is_left_to_repr(packs, monkeypatch):
    loader = chunkhit.ImageLoader(packs / "hdf5")
    dataset = chunkhit.ImageDataset(packs / "hdf5")
    loader.close()
    assert loader._repr_html_() is None
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert dataset._repr_html_() is None
    assert "show needs Pillow" in raised("usage", chunkhit.show, packs / "hdf5")


def test_names_are_texts_and_no_markup(tmp_path):
    (tmp_path / "images" / "<b>&").mkdir(parents=True)
    Image.new("L", (4, 4)).save(tmp_path / "images" / "<b>&" / '"><script>.png')
    chunkhit.pack_images(tmp_path / "images", tmp_path / "pack")
    chunkhit.show(tmp_path / "pack").save(tmp_path / "sheet.html")
    page = (tmp_path / "sheet.html").read_text()
    assert "<script" not in page and "<b>" not in page
    assert [caption for _, _, caption in cells(page)] == ["<b>&"]


def test_masks_lie_over_their_images(masked):
    sheet = chunkhit.show(masked / "pack", 36)._repr_html_()
    assert sheet.count("<figure") == 36 and sheet.count("opacity:0.55") == 36


def test_further_fields_stand_below_their_images(folders, tmp_path):  # noqa: F811
    pack(folders, tmp_path / "pack", layout="nchw")
    dataset = chunkhit.ImageDataset(tmp_path / "pack")
    sheet = chunkhit.show(dataset, 2)
    assert "24 images, 0 classes; below each: parts, depth" in repr(sheet)
    found = re.findall(r'base64,([^"]*)" alt="(parts|depth)"', sheet._repr_html_())
    assert [name for _, name in found] == ["parts", "depth"] * 2 and sheet._repr_html_().count("opacity:0.55") == 2
    for sample, (source, _) in zip((0, 23), found[1::2]):
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(source))))
        np.testing.assert_array_equal(pixels, dataset.field("depth", [sample])[0].transpose(1, 2, 0))


def test_a_dataset_of_other_fields_or_of_tensors_was_an_error(folders, tmp_path):  # noqa: F811
    """Its first field was shown as the image."""
    pack(folders, tmp_path / "pack")
    expected = chunkhit.show(tmp_path / "pack", 4)._repr_html_()
    assert chunkhit.show(chunkhit.ImageDataset(tmp_path / "pack", fields=["mask", "depth"]), 4)._repr_html_() == expected
    pytest.importorskip("torch")
    from chunkhit.torch import ImageDataset
    assert chunkhit.show(ImageDataset(tmp_path / "pack"), 4)._repr_html_() == expected


def test_numbers_stand_where_there_are_no_classes(packs):
    dataset = chunkhit.ImageDataset(packs / "numbers")
    number, _, caption = cells(chunkhit.show(dataset, 1)._repr_html_())[0]
    assert caption == ", ".join(f"{value:g}" for value in dataset[number][1])


def test_no_images_are_a_wrong_number(packs):
    assert "n: expected a whole number from 1" in raised("usage", chunkhit.show, packs / "hdf5", n=0)


def test_a_sheet_is_html_alone(packs, tmp_path):
    with pytest.raises(chunkhit.Error, match="path: expected a name that ends in .html, found .*/sheet.png") as error:
        chunkhit.show(packs / "hdf5").save(tmp_path / "sheet.png")
    assert error.value.code == "usage" and not (tmp_path / "sheet.png").exists()

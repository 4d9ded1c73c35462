"""What pack-report says of masks, and how it lays them over their images."""
import base64
import io
import re
import shutil

import numpy as np
import pytest
from PIL import Image

import chunkhit
from chunkhit.report import write_report

from fields_test import COUNT, folders, pack  # noqa: F401: a fixture
from report_test import texts


@pytest.fixture
def page(masked, tmp_path):
    write_report(masked / "pack", tmp_path / "report.html", near_duplicates=True)
    return (tmp_path / "report.html").read_text()


def test_values_have_their_shares_of_pixels_and_of_masks(masked, page):
    masks = chunkhit.ImageDataset(masked / "pack").masks(slice(None))
    found = " ".join(texts(page))
    pixels = np.concatenate([np.ravel(mask) for mask in masks])
    assert "pack: 5 values" in texts(page)
    assert f"All 36 masks; 0 has {100 * np.mean(pixels == 0):.0f} % of the pixels. 1 mask with one value in all pixels (0 in 1)." in found
    for name, value in (("0 (not colored)", 0), ("255 (often: ignore)", 255), ("4", 4)):
        assert name in texts(page)
        for share in (np.mean(pixels == value), np.mean([value in mask for mask in masks])):
            assert f"{100 * share:.3g} %" in texts(page)


def test_a_value_that_few_masks_have_is_a_warning(page):
    assert any("pack: 1 value of masks in fewer than 3 of 36: 9" in text for text in texts(page))


def test_a_mask_lies_over_its_image(masked, page):
    masks = chunkhit.ImageDataset(masked / "pack").masks(slice(None))
    figures = re.findall(r'<figure id="sheet0-(\d+)">.*?class="mask" src="data:image/png;base64,([^"]*)"', page, re.DOTALL)
    assert len(figures) == 24, "12 of each class"
    for sample, source in figures:
        drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(source))).convert("RGBA"))
        mask = masks[int(sample)]
        np.testing.assert_array_equal(drawn[..., 3], np.where(mask == 0, 0, 255))
        colors = {tuple(color) for color in drawn[mask != 0].tolist()}
        assert len(colors) == len(set(mask[mask != 0].tolist()))


@pytest.mark.parametrize("masked", ["fixed"], indirect=True)
def test_masks_of_one_value_alone_are_a_warning(masked, tmp_path):
    for path in masked.glob("masks/*/*.png"):
        (tmp_path / path.relative_to(masked)).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (30, 20), 7).save(tmp_path / path.relative_to(masked))
    chunkhit.pack_images(masked / "images", tmp_path / "pack", pair=tmp_path / "masks")
    write_report(tmp_path / "pack", tmp_path / "report.html")
    assert any("pack: all pixels of all masks are 7" in text for text in texts((tmp_path / "report.html").read_text()))


def decoded(source):
    return Image.open(io.BytesIO(base64.b64decode(source)))


def test_each_field_is_shown(folders, tmp_path):  # noqa: F811
    """A section of each field of masks; in a figure the first mask lies over the image, other fields stand below."""
    pack(folders, tmp_path / "pack")
    write_report(tmp_path / "pack", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    dataset = chunkhit.ImageDataset(tmp_path / "pack")
    parts, depth = (dataset.field(name, range(COUNT)) for name in ("parts", "depth"))
    assert re.findall(r"<h2>(Masks.*?)</h2>", page) == ["Masks", "Masks (parts)"]
    for anchor, name in (("masks", "mask"), ("masks-parts", "parts")):
        section = page[page.index(f'<section id="{anchor}">'):].split("</section>")[0]
        values = np.unique(dataset.field(name, range(COUNT)))
        assert f"<h3>pack: {len(values)} values</h3>" in section
        assert set(re.findall(r'<span class="label">(\d+)', section)) == {str(value) for value in values}
    assert any("Below an image: parts, depth." in text for text in texts(page))
    figures = page.split('<figure id="sheet0-')[1:]
    assert len(figures) == COUNT and all('class="mask"' in figure for figure in figures)
    for figure in figures:
        sample = int(figure.split('"')[0])
        found = dict(re.findall(r'base64,([^"]*)" alt="(parts|depth)"', figure)[::-1])
        below = {name: decoded(source) for source, name in found.items()}
        np.testing.assert_array_equal(np.asarray(below["depth"]), depth[sample])
        drawn = np.asarray(below["parts"].convert("RGBA"))
        colors = {tuple(color) for color in drawn.reshape(-1, 4).tolist()}
        assert len(colors) == len(np.unique(parts[sample]))


def test_a_view_alone_stands_below_its_image(folders, tmp_path):  # noqa: F811
    pack(folders, tmp_path / "pack", pair={"view": folders / "depth"})
    write_report(tmp_path / "pack", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.split('id="sheet"')[1].count('alt="view"') == COUNT and "<h2>Masks" not in page and 'class="mask"' not in page


def test_packs_share_a_chart_and_the_rarest_values_have_images(masked, tmp_path):
    write_report(masked / "pack", tmp_path / "one.html")
    page = (tmp_path / "one.html").read_text()
    rare = re.findall(r'<figure id="rare-mask-(\d+)-0-\d+">.*?<figcaption[^>]*>([^<]*)<', page, re.DOTALL)
    masks = chunkhit.ImageDataset(masked / "pack").masks(slice(None))
    counts = {value: sum(bool((mask == value).any()) for mask in masks) for value in (9, 1, 4, 255, 0)}
    assert dict((int(value), caption) for value, caption in rare) == {
        value: f"{value}: in {count} mask{'s' * (count > 1)}" for value, count in counts.items()}
    assert rare[0][0] == "9"
    best = {value: int(np.argmax([(mask == value).sum() for mask in masks])) for value in counts}
    labels = dict(re.findall(r'<figure id="rare-mask-(\d+)-0-\d+">.*?pack #?(\d+)', page, re.DOTALL))
    assert {value: int(labels[str(value)]) for value in counts} == best, "the image with the most pixels of the value"
    shutil.copytree(masked / "pack", tmp_path / "other")
    write_report([masked / "pack", tmp_path / "other"], tmp_path / "two.html", duplicates="none")
    section = (tmp_path / "two.html").read_text().split('<section id="masks">')[1].split("</section>")[0]
    assert "<h3>5 values</h3>" in section and section.count('class="bars') == 2
    assert section.count('class="swatch"') == 2 * 4, "colors of the contact sheet; 0 has none"
    assert {"pack, of pixels", "other, of pixels", "pack, of masks", "other, of masks"} <= set(texts(f"<body>{section}"))


def test_a_pack_of_masks_has_masks_for_labels(masked, tmp_path):
    for kind in ("images", "masks"):
        for path in (masked / kind).rglob("*.*"):
            (tmp_path / kind).mkdir(exist_ok=True)
            shutil.copyfile(path, tmp_path / kind / path.name)
    chunkhit.pack_images(tmp_path / "images", tmp_path / "pack", pair=tmp_path / "masks", sizes="own", progress=False)
    write_report(tmp_path / "pack", tmp_path / "report.html")
    assert "masks" in texts((tmp_path / "report.html").read_text()) and "0 classes" not in texts((tmp_path / "report.html").read_text())


def test_findings_of_images_alone_show_them_without_masks(tmp_path):
    """Masks lay over images that were found to be dark, and hid that they are."""
    random = np.random.default_rng(3)
    for number in range(40):
        for kind in ("images", "masks"):
            (tmp_path / kind / "one").mkdir(parents=True, exist_ok=True)
        image = random.integers(0, 30 if number == 7 else 256, (24, 32, 3), np.uint8)
        Image.fromarray(image).save(tmp_path / "images" / "one" / f"{number:02}.png")
        mask = np.full((24, 32), 1, np.uint8)
        mask[:4, :4] = 5 if number == 9 else 2
        Image.fromarray(mask).save(tmp_path / "masks" / "one" / f"{number:02}.png")
    chunkhit.pack_images(tmp_path / "images", tmp_path / "pack", pair=tmp_path / "masks", progress=False)
    write_report(tmp_path / "pack", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    dark, = re.findall(r'<figure id="dark0-\d+".*?</figure>', page, re.DOTALL)
    few, = re.findall(r'<figure id="few-mask-5-0-\d+".*?</figure>', page, re.DOTALL)
    assert 'class="mask"' not in dark and 'class="mask"' in few
    assert "values in fewer than 3 masks" in page.split('id="checks">')[1].split("</p>")[0]
    write_report(tmp_path / "pack", tmp_path / "few.html", samples=20)
    few = (tmp_path / "few.html").read_text()
    assert "values in fewer than 3 masks of pack, as there are fewer than 30" in few.split('id="unchecked">')[1].split("</p>")[0]
    assert "values in fewer than 3 masks" not in few.split('id="checks">')[1].split("</p>")[0]

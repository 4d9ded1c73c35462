"""The page of pack-report, as Chromium shows it: images as stored, warnings, names that are scripts, light and dark."""
import base64
import csv
import html
import io
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas
import pytest
from PIL import Image

import chunkhit
from chunkhit._pages import shown
from chunkhit.report import write_report
from chunkhit.report._page import short_name

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import browser  # noqa: E402
from servers import Nginx  # noqa: E402

needs_chromium = pytest.mark.skipif(browser.CHROMIUM is None, reason="chromium is not installed")
BUILD = os.path.abspath(os.path.join(os.path.dirname(chunkhit.__file__), "..", "..", ".."))
COMMAND = os.path.join(BUILD, "tools", "pack-report")
SCRIPT = "<script>window.injected=1<⁄script>"  # no file name has a slash
HANDLER = '"><img src=x onerror="window.injected=2">.png'


def photo(random, width, height):
    """Smooth shapes and noise, as photographs have them."""
    coarse = random.integers(0, 256, (5, 6, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.BICUBIC)).astype(np.int16)
    return Image.fromarray(np.clip(smooth + random.integers(-8, 9, smooth.shape), 0, 255).astype(np.uint8))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Folders train and val: 24 of a, 2 of a class that is named as a script, in training only; copies; damaged files."""
    folder = tmp_path_factory.mktemp("report")
    random = np.random.default_rng(1)
    for number in range(36):
        split, label = ("train", "val")[number % 3 == 2], "a" if number > 2 else SCRIPT
        place = folder / "photos" / split / label
        place.mkdir(parents=True, exist_ok=True)
        image = photo(random, 40, 30)
        image.save(place / (HANDLER if number == 1 else f"{number:02}.png"))
        if number == 4:
            image.save(folder / "photos/train/a/again.png")
        if number == 5:
            (folder / "photos/train/a/in-training.png").write_bytes((place / "05.png").read_bytes())
        if number == 6:
            image.resize((80, 60), Image.BICUBIC).save(folder / "photos/train/a/larger.jpg", quality=60)
    cut = (folder / "photos/train/a/04.png").read_bytes()
    (folder / "photos/train/a/cut.png").write_bytes(cut[:len(cut) // 2])
    (folder / "photos/train/a/text.png").write_text("no image")
    with open(os.fsencode(folder / "photos/train/a") + b"/\xff.png", "wb") as file:
        file.write(b"no image")
    chunkhit.pack_images(folder / "photos", folder / "packs", split_folders=["train", "val"], resize=(40, 30), max_errors=5,
                         chunk_samples=8, progress=False)
    write_report(folder / "packs", folder / "report.html", near_duplicates=True)
    return folder


@pytest.fixture(scope="module")
def page(photos):
    return (photos / "report.html").read_text(encoding="utf-8")


def texts(page):
    """The visible texts of a page, those of charts too."""
    body = re.sub(r"<style>.*?</style>", "", page[page.index("<body"):], flags=re.DOTALL)
    return [text for text in (html.unescape(part).strip() for part in re.split(r"<[^>]*>", body)) if text]


def table_rows(page):
    return [[html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
            for row in re.findall(r"<tr>(.*?)</tr>", page)]


def warnings(page):
    """Those at the top."""
    lines = re.findall('<p class="what">(.*?)</p>', page)
    return [html.unescape(re.sub("<[^>]*>", "", line)) for line in lines]


@pytest.mark.deep
@needs_chromium
def test_browser_shows_the_stored_pixels(photos):
    seen = browser.look(photos / "report.html", pixels=True)
    datasets = [chunkhit.ImageDataset(photos / "packs" / name) for name in ("train", "val")]
    shown_images = [image for image in seen["images"] if image["id"].startswith("sheet")]
    assert len(shown_images) == 6 + 2 + 6 + 1
    for image in shown_images:
        pack, sample = map(int, re.fullmatch(r"sheet(\d)-(\d+)", image["id"]).groups())
        pixels = np.array(image["pixels"], np.uint8).reshape(image["height"], image["width"], 4)
        np.testing.assert_array_equal(pixels[..., :3], datasets[pack][sample][0])
        file = shown(datasets[pack].keys([sample])[0])
        assert image["caption"].split() == f"{('train', 'val')[pack]} #{sample} {short_name(file)}".split() and image["title"] == file


@pytest.mark.parametrize("options", [dict(channels="gray"), dict(channels="rgba", container="shard"), dict(layout="nchw")])
def test_sheet_is_png_of_the_stored_pixels(photos, tmp_path, options):
    chunkhit.pack_images(photos / "photos/val", tmp_path / "pack", progress=False, **options)
    write_report(tmp_path / "pack", tmp_path / "report.html")
    dataset = chunkhit.ImageDataset(tmp_path / "pack")
    text = (tmp_path / "report.html").read_text()
    images = re.findall(r'<figure id="sheet0-(\d+)">.*?src="data:image/png;base64,([^"]*)"', text, re.DOTALL)
    assert len(images) == 12
    for sample, data in images:
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
        stored = dataset[int(sample)][0]
        np.testing.assert_array_equal(pixels, stored.transpose(1, 2, 0) if "layout" in options else stored.squeeze())


@pytest.mark.deep
@needs_chromium
def test_nothing_is_loaded_and_no_script_runs(photos):
    assert browser.console_lines(photos / "report.html") == []
    seen = browser.look(photos / "report.html")
    assert seen["injected"] is None and seen["errors"] == [] and seen["external"] == []
    assert seen["scripts"] == 2, "the probe's own"
    assert all(image["width"] == 40 and image["height"] == 30 for image in seen["images"])
    assert seen["title"] == "packs/train, packs/val" and seen["overflow"] <= 0


@pytest.mark.deep
@needs_chromium
def test_names_of_classes_and_columns_are_only_text(photos, tmp_path):
    names = ["</text></svg></style><script>window.injected=3</script>", "$a_b$ {{ 7 * 7 }}",
             "--><img src=x onerror=injected=4>"]
    with open(photos / "photos/names.csv", "w", newline="") as file:
        rows = [(f"train/a/{3 + 3 * at:02}.png", name) for at, name in enumerate(names)]
        csv.writer(file).writerows([("file", "label"), *rows])
    (tmp_path / "names").write_text("\n".join(names))
    chunkhit.pack_images(None, tmp_path / "pack", labels=photos / "photos/names.csv", classes=tmp_path / "names",
                         progress=False)
    write_report(tmp_path / "pack", tmp_path / "report.html")
    headings = re.findall("<h3>(.*?)</h3>", (tmp_path / "report.html").read_text())
    assert [html.unescape(heading) for heading in headings[:3]] == names
    seen = browser.look(tmp_path / "report.html")
    assert seen["injected"] is None and seen["errors"] == [] and seen["scripts"] == 2 and len(seen["images"]) == 3


@pytest.mark.deep
@needs_chromium
def test_follows_light_and_dark_mode(photos):
    light, dark = browser.look(photos / "report.html"), browser.look(photos / "report.html", dark=True)
    assert (light["background"], dark["background"]) == ("rgb(255, 255, 255)", "rgb(15, 20, 25)")
    assert light["color"] != dark["color"] and light["chart"] != dark["chart"]


@pytest.mark.deep
@needs_chromium
def test_a_link_enlarges_an_image(photos):
    first = browser.look(photos / "report.html")["images"][0]["id"]
    position, height = browser.look(photos / "report.html", fragment=f"#{first}")["enlarged"]
    assert position == "fixed" and height > 300


def test_warns_of_what_is_odd(page):
    found = "\n".join(warnings(page))
    assert f"train: a has 25 images, {SCRIPT} 2: more than 10 to 1" in found
    assert f"val: a has 11 images, {SCRIPT} 1: more than 10 to 1" in found
    assert [line.split(": ")[1] for line in warnings(page) if 'sampler="balanced"' in line] == ["train"]
    assert "train: 3 of 30 rows were rejected, 10 %; 1 of them: truncated: the data ends before the end chunk" in found
    assert "train and val have 1 image in common" in found
    assert "val: " not in "".join(line for line in warnings(page) if "rejected" in line)


def test_says_what_was_checked_and_no_more(photos, packs, page, tmp_path):
    """What the warnings of the page are of is listed; what the options leave out is not."""
    def checks(text):
        return html.unescape(re.search('id="checks">Checked: (.*?)[.]</p>', text).group(1)).split("; ")

    assert {"rejects", "classes that a pack lacks", "equal images in two packs", "near-duplicates between packs"} <= set(checks(page))
    found = write_report(packs / "numbers", tmp_path / "report.html", duplicates="none")
    assert checks((tmp_path / "report.html").read_text()) == [
        "sizes of the packs' files and hashes of the chunks that were read",
        "images that were squeezed by more than 1.5 to 1, lost more than 50% to the crop, alpha or further frames, or have 16 bits of a "
        "low range",
        "channels of one value", "rejects", "images that are nearly black or white, of one color, blurred, or narrow"]
    left_out = html.unescape(re.search('id="unchecked">Not checked: (.*?)[.]</p>', (tmp_path / "report.html").read_text()).group(1))
    assert left_out.split("; ") == ["wrong labels, as labels are no classes", "equal images", "near-duplicates"]
    assert found == warnings((tmp_path / "report.html").read_text())


def test_the_top_shows_key_figures_and_images(photos, page):
    top = page[page.index("<header>"):page.index("</header>")]
    found = texts(f"<body>{top}")
    assert [found[found.index(what) - 1] for what in ("images", "rejects", "classes", "pixels")] == ["39", "3", "2", "40 x 30"]
    tiles = re.findall(r'<a href="#([a-z0-9-]+)"><img src="data:image/jpeg;base64', top)
    assert len(tiles) == 15 and all(f'<figure id="{anchor}">' in page for anchor in tiles)


def test_titles_have_at_most_five_words(page):
    assert [title for title in re.findall("<h[123]>(.*?)</h[123]>", page) if len(title.split()) > 5] == []


@pytest.mark.deep
@needs_chromium
@pytest.mark.parametrize("width", [400, 1200])
def test_nothing_is_wider_than_the_page(photos, width):
    seen = browser.look(photos / "report.html", width=width)
    assert seen["overflow"] <= 0 and seen["cut"] == []


def test_does_not_warn_of_a_good_pack(packs, tmp_path):
    write_report(packs / "hdf5", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert warnings(text) == [] and "Nothing odd was found in what was checked." in text
    assert ["hdf5", "png", "100", "8", "6", "1.33", "8 x 6, unchanged"] in table_rows(text)


def test_lists_rejects_with_their_files(page):
    rows = {tuple(row[1:]) for row in table_rows(page) if len(row) == 3 and row[0] in ("1", "2")}
    reasons = {files: reason for reason, files in rows}
    assert "truncated" in reasons["train/a/cut.png"]
    assert {"train/a/text.png", "train/a/\\xff.png"} <= set(", ".join(reasons).split(", "))


def test_lists_equal_images_within_and_between_packs(photos, page):
    keys = [chunkhit.ImageDataset(photos / "packs" / name).keys() for name in ("train", "val")]
    named = {key: f"{name} #{number} {key} (a)" for name, own in zip(("train", "val"), keys) for number, key in enumerate(own)}
    equal = [row for row in table_rows(page) if len(row) == 4 and row[1] in ("between packs", "within a pack")]
    assert [row[:3] for row in equal] == [["2", "between packs", "equal"], ["2", "within a pack", "equal"]]
    assert set(equal[0][3].split("; ")) == {named["train/a/in-training.png"], named["val/a/05.png"]}
    assert set(equal[1][3].split("; ")) == {named["train/a/04.png"], named["train/a/again.png"]}


def test_equal_images_are_found_among_all_of_a_pack_unless_it_is_large(photos, tmp_path, monkeypatch):
    """Of 16 images that are looked at; a pack is large from 1 kB on."""
    how = dict(samples=16, seed=1)
    titles = {}
    for duplicates, most in (("auto", 10 ** 10), ("auto", 1000), ("all", 1000)):
        monkeypatch.setattr("chunkhit.report._image_scan.DUPLICATE_BYTES", most)
        write_report(photos / "packs", tmp_path / "report.html", duplicates=duplicates, **how)
        text = (tmp_path / "report.html").read_text()
        titles[duplicates, most] = text[text.index("<h2>Exact duplicates"):text.index("</section>", text.index("<h2>Exact dup"))]
    everything = titles["auto", 10 ** 10]
    assert "2 images could be left out" in everything and "train: all 27 images; val: all 12 images." in everything
    assert titles["all", 1000] == everything
    assert "train: 16 of 27 images; val: all 12 images. Duplicates of the others are not found." in titles["auto", 1000]
    for options in (dict(duplicates="some"), dict(duplicates="none", near_duplicates=True)):
        with pytest.raises(chunkhit.Error, match="duplicates: expected ") as error:
            write_report(photos / "packs", tmp_path / "report.html", **options)
        assert error.value.code == "usage"


def test_finds_a_resized_and_encoded_copy(page):
    pairs = [row[1:] for row in table_rows(page) if len(row) == 3 and row[0].isdigit() and " #" in row[1]]
    assert [sorted(text.split()[2] for text in pair) for pair in pairs] == [["train/a/06.png", "train/a/larger.jpg"]]


def test_looks_at_as_many_images_as_asked_for_and_says_so(packs, tmp_path):
    for name, seed in (("first", 0), ("again", 0), ("other", 1)):
        write_report(packs / "hdf5", tmp_path / f"{name}.html", samples=32, seed=seed)
    first = (tmp_path / "first.html").read_text()
    assert "32 of 100 images" in first and "hdf5: all 100 images" in first
    assert first == (tmp_path / "again.html").read_text() != (tmp_path / "other.html").read_text()


def test_shows_sizes_of_images_that_have_their_own(photos, tmp_path):
    chunkhit.pack_images(photos / "photos/train", tmp_path / "own", sizes="own", max_errors=5, progress=False)
    chunkhit.pack_images(photos / "photos/train", tmp_path / "small", sizes="own", max_side=50, max_errors=5, progress=False)
    write_report([tmp_path / "own", tmp_path / "small"], tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    rows = [row for row in table_rows(text) if row]
    assert ["own", "All 27 images", "40 to 80, median 40", "30 to 60, median 30", "1.33", "100 %"] in rows
    assert ["small", "All 27 images", "40 to 50, median 40", "30 to 37, median 30", "1.33 to 1.35, median 1.33", "100 %"] in rows
    for name, stored in (("own", "own sizes, unchanged"), ("small", "own sizes, by max-side 50")):
        assert [name, "jpeg", "1", "80", "60", "1.33", stored] in rows and [name, "png", "26", "40", "30", "1.33", stored] in rows


def test_warns_of_images_that_the_transform_squeezes_or_crops(photos, tmp_path):
    shutil.copytree(photos / "photos/val/a", tmp_path / "in/a")
    photo(np.random.default_rng(2), 120, 30).save(tmp_path / "in/a/wide.png")
    for name, options in (("squeezed", dict(resize=(40, 30))), ("cropped", dict(resize=30, crop=(40, 30)))):
        chunkhit.pack_images(tmp_path / "in", tmp_path / name, progress=False, **options)
    write_report([tmp_path / "squeezed", tmp_path / "cropped"], tmp_path / "report.html")
    found = [line for line in warnings((tmp_path / "report.html").read_text()) if "squeezed or stretched" in line]
    assert len(found) == 1
    page = (tmp_path / "report.html").read_text()
    assert [line for line in warnings(page) if "cropped: 1 image lost more than 50 % of the area to the crop, at most 66.7 %" in line]
    assert chunkhit.pack_info(tmp_path / "cropped")["inputs"]["cropped"] == 1
    assert "squeezed: 1 image was squeezed or stretched by more than 1.5 to 1, at most by 3 to 1" in found[0]


def test_sizes_that_an_earlier_build_did_not_record_are_said_to_be_missing(packs, tmp_path):
    shutil.copyfile(next((packs / "hdf5").glob("*.h5")), tmp_path / "part-00000.h5")
    write_report(tmp_path / "part-00000.h5", tmp_path / "report.html")
    assert "Sizes of the input images are not recorded" in (tmp_path / "report.html").read_text()


def test_columns_that_were_kept_are_shown_with_their_values(photos, tmp_path):
    random = np.random.default_rng(3)
    files = sorted(path.name for path in (photos / "photos/train/a").glob("[0-9]*.png"))
    table = pandas.DataFrame({"file": [f"train/a/{name}" for name in files], "label": "a",
                              "age": random.integers(18, 90, len(files)), "stars": random.integers(1, 6, len(files)),
                              "price": random.lognormal(2, 3, len(files)).round(2),
                              "city": random.choice(["Köln", "Rome <b>", "Oslo"], len(files), p=[.6, .3, .1])})
    table.loc[3, "price"] = None
    table.to_csv(photos / "photos/kept.csv", index=False)
    chunkhit.pack_images(photos / "photos", tmp_path / "pack", labels=photos / "photos/kept.csv", progress=False,
                         keep_columns=["age", "stars", "price", "city"])
    write_report(tmp_path / "pack", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    section = text[text.index('<section id="columns">'):]
    found = texts(f"<body>{section[:section.index('</section>')]}")
    assert f"{table.age.min()} to {table.age.max()}; the median is {table.age.median():g} in pack." in found
    assert any(line.endswith(f" pack: 1 of {len(files)} values is missing.") for line in found)
    top = table.city.value_counts()
    assert found[found.index("city") + 1] == "3 texts."
    for value, count in [*top.items(), *table.stars.value_counts().items()]:
        assert str(value) in found and str(count) in found
    assert "<b>" not in section


def test_a_report_has_no_section_that_says_nothing(packs, tmp_path):
    write_report(packs / "shard", tmp_path / "classes.html")
    write_report(packs / "numbers", tmp_path / "numbers.html", duplicates="none")
    anchors = [re.findall(r'<section id="([a-z-]+)">', (tmp_path / f"{name}.html").read_text()) for name in ("classes", "numbers")]
    assert anchors == [["packs", "classes", "sheet", "sizes", "brightness", "duplicates", "near-duplicates", "chunks"],
                       ["packs", "labels", "sheet", "sizes", "brightness", "chunks"]]


def packed_colors(path, names, kind=int):
    """Two images a class, of a color each."""
    with chunkhit.ImageWriter(path, classes=names if kind is int else None) as writer:
        for number in range(2 * len(names)):
            writer.add(np.full((4, 4, 3), (40 + 3 * number + 7 * len(str(path))) % 256, np.uint8), kind(number % len(names)))


def test_a_page_on_a_server_was_a_local_folder(tmp_path):
    with pytest.raises(chunkhit.Error, match="^output: s3://bucket/page.html is on a server, expected a file here"):
        write_report(tmp_path, "s3://bucket/page.html")


def test_splits_in_a_folder_of_packs_were_left_out(tmp_path):
    for name in ("one", "split/val", "split/train"):
        packed_colors(tmp_path / "packs" / name, ["cat", "dog"])
    write_report(tmp_path / "packs", tmp_path / "report.html", duplicates="none")
    found = texts((tmp_path / "report.html").read_text())
    assert [found.index(name) for name in ("one", "train", "val")] == sorted(found.index(name) for name in ("one", "train", "val"))


def test_packs_of_other_data_sets_lack_no_classes(tmp_path):
    packed_colors(tmp_path / "pets/train", ["cat", "dog", "mouse"])
    packed_colors(tmp_path / "cars/train", ["van", "bus"])
    packed_colors(tmp_path / "rated", ["1", "2"], float)
    with chunkhit.ImageWriter(tmp_path / "pets/val", classes=["cat", "dog", "mouse"]) as writer:
        writer.add(np.full((4, 4, 3), 9, np.uint8), 0)
        writer.add(np.full((4, 4, 3), 8, np.uint8), 1)
    packs = [tmp_path / name for name in ("pets/train", "cars/train", "pets/val", "rated")]
    write_report(packs, tmp_path / "report.html")
    found = warnings((tmp_path / "report.html").read_text())
    lacking = [line for line in found if "that other packs have" in line]
    assert lacking == ["Classes: val: has no image of 1 class that other packs have: mouse"]
    assert any("labels are classes in pets/train, cars/train, val, but numbers in rated" in line for line in found)
    assert "<title>pets/train, cars/train, pets/val, rated</title>" in (tmp_path / "report.html").read_text()


def test_a_report_is_html_alone(packs, tmp_path):
    with pytest.raises(chunkhit.Error, match="output: expected a name that ends in .html, found .*/report.pdf") as error:
        write_report(packs / "hdf5", tmp_path / "report.pdf")
    assert error.value.code == "usage" and not (tmp_path / "report.pdf").exists()


def test_labels_that_are_numbers_have_no_classes(packs, tmp_path):
    write_report(packs / "numbers", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    numbers = pandas.read_csv(packs / "numbers.csv")
    assert f"0 to {numbers.x.max():g}; the median is {numbers.x.median():g} in numbers." in texts(text)
    assert f"{numbers.y.min()} to 0; the median is {numbers.y.median():g} in numbers." in texts(text)
    assert "36 of 100 images" in text and '<section id="classes">' not in text


def test_labels_of_0_and_1_are_counted_by_column(tmp_path):
    labels = [[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 0, 1]]
    with chunkhit.ImageWriter(tmp_path / "pack", label_column=["cat", "dog", "owl"]) as writer:
        for number, label in enumerate(labels):
            writer.add(np.full((4, 4, 3), 40 * number, np.uint8), label)
    write_report(tmp_path / "pack", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    found = texts(text)
    assert any("An image may have several." in each for each in found) and {"cat", "dog", "owl", "3 numbers of 0 and 1"} <= set(found)
    assert '<section id="classes">' in text and '<section id="labels">' not in text
    assert text.count("as stored; cat, dog") == 1 and "as stored; 1, " not in text


def test_a_table_that_the_manifest_lists_must_be_there(photos, tmp_path):
    shutil.copytree(photos / "packs/train", tmp_path / "train")
    for change, message in ((lambda file: file.write_text("row,file\n"), "expected a table with a column reason"),
                            (lambda file: file.unlink(), "No such file")):
        change(tmp_path / "train/rejects.csv")
        with pytest.raises(chunkhit.Error, match=f"rejects.csv: {message}") as error:
            write_report(tmp_path / "train", tmp_path / "report.html")
        assert error.value.code == "bad_data" and not (tmp_path / "report.html").exists()


def test_rejects_of_merged_packs_are_those_of_all(photos, tmp_path):
    chunkhit.merge_packs([photos / "packs/train", photos / "packs/val"], tmp_path / "merged")
    write_report(tmp_path / "merged", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "merged: 3 rejected" in texts(text)
    assert "train/a/cut.png" in ", ".join(row[2] for row in table_rows(text) if len(row) == 3)


@pytest.mark.usefixtures("network")
def test_a_pack_on_a_server_has_the_sections_of_the_local_one(photos, tmp_path):
    with Nginx(photos / "packs", tmp_path / "nginx") as server:
        write_report([f"{server.url}/train", f"{server.url}/val"], tmp_path / "remote.html", near_duplicates=True)
    remote, local = ((folder / name).read_text() for folder, name in ((tmp_path, "remote.html"), (photos, "report.html")))
    assert re.findall(r"data:image/png;base64,[^\"]*", remote) == re.findall(r"data:image/png;base64,[^\"]*", local)
    sections = [re.search(rf'<section id="{name}">.*?</section>', text, re.DOTALL).group()
                for name in ("classes", "sheet", "sizes", "rejects", "duplicates", "near-duplicates") for text in (remote, local)]
    assert sections[::2] == sections[1::2]


@pytest.mark.usefixtures("network")
def test_says_why_rejects_on_a_server_are_not_known(photos, tmp_path):
    shutil.copytree(photos / "packs/train", tmp_path / "www/train")
    (tmp_path / "www/train/rejects.csv").unlink()
    with Nginx(tmp_path / "www", tmp_path / "nginx") as server:
        write_report(f"{server.url}/train", tmp_path / "report.html")
    found = texts((tmp_path / "report.html").read_text())
    assert "train: 3 rejected" in found
    assert any(line.startswith(f"The reasons are not known: {server.url}/train/rejects.csv: ") and "404" in line for line in found)


@pytest.fixture(scope="module")
def bench(packs, tmp_path_factory):
    """What pack-bench writes, of epochs and of --tune."""
    folder = tmp_path_factory.mktemp("bench")
    for name, flags in (("epochs", ["--epochs", "2"]), ("tune", ["--tune", "--threads", "1"])):
        pack_bench = os.path.join(BUILD, "tools", "pack-bench")
        run = subprocess.run([pack_bench, packs / "hdf5", "--json", "--batch-size", "10", *flags], stdout=subprocess.PIPE,
                             check=True)
        (folder / f"{name}.json").write_bytes(run.stdout)
    return folder


def test_shows_what_pack_bench_measured(packs, bench, tmp_path):
    write_report(packs / "hdf5", tmp_path / "epochs.html", bench=bench / "epochs.json")
    found = texts((tmp_path / "epochs.html").read_text())
    measured = pandas.read_json(bench / "epochs.json", typ="series")
    assert any(line.startswith(f"{measured.samples_per_second:,.0f} samples a second") for line in found)
    assert "epoch 1" in found and "decode" in found and measured.verdict in found
    write_report(packs / "hdf5", tmp_path / "tune.html", bench=bench / "tune.json")
    found, page = pandas.read_json(bench / "tune.json", typ="series"), (tmp_path / "tune.html").read_text()
    assert f"{found.samples_per_second:,.0f} samples a second with " in page and found.tuning[-1] in page


def command(*arguments, program=COMMAND, before=(), **environment):
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run([program, *before, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env={**clean, **environment})
    return run.returncode, run.stdout


def test_command_ends_with_the_documented_codes(packs, tmp_path):
    page = tmp_path / "report.html"
    assert command(packs / "hdf5", "-o", page) == (0, f"{page}: 0 findings\n") and page.exists()
    code, text = command("-c", f"{COMMAND} {packs / 'hdf5'} -o {page} > /dev/full", program="sh")
    assert code == 73 and "standard output cannot be written: No space left" in text
    code, text = command("nothing", "-o", page)
    assert code == 65 and text.startswith("pack-report: nothing: ")
    code, text = command(packs / "hdf5", "-o", tmp_path / "no" / "report.html")
    assert code == 73 and "cannot be written: No such file" in text
    page.unlink()
    code, text = command(packs / "hdf5", "-o", page, program="sh", before=["-c", 'ulimit -f 8; exec "$0" "$@"', COMMAND])
    assert code == 73 and "cannot be written: File too large" in text and os.listdir(tmp_path) == []
    code, text = command(packs / "hdf5", "-o", "/dev/null")
    assert code == 73 and "is no file" in text and not os.path.isfile("/dev/null")
    code, text = command(packs / "hdf5", "-o", page, "--bench", packs / "numbers.csv")
    assert code == 65 and "numbers.csv: expected JSON of pack-bench --json" in text
    assert command(packs / "hdf5", packs / "hdf5", "-o", page)[0] == 2
    assert command(packs / "hdf5", "-o", page, "--samples", "-1")[0] == 2
    assert [name for name in os.listdir(tmp_path) if name.endswith(".tmp")] == []


def test_command_says_what_is_missing(packs, tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError")
    code, text = command(packs / "hdf5", "-o", tmp_path / "report.html", PYTHONPATH=str(tmp_path))
    assert code == 2 and "needs matplotlib, which" in text and "apt-get install python3-matplotlib" in text


def test_installed_command_makes_the_same_page(packs, tmp_path):
    subprocess.run(["cmake", "--install", BUILD, "--component", "python", "--prefix", tmp_path / "usr"], check=True, stdout=subprocess.DEVNULL)
    libraries = os.path.join(BUILD, "lib")
    assert command(packs / "shard", "-o", tmp_path / "built.html")[0] == 0
    assert command(packs / "shard", "-o", tmp_path / "installed.html", program=tmp_path / "usr/bin/pack-report",
                   LD_LIBRARY_PATH=libraries)[0] == 0
    assert (tmp_path / "built.html").read_bytes() == (tmp_path / "installed.html").read_bytes()

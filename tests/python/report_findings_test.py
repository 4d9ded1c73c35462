"""What pack-report accuses: each test injects errors into clean packs, of which it finds nothing."""
import io
import os
import re
import shutil
import sys

import numpy as np
import pytest
from PIL import Image

import chunkhit
from chunkhit.report import write_report
from chunkhit.report._input_files import changed, sides, size_of
from chunkhit.report._label_errors import find_label_errors

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import browser  # noqa: E402

CLASSES = ["disc", "across", "down"]
COUNT = 90


def drawn(random, label, height=48, width=64):
    """A disc or stripes on a ground, of random colors, sizes and positions, with noise."""
    rows, columns = np.mgrid[:height, :width].astype(np.float64)
    period, phase = random.uniform(9, 16), random.uniform(0, 16)
    if label == 0:
        middle = random.uniform(0.35, 0.65, 2) * (height, width)
        inside = np.hypot(rows - middle[0], columns - middle[1]) < random.uniform(12, 18)
    else:
        inside = np.sin(2 * np.pi * ((rows if label == 1 else columns) + phase) / period) > 0
    ground, ink = random.integers(60, 110, 3), random.integers(140, 200, 3)
    soft = 25 * np.sin(rows / random.uniform(6, 14) + columns / random.uniform(-14, -6) + random.uniform(0, 6))
    pixels = np.where(inside[..., None], ink, ground) + soft[..., None] + random.normal(0, 6, (height, width, 1))
    return np.clip(pixels, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def clean():
    """Images and labels of two packs."""
    random = np.random.default_rng(7)
    return {name: [(drawn(random, number % 3), number % 3) for number in range(COUNT)] for name in ("train", "val")}


def page_of(folder, packs, **options):
    for name, samples in packs.items():
        with chunkhit.ImageWriter(folder / name, classes=CLASSES) as writer:
            for number, (image, label) in enumerate(samples):
                writer.add(image, label, key=f"{number:03}.png")
    found = write_report([folder / name for name in packs], folder / "report.html", **options)
    return found, (folder / "report.html").read_text()


def shown_files(page, text):
    """Files of the images of the finding that has this text."""
    finding = next(part for part in page.split('<div class="finding')[1:] if text in part)
    finding = finding.split('id="checks"')[0]
    return re.findall(r'<figcaption title="([^"]*)"', finding)


def test_clean_packs_are_not_accused(clean, tmp_path):
    found, page = page_of(tmp_path, clean)
    assert found == [] and "Nothing odd was found in what was checked." in page
    checks = re.search('id="checks">(.*?)</p>', page).group(1)
    for checked in ("near-duplicates between packs", "labels that the nearest images contradict", "blurred"):
        assert checked in checks


def test_wrong_labels_are_found_with_neighbors(clean, tmp_path):
    packs = {name: list(samples) for name, samples in clean.items()}
    for number in (3, 31, 62):
        packs["train"][number] = (packs["train"][number][0], (packs["train"][number][1] + 1) % 3)
    found, page = page_of(tmp_path, packs)
    assert found == ["Probable label errors: 3 labels are probably wrong, of 180 that were checked: images that look alike have another one."]
    files = shown_files(page, "labels are probably wrong")
    assert {"003.png", "031.png", "062.png"} <= set(files) and len(files) == 3 * 4
    assert "labeled across; 10 of 10 neighbors are disc" in page


def test_labels_that_images_do_not_tell_are_not_judged(tmp_path):
    random = np.random.default_rng(8)
    packs = {"noise": [(random.integers(0, 256, (24, 24, 3), np.uint8), int(random.integers(0, 3))) for _ in range(120)]}
    found, page = page_of(tmp_path, packs)
    assert found == []
    assert re.search(r"Not checked: wrong labels, as only \d+ % of the labels are those of most neighbors", page)


def test_leaked_near_duplicates_are_found_without_a_flag(clean, tmp_path):
    packs = {name: list(samples) for name, samples in clean.items()}
    for number in (10, 20):
        coded = io.BytesIO()
        Image.fromarray(packs["train"][number][0]).save(coded, "JPEG", quality=70)
        packs["val"].append((np.asarray(Image.open(coded)), packs["train"][number][1]))
    packs["val"].append(packs["train"][30])
    found, page = page_of(tmp_path, packs)
    assert found[0].startswith("Exact duplicates: train and val have 1 image in common")
    assert found[1].startswith("Near-duplicates: 2 pairs of near-duplicates are between packs: ") and len(found) == 2
    assert sorted(shown_files(page, "in common")) == ["030.png", "092.png"]
    assert set(shown_files(page, "near-duplicates are between")) == {"010.png", "020.png", "090.png", "091.png"}


def test_pairs_of_different_images_are_shown_first(clean, tmp_path):
    """Six pairs of one image were shown, whose copies are many."""
    packs = {name: list(samples) for name, samples in clean.items()}
    for number, copies in ((10, 6), (20, 1), (40, 1)):
        for copy in range(copies):
            image = np.clip(packs["train"][number][0].astype(np.int16) + 2 + copy, 0, 255).astype(np.uint8)
            packs["val"].append((image, packs["train"][number][1]))
    found, page = page_of(tmp_path, packs)
    assert found[0].startswith("Near-duplicates: 8 pairs of near-duplicates are between packs")
    assert sorted(shown_files(page, "near-duplicates are between")[:6:2]) == ["010.png", "020.png", "040.png"]


def test_near_duplicates_of_different_labels_are_found(clean, tmp_path):
    image, label = clean["train"][15]
    packs = {"train": clean["train"] + [(np.clip(image.astype(np.int16) + 6, 0, 255).astype(np.uint8), (label + 1) % 3)]}
    found, _ = page_of(tmp_path, packs)
    assert any("1 pair of near-duplicates is of different labels" in line for line in found)


@pytest.mark.parametrize("text, spoiled", [
    ("nearly black", lambda image: image // 8), ("nearly white", lambda image: 225 + image // 10),
    ("of one color", lambda image: np.full_like(image, 90)),
    ("much more blurred", lambda image: np.asarray(Image.fromarray(image).resize((4, 3), Image.BOX).resize((64, 48), Image.BICUBIC)))])
def test_images_that_stand_out_are_found(clean, tmp_path, text, spoiled):
    packs = {"train": list(clean["train"])}
    for number in (12, 48):
        packs["train"][number] = (spoiled(packs["train"][number][0]), packs["train"][number][1])
    found, page = page_of(tmp_path, packs, duplicates="none")
    assert any(line.startswith(f"Odd images: train: 2 images of 90 are {text}") for line in found)
    assert set(shown_files(page, text)) == {"012.png", "048.png"}


def pattern(kind, period, colors, height=48, width=64):
    rows, columns = np.mgrid[:height, :width] // period
    inside = {"checkers": (rows + columns) % 2, "across": rows % 2, "down": columns % 2}[kind]
    return np.array(colors, np.uint8)[inside]


def test_patterns_that_repeat_are_no_near_duplicates(clean, tmp_path):
    """Of 11 pairs of a synthetic set 9 were checkerboards of other colors and periods, whose hashes and thumbnails are alike."""
    random = np.random.default_rng(4)
    colors = [(np.array([0, 0, 0]), np.array([255, 255, 255]))] + [tuple(random.integers(0, 256, (2, 3))) for _ in range(15)]
    patterns = [(pattern(kind, period, pair), number % 3) for kind in ("checkers", "across", "down") for period in (1, 2, 3, 5, 10)
                for number, pair in enumerate(colors)]
    coded = io.BytesIO()
    Image.fromarray(clean["train"][10][0]).save(coded, "JPEG", quality=60)
    packs = {"train": clean["train"] + patterns[::2], "val": clean["val"] + patterns[1::2] + [(np.asarray(Image.open(coded)), clean["train"][10][1])]}
    found, page = page_of(tmp_path, packs)
    near = [line for line in found if line.startswith("Near-duplicates")]
    assert len(near) == 1 and near[0].startswith("Near-duplicates: 1 pair of near-duplicates is between packs: train #10 ")
    assert "1 pair of images looks alike" in page


def test_images_that_show_nothing_are_a_finding_and_accuse_no_label(clean, tmp_path):
    """Black frames and flat ones were accused as label errors, and as near-duplicates of each other."""
    random = np.random.default_rng(5)
    packs = {name: list(samples) for name, samples in clean.items()}
    for number in range(60, 72):
        dark = number % 2 == 0
        noise = random.normal(0, 1.2 if dark else 3, (48, 64, 3)) + (3 if dark else 120)
        packs["train"][number] = (np.clip(noise, 0, 255).astype(np.uint8), number % 3)
        packs["val"][number] = (np.full((48, 64, 3), 90, np.uint8), number % 3)
    found, page = page_of(tmp_path, packs)
    assert [line.split(", the first")[0] for line in found] == [
        f"Odd images: {name}: 12 images of 90 are of one color or nearly" for name in packs]
    assert "labels of 24 of 180 images, which are not looked at, or nearly of one color" in page
    assert "11 images could be left out" in page, "equal images of one color are listed"


def test_the_most_squeezed_and_the_most_cropped_are_shown(clean, tmp_path):
    """By the sizes of the input files, which the pack does not keep."""
    (tmp_path / "in/a").mkdir(parents=True)
    expected = {}
    for number, (image, _) in enumerate(clean["train"][:40]):
        width = 64 + 12 * number
        turned = number == 39
        exif = Image.Exif()
        exif[0x0112] = 6
        Image.fromarray(image).resize((48, width) if turned else (width, 48)).save(
            tmp_path / f"in/a/{number:03}.png", **({"exif": exif} if turned else {}))
        expected[f"{number:03}.png"] = width / 48
    for name, options in (("squeezed", dict(resize=(64, 48))), ("cropped", dict(resize=48, crop=(64, 48)))):
        chunkhit.pack_images(tmp_path / "in", tmp_path / name, progress=False, **options)
    packs = [tmp_path / "squeezed", tmp_path / "cropped"]
    found = write_report(packs, tmp_path / "report.html", duplicates="none")
    page = (tmp_path / "report.html").read_text()
    worst = sorted(expected, key=lambda name: -expected[name])[:12]
    for text, shown in (("squeezed or stretched", lambda ratio: f"{ratio * 48 / 64:.2f} to 1"), ("to the crop", lambda ratio: f"{100 * (1 - 64 / 48 / ratio):.0f} % lost")):
        assert sum(text in line for line in found) == 1
        assert [name.split("/")[-1] for name in shown_files(page, text)] == worst
        part = next(part for part in page.split('<div class="finding')[1:] if text in part)
        assert re.findall(r"#\d+: ([^<]*)", re.sub('alt="[^"]*"', "", part))[:12] == [shown(expected[name]) for name in worst]
    shutil.rmtree(tmp_path / "in")
    assert write_report(packs, tmp_path / "gone.html", duplicates="none") == found
    page = (tmp_path / "gone.html").read_text()
    assert "which images of squeezed were squeezed or cropped most, as the input files are not there" in page


@pytest.mark.parametrize("options", [dict(resize=(40, 40)), dict(resize=40, crop=40), dict(fit=(40, 30)), dict(resize=(90, 60), crop=(30, 40)),
                                     dict(crop=(50, 20)), dict(fit=40, crop=(12, 12)), dict(resize=60, crop=(40, 80))])
def test_changes_of_inputs_are_those_that_the_pack_counts(tmp_path, options):
    (tmp_path / "in/a").mkdir(parents=True)
    Image.new("RGB", (300, 100)).save(tmp_path / "in/a/0.png")
    chunkhit.pack_images(tmp_path / "in", tmp_path / "pack", progress=False, **options)
    info = chunkhit.pack_info(tmp_path / "pack")
    squeeze, loss = changed((300, 100), info["spec"])
    assert squeeze == pytest.approx(info["inputs"]["max_squeeze"], rel=0.06)  # whole pixels of a few
    assert (loss if loss > 0.5 else 0) == pytest.approx(info["inputs"].get("max_crop_loss", 0), abs=0.03)


def test_what_is_no_image_has_no_size(tmp_path):
    Image.new("RGB", (30, 10)).save(tmp_path / "0.png")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "text.png").write_text("no image")
    assert size_of(tmp_path / "0.png", True) == (30, 10)
    assert [size_of(tmp_path / name, True) for name in ("fifo", "text.png", "gone.png", "")] == [None] * 4
    for text in ("0", "0x4", "-1", "4x", "x", "\u00b2", "1" * 5000, "none"):
        assert sides(text) == (0, 0)


def test_dark_images_are_normal_where_most_are(clean, tmp_path):
    found, _ = page_of(tmp_path, {"night": [(image // 8, label) for image, label in clean["train"]]})
    assert not any("nearly black" in line for line in found)


def test_images_of_16_bits_that_became_black_are_found(clean, tmp_path):
    (tmp_path / "in/a").mkdir(parents=True)
    for number, (image, _) in enumerate(clean["train"][:12]):
        Image.fromarray(image[..., 0].astype(np.uint16) * 16).save(tmp_path / f"in/a/{number:03}.png")
    chunkhit.pack_images(tmp_path / "in", tmp_path / "pack", channels="gray", progress=False)
    found = write_report(tmp_path / "pack", tmp_path / "report.html")
    most = max(int(image[..., 0].max()) for image, _ in clean["train"][:12]) * 16
    assert any(f"12 images of 12 are nearly black. 12 input files have 16 bits, with values of at most {most:,}: pack-images --scale-from "
               f"0,{most} keeps their levels" in line for line in found)


def test_classes_that_a_pack_lacks_are_shown(clean, tmp_path):
    packs = {"train": clean["train"], "val": [sample for sample in clean["val"] if sample[1] != 2]}
    found, page = page_of(tmp_path, packs)
    assert found == ["Classes: val: has no image of 1 class that other packs have: down"]
    assert len(shown_files(page, "has no image of")) == 6


def test_groups_that_packs_share_are_shown(clean, tmp_path):
    with open(tmp_path / "list.csv", "w") as file:
        file.write("file,label,split,patient\n")
        for name, samples in clean.items():
            for number, (image, label) in enumerate(samples):
                Image.fromarray(image).save(tmp_path / f"{name}{number}.png")
                file.write(f"{name}{number}.png,{CLASSES[label]},{name},p{number // 9 + (0 if name == 'train' or number < 9 else 50)}\n")
    chunkhit.pack_images(None, tmp_path / "packs", labels=tmp_path / "list.csv", split={"train": "train", "val": "val"}, split_column="split", keep_columns=["patient"],
                         progress=False)
    found = write_report(tmp_path / "packs", tmp_path / "report.html")
    assert found[0].startswith("Kept columns: Column patient: 1 of 19 values is in several packs of the split, as p0.")
    assert len(shown_files((tmp_path / "report.html").read_text(), "Column patient")) == 2


def noisy_photo(random, height=120, width=160):
    coarse = random.integers(0, 256, (9, 12, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.BICUBIC)).astype(np.int16)
    return np.clip(smooth + random.integers(-6, 7, smooth.shape), 0, 255).astype(np.uint8)


def test_a_page_of_photos_is_small_and_names_no_folder(tmp_path):
    random = np.random.default_rng(9)
    for number in range(288):
        (tmp_path / f"in/{number % 24:02}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(noisy_photo(random, 240, 320)).save(tmp_path / f"in/{number % 24:02}/{number:03}.jpg", quality=95)
    chunkhit.pack_images(tmp_path / "in", tmp_path / "pack", progress=False)
    write_report(tmp_path / "pack", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert len(page) < 1_500_000 and page.count("data:image/jpeg") > 72
    assert str(tmp_path) not in page


def test_a_page_of_many_packs_classes_and_findings_is_small(tmp_path):
    """Images are left out where there are many; each finding that costs most, and each class that is shown, keeps some."""
    random = np.random.default_rng(10)
    names = [f"class of a long name, number {number:04}" for number in range(3000)]
    shared = [noisy_photo(random) for _ in range(8)]
    for pack in range(6):
        with chunkhit.ImageWriter(tmp_path / f"packs/pack{pack}", classes=names) as writer:
            for number in range(150):
                image = noisy_photo(random)
                odd = number < 48
                image = [image // 8, 225 + image // 10, np.full_like(image, 90), image][number % 4] if odd else image
                image = shared[number - 142] if number >= 142 else image
                writer.add(image, pack * 10 if number > 80 else int(random.integers(0, 3000)), key=f"{'folder/' * 12}{pack}-{number:04}.png")
    packs = [tmp_path / f"packs/pack{pack}" for pack in range(6)]
    found = write_report(packs, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert len(found) > 30 and len(page.encode()) < 1_500_000 and str(tmp_path) not in page
    assert re.search("[0-9]+ images of findings and of the contact sheet would not fit on a page of 1.5 MB", page)
    assert len(shown_files(page, "pack0 and pack1 have 8 images in common")) >= 2
    sheet = page.split('id="sheet"')[1]
    shown = {anchor: len(re.findall("<figure", part)) for anchor, part in re.findall(r'id="(show\d+)">(.*?)(?=<div class="block|</section>)', sheet, re.DOTALL)}
    assert len(shown) == 30 and min(shown.values()) >= 1
    anchors = re.findall(r'href="#([^"]+)"', page)
    assert set(anchors) <= set(re.findall(r'id="([^"]+)"', page)), "no link leads to an image that was left out"


def test_a_click_on_a_class_shows_its_images_alone(clean, tmp_path):
    page = page_of(tmp_path, clean)[1]
    classes = page.split('<section id="classes">')[1].split("</section>")[0]
    links = dict((name, anchor) for anchor, name in re.findall(r'<a href="#(show\d+)">([^<]*)</a>', classes))
    assert set(links) == set(CLASSES)
    for name, anchor in links.items():
        block = re.search(f'id="{anchor}">(.*?)(?=<div class="block|</section>)', page, re.DOTALL).group(1)
        assert f"<h3>{name}</h3>" in block and 'href="#sheet">All classes' in block
        assert set(re.findall(r'figcaption title="(\d+).png"', block)) <= {f"{number:03}" for number in range(COUNT) if CLASSES[number % 3] == name}
    if browser.CHROMIUM is None:
        pytest.skip("chromium is not installed")
    everything = browser.look(tmp_path / "report.html")["visible"]
    for anchor in links.values():
        seen = browser.look(tmp_path / "report.html", fragment=f"#{anchor}")["visible"]
        assert seen == [block for block in everything if block == anchor] == [anchor]


def test_charts_have_names_in_words_and_tables(clean, tmp_path):
    page = page_of(tmp_path, clean)[1]
    charts = re.findall(r'<svg class="chart" role="img" aria-labelledby="([^"]*)"[^>]*><title id="([^"]*)">([^<]*)</title>', page)
    assert len(charts) == page.count("<svg") > 2 and all(named == own for named, own, _ in charts)
    assert len({own for _, own, _ in charts}) == len(charts)
    brightness = next(said for own, _, said in charts if own == "brightness-said")
    low, high, half = re.search(r"train: half lies between ([\d.]+) and ([\d.]+), the median is about ([\d.]+)", brightness).groups()
    means = [(image.astype(float) @ [0.299, 0.587, 0.114]).mean() for image, _ in clean["train"]]
    np.testing.assert_allclose([float(low), float(half), float(high)], np.quantile(means, [0.25, 0.5, 0.75]), atol=4)
    table = re.search(r'<details class="numbers">.*?</details>', page[page.index('id="brightness"'):], re.DOTALL).group()
    rows = [re.findall("<td>([^<]*)</td>", row) for row in re.findall("<tr>(.*?)</tr>", table)][1:]
    assert 2 < len(rows) <= 8 and sum(float(row[1][:-2]) for row in rows) == pytest.approx(100, abs=1)
    assert '<span class="hidden">train: </span>30' in page and 'role="listitem"' in page
    assert 'alt=""' not in page


def test_labels_stand_below_images(tmp_path):
    with chunkhit.ImageWriter(tmp_path / "pack", label_column=["cat", "dog", "owl"]) as writer:
        for number in range(4):
            writer.add(np.full((4, 4, 3), 40 * number, np.uint8), [[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 0, 1]][number])
    write_report(tmp_path / "pack", tmp_path / "report.html")
    below = re.findall(r'class="label-of">([^<]*)<', (tmp_path / "report.html").read_text().split('id="sheet"')[1])
    assert sorted(below) == ["cat", "cat", "cat, dog", "cat, owl"]
    with chunkhit.ImageWriter(tmp_path / "numbers", label_column=["yaw", "age <3"]) as writer:
        for number in range(3):
            writer.add(np.full((4, 4, 3), 40 * number, np.uint8), [number - 1.23456, 20 * number])
    write_report(tmp_path / "numbers", tmp_path / "report.html")
    below = re.findall(r'class="label-of">([^<]*)<', (tmp_path / "report.html").read_text().split('id="sheet"')[1])
    assert sorted(below) == ["yaw -0.2346, age &lt;3 20", "yaw -1.235, age &lt;3 0", "yaw 0.7654, age &lt;3 40"]


def test_texts_that_are_all_different_are_a_line(clean, tmp_path):
    with open(tmp_path / "list.csv", "w") as file:
        file.write("file,label,note\n")
        for number, (image, label) in enumerate(clean["train"][:30]):
            Image.fromarray(image).save(tmp_path / f"{number}.png")
            file.write(f"{number}.png,{label},text {number:02}\n")
    chunkhit.pack_images(None, tmp_path / "pack", labels=tmp_path / "list.csv", keep_columns=["note"], progress=False)
    write_report(tmp_path / "pack", tmp_path / "report.html")
    section = (tmp_path / "report.html").read_text().split('<section id="columns">')[1].split("</section>")[0]
    assert "30 texts, no two of them equal, as text 00." in section and 'class="bars' not in section


def test_a_card_has_the_worst_findings(clean, tmp_path):
    packs = {"train": clean["train"], "val": clean["val"] + clean["train"][:2]}
    page_of(tmp_path, packs, card=tmp_path / "card.png")
    page_of(tmp_path / "good", clean, card=tmp_path / "good.png")
    card, good = (np.asarray(Image.open(tmp_path / name).convert("RGB")) for name in ("card.png", "good.png"))
    assert card.shape == good.shape == (630, 1200, 3)
    red = np.all(card == (255, 123, 114), axis=2)
    assert red.sum() > 200 and not np.all(good == (255, 123, 114), axis=2).any()
    with pytest.raises(chunkhit.Error, match="card: expected a local name that ends in .png, found .*card.jpg") as error:
        write_report(tmp_path / "train", tmp_path / "report.html", card=tmp_path / "card.jpg")
    assert error.value.code == "usage"


def test_classes_of_few_images_are_not_judged_and_take_no_memory():
    """Numbers of images by classes were held for every class: of 10,000 persons 1.6 GB four times."""
    random = np.random.default_rng(3)
    points = random.normal(0, 0.1, (1000, 240)).astype(np.float32)
    labels = np.arange(1000) + 1000
    labels[:300], labels[300:600] = 5, 90_000
    points[:300, :40] += 1
    points[300:600, :40] -= 1
    labels[7], labels[307] = 90_000, 5
    found = find_label_errors(points, labels)
    assert {suspect.at: suspect.better for suspect in found.suspects} == {7: 5, 307: 90_000}
    assert found.checked == 1000 and 0.5 < found.agreement <= 1

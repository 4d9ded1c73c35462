"""What pack-report accuses: each test injects errors into clean packs, of which it finds nothing."""
import io
import re

import numpy as np
import pytest
from PIL import Image

import chunkhit
from chunkhit.report import write_report
from chunkhit.report._label_errors import find_label_errors

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


def test_a_page_of_photos_is_small_and_names_no_folder(tmp_path):
    random = np.random.default_rng(9)
    for number in range(288):
        (tmp_path / f"in/{number % 24:02}").mkdir(parents=True, exist_ok=True)
        coarse = random.integers(0, 256, (9, 12, 3), dtype=np.uint8)
        smooth = np.asarray(Image.fromarray(coarse).resize((320, 240), Image.BICUBIC)).astype(np.int16)
        noisy = np.clip(smooth + random.integers(-6, 7, smooth.shape), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(tmp_path / f"in/{number % 24:02}/{number:03}.jpg", quality=95)
    chunkhit.pack_images(tmp_path / "in", tmp_path / "pack", progress=False)
    write_report(tmp_path / "pack", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert len(page) < 1_500_000 and page.count("data:image/jpeg") > 72
    assert str(tmp_path) not in page


def test_labels_stand_below_images(tmp_path):
    with chunkhit.ImageWriter(tmp_path / "pack", label_column=["cat", "dog", "owl"]) as writer:
        for number in range(4):
            writer.add(np.full((4, 4, 3), 40 * number, np.uint8), [[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 0, 1]][number])
    write_report(tmp_path / "pack", tmp_path / "report.html")
    below = re.findall(r'class="label-of">([^<]*)<', (tmp_path / "report.html").read_text().split('id="sheet"')[1])
    assert sorted(below) == ["cat", "cat", "cat, dog", "cat, owl"]


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

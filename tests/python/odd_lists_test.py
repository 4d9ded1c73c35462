"""Lists of images that are nearly right: names in the other Unicode form, a dash among numbers, keys with two dots."""
import tarfile
import unicodedata

import pytest
from PIL import Image

import chunkhit
from error_test import raised


def image(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 6), (9, 9, 9)).save(path)


@pytest.mark.parametrize("stored, listed", [("NFD", "NFC"), ("NFC", "NFD")])
def test_a_file_named_in_the_other_unicode_form_was_not_there(tmp_path, stored, listed):
    name = "café/Übung ñ.png"
    image(tmp_path / "in" / unicodedata.normalize(stored, name))
    image(tmp_path / "in" / "cafe.png")
    Image.new("L", (8, 6), 1).save(tmp_path / "mask.png")
    mask = tmp_path / "masks" / unicodedata.normalize(listed, name)
    mask.parent.mkdir(parents=True)
    (tmp_path / "mask.png").rename(mask)
    (tmp_path / "list.csv").write_text(f"file,label\n{unicodedata.normalize(listed, name)},a\ncafé.png,a\n")
    out = tmp_path / "out"
    info = chunkhit.pack_images(tmp_path / "in", out, labels=tmp_path / "list.csv", max_errors=1, progress=False)
    assert info["samples"] == 1  # cafe.png is another file than café.png
    assert "café.png" in (out / "rejects.csv").read_text() and "no such file" in (out / "rejects.csv").read_text()
    (tmp_path / "in/cafe.png").unlink()
    chunkhit.pack_images(tmp_path / "in", tmp_path / "masked", pair=tmp_path / "masks", progress=False)
    again = chunkhit.pack_images(tmp_path / "in", tmp_path / "masked", pair=tmp_path / "masks", progress=False)
    assert again["samples"] == 1  # an unchanged input, found again


def test_two_files_that_a_name_may_mean_are_none(tmp_path):
    for name in ("é", "è"):
        image(tmp_path / "in" / unicodedata.normalize("NFD", f"{name}.png"))
    (tmp_path / "list.csv").write_text("file,label\né.png,a\n")
    assert "no such file" in raised("bad_data", chunkhit.pack_images, tmp_path / "in", tmp_path / "out", labels=tmp_path / "list.csv")


def test_a_dash_among_numbers_made_a_column_text_without_a_word(tmp_path, caplog):
    for number in range(5):
        image(tmp_path / f"in/{number}.png")
    ages = ["31", "—", "22.5", "", "40"]
    (tmp_path / "list.csv").write_text("file,label,age\n" + "".join(f"{n}.png,a,{age}\n" for n, age in enumerate(ages)))
    chunkhit.pack_images(tmp_path / "in", tmp_path / "out", labels=tmp_path / "list.csv", keep_columns=["age"])
    assert 'column "age" is text: 1 of 5 values is no number, as "—"' in caplog.text
    caplog.clear()
    (tmp_path / "list.csv").write_text("file,label,age\n" + "".join(f"{n}.png,a,{age}\n" for n, age in enumerate("abc12")))
    chunkhit.pack_images(tmp_path / "in", tmp_path / "texts", labels=tmp_path / "list.csv", keep_columns=["age"])
    assert "is text" not in caplog.text


def test_keys_with_two_dots_did_not_say_that_renaming_helps(tmp_path):
    image(tmp_path / "0.jpg")
    (tmp_path / "0.cls").write_text("1")
    with tarfile.open(tmp_path / "shard.tar", "w") as tar:
        for number in range(3):
            for kind in ("jpg", "cls"):
                tar.add(tmp_path / f"0.{kind}", f"img.{number:05}.{kind}")
    said = raised("bad_data", chunkhit.pack_images, tmp_path / "shard.tar", tmp_path / "out")
    assert "all up to the first dot of a name is its key, as in WebDataset" in said and "rename such files: a_1.cls" in said

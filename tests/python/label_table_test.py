"""Tables as competitions give them: ids for files, many label columns, several names in a cell."""
import os
import subprocess

import pytest
from PIL import Image

import chunkhit


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of 000.jpg to 011.jpg."""
    root = tmp_path_factory.mktemp("competition") / "train"
    root.mkdir()
    for number in range(12):
        Image.new("RGB", (8, 8), (number * 20, 0, 0)).save(root / f"{number:03}.jpg")
    return root


def table(folder, header, rows):
    path = folder.parent / "train.csv"
    path.write_text("".join([header + "\n", *(f"{row}\n" for row in rows)]))
    return path


def command(*arguments, code=0):
    done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-images"), *map(str, arguments), "--progress", "none"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == code, done.stdout
    return done.stdout


def test_the_extension_of_ids_is_appended(folder, tmp_path):
    ids = table(folder, "image_id,breed", [*(f"{n:03},{'ab'[n % 2]}" for n in range(12)), "012,"])
    said = command(folder, "--labels", ids, "--file-column", "image_id", "--label-column", "breed", "--max-errors", "1",
                   "-o", tmp_path / "out")
    assert f"note: file names of {ids} have no extension: .jpg is appended\n" in said
    assert "12 of 13 rows packed" in said
    assert (tmp_path / "out/rejects.csv").read_text().splitlines()[1] == "12,012.jpg,,label is missing"
    files = chunkhit.ImageDataset(tmp_path / "out").keys()
    assert sorted(files) == [f"{n:03}.jpg" for n in range(12)]


def test_ids_of_files_of_several_kinds_are_an_error(folder, tmp_path):
    ids = table(folder, "file,label", [f"{n:03},a" for n in range(12)])
    other = folder / "003.png"
    Image.new("RGB", (8, 8)).save(other)
    try:
        said = command(folder, "--labels", ids, "-o", tmp_path / "out", code=65)
    finally:
        other.unlink()
    assert (f"{ids}: file names have no extension, and files of these names below {folder} have several: 000.jpg, 003.png; write the "
            "extensions into the table, or give a folder of one kind as ROOT") in said


@pytest.mark.parametrize("rows", [["000,a", "001.jpg,a", "002.jpg,a"], ["x,a", "y,a"]])
def test_no_extension_is_appended_where_a_file_exists_or_none_has_the_name(folder, tmp_path, rows):
    said = command(folder, "--labels", table(folder, "file,label", rows), "-o", tmp_path / "out", "--max-errors", "1",
                   code=0 if "001.jpg,a" in rows else 65)
    assert "have no extension" not in said and "no such file" in said

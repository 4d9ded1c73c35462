"""Packs that the tests of the Python package share; they are made by the package's own writers."""
import contextlib
import os
import re

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image

import chunkhit

USERS, ITEMS = 211, 97


@pytest.fixture(scope="session")
def packs(tmp_path_factory):
    """The folder of images (100 of 8 x 6 pixels, two classes), and what was packed from them."""
    folder = tmp_path_factory.mktemp("packs")
    random = np.random.default_rng(1)
    for number in range(100):
        place = folder / "images" / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 256, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / f"{number:03}.png")
    with open(folder / "numbers.csv", "w") as file:
        file.write("file,x,y\n")
        file.writelines(f"{'ab'[n % 2]}/{n:03}.png,{n / 4},{-n}\n" for n in range(100))
    chunkhit.pack_images(folder / "images", folder / "hdf5", chunk_samples=7)
    chunkhit.pack_images(folder / "images", folder / "shard", chunk_samples=7, container="shard")
    chunkhit.pack_images(folder / "images", folder / "numbers", chunk_samples=7, labels=folder / "numbers.csv",
                         label_column=["x", "y"])
    return folder


@pytest.fixture(scope="session")
def ratings(tmp_path_factory):
    """The folder of ratings.csv and of the packs `whole` and `split`; half stars, as scipy's matrix of own ids."""
    folder = tmp_path_factory.mktemp("ratings")
    entries = sp.random(USERS, ITEMS, 0.15, random_state=1, format="coo")
    entries.data = np.random.default_rng(2).integers(1, 11, entries.nnz) / 2
    with open(folder / "ratings.csv", "w") as file:
        file.write("user,item,rating\n")
        file.writelines(f"u{u},i{i},{value:g}\n" for u, i, value in zip(entries.row, entries.col, entries.data))
    chunkhit.pack_sparse(folder / "ratings.csv", folder / "whole", chunk_rows=16)
    chunkhit.pack_sparse([folder / "ratings.csv"], folder / "split", chunk_rows=16, split_by="ratio", test=0.3)
    return folder, entries.tocsr()


@pytest.fixture(scope="session", params=["fixed", "own"])
def masked(request, tmp_path_factory):
    """A pack of 36 images with masks: 0 around a square of 1 or 4, and a pixel of 255; 9 in one, nothing but 0 in another."""
    folder = tmp_path_factory.mktemp("masked")
    random = np.random.default_rng(3)
    for number in range(36):
        height, width = (20, 30) if request.param == "fixed" else random.integers(12, 40, 2)
        mask = np.zeros((height, width), np.uint8)
        if number:
            mask[2:9, 3:10] = 1 + number % 2 * 3
            mask[0, number % 8] = 255
            mask[1, 1] = 9 * (number == 5)
        for kind, pixels, ending in (("images", random.integers(0, 256, (height, width, 3), np.uint8), ("png", "jpg")[number % 2]),
                                     ("masks", mask, "png")):
            place = folder / kind / "ab"[number % 3 == 0]
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(place / f"{number:02}.{ending}")
    files = sorted((folder / "images").glob("*/*"))  # without labels, folders are no classes of images with masks
    rows = [f"{file.parent.name}/{file.name},{file.parent.name}\n" for file in files]
    (folder / "labels.csv").write_text("".join(["file,label\n", *rows]))
    chunks = dict(chunk_samples=7) if request.param == "fixed" else {}
    chunkhit.pack_images(folder / "images", folder / "pack", pair=folder / "masks", labels=folder / "labels.csv", sizes=request.param,
                         **chunks)
    return folder


def own_numbers(reader, matrix_rows, matrix_columns):
    """The numbers in own ids such as "u17" of these rows, and of all columns."""
    rows = [int(reader.row_id(int(row))[1:]) for row in matrix_rows]
    return rows, [int(reader.column_id(column)[1:]) for column in range(matrix_columns)]


@pytest.fixture
def expected_rows(ratings):
    """A function that gives scipy's dense rows, in a reader's rows and columns."""
    _, matrix = ratings

    def expected(reader, rows):
        own_rows, own_columns = own_numbers(reader, rows, reader.column_count)
        return matrix[own_rows][:, own_columns].toarray().astype(np.float32)

    return expected


def resident_bytes():
    with open(f"/proc/{os.getpid()}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def network(monkeypatch, tmp_path):
    """No proxy, no settings of the user's, and 5 seconds for servers that fail."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "5")


@pytest.fixture
def logs(caplog):
    """A context whose block logs a warning that matches, or none where nothing may be logged; gives the records."""
    @contextlib.contextmanager
    def expect(match, logger="chunkhit.pack"):
        caplog.clear()
        records = []
        yield records
        records += [each for each in caplog.records if each.name.startswith("chunkhit")]
        texts = [each.getMessage() for each in records if (each.name, each.levelname) == (logger, "WARNING")]
        assert any(re.search(match, text) for text in texts) if match is not None else not records, texts

    return expect

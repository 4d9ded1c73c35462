"""What tars may be packed in, and where their labels come from when nothing lies beside the images."""
import bz2
import lzma
import os
import subprocess

import pytest

import chunkhit

from label_type_test import FILES, command
from tar_columns_test import write_tar

PACKED = {"xz": lzma.compress, "bz2": bz2.compress}


def folders(packs, path):
    return write_tar(path, {file: (packs / "images" / file).read_bytes() for file in FILES})


def flat(packs, path, files, more=()):
    return write_tar(path, {**{os.path.basename(file): (packs / "images" / file).read_bytes() for file in files}, **dict(more)})


def samples_of(output):
    """{key behind the tar's name: (label, pixels)}"""
    dataset = chunkhit.ImageDataset(output)
    images, labels = dataset[:]
    return {key.split("/", 1)[1]: (label, image.tobytes()) for key, label, image in zip(dataset.keys(), labels.tolist(), images)}


@pytest.mark.parametrize("ending", PACKED)
def test_compressed_tars_are_packed_as_plain_ones(packs, tmp_path, ending):
    content = folders(packs, tmp_path / "a.tar").read_bytes()
    chunkhit.pack_images(tmp_path / "a.tar", tmp_path / "plain")
    half = len(content) // 2
    for name, stored in ((f"a.tar.{ending}", PACKED[ending](content)),
                         ("any name", PACKED[ending](content[:half]) + PACKED[ending](content[half:]))):  # as pxz, pbzip2
        (tmp_path / name).write_bytes(stored)
        chunkhit.pack_images(tmp_path / name, tmp_path / f"pack of {name}")
        assert samples_of(tmp_path / f"pack of {name}") == samples_of(tmp_path / "plain")
    (tmp_path / "root").mkdir()
    os.rename(tmp_path / f"a.tar.{ending}", tmp_path / "root" / f"a.tar.{ending}")
    chunkhit.pack_images(tmp_path / "root", tmp_path / "from root")
    assert samples_of(tmp_path / "from root") == samples_of(tmp_path / "plain")


@pytest.mark.parametrize("ending", PACKED)
def test_damaged_and_truncated_streams_are_errors(packs, tmp_path, ending):
    stored = PACKED[ending](folders(packs, tmp_path / "a.tar").read_bytes())
    flipped = bytearray(stored)
    flipped[len(stored) // 2] ^= 0x55
    for name, content in (("cut", stored[:-1]), ("half", stored[: len(stored) // 2]), ("begin", stored[:12]),
                          ("flipped", bytes(flipped)), ("more", stored + b"no other stream")):
        (tmp_path / name).write_bytes(content)
        code, said = command(tmp_path / name, "-o", tmp_path / "out")
        assert code == 65 and f"{tmp_path}/{name}: " in said, (name, said)
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("ending", PACKED)
def test_what_unpacks_to_no_tar_ends_at_its_beginning(tmp_path, ending):
    """A quarter of a gigabyte in some kilobytes, of which no more than the beginning is unpacked."""
    packer = lzma.LZMACompressor() if ending == "xz" else bz2.BZ2Compressor()
    piece = b"x" * (1 << 20)
    with open(tmp_path / "bomb", "wb") as file:
        for _ in range(256):
            file.write(packer.compress(piece))
        file.write(packer.flush())
    code, said = command(tmp_path / "bomb", "-o", tmp_path / "out")
    assert code == 65 and "found neither a folder nor a tar (plain, gzip, zstd, xz or bzip2)" in said


@pytest.mark.parametrize("ending", PACKED)
def test_tables_and_ratings_are_read_compressed(packs, tmp_path, ending):
    rows = "\n".join(["file,label", *(f"{file},{file[0]}" for file in FILES)])
    (tmp_path / "rows").write_bytes(PACKED[ending](rows.encode()))
    chunkhit.pack_images(packs / "images", tmp_path / "out", labels=tmp_path / "rows")
    assert chunkhit.pack_info(tmp_path / "out")["samples"] == 10
    (tmp_path / f"ratings.csv.{ending}").write_bytes(PACKED[ending](b"user,item,rating\n1,2,3\n2,3,4\n"))
    chunkhit.pack_sparse(tmp_path / f"ratings.csv.{ending}", tmp_path / "ratings")
    assert chunkhit.pack_info(tmp_path / "ratings")["rows"] == 2


def test_tars_without_labels_and_folders_are_the_classes(packs, tmp_path):
    tars = [flat(packs, tmp_path / "dogs.tar", FILES[:4]), flat(packs, tmp_path / "cats.tar", FILES[4:])]
    code, said = command(*tars, "-o", tmp_path / "out")
    assert code == 0, said
    assert "note: no image has a label beside it or a folder above it, so that the name of its tar is its class: images of cats.tar are of the class cats" in said
    dataset = chunkhit.ImageDataset(tmp_path / "out")
    assert [(each["name"], each["samples"]) for each in dataset.info["classes"]] == [("cats", 6), ("dogs", 4)]
    assert all((key.split(".")[0] == "cats") == (label == 0) for key, label in zip(dataset.keys(), dataset.labels()))


@pytest.mark.parametrize("names", [["train-000.tar", "train-001.tar"], ["0.tar", "1.tar"], ["cats.tar"]])
def test_numbered_shards_and_a_lone_tar_are_no_classes(packs, tmp_path, names):
    tars = [flat(packs, tmp_path / name, FILES[:4]) for name in names]
    code, said = command(*tars, "-o", tmp_path / "out")
    assert code == 65 and ("has no class: expected .cls or .json of the same name beside it, or a folder above it; "
                            "--label-type none packs images without labels\n") in said


def test_an_image_without_folder_among_class_folders_is_a_reject(packs, tmp_path):
    alone = flat(packs, tmp_path / "alone.tar", FILES[:1])
    code, said = command(alone, folders(packs, tmp_path / "dogs.tar"), "-o", tmp_path / "out", "--max-errors", "1")
    assert code == 0, said
    assert sorted(samples_of(tmp_path / "out")) == sorted(FILES)
    assert (tmp_path / "out" / "rejects.csv").read_text().splitlines()[1].startswith('0,alone.tar/000.png,,"has no class: ')


def test_texts_beside_images_are_no_labels(packs, tmp_path):
    texts = {f"{n:03}.txt": b"cat" for n in range(10)}
    code, said = command(flat(packs, tmp_path / "a.tar", FILES, texts), "-o", tmp_path / "out")
    assert code == 65 and "or a folder above it; a .txt beside an image is not read as its label; --label-type none" in said
    labelled = {**texts, "000.cls": b"1"}
    code, said = command(flat(packs, tmp_path / "b.tar", FILES[:2], labelled), "-o", tmp_path / "out", "--max-errors", "9")
    assert code == 0, said
    assert "same name beside it; a .txt beside an image is not read as its label" in (tmp_path / "out" / "rejects.csv").read_text()


def test_patterns_in_quotes_name_files(packs, tmp_path):
    for name in ("cats-1.tar", "cats-0.tar", "dogs.tar"):
        flat(packs, tmp_path / name, FILES[:4])
    chunkhit.pack_images(tmp_path / "*.tar", tmp_path / "out", order="input")
    keys = chunkhit.ImageDataset(tmp_path / "out").keys()
    assert list(dict.fromkeys(key.split("/")[0] for key in keys)) == ["cats-0.tar", "cats-1.tar", "dogs.tar"]
    code, said = command(tmp_path / "*.tgz", "-o", tmp_path / "none")
    assert code == 65 and f"{tmp_path}/*.tgz: no such file or folder, and none has a name of this pattern" in said


def test_no_more_samples_are_in_a_chunk_than_in_the_pack(packs, tmp_path):
    code, said = command(packs / "images", "-o", tmp_path / "out", "--dry-run")
    assert code == 0 and "1 part, 1 chunk of 100 samples (" in said
    command(packs / "images", "-o", tmp_path / "out")
    info = subprocess.check_output([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-info"), tmp_path / "out"], text=True)
    assert "chunks     100 samples = " in info

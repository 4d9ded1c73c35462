"""Damage of every kind through every loader: an Error, or what was packed, and never anything else. More cases:
CHUNKHIT_DAMAGE_CASES=2000."""
import os
import random
import re
import shutil

import numpy as np
import pytest

import chunkhit

CASES = int(os.environ.get("CHUNKHIT_DAMAGE_CASES", "60"))
ORDERS = ("none", "window", "global")
RESIDENCIES = ("automatic", "decoded", "compressed", "none")
IMAGE_PACKS = {"hdf5": ("hdf5", "none"), "hdf5-zstd": ("hdf5", "zstd"), "shard": ("shard", "photo"),
               "raw-shard": ("shard", "none")}
MATRIX_PACKS = ("hdf5", "shard")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Pairs of packs with equal lists and other contents."""
    folder = tmp_path_factory.mktemp("damage")
    for twin in ("one", "two"):
        rng = np.random.default_rng(len(twin) if twin == "one" else 7)
        root = folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        for index in range(60):
            path = root / "abc"[index % 3] / f"{index:03}.ppm"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"P6 8 6 255\n" + rng.integers(0, 256, 144, dtype=np.uint8).tobytes())
        for name, (container, codec) in IMAGE_PACKS.items():
            chunkhit.pack_images(root, folder / twin / "images" / name, container=container, codec=codec,
                                 chunk_samples=7, part_bytes=2000)
        table = folder / "ratings.csv"
        values = rng.integers(1, 6, (150, 12))
        table.write_text("user,item,rating\n" + "".join(
            f"{user},{(user * 7 + k * k) % 40 + 100 * (k % 2)},{values[user, k]}\n" for user in range(150)
            for k in range(12) if k * k % 40 not in [j * j % 40 for j in range(k) if j % 2 == k % 2]))
        for name in MATRIX_PACKS:
            chunkhit.pack_sparse(table, folder / twin / "ratings" / name, container=name, part_bytes=300)
    return folder


def served(kind, path, order, cache, on_corrupt):
    """{number: bytes} of all samples or rows that a loader serves in two epochs, and how many it left out."""
    options = dict(batch_size=16, shuffle=order, cache=cache, threads=2, on_corrupt=on_corrupt, window_chunks=2)
    found = {}
    if kind == "images":
        with chunkhit.ImageLoader(path, **options) as loader:
            for epoch in range(2):
                for batch in loader.epoch(epoch):
                    for image, label, sample in zip(batch.images, batch.labels, batch.samples):
                        found.setdefault(int(sample), set()).add(image.tobytes() + label.tobytes())
            return found, loader.size, loader.stats().corrupt_samples
    with chunkhit.SparseLoader(path, format="dense_f32", **options) as loader:
        for epoch in range(2):
            for batch in loader.epoch(epoch):
                for row, number in zip(batch.x, batch.rows):
                    found.setdefault(int(number), set()).add(row.tobytes() + loader.row_id(int(number)).encode())
        return found, loader.size, loader.stats().corrupt_samples


def damage(rng, pack, twin):
    """Changes one of the files of a pack; what was done."""
    names = sorted(name for name in os.listdir(pack) if name in ("manifest.json", "items.csv") or name.startswith("part-"))
    parts = [name for name in names if name.endswith((".h5", ".zst"))]
    kind = rng.choice(("flip", "flip", "flip", "truncate", "zeros", "twin", "swap" if len(parts) > 1 else "twin"))
    path = os.path.join(pack, rng.choice(parts if rng.random() < 0.9 else names))
    if kind == "twin":
        path = os.path.join(pack, rng.choice(parts))
        shutil.copyfile(os.path.join(twin, os.path.basename(path)), path)
    elif kind == "swap":
        first, second = rng.sample(parts, 2)
        shutil.copyfile(os.path.join(pack, first), os.path.join(pack, "aside"))
        os.replace(os.path.join(pack, second), os.path.join(pack, first))
        os.replace(os.path.join(pack, "aside"), os.path.join(pack, second))
    else:
        data = bytearray(open(path, "rb").read())
        at = rng.randrange(len(data))
        if kind == "flip":
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "truncate":
            del data[at:]
        else:
            data[at:at + 64] = bytes(len(data[at:at + 64]))
        open(path, "wb").write(data)
    return kind, path


@pytest.mark.parametrize("kind,name", [("images", name) for name in IMAGE_PACKS]
                         + [("ratings", name) for name in MATRIX_PACKS])
def test_no_damage_is_served_in_silence(sources, tmp_path, kind, name):
    whole, twin = (os.path.join(sources, each, kind, name) for each in ("one", "two"))
    expected, size, _ = served(kind, whole, "none", "none", "fail")
    assert len(expected) == size
    outcomes = {"Error": 0, "left out": 0, "right": 0}
    rng = random.Random(f"{kind} {name}")
    for case in range(CASES):
        pack = str(tmp_path / str(case))
        shutil.copytree(whole, pack)
        done = damage(rng, pack, twin)
        order, cache, on_corrupt = rng.choice(ORDERS), rng.choice(RESIDENCIES), rng.choice(("fail", "skip"))
        try:
            found, _, left_out = served(kind, pack, order, cache, on_corrupt)
        except chunkhit.Error as error:
            assert error.code == "bad_data", (done, str(error))
            outcomes["Error"] += 1
        else:
            silent = [number for number in expected
                      if (number in found or not left_out) and found.get(number) != expected[number]]
            assert not silent, (done, order, cache, on_corrupt, silent)
            outcomes["left out" if left_out else "right"] += 1
        shutil.rmtree(pack)
    print(f"\n{kind} {name}: {CASES} cases: {outcomes}, 0 silent")
    assert outcomes["Error"] > CASES / 3


def flip_chunk(path):
    """Changes a byte of the first chunk, which is all of a small part."""
    data = bytearray(path.read_bytes())
    data[4096 + 100] ^= 1
    path.write_bytes(bytes(data))


def test_an_epoch_of_which_all_is_damaged_is_no_empty_one(sources, tmp_path):
    """It was empty, and the verdict said that no batch was asked for."""
    pack = tmp_path / "pack"
    shutil.copytree(sources / "one/images/raw-shard", pack)
    parts = sorted(pack.glob("part-*.zst"))
    assert len(parts) > 1
    loader = chunkhit.ImageLoader(pack, batch_size=16, on_corrupt="skip", cache="none")
    for part in parts:
        flip_chunk(part)
    with pytest.raises(chunkhit.Error, match="on_corrupt skip: no sample of the epoch is left, because all of its chunks are damaged"):
        list(loader.epoch(0))
    assert loader.stats().verdict() == "no batch: all 60 samples were left out as damaged"


def test_an_unfinished_pack_hid_the_damage_of_the_others(packs, tmp_path):
    for name in ("begun", "damaged", "whole"):
        shutil.copytree(packs / "hdf5", tmp_path / name)
    (tmp_path / "begun" / "manifest.json").unlink()
    part = next((tmp_path / "damaged").glob("part-*.h5"))
    os.truncate(part, part.stat().st_size - 1)
    found = chunkhit.verify_pack(tmp_path)
    assert "begun: no finished pack" in found["begun"]["problems"][0] and found["damaged"]["problems"] and not found["whole"]["problems"]
    assert found["begun"].keys() == found["whole"].keys()


@pytest.mark.parametrize("name", ["hdf5", "raw-shard"])
@pytest.mark.parametrize("change", [lambda part: part.unlink(), lambda part: os.truncate(part, part.stat().st_size - 1)])
def test_a_part_that_is_missing_or_truncated_is_never_skipped(sources, tmp_path, name, change):
    pack = tmp_path / "pack"
    shutil.copytree(sources / "one/images" / name, pack)
    change(sorted(pack.glob("part-00001.*"))[0 if name == "hdf5" else -1])
    with pytest.raises(chunkhit.Error, match="part-00001") as error:
        chunkhit.ImageLoader(pack, batch_size=16, on_corrupt="skip")
    assert error.value.code == "bad_data"


def test_damage_names_the_samples_of_the_pack_too(sources, tmp_path):
    pack = tmp_path / "pack"
    shutil.copytree(sources / "one/images/raw-shard", pack)
    before = [part["samples"] for part in chunkhit.pack_info(pack)["parts"]]
    flip_chunk(pack / "part-00001.zst")
    words = rf"part-00001.zst: chunk 0 \(samples 0-\d, {before[0]}-\d+ of the pack\): checksum"
    with pytest.raises(chunkhit.Error, match=words):
        list(chunkhit.ImageLoader(pack, batch_size=16).epoch(0))
    assert re.search(words, "\n".join(chunkhit.verify_pack(pack)["problems"]))

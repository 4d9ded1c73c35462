"""The types of options are those that C++ takes, and mypy finds what is misspelt."""
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import typing

import pytest

import chunkhit
from chunkhit import _types as types
from chunkhit._options import rows_of

from error_test import raised

PACKAGE = os.path.dirname(chunkhit.__file__)
SOURCES = os.path.dirname(os.path.realpath(chunkhit.__file__))


def test_words_are_those_of_cpp():
    """Those of dicts and of what the tables of C++ do not have."""
    of = {row.name: row.annotation for row in rows_of("image_loader") + rows_of("pack_images") + rows_of("sparse_loader")}
    for name, literal in (("resample", types.Resample), ("dtype", types.Dtype), ("layout", types.Layout)):
        assert set(typing.get_args(literal)) == set(re.findall('"(.*?)"', of[name])), name
    assert set(typing.get_args(types.RowFormat)) < set(re.findall('"(.*?)"', of["format"]))


@pytest.mark.parametrize("prefix, dictionary", [
    ("augment", types.Augment), ("augment.resized_crop", types.ResizedCrop), ("normalize", types.Normalize)])
def test_keys_of_dicts_are_those_of_cpp(packs, prefix, dictionary):
    option = dict(resized_crop=dict(typo=1)) if "." in prefix else dict(typo=1)
    message = raised("usage", chunkhit.ImageLoader, packs / "hdf5", dtype="float32", **{prefix.split(".")[0]: option})
    found, expected = message.split(": no such option; expected ")
    assert found == f"{prefix}.typo" and set(expected.split(", ")) == set(typing.get_type_hints(dictionary))


RIGHT = """
import pathlib
from typing import Tuple

import numpy as np
import torch

import chunkhit
import chunkhit.torch

loader = chunkhit.ImageLoader("train", batch_size=8, shuffle="window", threads="auto", layout="nchw", sampler="balanced",
                              augment=dict(flip_horizontal=0.5, resized_crop=dict(height=5, width=5, area=[0.1, 1])))
loader = chunkhit.ImageLoader({"a": 0.7, "b": 0.3}, shares="epoch", augment={"resize_short": 256, "resample": "box"})
loader = chunkhit.ImageLoader([pathlib.Path("a"), pathlib.Path("b")], dtype="float32", normalize=dict(mean=(0, 0, 0)))
chunkhit.ImageLoader("a", sampler=[1.0, 2], subset=[1, 2], dtype=np.float32)
chunkhit.torch.ImageLoader("a", dtype=torch.float32)
chunkhit.torch.ImageLoader("a", dtype=torch.bfloat16, augment={"flip_vertical": 0.5, "quarter_turns": True})
chunkhit.ImageLoader("a", dtype=np.float16)
print(loader.info["classes"][0]["name"].upper(), chunkhit.SparseDataset("b").info["matrices"][0]["nnz"])


def show(record: chunkhit.EpochRecord) -> None:
    print(record["epoch"] + 1, record["transform_seconds"] / record["seconds"], record["verdict"].upper())


loader.log_epochs(show)
chunkhit.ImageLoader("a", sampler=np.ones(2), subset=np.arange(2))
chunkhit.ImageLoader("a", sampler=torch.ones(2), subset=(0.5, 1))
chunkhit.ImageLoader("a", sampler={"cat": 1, "dog": 0.5}, subset=["cat", "dog"])
chunkhit.ImageLoader("a", subset="list.csv", cache="compressed", on_corrupt="skip", check_hashes="never")
with chunkhit.torch.ImageLoader("a", device="cuda", transform=torch.nn.Identity(), transform_ahead=2) as tensors:
    for images, labels in tensors.epoch(3):
        print(images.shape, labels.dtype)
    tensors.load_state_dict(tensors.state_dict())


def both(images: torch.Tensor, labels: torch.Tensor, *, batch: chunkhit.ImageBatch) -> Tuple[torch.Tensor, torch.Tensor]:
    return images + batch.epoch, labels


chunkhit.torch.ImageLoader("a", transform=both, rank=0, world_size=2, sample_transform=lambda image: image)
print(chunkhit.ImageDataset("a").classes[0].upper(), chunkhit.torch.ImageLoader("a").class_to_idx["b"] + 1)
chunkhit.show(["a", "b"], n=4).save(pathlib.Path("sheet.html"))
rows = chunkhit.torch.SparseLoader("b", format="csr", normalize="l2", shuffle="global")
for batch in chunkhit.SparseLoader("b", format="dense_u8"):
    print(batch.x, batch.rows)
print(chunkhit.SparseDataset("b", format="csr").column_count + 1, chunkhit.ImageDataset("a", cache="none").labels().shape)
chunkhit.pack_images("photos", "out", resize=(64, 64), crop=64, split={"train": 0.9, "val": 0.1}, max_errors=0.01,
                     container="shard", codec="zstd:5", sizes="fixed", label_column=["x", "y"])
chunkhit.pack_sparse(["a.csv", "b.csv"], "out", preset="vae-cf", user=1, item="movie", values="u8:0.5", test=10,
                     validation=0.1)
chunkhit.pack_sparse(None, "out", train_file="u1.base", test_file=["u1.test"], format="text")
with chunkhit.ImageWriter("out", resize=64, crop=(64, 64), container="shard", classes=["a", "b"]) as images:
    images.add(b"", 1, key="first")
with chunkhit.RatingWriter("out", preset="vae-cf", values="u8:0.5") as ratings:
    ratings.add([1, 2], ["a", "b"], [0.5, 1])
print(chunkhit.pack_dataset([(b"", 0)], "out", workers=2, label="labels", split={"train": 0.9, "val": 0.1})["train"])
print(chunkhit.pack_ratings({"user": [1], "item": [2]}, "out", value="none", time=4, keep_times=True)["pack_id"])
print(chunkhit.run_plan("out", task=range(3)), chunkhit.merge_packs(["a", "b"], "c")["samples"])
"""

WRONG = """
import numpy as np
import torch

import chunkhit
import chunkhit.torch

chunkhit.ImageLoader("a", shuffle="windows")
chunkhit.ImageLoader("a", shufle="window")
chunkhit.ImageLoader("a", batch_size="8")
chunkhit.ImageLoader("a", threads="automatic")
chunkhit.ImageLoader("a", sampler="balansed")
chunkhit.ImageLoader("a", cache="memory")
chunkhit.ImageLoader("a", check_hashes=True)
chunkhit.ImageLoader("a", augment={"flip": 0.5})
chunkhit.ImageLoader("a", augment=dict(flip=0.5))
chunkhit.ImageLoader("a", augment={"resized_crop": {"height": 5}})
chunkhit.ImageLoader("a", augment={"resized_crop": {"height": 5, "width": 5, "scale": (0.1, 1)}})
chunkhit.ImageLoader("a", augment={"resample": "cubic"})
chunkhit.ImageLoader("a", normalize={"average": [0, 0, 0]})
chunkhit.ImageLoader("a", layout="NCHW")
chunkhit.ImageLoader("a", dtype="float64")
chunkhit.ImageLoader("a", augment={"quarter_turns": 0.5})
chunkhit.ImageLoader("a", dtype=np.int64)
chunkhit.torch.ImageLoader("a", dtype=torch.float16, layout="NCHW")
chunkhit.ImageLoader("a").info["clases"]
chunkhit.ImageLoader({"a": "much"})
chunkhit.torch.ImageLoader("a", num_workers=2)
chunkhit.torch.ImageLoader("a", shuffle=True)
chunkhit.torch.ImageLoader("a", transform="flip")
chunkhit.torch.SparseLoader("a", format="coo")
chunkhit.SparseLoader("a", normalize="l3")
chunkhit.SparseLoader("a", sampler="balanced")
chunkhit.SparseDataset("a", format="dense_u8")
chunkhit.ImageDataset("a", shuffle="none")
chunkhit.pack_images("a", "b", container="tar")
chunkhit.pack_images("a", "b", chanels="rgb")
chunkhit.pack_images("a", "b", resize="64x64")
chunkhit.pack_images("a", "b", split=[0.9, 0.1])
chunkhit.pack_sparse("a", "b", split_by="user")
chunkhit.pack_sparse("a", "b", preset="vae_cf")
chunkhit.run_plan("a", task="1")
chunkhit.merge_packs("a")
chunkhit.ImageWriter("a", container="tar")
chunkhit.ImageWriter("a", labels="labels.csv")
chunkhit.RatingWriter("a", split_by="user")
chunkhit.RatingWriter("a", delimiter=",")
chunkhit.pack_dataset([], "a", worker=2)
chunkhit.pack_ratings({}, "a", delimiter=",")
"""


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """Gives pairs of file and line that mypy --strict finds something in: of the package's sources, or of programs that use
    it, whose keywords stand in stubs beside the sources."""
    pytest.importorskip("torch")
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    folder = tmp_path_factory.mktemp("types")
    (folder / "right.py").write_text(RIGHT)
    (folder / "wrong.py").write_text(WRONG)

    def find(package, *arguments):
        run = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), "--no-error-summary",
                              *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             cwd=folder, env={**os.environ, "MYPYPATH": os.path.dirname(package)})
        assert run.returncode < 2, run.stdout
        return re.findall(r"^(.*?):(\d+): (error: .*)$", run.stdout, re.M)

    return find


def test_the_package_passes_mypy_strict(findings):
    if not importlib.metadata.version("mypy").startswith("1.0."):
        pytest.skip("what Pillow and others have as types is that of Debian 12")
    assert findings(SOURCES, SOURCES) == []


def test_right_uses_of_the_package_pass_mypy_strict(findings):
    assert findings(PACKAGE, "--follow-imports=silent", "right.py") == []


def test_mypy_finds_each_wrong_use(findings):
    uses = [number for number, line in enumerate(WRONG.splitlines(), 1) if line.startswith("chunkhit")]
    assert len(uses) == 42
    found = findings(PACKAGE, "--follow-imports=silent", "wrong.py")
    assert sorted({int(line) for _, line, _ in found}) == uses

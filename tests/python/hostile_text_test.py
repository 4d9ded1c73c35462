"""Texts that no terminal and no option should take as they are."""
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import chunkhit
from error_test import raised

STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
NAME = "a\x1b[2J\u202etxt"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A folder of packs whose own names, classes and columns steer a terminal."""
    folder = tmp_path_factory.mktemp("hostile")
    for name in (NAME, "b"):
        (folder / "images" / name).mkdir(parents=True)
        for number in range(4):
            Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / "images" / name / f"{number}{NAME}.png")
    (folder / "packs").mkdir()
    chunkhit.pack_images(folder / "images", folder / "packs" / NAME)
    chunkhit.pack_images(folder / "images", folder / "packs" / "other")
    return folder


@pytest.mark.parametrize("arguments", [("pack-info", "packs"), ("pack-verify", "packs"), ("pack-info", f"packs/{NAME}"),
                                       ("pack-verify", f"packs/{NAME}/part-00000.h5"), ("pack-images", "images", "-o", "packs/other")])
def test_names_reached_the_terminal_as_they_were(hostile, arguments):
    done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], arguments[0]), *arguments[1:]], cwd=hostile,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.stdout and not STEERING.search(done.stdout), repr(done.stdout)


def test_pack_export_printed_what_it_was_given(hostile):
    done = subprocess.run([sys.executable, "-m", "chunkhit.export", f"packs/{NAME}", "-o", "out", "--classes", NAME + "2"],
                          cwd=hostile, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 2 and not STEERING.search(done.stdout), repr(done.stdout)
    done = subprocess.run([sys.executable, "-m", "chunkhit.export", f"packs/{NAME}", "-o", f"{NAME}.npz", "--quiet"],
                          cwd=hostile, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0 and not STEERING.search(done.stdout), repr(done.stdout)


@pytest.mark.parametrize("options", [dict(cache="\ud800"), dict(sampler="\ud800"), dict(subset="\ud800"), dict(threads="\ud800"),
                                     dict(dtype="\ud800")])
def test_a_lone_surrogate_was_a_raw_runtime_error(packs, options):
    assert next(iter(options)) in raised("usage", chunkhit.ImageLoader, packs / "hdf5", **options)


@pytest.mark.parametrize("options", [dict(codec="\ud800"), dict(resize="\ud800"), dict(split={"\ud800": 1.0}), dict(pad_color="\ud800")])
def test_so_was_one_of_packing(packs, tmp_path, options):
    raised("usage", chunkhit.pack_images, packs / "images", tmp_path / "out", **options)


@pytest.mark.parametrize("name", ["validation_file", "test_file", "train_file"])
def test_a_long_range_as_a_list_of_files_ate_all_memory(tmp_path, name):
    assert name in raised("usage", chunkhit.pack_sparse, None, tmp_path / "out", **{name: range(10**12)})


@pytest.mark.parametrize("options", [dict(classes=range(10**12)), dict(keep_columns=range(10**12))])
def test_so_did_other_lists(packs, tmp_path, options):
    with pytest.raises((chunkhit.Error, TypeError)):
        chunkhit.pack_images(packs / "images", tmp_path / "out", **options)


def test_a_range_names_samples(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=10, subset=range(20, 60, 2))
    seen = np.concatenate([batch.samples for batch in loader])
    assert seen.tolist() == list(range(20, 60, 2))
    with pytest.raises((chunkhit.Error, MemoryError)):
        chunkhit.ImageLoader(packs / "hdf5", subset=range(10**15))

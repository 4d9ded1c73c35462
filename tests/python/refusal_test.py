"""What readers refuse at once: damaged HDF5 parts of matrices, sources that do not fit each other, options in other units."""
import resource
import shutil

import h5py
import numpy as np
import pytest

import chunkhit
from error_test import raised


@pytest.fixture(scope="module")
def hdf5_pack(ratings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrices") / "hdf5"
    chunkhit.pack_sparse(ratings[0] / "ratings.csv", folder, container="hdf5", codec="none")
    return folder


def flipped(pack, to, place):
    shutil.copytree(pack, to)
    part = bytearray((to / "part-00000.h5").read_bytes())
    part[place(part)] ^= 1
    (to / "part-00000.h5").write_bytes(part)
    return to


@pytest.mark.parametrize("place", [lambda part: part.find(b"i17\0") + 2, lambda part: part.find(b"u17\0") + 2,
                                   lambda part: len(part) // 2, lambda part: len(part) - 1])
def test_a_flipped_bit_of_an_hdf5_pack_is_never_served(hdf5_pack, tmp_path, place):
    damaged = flipped(hdf5_pack, tmp_path / "damaged", place)
    for options in (dict(), dict(check_hashes="always"), dict(on_corrupt="skip")):
        message = raised("bad_data", chunkhit.SparseLoader, damaged, **options)
        assert "part-00000.h5: " in message and "checksum" in message and f"pack-verify {damaged}" in message
    assert "checksum" in raised("bad_data", chunkhit.SparseDataset, damaged)


def test_a_flipped_id_of_an_hdf5_pack_is_not_served_where_chunk_hashes_are_never_compared(hdf5_pack, tmp_path):
    damaged = flipped(hdf5_pack, tmp_path / "damaged", lambda part: part.find(b"i17\0") + 2)
    assert "HDF5 file: checksum" in raised("bad_data", chunkhit.SparseLoader, damaged, check_hashes="never")


def test_says_that_one_source_has_held_out_ratings_and_another_none(ratings):
    split = ratings[0] / "split"
    message = raised("bad_data", chunkhit.SparseLoader, [split / "train", split / "test"])
    assert "has held_out ratings" in message and "has no held_out ratings" in message


@pytest.mark.parametrize("scale", [0, float("nan"), float("inf")])
def test_refuses_a_scale_that_leaves_nothing(ratings, scale):
    assert "scale: must be finite and not 0" in raised("usage", chunkhit.SparseLoader, ratings[0] / "whole", scale=scale)


def test_refuses_a_mean_of_0_to_255(packs):
    message = raised("usage", chunkhit.ImageLoader, packs / "hdf5", dtype="float32",
                     normalize=dict(mean=[123.7, 116.3, 103.5], std=[58.4, 57.1, 57.4]))
    assert "normalize.mean: is above 1" in message and "divide" in message


def test_asks_for_a_mean_where_the_file_has_none(tmp_path):
    with h5py.File(tmp_path / "others.h5", "w") as file:
        file["images"] = np.zeros((4, 6, 8, 3), np.uint8)
        file["labels"] = np.arange(4)
    message = raised("usage", chunkhit.ImageLoader, tmp_path / "others.h5", dtype="float32")
    assert "has no mean and std of its own" in message


def test_says_that_images_are_packed_first(packs):
    message = raised("bad_data", chunkhit.ImageLoader, packs / "images")
    assert "manifest.json is missing; pack it first with pack-images" in message


def test_an_external_file_is_opened_by_another_program_once(tmp_path):
    with h5py.File(tmp_path / "others.h5", "w") as file:
        file["images"] = np.zeros((4, 6, 8, 3), np.uint8)
        file["labels"] = np.arange(4)

    def pages_of_children(reader):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        assert len(reader(tmp_path / "others.h5").labels()) == 4
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before

    assert pages_of_children(chunkhit.ImageDataset) > 0
    assert pages_of_children(chunkhit.ImageDataset) == 0

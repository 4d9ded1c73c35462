"""What is asked wrongly is said where it is asked, in words of Python."""
import os
import re
import subprocess

import numpy as np
import pytest
import scipy.sparse as sp

import chunkhit
from chunkhit import _flags, _packing

from error_test import raised


@pytest.mark.parametrize("number", [-1, 1.5, "a", 2**64, None, True])
def test_numbers_are_checked_where_they_are_given(packs, ratings, number):
    loader = chunkhit.SparseLoader(ratings[0] / "whole")
    dataset = chunkhit.SparseDataset(ratings[0] / "whole")
    for call, name in ((loader.epoch, "epoch"), (loader.set_epoch, "epoch"), (loader.row_id, "row"),
                       (loader.column_id, "column"), (dataset.row_id, "row"), (dataset.column_id, "column")):
        assert raised("usage", call, number) == (
            f"{name}: expected a whole number from 0 and below 2**64, found {number!r}")


def test_numbers_of_numpy_are_whole_numbers(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=50)
    assert next(loader.epoch(np.int64(3))).epoch == 3


@pytest.mark.parametrize("state", [{}, "x", None, {"other": "x"}, [1]])
def test_a_state_dict_of_another_kind_is_refused(packs, state):
    assert "that state_dict() gives" in raised("usage", chunkhit.ImageLoader(packs / "hdf5").load_state_dict, state)


@pytest.mark.parametrize("state", [{}, None, 5, "", "x", "{}", "[]", '{"epoch": 1}', b"x"])
def test_a_state_of_another_kind_is_refused(packs, state):
    loader = chunkhit.ImageLoader(packs / "hdf5")
    raised("usage", loader.restore, state)
    raised("usage", loader.load_state_dict, {"chunkhit": state})
    assert sum(len(images) for images, _ in loader) == 100


@pytest.mark.parametrize("paths", [None, 5, [5], [None], b"x", {"x"}])
def test_paths_of_another_kind_are_a_type_error(paths):
    for kind in (chunkhit.ImageLoader, chunkhit.ImageDataset, chunkhit.SparseLoader, chunkhit.SparseDataset,
                 chunkhit.pack_info):
        with pytest.raises(TypeError, match="expected a path or a list of paths"):
            kind(paths)
    with pytest.raises(TypeError, match="expected a path or a list of paths"):
        chunkhit.pack_info(["one", "two"])


def test_a_name_that_is_no_utf8_is_found_and_shown(packs, tmp_path):
    name = os.fsdecode(bytes(tmp_path) + b"/\xff")
    assert "\\xff" in raised("bad_data", chunkhit.ImageLoader, name)
    os.symlink(packs / "hdf5", name)
    assert len(chunkhit.ImageDataset(name)) == 100


def test_a_closed_loader_says_so(packs):
    with chunkhit.ImageLoader(packs / "hdf5", batch_size=10) as loader:
        batch = next(iter(loader))
        expected = batch.images.copy()
    assert repr(loader) == "<ImageLoader: closed>"
    for call in (loader.stats, loader.state, lambda: loader.epoch(0), lambda: len(loader)):
        assert "closed" in raised("usage", call)
    loader.close()
    np.testing.assert_array_equal(batch.images, expected)


def test_a_break_and_another_for_begin_the_epoch_again(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16, shuffle="global")
    first = next(iter(loader)).samples.tolist()
    assert next(iter(loader)).samples.tolist() == first


def test_readers_say_what_they_read(packs, ratings):
    texts = {repr(kind(path)): expected for kind, path, expected in (
        (chunkhit.ImageLoader, packs / "hdf5", "<ImageLoader: 100 samples, batches of (256, 6, 8, 3), 1 batch an epoch>"),
        (chunkhit.SparseLoader, ratings[0] / "whole", "<SparseLoader: 211 rows of 97 columns, 1 batch an epoch>"),
        (chunkhit.ImageDataset, packs / "hdf5", f"<ImageDataset: 100 samples of {packs / 'hdf5'}>"),
        (chunkhit.SparseDataset, ratings[0] / "whole", f"<SparseDataset: 211 rows of 97 columns of {ratings[0] / 'whole'}>"))}
    assert list(texts) == list(texts.values())
    loader = chunkhit.ImageLoader(packs / "hdf5", shuffle="window")
    assert repr(loader.stats()) == str(loader.stats())
    assert re.fullmatch(r"MixingInfo\(chunks=15, chunks_in_window=15, .*\)", repr(loader.mixing()))


def test_normalize_is_named_as_in_python(packs):
    assert 'dtype="float32"' in raised("usage", chunkhit.ImageLoader, packs / "hdf5", normalize=dict(mean=[0, 0, 0]))


@pytest.mark.parametrize("name, options, word", [
    ("pack-sparse", dict(value=None), 'value=None is ambiguous: leave it out to detect the column, or give "none"'),
    ("pack-sparse", dict(time=None), '"none"'),
    ("pack-images", dict(codec=None), '"none"'),
    ("pack-sparse", dict(codec=True), "(zstd), none"),
    ("pack-sparse", dict(split=True), "leave-one-out"),
    ("pack-images", dict(crop=False), "WxH"),
    ("pack-images", dict(no_such_flag=True), "no option of this name"),
    ("pack-images", dict(help=True), "no such option"),
    ("pack-sparse", dict(version=True), "no such option"),
    ("pack-images", dict(force="no"), "True or False"),
    ("pack-images", dict(resample=["box", "hamming"]), "one value"),
    ("pack-images", dict(resize=(1, 2, 3)), "one value"),
    ("pack-images", dict(resiz=(33, 33)), "no option of this name"),
])
def test_packing_refuses_what_would_mean_something_else(name, options, word):
    message = raised("usage", _packing.flags, options, _packing.find_command(name))
    assert word in message and message.startswith(*options)


@pytest.mark.parametrize("options, flags", [
    (dict(header=True), ["--header=yes"]),
    (dict(header=False), ["--header=no"]),
    (dict(binarize=False, force=False), ["--binarize=false", "--force=false"]),
    (dict(transpose=False), ["--no-transpose"]),
    (dict(seed=None, value="none"), ["--value=none"]),
    (dict(pad_color=(255, 0, 0), resize=[96, 128]), ["--pad-color=255,0,0", "--resize=96x128"]),
    (dict(label_column=("x", "y")), ["--label-column=x", "--label-column=y"]),
])
def test_values_mean_in_packing_what_they_mean_in_python(options, flags):
    assert _packing.flags(options, "no-command-is-asked") == flags


def test_switches_are_those_of_the_commands():
    found = set()
    for name in ("pack-images", "pack-sparse"):
        helped = subprocess.run([_packing.find_command(name), "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
        found |= set(re.findall(r"^  --([a-z-]+)  ", helped, re.MULTILINE)) - {"version"}
    assert found == {name.replace("_", "-") for name in _flags.SWITCHES}


def test_a_switch_that_is_off_is_off_whatever_the_preset_says(ratings, tmp_path):
    options = dict(preset="vae-cf", above=0, min_user=1, validation=5, test=5)
    plain = chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "kept", binarize=False, **options)
    ones = chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "ones", **options)
    assert plain["train"]["values"] != ones["train"]["values"]


@pytest.mark.parametrize("message, expected", [
    ("out: holds a pack; --force removes it, another --output keeps both",
     "out: holds a pack; force=True removes it, another output keeps both"),
    ("--no-such-flag=5: unknown", "no_such_flag=5: unknown"),
    ("INPUT is required; see pack-sparse --help", "INPUT is required; see pack-sparse --help"),
    ("a--force/b.csv: gone", "a--force/b.csv: gone"),
    ("--chunk-rows is for shards: give --container shard", "chunk_rows is for shards: give container shard"),
])
def test_what_the_commands_say_is_said_with_keywords(message, expected):
    assert _flags.as_keywords(message) == expected


@pytest.mark.parametrize("matrix", [sp.random(3, 3, 0.5, format="csr"), np.ones((3, 3))])
def test_a_matrix_in_memory_is_to_be_saved_first(tmp_path, matrix):
    with pytest.raises(TypeError, match="scipy.sparse.save_npz"):
        chunkhit.pack_sparse(matrix, tmp_path / "out")

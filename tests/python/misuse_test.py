"""What is asked wrongly is said where it is asked, in words of Python."""
import os
import re

import numpy as np
import pytest
import scipy.sparse as sp

import chunkhit

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
    raised("usage", loader.load_state_dict, {"chunkhit": state})
    assert sum(len(images) for images, _ in loader) == 100


@pytest.mark.parametrize("paths", [None, 5, [5], [None], b"x", {"x"}])
def test_paths_of_another_kind_are_a_type_error(paths):
    for kind in (chunkhit.ImageLoader, chunkhit.ImageDataset, chunkhit.SparseLoader, chunkhit.SparseDataset,
                 chunkhit.pack_info):
        with pytest.raises(TypeError, match="expected a path"):
            kind(paths)
    with pytest.raises(TypeError, match="expected a path"):
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
    for call in (loader.stats, loader.state_dict, lambda: loader.epoch(0), lambda: len(loader)):
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
    some = chunkhit.ImageLoader(packs / "hdf5", batch_size=10, subset=np.arange(25))
    assert repr(some) == "<ImageLoader: 25 of 100 samples, batches of (10, 6, 8, 3), 3 batches an epoch>"
    rows = chunkhit.SparseLoader(ratings[0] / "whole", subset=np.arange(7))
    assert repr(rows) == "<SparseLoader: 7 of 211 rows of 97 columns, 1 batch an epoch>"
    loader = chunkhit.ImageLoader(packs / "hdf5", shuffle="window")
    assert repr(loader.stats()) == str(loader.stats())
    assert re.fullmatch(r"MixingInfo\(chunks=15, chunks_in_window=15, .*\)", repr(loader.mixing()))


def test_one_sample_was_samples(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=2, subset=np.arange(1), threads=1)
    list(loader)
    assert str(loader.stats()).startswith("1 batch, 1 sample in ") and ", 1 thread, prefetch" in str(loader.stats())


def test_an_epoch_without_a_batch_named_no_numbers(packs):
    message = raised("usage", chunkhit.ImageLoader, packs / "hdf5", batch_size=1000, drop_last=True, rank=0, world_size=3)
    assert message == ("batch_size: no batch of 1,000 samples is left: 100 samples for 3 ranks; lower batch_size, or change drop_last or "
                       "rank_remainder")


def test_a_file_that_is_no_pack_named_no_command(ratings, tmp_path):
    path = ratings[0] / "ratings.csv"
    assert raised("bad_data", chunkhit.SparseLoader, path) == \
        f"{path}: neither an HDF5 file nor a chunkhit shard; pack images with pack-images, ratings with pack-sparse"
    assert "pack it first with pack-images" in raised("bad_data", chunkhit.ImageLoader, tmp_path)


def test_normalize_is_named_as_in_python(packs):
    assert 'dtype="float32"' in raised("usage", chunkhit.ImageLoader, packs / "hdf5", normalize=dict(mean=[0, 0, 0]))


@pytest.mark.parametrize("pack, options, message", [
    (chunkhit.pack_images, dict(crop=False), "crop: expected (width, height) or one side, found False"),
    (chunkhit.pack_images, dict(force="no"), "force: expected True or False, found 'no'"),
    (chunkhit.pack_images, dict(resample=["box", "hamming"]), "resample: expected bilinear, "),
    (chunkhit.pack_images, dict(resize=(1, 2, 3)), "resize: expected (width, height) or one side, found [1, 2, 3]"),
    (chunkhit.pack_images, dict(resize=(64,)), "resize: expected (width, height) or one side, found [64]"),
    (chunkhit.pack_images, dict(threads=0), "threads: expected a whole number from 1 to 4096, found 0"),
    (chunkhit.pack_images, dict(dry_run="no"), "dry_run: expected True or False, found 'no'"),
    (chunkhit.pack_sparse, dict(user=True), "user: expected a name, or a number from 1, found True"),
    (chunkhit.pack_images, dict(resize=(0, 2)), "resize: expected sides of 1 to 65535 pixels, found [0, 2]"),
    (chunkhit.pack_images, dict(resize=9, fit=(3, 3)), "resize and fit exclude each other"),
    (chunkhit.pack_images, dict(max_errors=-0.1), "max_errors: expected a count as an int or a share as a float, found -0.1"),
    (chunkhit.pack_images, dict(max_errors=float("nan")), "max_errors: expected a count as an int or a share as a float, found nan"),
    (chunkhit.pack_images, dict(background=(1, 2, 300)), "background: expected three whole numbers from 0 to 255"),
    (chunkhit.pack_images, dict(split="0.2"), "split: "),
    (chunkhit.pack_sparse, dict(split_by="leave-one-out", test=0), "test: expected 1, or nothing, for split_by leave-one-out, which"),
    (chunkhit.pack_sparse, dict(test=True), "test: expected a count as an int or a share as a float, found True"),
])
def test_packing_refuses_what_would_mean_something_else(tmp_path, pack, options, message):
    assert raised("usage", lambda: pack(tmp_path, tmp_path / "out", **options)).startswith(message)


def test_a_mask_is_no_subset_and_the_error_says_what_makes_one_of_it(packs):
    mask = chunkhit.ImageDataset(packs / "hdf5").labels() == 1
    assert "numpy.flatnonzero(mask)" in raised("usage", chunkhit.ImageLoader, packs / "hdf5", subset=mask)
    assert chunkhit.ImageLoader(packs / "hdf5", subset=np.flatnonzero(mask)).epoch_samples == 50


def test_a_misspelt_option_of_packing_is_a_type_error(tmp_path):
    for pack in (chunkhit.pack_images, chunkhit.pack_sparse):
        with pytest.raises(TypeError, match="no_such_option"):
            pack(tmp_path, tmp_path / "out", no_such_option=True)


def test_an_option_of_another_library_is_named_as_here(tmp_path):
    for name, expected in (("size", "resize= (with crop=), or fit= for whole images, is in its place"), ("num_workers", "threads= is in its place")):
        with pytest.raises(TypeError, match=re.escape(f"{name}: no such option; {expected}")):
            chunkhit.pack_images(tmp_path, tmp_path / "out", **{name: 64})


@pytest.mark.parametrize("shuffle, advice", [(True, '"window" shuffles samples and chunks, "global" all samples'),
                                             (False, '"none" keeps the order')])
def test_the_shuffle_of_a_dataloader_is_named_as_here(packs, ratings, shuffle, advice):
    for kind, path in ((chunkhit.ImageLoader, packs / "hdf5"), (chunkhit.SparseLoader, ratings[0] / "whole")):
        with pytest.raises(TypeError, match=f"^shuffle: expected none, window, global, found {shuffle}; {advice}$"):
            kind(path, shuffle=shuffle)


@pytest.mark.parametrize("augment, said", [
    ({"crop_height": 999, "crop_width": 8}, "a crop of 999 x 8 of samples of "),
    ({"resize_short": 4, "crop_height": 6, "crop_width": 8}, "a crop of 6 x 8 of images with a short side of 4 ")])
def test_black_borders_of_a_crop_are_told(packs, augment, said):
    """A crop larger than the samples gave batches that are mostly black, and no word."""
    found = chunkhit.ImageLoader(packs / "hdf5", augment=augment).stats().notices
    assert any(f"augment: {said}" in each and "black borders" in each for each in found), found
    assert not chunkhit.ImageLoader(packs / "hdf5", augment={"crop_height": 4, "crop_width": 4}).stats().notices


def test_a_switch_that_is_off_is_off_whatever_the_preset_says(ratings, tmp_path):
    options = dict(preset="vae-cf", above=0, min_user=1, validation=5, test=5)
    plain = chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "kept", binarize=False, **options)
    ones = chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "ones", **options)
    assert plain["train"]["values"] != ones["train"]["values"]


@pytest.mark.parametrize("matrix", [sp.random(3, 3, 0.5, format="csr"), np.ones((3, 3))])
def test_a_matrix_in_memory_is_for_a_writer(tmp_path, matrix):
    with pytest.raises(TypeError, match="RatingWriter packs what is in memory"):
        chunkhit.pack_sparse(matrix, tmp_path / "out")


@pytest.mark.parametrize("split", ["train=0.8,val=0.2", 0.8, {"train": "x"}, {1: 0.5, "b": 0.5}])
def test_a_split_that_is_no_dict_of_shares_is_a_type_error(tmp_path, split):
    with pytest.raises(TypeError, match="split: expected shares by name"):
        chunkhit.pack_images(tmp_path, tmp_path / "pack", split=split)


@pytest.mark.parametrize("progress", [3, "loud", []])
def test_a_progress_that_nothing_can_call_is_a_type_error(tmp_path, progress):
    with pytest.raises(TypeError, match="progress: expected"):
        chunkhit.pack_sparse(tmp_path / "ratings.csv", tmp_path / "pack", progress=progress)


def test_a_reject_of_a_table_with_another_file_column_was_a_key_error(packs, tmp_path, logs):
    rows = [f"{path.relative_to(packs)},{path.parent.name}" for path in sorted((packs / "images").glob("*/*.png"))]
    (tmp_path / "list.csv").write_text("Image File,Class\n" + "\n".join([*rows, "images/a/none.png,a"]) + "\n")
    with logs("the first is images/a/none.png: no such file"):
        found = chunkhit.pack_images(packs, tmp_path / "out", labels=tmp_path / "list.csv", file_column="Image File",
                                     label_column="Class", max_errors=1)
    assert found["rejected"] == 1


def test_words_that_help_names_are_taken(tmp_path, logs):
    (tmp_path / "r.csv").write_text("user,item,rating\n1,2,3\n4,5,6\n4,5\n")
    options = dict(format="auto", user="auto", reuse_ids="none", delimiter="auto", quote="auto", on_error="skip", max_errors=1)
    with logs("1 bad line was left out"):
        assert chunkhit.pack_sparse(tmp_path / "r.csv", tmp_path / "out", **options)["rows"] == 2
    del options["reuse_ids"]
    with logs("1 bad line was left out"):
        assert chunkhit.count_items(tmp_path / "r.csv", tmp_path / "items.csv", **options)["items"] == 2


def test_sizes_are_numbers_or_texts_as_of_the_commands(packs, ratings, tmp_path):
    """What the limit is shows in how far it is exceeded."""
    for small, large in ((1024, 2 << 30), ("1K", "2G"), ("1024", "1.5GiB")):
        with pytest.raises(chunkhit.Error, match="memory_bytes") as error:
            chunkhit.ImageLoader(packs / "hdf5", memory_bytes=small)
        assert error.value.code == "usage"
        assert len(chunkhit.ImageLoader(packs / "hdf5", memory_bytes=large, cache_bytes="1M")) == 1
    chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "pack", memory_bytes="1G", part_bytes="64M")
    assert chunkhit.pack_info(tmp_path / "pack")["spec"]["part-bytes"] == str(64 << 20)
    with pytest.raises(chunkhit.Error, match="memory_bytes: expected a size like 512M or 2G, found '2 gigs'"):
        chunkhit.ImageLoader(packs / "hdf5", memory_bytes="2 gigs")

"""Errors, and what a loader is after one."""
import pickle
import threading
import time

import pytest

import chunkhit


def raised(code, call, *arguments, **options):
    with pytest.raises(chunkhit.Error) as caught:
        call(*arguments, **options)
    assert caught.value.code == code
    return str(caught.value)


def test_names_what_was_not_found(tmp_path):
    for call in (chunkhit.ImageLoader, chunkhit.ImageDataset, chunkhit.SparseLoader, chunkhit.SparseDataset,
                 chunkhit.pack_info):
        assert str(tmp_path / "gone") in raised("bad_data", call, tmp_path / "gone")


@pytest.mark.parametrize("options, message", [
    (dict(batch_size=0), "batch_size: expected a whole number from 1 to"),
    (dict(batch_size=-1), "batch_size: expected a whole number from 0 and below 2**64, found -1"),
    (dict(batch_size=2.5), "batch_size: expected a whole number from 0 and below 2**64, found 2.5"),
    (dict(shuffle="some"), "shuffle: expected none, window, global, found 'some'"),
    (dict(layout="hwc"), "layout: expected nhwc, nchw, found 'hwc'"),
    (dict(drop_last="no"), "drop_last: expected True or False, found 'no'"),
    (dict(rank=2, world_size=2), "rank: expected less than world_size 2, found 2"),
    (dict(augment=dict(flip=0.5)), "augment.flip: no such option"),
    (dict(augment=0.5), "augment: expected a dict, found 0.5"),
    (dict(normalize=dict(mean="x")), "normalize.mean: expected a list of numbers, found 'x'"),
])
def test_names_the_option_that_makes_no_sense(packs, options, message):
    assert message in raised("usage", chunkhit.ImageLoader, packs / "hdf5", **options)


def test_a_misspelt_option_is_a_type_error(packs):
    with pytest.raises(TypeError, match="batchsize") as caught:
        chunkhit.ImageLoader(packs / "hdf5", batchsize=1)
    for copy in (caught.value, pickle.loads(pickle.dumps(caught.value)), type(caught.value)("again")):
        assert isinstance(copy, TypeError) and isinstance(copy, chunkhit.Error) and copy.code == "usage"


def test_says_which_class_reads_the_other_kind(packs, ratings):
    assert "ImageLoader reads it" in raised("bad_data", chunkhit.SparseLoader, packs / "hdf5")
    raised("bad_data", chunkhit.ImageLoader, ratings[0] / "whole")


def test_a_damaged_chunk_ends_the_epoch_or_is_left_out(packs, tmp_path):
    part = bytearray((packs / "hdf5" / "part-00000.h5").read_bytes())
    first = next(iter(chunkhit.ImageLoader(packs / "hdf5", batch_size=7))).images.tobytes()
    part[part.find(first)] ^= 1
    (tmp_path / "part-00000.h5").write_bytes(part)
    loader = chunkhit.ImageLoader(tmp_path / "part-00000.h5", batch_size=10)
    assert "checksum" in raised("bad_data", list, loader)
    assert "checksum" in raised("bad_data", list, loader)
    rest = chunkhit.ImageLoader(tmp_path / "part-00000.h5", batch_size=10, on_corrupt="skip")
    assert sum(len(images) for images, _ in rest) == 93
    assert (rest.stats().corrupt_chunks, rest.stats().corrupt_samples) == (1, 7)
    raised("bad_data", chunkhit.ImageDataset(tmp_path / "part-00000.h5").__getitem__, 0)


def test_an_error_is_pickled_with_its_code():
    error = pickle.loads(pickle.dumps(chunkhit.Error("no room", "cannot_write")))
    assert (str(error), error.code) == ("no room", "cannot_write")


@pytest.mark.parametrize("code", ["usage", "bad_data", "too_many_rejects", "cannot_write", "try_again", "another"])
def test_an_error_keeps_its_code(code):
    error = chunkhit.Error("no room", code)
    for copy in (error, pickle.loads(pickle.dumps(error)), type(error)(message="again", code=error.code)):
        assert isinstance(copy, chunkhit.Error) and copy.code == code
    if code != "another":
        assert type(error)("again").code == code


def test_a_loader_is_for_one_thread_at_a_time(packs):
    """Others get an Error, or their own batches: never one batch twice."""
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=1, shuffle="global")
    epoch, seen, refused = loader.epoch(0), [], []

    def consume():
        while True:
            try:
                seen.append(int(next(epoch).samples[0]))
            except StopIteration:
                return
            except chunkhit.Error as error:
                refused.append(error.code)
                time.sleep(0.001)

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(100))
    assert set(refused) <= {"usage"}

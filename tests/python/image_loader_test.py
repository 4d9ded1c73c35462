"""ImageLoader beside h5py and Pillow."""
import os
import re
import sys

import h5py
import numpy as np
import pytest
from PIL import Image

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from described_order import resized_crop  # noqa: E402


@pytest.fixture(scope="module")
def stored(packs):
    with h5py.File(packs / "hdf5" / "part-00000.h5") as part:
        return part["images"][:], part["labels"][:]


@pytest.mark.parametrize("pack", ["hdf5", "shard"])
@pytest.mark.parametrize("shuffle", ["none", "window", "global"])
def test_gives_the_pixels_and_labels_that_h5py_reads(packs, stored, pack, shuffle):
    images, labels = stored
    loader = chunkhit.ImageLoader(packs / pack, batch_size=16, shuffle=shuffle, seed=3)
    for epoch in range(3):
        seen = []
        for index, batch in enumerate(loader.epoch(epoch)):
            pixels, classes = batch
            np.testing.assert_array_equal(pixels, images[batch.samples])
            np.testing.assert_array_equal(classes, labels[batch.samples])
            assert (batch.epoch, batch.index) == (epoch, index)
            assert batch.images is pixels and batch.labels is classes
            seen += batch.samples.tolist()
        assert sorted(seen) == list(range(100))
        assert (seen == sorted(seen)) == (shuffle == "none")


def test_says_shapes_and_types(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16, layout="nchw", dtype="float32")
    images, labels = next(iter(loader))
    assert loader.batch_shape == images.shape == (16, 3, 6, 8)
    assert (images.dtype, labels.dtype, labels.shape) == (np.float32, np.int64, (16,))
    assert len(loader) == 7 and loader.size == 100
    assert loader.info["samples"] == 100


def test_gives_numbers_where_labels_are_numbers(packs):
    for images, labels in chunkhit.ImageLoader(packs / "numbers", batch_size=16):
        assert labels.dtype == np.float32
        np.testing.assert_array_equal(labels[:, 1], -4 * labels[:, 0])


def test_normalises_with_what_it_is_given(packs, stored):
    loader = chunkhit.ImageLoader(packs / "hdf5", dtype="float32", normalize=dict(mean=[0.5, 0.25, 0.0], std=[1, 2, 4]))
    images, _ = next(iter(loader))
    shares = stored[0].astype(np.float32) / np.float32(255)
    np.testing.assert_array_equal(images, (shares - np.float32([0.5, 0.25, 0])) / np.float32([1, 2, 4]))


def test_mirrors_and_crops(packs, stored):
    loader = chunkhit.ImageLoader(packs / "hdf5", augment=dict(flip_horizontal=1.0, crop_height=4, crop_width=4))
    images, _ = next(iter(loader))
    np.testing.assert_array_equal(images, stored[0][:, 1:5, 2:6][:, :, ::-1])


def test_resizes_random_crops(packs, stored):
    augment = dict(resized_crop=dict(height=5, width=7, area=(0.3, 0.9), aspect=[0.5, 2]), resample="bicubic")
    loader = chunkhit.ImageLoader(packs / "hdf5", seed=7, augment=augment)
    batch = next(iter(loader.epoch(2)))
    for image, pixels, sample in zip(batch.images, stored[0], batch.samples, strict=False):
        top, left, height, width = resized_crop(*pixels.shape[:2], (0.3, 0.9), (0.5, 2), 7, 2, int(sample))
        crop = Image.fromarray(pixels[top : top + height, left : left + width])
        np.testing.assert_array_equal(image, np.asarray(crop.resize((7, 5), Image.BICUBIC)))


def test_resizes_and_crops_the_centre(packs, stored):
    loader = chunkhit.ImageLoader(packs / "hdf5", augment=dict(resize_short=12, crop_height=10, crop_width=11))
    images, _ = next(iter(loader))
    height, width = stored[0].shape[1:3]
    size = (12, int(12 * height / width)) if width <= height else (int(12 * width / height), 12)
    top, left = round((size[1] - 10) / 2), round((size[0] - 11) / 2)
    whole = np.asarray(Image.fromarray(stored[0][0]).resize(size, Image.BILINEAR))
    np.testing.assert_array_equal(images[0], whole[top : top + 10, left : left + 11])


@pytest.mark.parametrize("augment, words", [
    (dict(resized_crop=dict(height=5)), "augment.resized_crop.height: goes with resized_crop.width"),
    (dict(resized_crop={}), "augment.resized_crop.height: is required"),
    (dict(resized_crop=dict(area=(0.1, 1))), "augment.resized_crop.height: is required"),
    (dict(resized_crop=dict(height=True, width=5)), "augment.resized_crop.height: expected a whole number"),
    (dict(resized_crop=dict(height=5, width=5, area=(1,))), "augment.resized_crop.area: expected two numbers"),
    (dict(resized_crop=dict(height=5, width=5, scale=(1, 1))), "augment.resized_crop.scale: no such option; area= is in its place"),
    (dict(resized_crop=dict(height=5, width=5, ratio=(1, 1))), "augment.resized_crop.ratio: no such option; aspect= is in its place"),
    (dict(resized_crop=dict(size=5)), "augment.resized_crop.size: no such option; height= and width= are in its place"),
    (dict(flip=0.5), "augment.flip: no such option; flip_horizontal= is in its place"),
    (dict(flip_horizontaly=0.5), 'augment.flip_horizontaly: no such option; did you mean "flip_horizontal"?'),
    (dict(banana=0.5), "augment.banana: no such option; expected flip_horizontal, crop_height"),
    (dict(resized_crop=224), "resized_crop: expected a dict"),
    (dict(resample="cubic"), "augment.resample: expected bilinear"),
    (dict(resample="bilinaer"), "found 'bilinaer'; did you mean \"bilinear\"?"),
])
def test_names_the_wrong_option_of_a_resize(packs, augment, words):
    with pytest.raises(chunkhit.Error, match=re.escape(words)):
        chunkhit.ImageLoader(packs / "hdf5", augment=augment)


def test_reads_several_packs_as_one(packs):
    assert chunkhit.ImageLoader([packs / "hdf5", packs / "shard"]).size == 200


def test_a_held_batch_keeps_its_pixels(packs, stored):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16, shuffle="global", prefetch=1, threads=1)
    held = [batch for epoch in range(4) for batch in loader.epoch(epoch)]
    samples = [batch.samples for epoch in range(4) for batch in chunkhit.ImageLoader(
        packs / "hdf5", batch_size=16, shuffle="global").epoch(epoch)]
    assert loader.stats().retained_batches >= len(held) - 1
    del loader
    assert len({batch.images.__array_interface__["data"][0] for batch in held}) == len(held)
    for batch, expected in zip(held, samples, strict=True):
        np.testing.assert_array_equal(batch.images, stored[0][expected])


def test_one_array_alone_keeps_its_batch(packs, stored):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16, prefetch=1, threads=1)
    labels = [labels for _, labels in loader]
    del loader
    np.testing.assert_array_equal(np.concatenate(labels), stored[1])


def test_memory_of_batches_that_nobody_holds_is_used_again(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16, prefetch=2, threads=1)
    places = {images.__array_interface__["data"][0] for epoch in range(20) for images, _ in loader.epoch(epoch)}
    assert len(places) <= 5  # three in the ring, the caller's, and the one that was returned


def test_batches_may_be_written_to(packs, stored):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16, prefetch=1, threads=1)
    for epoch in range(3):
        for batch in loader.epoch(epoch):
            np.testing.assert_array_equal(batch.images, stored[0][batch.samples])
            batch.images[:] = 1
            batch.labels[:] = 2


def test_arrays_share_memory_by_dlpack_and_the_buffer_protocol(packs):
    images, _ = next(iter(chunkhit.ImageLoader(packs / "hdf5")))
    assert memoryview(images).shape == images.shape
    assert np.shares_memory(memoryview(images), images)
    assert np.shares_memory(np.from_dlpack(images), images)


def test_an_allocator_gives_the_memory_of_the_images(packs):
    buffers = []

    def allocate(byte_count):
        buffers.append(np.zeros(byte_count + 64, np.uint8))
        return buffers[-1][-buffers[-1].ctypes.data % 64:][:byte_count]

    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16, allocator=allocate)
    for images, _ in loader:
        assert any(np.shares_memory(images, each) for each in buffers)


def test_an_allocator_that_raises_is_heard(packs):
    with pytest.raises(ZeroDivisionError):
        chunkhit.ImageLoader(packs / "hdf5", allocator=lambda byte_count: 1 // 0)
    with pytest.raises(chunkhit.Error, match="gave a buffer of 5 bytes"):
        chunkhit.ImageLoader(packs / "hdf5", allocator=lambda byte_count: bytearray(5))


def test_ranks_share_the_samples_out(packs):
    ranks = [chunkhit.ImageLoader(packs / "hdf5", batch_size=10, shuffle="global", rank=rank, world_size=2)
             for rank in range(2)]
    seen = [sample for loader in ranks for batch in loader for sample in batch.samples.tolist()]
    assert sorted(seen) == list(range(100))


def test_an_epoch_ends_when_another_begins(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16)
    first = loader.epoch(0)
    next(first)
    loader.epoch(1)
    with pytest.raises(chunkhit.Error, match="another one was begun"):
        next(first)


def test_iterating_goes_on_from_epoch_to_epoch(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5")
    assert [next(iter(list(loader))).epoch for _ in range(3)] == [0, 1, 2]
    loader.set_epoch(7)
    assert [next(iter(list(loader))).epoch for _ in range(2)] == [7, 8]


def test_statistics_say_what_was_handed_out(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16, threads=1, cache="decoded")
    for _ in loader:
        pass
    stats = loader.stats()
    assert (stats.batches, stats.samples, stats.threads, stats.cache) == (7, 100, 1, "decoded")
    assert "7 batches" in str(stats) and stats.seconds >= stats.wait_seconds
    stats.seconds = 0.9
    assert "no verdict before a second of data" in stats.verdict()
    loader.reset_stats()
    assert loader.stats().batches == 0


def test_batches_keep_their_pixels_when_memory_runs_out(packs, stored):
    """The caller that goes on after the failure must not see what it holds overwritten."""
    left = 4

    def allocate(byte_count):
        nonlocal left
        left -= 1
        if left < 0:
            raise MemoryError
        memory = np.zeros(byte_count + 64, np.uint8)
        return memory[-memory.ctypes.data % 64:][:byte_count]

    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16, prefetch=1, threads=1, allocator=allocate)
    epoch, held, failures = loader.epoch(0), [], 0
    while True:
        try:
            held.append(next(epoch))
        except MemoryError:
            failures += 1
            left = 1
        except StopIteration:
            break
    assert len(held) == 7 and failures > 0
    for number, batch in enumerate(held):
        np.testing.assert_array_equal(batch.images, stored[0][16 * number : 16 * number + 16])


def test_processes_of_torchrun_share_the_cpus_of_a_machine(packs, monkeypatch):
    path = packs / "hdf5"
    alone = chunkhit.ImageLoader(path).stats().threads
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert chunkhit.ImageLoader(path).stats().threads == max(1, alone // 2)
    assert chunkhit.ImageLoader(path, threads=3).stats().threads == 3


def test_automatic_threads_and_prefetch_give_the_same_batches(packs):
    fixed = chunkhit.ImageLoader(packs / "hdf5", batch_size=7, shuffle="global", seed=3, threads=1)
    tuned = chunkhit.ImageLoader(packs / "hdf5", batch_size=7, shuffle="global", seed=3, threads="auto", prefetch="auto",
                                 memory_bytes=64 << 20)
    for epoch in range(3):
        for mine, other in zip(tuned.epoch(epoch), fixed.epoch(epoch)):
            assert np.array_equal(mine.images, other.images) and np.array_equal(mine.samples, other.samples)
    stats = tuned.stats()
    assert stats.threads >= 1 and stats.prefetch >= 1 and all("batch" in text for text in stats.tuning)
    assert fixed.stats().tuning == [] and fixed.stats().threads == 1 and fixed.stats().prefetch == 4


@pytest.mark.parametrize("number", ["automatic", -1, 1.5, True, 4097, 2**32 - 1])
@pytest.mark.parametrize("name", ["threads", "prefetch"])
def test_numbers_that_are_neither_automatic_nor_whole_are_refused(packs, name, number):
    with pytest.raises(chunkhit.Error) as error:
        chunkhit.ImageLoader(packs / "hdf5", **{name: number})
    assert str(error.value) == f'{name}: expected "auto" or a whole number from 0 and below 4097, found {number!r}'


def test_memory_bytes_bounds_chunks_and_batches(packs):
    with pytest.raises(chunkhit.Error, match="memory_bytes: 5 batches of .* are held, 1.0 kB are given"):
        chunkhit.ImageLoader(packs / "hdf5", threads=1, memory_bytes=1000)


def test_says_that_an_evaluation_counts_samples_twice_and_a_subset_of_each_rank_does_not(packs):
    def ranks(options):
        return [chunkhit.ImageLoader(packs / "hdf5", batch_size=16, **given) for given in options]

    padded = ranks(dict(rank=rank, world_size=3) for rank in range(3))
    assert sum(len(batch.samples) for loader in padded for batch in loader) == 102
    for loader in padded:
        assert [notice for notice in loader.stats().notices if "2 samples are used twice, by rank_remainder pad" in notice]
    for quiet in dict(shuffle="window"), dict(rank_remainder="drop"), dict(augment=dict(flip_horizontal=0.5)), dict(rank=0, world_size=4):
        assert not ranks([{"rank": 0, "world_size": 3, **quiet}])[0].stats().notices
    exact = ranks(dict(subset=np.arange(rank, 100, 3), rank=0, world_size=1) for rank in range(3))
    assert sorted(sample for loader in exact for batch in loader for sample in batch.samples) == list(range(100))
    assert not any(loader.stats().notices for loader in exact)


def test_an_epoch_that_was_named_while_another_ran_was_lost(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16, shuffle="global")
    for number, batch in enumerate(loader):
        if number == 2:
            loader.set_epoch(9)
    assert {batch.epoch for batch in loader} == {9}
    assert {batch.epoch for batch in loader} == {10}


def test_a_world_size_without_a_rank_read_the_share_of_rank_0_in_each_process(packs, ratings):
    for call, path in ((chunkhit.ImageLoader, packs / "hdf5"), (chunkhit.SparseLoader, ratings[0] / "whole")):
        with pytest.raises(chunkhit.Error, match="rank: is needed beside world_size"):
            call(path, world_size=2)
        assert len(call(path, world_size=2, rank=0)) == len(call(path, world_size=2, rank=1))


def test_memory_bytes_that_are_too_few_blamed_cache_bytes(packs):
    with pytest.raises(chunkhit.Error, match="^memory_bytes: "):
        chunkhit.ImageLoader(packs / "shard", batch_size=1, memory_bytes=2000, threads=1, prefetch=1, shuffle="window")
    with pytest.raises(chunkhit.Error, match="^cache_bytes: "):
        chunkhit.ImageLoader(packs / "shard", batch_size=1, cache_bytes=500, threads=1, shuffle="window")


@pytest.mark.parametrize("options, advice", [
    (dict(augment=lambda batch: batch), "augment: expected a dict, as {\"flip_horizontal\": 0.5}, found a function; a function of whole"),
    (dict(normalize=([0.5] * 3, [0.5] * 3)), "normalize: expected a dict, as {\"mean\": ["),
    (dict(augment=dict(color_jitter=0.5)), "color_jitter: no such option"), (dict(workers=4), "did you mean \"threads\"?")])
def test_other_ways_to_say_an_option_are_answered_by_the_way(packs, options, advice):
    with pytest.raises(chunkhit.Error) as caught:
        chunkhit.ImageLoader(packs / "hdf5", **options)
    assert advice in str(caught.value) and "flip_horizontal\"?" not in str(caught.value)

"""Mixtures of packs, as Python gives them, beside schemas/order.md in Python."""
import itertools
import os
import sys

import numpy as np
import pytest
from PIL import Image

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from described_order import IN_BATCH, IN_EPOCH, batches_of, draws_of, mixed_order_of, streamed  # noqa: E402

SHUFFLES = ("none", "window", "global")
SEED = 5
GRAYS = {"ant": 20, "bee": 60, "cat": 100, "dog": 140}
CLASSES = {"a": ("bee", "cat"), "b": ("ant", "bee", "dog"), "c": ("dog",)}
COUNTS = {"a": 23, "b": 11, "c": 4}  # of each class


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Packs a, b and c, of chunks of five images, with classes that some share; and the samples of their chunks."""
    folder = tmp_path_factory.mktemp("mixed")
    for pack, classes in CLASSES.items():
        for name in classes:
            (folder / "images" / pack / name).mkdir(parents=True)
            for number in range(COUNTS[pack]):
                Image.new("L", (8, 6), GRAYS[name]).save(folder / "images" / pack / name / f"{number}.png")
        chunkhit.pack_images(folder / "images" / pack, folder / pack, channels="gray", chunk_samples=5)
    samples = {pack: COUNTS[pack] * len(classes) for pack, classes in CLASSES.items()}
    return folder, {pack: [min(5, count - first) for first in range(0, count, 5)] for pack, count in samples.items()}


def make(mixed, weights=(0.5, 0.3, 0.2), **options):
    folder, _ = mixed
    return chunkhit.ImageLoader({folder / pack: weight for pack, weight in zip("abc", weights)},
                                **{"batch_size": 10, "seed": SEED, **options})


def numbers(loader, epoch=0):
    return np.concatenate([batch.samples for batch in loader.epoch(epoch)]).tolist()


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("shares", ["batch", "epoch"])
@pytest.mark.parametrize("weights", [(3, 1.5, 2), (20, 1, 0.4)])
def test_the_order_is_as_described_for_all_ranks_and_echoes(mixed, shuffle, shares, weights):
    sources = [(weight, mixed[1][pack]) for pack, weight in zip("abc", weights)]
    for epoch, echo, ranks, length in itertools.product((0, 4), (1, 2), (1, 3), (None, 230)):
        streams = 1 if shuffle == "global" else ranks
        order = streamed(lambda stream: mixed_order_of(SHUFFLES.index(shuffle), SEED, 2, epoch, (IN_BATCH, IN_EPOCH)[shares == "epoch"],
                                                       length, sources, stream=stream), streams, echo * 6)
        for rank in range(ranks):
            wanted = batches_of(len(order), 6, rank, ranks, True, False, echo, SEED, epoch, 0, streams > 1,
                                mixed=weights if streams == 1 else None)
            loader = make(mixed, weights, shuffle=shuffle, window_chunks=2, echo=echo, rank=rank, world_size=ranks,
                          batch_size=6, shares=shares, epoch_samples=length)
            found = [batch.samples.tolist() for batch in loader.epoch(epoch)]
            assert found == [[order[position][0] for position in batch] for batch in wanted]
            assert loader.epoch_samples == len(order)


def test_weights_of_samples_apply_within_each_path(mixed):
    counts = [sum(mixed[1][pack]) for pack in "abc"]
    weights = np.linspace(0.5, 3, sum(counts)).tolist()
    ends = np.cumsum(counts).tolist()
    own = [weights[end - count:end] for end, count in zip(ends, counts)]
    lists = [lambda seed, epoch, own=own: draws_of(own, len(own), seed, epoch) for own in own]
    sources = [(weight, mixed[1][pack]) for pack, weight in zip("abc", (0.5, 0.3, 0.2))]
    loader = make(mixed, shuffle="window", window_chunks=3, sampler=weights)
    for epoch in (0, 3):
        order = mixed_order_of(1, SEED, 3, epoch, IN_BATCH, sum(counts), sources, lists)
        assert numbers(loader, epoch) == [sample for sample, _ in order]


def test_classes_are_joined_by_name_and_shares_are_exact(mixed):
    loader = make(mixed, shuffle="global", epoch_samples=400)
    names = {each["id"]: each["name"] for each in loader.info["classes"]}
    assert sorted(names.values()) == ["ant", "bee", "cat", "dog"]
    for batch in loader.epoch(1):
        assert [GRAYS[names[label]] for label in batch.labels.tolist()] == batch.images[:, 0, 0, 0].tolist()
        of_pack = np.searchsorted([46, 46 + 33], batch.samples, side="right")
        assert np.bincount(of_pack, minlength=3).tolist() == [5, 3, 2]
    assert len(loader) == 40


def test_states_resume_with_any_threads_and_ranks(mixed):
    options = dict(shuffle="window", window_chunks=2, epoch_samples=120)
    whole = numbers(make(mixed, streams=2, **options), 3)
    parts = []
    for rank in range(2):
        loader = make(mixed, rank=rank, world_size=2, **options)
        batches = iter(loader.epoch(3))
        parts += [next(batches).samples.tolist() for _ in range(2)]
        state = loader.state_dict()
    rest = make(mixed, threads=6, **options)
    rest.load_state_dict(state)
    assert sorted(sum(parts, []) + numbers(rest, 3)) == sorted(whole)
    with pytest.raises(chunkhit.Error, match="loader state: sampler: "):
        make(mixed, (0.5, 0.2, 0.3), **options).load_state_dict(state)


def test_what_is_wrong_is_named(mixed):
    folder, _ = mixed
    with pytest.raises(TypeError, match="expected weights that are numbers"):
        chunkhit.ImageLoader({folder / "a": "0.5"})
    with pytest.raises(TypeError, match="found an empty dict"):
        chunkhit.ImageLoader({})
    with pytest.raises(chunkhit.Error, match="shares: need a mixture"):
        chunkhit.ImageLoader(folder / "a", shares="epoch")
    with pytest.raises(chunkhit.Error, match="shares: expected batch, epoch"):
        make(mixed, shares="always")
    with pytest.raises(chunkhit.Error, match="mixture: .*b: weight -1"):
        make(mixed, (1, -1, 1))
    with pytest.raises(TypeError, match="expected a path or a list of paths"):
        chunkhit.SparseLoader({folder / "a": 1})

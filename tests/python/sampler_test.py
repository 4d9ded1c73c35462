"""Samplers and subsets, as Python gives them, beside schemas/order.md in Python."""
import itertools
import os
import sys

import numpy as np
import pytest

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from described_order import batches_of, choice_of, draws_of, is_flipped, sampled_order_of, streamed  # noqa: E402

SHUFFLES = ("none", "window", "global")
SEED = 3


def make(packs, **options):
    return chunkhit.ImageLoader(packs / "hdf5", **{"batch_size": 8, "seed": SEED, **options})


def numbers(loader, epoch=0):
    return np.concatenate([batch.samples for batch in loader.epoch(epoch)]).tolist()


def labels_of(packs):
    with chunkhit.ImageLoader(packs / "hdf5") as loader:
        return np.concatenate([batch.labels for batch in loader])


def chunk_counts(packs):
    info = chunkhit.pack_info(packs / "hdf5")
    per_chunk = info["chunk_samples"]
    return [min(per_chunk, info["samples"] - first) for first in range(0, info["samples"], per_chunk)]


WEIGHTS = np.linspace(0, 4, 100) ** 2
CASES = {
    "subset": (dict(subset=np.array([70, 5, 93, 6, 7, 8])), lambda epoch: [5, 6, 7, 8, 70, 93]),
    "weights": (dict(sampler=WEIGHTS), lambda epoch: draws_of(WEIGHTS.tolist(), 100, SEED, epoch)),
    "more draws": (dict(sampler=WEIGHTS, epoch_samples=350), lambda epoch: draws_of(WEIGHTS.tolist(), 350, SEED, epoch)),
    "choice": (dict(sampler=WEIGHTS, epoch_samples=40, replacement=False),
               lambda epoch: choice_of(WEIGHTS.tolist(), 40, SEED, epoch)),
    "weights of a subset": (dict(sampler=WEIGHTS, subset=range(50, 100)),
                            lambda epoch: draws_of([0.0] * 50 + WEIGHTS[50:].tolist(), 50, SEED, epoch)),
    "equal draws": (dict(epoch_samples=64), lambda epoch: draws_of([1.0] * 100, 64, SEED, epoch)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_the_order_is_as_described_for_all_ranks_and_echoes(packs, case, shuffle):
    options, list_of = CASES[case]
    for epoch, echo, ranks, drop_last in itertools.product((0, 5), (1, 2), (1, 3), (False, True)):
        streams = 1 if shuffle == "global" else ranks
        order = streamed(lambda stream: sampled_order_of(SHUFFLES.index(shuffle), SEED, 2, epoch, chunk_counts(packs), list_of(epoch),
                                                         stream), streams, echo * 2)
        for rank in range(ranks):
            wanted = batches_of(len(order), 2, rank, ranks, True, drop_last, echo, SEED, epoch, 0, streams > 1)
            loader = make(packs, shuffle=shuffle, window_chunks=2, echo=echo, rank=rank, world_size=ranks, batch_size=2,
                          drop_last=drop_last, **options)
            found = [batch.samples.tolist() for batch in loader.epoch(epoch)]
            assert found == [[order[position][0] for position in batch] for batch in wanted]
            assert loader.epoch_samples == len(order) and loader.size == 100 and len(loader) == len(wanted)


def test_each_use_of_a_sample_is_flipped_in_its_own_way(packs):
    plain = {sample: image for batch in make(packs) for sample, image in zip(batch.samples.tolist(), batch.images)}
    loader = make(packs, sampler=WEIGHTS, epoch_samples=300, augment=dict(flip_horizontal=0.5))
    entries = sampled_order_of(0, SEED, 64, 0, chunk_counts(packs), draws_of(WEIGHTS.tolist(), 300, SEED, 0))
    images = np.concatenate([batch.images for batch in loader.epoch(0)])
    assert max(repeat for _, repeat in entries) > 3
    for image, (sample, repeat) in zip(images, entries):
        flipped = is_flipped(0.5, SEED, 0, sample, repeat)
        np.testing.assert_array_equal(image, plain[sample][:, ::-1] if flipped else plain[sample])


def test_balanced_and_weights_of_classes_draw_by_class(packs):
    labels = labels_of(packs)
    few = np.flatnonzero((labels == 0) | (np.arange(100) < 20))
    for sampler, share in (("balanced", 0.5), ({"a": 1.0, "b": 1.0}, (labels[few] == 0).mean()), ({"a": 0, "b": 2}, 0)):
        loader = make(packs, sampler=sampler, subset=few, epoch_samples=1000)
        drawn = labels[numbers(loader)]
        assert abs((drawn == 0).mean() - share) < 0.01


def test_subsets_by_class_range_and_csv(packs, tmp_path):
    labels = labels_of(packs)
    (tmp_path / "numbers.csv").write_text("sample,why\n4,x\n2,y\n")
    (tmp_path / "files.csv").write_text("file,label\na/002.png,a\n./b/001.png,b\n")
    for subset, expected in (
            (["a"], np.flatnonzero(labels == 0)), (("b",), np.flatnonzero(labels == 1)), ((0, 0), np.flatnonzero(labels == 0)),
            ((-1.5, 7), range(100)), ([4, 2], [2, 4]), (tmp_path / "numbers.csv", [2, 4]), (str(tmp_path / "numbers.csv"), [2, 4])):
        assert sorted(numbers(make(packs, subset=subset, shuffle="window"))) == list(expected)
    plain = {sample: image for batch in make(packs) for sample, image in zip(batch.samples.tolist(), batch.images)}
    chosen = make(packs, subset=tmp_path / "files.csv")
    (batch,) = chosen
    assert len(batch.samples) == 2 and set(batch.labels.tolist()) == {0, 1}
    for sample, image in zip(batch.samples.tolist(), batch.images):
        np.testing.assert_array_equal(image, plain[sample])


def test_mixing_tells_what_a_sampler_costs(packs):
    plain = make(packs, shuffle="window", window_chunks=4).mixing()
    assert (plain.chunks, plain.chunk_visits, plain.epoch_samples, plain.distinct_samples) == (15, 15, 100, 100)
    weights = np.zeros(100)
    weights[:10] = 1
    drawn = make(packs, shuffle="window", window_chunks=4, sampler=weights).mixing()
    assert (drawn.chunks, drawn.chunk_visits, drawn.epoch_samples, drawn.distinct_samples) == (15, 2, 100, 10)
    assert drawn.samples_per_visit == 50
    even = make(packs, sampler=np.ones(100)).mixing()
    assert even.distinct_samples == pytest.approx(100)
    half = make(packs, sampler=np.ones(100), epoch_samples=50).mixing()
    assert half.distinct_samples == pytest.approx(50)
    odd = make(packs, sampler=WEIGHTS, shuffle="window")
    counted = np.mean([len(set(numbers(odd, epoch))) for epoch in range(200)])
    assert odd.mixing().distinct_samples == pytest.approx(counted, rel=0.01)
    assert "distinct_samples=" in repr(half)


def test_states_resume_and_name_the_sampler(packs):
    options = dict(sampler="balanced", epoch_samples=90, shuffle="window", window_chunks=2)
    loader = make(packs, **options)
    whole = numbers(loader, 2)
    batches = iter(loader.epoch(2))
    for _ in range(4):
        next(batches)
    state = loader.state_dict()
    resumed = make(packs, threads=7, **options)
    resumed.load_state_dict(state)
    assert np.concatenate([batch.samples for batch in resumed]).tolist() == whole[32:]
    for other in ({}, dict(options, epoch_samples=91), dict(options, sampler=None), dict(options, subset=["a"])):
        with pytest.raises(chunkhit.Error, match="loader state: sampler: "):
            make(packs, **{"shuffle": "window", "window_chunks": 2, **other}).load_state_dict(state)


@pytest.mark.parametrize("options, message", [
    (dict(sampler="uniform"), 'sampler: expected "balanced", a dict of weights by class, or an array of a weight per sample'),
    (dict(sampler={}), "sampler: expected"),
    (dict(sampler={"a": "1"}), "sampler: expected a dict of numbers by names of classes"),
    (dict(sampler=np.ones((100, 1))), "sampler: expected"),
    (dict(sampler=np.ones(99)), "sampler: 99 weights, expected 100"),
    (dict(sampler=object()), "sampler: expected"),
    (dict(sampler={"a": 1}), 'sampler: class "b" of 50 samples has no weight'),
    (dict(subset=[]), "subset: has no samples"),
    (dict(subset=np.array([1.5])), "subset: expected an array of sample numbers"),
    (dict(subset=np.ones(100, bool)), "subset: expected an array of sample numbers"),
    (dict(subset=[1, -1]), "subset: entry 1: sample -1, expected a number from 0"),
    (dict(subset=(1, 2, 3)), "subset: expected"),
    (dict(subset="missing.csv"), "missing.csv"),
    (dict(subset=["c"]), 'subset: class "c": no sample of'),
    (dict(epoch_samples=0), "epoch_samples: expected at least 1, found 0"),
    (dict(epoch_samples=-1), "epoch_samples: expected a whole number"),
    (dict(sampler="balanced", replacement=False), "replacement: false needs epoch_samples"),
])
def test_what_is_wrong_is_named(packs, options, message):
    with pytest.raises(chunkhit.Error) as raised:
        make(packs, **options)
    assert message in str(raised.value)


def test_images_of_their_own_sizes_are_drawn_too(packs, tmp_path):
    chunkhit.pack_images(packs / "images", tmp_path / "own", sizes="own", chunk_bytes=2000)
    augment = dict(resize_short=6, crop_height=6, crop_width=6)
    plain = {sample: image for batch in chunkhit.ImageLoader(tmp_path / "own", augment=augment)
             for sample, image in zip(batch.samples.tolist(), batch.images)}
    loader = chunkhit.ImageLoader(tmp_path / "own", augment=augment, batch_size=8, shuffle="window", window_chunks=2,
                                  sampler=WEIGHTS, epoch_samples=250, seed=SEED)
    seen = []
    for batch in loader.epoch(1):
        for sample, image in zip(batch.samples.tolist(), batch.images):
            np.testing.assert_array_equal(image, plain[sample])
        seen += batch.samples.tolist()
    assert sorted(seen) == draws_of(WEIGHTS.tolist(), 250, SEED, 1)


def test_rows_have_weights_and_subsets_too(ratings, expected_rows):
    folder, _ = ratings
    weights = np.arange(211.0)
    loader = chunkhit.SparseLoader(folder / "whole", batch_size=16, sampler=weights, subset=range(100, 211), seed=SEED)
    seen = []
    for batch in loader.epoch(1):
        np.testing.assert_array_equal(batch.x, expected_rows(loader, batch.rows))
        seen += batch.rows.tolist()
    assert seen == draws_of([0.0] * 100 + weights[100:].tolist(), 111, SEED, 1)
    with pytest.raises(chunkhit.Error, match="sampler: needs samples with class labels"):
        chunkhit.SparseLoader(folder / "whole", sampler="balanced")
    with pytest.raises(chunkhit.Error, match="sampler: 3 weights, expected 211, one for each row"):
        chunkhit.SparseLoader(folder / "whole", sampler=[1, 2, 3])

"""state_dict and load_state_dict, after each batch."""
import itertools
import json

import pytest

import chunkhit

OPTIONS = dict(batch_size=8, shuffle="window", seed=5, window_chunks=3)


def samples(batches):
    return [batch.samples.tolist() for batch in batches]


@pytest.mark.parametrize("position", range(14))
def test_goes_on_where_a_state_was_taken(packs, position):
    whole = chunkhit.ImageLoader(packs / "hdf5", **OPTIONS)
    expected = samples(whole.epoch(3))
    loader = chunkhit.ImageLoader(packs / "hdf5", **OPTIONS, threads=1)
    epoch = loader.epoch(3)
    for _ in range(position):
        next(epoch)
    state = json.loads(json.dumps(loader.state_dict()))
    other = chunkhit.ImageLoader(packs / "hdf5", **OPTIONS)
    other.load_state_dict(state)
    assert samples(other) == expected[position:]
    assert samples(other) == samples(whole.epoch(4))


def test_a_state_of_the_end_goes_on_with_the_next_epoch(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", **OPTIONS)
    assert len(samples(loader.epoch(3))) == 13
    other = chunkhit.ImageLoader(packs / "hdf5", **OPTIONS)
    other.load_state_dict(loader.state_dict())
    assert next(iter(other)).epoch == 4


def test_goes_on_with_another_number_of_ranks(packs):
    def ranks(count, size):
        return [chunkhit.ImageLoader(packs / "hdf5", batch_size=size, shuffle="window", seed=5, rank=rank, world_size=count)
                for rank in range(count)]

    before, after = ranks(2, 10), ranks(5, 4)
    epochs = [loader.epoch(0) for loader in before]
    seen = [sample for _ in range(3) for epoch in epochs for sample in next(epoch).samples.tolist()]
    for loader in after:
        loader.load_state_dict(before[0].state_dict())
        seen += sum(samples(loader), [])
    assert sorted(seen) == list(range(100))


def test_refuses_a_state_of_another_order(packs):
    state = chunkhit.ImageLoader(packs / "hdf5", **OPTIONS).state_dict()
    with pytest.raises(chunkhit.Error, match="seed: 5, expected 6"):
        chunkhit.ImageLoader(packs / "hdf5", **{**OPTIONS, "seed": 6}).load_state_dict(state)
    with pytest.raises(chunkhit.Error, match="another source"):
        chunkhit.ImageLoader(packs / "numbers", **OPTIONS).load_state_dict(state)


def test_each_loop_that_broke_off_gave_the_same_batches(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5", **OPTIONS)
    assert samples(itertools.islice(loader, 3)) == samples(itertools.islice(loader, 3))
    whole = chunkhit.ImageLoader(packs / "hdf5", **OPTIONS)
    limited = [samples(itertools.islice(loader.epoch(epoch), 3)) for epoch in range(3)]
    assert limited == [samples(whole.epoch(epoch))[:3] for epoch in range(3)]
    assert limited[0] != limited[1] != limited[2]

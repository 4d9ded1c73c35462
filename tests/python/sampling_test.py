"""PopularitySampler against the shares that it promises."""
import numpy as np
import pytest

import chunkhit

from error_test import raised


def test_draws_by_popularity_and_never_what_is_own():
    sampler = chunkhit.PopularitySampler([10, 0, 30, 60], power=1.0)
    drawn = sampler.draw([3], 20000, seed=1)
    assert (drawn.dtype, drawn.shape) == (np.int32, (20000,))
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20000, [0.25, 0, 0.75, 0], atol=0.02)


def test_own_items_may_come_in_any_order():
    sampler = chunkhit.PopularitySampler(np.ones(4, np.uint64))
    assert set(sampler.draw([3, 0, 3, 1], 100, seed=2)) == {2}


def test_goes_on_at_any_place_of_the_series():
    sampler = chunkhit.PopularitySampler(range(1, 50))
    whole = sampler.draw([], 30, seed=3, index=5)
    np.testing.assert_array_equal(sampler.draw([], 10, seed=3, index=25), whole[20:])


def test_takes_the_counts_of_a_loader(ratings):
    loader = chunkhit.SparseLoader(ratings[0] / "whole", format="csr", batch_size=5)
    sampler = chunkhit.PopularitySampler(loader.item_counts(), 0.75)
    x = next(iter(loader)).x
    own = x.indices[x.indptr[0] : x.indptr[1]]
    assert not set(sampler.draw(own, 1000, seed=0)) & set(own.tolist())


@pytest.mark.parametrize("counts", [[], [0, 0], [-1], [0.5], [[1]], "x"])
def test_refuses_counts_of_which_nothing_can_be_drawn(counts):
    assert "item_counts" in raised("usage", chunkhit.PopularitySampler, counts)


def test_refuses_draws_that_make_no_sense():
    sampler = chunkhit.PopularitySampler([1, 1])
    assert "own" in raised("usage", sampler.draw, [0, 1], 1, seed=0)
    assert "own" in raised("usage", sampler.draw, [2**40], 1, seed=0)
    assert "seed" in raised("usage", sampler.draw, [], 1, seed=-1)
    assert "count" in raised("usage", sampler.draw, [], 1.5, seed=0)

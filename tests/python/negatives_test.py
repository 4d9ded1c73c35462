"""Negatives of whole batches."""
import threading

import numpy as np
import pytest

import chunkhit

from error_test import raised

FORMS = ["csr", "dense_f32", "dense_f16", "dense_u8"]


def owned(loader, batch):
    """bool (rows, columns): the items that rows have in x or held_out."""
    found = np.zeros((len(batch.rows), loader.column_count), bool)
    for matrix in (batch.x, batch.held_out):
        if matrix is not None:
            found |= (matrix.to_dense() if isinstance(matrix, chunkhit.CsrRows) else np.asarray(matrix)) != 0
    return found


@pytest.mark.parametrize("format", FORMS)
def test_negatives_of_a_batch_are_neither_rated_nor_held_out(ratings, format):
    loader = chunkhit.SparseLoader(ratings[0] / "split" / "test", format=format, batch_size=20)
    sampler = chunkhit.PopularitySampler(loader.item_counts())
    for batch in loader:
        items = sampler.draw_batch(batch, 30, seed=1)
        assert (items.dtype, items.shape) == (np.int32, (len(batch.rows), 30))
        assert not owned(loader, batch)[np.arange(len(batch.rows))[:, None], items].any()
        ones = chunkhit.SparseBatch(batch.x, None, None, batch.rows, 0, 0)
        assert owned(loader, batch)[np.arange(len(batch.rows))[:, None], sampler.draw_batch(ones, 30, seed=1)].any()


def drawn(path, epoch=0, seed=1, **options):
    """The negatives of each row, by its number."""
    loader = chunkhit.SparseLoader(path, **options)
    sampler = chunkhit.PopularitySampler(np.ones(loader.column_count, int))
    return {int(row): items.tolist() for batch in loader.epoch(epoch)
            for row, items in zip(batch.rows, sampler.draw_batch(batch, 10, seed=seed))}


def test_negatives_depend_on_seed_epoch_and_row_alone(ratings):
    path = ratings[0] / "whole"
    first = drawn(path)
    assert first == drawn(path, format="csr", batch_size=13, shuffle="global", seed=1, threads=1)
    assert first != drawn(path, epoch=1) and first != drawn(path, seed=2)
    halves = [drawn(path, rank=rank, world_size=2, rank_remainder="drop", shuffle="window") for rank in range(2)]
    assert all(first[row] == items for half in halves for row, items in half.items())


def test_negatives_are_the_same_from_every_thread(ratings):
    loader = chunkhit.SparseLoader(ratings[0] / "whole", format="csr")
    batch = next(iter(loader))
    sampler = chunkhit.PopularitySampler(loader.item_counts())
    found = []
    threads = [threading.Thread(target=lambda: found.append(sampler.draw_batch(batch, 50, seed=3))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for items in found:
        np.testing.assert_array_equal(items, sampler.draw_batch(batch, 50, seed=3))


def test_uniform_negatives_are_uniform_among_the_items_that_a_row_has_not(ratings):
    loader = chunkhit.SparseLoader(ratings[0] / "whole", format="csr")
    batch = next(iter(loader))
    items = chunkhit.PopularitySampler(np.ones(loader.column_count, int)).draw_batch(batch, 2000, seed=5)
    for mine, own in zip(items[:20], owned(loader, batch)):
        counts = np.bincount(mine, minlength=len(own))[~own]
        expected = 2000 / len(counts)
        statistic, freedom = ((counts - expected) ** 2 / expected).sum(), len(counts) - 1
        assert abs(statistic - freedom) < 4 * np.sqrt(2 * freedom)


def test_takes_tensors_and_scipys_rows(ratings):
    torch = pytest.importorskip("torch")
    import chunkhit.torch

    path = ratings[0] / "split" / "test"
    batch = next(iter(chunkhit.SparseLoader(path, format="csr")))
    sampler = chunkhit.PopularitySampler(np.ones(batch.x.shape[1], int))
    expected = sampler.draw_batch(batch, 20, seed=1)
    scipys = chunkhit.SparseBatch(batch.x.to_scipy(), batch.held_out.to_scipy(), None, batch.rows, 0, 0)
    np.testing.assert_array_equal(sampler.draw_batch(scipys, 20, seed=1), expected)
    for format in FORMS[:2]:
        tensors = next(iter(chunkhit.torch.SparseLoader(path, format=format)))
        assert isinstance(tensors.rows, torch.Tensor)
        np.testing.assert_array_equal(sampler.draw_batch(tensors, 20, seed=1), expected)


def test_rows_of_a_dataset_have_the_negatives_that_a_loader_gives_them(ratings):
    path = ratings[0] / "split" / "test"
    loader = chunkhit.SparseLoader(path)
    sampler = chunkhit.PopularitySampler(loader.item_counts())
    rows = np.array([5, 2, 9])
    x, held_out = chunkhit.SparseDataset(path, format="csr")[rows]
    found = sampler.draw_batch(chunkhit.SparseBatch(x, held_out, None, rows, 0, 0), 10, seed=1)
    np.testing.assert_array_equal(found, sampler.draw_batch(next(iter(loader)), 10, seed=1)[rows])


def test_refuses_a_row_that_has_all_items_and_other_columns():
    sampler = chunkhit.PopularitySampler([1, 1, 1])

    def draw(x, count=1):
        return sampler.draw_batch(chunkhit.SparseBatch(np.asarray(x), None, None, np.array([7]), 0, 0), count, seed=1)

    assert draw(np.float32([[1, 0, 1]])).tolist() == [[1]]
    assert "row 7: every item that can be drawn is the row's own" in raised("usage", draw, np.float32([[1, 2, 3]]))
    assert "4 cells, expected 1 rows of the sampler's 3 items" in raised("usage", draw, np.float32([[0, 0, 0, 0]]))
    assert "x: expected CSR, or" in raised("usage", draw, np.float64([[0, 0, 0]]))
    assert "count" in raised("usage", draw, np.float32([[0, 0, 0]]), -1)

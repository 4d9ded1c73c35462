"""Items drawn by popularity or uniformly, as negatives."""
from __future__ import annotations

from typing import Any, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _chunkhit
from ._batches import Pairs, SparseBatch
from ._error import Error, whole_number

RowItems = Union[NDArray[Any], Tuple[NDArray[Any], NDArray[Any]], None]


class PopularitySampler:
    """Draws items, each with a probability in proportion to count^power, by Walker's alias method.

    item_counts  of each item; `SparseLoader.item_counts()` has those of the training matrix. Equal counts, such as
                 np.ones(loader.column_count, int), draw uniformly
    power        0 draws uniformly among the items that have a count

    An item may be drawn several times. Any thread may draw. Raises Error "usage" when no item has a count above 0.
    """

    def __init__(self, item_counts: Any, power: float = 1.0) -> None:
        self._core = _chunkhit.PopularitySampler(numbers_of("item_counts", item_counts, np.uint64), float(power))

    def draw(self, own: Any, count: int, *, seed: int, index: int = 0) -> NDArray[Any]:
        """int32 (count,): items that are not among `own`, the columns of a user. The draws are the places index to
        index + count of an endless series that `seed` makes. Raises Error "usage" when `own` leaves nothing to draw."""
        own = np.unique(numbers_of("own", own, np.int32))
        return self._core.draw(own, whole_number("seed", seed), whole_number("index", index), whole_number("count", count))

    def draw_batch(self, batch: SparseBatch, count: int, *, seed: int) -> NDArray[Any]:
        """int32 (rows, count): for each row of a loader's batch, items that are neither in its x nor in its held_out.

        A row's negatives are a function of (seed, batch.epoch, its number in the source), whatever the batch size, the
        rank and the threads; with echo a row has the same ones each time in an epoch, unless another seed is given. Any
        SparseBatch will do, also one of tensors or of scipy's rows: x and held_out are CSR, or dense float32, float16 or
        uint8, of which an item's cell is not 0; of sequences the items of the window. Raises Error "usage" for a row that has every item that can be drawn,
        and names it; a row that has nearly all is served, at the price of going through all items once."""
        return self._core.draw_batch(np.ascontiguousarray(host_array(batch.rows), np.uint64), row_items("x", batch.x, batch.lengths),
                                     row_items("held_out", batch.held_out, batch.held_out_lengths),
                                     whole_number("seed", seed), whole_number("epoch", batch.epoch), whole_number("count", count))


def host_array(array: Any) -> NDArray[Any]:
    """An array, or a tensor on whatever device, as NumPy's."""
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def row_items(name: str, matrix: Any, lengths: Any = None) -> RowItems:
    """What the binding takes for rows: (indptr, indices), dense cells, or None."""
    if matrix is None:
        return None
    if isinstance(matrix, Pairs):
        raise Error(f"{name}: expected rows, found pairs; SparseLoader(format=\"pairs\", negatives=...) draws theirs", "usage")
    if "sparse_csr" in str(getattr(matrix, "layout", "")):  # a tensor
        return csr_items(host_array(matrix.crow_indices()), host_array(matrix.col_indices()))
    if hasattr(matrix, "indptr"):
        return csr_items(matrix.indptr, matrix.indices)
    cells = np.ascontiguousarray(host_array(matrix))
    if lengths is not None:
        counts = host_array(lengths).astype(np.int32)
        columns = np.sort(cells, axis=1)  # the padding is the largest
        return csr_items(np.append(0, counts.cumsum()), columns[np.arange(columns.shape[1]) < counts[:, None]])
    if cells.ndim != 2 or cells.dtype not in (np.float32, np.float16, np.uint8):
        raise Error(f"{name}: expected CSR, or (rows, columns) of float32, float16 or uint8, found {cells.dtype} "
                    f"{cells.shape}", "usage")
    return cells


def csr_items(indptr: Any, indices: Any) -> RowItems:
    return np.ascontiguousarray(indptr, np.int32), np.ascontiguousarray(indices, np.int32)


def numbers_of(name: str, numbers: Any, kind: Any) -> NDArray[Any]:
    """Whole numbers from 0, (n,); raises Error "usage" for what is none."""
    array = np.asarray(numbers)
    is_whole = array.size == 0 or np.issubdtype(array.dtype, np.integer)
    if array.ndim != 1 or not is_whole or (array.size and not 0 <= array.min() <= array.max() <= np.iinfo(kind).max):
        raise Error(f"{name}: expected a row of whole numbers from 0, found {array!r}", "usage")
    return np.ascontiguousarray(array, kind)

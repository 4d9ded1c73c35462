"""Items drawn by popularity, as negatives."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _chunkhit
from ._error import Error, whole_number


class PopularitySampler:
    """Draws items, each with a probability in proportion to count^power, by Walker's alias method.

    item_counts  of each item; `SparseLoader.item_counts()` has those of the training matrix

    Any thread may draw. Raises Error "usage" when no item has a count above 0.
    """

    def __init__(self, item_counts: Any, power: float = 1.0) -> None:
        self._core = _chunkhit.PopularitySampler(numbers_of("item_counts", item_counts, np.uint64), float(power))

    def draw(self, own: Any, count: int, *, seed: int, index: int = 0) -> np.ndarray:
        """int32 (count,): items that are not among `own`, the columns of a user. The draws are the places index to
        index + count of an endless series that `seed` makes. Raises Error "usage" when `own` leaves nothing to draw."""
        own = np.unique(numbers_of("own", own, np.int32))
        return self._core.draw(own, whole_number("seed", seed), whole_number("index", index), whole_number("count", count))


def numbers_of(name: str, numbers: Any, kind: Any) -> np.ndarray:
    """Whole numbers from 0, (n,); raises Error "usage" for what is none."""
    array = np.asarray(numbers)
    is_whole = array.size == 0 or np.issubdtype(array.dtype, np.integer)
    if array.ndim != 1 or not is_whole or (array.size and not 0 <= array.min() <= array.max() <= np.iinfo(kind).max):
        raise Error(f"{name}: expected a row of whole numbers from 0, found {array!r}", "usage")
    return np.ascontiguousarray(array, kind)

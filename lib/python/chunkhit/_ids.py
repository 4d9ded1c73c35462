"""Ids of users and items, and which row or column they have."""
from __future__ import annotations

import operator
from typing import Any, List, Union

import numpy as np
from numpy.typing import NDArray

from ._error import ArgumentError, Error, whole_number


def id_text(value: Any) -> str:
    """An id as it stands in a pack; raises Error "usage" for what is neither text nor a whole number."""
    if isinstance(value, str):
        return str(value)
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return str(operator.index(value))
    except TypeError:
        raise Error(f"id: expected a text or a whole number, found {value!r}", "usage") from None


def ids_to_find(ids: Any) -> Union[NDArray[Any], List[str]]:
    """int64 (n,), or texts; raises Error "usage" for what is no row of ids."""
    if isinstance(ids, (str, bytes)) or np.ndim(ids) != 1:
        raise Error(f"ids: expected a row of texts or whole numbers, found {ids!r}", "usage")
    if isinstance(ids, np.ndarray) and np.issubdtype(ids.dtype, np.integer) and ids.dtype != np.uint64:
        return ids.astype(np.int64)
    return [id_text(each) for each in ids]


def ids_array(found: Any) -> NDArray[Any]:
    return found if isinstance(found, np.ndarray) else np.array(found, dtype=object)


def indices_of(name: str, indices: Any, count: int) -> NDArray[Any]:
    """uint64 (n,) of numbers below `count`, or of all; raises Error "usage" for what is no row of whole numbers."""
    if indices is None:
        return np.arange(count, dtype=np.uint64)
    if callable(indices):
        method = getattr(indices, "__name__", "method")
        raise ArgumentError(f"{name}: expected whole numbers from 0, found the method {method}; a sparse CSR tensor of torch gives "
                            "those of its columns by col_indices()")
    array = np.asarray(indices.cpu() if hasattr(indices, "cpu") else indices)
    if array.ndim != 1 or (array.size and (array.dtype.kind not in "iu" or array.min() < 0)):
        raise Error(f"{name}: expected a row of whole numbers from 0, found {indices!r}", "usage")
    return array.astype(np.uint64)


class Ids:
    """What SparseLoader and SparseDataset have of ids, and of the columns that are kept beside them. Rows and columns are found through an index that the first call
    builds, 11 to 22 bytes an id; a number and its decimal digits are the same id. All of these but row_id and column_id,
    which give "" then, raise Error "usage" where the source has no ids: a matrix of another program may have no names.
    """

    _core: Any

    def row_id(self, row: int) -> str:
        """The user's own id."""
        return str(self._core.row_id(whole_number("row", row)))

    def column_id(self, column: int) -> str:
        """The item's own id."""
        return str(self._core.column_id(whole_number("column", column)))

    def row_ids(self) -> NDArray[Any]:
        """All users' ids by row: int64 (rows,) where each is a whole number, else an object array of str."""
        return ids_array(self._core.row_ids())

    def column_ids(self) -> NDArray[Any]:
        """All items' ids by column: int64 (columns,) where each is a whole number, else an object array of str."""
        return ids_array(self._core.column_ids())

    def row_of(self, id: Any) -> int:
        """The row of a user's id, the first where several packs have it; raises KeyError for an unknown one."""
        return self._one(self._core.rows_of([id_text(id)]), f"user {id!r}")

    def column_of(self, id: Any) -> int:
        """The column of an item's id; raises KeyError for an unknown one."""
        return self._one(self._core.columns_of([id_text(id)]), f"item {id!r}")

    def rows_of(self, ids: Any) -> NDArray[Any]:
        """int64 (n,): the row of each of n ids, -1 for unknown ones."""
        return ids_array(self._core.rows_of(ids_to_find(ids)))

    def columns_of(self, ids: Any) -> NDArray[Any]:
        """int64 (n,): the column of each of n ids, -1 for unknown ones."""
        return ids_array(self._core.columns_of(ids_to_find(ids)))

    def item_column(self, name: str, columns: Any = None) -> NDArray[Any]:
        """A column that `pack_sparse(item_columns=...)` kept, of all items by column or of these columns, such as the
        indices of a CSR batch: int64 or float64 (n,), NaN where a value is missing, or str as objects.
        `info["item_columns"]` lists them; of several packs items have the first one's values. The first call for a column
        reads the pack's list of items, of which that column stays in memory."""
        numbers = indices_of("columns", columns, self._core.column_count)
        return np.asarray(self._core.item_column(name, numbers))

    def user_column(self, name: str, rows: Any = None) -> NDArray[Any]:
        """The same of users that `pack_sparse(user_columns=...)` kept, of all rows or of these, such as `batch.rows`."""
        return np.asarray(self._core.user_column(name, indices_of("rows", rows, self._core.size)))

    @staticmethod
    def _one(found: NDArray[Any], what: str) -> int:
        if found[0] < 0:
            raise KeyError(f"{what}: the pack has no rating of it")
        return int(found[0])

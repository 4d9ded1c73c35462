"""Packs of ratings as files that other tools read: a sparse matrix of SciPy, or a table."""
from __future__ import annotations

import contextlib
import io
import os
from typing import Any, BinaryIO, Callable, Iterable, Iterator, List, NamedTuple, Tuple

import numpy as np
from numpy.typing import NDArray

from ._batches import CsrRows
from ._datasets import SparseDataset
from ._error import Error
from ._export_arrays import ArrayArchive
from ._publish import Table, new_file

RUN_ROWS = 4096  # that are read at a time, or a chunk where that has more
RUN_RATINGS = 1 << 20  # that these rows have on average at most


def beside(output: str, name: str) -> str:
    """ratings.npz → ratings.NAME."""
    return f"{os.path.splitext(output)[0]}.{name}"


def blocks(dataset: SparseDataset, held_out: bool) -> Iterator[Tuple[int, CsrRows]]:
    """Rows of a matrix in order, and the number of the first one."""
    chunk_rows = dataset.info.get("chunk_rows") or 1
    most = max(int(each["nnz"]) for each in dataset.info["matrices"])
    wanted = min(RUN_ROWS, -(-RUN_RATINGS * len(dataset) // max(1, most)))
    step = -(-wanted // chunk_rows) * chunk_rows
    for first in range(0, len(dataset), step):
        numbers = np.arange(first, min(first + step, len(dataset)), dtype=np.uint64)
        rows: CsrRows = dataset._matrix(numbers, held_out, False)
        yield first, rows


class Matrix(NamedTuple):
    """A matrix of the pack, and the file that gets it."""

    path: str
    held_out: bool
    times: bool = False  # of the ratings, instead of their values


def matrices(dataset: SparseDataset, output: str, is_table: bool) -> List[Matrix]:
    """A table has the times as a column, others as a matrix of their own."""
    ending = os.path.splitext(output)[1]
    found = [Matrix(output, False), *([Matrix(beside(output, f"held_out{ending}"), True)] if dataset.has_held_out else [])]
    if dataset.info.get("times") and not is_table:
        found += [Matrix(beside(each.path, f"times{ending}"), each.held_out, True) for each in found]
    return found


def ids_of(find: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Ids, or numbers from 0 would be in their place: an empty array where the source has none."""
    try:
        return find()
    except Error as error:
        if error.code != "usage":
            raise
        return np.zeros(0, dtype=object)


class Tables:
    """Writes tables; `plain` as in `export_pack`."""

    def __init__(self, plain: bool) -> None:
        self._plain = plain

    def write(self, file: BinaryIO, header: List[str], lines: Iterable[Any]) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        table = Table(text, self._plain)
        table.add(header)
        for line in lines:
            table.add(line)
        text.detach()


def values_at(columns: List[Tuple[str, NDArray[Any]]], index: int) -> List[Any]:
    """The values of kept columns as a CSV has them; a missing number is blank."""
    return ["" if values[index] != values[index] else values[index] for _, values in columns]


def write_ids(dataset: SparseDataset, output: str, open_file: Callable[[str], BinaryIO], tables: Tables) -> None:
    """OUTPUT.users.csv, with the rows' labels, and OUTPUT.items.csv; both with the columns that the pack keeps."""
    users, items = ids_of(dataset.row_ids), ids_of(dataset.column_ids)
    of_users = [(each["name"], dataset.user_column(each["name"])) for each in dataset.info.get("user_columns", [])]
    of_items = [(each["name"], dataset.item_column(each["name"])) for each in dataset.info.get("item_columns", [])]
    columns: List[str] = list(dataset.info.get("label_columns") or [])
    labels = dataset._core.labels(np.arange(len(dataset), dtype=np.uint64)) if columns and len(dataset) else None
    lines = ([row, *([users[row]] if len(users) else []), *(labels[row] if labels is not None else []),
              *values_at(of_users, row)] for row in range(len(dataset)))
    if len(users) or columns:
        header = ["row", *(["user"] if len(users) else []), *columns, *(name for name, _ in of_users)]
        tables.write(open_file(beside(output, "users.csv")), header, lines)
    if len(items):
        tables.write(open_file(beside(output, "items.csv")), ["column", "item", *(name for name, _ in of_items)],
                     ([column, item, *values_at(of_items, column)] for column, item in enumerate(items)))


def write_matrix(file: BinaryIO, dataset: SparseDataset, matrix: Matrix, done: Callable[[int], None]) -> None:
    """As scipy.sparse.save_npz does, without compression. Reads the rows twice, to hold none of them."""
    held_out = matrix.held_out
    indptr = np.zeros(len(dataset) + 1, np.int64)
    for first, rows in blocks(dataset, held_out):
        indptr[first + 1 : first + 1 + rows.shape[0]] = indptr[first] + rows.indptr[1:]
    count = int(indptr[-1])
    kind = np.int32 if max(count, dataset.column_count) <= np.iinfo(np.int32).max else np.int64
    with ArrayArchive(file) as archive:
        archive.append_pieces("indices", kind, (count,), (rows.indices for _, rows in blocks(dataset, held_out)))
        archive.append("indptr", indptr.astype(kind))
        archive.append("format", np.array(b"csr"))
        archive.append("shape", np.array([len(dataset), dataset.column_count], np.int64))

        def values() -> Iterator[NDArray[Any]]:
            for _, rows in blocks(dataset, held_out):
                yield np.asarray(rows.times if matrix.times else rows.values)
                done(0 if matrix.times else rows.shape[0])

        archive.append_pieces("data", np.int64 if matrix.times else np.float32, (count,), values())


def write_triplets(file: BinaryIO, source: str, dataset: SparseDataset, matrix: Matrix, done: Callable[[int], None],
                   tables: Tables) -> None:
    """user,item,value of each rating, and its time where that is kept, whose order they have then; numbers of rows and columns
    where the source has no ids."""
    has_times = bool(dataset.info.get("times"))
    if has_times:
        dataset = SparseDataset(source, format="csr", cache="none", by_time=True)
    users, items = ids_of(dataset.row_ids), ids_of(dataset.column_ids)

    def lines() -> Iterator[Tuple[Any, ...]]:
        held_out = matrix.held_out
        for first, rows in blocks(dataset, held_out):
            row_numbers = np.repeat(np.arange(first, first + rows.shape[0]), np.diff(rows.indptr))
            known, which = np.unique(rows.values, return_inverse=True)
            texts = [np.format_float_positional(value, trim="-") for value in known]
            yield from zip((users[row_numbers] if len(users) else row_numbers).tolist(),
                           (items[rows.indices] if len(items) else rows.indices).tolist(), (texts[each] for each in which),
                           *([] if rows.times is None else [rows.times.tolist()]))
            done(rows.shape[0])

    tables.write(file, ["user", "item", "value", *(["time"] if has_times else [])], lines())


def export_ratings(source: str, dataset: SparseDataset, output: str, force: bool, done: Callable[[int], None],
                   plain: bool) -> List[str]:
    """Writes the matrix, what is held out of it and the ids; returns the files. The named one appears last. `source` is the
    path of the dataset."""
    is_table, tables = output.endswith(".csv"), Tables(plain)
    written: List[str] = []
    with contextlib.ExitStack() as files:

        def open_file(path: str) -> BinaryIO:
            written.append(path)
            return files.enter_context(new_file(path, force))

        for matrix in matrices(dataset, output, is_table):
            if is_table:
                write_triplets(open_file(matrix.path), source, dataset, matrix, done, tables)
            else:
                write_matrix(open_file(matrix.path), dataset, matrix, done)
        if not is_table:
            write_ids(dataset, output, open_file, tables)
    return written

"""Packing tables of ratings: what has Arrow's C interfaces, DataFrames of pandas, dicts of arrays."""
from __future__ import annotations

import contextlib
import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from . import _chunkhit
from . import _types as types
from ._error import ArgumentError, Error, counted
from ._options import has_options
from ._packing import Info, Progress, warn
from ._paths import Path
from ._writers import RatingWriter, ids_column, numbers_column, times_column

OF_TEXTS = ("output", "format", "delimiter", "header", "quote", "comment", "transpose", "layer", "feature_type", "shared_rows", "encoding",
            "table_header", "table_quote", "on_error", "max_errors")
FIELDS = ("user", "item", "value", "time")
ROWS = 1 << 20  # that are converted at a time

Columns = Tuple[int, int, Optional[int], Optional[int]]


class Tables:
    """Adds tables to a writer, and counts their rows."""

    def __init__(self, writer: RatingWriter, wishes: Mapping[str, Any]) -> None:
        self._writer, self._wishes, self._rows = writer, wishes, 0
        self._warned = False  # of a column of times that is not used

    def add(self, table: Any) -> bool:
        """Returns False for what is no table."""
        if isinstance(table, Mapping):
            names = list(table)
            self._add_arrays([str(name) for name in names], lambda column: table[names[column]])
        elif hasattr(table, "iloc") and hasattr(table, "columns"):  # of pandas, which needs pyarrow for Arrow's interface
            self._add_arrays([str(name) for name in table.columns], lambda column: table.iloc[:, column],
                             [str(name) for name in table.index.names if name is not None])
        elif hasattr(table, "__arrow_c_stream__"):
            self._add_arrow(_chunkhit.ArrowTable(table.__arrow_c_stream__()))
        elif hasattr(table, "__arrow_c_array__"):
            self._add_arrow(_chunkhit.ArrowTable(*table.__arrow_c_array__()))
        else:
            return False
        return True

    def _add_arrow(self, table: _chunkhit.ArrowTable) -> None:
        names = table.names
        user, item, value, time = find_columns(names, self._wishes)
        if time is not None and self._wishes.get("time") is None and not table.has_times(time):
            self._leave_out(names[time])
            time = None
        with naming_columns(names, (user, item, value, time)):
            self._rows += self._writer._core.add_table(table, user, item, value, time, self._rows)

    def _leave_out(self, name: str) -> None:
        """Warns once of a column that is named as times are and holds none."""
        if not self._warned:
            warn([f"column {name} is not used as time: it holds neither numbers nor dates; a cast to timestamp makes it one"])
        self._warned = True

    def _add_arrays(self, names: List[str], column_of: Callable[[int], Any], indexed: Sequence[str] = ()) -> None:
        columns = find_columns(names, self._wishes, indexed)
        time = columns[3]
        if time is not None and self._wishes.get("time") is None and not are_times(rows_of(column_of(time), 0)):
            self._leave_out(names[time])
            columns = (*columns[:3], None)
        chosen = {column: column_of(column) for column in columns if column is not None}
        lengths = {names[column]: length_of(names[column], array) for column, array in chosen.items()}
        if len(set(lengths.values())) > 1:
            raise Error(f"table: expected columns of one length, found {lengths}", "usage")
        for first in range(0, next(iter(lengths.values())), ROWS):
            arrays = [None if column is None else rows_of(chosen[column], first) for column in columns]
            labels = ["" if column is None else names[column] for column in columns]
            try:
                converted = (ids_column(labels[0], arrays[0]), ids_column(labels[1], arrays[1]), numbers_column(labels[2], arrays[2]),
                             times_column(arrays[3], labels[3]))
            except Error as error:
                raise Error(f"rows from {self._rows}, counted from 0: {error}", error.code) from None
            with naming_columns(names, columns):
                self._writer._core.add(*converted, self._rows)
            self._rows += len(converted[0])


@contextlib.contextmanager
def naming_columns(names: List[str], columns: Columns) -> Iterator[None]:
    """Says beside an error of the data, which names fields, which columns those are."""
    try:
        yield
    except Error as error:
        if error.code != "bad_data":
            raise
        given = ", ".join(f"{field} is column {names[column]!r}" for field, column in zip(FIELDS, columns) if column is not None)
        raise Error(f"{error} ({given})", error.code) from None


def are_times(array: Any) -> bool:
    """Whether it has a type that times may have."""
    try:
        times_column(array)
    except Error as error:
        return error.code != "usage"
    return True


def length_of(name: str, array: Any) -> int:
    try:
        return len(array)
    except TypeError:
        raise Error(f"column {name!r}: expected an array or a list, found a {type(array).__name__}", "usage") from None


def rows_of(array: Any, first: int) -> Any:
    return (array.iloc if hasattr(array, "iloc") else array)[first:first + ROWS]


def find_columns(names: List[str], wishes: Mapping[str, Any], indexed: Sequence[str] = ()) -> Columns:
    """The columns of user, item, value and time; raises Error "usage". `indexed`: names of a DataFrame's index, which is no column."""
    found = {field: find_column(names, field, wishes.get(field)) for field in FIELDS}
    user, item = found["user"], found["item"]
    if user is None or item is None:
        missing = "user" if user is None else "item"
        advice = "give its name"
        if wishes.get(missing) in (None, "auto") and _chunkhit.usual_columns(list(indexed), missing):
            advice = "the index has it: pass table.reset_index()"
        raise Error(f"table: no column for `{missing}` among {names_text(names)}; {advice}", "usage")
    for index, field in enumerate(FIELDS):
        for other in FIELDS[:index]:
            if found[field] is not None and found[field] == found[other]:
                raise Error(f"`{other}` and `{field}`: both are column {names[found[field] or 0]!r}; give both", "usage")
    return user, item, found["value"], found["time"]


def find_column(names: List[str], field: str, wish: Any) -> Optional[int]:
    if wish is None or wish == "auto":
        usual: List[int] = _chunkhit.usual_columns(names, field)
        if len(usual) > 1:
            raise Error(f"table: columns {' and '.join(repr(names[each]) for each in usual)} both may be `{field}`; give its name", "usage")
        return usual[0] if usual else None
    if wish == "none" and field in ("value", "time"):
        return None
    number = wish if isinstance(wish, int) and not isinstance(wish, bool) else 0
    if not isinstance(wish, str) and not 1 <= number <= len(names):
        raise Error(f"`{field}`: expected a name, or a number from 1 to {len(names)}, found {wish!r}", "usage")
    if isinstance(wish, str) and names.count(wish) != 1:
        found = f"{counted(names.count(wish), 'column')} {wish!r}" if wish in names else f"no column {wish!r}"
        raise Error(f"`{field}`: {found} among {names_text(names)}{_chunkhit.did_you_mean(wish, names)}", "usage")
    return names.index(wish) if isinstance(wish, str) else number - 1


def names_text(names: List[str]) -> str:
    listed = ", ".join(map(repr, names[:20])) or "none"
    return f"{listed} and {len(names) - 20} more" if len(names) > 20 else listed


@has_options("pack_sparse", RatingWriter, without=OF_TEXTS)
def pack_ratings(table: Any, output: Path, *, progress: Progress = None, preset: Optional[types.Preset] = None,
                 item_columns: Any = None, user_columns: Any = None, **options: Any) -> Info:
    """Packs a table of ratings, batch by batch, as `pack_sparse` packs the same table in a CSV.

        chunkhit.pack_ratings(pyarrow.parquet.ParquetFile("ratings.parquet").iter_batches(), "out", min_user=5)
        chunkhit.pack_ratings(frame, "out", user="userId", item="movieId", value="rating", time="timestamp")

    table     what has Arrow's C stream or C array interface (__arrow_c_stream__): tables, batches and readers of pyarrow, a
              DataFrame of polars, a relation of DuckDB; a DataFrame of pandas; a dict of arrays (n,) or lists by names; or
              an iterable of such tables, which are appended
    output, progress, preset
              as in pack_sparse
    user, item
              column: a name, or a number from 1; None: by a usual name, such as "userId" or "movie_id". Whole numbers, or texts,
              also as dictionaries; a number and its decimal digits are the same id
    value     the same. Numbers or bool; "none", or a table without such a column: every rating is 1
    time      the same. Whole numbers since 1970, in one unit; dates and timestamps become whole seconds since 1970 in UTC;
              "none": ignore times
    item_columns, user_columns
              as in RatingWriter

    The others are those of `RatingWriter`. Beside what packing holds within `memory_bytes`, one batch is in memory at a time.

    Returns and raises what `pack_sparse` does. Nulls, NaN and seconds with fractions are an Error "bad_data", which names the
    row, counted from 0 over all tables, and the column; types that cannot be read are a "usage". Nothing is published then.
    """
    wishes = {field: options.pop(field, None) for field in FIELDS}
    if isinstance(table, (str, bytes, os.PathLike)):
        raise ArgumentError(f"table: expected a table in memory, found {table!r}; pack_sparse reads text files, and "
                            "pyarrow.parquet.ParquetFile(path).iter_batches() Parquet")
    with RatingWriter(output, progress=progress, preset=preset, item_columns=item_columns, user_columns=user_columns,
                      **options) as writer, writer._naming_tables():
        tables = Tables(writer, wishes)
        if not tables.add(table):
            add_each(tables, table)
        return writer.finish()


def add_each(tables: Tables, iterable: Any) -> None:
    expected = "expected Arrow's __arrow_c_stream__, a DataFrame of pandas or a dict of arrays"
    if not isinstance(iterable, Iterable):
        raise ArgumentError(f"table: {expected}, or an iterable of them, found a {type(iterable).__name__}")
    for index, table in enumerate(iterable):
        if not tables.add(table):
            raise ArgumentError(f"table: batch {index}: {expected}, found a {type(table).__name__}")

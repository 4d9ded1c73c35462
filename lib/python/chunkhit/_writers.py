"""Packing what a program has in memory."""
from __future__ import annotations

import contextlib
import csv
import importlib
import math
import operator
import os
import re
import sys
import tempfile
from types import TracebackType
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Type, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

from . import _chunkhit
from . import _types as types
from ._error import ArgumentError, Error
from ._ids import id_text
from ._masks import field_arrays, image_array
from ._options import given, has_options
from ._packing import Progress, ProgressLine, finished_info, pack_options, progress_shower
from ._paths import Path, native_path
from ._publish import LineFeeds

Self = TypeVar("Self", bound="Writer")


class Writer:
    """What writers have in common; a context manager that finishes unless its body raised."""

    _core: Any

    def __init__(self, make: Any, output: Path, progress: Progress, options: Dict[str, Any]) -> None:
        self._output = native_path(output, "output")
        self._show = progress_shower(progress)
        self._core = make(pack_options(output, options), self._show)

    def finish(self) -> Dict[str, Any]:
        """Packs what was added and publishes; once. Returns what `pack_info` says of the pack, by their names if there
        are several. Logs a warning (`chunkhit.pack`) of rejected samples: how many, the key of the first with its
        reason, and where the list is."""
        try:
            found = self._core.finish()
        finally:
            self._end_line()
        return finished_info(os.fsdecode(self._output), found)

    def close(self) -> None:
        """Ends the writer. Without `finish` before, no pack is published."""
        self._core.close()
        self._end_line()

    def _end_line(self) -> None:
        if isinstance(self._show, ProgressLine):
            self._show.end()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            if kind is None and not self._core.is_closed:
                self.finish()
        finally:
            self.close()


OF_FILES = ("output", "labels", "file_column", "mask_column", "label_type", "label_separator", "empty_labels", "missing",
            "include", "split_folders", "pair", "follow_symlinks", "trust_inputs")


@has_options("pack_images", without=OF_FILES)
class ImageWriter(Writer):
    """Packs images that a program has in memory, one by one, as `pack_images` packs those of files.

        with chunkhit.ImageWriter("train", resize=64, crop=(64, 64), container="shard") as writer:
            for image, label in samples:
                writer.add(image, label)

    output    folder of the pack, or of the packs of a split
    classes   names of classes by id: a list, or as in pack_images a file or a pack; None: ids are whole numbers, or follow
              the sorted names
    progress  as in pack_images
    label_column
              names of the numbers, where labels are several
    keep_columns
              names of the columns that each sample has beside its label

    The others are those of `pack_images`.

    Images lie in a temporary file without a name beside the output, as large as all that was added, until the writer is
    closed or its process ends; the end of the `with` block packs them, and rejects those that cannot be decoded, which a
    warning (`chunkhit.pack`) counts, with the first key and its reason: more than `max_errors` are an error. An
    exception in the block, or `close`, publishes nothing. The same images, labels and keys in the same order make the same
    pack: a program that was stopped while it packed resumes when it adds them again. A writer is used by one thread at a
    time.
    """

    def __init__(self, output: Path, *, classes: Union[Path, Sequence[str], None] = None, progress: Progress = None,
                 **options: Any) -> None:
        options = given(options)
        names = list(classes) if isinstance(classes, (list, tuple)) else []
        if not all(isinstance(name, str) for name in names):
            raise ArgumentError(f"classes: expected names or a path, found {classes!r}")
        if classes is not None and not isinstance(classes, (list, tuple)):
            options["classes"] = classes
        self._columns, self._count, self._exif = column_names(options.get("keep_columns")), 0, options.get("exif")
        self._fields: List[str] = []
        super().__init__(lambda own, show: _chunkhit.ImageWriter(own, names, show), output, progress, options)

    def add(self, image: Any, label: Any = -1, key: Union[str, int, None] = None,
            columns: Optional[Mapping[str, Any]] = None, mask: Any = None, fields: Optional[Mapping[str, Any]] = None) -> None:
        """Appends an image.

        image  uint8 (height, width) or (height, width, channels) with 1 to 4 channels, as a NumPy array or a torch tensor,
               which are never transposed; an image of Pillow, turned as its EXIF says unless `exif` is "ignore"; or the bytes
               of an image file, also as uint8 (n,)
        label  a class: its id or its name; or a number (float), or several, for the label columns. All labels are of one kind;
               -1: none
        key    the sample's name, as in rejects.csv; samples with one key stay in one pack of a split. None: its number
        columns
               a value for each of `keep_columns`, by name: whole numbers, numbers or texts of up to 1,024 bytes, one kind in a
               column; None, or NaN, is a missing number
        mask   a class map, with all images or with none: (height, width) of the upright image's size, bool or integers of
               values from 0 to 255, as an array or a tensor; or an image of Pillow of one value a pixel, as mode L, or P,
               whose indices are the classes
        fields
               further fields by name, the same with all images: a mask as above, or a view, which is as an image: (height, width,
               channels), bytes of a file, or Pillow. "depth:view" says the role of a field that has (height, width)

        Raises Error "usage", naming the key, for what cannot be added, which is not added then, "bad_data" for a class that
        `classes` does not have; "cannot_write" where the disk is full.
        """
        try:
            values = column_list(self._columns, columns or {})
        except Error as error:
            raise Error(f"{f'sample {self._count}' if key is None else key}: {error}", error.code) from None
        arrays = field_arrays(mask, fields or {}, self._exif)
        if sorted(array[0] for array in arrays) == sorted(self._fields):
            arrays.sort(key=lambda array: self._fields.index(array[0]))
        self._core.add(image_array(image, self._exif), label_value(label), key_text(key), values, arrays)
        self._fields = [array[0] for array in arrays]
        self._count += 1


OF_TABLES = ("output", "format", "delimiter", "header", "user", "item", "value", "time", "quote", "comment", "transpose", "layer",
             "feature_type", "shared_rows", "encoding", "table_header", "table_quote", "on_error", "max_errors")


@has_options("pack_sparse", without=OF_TABLES)
class RatingWriter(Writer):
    """Packs user-item ratings that a program has in memory, block by block, as `pack_sparse` packs those of files.

        with chunkhit.RatingWriter("out", preset="vae-cf") as writer:
            for table in tables:
                writer.add(table["user"], table["item"], table["rating"])

    output    folder of the pack, or of the packs of a split
    progress, preset
              as in pack_sparse
    item_columns, user_columns
              tables whose columns are kept beside the items or users, by their ids: a DataFrame of pandas, whose index is
              the ids; a dict of equally long lists or arrays, of which the first is the ids; or a CSV as in `pack_sparse`.
              Types are those of a CSV with these values: texts that are all whole numbers become numbers

    The others are those of `pack_sparse`. The pack is that of a COO matrix with all entries in this order: it does not depend
    on how they are divided into blocks. Packing runs in threads of its own from the first block on, within `memory_bytes` and
    about 50 MB of blocks under way.

    The end of the `with` block finishes the pack; an exception in it, or `close`, publishes nothing. A writer is used by one
    thread at a time. An Error of packing is raised by a later call.
    """

    def __init__(self, output: Path, *, progress: Progress = None, preset: Optional[types.Preset] = None,
                 item_columns: Any = None, user_columns: Any = None, **options: Any) -> None:
        options = given({**options, "preset": preset, "item_columns": item_columns, "user_columns": user_columns})
        self._tables = tempfile.TemporaryDirectory(prefix="chunkhit-")
        for name in ("item_columns", "user_columns"):
            if name in options:
                options[name] = table_path(name, options[name], self._tables.name)
        super().__init__(_chunkhit.RatingWriter, output, progress, options)

    def finish(self) -> Dict[str, Any]:
        with self._naming_tables():
            return super().finish()

    def close(self) -> None:
        super().close()
        self._tables.cleanup()

    finish.__doc__, close.__doc__ = Writer.finish.__doc__, Writer.close.__doc__

    @contextlib.contextmanager
    def _naming_tables(self) -> Iterator[None]:
        """Errors name a table in memory by its keyword and row, not by the file that it was written to."""
        try:
            yield
        except Error as error:
            text = re.sub(re.escape(self._tables.name) + r"/(\w+)\.csv(?::(\d+))?", table_text, str(error))
            if text == str(error):
                raise
            raise Error(text, error.code) from None

    def add(self, users: Any, items: Any, values: Any = None, times: Any = None) -> None:
        """Appends ratings: arrays, lists or pandas columns (n,).

        users, items  whole numbers or texts, also pandas' Int64; a number and its decimal digits are the same id
        values        numbers, also pandas' Int64 and Float64; None: every rating is 1
        times         whole numbers since 1970, in one unit, or datetime64 (kept as seconds), which pandas.to_datetime makes of
                      texts; None: none

        Raises Error "usage" where they do not fit together, and "bad_data", naming the entry, for a missing id or a value
        that is not finite: nothing of this block is added then.
        """
        entries = (ids_column("users", users), ids_column("items", items), numbers_column("values", values), times_column(times))
        with self._naming_tables():
            self._core.add(*entries)

    def add_matrix(self, matrix: Any, users: Any = None, items: Any = None) -> None:
        """Appends a matrix of scipy.sparse, CSR or any other.

        users, items  ids of its rows and of its columns; None: their numbers from 0
        """
        if not hasattr(matrix, "tocsr"):
            raise ArgumentError(f"matrix: expected one of scipy.sparse, found a {type(matrix).__name__}")
        row_ids = axis_ids("users", users, matrix.shape[0])
        column_ids = axis_ids("items", items, matrix.shape[1])
        with self._naming_tables():
            if matrix.format == "csr":
                self._core.add_rows(row_ids, matrix.indptr.astype(np.uint64), chosen(column_ids, matrix.indices),
                                    numbers_column("values", matrix.data))
                return
            entries = matrix.tocoo()
            self._core.add(chosen(row_ids, entries.row), chosen(column_ids, entries.col),
                           numbers_column("values", entries.data), None)


def table_text(found: "re.Match[str]") -> str:
    """The keyword, and the row of the table, from 0, that a line of its file belongs to."""
    if found[2] is None:
        return found[1]
    path = found[0][: -len(found[2]) - 1]
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        row = next((row for row, _ in enumerate(reader, -1) if reader.line_num >= int(found[2])), -1)
    return f"{found[1]}: row {row}, counted from 0"


def id_header(name: str) -> str:
    """A name by which the first column is that of the ids, whatever the others are called."""
    return "item" if name == "item_columns" else "user"


def table_path(name: str, table: Any, folder: str) -> Any:
    """The path of a CSV: the given one, or one that is written of a table in memory."""
    if isinstance(table, (str, bytes, os.PathLike)):
        return table
    path = os.path.join(folder, f"{name}.csv")
    if hasattr(table, "to_csv"):
        if not len(table.columns):
            raise Error(f"{name}: expected columns beside the index, found none", "usage")
        if type(table.index).__name__ == "RangeIndex" and table.index.name is None and table.index.start == 0:
            raise Error(f"{name}: expected an index of ids, found the one that pandas makes: 0, 1, ...; set_index(\"COLUMN\") takes them "
                        "from a column", "usage")
        table.to_csv(path, index_label=id_header(name))
        return path
    if not isinstance(table, dict) or not table:
        raise TypeError(f"{name}: expected a DataFrame, a dict of arrays or a path, found a {type(table).__name__}")
    columns = {each: column(f"{name}[{each!r}]", values) for each, values in table.items()}
    lengths = {each: len(values) for each, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise Error(f"{name}: expected arrays of one length, found {lengths}", "usage")
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(LineFeeds(file))
        writer.writerow([id_header(name), *list(columns)[1:]])
        writer.writerows(zip(*(values.tolist() for values in columns.values())))
    return path


Ids = Union[NDArray[Any], List[str]]


def column(name: str, values: Any) -> NDArray[Any]:
    """(n,); raises Error "bad_data" for a missing value of pandas' nullable types."""
    kind = getattr(getattr(values, "dtype", None), "numpy_dtype", None)  # of Int64, Float64, boolean
    if kind is not None:
        check_missing(name, np.asarray(values.isna()))
        values = values.to_numpy(kind)
    array = np.asarray(values)
    if array.ndim != 1:
        raise Error(f"{name}: expected shape (n,), found {array.shape}", "usage")
    return array


def check_missing(name: str, is_missing: NDArray[Any]) -> None:
    if is_missing.any():
        raise Error(f"{name}[{is_missing.argmax()}]: expected a value, found a missing one (NaN, <NA>)", "bad_data")


def ids_column(name: str, ids: Any) -> Ids:
    """int64 (n,), or texts; raises Error "usage" for other types."""
    array = column(name, ids)
    if array.size == 0 or array.dtype.kind == "i" or (array.dtype.kind == "u" and array.max() < 1 << 63):
        return np.ascontiguousarray(array, np.int64)
    if array.dtype.kind == "f":  # what pandas makes of whole numbers where one is missing
        check_missing(name, np.isnan(array))
    if array.dtype.kind not in "uUO":
        is_whole = array.dtype.kind == "f" and bool((array == np.floor(array)).all())
        hint = '; .astype("int64") makes whole numbers of these' if is_whole else ""
        raise Error(f"{name}: expected whole numbers or texts, found {array.dtype}{hint}", "usage")
    found: List[Any] = array.tolist()
    for at, each in enumerate(found):
        if type(each) is not str:
            try:
                found[at] = id_text(each)
            except Error:
                raise Error(f"{name}[{at}]: expected a text or a whole number, found {each!r}", "bad_data") from None
    return found


def axis_ids(name: str, ids: Any, count: int) -> Ids:
    if ids is None:
        return np.arange(count)
    found = ids_column(name, ids)
    if len(found) != count:
        raise Error(f"{name}: expected {count:,} ids, as the matrix has, found {len(found):,}", "usage")
    return found


def chosen(ids: Ids, indices: NDArray[Any]) -> Ids:
    return ids[indices] if isinstance(ids, np.ndarray) else [ids[index] for index in indices]


def numbers_column(name: str, values: Any) -> Optional[NDArray[Any]]:
    if values is None:
        return None
    array = column(name, values)
    if array.dtype.kind not in "fiub":
        raise Error(f"{name}: expected numbers, found {array.dtype}", "usage")
    return np.ascontiguousarray(array, np.float32 if array.dtype in (np.float32, np.float16) else np.float64)


def times_column(times: Any, name: str = "times") -> Optional[NDArray[Any]]:
    """int64 (n,); of dates seconds since 1970."""
    if times is None:
        return None
    has_zone = getattr(getattr(times, "dtype", None), "tz", None) is not None  # of pandas
    array = column(name, np.asarray(times, "datetime64[ns]") if has_zone else times)
    if array.dtype.kind not in "iufM":
        raise Error(f"{name}: expected numbers or datetime64, found {array.dtype}; pandas.to_datetime(times) makes "
                    "datetime64 of texts and dates", "usage")
    missing = np.isnat(array) if array.dtype.kind == "M" else ~np.isfinite(array)
    if missing.any():
        raise Error(f"{name}[{missing.argmax()}]: expected a time, found {array[missing.argmax()]}", "bad_data")
    whole = array.astype("datetime64[s]") if array.dtype.kind == "M" else np.floor(array) if array.dtype.kind == "f" else array
    is_cut = whole != array
    if is_cut.any():
        advice = (name + '.astype("datetime64[ms]").astype("int64") keeps milliseconds' if array.dtype.kind == "M"
                  else "whole milliseconds keep fractions")
        raise Error(f"{name}[{is_cut.argmax()}]: expected whole seconds, found {array[is_cut.argmax()]}; {advice}", "bad_data")
    if array.dtype.kind in "uf" and len(whole) and not (-(2**63) <= int(whole.min()) and int(whole.max()) < 2**63):
        raise Error(f"{name}: expected numbers of 64 bits, found larger ones", "bad_data")
    return np.ascontiguousarray(whole, np.int64)


def int64_value(expected: str, value: Any) -> Optional[int]:
    """None where the value is no whole number."""
    try:
        number = operator.index(value)
    except TypeError:
        return None
    if not -(1 << 63) <= number < 1 << 63:
        raise Error(f"{expected} that 64 bits hold, found {number}", "usage")
    return number


def label_value(label: Any) -> Union[int, str, NDArray[Any]]:
    """An int, a text, or float32 (columns,)."""
    if isinstance(label, str):
        return str(label)
    number = int64_value("label: expected an id", label)
    if number is not None:
        return number
    numbers: NDArray[Any] = np.empty((0, 0))
    try:
        if label is not None:
            numbers = np.asarray(label, np.float32)
    except (TypeError, ValueError):
        pass
    if numbers.ndim > 1:
        found = f"shape {numbers.shape}; a mask is given as mask=" if numbers.size else repr(label)
        raise Error(f"label: expected the id or the name of a class, or numbers, found {found}", "usage")
    return np.ascontiguousarray(numbers.reshape(-1))


def column_names(names: Optional[types.Texts]) -> List[str]:
    return [names] if isinstance(names, str) else list(names or [])


def column_list(names: List[str], columns: Mapping[str, Any]) -> List[Union[int, float, str]]:
    """The values of a sample in the order of the names; raises Error "usage" where one is missing or is none of these."""
    listed = ", ".join(names) or "none"
    for name in [*names, *columns]:
        if name not in names:
            raise Error(f"columns: found {name!r}, expected {listed}; keep_columns names what each sample has", "usage")
        if name not in columns:
            raise Error(f"columns: {name!r} is missing, found {', '.join(map(str, columns)) or 'none'}", "usage")
    return [column_value(name, columns[name]) for name in names]


def column_value(name: str, value: Any) -> Union[int, float, str]:
    if isinstance(value, str):
        return str(value)
    if value is None:
        return math.nan
    number = int64_value(f"column {name!r}: expected a number", value)
    if number is not None:
        return number
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Error(f"column {name!r}: expected a number or a text, found {value!r}", "usage") from None


def key_text(key: Union[str, int, None]) -> str:
    if key is None:
        return ""
    text = str(key) if isinstance(key, str) else id_text(key)
    if not text:
        raise Error("key: expected a text or a whole number, found an empty text", "usage")
    return text

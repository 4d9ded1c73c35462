"""Packing what a program has in memory."""
from __future__ import annotations

import operator
import os
import sys
from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence, Type, TypeVar, Union

import numpy as np

from . import _chunkhit
from ._error import Error
from ._ids import id_text
from ._packing import Progress, ProgressLine, check_split, pack_info, pack_options, progress_shower
from ._paths import Path, native_path

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
        are several."""
        try:
            self._core.finish()
        finally:
            self._end_line()
        return pack_info(os.fsdecode(self._output))

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


class ImageWriter(Writer):
    """Packs images that a program has in memory, one by one, as `pack_images` packs those of files.

        with chunkhit.ImageWriter("train", resize=64, crop=(64, 64), container="shard") as writer:
            for image, label in samples:
                writer.add(image, label)

    output    folder of the pack, or of the packs of a split
    classes   names of classes by id: a list, or as in pack_images a file or a pack; None: ids are whole numbers, or follow
              the sorted names
    progress  as in pack_images

    The options are those of `pack_images` but the ones of files: root, labels, file_column, delimiter, include, split_folders,
    follow_symlinks. `label_column` names the numbers of labels.

    Images lie in a temporary file without a name beside the output, as large as all that was added, until the writer is
    closed or its process ends; the end of the `with` block packs them, and rejects those that cannot be decoded. An
    exception in the block, or `close`, publishes nothing. The same images, labels and keys in the same order make the same
    pack: a program that was stopped while it packed resumes when it adds them again. A writer is used by one thread at a
    time.
    """

    def __init__(self, output: Path, *, classes: Union[Path, Sequence[str], None] = None, progress: Progress = None,
                 **options: Any) -> None:
        check_split(options.get("split"))
        names = list(classes) if isinstance(classes, (list, tuple)) else []
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"classes: expected names or a path, found {classes!r}")
        if not isinstance(classes, (list, tuple)):
            options["classes"] = classes
        super().__init__(lambda own, show: _chunkhit.ImageWriter(own, names, show), output, progress, options)

    def add(self, image: Any, label: Any, key: Union[str, int, None] = None) -> None:
        """Appends an image.

        image  uint8 (height, width) or (height, width, channels) with 1 to 4 channels, as a NumPy array or a torch tensor,
               which are never transposed; an image of Pillow, as its pixels are (EXIF is not looked at); or the bytes of an
               image file, also as uint8 (n,)
        label  a class: its id or its name; or a number (float), or several, for the label columns. All labels are of one kind
        key    the sample's name, as in rejects.csv; samples with one key stay in one pack of a split. None: its number

        Raises Error "usage" for what cannot be added, which is not added then; "cannot_write" where the disk is full.
        """
        self._core.add(image_array(image), label_value(label), key_text(key))


class RatingWriter(Writer):
    """Packs user-item ratings that a program has in memory, block by block, as `pack_sparse` packs those of files.

        with chunkhit.RatingWriter("out", preset="vae-cf") as writer:
            for table in tables:
                writer.add(table["user"], table["item"], table["rating"])

    output    folder of the pack, or of the packs of a split
    progress  as in pack_sparse

    The options are those of `pack_sparse` but the ones of its inputs and of a split given as files. The pack is that of a
    COO matrix with all entries in this order: it does not depend on how they are divided into blocks. Packing runs in
    threads of its own from the first block on, within `memory_bytes` and about 50 MB of blocks under way.

    The end of the `with` block finishes the pack; an exception in it, or `close`, publishes nothing. A writer is used by one
    thread at a time. An Error of packing is raised by a later call.
    """

    def __init__(self, output: Path, *, progress: Progress = None, **options: Any) -> None:
        super().__init__(_chunkhit.RatingWriter, output, progress, options)

    def add(self, users: Any, items: Any, values: Any = None, times: Any = None) -> None:
        """Appends ratings: arrays, lists or pandas columns (n,).

        users, items  whole numbers or texts; a number and its decimal digits are the same id
        values        numbers; None: every rating is 1
        times         numbers since 1970, in one unit, or datetime64; None: there are none

        Raises Error "usage" where they do not fit together, and "bad_data", naming the entry, for a missing id or a value
        that is not finite: nothing of this block is added then.
        """
        self._core.add(ids_column("users", users), ids_column("items", items), numbers_column("values", values),
                       times_column(times))

    def add_matrix(self, matrix: Any, users: Any = None, items: Any = None) -> None:
        """Appends a matrix of scipy.sparse, CSR or any other.

        users, items  ids of its rows and of its columns; None: their numbers from 0
        """
        if not hasattr(matrix, "tocsr"):
            raise TypeError(f"matrix: expected one of scipy.sparse, found a {type(matrix).__name__}")
        row_ids, column_ids = (axis_ids(*axis) for axis in (("users", users, matrix.shape[0]), ("items", items, matrix.shape[1])))
        if matrix.format == "csr":
            self._core.add_rows(row_ids, matrix.indptr.astype(np.uint64), chosen(column_ids, matrix.indices),
                                numbers_column("values", matrix.data))
            return
        entries = matrix.tocoo()
        self._core.add(chosen(row_ids, entries.row), chosen(column_ids, entries.col),
                       numbers_column("values", entries.data), None)


Ids = Union[np.ndarray, List[str]]


def column(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise Error(f"{name}: expected shape (n,), found {array.shape}", "usage")
    return array


def ids_column(name: str, ids: Any) -> Ids:
    """int64 (n,), or texts; raises Error "usage" for other types."""
    array = column(name, ids)
    if array.size == 0 or array.dtype.kind == "i" or (array.dtype.kind == "u" and array.max() < 1 << 63):
        return np.ascontiguousarray(array, np.int64)
    if array.dtype.kind not in "uUO":
        raise Error(f"{name}: expected whole numbers or texts, found {array.dtype}", "usage")
    found = array.tolist()
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


def chosen(ids: Ids, indices: np.ndarray) -> Ids:
    return ids[indices] if isinstance(ids, np.ndarray) else [ids[index] for index in indices]


def numbers_column(name: str, values: Any) -> Optional[np.ndarray]:
    if values is None:
        return None
    array = column(name, values)
    if array.dtype.kind not in "fiub":
        raise Error(f"{name}: expected numbers, found {array.dtype}", "usage")
    return np.ascontiguousarray(array, np.float32 if array.dtype in (np.float32, np.float16) else np.float64)


def times_column(times: Any) -> Optional[np.ndarray]:
    """int64 (n,); of dates seconds since 1970."""
    if times is None:
        return None
    array = column("times", times)
    if array.dtype.kind not in "iufM":
        raise Error(f"times: expected numbers or datetime64, found {array.dtype}", "usage")
    missing = np.isnat(array) if array.dtype.kind == "M" else ~np.isfinite(array)
    if missing.any():
        raise Error(f"times[{missing.argmax()}]: expected a time, found {array[missing.argmax()]}", "bad_data")
    if array.dtype.kind == "M":
        array = array.astype("datetime64[s]")
    return np.ascontiguousarray(np.floor(array) if array.dtype.kind == "f" else array, np.int64)


def image_array(image: Any) -> np.ndarray:
    """uint8 (height, width, channels), or an image file as uint8 (n,)."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        return np.frombuffer(image, np.uint8)
    torch, pillow = sys.modules.get("torch"), sys.modules.get("PIL.Image")
    if torch is not None and isinstance(image, torch.Tensor):
        array = image.detach().cpu().numpy()
    elif pillow is not None and isinstance(image, pillow.Image):
        array = np.asarray(pillow_pixels(image))
    elif isinstance(image, np.ndarray):
        array = image
    else:
        raise TypeError("image: expected a NumPy array, a torch tensor, an image of Pillow or bytes, "
                        f"found a {type(image).__name__}")
    if array.dtype != np.uint8:
        raise Error(f"image: expected uint8, found {array.dtype}; add it before it is converted", "usage")
    if array.ndim == 2:
        array = array[:, :, np.newaxis]
    if array.ndim != 1 and not (array.ndim == 3 and 1 <= array.shape[2] <= 4 and array.size):
        is_planar = array.ndim == 3 and 1 <= array.shape[0] <= 4
        raise Error("image: expected shape (height, width) or (height, width, 1 to 4 channels), found "
                    f"{tuple(image.shape)}" + ("; permute(1, 2, 0) of a tensor, transpose(1, 2, 0) of an array, makes it so"
                                               if is_planar else ""), "usage")
    return np.ascontiguousarray(array)


def pillow_pixels(image: Any) -> Any:
    """The image in a mode of 8 bits a channel, as pack_images decodes it."""
    if image.mode in ("L", "LA", "RGB", "RGBA"):
        return image
    if image.mode in ("1", "P", "PA", "CMYK", "YCbCr"):
        has_alpha = image.mode == "PA" or "transparency" in image.info
        return image.convert("L" if image.mode == "1" else "RGBA" if has_alpha else "RGB")
    raise Error(f"image: expected 8 bits a channel, found Pillow's mode {image.mode}; convert it first", "usage")


def label_value(label: Any) -> Union[int, str, np.ndarray]:
    """An int, a text, or float32 (columns,)."""
    if isinstance(label, str):
        return str(label)
    try:
        number = operator.index(label)
    except TypeError:
        pass
    else:
        if not -(1 << 63) <= number < 1 << 63:
            raise Error(f"label: expected an id that 64 bits hold, found {number}", "usage")
        return number
    try:
        numbers = np.asarray(label, np.float32) if label is not None else np.empty((0, 0))
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.ndim > 1:
        raise Error(f"label: expected the id or the name of a class, or numbers, found {label!r}", "usage")
    return np.ascontiguousarray(numbers.reshape(-1))


def key_text(key: Union[str, int, None]) -> str:
    if key is None:
        return ""
    text = str(key) if isinstance(key, str) else id_text(key)
    if not text:
        raise Error("key: expected a text or a whole number, found an empty text", "usage")
    return text

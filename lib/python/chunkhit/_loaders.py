"""Loaders: batches that are always ready."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, Generic, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from . import _chunkhit
from ._batches import CsrRows, ImageBatch, SparseBatch
from ._error import Error

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Sequence[Path]]
Batch = TypeVar("Batch")


def path_list(paths: Paths) -> List[str]:
    """One path or several, as texts."""
    if isinstance(paths, (str, os.PathLike)):
        return [os.fspath(paths)]
    return [os.fspath(path) for path in paths]


def keywords(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """The options among a constructor's locals()."""
    return {name: value for name, value in arguments.items() if name not in ("self", "paths", "writable", "__class__")}


class Epoch(Generic[Batch]):
    """The batches that are left of an epoch; to be iterated once, until another is begun."""

    def __init__(self, loader: "Loader[Batch]", number: int) -> None:
        self._loader = loader
        self._number = number

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        return self._loader._next_of(self)


class Loader(Generic[Batch]):
    """What ImageLoader and SparseLoader have in common. One thread at a time may take batches, and any look at the
    statistics and the state meanwhile; a forked child must make its own."""

    _core: Any

    def __init__(self, core: Any) -> None:
        self._core = core
        self._running: Optional[Epoch[Batch]] = None
        self._next_epoch = 0

    def epoch(self, epoch: int) -> Epoch[Batch]:
        """The batches of an epoch, from its first, or from where `restore` left it."""
        self._core.begin(epoch)
        self._running = Epoch(self, epoch)
        self._next_epoch = epoch
        return self._running

    def __iter__(self) -> Iterator[Batch]:
        """The batches of the epoch that `set_epoch` named, or else of the one after the last that was finished."""
        return iter(self.epoch(self._next_epoch))

    def __len__(self) -> int:
        """Batches of a whole epoch of this rank."""
        return self._core.batch_count

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch the next `for batch in loader` is, as DistributedSampler.set_epoch does."""
        self._next_epoch = epoch

    def state(self) -> str:
        """Where reading stands, after the batch that was handed out last, as one line of JSON."""
        return self._core.state()

    def restore(self, state: str) -> None:
        """Goes on there: the epoch of the state gives exactly the batches that were left; with another world_size or
        batch_size all samples that were left, where every rank stopped after the same batch. Raises Error "usage" when
        the state belongs to another source, seed, order or augment; so does another epoch while batches are left."""
        self._core.restore(state)
        self._running = None
        self._next_epoch = json.loads(state)["epoch"]

    def state_dict(self) -> Dict[str, Any]:
        """`state` as torchdata's StatefulDataLoader and Lightning ask for it."""
        return {"chunkhit": self.state()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """`restore` for a state of `state_dict`."""
        self.restore(state["chunkhit"])

    def stats(self) -> _chunkhit.LoaderStats:
        """Who waited for whom since the loader was made or `reset_stats` was called; print it."""
        return self._core.stats()

    def reset_stats(self) -> None:
        self._core.reset_stats()

    def mixing(self) -> _chunkhit.MixingInfo:
        """How well shuffle="window" mixes."""
        return self._core.mixing()

    @property
    def size(self) -> int:
        """Samples (rows) of the source, of all ranks."""
        return self._core.size

    @property
    def info(self) -> Dict[str, Any]:
        """What the (first) pack holds, as `pack_info` gives it."""
        return json.loads(self._core.info_json())

    def _next_of(self, epoch: Epoch[Batch]) -> Batch:
        if epoch is not self._running:
            raise Error("this epoch is over: another one was begun, or a state restored", "usage")
        found = self._take()
        if found is None:
            self._next_epoch = epoch._number + 1
            raise StopIteration
        return found

    def _take(self) -> Optional[Batch]:
        """The next batch, or None at the end."""
        raise NotImplementedError


class ImageLoader(Loader[ImageBatch]):
    """Batches of pictures from a pack, a part, or another HDF5 file with a uint8 array (n, ...).

    paths           one, or several that are read as one in this order
    batch_size      samples a batch
    shuffle         "none": as packed; "window": chunks permuted, samples permuted within windows of chunks;
                    "global": any sample may follow any other, for what is in memory or stored raw
    seed            of order and augmentation; the same batches for any number of threads
    window_chunks   chunks a window
    rank, world_size, uneven, drop_last
                    which of how many readers this is; samples that cannot be shared out evenly are used twice ("pad")
                    or left out ("drop"); whether a last batch that is not full is left out
    echo            how often each fetched block of echo * batch_size samples is used
    augment         dict(flip_horizontal=0..1, crop_height=, crop_width=, random_crop=bool, crop_padding=)
    as_             "u8", or "f32": (x / 255 - mean) / std
    normalize       dict(mean=[...], std=[...]) in 0..1 of each channel, for "f32"; the pack's own where it is not given
    layout          "nhwc" or "nchw"; as stored where it is None
    residency       "decoded", "compressed", "stream": where samples wait until they are used; "automatic": "stream" of raw
                    samples in local files unless the order is global, else the first that fits memory_bytes
    memory_bytes    for chunks; 0: half of what the process may still take
    threads         0: all CPUs that the process may use
    prefetch        batches made ahead
    check_hashes    "first_use", "always", "never"
    on_corrupt      "fail", or "skip": leave damaged chunks out and count them
    allocator       a function of a number of bytes that gives a writable, 64-byte aligned buffer for a batch's images
    images, labels  datasets of an HDF5 file that no pack-images wrote

    Raises Error: "usage" for options that make no sense, "bad_data" for a damaged pack, "try_again" where memory or threads
    cannot be had.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        batch_size: int = 256,
        shuffle: str = "none",
        seed: int = 0,
        window_chunks: int = 64,
        rank: int = 0,
        world_size: int = 1,
        uneven: str = "pad",
        drop_last: bool = False,
        echo: int = 1,
        augment: Optional[Dict[str, Any]] = None,
        as_: str = "u8",
        normalize: Optional[Dict[str, Any]] = None,
        layout: Optional[str] = None,
        residency: str = "automatic",
        memory_bytes: int = 0,
        threads: int = 0,
        prefetch: int = 4,
        check_hashes: str = "first_use",
        on_corrupt: str = "fail",
        allocator: Any = None,
        images: str = "images",
        labels: str = "labels",
    ) -> None:
        super().__init__(_chunkhit.ImageLoader(path_list(paths), keywords(locals())))

    @property
    def batch_shape(self) -> Tuple[int, ...]:
        """The shape of a full batch's images."""
        return self._core.batch_shape

    def _take(self) -> Optional[ImageBatch]:
        found = self._core.next()
        return None if found is None else ImageBatch.of(*found)


class SparseLoader(Loader[SparseBatch]):
    """Batches of rows from a pack of pack-sparse, a part of one, or an AnnData file.

    The options are those of ImageLoader, and:
    as_         "dense_f32", "dense_f16", "dense_u8" (numbers as stored: a rating is one times `value_scale`), "csr"
    binarize    every entry is 1
    scale       entries are multiplied with it, after binarize
    normalize   "none", "l1", "l2": by what each row of x is divided then
    held_out    serve the held-out matrix, too, where the pack has one
    writable    dense arrays may be written to. They are read-only else: only the cells that a batch had set are
                cleared then, where those of a written one are cleared as a whole, at some times the price
    """

    def __init__(
        self,
        paths: Paths,
        *,
        batch_size: int = 500,
        shuffle: str = "none",
        seed: int = 0,
        window_chunks: int = 64,
        rank: int = 0,
        world_size: int = 1,
        uneven: str = "pad",
        drop_last: bool = False,
        echo: int = 1,
        as_: str = "dense_f32",
        binarize: bool = False,
        scale: float = 1.0,
        normalize: str = "none",
        held_out: bool = True,
        writable: bool = False,
        residency: str = "automatic",
        memory_bytes: int = 0,
        threads: int = 0,
        prefetch: int = 4,
        check_hashes: str = "first_use",
        on_corrupt: str = "fail",
        allocator: Any = None,
    ) -> None:
        super().__init__(_chunkhit.SparseLoader(path_list(paths), keywords(locals()), *self._writing(writable)))

    @staticmethod
    def _writing(writable: bool) -> Tuple[bool, bool]:
        """Whether arrays are writable, and whether written ones are cleared as a whole."""
        return writable, True

    @property
    def column_count(self) -> int:
        """Items."""
        return self._core.column_count

    @property
    def has_held_out(self) -> bool:
        return self._core.has_held_out

    @property
    def value_scale(self) -> float:
        """A rating is a number of "dense_u8" times this."""
        return self._core.value_scale

    def row_id(self, row: int) -> str:
        """The user's own id."""
        return self._core.row_id(row)

    def column_id(self, column: int) -> str:
        """The item's own id."""
        return self._core.column_id(column)

    def item_counts(self) -> np.ndarray:
        """uint64 (columns,): ratings of each item in the training matrix; empty for a lone part."""
        return self._core.item_counts()

    def _matrix(self, found: Any, rows: int) -> Any:
        if not isinstance(found, tuple):
            return found
        indptr, indices, values, _ = found
        return CsrRows(indptr, indices, values, (rows, self._core.column_count))

    def _take(self) -> Optional[SparseBatch]:
        found = self._core.next()
        if found is None:
            return None
        x, held_out, labels, rows, epoch, index = found
        return SparseBatch(self._matrix(x, len(rows)), self._matrix(held_out, len(rows)), labels, rows, epoch, index)

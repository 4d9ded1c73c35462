"""Loaders: batches that are always ready."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np

from . import _chunkhit
from ._batches import CsrRows, ImageBatch, SparseBatch
from ._ids import Ids
from ._loader import Loader
from ._paths import Path, Paths, native_paths


def keywords(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """The options among a constructor's locals()."""
    return {name: value for name, value in arguments.items() if name not in ("self", "paths", "writable", "__class__")}


class ImageLoader(Loader[ImageBatch]):
    """Batches of images from a pack, a part, or another HDF5 file with a uint8 array (n, ...).

    paths           one, or several that are read as one in this order; their classes are joined by name: the first
                    one's ids stay, names that it lacks follow (info["classes"]); only some with names is an error
    batch_size      samples a batch
    shuffle         "none": as packed; "window": chunks permuted, samples permuted within windows of chunks;
                    "global": any sample may follow any other, for what is in memory or stored raw
    seed            of order and augmentation; the same batches for any number of threads
    window_chunks   chunks a window
    rank, world_size, rank_remainder, drop_last
                    which of how many readers this is; samples that cannot be shared out evenly are used twice ("pad")
                    or left out ("drop"); whether a last batch that is not full is left out
    echo            how often each fetched block of echo * batch_size samples is used
    augment         dict(flip_horizontal=0..1, crop_height=, crop_width=, random_crop=bool, crop_padding=)
    dtype           "uint8", or "float32": (x / 255 - mean) / std
    normalize       dict(mean=[...], std=[...]) in 0..1 of each channel, for "f32"; mean 0 and std 1 leave x / 255. What is
                    not given are those that the packs of one split share, which are the first (training) pack's; a pack
                    without a split is normalised by its own, which stats() notes
    normalize_like  a pack, the training one say, whose mean and std normalise this one, for "f32"
    layout          "nhwc" or "nchw"; as stored where it is None
    cache       "decoded", "compressed", "none": how samples are cached; "automatic": "none" for raw
                    samples in local files unless the order is global or a window's chunks do not fit cache_bytes, else the
                    first that fits
    cache_bytes    for chunks; 0: half of what the process may still take
    threads         0: all CPUs that the process may use
    prefetch        batches made ahead
    check_hashes    "first_use": each time that a chunk is read from its file, with cache "none" in each epoch; where samples
                    are read one by one (cache "none" of raw samples in order global, or with too little cache_bytes) their
                    chunk in the file is hashed before the first, and whenever the file's size or times changed.
                    "always": also each time that bytes are used which stayed in memory; "never"
    on_corrupt      "fail", or "skip": leave damaged chunks out and count them
    allocator       a function of a number of bytes that gives a writable, 64-byte aligned buffer for a batch's images
    images, labels  datasets of an HDF5 file that no pack-images wrote; None: the labels next to the images, "train/labels"
                    for "train/images", which must exist; labels="" reads the images only, and labels are -1 then

    Each loop serves the next epoch, if the one before it was read to its end: after a `break` the next loop begins the same
    epoch again, with the same batches. To limit the batches of an epoch, name the epoch:

        for epoch in range(10):
            for images, labels in itertools.islice(loader.epoch(epoch), 100):

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
        rank_remainder: str = "pad",
        drop_last: bool = False,
        echo: int = 1,
        augment: Optional[Dict[str, Any]] = None,
        dtype: str = "uint8",
        normalize: Optional[Dict[str, Any]] = None,
        normalize_like: Optional[Path] = None,
        layout: Optional[str] = None,
        cache: str = "automatic",
        cache_bytes: int = 0,
        threads: int = 0,
        prefetch: int = 4,
        check_hashes: str = "first_use",
        on_corrupt: str = "fail",
        allocator: Any = None,
        images: str = "images",
        labels: Optional[str] = None,
    ) -> None:
        options = keywords(locals())
        if normalize_like is not None:
            options["normalize_like"] = native_paths([normalize_like])[0]
        super().__init__(_chunkhit.ImageLoader(native_paths(paths), options), options)

    def _summary(self) -> str:
        return f"{self.size} samples, batches of {self.batch_shape}"

    @property
    def batch_shape(self) -> Tuple[int, ...]:
        """The shape of a full batch's images."""
        return self._core.batch_shape

    def _take(self) -> Optional[ImageBatch]:
        found = self._core.next()
        return None if found is None else ImageBatch.of(*found)


class SparseLoader(Ids, Loader[SparseBatch]):
    """Batches of rows from a pack of pack-sparse, a part of one, or an AnnData file.

    The options are those of ImageLoader, as is what a `break` does (`itertools.islice(loader.epoch(epoch), 100)` limits
    batches), and:
    format      "dense_f32", "dense_f16" (an error where values exceed 65504), "dense_u8" (numbers as stored: a rating
                is one times `value_scale`), "csr"
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
        rank_remainder: str = "pad",
        drop_last: bool = False,
        echo: int = 1,
        format: str = "dense_f32",
        binarize: bool = False,
        scale: float = 1.0,
        normalize: str = "none",
        held_out: bool = True,
        writable: bool = False,
        cache: str = "automatic",
        cache_bytes: int = 0,
        threads: int = 0,
        prefetch: int = 4,
        check_hashes: str = "first_use",
        on_corrupt: str = "fail",
        allocator: Any = None,
    ) -> None:
        options = keywords(locals())
        super().__init__(_chunkhit.SparseLoader(native_paths(paths), options, *self._writing(writable)), options)

    @staticmethod
    def _writing(writable: bool) -> Tuple[bool, bool]:
        """Whether arrays are writable, and whether written ones are cleared as a whole."""
        return writable, True

    def _summary(self) -> str:
        return f"{self.size} rows of {self.column_count} columns"

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

    def item_counts(self) -> np.ndarray:
        """uint64 (columns,): ratings of each item in the training matrix; empty for a single part."""
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

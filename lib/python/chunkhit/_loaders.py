"""Loaders: batches that are always ready."""
import os
import reprlib
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _chunkhit
from . import _types as types
from ._batches import CsrRows, ImageBatch, SparseBatch, times_of
from ._error import ArgumentError
from ._ids import Ids
from ._info import OfImages, OfRatings
from ._loader import Loader
from ._options import has_options
from ._paths import Path, Paths, native_path, native_paths, with_native_paths


def keywords(arguments: Dict[str, Any], *others: str) -> Dict[str, Any]:
    """The options of the binding among a constructor's locals(); `others` are not."""
    not_options = ("self", "paths", "writable", "__class__", *others)
    return {name: value for name, value in arguments.items() if name not in not_options}


def mixture_option(paths: Any) -> Tuple[Any, Optional[List[float]]]:
    """The paths, and the weights of a dict of them."""
    if not isinstance(paths, dict):
        return paths, None
    if not all(isinstance(weight, (int, float)) and not isinstance(weight, bool) for weight in paths.values()):
        raise ArgumentError(f"paths: expected weights that are numbers, found {reprlib.repr(paths)}")
    if not paths:
        raise ArgumentError("paths: expected a path or several, found an empty dict")
    return list(paths), [float(weight) for weight in paths.values()]


def subset_option(subset: Any) -> Any:
    """The path of a CSV as the system has it; other subsets as they are."""
    if str(getattr(subset, "dtype", "")) in ("bool", "torch.bool"):
        raise ArgumentError("subset: expected an array of sample numbers, found one of bool; numpy.flatnonzero(mask) gives the "
                            "numbers of a mask")
    return native_path(subset, "subset") if isinstance(subset, (str, os.PathLike)) else subset


def dtype_name(dtype: Any) -> Any:
    """The name of a dtype of NumPy or torch; all else as it is."""
    name = str(dtype)
    if name.startswith("torch."):
        return name[len("torch."):]
    return np.dtype(dtype).name if isinstance(dtype, (type, np.dtype)) else dtype


# What belongs to a DataLoader, or to the loaders of chunkhit.torch, and what is in its place here.
ELSEWHERE = {"num_workers": "threads=", "persistent_workers": "threads=", "prefetch_factor": "prefetch=",
             "pin_memory": 'device="cuda" of chunkhit.torch', "batch_sampler": "shuffle= and batch_size=", "generator": "seed=",
             "device": "a loader of chunkhit.torch", "transform": "chunkhit.torch.ImageLoader",
             "transform_ahead": "chunkhit.torch.ImageLoader"}
OF_ROWS = {**ELSEWHERE, "dtype": "format=", "transform": "a function of your own, on batch.x,"}


@has_options(elsewhere=ELSEWHERE)
class ImageLoader(OfImages, Loader[_chunkhit.ImageLoader, ImageBatch]):
    """Batches of images from a pack, a part, or an external HDF5 file with a uint8 array (n, ...).

    paths           one path or URL (https://, http://, s3://), or several that are concatenated; their classes are joined
                    by name: ids of the first path stay, new names are appended (info["classes"]); class names in only some
                    of them are an error. A dict of a weight by path is a mixture: each path gives its share of an epoch
    shares          of a mixture: "batch" has the shares in every batch, to within one sample; "epoch" in every 4,096
                    samples, within which samples of all paths are shuffled
    batch_size      samples per batch
    shuffle         "none": packing order; "window": permutes chunks, and samples within windows of chunks; "global":
                    permutes all samples, for data in memory or stored uncompressed
    seed            seed of order and augmentation; the same batches for any number of threads
    window_chunks   chunks per window
    rank, world_size
                    this reader's rank, and the number of ranks that share an epoch
    rank_remainder  samples that cannot be divided evenly among ranks: "pad" uses some twice, "drop" leaves them out
    drop_last       drop the last batch if it is not full
    sampler         which samples an epoch draws: "balanced", each class as often; dict of a weight by class, of all classes
                    that have samples; array of a weight for each sample of the source. Weights are finite and from 0
    subset          samples that are used: array of sample numbers; list of class names; tuple of the least and the
                    greatest label, both included; path of a CSV with a column "sample" (numbers) or "file" (names as
                    `pack-info --list` writes them). In a mixture, weights and subsets apply within each path
    replacement     True: a sample comes as often as its weight asks for; False: at most once; with weights this needs epoch_samples
    epoch_samples   samples of an epoch; None: as many as the subset has
    echo            data echoing: uses of each fetched block of echo * batch_size samples
    augment         a dict: flip_horizontal=0.5 is the probability of mirroring an image; crop_height=, crop_width= crop to so
                    many pixels, from the center, or with random_crop=True anywhere, after crop_padding= pixels of zeros were
                    added on each side; resized_crop=dict(height=224, width=224, area=(0.08, 1), aspect=(3/4, 4/3)) is
                    torchvision's RandomResizedCrop; resize_short=256 with crop_height and crop_width is Resize and CenterCrop,
                    for evaluation; a crop beyond the image has zeros there. resample="bilinear", "bicubic", "lanczos", "box", "hamming" or "nearest" is the filter of
                    the last two, whose pixels equal those of torchvision on PIL images: alpha weighs colors, which it does not
                    where torchvision resizes tensors
    dtype           "uint8", or "float32": (x / 255 - mean) / std. Also numpy.float32 or torch.float32
    normalize       dict(mean=[...], std=[...]) per channel in 0..1, for float32; mean 0 and std 1 give x / 255. By
                    default the statistics that the packs of a split share, those of its first pack; a pack without a
                    split uses its own, which stats() notes
    normalize_like  pack whose mean and std normalize this one, e.g. the training pack, for float32
    layout          "nhwc" or "nchw"; None: as stored
    cache           "decoded", "compressed" (in memory), or "none" (read from the files in every epoch); "automatic":
                    the first of these that fits cache_bytes; of images of their own sizes "compressed", and decoded for as
                    many images as fit
    cache_bytes     memory for chunks, pixels that stay and decoding; 0: half of the memory available to the process
    cache_dir       local folder that keeps chunks of remote packs, shared by the processes of a machine; None: none
    cache_disk_bytes
                    at most so many bytes in cache_dir, over all packs; 0: half of what they use and its disk has free
    memory_bytes    memory for chunks, decoding and batches together; cache_bytes is what the batches leave of it, if it
                    is not given; prefetch="auto" fills at most a quarter of it with batches. 0: no limit beside
                    cache_bytes; prefetch="auto" then takes an eighth of the memory available to the process
    threads         worker threads; 0: all available CPUs; "auto": chosen while training runs, from one to four times the
                    CPUs, at least 16: fewest that keep up; stats().tuning says what was tried
    prefetch        batches prepared in advance; "auto": chosen while training runs, from 4 to 64. The batches are the
                    same with any of these
    check_hashes    "first_use": compare the hash whenever a chunk is read from its file, with cache "none" in every
                    epoch; where samples are read one by one (cache "none", uncompressed samples and order global, or
                    too small cache_bytes), before the first one and after the file's size or times changed. "always":
                    also whenever bytes in memory are used. "never"
    on_corrupt      "fail", or "skip": skip and count corrupt chunks
    allocator       function of a number of bytes that returns a writable, 64-byte aligned buffer for a batch's images
    images, labels  datasets of an external HDF5 file; labels=None: "labels" next to the images ("train/labels" for
                    "train/images"), which must exist; labels="": no labels are read, and all are -1

    Each `for` loop reads the next epoch if the previous one was read to its end; after a `break` it restarts the same
    epoch, with the same batches. To limit the batches per epoch, name the epoch:

        for epoch in range(10):
            for images, labels in itertools.islice(loader.epoch(epoch), 100):

    Raises Error: "usage" for contradicting options, "bad_data" for a damaged pack, "try_again" if memory or threads are
    not available.
    """

    def __init__(
        self,
        paths: types.Sources,
        *,
        shares: types.Shares = "batch",
        batch_size: int = 256,
        shuffle: types.Shuffle = "none",
        seed: int = 0,
        window_chunks: int = 64,
        rank: int = 0,
        world_size: int = 1,
        rank_remainder: types.RankRemainder = "pad",
        drop_last: bool = False,
        sampler: types.Sampler = None,
        subset: types.Subset = None,
        replacement: bool = True,
        epoch_samples: Optional[int] = None,
        echo: int = 1,
        augment: Optional[types.Augment] = None,
        dtype: types.DtypeLike = "uint8",
        normalize: Optional[types.Normalize] = None,
        normalize_like: Optional[Path] = None,
        layout: Optional[types.Layout] = None,
        cache: types.Cache = "automatic",
        cache_bytes: int = 0,
        cache_dir: Optional[Path] = None,
        cache_disk_bytes: int = 0,
        memory_bytes: int = 0,
        threads: types.CountOrAuto = 0,
        prefetch: types.CountOrAuto = 4,
        check_hashes: types.CheckHashes = "first_use",
        on_corrupt: types.OnCorrupt = "fail",
        allocator: Optional[types.Allocator] = None,
        images: str = "images",
        labels: Optional[str] = None,
    ) -> None:
        options = keywords(locals())
        options["dtype"] = dtype_name(dtype)
        names, options["mixture"] = mixture_option(paths)
        options["subset"] = subset_option(subset)
        with_native_paths(options, "normalize_like", "cache_dir")
        super().__init__(_chunkhit.ImageLoader(native_paths(names), options), options)

    def _summary(self) -> str:
        return f"{self.size} samples, batches of {self.batch_shape}"

    @property
    def batch_shape(self) -> Tuple[int, ...]:
        """The shape of a full batch's images."""
        shape: Tuple[int, ...] = self._core.batch_shape
        return shape

    def _take(self) -> Optional[ImageBatch]:
        found = self._core.next()
        return None if found is None else ImageBatch.of(self._core, *found)


@has_options(ImageLoader, elsewhere=OF_ROWS)
class SparseLoader(OfRatings, Ids, Loader[_chunkhit.SparseLoader, SparseBatch]):
    """Batches of rows from a pack of pack-sparse, one of its parts, or an AnnData file.

    paths       one path or URL (https://, http://, s3://), or several that are concatenated: their columns are the same
    batch_size  rows per batch
    sampler     which rows an epoch draws: array of a weight for each row of the source, finite and from 0
    subset      rows that are used: array of row numbers; tuple of the least and the greatest label, both included, where
                rows have one label; path of a CSV with a column "sample" (numbers)
    shuffle     "none": packing order; "window": permutes chunks, and rows within windows of chunks; "global": permutes
                all rows, for data in memory or stored uncompressed
    seed        seed of the order; the same batches for any number of threads
    replacement
                True: a row comes as often as its weight asks for; False: at most once; with weights this needs
                epoch_samples
    epoch_samples
                rows of an epoch; None: as many as the subset has
    cache       "decoded", "compressed" (in memory), or "none" (read from the files in every epoch); "automatic": the first
                of these that fits cache_bytes
    cache_bytes
                memory for chunks; 0: half of the memory available to the process
    allocator   function of a number of bytes that returns a writable, 64-byte aligned buffer for a batch's matrices
    format      "dense_f32", "dense_f16" (values above 65504 are an error), "dense_u8" (numbers as stored: a rating is
                the number times `value_scale`), "csr"
    binarize    replace every entry by 1
    scale       factor of every entry, after binarize
    normalize   "none", "l1", "l2": norm by which each row of x is divided, after scale
    held_out    also return the held-out matrix, if the pack has one
    times       format="csr": also return the time of each rating, if the pack keeps them (`keep_times`)
    writable    make dense arrays writable. By default they are read-only, and only the cells that the batch set are
                cleared for the next one; a writable array is cleared as a whole, which takes several times longer

    Each `for` loop reads the next epoch if the previous one was read to its end; after a `break` it restarts the same
    epoch. `itertools.islice(loader.epoch(epoch), 100)` limits the batches of an epoch. Raises what ImageLoader raises.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        batch_size: int = 500,
        shuffle: types.Shuffle = "none",
        seed: int = 0,
        window_chunks: int = 64,
        rank: int = 0,
        world_size: int = 1,
        rank_remainder: types.RankRemainder = "pad",
        drop_last: bool = False,
        sampler: types.RowSampler = None,
        subset: types.RowSubset = None,
        replacement: bool = True,
        epoch_samples: Optional[int] = None,
        echo: int = 1,
        format: types.SparseFormat = "dense_f32",
        binarize: bool = False,
        scale: float = 1.0,
        normalize: types.RowNorm = "none",
        held_out: bool = True,
        times: bool = True,
        writable: bool = False,
        cache: types.Cache = "automatic",
        cache_bytes: int = 0,
        cache_dir: Optional[Path] = None,
        cache_disk_bytes: int = 0,
        memory_bytes: int = 0,
        threads: types.CountOrAuto = 0,
        prefetch: types.CountOrAuto = 4,
        check_hashes: types.CheckHashes = "first_use",
        on_corrupt: types.OnCorrupt = "fail",
        allocator: Optional[types.Allocator] = None,
    ) -> None:
        options = keywords(locals())
        with_native_paths(options, "cache_dir")
        options["subset"] = subset_option(subset)
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
        return int(self._core.column_count)

    @property
    def has_held_out(self) -> bool:
        return bool(self._core.has_held_out)

    @property
    def value_scale(self) -> float:
        """A rating is a number of "dense_u8" times this."""
        return float(self._core.value_scale)

    def item_counts(self) -> NDArray[Any]:
        """uint64 (columns,): ratings of each item in the training matrix; empty for a single part."""
        return np.asarray(self._core.item_counts())

    def _matrix(self, found: Any, rows: int) -> Any:
        if not isinstance(found, tuple):
            return found
        indptr, indices, values, times, _ = found
        return CsrRows(indptr, indices, values, (rows, self._core.column_count), times)

    def _take(self) -> Optional[SparseBatch]:
        found = self._core.next()
        if found is None:
            return None
        x, held_out, labels, rows, epoch, index = found
        return SparseBatch(self._matrix(x, len(rows)), self._matrix(held_out, len(rows)), labels, rows, epoch, index,
                           times_of(x), times_of(held_out))

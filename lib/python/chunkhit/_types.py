"""Types of options: the words that C++ knows (types/enum_names.h), beside each other, and dicts of options.

tests/python/types_test.py compares them with what the binding takes."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Literal, Protocol, Sequence, Tuple, Type, TypedDict, Union

import numpy as np

from ._paths import Path, Paths

# Of loaders and datasets.
Cache = Literal["automatic", "decoded", "compressed", "none"]
CheckHashes = Literal["first_use", "always", "never"]
Dtype = Literal["uint8", "float32"]
Layout = Literal["nhwc", "nchw"]
OnCorrupt = Literal["fail", "skip"]
RankRemainder = Literal["pad", "drop"]
RowNorm = Literal["none", "l1", "l2"]
Shares = Literal["batch", "epoch"]
Shuffle = Literal["none", "window", "global"]
SparseFormat = Literal["dense_f32", "dense_f16", "dense_u8", "csr"]
RowFormat = Literal["dense_f32", "csr"]  # of SparseDataset
Resample = Literal["bilinear", "bicubic", "lanczos", "box", "hamming", "nearest"]  # also of packing
CountOrAuto = Union[int, Literal["auto"]]

DtypeLike = Union[Dtype, Type[np.uint8], Type[np.float32], np.dtype[Any]]

# Of packing.
Channels = Literal["rgb", "gray", "rgba", "keep"]
Check = Literal["whole", "region"]
LabelType = Literal["auto", "classes", "numbers"]
Container = Literal["hdf5", "shard"]
Decode = Literal["exact", "fast"]
Duplicates = Literal["error", "sum", "last", "first", "max"]
Encoding = Literal["utf-8", "latin-1"]
Exif = Literal["apply", "ignore"]
IdOrder = Literal["popularity", "first", "sorted"]
OnError = Literal["skip", "fail"]
Order = Literal["shuffle", "input"]
Preset = Literal["vae-cf"]
Quote = Literal["none", "double", "auto"]
RatingFormat = Literal["text", "user-items", "netflix", "matrix-market", "svmlight", "npz", "hdf5", "pack"]
SharedRows = Literal["error", "join", "file-name"]
Sizes = Literal["fixed", "own"]
SplitBy = Literal["none", "users", "users-by-id", "ratio", "leave-one-out", "time", "given"]
SplitOrder = Literal["auto", "time", "input", "random"]
Store = Literal["jpeg", "photo", "zstd", "raw"]
Zeros = Literal["drop", "keep"]

Amount = Union[int, float]  # a count as an int, a share as a float
Side = Union[int, Tuple[int, int], List[int]]  # one side, or (width, height)
Texts = Union[str, Sequence[str]]


class _CropSize(TypedDict):
    height: int
    width: int


class ResizedCrop(_CropSize, total=False):
    """A random resized crop: its size in pixels, and what share of an image and which width / height it cuts out."""

    area: Sequence[float]
    aspect: Sequence[float]


class Augment(TypedDict, total=False):
    """What changes a sample on its way into the batch, as the C++ AugmentSpec."""

    flip_horizontal: float
    crop_height: int
    crop_width: int
    random_crop: bool
    crop_padding: int
    resize_short: int
    resized_crop: ResizedCrop
    resample: Resample


class Normalize(TypedDict, total=False):
    """Per channel, of pixels in 0..1."""

    mean: Sequence[float]
    std: Sequence[float]


class EpochRecord(TypedDict):
    """What `log_epochs` says of an epoch, of that one alone; times in seconds. help(chunkhit.ImageLoader.log_epochs) has
    the keys."""

    epoch: int
    rank: int
    complete: bool  #: False: it was left, and another begun or the loader closed
    batches: int
    samples: int
    seconds: float  #: without what came between epochs
    wait_seconds: float  #: training waited for batches, and for a transform of them
    wait_fraction: float  #: wait_seconds / seconds
    transform_seconds: float  #: a transform took, in training's wait or ahead of it
    samples_per_second: float
    verdict: str  #: as stats().verdict()


class SupportsArray(Protocol):
    """An array, or a tensor on the CPU."""

    def __array__(self) -> Any: ...


Allocator = Callable[[int], Any]  # of a number of bytes: a writable, 64-byte aligned buffer
Sampler = Union[Literal["balanced"], Dict[str, float], Sequence[float], SupportsArray, None]
Subset = Union[Path, Sequence[int], List[str], Tuple[float, float], SupportsArray, None]
RowSampler = Union[Sequence[float], SupportsArray, None]  # rows have no classes
RowSubset = Union[Path, Sequence[int], Tuple[float, float], SupportsArray, None]
Sources = Union[Paths, Dict[str, float], Dict[Path, float]]  # a mixture is a dict of weights by path

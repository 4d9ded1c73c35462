"""Types of options that the tables of C++ do not say: dicts, unions, and the words of keywords that Python adds.

tests/python/types_test.py compares them with what the binding takes."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Literal, Protocol, Sequence, Tuple, Type, TypedDict, Union

import numpy as np

from ._paths import Path, Paths

CountOrAuto = Union[int, Literal["auto"]]
Dtype = Literal["uint8", "float32", "float16", "bfloat16"]
DtypeLike = Union[Dtype, Type[np.uint8], Type[np.float32], Type[np.float16], np.dtype[Any]]
Layout = Literal["nhwc", "nchw"]
Preset = Literal["vae-cf"]
Resample = Literal["bilinear", "bicubic", "lanczos", "box", "hamming", "nearest"]
RowFormat = Literal["dense_f32", "csr"]  # of SparseDataset

Amount = Union[int, float]  # a count as an int, a share as a float
Bytes = Union[int, str]  # a number, or a text such as "512M" or "2G", in powers of 1024
Side = Union[int, Tuple[int, int], List[int]]  # one side, or (width, height)
Texts = Union[str, Sequence[str]]
Pairs = Union[Paths, Dict[str, Path]]  # folders of fields, "FOLDER:view" of views; a dict has them by name


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
    flip_vertical: float
    quarter_turns: bool


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

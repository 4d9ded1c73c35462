"""Loaders: batches that are always ready."""
import os
import reprlib
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from . import _chunkhit
from . import _types as types
from ._batches import CsrRows, ImageBatch, Pairs, SparseBatch, is_pairs, is_sequences, lengths_of, times_of
from ._datasets import ImageDataset
from ._error import ArgumentError, Error, counted
from ._ids import Ids
from ._info import OfImages, OfRatings
from ._loader import Loader
from ._options import MASKS, check_keys, has_options, with_defaults
from ._paths import Paths, native_path, native_paths, path_list, with_native_paths


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


def check_dicts(augment: Any, normalize: Any) -> None:
    """Raises Error "usage" for a key of another library, or a misspelt one; what else is wrong is the binding's to say."""
    if callable(augment):
        raise ArgumentError(f"augment: expected a dict, as {{\"flip_horizontal\": 0.5}}, found a {type(augment).__name__}; a function "
                            "of whole batches is transform= of chunkhit.torch, one of single images sample_transform=")
    if isinstance(normalize, (tuple, list)):
        raise ArgumentError("normalize: expected a dict, as {\"mean\": [0.5, 0.5, 0.5], \"std\": [0.25, 0.25, 0.25]}, found "
                            f"{reprlib.repr(normalize)}")
    if isinstance(normalize, dict):
        check_keys("normalize", normalize, types.Normalize, {})
    if isinstance(augment, dict):
        check_keys("augment", augment, types.Augment, OF_AUGMENT)
        crop = augment.get("resized_crop")
        if isinstance(crop, dict):
            check_keys("augment.resized_crop", crop, types.ResizedCrop, OF_RESIZED_CROP)


def check_shuffle(shuffle: Any) -> None:
    """Raises Error "usage" for what DataLoader takes."""
    if isinstance(shuffle, bool):
        advice = '"window" shuffles samples and chunks, "global" all samples' if shuffle else '"none" keeps the order'
        raise ArgumentError(f"shuffle: expected none, window, global, found {shuffle}; {advice}")


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
             "sample_transform": "chunkhit.torch.ImageLoader", "transform_ahead": "chunkhit.torch.ImageLoader",
             "collate_fn": "transform= of chunkhit.torch, a function of whole batches,"}
OF_IMAGES = {**ELSEWHERE, "masks": MASKS}
# What torchvision's transforms call what augment= has, by the dict that it is asked of.
OF_RESIZED_CROP = {"scale": "area=", "ratio": "aspect=", "size": "height= and width=", "interpolation": "resample= of augment"}
OF_AUGMENT = {"flip": "flip_horizontal=", "hflip": "flip_horizontal=", "vflip": "flip_vertical=", "rot90": "quarter_turns=",
              "rotate90": "quarter_turns=", "interpolation": "resample=",
              "mask_padding": "mask_padding= of the loader", "size": "crop_height= and crop_width=", "padding": "crop_padding=", "resize": "resize_short=",
              "scale": "area= of resized_crop", "ratio": "aspect= of resized_crop"}
OF_ROWS = {**ELSEWHERE, "dtype": "format=", "transform": "a function of your own, on batch.x,",
           "collate_fn": "a function of your own, on each batch,"}


def check_rank(options: Dict[str, Any]) -> None:
    """Raises Error "usage" for a world size without a rank: all processes would read the share of rank 0."""
    if (options.get("world_size") or 1) != 1 and options.get("rank") is None:
        raise Error("rank: is needed beside world_size, from 0 and below it: without one each process would read the share of "
                    "rank 0", "usage")


@has_options("image_loader", elsewhere=OF_IMAGES)
class ImageLoader(OfImages, Loader[_chunkhit.ImageLoader, ImageBatch]):
    """Batches of images from a pack, a part, or an external HDF5 file with a uint8 array (n, ...).

    paths   one path or URL (https://, http://, s3://), or several that are concatenated; their classes are joined by name:
            ids of the first path stay, new names are appended (info["classes"]); class names in only some of them are an
            error. A dict of a weight by path is a mixture: each path gives its share of an epoch

    Each `for` loop reads the next epoch if the previous one was read to its end; after a `break` it restarts the same
    epoch, with the same batches. To limit the batches per epoch, name the epoch:

        for epoch in range(10):
            for images, labels in itertools.islice(loader.epoch(epoch), 100):

    Raises Error: "usage" for contradicting options, "bad_data" for a damaged pack, "try_again" if memory or threads are
    not available.
    """

    def __init__(self, paths: types.Sources, *, dtype: types.DtypeLike = "uint8", **options: Any) -> None:
        check_rank(options)
        options = with_defaults("image_loader", {**options, "dtype": dtype_name(dtype)})
        names, options["mixture"] = mixture_option(paths)
        options["subset"] = subset_option(options["subset"])
        with_native_paths(options, "normalize_like", "cache_dir")
        check_dicts(options["augment"], options["normalize"])
        check_shuffle(options["shuffle"])
        self._paths = path_list(names)
        super().__init__(_chunkhit.ImageLoader(native_paths(names), options), options)

    def _repr_html_(self) -> Optional[str]:
        from ._sheet import html_of  # for notebooks alone

        return None if self._opened is None else html_of(self._paths, ImageDataset)

    def _summary(self) -> str:
        return f"{self._count('sample')}, batches of {self.batch_shape}"

    @property
    def batch_shape(self) -> Tuple[int, ...]:
        """The shape of a full batch's images."""
        shape: Tuple[int, ...] = self._core.batch_shape
        return shape

    def _take(self) -> Optional[ImageBatch]:
        found = self._core.next()
        return None if found is None else ImageBatch.of(self._core, *found)


@has_options("sparse_loader", elsewhere=OF_ROWS)
class SparseLoader(OfRatings, Ids, Loader[_chunkhit.SparseLoader, SparseBatch]):
    """Batches of rows from a pack of pack-sparse, one of its parts, or an AnnData file.

    paths     one path or URL (https://, http://, s3://), or several that are concatenated: their columns are the same
    writable  make dense arrays writable. By default they are read-only, and only the cells that the batch set are cleared
              for the next one; a writable array is cleared as a whole, which takes several times longer

    Each `for` loop reads the next epoch if the previous one was read to its end; after a `break` it restarts the same
    epoch. `itertools.islice(loader.epoch(epoch), 100)` limits the batches of an epoch. Raises what ImageLoader raises.
    """

    def __init__(self, paths: Paths, *, writable: bool = False, **options: Any) -> None:
        check_rank(options)
        options = with_native_paths(with_defaults("sparse_loader", options), "cache_dir")
        check_shuffle(options["shuffle"])
        options["subset"] = subset_option(options["subset"])
        super().__init__(_chunkhit.SparseLoader(native_paths(paths), options, *self._writing(writable)), options)

    @staticmethod
    def _writing(writable: bool) -> Tuple[bool, bool]:
        """Whether arrays are writable, and whether written ones are cleared as a whole."""
        return writable, True

    def _summary(self) -> str:
        thing = "rating" if self._options["format"] == "pairs" else "row"
        return f"{self._count(thing)} of {counted(self.column_count, 'column')}"

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
        """int64 (columns,): ratings of each item in the training matrix; empty for a single part."""
        return np.asarray(self._core.item_counts()).view(np.int64)

    def _matrix(self, found: Any, rows: int) -> Any:
        if not isinstance(found, tuple):
            return found
        if is_pairs(found):
            return Pairs(*found[1:5])
        if is_sequences(found):
            return found[0]
        indptr, indices, values, times, _ = found
        return CsrRows(indptr, indices, values, (rows, self._core.column_count), times)

    def _take(self) -> Optional[SparseBatch]:
        found = self._core.next()
        if found is None:
            return None
        x, held_out, labels, rows, epoch, index = found
        return SparseBatch(self._matrix(x, len(rows)), self._matrix(held_out, len(rows)), labels, rows.view(np.int64), epoch, index,
                           times_of(x), times_of(held_out), lengths_of(x), lengths_of(held_out))

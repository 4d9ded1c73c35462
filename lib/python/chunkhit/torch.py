"""The loaders of chunkhit, as PyTorch tensors.

    from chunkhit.torch import ImageLoader
    loader = ImageLoader("train", batch_size=256, shuffle="window", device="cuda", dtype="float32")
    for epoch in range(10):
        loader.set_epoch(epoch)
        for images, labels in loader:
            ...

They need no DataLoader around them: they read ahead on threads of their own. rank and world_size are those of
torch.distributed where it is initialised. Tensors look into the loader's memory, which is theirs as long as any of them
lives. ImageDataset, and chunkhit.SparseDataset, are for those who keep their DataLoader.
"""
import functools
import json
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
import torch.distributed
from numpy.typing import NDArray

from . import _datasets, _loaders
from . import _types as types
from ._batches import ImageBatch, Pairs, SparseBatch, is_pairs, is_sequences, lengths_of, times_of
from ._chunkhit import LoaderStats
from ._error import ArgumentError, Error, whole_number
from ._loaders import dtype_name
from ._options import has_options
from ._packing import pack_info
from ._paths import Path, Paths
from ._torch_cuda import DeviceFeed, DeviceImages, DeviceRows, pinned_memory
from ._torch_feed import Feed, HostFeed, tensor
from ._torch_sample_transform import SampleTransform, check_takes_batches, drawing_once, makes_pillow, misfit
from ._torch_transform import Change, Transform, TransformFeed

Device = Union[str, torch.device, None]
DtypeLike = Union[types.DtypeLike, torch.dtype]

FLOATS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}  # dtypes that are normalised
SAMPLES_AHEAD = 2  # batches, where transform_ahead says nothing


def share_of_work(options: Dict[str, Any]) -> None:
    """Sets rank and world_size that are None to those of torch.distributed, where it is initialised."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return
    for name, own in (("rank", torch.distributed.get_rank), ("world_size", torch.distributed.get_world_size)):
        if options[name] is None:
            options[name] = own()


def cuda_device(device: Device) -> Optional[torch.device]:
    """The device with its number, which is the current one's where none is said; None for the CPU."""
    try:
        found = torch.device("cpu" if device is None else device)
    except (RuntimeError, TypeError):
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise Error(f"device: expected cpu or cuda, found {device}", "usage")
    if found.type == "cpu":
        return None
    if not torch.cuda.is_available():
        raise Error(f"device: {found} is asked for, and PyTorch finds no CUDA device", "usage")
    return found if found.index is not None else torch.device("cuda", torch.cuda.current_device())


class TensorLoader:
    """What the loaders here have in common: they take their batches from a feed."""

    _feed: Feed

    def epoch(self, epoch: int) -> Any:
        self._feed.forget()
        return super().epoch(epoch)  # type: ignore[misc]

    def close(self) -> None:
        self._feed.forget()
        super().close()  # type: ignore[misc]

    def _state(self) -> str:
        """Where reading stands, after the batch that was handed out last; not the ones that are on their way."""
        return self._feed.state_before(self._core.state)  # type: ignore[attr-defined]

    def load_state_dict(self, state: Any) -> None:
        where = self._state()
        self._feed.forget()
        try:
            super().load_state_dict(state)  # type: ignore[misc]
        except Exception:
            core = self._core  # type: ignore[attr-defined]
            if core.state() != where:  # batches were on their way, which this epoch still has to give
                core.restore(where)
                core.begin(json.loads(where)["epoch"])
            raise

    def _take(self) -> Any:
        return self._feed.take(self._core)  # type: ignore[attr-defined]


def pixel_tensor(array: Any) -> Any:
    """A tensor of images over an array's memory; bfloat16 for uint16, which are its bits; None for None."""
    if array is None or array.dtype != np.uint16:
        return tensor(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


def image_batch(core: Any, images: Any, labels: Any, samples: Any, epoch: int, index: int, fields: Any, uses: Any) -> ImageBatch:
    return ImageBatch.of(core, pixel_tensor(images), tensor(labels), tensor(samples), epoch, index,
                         {name: pixel_tensor(field) for name, field in (fields or {}).items()}, uses)


@has_options("image_loader", _loaders.ImageLoader, elsewhere=_loaders.OF_IMAGES)
class ImageLoader(TensorLoader, _loaders.ImageLoader):
    """chunkhit.ImageLoader, whose batches are tensors: images uint8, float32, float16 or bfloat16, labels int64 or float32,
    samples int64.

    device  a CUDA device: batches are made in pinned memory, copied on a stream of their own one batch ahead, always as
            uint8, and normalised and made floats of `dtype` there
    layout  "nchw", which PyTorch's layers expect, or "nhwc"; None: as stored
    rank, world_size
            this reader's rank, and the number of ranks that share an epoch; None: those of torch.distributed where it is
            initialised, else 0 of 1
    transform
            function of a batch's (images), which returns images, or of (images, labels), which returns both; *args gets both. It may
            return a dict instead, of what it changes: {"image": ..., "mask": ...}. Modules are functions, too. It is called when the batch is asked for, with tensors of the device and
            of the current stream. With a keyword-only parameter `batch` it gets the ImageBatch by that name: samples,
            epoch and index, to seed by. What it raises is raised where the batch is asked for; the next call
            gives the same batch
    sample_transform
            function of one image, a uint8 tensor in `layout`, which returns a tensor or an array; all results have one
            shape. A thread for each available CPU calls it, ahead of time, before `transform`. It takes over a pipeline of
            torchvision: Compose([ToPILImage(), *pipeline]). Keyword-only parameters `mask`, `view` and `label` of it are the
            sample's other fields; it then returns a dict of those that it changes: {"image": ..., "mask": ...}. `seed` is a
            number of the loader's seed, the epoch, the sample and its use in the epoch, by which all fields are changed alike.
            It is for dtype="uint8" without device. Of packs with masks or views it must take them
    transform_ahead
            so many batches are transformed in advance, in order, on a thread and with device= on a stream of its own; 0:
            none, and 2 with sample_transform. They take memory beside memory_bytes. The thread ends with the epoch, close() or the loader
    """

    def __init__(self, paths: types.Sources, *, device: Device = None, transform: Optional[Callable[..., Any]] = None,
                 sample_transform: Optional[Callable[..., Any]] = None, transform_ahead: int = 0,
                 rank: Optional[int] = None, world_size: Optional[int] = None,
                 dtype: DtypeLike = "uint8", layout: Optional[types.Layout] = "nchw", **options: Any) -> None:
        options.update(rank=rank, world_size=world_size, dtype=dtype, layout=layout)
        ahead = whole_number("transform_ahead", transform_ahead)
        if ahead and transform is None and sample_transform is None:
            raise Error("transform_ahead: is for transform, which is None", "usage")
        check_takes_batches(transform)
        changes: List[Change] = [] if transform is None else [Transform(transform)]
        share_of_work(options)
        float_type = FLOATS.get(str(dtype_name(dtype)))
        is_float = float_type is not None
        target = cuda_device(device)
        sample_change: Optional[SampleTransform] = None
        if sample_transform is not None:
            if is_float or target:
                raise Error('sample_transform: is for dtype="uint8" on the CPU: its results have their own type, and are copied by '
                            "images.to(device)", "usage")
            seed = whole_number("seed", options.get("seed", 0))
            sample_change = SampleTransform(sample_transform, seed, channels_first=layout == "nchw")
            changes.insert(0, sample_change)
            ahead = ahead or SAMPLES_AHEAD
            options["layout"] = "nhwc" if layout == "nchw" else layout
        self._gives_channels_first = sample_change is not None and layout == "nchw"
        if target:
            options["allocator"] = options.get("allocator") or pinned_memory
            normalize, like = options.get("normalize"), options.get("normalize_like")
            if is_float:
                options.update(dtype="uint8", normalize=None, normalize_like=None)
        super().__init__(paths, **options)
        if sample_change is not None:
            sample_change.check_fields(self.info)
        self._notices: List[str] = []
        self._transform: Optional[TransformFeed] = None
        self._feed = HostFeed(functools.partial(image_batch, self._core))
        if target:
            stats = self._stats_to_normalize(normalize, like) if is_float else {}
            self._feed = DeviceFeed(target, DeviceImages(target, float_type or torch.uint8, self.info, layout, normalize, stats),
                                    functools.partial(ImageBatch.of, self._core))
        self._notices += [f"transform: {name} of torchvision draws once for all images of a batch; sample_transform= draws for each"
                          for name in dict.fromkeys(drawing_once(transform))]
        if changes:
            self._feed = self._transform = TransformFeed(self._feed, changes, ahead, target)

    @property
    def batch_shape(self) -> Tuple[int, ...]:
        """The shape of a full batch's images, before `sample_transform` and `transform`."""
        shape = super().batch_shape
        return (shape[0], shape[3], *shape[1:3]) if self._gives_channels_first else shape

    def _stats_to_normalize(self, normalize: Optional[types.Normalize], like: Optional[Path]) -> Dict[str, Any]:
        """The mean and std that the loader itself would take where it does not normalise on the device."""
        if like is not None and normalize:
            raise Error("normalize_like: excludes normalize, which gives mean and std themselves", "usage")
        info = self.info if like is None else pack_info(like)
        own: Dict[str, Any] = {**(normalize or {})}
        given = [shares for shares in own.values() if shares is not None and len(shares) > 0]
        if like is None and "normalize" not in info and len(given) < 2:
            self._notices = [f"{info['path']}: normalised by its own mean and std; for validation pass "
                             "normalize_like=TRAIN_PACK"]
        return info.get("normalize", info)

    def stats(self) -> LoaderStats:
        found = super().stats()
        found.notices = [*found.notices, *self._notices]
        if self._transform:
            self._transform.add_to(found)
        return found

    def reset_stats(self) -> None:
        super().reset_stats()
        if self._transform:
            self._transform.reset_times()


class SparseRows:
    """Makes batches of rows of so many columns."""

    def __init__(self, columns: int) -> None:
        self._columns = columns

    def _matrix(self, found: Any, rows: int) -> Any:
        if not isinstance(found, tuple):
            return tensor(found)
        if is_pairs(found):
            return Pairs(*map(tensor, found[1:5]))
        if is_sequences(found):
            return tensor(found[0])
        indptr, indices, values = (torch.from_numpy(each) for each in found[:3])
        return torch.sparse_csr_tensor(indptr, indices, values, size=(rows, self._columns))

    def __call__(self, x: Any, held_out: Any, labels: Any, rows: Any, epoch: int, index: int) -> SparseBatch:
        return SparseBatch(self._matrix(x, len(rows)), self._matrix(held_out, len(rows)), tensor(labels), tensor(rows),
                           epoch, index, tensor(times_of(x)), tensor(times_of(held_out)), tensor(lengths_of(x)),
                           tensor(lengths_of(held_out)))


@has_options("sparse_loader", _loaders.SparseLoader, elsewhere=_loaders.OF_ROWS)
class SparseLoader(TensorLoader, _loaders.SparseLoader):
    """chunkhit.SparseLoader, whose batches are tensors: x and held_out dense, torch.sparse_csr_tensor with format="csr", int64
    (rows, length) with format="sequences", or Pairs of tensors with format="pairs". Of a pack whose rows repeat items
    (`duplicates` keep) "csr" is an Error "usage", as are dense formats with `device`.

    writable  False: the caller promises to change no dense tensor in place, and gets them cleared at a fraction of the
              price. Tensors cannot be read-only: nobody notices when the promise is broken, until later batches show
              what was written
    device    a CUDA device: entries are made in pinned memory, copied on a stream of their own one batch ahead, and made
              dense there
    rank, world_size
              this reader's rank, and the number of ranks that share an epoch; None: those of torch.distributed where it is
              initialised, else 0 of 1
    """

    def __init__(self, paths: Paths, *, device: Device = None, rank: Optional[int] = None, world_size: Optional[int] = None,
                 writable: bool = True, **options: Any) -> None:
        options.update(rank=rank, world_size=world_size)
        format = options.get("format", "dense_f32")
        share_of_work(options)
        target = cuda_device(device)
        if target:
            options.update(format=format if format in ("sequences", "pairs") else "csr",
                           times=options.get("times", True) and format in ("csr", "sequences"),
                           allocator=options.get("allocator") or pinned_memory)
        super().__init__(paths, writable=writable, **options)
        if self.info.get("repeats") and (format == "csr" or (target and format.startswith("dense"))):
            raise Error("format: items repeat in the pack's rows, which " + ("PyTorch's CSR does not hold; take a dense format, or "
                        "chunkhit.SparseLoader's" if format == "csr" else f"are not added up on {target}; leave `device` out"), "usage")
        self._feed = HostFeed(SparseRows(self.column_count))
        if target:
            self._feed = DeviceFeed(target, DeviceRows(target, format, self.column_count), SparseBatch)

    @staticmethod
    def _writing(writable: bool) -> Tuple[bool, bool]:
        return True, writable


@has_options("image_dataset", _datasets.ImageDataset, elsewhere=_datasets.ELSEWHERE)
class ImageDataset(_datasets.ImageDataset, torch.utils.data.Dataset):  # type: ignore[type-arg]
    """chunkhit.ImageDataset, whose samples are tensors: for DataLoader, as those of torchvision's datasets behind ToTensor, but uint8.

    dataset[3]           (image, label): uint8 (channels, height, width); an int, or float32 (columns,) where labels are numbers
    dataset[3:9]         (images, labels) of all of them, with one axis more; images are a list where each has its own size

    transform  function of one image, for `dataset[3]` and DataLoader: `v2.ToDtype(torch.float32, scale=True)`, say

    Raises what chunkhit.ImageDataset raises.
    """

    def __init__(self, paths: Paths, *, fields: Optional[Sequence[str]] = None,
                 transform: Optional[Callable[[torch.Tensor], Any]] = None, **options: Any) -> None:
        if transform is not None and not callable(transform):
            raise ArgumentError(f"transform: expected a function, found {transform!r}")
        self._transform = transform
        super().__init__(paths, fields=fields, **options)

    def _open(self) -> None:
        super()._open()
        self._channels_last = self.info["sample"]["layout"] == "nhwc"

    def _image(self, array: NDArray[Any]) -> torch.Tensor:
        """(…, channels, height, width) over the array's memory."""
        found: torch.Tensor = tensor(array)
        return found.movedim(-1, -3) if self._channels_last else found

    def _changed(self, image: torch.Tensor) -> Any:
        if self._transform is None:
            return image
        try:
            return self._transform(image)
        except (TypeError, AttributeError) as error:
            if makes_pillow(self._transform):
                raise
            raise misfit("transform", error, image) from error

    def _read(self, numbers: NDArray[Any]) -> Tuple[Any, ...]:
        roles = self.info.get("fields", {})
        makes = [self._image if field == "image" or roles.get(field) == "view" else tensor for field in self._fields]
        return tuple([make(each) for each in values] if isinstance(values, list) else make(values)
                     for make, values in zip(makes, super()._read(numbers)))

    def _sample(self, image: NDArray[Any], label: Any) -> Tuple[Any, Any]:
        return self._changed(self._image(image)), tensor(label) if isinstance(label, np.ndarray) else label

    def _split(self, read: Any) -> List[Any]:
        return [tuple(self._changed(value) if field == "image" else value for field, value in zip(self._fields, sample))
                for sample in super()._split(read)]


def __getattr__(name: str) -> Any:
    hint = "; chunkhit.SparseDataset gives arrays, of which DataLoader makes tensors" if name == "SparseDataset" else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")

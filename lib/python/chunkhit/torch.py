"""The loaders of chunkhit, as PyTorch tensors.

    from chunkhit.torch import ImageLoader
    loader = ImageLoader("train", batch_size=256, shuffle="window", device="cuda", dtype="float32")
    for epoch in range(10):
        loader.set_epoch(epoch)
        for images, labels in loader:
            ...

They need no DataLoader around them: they read ahead on threads of their own. rank and world_size are those of
torch.distributed where it is initialised. Tensors look into the loader's memory, which is theirs as long as any of them
lives. chunkhit.ImageDataset and chunkhit.SparseDataset are for those who keep their DataLoader.
"""
from __future__ import annotations

from functools import partial
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np
import torch
import torch.distributed

from . import _loaders
from ._batches import ImageBatch, SparseBatch
from ._error import Error
from ._packing import pack_info
from ._paths import Path, Paths
from ._torch_cuda import DeviceFeed, DeviceImages, DeviceRows, pinned_memory

Device = Union[str, torch.device, None]


def share_of_work(options: Dict[str, Any]) -> Dict[str, Any]:
    """The options with rank and world_size of torch.distributed, where they do not say so themselves."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return options
    own = {"rank": torch.distributed.get_rank(), "world_size": torch.distributed.get_world_size()}
    return {**own, **options}


# What belongs to a DataLoader, and what is in its place here.
ELSEWHERE = {"num_workers": "threads=", "persistent_workers": "threads=", "prefetch_factor": "prefetch=",
             "pin_memory": 'device="cuda"', "batch_sampler": "shuffle= and batch_size=",
             "generator": "seed=", "transform": "augment= and normalize="}


def refuse_data_loader_options(options: Dict[str, Any]) -> None:
    for name in options:
        if name in ELSEWHERE:
            raise TypeError(f"{name}: no such option; {ELSEWHERE[name]} is in its place")


def tensor(array: Any) -> Any:
    """A tensor over an array's memory; int64 for uint64, which tensors cannot be; None for None."""
    if array is None:
        return None
    return torch.from_numpy(array.view(np.int64) if array.dtype == np.uint64 else array)


def cuda_device(device: Device) -> Optional[torch.device]:
    """The device with its number, which is the current one's where none is said; None for the CPU."""
    found = torch.device("cpu" if device is None else device)
    if found.type == "cpu":
        return None
    if found.type != "cuda":
        raise Error(f"device: expected cpu or cuda, found {found}", "usage")
    if not torch.cuda.is_available():
        raise Error(f"device: {found} is asked for, and PyTorch finds no CUDA device", "usage")
    return found if found.index is not None else torch.device("cuda", torch.cuda.current_device())


class TensorLoader:
    """What the loaders here have in common: batches on the CPU as they come, or one batch ahead on a device."""

    _feed: Optional[DeviceFeed]

    def epoch(self, epoch: int) -> Any:
        if self._feed:
            self._feed.forget()
        return super().epoch(epoch)  # type: ignore[misc]

    def close(self) -> None:
        if self._feed:
            self._feed.forget()
        super().close()  # type: ignore[misc]

    def _state(self) -> str:
        """Where reading stands, after the batch that was handed out last; not the one that is on its way."""
        return self._feed.state_before(self._core.state) if self._feed else self._core.state()  # type: ignore[attr-defined]

    def load_state_dict(self, state: Any) -> None:
        if self._feed:
            self._feed.forget()
        super().load_state_dict(state)  # type: ignore[misc]

    def _take(self) -> Any:
        return self._feed.take(self._core) if self._feed else self._tensors(self._core.next())  # type: ignore[attr-defined]

    def _tensors(self, found: Any) -> Any:
        raise NotImplementedError


class ImageLoader(TensorLoader, _loaders.ImageLoader):
    """chunkhit.ImageLoader, whose batches are tensors: images uint8 or float32, labels int64 or float32, samples int64.

    layout  "nchw" here, which PyTorch's layers expect
    device  a CUDA device: batches are made in pinned memory, copied on a stream of their own one batch ahead, always as
            uint8, and made float32 and normalised there where dtype is "float32"
    """

    def __init__(self, paths: Paths, *, device: Device = None, dtype: str = "uint8", layout: Optional[str] = "nchw",
                 normalize: Optional[Dict[str, Any]] = None, normalize_like: Optional[Path] = None, **options: Any) -> None:
        refuse_data_loader_options(options)
        options = share_of_work(options)
        target = cuda_device(device)
        if target:
            options.setdefault("allocator", pinned_memory)
        super().__init__(paths, dtype="uint8" if target else dtype, layout=layout,
                         normalize=None if target and dtype == "float32" else normalize,
                         normalize_like=None if target and dtype == "float32" else normalize_like, **options)
        self._feed = None
        self._notices: List[str] = []
        if target:
            stats = self._stats_to_normalize(normalize, normalize_like) if dtype == "float32" else {}
            self._feed = DeviceFeed(target, DeviceImages(target, dtype, self.info, layout, normalize, stats),
                                    partial(ImageBatch.of, self._core))

    def _stats_to_normalize(self, normalize: Optional[Dict[str, Any]], like: Optional[Path]) -> Dict[str, Any]:
        """The mean and std that the loader itself would take where it does not normalise on the device."""
        if like is not None and normalize:
            raise Error("normalize_like: excludes normalize, which gives mean and std themselves", "usage")
        info = self.info if like is None else pack_info(like)
        given = [shares for shares in (normalize or {}).values() if shares is not None and len(shares) > 0]
        if like is None and "normalize" not in info and len(given) < 2:
            self._notices = [f"{info['path']}: normalised by its own mean and std; for validation pass "
                             "normalize_like=TRAIN_PACK"]
        return info.get("normalize", info)

    def stats(self) -> Any:
        found = super().stats()
        found.notices = [*found.notices, *self._notices]
        return found

    def _tensors(self, found: Any) -> Optional[ImageBatch]:
        if found is None:
            return None
        images, labels, samples, epoch, index = found
        return ImageBatch.of(self._core, tensor(images), tensor(labels), tensor(samples), epoch, index)


class SparseLoader(TensorLoader, _loaders.SparseLoader):
    """chunkhit.SparseLoader, whose batches are tensors: x and held_out dense, or torch.sparse_csr_tensor with format="csr".

    writable  False: the caller promises to change no dense tensor in place, and gets them cleared at a fraction of the
              price. Tensors cannot be read-only: nobody notices when the promise is broken, until later batches show
              what was written
    device    a CUDA device: entries are made in pinned memory, copied on a stream of their own one batch ahead, and made
              dense there
    """

    def __init__(self, paths: Paths, *, device: Device = None, format: str = "dense_f32", writable: bool = True,
                 **options: Any) -> None:
        refuse_data_loader_options(options)
        options = share_of_work(options)
        target = cuda_device(device)
        if target:
            options.setdefault("allocator", pinned_memory)
        super().__init__(paths, format="csr" if target else format, writable=writable, **options)
        self._feed = DeviceFeed(target, DeviceRows(target, format, self.column_count), SparseBatch) if target else None

    @staticmethod
    def _writing(writable: bool) -> Tuple[bool, bool]:
        return True, writable

    def _tensor_matrix(self, found: Any, rows: int) -> Any:
        if not isinstance(found, tuple):
            return tensor(found)
        indptr, indices, values = (torch.from_numpy(each) for each in found[:3])
        return torch.sparse_csr_tensor(indptr, indices, values, size=(rows, self.column_count))

    def _tensors(self, found: Any) -> Optional[SparseBatch]:
        if found is None:
            return None
        x, held_out, labels, rows, epoch, index = found
        return SparseBatch(self._tensor_matrix(x, len(rows)), self._tensor_matrix(held_out, len(rows)), tensor(labels),
                           tensor(rows), epoch, index)

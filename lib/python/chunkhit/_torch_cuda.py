"""Batches on a GPU, one ahead."""
from __future__ import annotations

from collections import deque
import functools
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray
import torch

from ._batches import Pairs, is_pairs, is_sequences
from ._error import Error
from ._info import ImageInfo
from ._types import Normalize

cuda: Any = torch.cuda  # which has no types in every version of PyTorch


def pinned_memory(byte_count: int) -> NDArray[Any]:
    """Memory that the GPU copies from by itself."""
    return np.asarray(torch.empty(byte_count, dtype=torch.uint8, pin_memory=True))


def to_device(array: Any, device: torch.device) -> Any:
    """A copy on the device, which is on its way; int64 for uint64; None for None."""
    if array is None:
        return None
    signed = array.view(np.int64) if array.dtype == np.uint64 else array
    return torch.from_numpy(signed).to(device, non_blocking=True)


class DeviceImages:
    """Copies (images, labels, samples, ..., fields, uses) and makes floats of `dtype` of images and views there:
    (x / 255 - mean) / std in float32, rounded; uint8 stays. `stats`: mean and std where `normalize` gives none."""

    def __init__(self, device: torch.device, dtype: torch.dtype, info: ImageInfo, layout: Optional[str],
                 normalize: Optional[Normalize], stats: Dict[str, Any]) -> None:
        self._device = device
        self._dtype = dtype
        self._roles = info.get("fields", {})
        if dtype is torch.uint8:
            return
        shape = (1, -1, 1, 1) if (layout or info["sample"]["layout"]) == "nchw" else (1, 1, 1, -1)
        given: Normalize = normalize or {}
        self._mean = self._of_channels(given.get("mean"), stats["mean"], shape)
        self._std = self._of_channels(given.get("std"), stats["std"], shape)

    def _of_channels(self, given: Any, own: List[float], shape: Tuple[int, ...]) -> torch.Tensor:
        values = own if given is None or len(given) == 0 else list(given)
        return torch.tensor(values, dtype=torch.float32, device=self._device).view(shape)

    def _normalized(self, name: str, pixels: torch.Tensor) -> torch.Tensor:
        if self._dtype is torch.uint8 or self._roles.get(name) == "mask":
            return pixels
        return pixels.to(torch.float32).div_(255).sub_(self._mean).div_(self._std).to(self._dtype)

    def __call__(self, found: Any) -> Tuple[Any, ...]:
        # Images last: the driver may end what is on the stream before it copies from memory that is not pinned.
        labels, samples = (to_device(found[part], self._device) for part in (1, 2))
        fields = {name: self._normalized(name, to_device(pixels, self._device)) for name, pixels in (found[5] or {}).items()}
        images = self._normalized("image", to_device(found[0], self._device))
        return images, labels, samples, *found[3:5], fields, found[6]


def piece(copied: torch.Tensor, block: NDArray[Any], array: NDArray[Any], kind: torch.dtype) -> torch.Tensor:
    """An array of a block, of the block's copy."""
    begin = array.__array_interface__["data"][0] - block.__array_interface__["data"][0]
    made: torch.Tensor = copied[begin : begin + array.nbytes].view(kind)
    return made


class DeviceRows:
    """Copies what the binding hands out, each matrix in one piece, and makes the matrices dense there: a SparseBatch's
    fields."""

    TYPES = {"dense_f32": torch.float32, "dense_f16": torch.float16}
    HALF_OVERFLOW = 65520  # numbers from here on become infinite as halves

    def __init__(self, device: torch.device, format: str, columns: int) -> None:
        if format not in ("csr", "sequences", "pairs", *self.TYPES):
            raise Error(f"format: {format} is not made on a device; expected csr, sequences, pairs, dense_f32 or dense_f16", "usage")
        self._device = device
        self._type = self.TYPES.get(format)
        self._columns = columns

    def _matrix(self, found: Any, rows: int) -> Tuple[Any, Any, Any]:
        """The matrix, the times of its entries, and the lengths of sequences."""
        if found is None:
            return None, None, None
        if is_pairs(found):
            *arrays, times, block = found[1:]
            copied = to_device(block, self._device)
            kinds = {np.dtype(np.int64): torch.int64, np.dtype(np.float32): torch.float32}
            return (Pairs(*(piece(copied, block, each, kinds[each.dtype]).view(each.shape) for each in arrays)),
                    None if times is None else piece(copied, block, times, torch.int64), None)
        if is_sequences(found):
            items, lengths, _, times, block = found
            copied = to_device(block, self._device)
            return (piece(copied, block, items, torch.int64).view(items.shape),
                    None if times is None else piece(copied, block, times, torch.int64).view(times.shape),
                    piece(copied, block, lengths, torch.int64))
        indptr, indices, values, times, block = found
        if self._type is torch.float16 and len(values) and max(values.max(), -values.min()) >= self.HALF_OVERFLOW:
            raise Error("format: dense_f16 holds numbers up to 65504, the values go beyond; take dense_f32, or a smaller scale", "usage")
        copied = to_device(block, self._device)
        part = functools.partial(piece, copied, block)
        ends, columns, numbers = part(indptr, torch.int32), part(indices, torch.int32), part(values, torch.float32)
        if self._type is None:
            matrix = torch.sparse_csr_tensor(ends, columns, numbers, size=(rows, self._columns))
            return matrix, None if times is None else part(times, torch.int64), None
        numbers_of_rows = torch.arange(rows, device=self._device)
        # The size is known: nobody waits for the GPU to tell it.
        row_of = torch.repeat_interleave(numbers_of_rows, ends.diff().long(), output_size=len(indices))
        dense = torch.zeros(rows * self._columns, dtype=self._type, device=self._device)
        dense[row_of * self._columns + columns] = numbers.to(self._type)
        return dense.view(rows, self._columns), None, None

    def __call__(self, found: Any) -> Tuple[Any, ...]:
        x, held_out, labels, rows = found[:4]
        small = [to_device(each, self._device) for each in (labels, rows)]
        (x, *of_x), (held_out, *of_held_out) = (self._matrix(each, len(rows)) for each in (x, held_out))
        return (x, held_out, *small, *found[4:], *(each for pair in zip(of_x, of_held_out) for each in pair))


def tensors_of(value: Any) -> List[torch.Tensor]:
    """The tensors among a batch's parts, which may be tuples, lists and dicts of them."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [each for part in parts for each in tensors_of(part)]


def hand_over(made: Any, is_ready: Any, device: Optional[torch.device]) -> None:
    """Makes a batch that another stream made one of the caller's stream, which waits for it; the caller does not."""
    current = cuda.current_stream(device)
    current.wait_event(is_ready)
    for each in tensors_of(made):
        DeviceFeed._record(each, current)


class DeviceFeed:
    """Takes batches from a loader, copies them on a stream of their own, and is one batch ahead of their user."""

    MAX_COPIES = 2  # on their way at a time

    def __init__(self, device: torch.device, copy: Callable[[Any], Tuple[Any, ...]], make: Callable[..., Any]) -> None:
        self._stream = cuda.Stream(device)
        self._device = device
        self._copy = copy
        self._make = make
        # The loader's state after the batch that was handed out last; None: as the loader says itself.
        self._state: Optional[str] = None
        # Batch, event of its copy, and state after it.
        self._ahead: Optional[Tuple[Any, Any, str]] = None
        # Taken from the loader, with the state after it, but not sent: there was no memory for it, say.
        self._unsent: Optional[Tuple[Any, str]] = None
        self._is_at_end = False
        # What is being copied stays until it has been.
        self._sources: Deque[Tuple[Any, Any]] = deque()

    def forget(self) -> None:
        """Drops the prefetched batch, because another epoch or position begins."""
        self._state = self._ahead = self._unsent = None
        self._is_at_end = False

    def state_before(self, state: Callable[[], str]) -> str:
        """The loader's state before the batch that is ahead."""
        return state() if self._state is None else self._state

    def take(self, core: Any) -> Any:
        """The next batch, or None at the end; the caller's stream waits for it, the caller does not."""
        if self._state is None:
            self._state = core.state()
        if self._ahead is None and not self._is_at_end:
            self._ahead = self._send(core)
        if self._ahead is None:
            self._state = None
            return None
        found, is_ready, state = self._ahead
        try:
            self._ahead = self._send(core)
        except Error:
            self._ahead = None  # the loader raises it again, when its batch is asked for
        self._state = state
        hand_over(found, is_ready, self._device)
        return self._make(*found)

    @staticmethod
    def _record(made: torch.Tensor, stream: Any) -> None:
        """The memory is not used again before the caller's stream is through with it."""
        if made.layout == torch.sparse_csr:
            for part in (made.crow_indices(), made.col_indices(), made.values()):
                part.record_stream(stream)
        else:
            made.record_stream(stream)

    def _send(self, core: Any) -> Optional[Tuple[Any, Any, str]]:
        """The loader's next batch, on its way, or None at the end. What fails is not lost: the next call tries again."""
        while len(self._sources) >= self.MAX_COPIES:
            self._sources.popleft()[1].synchronize()
        if self._unsent is None:
            taken = core.next()
            if taken is None:
                self._is_at_end = True
                return None
            self._unsent = taken, core.state()
        taken, state = self._unsent
        event = cuda.Event()
        with cuda.device(self._device), cuda.stream(self._stream):
            copied = self._copy(taken)
            event.record(self._stream)
        self._sources.append((taken, event))
        self._unsent = None
        return copied, event, state

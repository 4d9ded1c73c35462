"""Where the loaders of chunkhit.torch take their batches from."""
from __future__ import annotations

from typing import Any, Callable, Generic, Optional, Protocol, TypeVar

import numpy as np
import torch

Batch = TypeVar("Batch")


class Feed(Protocol):
    """Gives the batches of the binding's loader, `core`, as tensors."""

    def forget(self) -> None:
        """Drops batches that were taken from the loader ahead, because another epoch or position begins."""

    def state_before(self, state: Callable[[], str]) -> str:
        """The loader's state after the batch that was handed out last."""

    def take(self, core: Any) -> Any:
        """The next batch, or None at the end."""


def tensor(array: Any) -> Any:
    """A tensor over an array's memory; int64 for uint64, which tensors cannot be; None for None."""
    if array is None:
        return None
    return torch.from_numpy(array.view(np.int64) if array.dtype == np.uint64 else array)


class HostFeed(Generic[Batch]):
    """Batches on the CPU as they come, made by `make` of what the binding gives."""

    def __init__(self, make: Callable[..., Batch]) -> None:
        self._make = make

    def forget(self) -> None:
        pass

    def state_before(self, state: Callable[[], str]) -> str:
        return state()

    def take(self, core: Any) -> Optional[Batch]:
        found = core.next()
        return None if found is None else self._make(*found)

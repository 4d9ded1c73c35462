"""A caller's transform of single images, on threads; and which transforms draw once for a whole batch."""
from __future__ import annotations

import concurrent.futures
import inspect
import os
from typing import Any, Callable, Iterator, List, Optional

import numpy as np
import torch

from ._batches import ImageBatch
from ._error import ArgumentError, Error

SLICES = 4  # of a batch for each thread, so that none waits long for the last one
# Classes of torchvision.transforms that draw at random and are not named Random...
DRAWING = {"ColorJitter", "GaussianBlur", "AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix", "ElasticTransform"}


def drawing_once(function: Any) -> Iterator[str]:
    """Names of torchvision's classes in a transform of batches that draw once a call: for all images of a batch together."""
    kind = type(function)
    if kind.__module__.startswith("torchvision.transforms"):
        if kind.__name__.startswith("Random") or kind.__name__ in DRAWING:
            yield kind.__name__
    parts: Any = getattr(function, "transforms", None)
    if not isinstance(parts, (list, tuple)):
        parts = function.children() if isinstance(function, torch.nn.Module) else ()
    for part in parts:
        yield from drawing_once(part)


def takes_seed(function: Callable[..., Any]) -> bool:
    called = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        found = inspect.signature(called).parameters.get("seed")
    except (TypeError, ValueError):  # written in C
        return False
    return found is not None and found.kind is found.KEYWORD_ONLY


class SampleTransform:
    """Makes new batches of batches by a function of one image, which a thread for each available CPU calls; a keyword-only
    parameter `seed` of it is a number of the loader's seed, the epoch and the sample."""

    def __init__(self, function: Any, seed: int) -> None:
        if not callable(function):
            raise ArgumentError(f"sample_transform: expected a function, found {function!r}")
        self._function = function
        self._takes_seed = takes_seed(function)
        self._seed = seed
        self._threads = len(os.sched_getaffinity(0))
        self._pool: Optional[concurrent.futures.ThreadPoolExecutor] = None

    def __call__(self, batch: ImageBatch) -> ImageBatch:
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(self._threads, "chunkhit-sample")
        step = max(1, -(-len(batch.images) // (self._threads * SLICES)))
        slices = [range(begin, min(begin + step, len(batch.images))) for begin in range(0, len(batch.images), step)]
        made: List[torch.Tensor] = sum(self._pool.map(lambda numbers: self._images(batch, numbers), slices), [])
        return ImageBatch.of(batch.core, self._stacked(made), batch.labels, batch.samples, batch.epoch, batch.index, batch.masks)

    def _images(self, batch: ImageBatch, numbers: range) -> List[torch.Tensor]:
        found = []
        for number in numbers:
            try:
                found.append(self._image(batch, number))
            except Exception as error:
                if hasattr(error, "add_note"):  # Python 3.11
                    error.add_note(f"sample_transform: sample {int(batch.samples[number])} in epoch {batch.epoch}")
                raise
        return found

    def _image(self, batch: ImageBatch, number: int) -> torch.Tensor:
        keywords = {}
        if self._takes_seed:
            entropy = [self._seed, batch.epoch, int(batch.samples[number])]
            keywords["seed"] = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]) >> 1  # an int64 for torch
        made = self._function(batch.images[number], **keywords)
        if not isinstance(made, (torch.Tensor, np.ndarray)):
            raise Error(f"sample_transform: expected a tensor or an array, found {type(made).__name__}", "usage")
        return torch.as_tensor(made)

    @staticmethod
    def _stacked(images: List[torch.Tensor]) -> torch.Tensor:
        first = images[0]
        for image in images:
            if (image.shape, image.dtype) != (first.shape, first.dtype):
                raise Error(f"sample_transform: expected images of one shape and type, found {tuple(first.shape)} of {first.dtype} and "
                            f"{tuple(image.shape)} of {image.dtype}", "usage")
        return torch.stack(images)

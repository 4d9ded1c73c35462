"""A caller's transform of single images, on threads; and which transforms draw once for a whole batch."""
from __future__ import annotations

import concurrent.futures
import inspect
import os
from typing import Any, Callable, Dict, Iterator, Optional

import numpy as np
import torch

from ._batches import ImageBatch
from ._error import ArgumentError, Error

SLICES = 4  # of a batch for each thread, so that none waits long for the last one
# Classes of torchvision.transforms that draw at random and are not named Random...
DRAWING = {"ColorJitter", "GaussianBlur", "AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix", "ElasticTransform"}


# Classes that take one image of Pillow or NumPy, and what a batch of tensors needs in their place.
OF_IMAGES = {"ToPILImage": "leave it out", "PILToTensor": "leave it out",
             "ToTensor": 'leave it out, and ask for dtype="float32" with normalize={"mean": [0, 0, 0], "std": [1, 1, 1]}'}


def classes_in(function: Any) -> Iterator[type]:
    """torchvision's classes in a transform."""
    if type(function).__module__.startswith("torchvision.transforms"):
        yield type(function)
    parts: Any = getattr(function, "transforms", None)
    if not isinstance(parts, (list, tuple)):
        parts = function.children() if isinstance(function, torch.nn.Module) else ()
    for part in parts:
        yield from classes_in(part)


def drawing_once(function: Any) -> Iterator[str]:
    """Names of torchvision's classes in a transform of batches that draw once a call: for all images of a batch together."""
    return (kind.__name__ for kind in classes_in(function) if kind.__name__.startswith("Random") or kind.__name__ in DRAWING)


def check_takes_batches(function: Any) -> None:
    """Raises Error "usage" for classes of torchvision that take one image; v2's PILToTensor leaves tensors as they are."""
    for kind in classes_in(function):
        name = kind.__name__
        if name in OF_IMAGES and not (name == "PILToTensor" and ".v2" in kind.__module__):
            raise Error(f"transform: {name} takes one image, and gets a batch of tensors: {OF_IMAGES[name]}; or give a pipeline of "
                        "single images as sample_transform=Compose([ToPILImage(), ...])", "usage")


def takes_seed(function: Callable[..., Any]) -> bool:
    called = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        found = inspect.signature(called).parameters.get("seed")
    except (TypeError, ValueError):  # written in C
        return False
    return found is not None and found.kind is found.KEYWORD_ONLY


def makes_pillow(function: Any) -> bool:
    return any(kind.__name__ == "ToPILImage" for kind in classes_in(function))


def misfit(option: str, error: Exception, image: torch.Tensor, what: str = "") -> ArgumentError:
    """An error of a function that may expect another kind of image."""
    return ArgumentError(f"{option}: {error}; it was given {what}a uint8 tensor of {tuple(image.shape)}: "
                         "Compose([ToPILImage(), ...]) makes an image of Pillow of it first")


class SampleTransform:
    """Makes new batches of batches by a function of one image, which a thread for each available CPU calls; a keyword-only
    parameter `seed` of it is a number of the loader's seed, the epoch, the sample and its use in the epoch. With `channels_first` it gets images of
    nhwc batches as (channels, height, width), without a copy: Pillow takes their memory as it is."""

    def __init__(self, function: Any, seed: int, channels_first: bool) -> None:
        if not callable(function):
            raise ArgumentError(f"sample_transform: expected a function, found {function!r}")
        self._function = function
        self._makes_pillow = makes_pillow(function)
        self._takes_seed = takes_seed(function)
        self._seed = seed
        self._channels_first = channels_first
        self._threads = len(os.sched_getaffinity(0))
        self._pool: Optional[concurrent.futures.ThreadPoolExecutor] = None

    def __call__(self, batch: ImageBatch) -> ImageBatch:
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(self._threads, "chunkhit-sample")
        count = len(batch.images)
        first = self._pool.submit(self._image, batch, 0).result()
        images = torch.empty((count, *first.shape), dtype=first.dtype)
        images[0] = first
        step = max(1, -(-count // (self._threads * SLICES)))
        slices = [range(begin, min(begin + step, count)) for begin in range(1, count, step)]
        for _ in self._pool.map(lambda numbers: self._fill(images, batch, numbers), slices):
            pass
        return ImageBatch.of(batch.core, images, batch.labels, batch.samples, batch.epoch, batch.index, batch.masks,
                             batch.views, batch.uses)

    def _fill(self, images: torch.Tensor, batch: ImageBatch, numbers: range) -> None:
        """Makes these images of the batch, each in its place: kept until all are there, they would take memory twice."""
        for number in numbers:
            image = self._image(batch, number)
            if image.shape != images.shape[1:] or image.dtype != images.dtype:
                raise Error(f"sample_transform: expected images of one shape and type, found {tuple(images.shape[1:])} of {images.dtype} "
                            f"and {tuple(image.shape)} of {image.dtype}", "usage")
            images[number] = image

    def _image(self, batch: ImageBatch, number: int) -> torch.Tensor:
        image = batch.images[number].permute(2, 0, 1) if self._channels_first else batch.images[number]
        try:
            made = self._function(image, **self._keywords(batch, number))
        except Exception as error:
            if isinstance(error, (TypeError, AttributeError)) and not self._makes_pillow:
                raise misfit("sample_transform", error, image, f"sample {int(batch.samples[number])} as ") from error
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"sample_transform: sample {int(batch.samples[number])} in epoch {batch.epoch}")
            raise
        if not isinstance(made, (torch.Tensor, np.ndarray)):
            raise Error(f"sample_transform: expected a tensor or an array, found {type(made).__name__}", "usage")
        return torch.as_tensor(made)

    def _keywords(self, batch: ImageBatch, number: int) -> Dict[str, int]:
        if not self._takes_seed:
            return {}
        use = int(batch.uses[number])  # as order.md counts them: a sample that repeats draws again
        key = [self._seed, batch.epoch, int(batch.samples[number])] + ([use] if use else [])
        words = np.random.SeedSequence(key).generate_state(1, np.uint64)
        return {"seed": int(words[0]) >> 1}  # an int64, as torch takes it

"""A caller's transform of single samples, on threads; and which transforms draw once for a whole batch."""
from __future__ import annotations

import concurrent.futures
import inspect
import os
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

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


def keywords_of(function: Callable[..., Any]) -> Dict[str, bool]:
    """The keyword-only parameters of a function, and whether each is required."""
    called = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):  # written in C
        return {}
    return {each.name: each.default is each.empty for each in parameters if each.kind is each.KEYWORD_ONLY}


def makes_pillow(function: Any) -> bool:
    return any(kind.__name__ == "ToPILImage" for kind in classes_in(function))


def misfit(option: str, error: Exception, image: torch.Tensor, what: str = "") -> ArgumentError:
    """An error of a function that may expect another kind of image."""
    return ArgumentError(f"{option}: {error}; it was given {what}a uint8 tensor of {tuple(image.shape)}: "
                         "Compose([ToPILImage(), ...]) makes an image of Pillow of it first")


class SampleTransform:
    """Makes new batches of batches by a function of one sample, which a thread for each available CPU calls. It gets the image, and
    by keyword-only parameters, such as `mask` and `label`, the sample's other fields. A parameter `seed` is a number of the loader's
    seed, the epoch, the sample and its use in the epoch: one for all fields. It returns an image, or a dict of the fields that it changes. With
    `channels_first` it gets images and views of nhwc batches as (channels, height, width), without a copy: Pillow takes their
    memory as it is."""

    def __init__(self, function: Any, seed: int, channels_first: bool) -> None:
        if not callable(function):
            raise ArgumentError(f"sample_transform: expected a function, found {function!r}")
        self._function = function
        self._makes_pillow = makes_pillow(function)
        self._parameters = keywords_of(function)
        self._seed = seed
        self._channels_first = channels_first
        self._roles: Any = {}
        self._threads = len(os.sched_getaffinity(0))
        self._pool: Optional[concurrent.futures.ThreadPoolExecutor] = None

    def check_fields(self, info: Mapping[str, Any]) -> None:
        """Raises Error "usage" for a function that would change images without their masks or views, or takes what samples lack."""
        self._roles = info.get("fields", {})
        for field in self._roles:
            if field not in self._parameters:
                given = "".join(f', \"{name}\": {name}' for name in self._roles)
                raise Error(f"sample_transform: would change images without their {field}: give it a keyword-only parameter {field}, as "
                            f"def change(image, *, {', '.join(self._roles)}, seed), and return {{\"image\": image{given}}}; augment= changes all "
                            "alike", "usage")
        for name, is_required in self._parameters.items():
            if is_required and name not in ("label", "seed", *self._roles):
                raise Error(f"sample_transform: takes {name}, and the samples have no field {name}", "usage")

    def __call__(self, batch: ImageBatch) -> ImageBatch:
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(self._threads, "chunkhit-sample")
        count = len(batch.images)
        first = self._pool.submit(self._sample, batch, 0).result()
        made = {field: torch.empty((count, *value.shape), dtype=value.dtype) for field, value in first.items()}
        for field, value in first.items():
            made[field][0] = value
        step = max(1, -(-count // (self._threads * SLICES)))
        slices = [range(begin, min(begin + step, count)) for begin in range(1, count, step)]
        for _ in self._pool.map(lambda numbers: self._fill(made, batch, numbers), slices):
            pass
        fields = {"label": batch.labels, **{name: self._pixels(name, values) for name, values in batch.fields.items()}, **made}
        images = fields.pop("image", self._pixels("image", batch.images))
        return ImageBatch.of(batch.core, images, fields.pop("label"), batch.samples, batch.epoch, batch.index, fields, batch.uses)

    def _pixels(self, name: str, pixels: Any) -> Any:
        """A field as the function gets it."""
        is_image = name == "image" or self._roles.get(name) == "view"
        return pixels.movedim(-1, -3) if self._channels_first and is_image else pixels

    def _fill(self, made: Dict[str, torch.Tensor], batch: ImageBatch, numbers: range) -> None:
        """Makes these samples of the batch, each in its place: kept until all are there, they would take memory twice."""
        for number in numbers:
            sample = self._sample(batch, number)
            if sample.keys() != made.keys():
                raise Error(f"sample_transform: expected the same fields of each sample, found {', '.join(made)} and {', '.join(sample)}",
                            "usage")
            for field, value in sample.items():
                room = made[field]
                if value.shape != room.shape[1:] or value.dtype != room.dtype:
                    raise Error(f"sample_transform: expected {field}s of one shape and type, found {tuple(room.shape[1:])} of {room.dtype} "
                                f"and {tuple(value.shape)} of {value.dtype}", "usage")
                room[number] = value

    def _sample(self, batch: ImageBatch, number: int) -> Dict[str, torch.Tensor]:
        """The fields that are new."""
        image = self._pixels("image", batch.images[number])
        try:
            made = self._function(image, **self._keywords(batch, number))
        except Exception as error:
            if isinstance(error, (TypeError, AttributeError)) and not self._makes_pillow:
                raise misfit("sample_transform", error, image, f"sample {int(batch.samples[number])} as ") from error
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"sample_transform: sample {int(batch.samples[number])} in epoch {batch.epoch}")
            raise
        fields = made if isinstance(made, dict) else {"image": made}
        for field, value in fields.items():
            if field not in ("image", "label", *batch.fields):
                raise Error(f"sample_transform: returns the field {field}; the samples have {', '.join(('image', 'label', *batch.fields))}", "usage")
            if not isinstance(value, (torch.Tensor, np.ndarray)) and not (field == "label" and isinstance(value, (int, float, np.generic))):
                raise Error(f"sample_transform: expected a tensor or an array{'' if field == 'image' else f' as {field}'}, "
                            f"found {type(value).__name__}", "usage")
        return {field: torch.as_tensor(value) for field, value in fields.items()}

    def _keywords(self, batch: ImageBatch, number: int) -> Dict[str, Any]:
        fields = {"label": batch.labels, **batch.fields}
        keywords = {name: self._pixels(name, values[number]) for name, values in fields.items() if name in self._parameters}
        if "seed" in self._parameters:
            keywords["seed"] = self._seed_of(batch, number)
        return keywords

    def _seed_of(self, batch: ImageBatch, number: int) -> int:
        use = int(batch.uses[number])  # as order.md counts them: a sample that repeats draws again
        key = [self._seed, batch.epoch, int(batch.samples[number])] + ([use] if use else [])
        words = np.random.SeedSequence(key).generate_state(1, np.uint64)
        return int(words[0]) >> 1  # an int64, as torch takes it

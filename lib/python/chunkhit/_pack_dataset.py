"""Packing a dataset of Python: samples of torch, of Hugging Face, or of any iterable."""
from __future__ import annotations

import collections
import contextlib
import importlib
import itertools
import math
import os
import sys
from typing import Any, Deque, Dict, Generator, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _types as types
from ._error import Error, whole_number
from ._masks import Field, field_arrays, image_array, is_mask, may_be_mask
from ._options import has_options
from ._packing import Info, Progress
from ._paths import Path
from ._writers import OF_FILES, ImageWriter, column_names, column_value, key_text, label_value

Entry = Tuple[NDArray[Any], Union[int, str, NDArray[Any]], str, Dict[str, Union[int, float, str]], List[Field]]

BATCH = 64  # samples that a worker hands over at a time: each time costs as much as ten small images
SEGMENTS = 3  # of shared memory, which a worker fills in turns: new ones cost as much as the copies into them
segments: Deque[Any] = collections.deque()  # those of the process, if it is a worker


class Samples:
    """A source whose samples are ready to be added; what is wrong with one is an Error that names its index."""

    def __init__(self, source: Any, names: Tuple[str, Optional[str], Optional[str], Optional[str]], field_names: Mapping[str, str],
                 columns: List[str], exif: Optional[str]) -> None:
        self.source, self.names, self.field_names, self.columns, self.exif = source, names, field_names, columns, exif

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Entry:
        try:
            sample = self.source[index]
        except Exception as error:
            raise Error(f"sample {index}: {type(error).__name__}: {error}", "bad_data") from error
        return self.entry(index, sample)

    def iterate(self) -> Generator[Entry, None, None]:
        samples = iter(self.source)
        for index in itertools.count():
            try:
                sample = next(samples)
            except StopIteration:
                return
            except Exception as error:
                raise Error(f"sample {index}: {type(error).__name__}: {error}", "bad_data") from error
            yield self.entry(index, sample)

    def entry(self, index: int, sample: Any) -> Entry:
        try:
            image, label, key, mask, found = self.fields(sample)
            columns = {name: column_value(name, found[name]) for name in self.columns if name in found}
            fields = {name: found[own] for name, own in self.field_names.items()}
            if is_mask(label):
                if mask is not None:
                    raise Error("label: is a mask, and another mask stands beside it", "usage")
                label, mask = -1, label
            if mask is not None:
                if any(name.partition(":")[0] == "mask" for name in fields):
                    raise Error("fields: found mask, and another mask stands beside it", "usage")
                fields = {"mask": mask, **fields}
            return (image_array(stored_image(image), self.exif), label_value(label), key_text(key), columns,
                    field_arrays(None, {name: stored_image(value) for name, value in fields.items()}, self.exif))
        except (Error, TypeError, OSError) as error:
            code = "bad_data" if isinstance(error, TypeError) else getattr(error, "code", "bad_data")
            raise Error(f"sample {index}: {error}", code) from error

    def fields(self, sample: Any) -> Tuple[Any, Any, Any, Any, Mapping[str, Any]]:
        """Image, label, key or None, mask or None, and columns."""
        if isinstance(sample, dict):
            return self.fields_of_dict(sample)
        if isinstance(sample, (tuple, list)) and 2 <= len(sample) <= 5:
            *others, columns = sample if isinstance(sample[-1], dict) else [*sample, {}]
            if columns and not self.columns and not self.field_names and self.names[3] is None:
                raise Error(f"columns: found {', '.join(map(repr, columns))}, expected none; keep_columns names those to keep, fields "
                            "masks and views", "usage")
            mask = others.pop(2) if len(others) > 2 and may_be_mask(others[2], others[0]) else None
            self._check_names(columns, fields=self.field_names.values(), mask=[name for name in [self.names[3]] if name and mask is None])
            if mask is None and self.names[3]:
                mask = columns[self.names[3]]
            if len(others) in (2, 3):
                return others[0], others[1], others[2] if len(others) == 3 else None, mask, columns
        found = f"{len(sample)} values" if isinstance(sample, (tuple, list)) else f"a {type(sample).__name__}"
        raise Error("expected (image, label), (image, label, key), a mask behind the label, a dict of columns at the end, or a "
                    f"dict, found {found}", "usage")

    @staticmethod
    def _check_names(sample: Mapping[str, Any], **names: Iterable[str]) -> None:
        for argument, wanted in names.items():
            for name in wanted:
                if name not in sample:
                    found = ", ".join(map(repr, sample)) or "what stands in its place"
                    none = ", label=None says that there is none" if argument == "label" else ""
                    raise Error(f"has no {name!r}, only {found}; {argument}= names what it has{none}", "usage")

    def fields_of_dict(self, sample: Dict[str, Any]) -> Tuple[Any, Any, Any, Any, Mapping[str, Any]]:
        image, label, key, mask = self.names
        self._check_names(sample, image=[image], label=[label] if label else [], key=[] if key is None else [key],
                          mask=[mask] if mask else [], keep_columns=self.columns, fields=self.field_names.values())
        if mask is None:
            for name, value in sample.items():
                if name not in (image, label, key, *self.field_names.values()) and may_be_mask(value, sample[image]):
                    raise Error(f"has {name!r}, which may be a mask: mask={name!r} packs it, mask='' leaves it out", "usage")
        return sample[image], sample[label] if label else -1, None if key is None else sample[key], sample[mask] if mask else None, sample


def stored_image(image: Any) -> Any:
    """The image, or the bytes of one that Hugging Face datasets did not decode: {"bytes": ..., "path": ...}."""
    if not isinstance(image, dict):
        return image
    if image.get("bytes") is not None:
        return image["bytes"]
    if image.get("path"):
        with open(image["path"], "rb") as file:
            return file.read()
    raise Error(f"image: expected bytes or a path, found {image!r}", "usage")


def in_shared_memory(samples: List[Entry]) -> Tuple[Any, List[Any]]:
    """The samples, with shapes in the place of pixels and masks, and one tensor of all of these, which torch hands over without
    a copy through a pipe; where shared memory is short, None and the samples as they are. It is valid until SEGMENTS - 1 further
    ones were made."""
    torch = importlib.import_module("torch")
    arrays = [array for sample in samples for array in (sample[0], *(field[2] for field in sample[4]))]
    count = sum(array.nbytes for array in arrays)
    segment = segments.popleft() if len(segments) == SEGMENTS else None
    if segment is None or len(segment) < count:
        try:
            free = os.statvfs("/dev/shm")
        except OSError:
            return None, samples
        if count * 2 * (torch.utils.data.get_worker_info().num_workers + 1) > free.f_bavail * free.f_frsize:
            return None, samples
        segment = torch.empty(count, dtype=torch.uint8).share_memory_()
    segments.append(segment)
    pixels = segment[:count]
    np.concatenate([array.reshape(-1) for array in arrays], out=pixels.numpy())
    return pixels, [(image.shape, *others, [(name, role, array.shape) for name, role, array in fields])
                    for image, *others, fields in samples]


def from_shared_memory(batch: Tuple[Any, List[Any]]) -> Iterator[Entry]:
    """The samples of what `in_shared_memory` made."""
    pixels, samples = batch
    if pixels is None:
        yield from samples
        return
    left = pixels.numpy()
    for shape, label, key, columns, fields in samples:
        arrays = []
        for one in (shape, *(field[2] for field in fields)):
            arrays.append(left[:math.prod(one)].reshape(one))
            left = left[math.prod(one):]
        yield arrays[0], label, key, columns, [(name, role, array) for (name, role, _), array in zip(fields, arrays[1:])]


def is_map_style(source: Any) -> bool:
    """Whether samples are had by their numbers; torch's IterableDataset has a __getitem__ that only raises."""
    data = sys.modules.get("torch.utils.data")
    if data is not None and isinstance(source, data.IterableDataset):
        return False
    return hasattr(source, "__getitem__") and hasattr(source, "__len__") and not isinstance(source, (dict, str, bytes))


def read_ahead(samples: Samples, workers: int) -> Generator[Entry, None, None]:
    """The samples in their order, read by processes of torch's DataLoader."""
    if not is_map_style(samples.source):
        raise Error(f"workers: expected a dataset with __getitem__ and __len__, found a {type(samples.source).__name__}, "
                    "which only this process can iterate over", "usage")
    try:
        torch = importlib.import_module("torch")
        data = importlib.import_module("torch.utils.data")
    except ImportError:
        raise Error("workers: torch is not installed, whose DataLoader they are; workers=0 reads in this process",
                    "usage") from None
    # The workers' random numbers are the same in each run.
    loader = data.DataLoader(samples, batch_size=BATCH, num_workers=workers, collate_fn=in_shared_memory, prefetch_factor=1,
                             generator=torch.Generator().manual_seed(0))
    batches = iter(loader)
    mapped: Deque[Any] = collections.deque(maxlen=SEGMENTS * workers)  # keeps them mapped

    def samples_of(batch: Tuple[Any, List[Any]]) -> Iterator[Entry]:
        mapped.append(batch[0])
        return from_shared_memory(batch)

    try:
        yield from itertools.chain.from_iterable(map(samples_of, batches))
    finally:
        # Where an error's traceback holds it, Python's search for cycles would end it, and wait 5 s for each worker.
        batches._shutdown_workers()


def class_names(source: Any, label: str) -> List[str]:
    """What a dataset says of its classes, or a subset's dataset, or those that it concatenates: `classes`, or the names of a
    feature; else nothing. Raises Error "usage" where concatenated datasets say different things."""
    for _ in range(10):
        parts = getattr(source, "datasets", None)
        if isinstance(parts, (list, tuple)):
            found = [class_names(part, label) for part in parts]
            if any(names != found[0] for names in found):
                raise Error("classes: the datasets that are concatenated have different ones, so that an id means several: "
                            "give `classes`, and labels that are ids or names of them", "usage")
            return found[0] if found else []
        features = getattr(source, "features", None)
        feature = features.get(label) if isinstance(features, dict) else None
        for names in (getattr(source, "classes", None), getattr(feature, "names", None)):
            if isinstance(names, (list, tuple)) and names and all(isinstance(name, str) for name in names):
                return list(names)
        source = getattr(source, "dataset", None)
    return []


@has_options("pack_images", without=OF_FILES)
def pack_dataset(source: Iterable[Any], output: Path, *, workers: int = 0, image: str = "image", label: Optional[str] = "label",
                 key: Optional[str] = None, mask: Optional[str] = None, fields: Union[Mapping[str, str], types.Texts, None] = None,
                 classes: Union[Path, Sequence[str], None] = None, progress: Progress = None, **options: Any) -> Info:
    """Packs a dataset: a map-style Dataset of torch or Hugging Face, or any iterable.

        chunkhit.pack_dataset(torchvision.datasets.CIFAR10("data"), "train", container="shard")
        chunkhit.pack_dataset(datasets.load_dataset("beans", split="train"), "train", label="labels", resize=256, crop=224)

    source    samples are (image, label), (image, label, key), these with a dict of columns behind, or dicts; images and
              labels are those of `ImageWriter.add`, an image may also be {"bytes": ...} or {"path": ...}; a label of
              two dimensions, or an image of Pillow, is the mask of its image, and so is what stands behind a label:
              (image, label, mask). Masks are bool or integers of values from 0 to 255
    workers   processes of torch's DataLoader that read a map-style dataset ahead, in its order; 0: this process reads it
    image, label, key, mask
              what dicts name them, a mask also in the dict behind a tuple; label None: there is none; key None: the number of the sample; mask None: none, and an error where a dict seems to have
              one; "": none
    fields    further fields: their names in dicts, also in the dict behind a tuple, or a dict of these by names of fields:
              {"depth:view": "depth_map"}; masks and views as in `ImageWriter.add`
    label_column, keep_columns
              as in ImageWriter; the columns stand in each sample's dict
    output, progress
              as in pack_images
    classes   as in ImageWriter; None: `source.classes`, or the names of its features, where it has them and labels are no numbers;
              (): none

    The others are those of `ImageWriter`. A dataset gives the images before they become floats: without ToTensor and
    Normalize, which loaders do later. What is random in it, such as flips, would be packed once for good.

    Returns and raises what `pack_images` does; an Error names the index of the sample, from 0.
    """
    named = fields if isinstance(fields, Mapping) else {name: name.partition(":")[0] for name in column_names(fields)}
    samples = Samples(source, (image, label, key, mask), named, column_names(options.get("keep_columns")), options.get("exif"))
    count = whole_number("workers", workers)
    has_numbers = len(column_names(options.get("label_column"))) > 1  # a column of 0 and 1 for each class, say
    names = classes if classes is not None else [] if has_numbers else class_names(source, label or "")
    entries: Generator[Entry, None, None]
    with ImageWriter(output, classes=names, progress=progress, **options) as writer:
        if count:
            entries = read_ahead(samples, count)
        elif is_map_style(source):
            entries = (samples[index] for index in range(len(samples)))
        else:
            entries = samples.iterate()
        with contextlib.closing(entries):
            for index, (pixels, own_label, own_key, columns, own_fields) in enumerate(entries):
                try:
                    writer.add(pixels, own_label, own_key or None, columns,
                               fields={f"{name}:{role}": array for name, role, array in own_fields})
                except Error as error:
                    text = str(error).removeprefix(f"sample {index}: ")
                    raise Error(f"sample {index}: {text}", error.code) from error
        return writer.finish()

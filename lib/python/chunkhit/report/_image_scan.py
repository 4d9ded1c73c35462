"""What is seen of a pack's images: sizes, brightness, hashes, and the images of the contact sheet."""
from __future__ import annotations

import hashlib
import os
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .._datasets import ImageDataset
from .._figures import upright
from .._pages import shown
from ._label_errors import FEATURES, features
from ._perceptual import FLAT, perceptual_hash, shrink

GROUP_BYTES = 16 << 20
CACHE_BYTES = 128 << 20  # of a pack's chunks
MAX_PIXELS_COUNTED = 16384  # of an image, for brightness
RUN = 16  # neighbors that are read together
DUPLICATE_BYTES = 10_000_000_000  # of a pack's pixels, up to which all its images are compared
NEAR_IMAGES = 200_000  # of all packs, up to which near-duplicates are looked for
LABEL_IMAGES = 20_000  # of all packs, among which label errors are looked for
THUMB = 16  # pixels of a side of the thumbnails by which near-duplicates are confirmed
DARK, LIGHT = 48.0, 208.0  # of 255: of nearly all pixels of an image that is nearly black, or white
MAX_NORMAL = 0.5  # share of a pack's images from which on a look is its way

Array = np.ndarray[Any, Any]
Report = Optional[Callable[[Dict[str, Any]], None]]


class LookOptions(NamedTuple):
    """Which images are read, and what for."""

    samples: int = 10_000  # looked at; 0: all
    seed: int = 0
    duplicates: str = "auto"  # whose hashes are compared: "auto", "all" or "none"
    near_duplicates: bool = False
    on_progress: Report = None
    label_images: int = 0  # whose features are kept


class Glance(NamedTuple):
    """What is kept of an image that is looked at."""

    height: int
    width: int
    brightness: float  # mean of its pixels, 0 to 255
    contrast: float  # standard deviation of the channel that varies most
    darkest: float  # brightness that a hundredth of the pixels is below
    lightest: float  # and above
    sharpness: float  # mean difference of neighboring pixels, of their standard deviation


@dataclass
class Hashes:
    """Hashes of these samples, by which equal images, and images that are alike, are found."""

    samples: Array  # ascending
    digests: Array  # uint64 (n, 2): of shape and pixels
    is_single: Array  # bool (n,): whether all pixels are equal
    perceptual: Array  # uint64 (n, 2); empty without near-duplicates
    contrast: Array  # float32 (n,): standard deviation of brightness; empty without near-duplicates
    thumbs: Array  # uint8 (n, THUMB * THUMB): brightness; empty without near-duplicates

    @staticmethod
    def room(samples: Array, near_duplicates: bool) -> "Hashes":
        count = len(samples) if near_duplicates else 0
        return Hashes(samples, np.zeros((len(samples), 2), np.uint64), np.zeros(len(samples), bool), np.zeros((count, 2), np.uint64),
                      np.zeros(count, np.float32), np.zeros((count, THUMB * THUMB), np.uint8))

    def add(self, at: int, image: Array, gray: Array) -> None:
        """Hashes (height, width, channels), whose brightness is `gray`, as the sample at this position."""
        shape = struct.pack("<IIII", *image.shape, 0)
        digest = hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=16, salt=shape).digest()
        self.digests[at] = np.frombuffer(digest, np.uint64)
        self.is_single[at] = (image[:1] == image[:1, :1]).all() and (image == image[:1]).all()
        if len(self.contrast):
            self.perceptual[at] = perceptual_hash(gray)
            self.thumbs[at] = np.rint(shrink(gray, THUMB, THUMB)).ravel()
            self.contrast[at] = gray.std()


@dataclass
class ImageScan:
    """A pack with what was seen of it; the arrays are of `looked`, the samples that were looked at."""

    name: str
    path: str
    info: Dict[str, Any]
    names: Dict[int, str]  # of classes, by id, as the page shows them
    dataset: ImageDataset
    labels: Array
    looked: Array
    sizes: Array  # (n, 2): height, width
    brightness: Array
    contrast: Array
    darkest: Array
    lightest: Array
    sharpness: Array
    counts: Array  # (channels, 256)
    masks: Dict[str, Array]  # (3, 256) of each field of masks by its name, as mask_counts
    best_with: Dict[str, Array]  # (256,) of each field of masks: the sample with the most pixels of the value, 0 without
    hashes: Hashes
    probed: Array  # samples whose features are known, ascending
    features: Array  # float32 (n, FEATURES)

    @property
    def total(self) -> int:
        return len(self.dataset)

    @property
    def has_classes(self) -> bool:
        """Whether its labels are classes, and there are any."""
        return self.labels.ndim == 1 and any(entry["id"] != -1 for entry in self.info["classes"])

    @property
    def is_plain(self) -> Array:
        """Whether each of `looked` shows nothing to compare: nearly one color, or nearly black or white where most others are not."""
        found = self.contrast < FLAT
        for is_so in (self.lightest < DARK, self.darkest > LIGHT):
            if len(is_so) and np.mean(is_so) <= MAX_NORMAL:
                found = found | is_so
        return np.asarray(found)

    @property
    def class_counts(self) -> Dict[str, int]:
        """Images of each class, or of each label column where labels are 0 and 1, by name."""
        if self.label_sets:
            return self.label_sets
        ids, counts = np.unique(self.labels, return_counts=True)
        table = {name: 0 for name in self.names.values()}
        for class_id, count in zip(ids.tolist(), counts.tolist()):
            name = self.names.get(class_id, f"class {class_id}")
            table[name] = table.get(name, 0) + count
        return table

    @property
    def label_sets(self) -> Dict[str, int]:
        """Images of each label column, where labels are 0 and 1 of several; else none."""
        columns, counts = self.info["labels"]["columns"], self.info.get("label_counts") or []
        names = [shown(name) if name else f"column {at}" for at, name in enumerate(columns)]
        return dict(zip(names, counts)) if len(counts) > 1 else {}

    @property
    def is_for_training(self) -> bool:
        """Whether its split, or its name where it has none, says nothing else."""
        name = self.info.get("spec", {}).get("split-name") or self.name.rsplit("/", 1)[-1]
        return name not in ("validation", "valid", "val", "dev", "eval", "test")


def spread_samples(total: int, wanted: int, seed: int) -> Array:
    """`wanted` of `total` samples, ascending: runs of neighbors, evenly spread, at random positions drawn by seed."""
    if not 0 < wanted < total:
        return np.arange(total)
    runs = -(-wanted // RUN)
    random = np.random.default_rng(seed)
    slots = np.linspace(0, total, runs + 1).astype(np.int64)
    room = np.maximum(np.diff(slots) - RUN, 0)
    begins = slots[:-1] + (random.random(runs) * (room + 1)).astype(np.int64)
    chosen = (begins[:, None] + np.arange(RUN)).ravel()
    return np.asarray(np.unique(np.minimum(chosen, total - 1))[:wanted])


def hashed_samples(info: Dict[str, Any], total: int, looked: Array, duplicates: str) -> Array:
    """The samples that are compared with each other."""
    if duplicates == "none":
        return looked[:0]
    return np.arange(total) if duplicates == "all" or info["raw_bytes"] <= DUPLICATE_BYTES else looked


def luma(image: Array) -> Array:
    """float32 (height, width): brightness as ITU-R 601 weighs colors."""
    if image.shape[2] >= 3:
        return np.asarray(image[..., :3].astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32))
    return np.asarray(image[..., 0], np.float32)


def glance(image: Array, gray: Array, counts: Array) -> Glance:
    """Looks at (height, width, channels), whose brightness is `gray`; adds how many pixels have each value to `counts` (channels, 256)."""
    height, width, channels = image.shape
    step = max(1, int(np.ceil(np.sqrt(height * width / MAX_PIXELS_COUNTED))))
    some = image[step // 2::step, step // 2::step]
    for channel in range(channels):
        counts[channel] += np.bincount(some[..., channel].ravel(), minlength=256)
    levels = np.sort(gray[step // 2::step, step // 2::step], axis=None)
    last = len(levels) - 1
    edges = sum(float(np.abs(np.diff(gray, axis=axis)).mean()) for axis in (0, 1) if gray.shape[axis] > 1)
    return Glance(height, width, float(levels.mean()), float(some.std(axis=(0, 1)).max()), float(levels[last // 100]),
                  float(levels[last - last // 100]), edges / (float(levels.std()) + 1))


def mask_counts(mask: Array) -> Array:
    """(3, 256) of a mask: how many pixels have each value, whether there are any, and whether all have it."""
    pixels = np.bincount(mask.ravel(), minlength=256)
    return np.stack([pixels, pixels > 0, pixels == mask.size])


class Progress:
    """Says how far a pack is read, and about how long that will take, a few times a second."""

    def __init__(self, name: str, total: int, report: Report) -> None:
        self._name, self._total, self._report = name, total, report
        self._done = 0
        self._begin = self._last = time.monotonic()

    def add(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if self._report is None or now - self._last < 0.2:
            return
        self._last = now
        left = (now - self._begin) * (self._total - self._done) / self._done
        self._report({"phase": f"reading {self._name}", "rows_done": self._done, "rows_total": self._total, "rejected": 0,
                      "seconds_left": left})


@dataclass
class Seen:
    """What a group of images adds up to."""

    glances: List[Glance]
    features: List[Array]
    counts: Array  # (channels, 256): how many pixels have each value
    masks: Array  # (fields, 3, 256): sums of mask_counts
    best_with: Array  # (fields, 256): samples
    best_pixels: Array  # (fields, 256): theirs

    @staticmethod
    def nothing(channels: int, fields: int) -> "Seen":
        return Seen([], [], np.zeros((channels, 256), np.int64), np.zeros((fields, 3, 256), np.int64),
                    np.zeros((fields, 256), np.int64), np.zeros((fields, 256), np.int64))

    def add(self, other: "Seen") -> None:
        self.glances += other.glances
        self.features += other.features
        self.counts += other.counts
        self.masks += other.masks
        is_better = other.best_pixels > self.best_pixels
        self.best_with = np.where(is_better, other.best_with, self.best_with)
        self.best_pixels = np.maximum(self.best_pixels, other.best_pixels)

    def add_mask(self, field: int, mask: Array, sample: int) -> None:
        found = mask_counts(mask)
        self.masks[field] += found
        self.best_with[field, found[0] > self.best_pixels[field]] = sample
        self.best_pixels[field] = np.maximum(self.best_pixels[field], found[0])


def read_images(dataset: ImageDataset, info: Dict[str, Any], looked: Array, probed: Array, hashes: Hashes, progress: Progress) -> Seen:
    """Looks at some samples, keeps features of some of these and hashes some, in groups, by as many threads as there are CPUs; no more
    than a group each is in memory."""
    size = info["sample"]
    image_bytes = size.get("height", 0) * size.get("width", 0) * size["channels"] or 1 << 20
    group = max(1, min(256, GROUP_BYTES // image_bytes))
    samples = np.union1d(looked, hashes.samples)
    is_looked, is_hashed, is_probed = (np.isin(samples, chosen) for chosen in (looked, hashes.samples, probed))
    hash_at = np.cumsum(is_hashed) - 1
    names = mask_names(info)

    def read(begin: int) -> Seen:
        seen = Seen.nothing(size["channels"], len(names))
        images = dataset[samples[begin:begin + group]][0]
        of_images = [dataset.field(name, samples[begin:begin + group]) for name in names]
        for at, image in enumerate((upright(image, info) for image in images), begin):
            gray = luma(image) if is_looked[at] or len(hashes.contrast) else np.empty(0, np.float32)
            if is_hashed[at]:
                hashes.add(int(hash_at[at]), image, gray)
            if is_looked[at]:
                seen.glances.append(glance(image, gray, seen.counts))
                for field, found in enumerate(of_images):
                    seen.add_mask(field, found[at - begin], int(samples[at]))
            if is_probed[at]:
                seen.features.append(features(image, gray))
        progress.add(len(images))
        return seen

    seen = Seen.nothing(size["channels"], len(names))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for of_group in pool.map(read, range(0, len(samples), group)):
            seen.add(of_group)
    return seen


def mask_names(info: Dict[str, Any]) -> List[str]:
    return [name for name, role in info.get("fields", {}).items() if role == "mask"]


def scan_images(name: str, path: str, options: LookOptions) -> ImageScan:
    """Looks at images of a pack, and hashes those that are compared."""
    dataset = ImageDataset(path, cache_bytes=CACHE_BYTES)
    info: Any = dataset.info
    labels: Any = dataset.labels()
    looked = spread_samples(len(dataset), options.samples, options.seed)
    known = looked[labels[looked] >= 0] if labels.ndim == 1 else looked[:0]
    probed = known[np.unique(np.linspace(0, len(known) - 1, min(options.label_images, len(known))).astype(int))]
    hashes = Hashes.room(hashed_samples(info, len(dataset), looked, options.duplicates), options.near_duplicates)
    progress = Progress(name, max(len(looked), len(hashes.samples)), options.on_progress)
    seen = read_images(dataset, info, looked, probed, hashes, progress)
    columns = {key: np.array([getattr(one, key) for one in seen.glances]) for key in Glance._fields}
    return ImageScan(
        name, path, info, class_names(info), dataset, labels, looked, np.stack([columns.pop("height"), columns.pop("width")], axis=1),
        counts=seen.counts, masks=dict(zip(mask_names(info), seen.masks)), best_with=dict(zip(mask_names(info), seen.best_with)),
        hashes=hashes, probed=probed, features=np.array(seen.features, np.float32).reshape(-1, FEATURES), **columns)


def class_names(info: Dict[str, Any]) -> Dict[int, str]:
    """Names of classes as the page shows them, by id."""
    return {entry["id"]: shown(entry["name"]) if entry.get("name") else f"class {entry['id']}" for entry in info["classes"]}


def keys_of(scan: ImageScan, samples: Sequence[int]) -> List[str]:
    return scan.dataset.keys(np.asarray(samples, dtype=np.int64))


def chosen_of_classes(scan: ImageScan, ids: Sequence[int], count: int, seed: int) -> List[Tuple[int, Array]]:
    """Up to `count` samples of each class, drawn by seed, ascending."""
    random = np.random.default_rng(seed)
    chosen = []
    for class_id in ids:
        own = np.flatnonzero(scan.labels == class_id)
        chosen.append((class_id, np.sort(random.choice(own, min(count, len(own)), replace=False))))
    return chosen

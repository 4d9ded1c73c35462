"""What is seen of a pack's images: sizes, brightness, hashes, and the images of the contact sheet."""
from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .._datasets import ImageDataset
from ._page import shown
from ._perceptual import perceptual_hash

GROUP_BYTES = 16 << 20
CACHE_BYTES = 128 << 20  # of a pack's chunks
MAX_PIXELS_COUNTED = 16384  # of an image, for brightness
RUN = 16  # neighbors that are read together


class Glance(NamedTuple):
    """What is kept of an image."""

    height: int
    width: int
    brightness: float  # mean of its pixels, 0 to 255
    contrast: float  # standard deviation of the channel that varies most
    digest: bytes  # of shape and pixels
    perceptual: Optional[np.ndarray[Any, Any]]  # uint64 (2,)


@dataclass
class ImageScan:
    """A pack with what was seen of it; the arrays are of `looked`, the samples that were read."""

    name: str
    path: str
    info: Dict[str, Any]
    names: Dict[int, str]  # of classes, by id, as the page shows them
    dataset: ImageDataset
    labels: np.ndarray[Any, Any]
    looked: np.ndarray[Any, Any]
    sizes: np.ndarray[Any, Any]  # (n, 2): height, width
    brightness: np.ndarray[Any, Any]
    contrast: np.ndarray[Any, Any]
    counts: np.ndarray[Any, Any]  # (channels, 256)
    digests: List[bytes]
    perceptual: Optional[np.ndarray[Any, Any]]  # uint64 (n, 2)

    @property
    def total(self) -> int:
        return len(self.dataset)


def spread_samples(total: int, wanted: int, seed: int) -> np.ndarray[Any, Any]:
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


def upright(image: np.ndarray[Any, Any], info: Dict[str, Any]) -> np.ndarray[Any, Any]:
    """(height, width, channels) whatever the layout."""
    return image.transpose(1, 2, 0) if info["sample"]["layout"] == "nchw" else image


def luma(image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """float32 (height, width): brightness as ITU-R 601 weighs colors."""
    if image.shape[2] >= 3:
        return np.asarray(image[..., :3].astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32))
    return np.asarray(image[..., 0], np.float32)


def glance(image: np.ndarray[Any, Any], counts: np.ndarray[Any, Any], near_duplicates: bool) -> Glance:
    """Looks at (height, width, channels); adds how many pixels have each value to `counts` (channels, 256)."""
    height, width, channels = image.shape
    digest = hashlib.blake2b(repr(image.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(image).data)
    step = max(1, int(np.ceil(np.sqrt(height * width / MAX_PIXELS_COUNTED))))
    some = image[step // 2::step, step // 2::step]
    for channel in range(channels):
        counts[channel] += np.bincount(some[..., channel].ravel(), minlength=256)
    gray = luma(some)
    perceptual = perceptual_hash(luma(image)) if near_duplicates else None
    contrast = float(some.std(axis=(0, 1)).max())
    return Glance(height, width, float(gray.mean()), contrast, digest.digest(), perceptual)


def glances(dataset: ImageDataset, info: Dict[str, Any], samples: np.ndarray[Any, Any],
            near_duplicates: bool) -> Tuple[List[Glance], np.ndarray[Any, Any]]:
    """Reads the samples in groups, by as many threads as there are CPUs; no more than a group each is in memory. Returns
    also the sums of how many pixels have each value, (channels, 256)."""
    size = info["sample"]
    image_bytes = size.get("height", 0) * size.get("width", 0) * size["channels"] or 1 << 20
    group = max(1, min(256, GROUP_BYTES // image_bytes))
    groups = [samples[begin:begin + group] for begin in range(0, len(samples), group)]

    def read(numbers: np.ndarray[Any, Any]) -> Tuple[List[Glance], np.ndarray[Any, Any]]:
        counts = np.zeros((size["channels"], 256), np.int64)
        images, _ = dataset[numbers]
        return [glance(upright(image, info), counts, near_duplicates) for image in images], counts

    seen: List[Glance] = []
    counts = np.zeros((size["channels"], 256), np.int64)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for group_seen, group_counts in pool.map(read, groups):
            seen += group_seen
            counts += group_counts
    return seen, counts


def scan_images(name: str, path: str, samples: int, seed: int, near_duplicates: bool) -> ImageScan:
    """Looks at `samples` images of a pack, or all for 0."""
    dataset = ImageDataset(path, cache_bytes=CACHE_BYTES)
    info: Any = dataset.info
    looked = spread_samples(len(dataset), samples, seed)
    seen, counts = glances(dataset, info, looked, near_duplicates)
    sizes = np.array([(one.height, one.width) for one in seen])
    return ImageScan(
        name, path, info, class_names(info), dataset, dataset.labels(), looked, sizes,
        np.array([one.brightness for one in seen]), np.array([one.contrast for one in seen]), counts,
        [one.digest for one in seen], np.array([one.perceptual for one in seen]) if near_duplicates else None)


def class_names(info: Dict[str, Any]) -> Dict[int, str]:
    """Names of classes as the page shows them, by id."""
    return {entry["id"]: shown(entry["name"]) if entry.get("name") else f"class {entry['id']}" for entry in info["classes"]}


def keys_of(scan: ImageScan, samples: Sequence[int]) -> List[str]:
    return scan.dataset.keys(np.asarray(samples, dtype=np.int64))


def chosen_of_classes(scan: ImageScan, ids: Sequence[int], count: int, seed: int) -> List[Tuple[int, np.ndarray[Any, Any]]]:
    """Up to `count` samples of each class, drawn by seed, ascending."""
    random = np.random.default_rng(seed)
    chosen = []
    for class_id in ids:
        own = np.flatnonzero(scan.labels == class_id)
        chosen.append((class_id, np.sort(random.choice(own, min(count, len(own)), replace=False))))
    return chosen

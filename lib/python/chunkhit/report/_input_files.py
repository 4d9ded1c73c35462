"""Sizes of the input files of a pack, which the pack does not keep: read from the files, where they are still there."""
from __future__ import annotations

import os
import re
import stat
import struct
import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from ._image_findings import SHOWN_ODD, finding_figures
from ._image_scan import Array, ImageScan, keys_of
from ._pack_tables import run_of
from ._page import Row

MAX_FILES = 10_000  # whose headers are read


class Change(NamedTuple):
    """What the transform did to images that are looked at."""

    samples: Array
    squeeze: Array  # by how much the aspect ratio changed, as a factor above 1
    crop_loss: Array  # share of the area


def size_of(path: str, is_turned: bool) -> Optional[Tuple[int, int]]:
    """Width and height of an image file by its header, upright where asked for; None where there is none."""
    from PIL import Image  # type: ignore

    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of large images, which are not decoded
            with Image.open(path) as image:
                width, height = image.size
                is_swapped = is_turned and image.getexif().get(0x0112, 1) >= 5
    except (OSError, ValueError, TypeError, LookupError, SyntaxError, struct.error, Image.DecompressionBombError):
        return None
    return (height, width) if is_swapped else (width, height)


def sides(text: str) -> Tuple[int, int]:
    """Width and height of "WxH" or "N"; 0 where there is neither."""
    found = re.fullmatch(r"([1-9][0-9]{0,6})(?:x([1-9][0-9]{0,6}))?", text)
    return (int(found[1]), int(found[2] or found[1])) if found else (0, 0)


def changed(size: Tuple[int, int], spec: Dict[str, Any]) -> Tuple[float, float]:
    """By how much the transform of the record squeezes an image of this size, and which share of it the crop removes."""
    width, height = size
    across, down = (float(side) for side in size)
    resize, fit, crop = (sides(str(spec.get(key, "none"))) for key in ("resize", "fit", "crop"))
    if resize[0] and "x" in str(spec["resize"]):
        across, down = map(float, resize)
    elif resize[0] or fit[0]:
        scale = resize[0] / min(size) if resize[0] else min(fit[0] / width, fit[1] / height)
        across, down = width * scale, height * scale
    squeeze = (across * height) / (down * width)
    kept = min(crop[0], across) * min(crop[1], down) / (across * down) if crop[0] else 1.0
    return max(squeeze, 1 / squeeze), 1 - kept


def changes(scan: ImageScan) -> Optional[Change]:
    """Of images that are looked at and whose files are there; None where none is."""
    roots = list(dict(run_of(scan.path).get("roots") or {}).values()) if "://" not in scan.path else []
    if len(roots) != 1 or not os.path.isdir(str(roots[0])):
        return None
    samples = scan.looked[np.unique(np.linspace(0, len(scan.looked) - 1, min(MAX_FILES, len(scan.looked))).astype(int))]
    spec = scan.info.get("spec", {})
    found = []
    for sample, key in zip(samples.tolist(), keys_of(scan, samples.tolist())):
        is_below = key and not os.path.isabs(key) and ".." not in key.split("/")
        size = size_of(os.path.join(str(roots[0]), key), spec.get("exif", "apply") == "apply") if is_below else None
        if size is not None and min(size) > 0:
            found.append((sample, *changed(size, spec)))
    if not found:
        return None
    numbers, squeeze, loss = zip(*found)
    return Change(np.array(numbers), np.array(squeeze), np.array(loss))


def worst_rows(scan: ImageScan, number: int, change: Change, key: str, limit: float) -> List[Row]:
    """The twelve images that changed most, of those beyond the limit."""
    values = getattr(change, key)
    order = [int(at) for at in np.argsort(-values, kind="stable")[:SHOWN_ODD] if values[at] > limit]
    figures = finding_figures(scan, change.samples[order].tolist(), f"{key.replace('_', '-')}{number}")
    texts = [f"{values[at]:.2f} to 1" if key == "squeeze" else f"{100 * values[at]:.0f} % lost" for at in order]
    return [Row("", [figure._replace(caption=f"{figure.caption}: {text}") for figure, text in zip(figures, texts)])] if order else []

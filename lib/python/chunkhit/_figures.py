"""Images, masks and views of a dataset as figures of a page: data URIs with captions."""
from __future__ import annotations

import base64
import colorsys
import io
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from ._pages import shown

MAX_SIDE = 256  # of an image on the page: those of more pixels than its square are shrunk
MAX_PIXELS = MAX_SIDE * MAX_SIDE
PNG_PIXELS = 4096  # of an image, up to which the page has its exact pixels; larger ones are JPEG
MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}

Array = np.ndarray[Any, Any]


class Figure(NamedTuple):
    """An image of a contact sheet."""

    anchor: str  #: names it on the page
    source: str  #: data URI
    width: int  #: of the image in the pack
    height: int
    caption: str
    file: str = ""  #: shortened below the caption, whole where the image is enlarged
    detail: str = ""
    mask: str = ""  #: data URI of colors that are laid over it
    fields: Sequence[Tuple[str, str]] = ()  #: names and data URIs of the sample's further fields, shown below it
    label: str = ""  #: below the caption


def mask_colors() -> List[str]:
    """Colors of the 256 values of masks: steps of an irrational part of the hues, so that those in use differ; 255 is gray."""
    return ["#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hsv_to_rgb(value * 2 ** 0.5 % 1, 0.85, 0.9))
            for value in range(255)] + ["#808080"]


def upright(image: Array, info: Dict[str, Any]) -> Array:
    """(height, width, channels) whatever the layout."""
    return image.transpose(1, 2, 0) if info["sample"]["layout"] == "nchw" else image


def encode(image: Array, side: int = MAX_SIDE) -> Tuple[str, str]:
    """A data URI of the image, and what was done to it. Of other channels than an image has the first is shown."""
    from PIL import Image  # type: ignore

    channels = image.shape[2]
    mode = MODES.get(channels, "L")
    pixels = image[..., 0] if mode == "L" else image
    pil_image = Image.fromarray(np.ascontiguousarray(pixels), mode)
    is_shrunk = pil_image.width * pil_image.height > side * side
    is_photo = mode in ("L", "RGB") and pil_image.width * pil_image.height > PNG_PIXELS
    if is_shrunk:
        pil_image.thumbnail((side, side), Image.LANCZOS)
    written = io.BytesIO()
    if is_photo:
        pil_image.save(written, "JPEG", quality=90)
        return data_uri("jpeg", written), "shrunk for this page" if is_shrunk else "as JPEG for this page"
    pil_image.save(written, "PNG", optimize=True)
    return data_uri("png", written), "shrunk for this page" if is_shrunk else "as stored"


def data_uri(kind: str, written: io.BytesIO) -> str:
    return f"data:image/{kind};base64," + base64.b64encode(written.getvalue()).decode()


def encode_mask(mask: Array, side: int = MAX_SIDE) -> str:
    """A data URI of the mask in mask_colors; 0 is transparent. It is shrunk as its image."""
    from PIL import Image

    pil_image = Image.fromarray(mask)
    if mask.size > side * side:
        pil_image.thumbnail((side, side), Image.NEAREST)
    pil_image.putpalette(bytes.fromhex("".join(mask_colors()).replace("#", "")))
    written = io.BytesIO()
    pil_image.save(written, "PNG", optimize=True, transparency=0)
    return data_uri("png", written)


def fields_below(info: Dict[str, Any]) -> List[str]:
    """Names of the fields that stand below an image: all but the first mask, which lies over it."""
    fields = info.get("fields", {})
    return [name for name in fields if name != first_mask(fields)]


def first_mask(fields: Dict[str, str]) -> str:
    """Its name, of fields with their roles; empty where there is none."""
    return next((name for name, role in fields.items() if role == "mask"), "")


def label_text(row: Any, classes: Sequence[str], columns: Sequence[str] = ()) -> str:
    """Names of the label columns that are 1, where all are 0 or 1; else the first numbers, with the names of their columns."""
    if classes:
        return ", ".join(shown(name) for name, value in zip(classes, row) if value)
    numbers = [f"{value:g}" if float(value).is_integer() else f"{value:.4g}" for value in row[:4]]
    named = [f"{shown(name)} {number}" if name else number for name, number in zip(columns, numbers)] or numbers
    return ", ".join(named) + (", …" if len(row) > 4 else "")


def figures_in(name: str, dataset: Any, info: Any, samples: Sequence[int], prefix: str, side: int = MAX_SIDE) -> List[Figure]:
    """Figures of these samples, with their numbers and files; `prefix` tells figures of the same sample apart. Images of more pixels than
    the square of `side` are shrunk."""
    samples = [int(sample) for sample in samples]
    if not samples:
        return []
    numbers = np.array(samples, np.uint64)
    images, labels = dataset._core.read(numbers), dataset._core.labels(numbers)  # whatever fields its samples have
    roles = info.get("fields", {})
    fields = {field: dataset.field(field, samples) for field in roles}
    figures = []
    for at, (sample, image, label, key) in enumerate(zip(samples, images, labels, dataset.keys(samples))):
        pixels = upright(image, info)
        source, how = encode(pixels, side)
        height, width = pixels.shape[:2]
        detail = f"{name}, {width} x {height}, {how}"
        detail += "".join(f"; {field} " + ", ".join(map(str, np.unique(fields[field][at])))
                          for field, role in roles.items() if role == "mask")
        labels_of = label_text(label, dataset.classes, info["labels"].get("columns", ())) if np.ndim(label) else ""
        detail += f"; {labels_of}" if labels_of else ""
        sources = {field: encode_mask(fields[field][at], side) if role == "mask" else encode(upright(fields[field][at], info), side)[0]
                   for field, role in roles.items()}
        mask = sources.pop(first_mask(roles), "")
        figures.append(Figure(f"{prefix}-{sample}", source, width, height, f"#{sample}", shown(key), detail, mask,
                              list(sources.items()), labels_of))
    return figures

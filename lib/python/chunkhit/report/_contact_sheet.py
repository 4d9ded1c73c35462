"""Contact sheets: images of a pack as they are stored, as PNG within the page."""
from __future__ import annotations

import base64
import io
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from .._error import counted
from .._datasets import ImageDataset
from ._charts import mask_colors
from ._image_scan import ImageScan, chosen_of_classes, upright
from ._page import Block, Figure, shown

MAX_CLASSES = 24
MAX_OF_CLASS = 12
PLAIN = 36  # of a pack without classes
MAX_PIXELS = 65536  # of an image: larger ones are shrunk for the page
PAGE_PIXELS = 4_000_000  # of all images of a page
MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def encode(image: np.ndarray[Any, Any]) -> Tuple[str, bool]:
    """A data URI of the image, and whether it was shrunk. Of other channels than an image has the first is shown."""
    from PIL import Image  # type: ignore

    channels = image.shape[2]
    mode = MODES.get(channels, "L")
    pixels = image[..., 0] if mode == "L" else image
    pil_image = Image.fromarray(np.ascontiguousarray(pixels), mode)
    is_shrunk = pil_image.width * pil_image.height > MAX_PIXELS
    if is_shrunk:
        pil_image.thumbnail((256, 256), Image.LANCZOS)
    written = io.BytesIO()
    if is_shrunk and mode in ("L", "RGB"):
        pil_image.save(written, "JPEG", quality=88)
        return "data:image/jpeg;base64," + base64.b64encode(written.getvalue()).decode(), True
    pil_image.save(written, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(written.getvalue()).decode(), is_shrunk


def encode_mask(mask: np.ndarray[Any, Any]) -> str:
    """A data URI of the mask in mask_colors; 0 is transparent. It is shrunk as its image."""
    from PIL import Image

    pil_image = Image.fromarray(mask)
    if mask.size > MAX_PIXELS:
        pil_image.thumbnail((256, 256), Image.NEAREST)
    pil_image.putpalette(bytes.fromhex("".join(mask_colors()).replace("#", "")))
    written = io.BytesIO()
    pil_image.save(written, "PNG", optimize=True, transparency=0)
    return "data:image/png;base64," + base64.b64encode(written.getvalue()).decode()


def label_text(row: Any, classes: Sequence[str]) -> str:
    """Names of the label columns that are 1, where all are 0 or 1; else the first numbers."""
    if classes:
        return ", ".join(shown(name) for name, value in zip(classes, row) if value)
    return ", ".join(f"{value:g}" for value in row[:4]) + (", …" if len(row) > 4 else "")


def figures_in(name: str, dataset: ImageDataset, info: Any, samples: Sequence[int], prefix: str) -> List[Figure]:
    """Figures of these samples, with their numbers and files; `prefix` tells figures of the same sample apart."""
    samples = [int(sample) for sample in samples]
    if not samples:
        return []
    images, targets = dataset[samples]
    figures = []
    for sample, image, target, key in zip(samples, images, targets, dataset.keys(samples)):
        pixels = upright(image, info)
        source, is_shrunk = encode(pixels)
        height, width = pixels.shape[:2]
        detail = f"{name}, {width} x {height}" + (", shrunk for this page" if is_shrunk else ", as stored")
        mask = encode_mask(target) if info.get("masks") else ""
        if mask:
            detail += "; mask " + ", ".join(map(str, np.unique(target)))
        elif np.ndim(target):
            detail += "; " + label_text(target, dataset.classes)
        figures.append(Figure(f"{prefix}-{sample}", source, width, height, f"#{sample}", shown(key), detail, mask))
    return figures


def figures_of(scan: ImageScan, samples: Sequence[int], prefix: str) -> List[Figure]:
    return figures_in(scan.name, scan.dataset, scan.info, samples, prefix)


def images_a_class(scans: Sequence[ImageScan], class_count: int) -> int:
    """Of each pack, so that all of them together fill a row."""
    pixels = float(np.mean([np.minimum(scan.sizes.prod(axis=1), MAX_PIXELS).mean() for scan in scans]))
    fitting = PAGE_PIXELS / (pixels * max(1, class_count) * len(scans))
    return int(np.clip(fitting, 3, max(3, MAX_OF_CLASS // len(scans))))


def plain_block(scan: ImageScan, number: int, seed: int) -> Block:
    """Some images of a pack without classes: one of each stretch, drawn by the seed. Equal steps would show one camera alone
    where several take turns."""
    edges = np.linspace(0, len(scan.looked), min(PLAIN, len(scan.looked)) + 1).astype(int)
    samples = scan.looked[np.random.default_rng(seed).integers(edges[:-1], edges[1:])]
    return Block(scan.name, f"{len(samples)} of {counted(scan.total, 'image')}",
                 figures=figures_of(scan, samples.tolist(), f"sheet{number}"))


def sheet_blocks(scans: Sequence[ImageScan], seed: int) -> List[Block]:
    """A block of each class with images of all packs; of a pack without classes one of some images."""
    classed = [(number, scan) for number, scan in enumerate(scans) if scan.has_classes]
    filled = {scan.names[entry["id"]]: None for _, scan in classed for entry in scan.info["classes"] if entry["samples"]}
    names = [list(filled)[at] for at in np.linspace(0, len(filled) - 1, min(MAX_CLASSES, len(filled))).astype(int)]
    count = images_a_class(scans, len(names))
    found: Dict[str, List[Tuple[str, List[Figure]]]] = {name: [] for name in names}
    for number, scan in classed:
        ids = [entry["id"] for entry in scan.info["classes"] if entry["samples"] and scan.names[entry["id"]] in found]
        for class_id, samples in chosen_of_classes(scan, ids, count, seed):
            own = int(np.count_nonzero(scan.labels == class_id))
            figures = figures_of(scan, samples.tolist(), f"sheet{number}")
            if len(scans) > 1:
                figures = [figure._replace(caption=f"{scan.name} {figure.caption}") for figure in figures]
            found[scan.names[class_id]].append((f"{len(samples)} of {counted(own, 'image')} of {scan.name}", figures))
    return [Block(name, ", ".join(note for note, _ in parts), figures=[figure for _, figures in parts for figure in figures])
            for name, parts in found.items()] + \
        [plain_block(scan, number, seed) for number, scan in enumerate(scans) if not scan.has_classes]


def tile(figure: Figure) -> str:
    """A data URI of the figure's image, for the top of the page: at most 96 pixels wide and high."""
    from PIL import Image

    pil_image = Image.open(io.BytesIO(base64.b64decode(figure.source.split(",", 1)[1]))).convert("RGB")
    pil_image.thumbnail((96, 96), Image.LANCZOS)
    written = io.BytesIO()
    pil_image.save(written, "JPEG", quality=82)
    return "data:image/jpeg;base64," + base64.b64encode(written.getvalue()).decode()


def sheet_note(scans: Sequence[ImageScan], class_count: int) -> str:
    note = "Drawn by the seed. A click enlarges an image, a click beside it closes it."
    if any(scan.info.get("masks") for scan in scans):
        note += " Masks lie over their images, except where they are 0; the pointer over an image hides its mask."
    if class_count > MAX_CLASSES:
        note += f" {MAX_CLASSES} of {class_count:,} classes are shown, evenly spread over their ids."
    return note

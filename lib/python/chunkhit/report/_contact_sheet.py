"""Contact sheets: images of a pack as they are stored, as PNG within the page."""
from __future__ import annotations

import base64
import io
from typing import Dict, List, Sequence, Tuple

import numpy as np

from .._error import counted
from .._figures import MAX_PIXELS, MAX_SIDE, Figure, data_uri, fields_below, figures_in
from ._image_scan import ImageScan, chosen_of_classes
from ._page import Block

MAX_CLASSES = 30  # of the largest and the smallest, half each, that charts and the sheet show
MAX_OF_CLASS = 12
PLAIN = 36  # of a pack without classes
PAGE_PIXELS = 1_500_000  # of all images of a sheet
MIN_SIDE = 112  # to which images are shrunk so that more fit


def figures_of(scan: ImageScan, samples: Sequence[int], prefix: str, side: int = MAX_SIDE) -> List[Figure]:
    return figures_in(scan.name, scan.dataset, scan.info, samples, prefix, side)


def side_of(scans: Sequence[ImageScan], count: int) -> int:
    """To which so many images are shrunk."""
    fields = max(1 + len(fields_below(scan.info)) for scan in scans)
    return int(np.clip((PAGE_PIXELS / max(1, count * fields)) ** 0.5, MIN_SIDE, MAX_SIDE))


def images_a_class(scans: Sequence[ImageScan], class_count: int) -> int:
    """Of each pack, so that all of them together fill a row."""
    pixels = float(np.mean([np.minimum(scan.sizes.prod(axis=1), MAX_PIXELS).mean() * (1 + len(fields_below(scan.info)))
                            for scan in scans]))
    fitting = PAGE_PIXELS / (pixels * max(1, class_count) * len(scans))
    least = 3 if len(scans) < 3 else 1
    return int(np.clip(fitting, least, max(least, MAX_OF_CLASS // len(scans))))


def plain_block(scan: ImageScan, number: int, seed: int) -> Block:
    """Some images of a pack without classes: one of each stretch, drawn by the seed. Equal steps would show one camera alone
    where several take turns."""
    edges = np.linspace(0, len(scan.looked), min(PLAIN, len(scan.looked)) + 1).astype(int)
    samples = scan.looked[np.random.default_rng(seed).integers(edges[:-1], edges[1:])]
    return Block(scan.name, f"{len(samples)} of {counted(scan.total, 'image')}",
                 figures=figures_of(scan, samples.tolist(), f"sheet{number}", side_of([scan], len(samples))))


def shown_classes(scans: Sequence[ImageScan]) -> List[str]:
    """Names of the classes of all packs by how many images they have; of many the first and the last that have any."""
    totals: Dict[str, int] = {}
    for scan in scans:
        for name, count in scan.class_counts.items():
            totals[name] = totals.get(name, 0) + count
    ordered = sorted(totals, key=lambda name: -totals[name])
    if len(ordered) <= MAX_CLASSES:
        return ordered
    filled = [name for name in ordered if totals[name]]
    return filled if len(filled) <= MAX_CLASSES else filled[:MAX_CLASSES // 2] + filled[-(MAX_CLASSES // 2):]


def sheet_blocks(scans: Sequence[ImageScan], seed: int) -> List[Block]:
    """A block of each class with images of all packs; of a pack without classes one of some images."""
    classed = [(number, scan) for number, scan in enumerate(scans) if scan.has_classes]
    filled = {name for _, scan in classed for name, count in scan.class_counts.items() if count}
    names = [name for name in shown_classes([scan for _, scan in classed]) if name in filled]
    count = images_a_class(scans, len(names))
    side = side_of(scans, count * len(names) * len(scans))
    found: Dict[str, List[Tuple[str, List[Figure]]]] = {name: [] for name in names}
    for number, scan in classed:
        ids = [entry["id"] for entry in scan.info["classes"] if entry["samples"] and scan.names[entry["id"]] in found]
        for class_id, samples in chosen_of_classes(scan, ids, count, seed):
            own = int(np.count_nonzero(scan.labels == class_id))
            figures = figures_of(scan, samples.tolist(), f"sheet{number}", side)
            if len(scans) > 1:
                figures = [figure._replace(caption=f"{scan.name} {figure.caption}") for figure in figures]
            found[scan.names[class_id]].append((f"{len(samples)} of {counted(own, 'image')} of {scan.name}", figures))
    return [Block(name, ", ".join(note for note, _ in parts), figures=[figure for _, figures in parts for figure in figures],
                  anchor=f"show{number}") for number, (name, parts) in enumerate(found.items())] + \
        [plain_block(scan, number, seed) for number, scan in enumerate(scans) if not scan.has_classes]


def tile(figure: Figure) -> str:
    """A data URI of the figure's image, for the top of the page: at most 96 pixels wide and high."""
    from PIL import Image  # type: ignore

    pil_image = Image.open(io.BytesIO(base64.b64decode(figure.source.split(",", 1)[1]))).convert("RGB")
    pil_image.thumbnail((96, 96), Image.LANCZOS)
    written = io.BytesIO()
    pil_image.save(written, "JPEG", quality=82)
    return data_uri("jpeg", written)


def sheet_note(scans: Sequence[ImageScan], class_count: int) -> str:
    note = "Drawn by the seed. A click enlarges an image, a click beside it closes it."
    if any(scan.masks for scan in scans):
        note += " Masks lie over their images, except where they are 0; the pointer over an image hides its mask."
    below = {name: None for scan in scans for name in fields_below(scan.info)}
    if below:
        note += f" Below an image: {', '.join(below)}."
    if class_count > MAX_CLASSES:
        note += f" Of {class_count:,} classes with images the {MAX_CLASSES // 2} largest and the {MAX_CLASSES // 2} smallest are shown."
    return note

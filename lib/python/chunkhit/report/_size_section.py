"""Sizes and aspect ratios of images, before and after the transform."""
from __future__ import annotations

import math
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from .._error import flag_text
from .._pages import shown
from . import _charts as charts
from ._charts import Mark, Panel, Series
from ._image_scan import Array, ImageScan
from ._input_files import changes, worst_rows
from ._page import LOST, Block, Finding, Section, looked_at, share_text

MAX_SQUEEZE = 1.5  # as C++'s kMaxSqueeze, which the manifest counts by
MAX_CROP_LOSS = 0.5  # as C++'s kMaxCropLoss
RATIO_UNIT = 1 << 20  # of ranges of aspect ratios, which are as those of whole numbers so many times as large


class Sizes(NamedTuple):
    """Distributions of a pack's images."""

    name: str
    width: Array  # over the edges
    height: Array
    ratio: Array


def size_section(scans: Sequence[ImageScan]) -> Section:
    """Sizes of the inputs, as far as they are recorded, and as stored, where images keep their own."""
    section = Section("sizes", "Sizes and aspect ratios")
    recorded = [scan for scan in scans if (scan.info.get("inputs") or {}).get("formats")]
    own = [scan for scan in scans if scan.info.get("own_sizes")]
    edges = common_edges(scans)
    if recorded:
        section.blocks.append(input_block(recorded, edges))
        section.checks += [f"images that were squeezed by more than {MAX_SQUEEZE:g} to 1, lost more than {MAX_CROP_LOSS:.0%} to the crop, "
                           "alpha or further frames, or have 16 bits of a low range"]
    for number, scan in enumerate(recorded):
        add_notices(section, scan, number)
    if own:
        section.blocks.append(stored_block(own, edges))
    missing = [scan.name for scan in scans if not scan.info.get("inputs")]
    if missing:
        section.blocks.append(Block("", f"Sizes of the input images are not recorded in {', '.join(missing)}: packs of earlier builds, "
                                        "parts by themselves and external files do not have them."))
    return section


def add_notices(section: Section, scan: ImageScan, number: int) -> None:
    """What the pack says of its inputs; the most squeezed and the most cropped images, where the input files are still there."""
    inputs, notices = scan.info["inputs"], [f"{scan.name}: {flag_text(notice)}" for notice in scan.info["input_notices"]]
    kinds = [(key, limit) for count, key, limit in (("squeezed", "squeeze", MAX_SQUEEZE), ("cropped", "crop_loss", MAX_CROP_LOSS))
             if inputs.get(count)]  # of which the first notices are
    change = changes(scan) if kinds else None
    for notice, (key, limit) in zip(notices, kinds):
        section.findings.append(Finding(LOST, notice, worst_rows(scan, number, change, key, limit) if change else []))
    section.warnings += notices[len(kinds):]
    if kinds and change is None:
        section.unchecked.append(f"which images of {scan.name} were squeezed or cropped most, as the input files are not there")
    elif change is not None and len(change.samples) < scan.total:
        section.unchecked.append(f"how much {scan.total - len(change.samples):,} of {scan.total:,} images of {scan.name} were squeezed or cropped")


def range_end(begin: float) -> float:
    """Where the next range begins: an eighth of a power of two later."""
    return begin + (2.0 ** (math.floor(math.log2(begin)) - 3) if begin >= 8 else 1)


def edges_of(numbers: Array, unit: int = 1) -> Array:
    """All edges of ranges, from the one that holds the first of these ascending numbers to the end of the last one's."""
    begin = float(numbers[0]) * unit
    edge = float(2 ** max(0, math.floor(math.log2(max(begin, 1)))))
    edges = []
    while edge <= numbers[-1] * unit:
        edges.append(edge)
        edge = range_end(edge)
    edges.append(edge)
    first = max(0, int(np.searchsorted(edges, begin, side="right")) - 1)
    return np.array(edges[first:]) / unit


class Distribution:
    """A number of the inputs of all formats together."""

    def __init__(self, inputs: Dict[str, Any], key: str) -> None:
        counts: Dict[float, int] = {}
        for entry in inputs["formats"]:
            for begin, images in entry[key]["ranges"].items():
                counts[float(begin)] = counts.get(float(begin), 0) + images
        self.begins = np.array(sorted(counts))
        self.images = np.array([counts[begin] for begin in self.begins.tolist()])
        self.least = min(entry[key]["min"] for entry in inputs["formats"])
        self.most = max(entry[key]["max"] for entry in inputs["formats"])

    @property
    def text(self) -> str:
        """From the smallest to the largest, for a table."""
        digits = ".2f" if self.most != int(self.most) or self.least != int(self.least) else ",.0f"
        return range_text(self.least, self.most, self.half, digits, "about ")

    def over(self, edges: Array) -> Array:
        """Images between the edges."""
        return np.histogram(self.begins, edges, weights=self.images)[0]

    @property
    def half(self) -> float:
        """About the median: the begin of its range."""
        at = int(np.searchsorted(np.cumsum(self.images), self.images.sum() / 2))
        return max(float(self.begins[at]), float(self.least))


def range_text(least: float, most: float, half: float, digits: str, about: str = "") -> str:
    return f"{least:{digits}}" if least == most else f"{least:{digits}} to {most:{digits}}, median {about}{half:{digits}}"


def common_edges(scans: Sequence[ImageScan]) -> Tuple[Array, Array]:
    """Edges of sides and of aspect ratios, the same of all packs, before and after."""
    sides = [np.unique(scan.sizes).astype(float) for scan in scans]
    ratios = [np.unique(scan.sizes[:, 1] / scan.sizes[:, 0]) for scan in scans]
    for scan in scans:
        for entry in (scan.info.get("inputs") or {}).get("formats", []):
            sides += [np.array([*map(float, entry[key]["ranges"])]) for key in ("width", "height")]
            ratios.append(np.array([*map(float, entry["aspect_ratio"]["ranges"])]))
    return edges_of(np.unique(np.concatenate(sides))), edges_of(np.unique(np.concatenate(ratios)), RATIO_UNIT)


def input_block(scans: Sequence[ImageScan], edges: Tuple[Array, Array]) -> Block:
    """The inputs' sizes, with marks at the one that all images of all packs are stored in."""
    found, rows, spans = [], [], set()
    for scan in scans:
        width, height, ratio = (Distribution(scan.info["inputs"], key) for key in ("width", "height", "aspect_ratio"))
        found.append(Sizes(scan.name, width.over(edges[0]), height.over(edges[0]), ratio.over(edges[1])))
        spans.add(((width.least, width.most), (height.least, height.most)))
        size = scan.info["sample"]
        stored = "own sizes" if scan.info.get("own_sizes") else f"{size['width']} x {size['height']}"
        rows += [format_row(scan.name, entry, stored + transform_text(scan)) for entry in scan.info["inputs"]["formats"]]
    shapes = {None if scan.info.get("own_sizes") else (scan.info["sample"]["width"], scan.info["sample"]["height"]) for scan in scans}
    stored_shape = next(iter(shapes)) if len(shapes) == 1 else None
    are_alike = len(spans) == 1 and all(least == most for least, most in next(iter(spans)))
    return Block("Input files", advice(scans), [] if are_alike else size_charts("inputs", found, edges, stored_shape),
                 header=("pack", "format", "images", "width", "height", "aspect ratio", "stored as"), rows=rows)


def advice(scans: Sequence[ImageScan]) -> str:
    """What would have kept more of the images."""
    recorded = [scan.info["inputs"] for scan in scans]
    found = [text for key, text in (
        ("squeezed", "A short side (--resize 256) with --crop, or --fit, keeps the aspect ratio."),
        ("cropped", "--fit instead of --crop keeps whole images."),
        ("padded", "A smaller --crop, or --resize before it, leaves no black borders."),
        ("alpha_dropped", "--background white shows white behind transparent pixels, --channels rgba keeps alpha."))
        if any(inputs.get(key) for inputs in recorded)]
    return " ".join(["Of all packed images.", *found])


def size_charts(name: str, found: Sequence[Sizes], edges: Tuple[Array, Array], stored: Any = None) -> List[str]:
    """Panels of width, height and aspect ratio; `stored` is (width, height)."""
    marks = [(stored[0], f"{stored[0]}"), (stored[1], f"{stored[1]}"), (stored[0] / stored[1], f"{stored[0] / stored[1]:.2f}")] \
        if stored else []
    panels = []
    for at, (key, label) in enumerate((("width", "pixels"), ("height", "pixels"), ("ratio", "width / height"))):
        series = [Series(sizes.name, getattr(sizes, key), charts.pack_color(index)) for index, sizes in enumerate(found)]
        mark = [Mark(marks[at][0], f"stored: {marks[at][1]}")] if marks else []
        title = "aspect ratio" if key == "ratio" else key
        panels.append(charts.pack_histogram(f"{name}{at}", Panel(edges[at // 2], series, label, mark, True, title)))
    return panels


def format_row(name: str, entry: Dict[str, Any], stored: str) -> Sequence[str]:
    spread = [Distribution({"formats": [entry]}, key).text for key in ("width", "height", "aspect_ratio")]
    return (name, shown(entry["format"]), f"{entry['images']:,}", *spread, stored)


def transform_text(scan: ImageScan) -> str:
    spec = scan.info.get("spec", {})
    how = [f"{key} {spec[key]}" for key in ("resize", "fit", "crop", "max-side", "short-side")
           if spec.get(key, "none") not in ("none", "0")]
    return f", by {', '.join(how)}" if how else ", unchanged"


def stored_block(scans: Sequence[ImageScan], edges: Tuple[Array, Array]) -> Block:
    found, rows = [], []
    for scan in scans:
        heights, widths = scan.sizes.T
        ratios = widths / heights
        found.append(Sizes(scan.name, np.histogram(widths, edges[0])[0], np.histogram(heights, edges[0])[0],
                           np.histogram(ratios, edges[1])[0]))
        sides = [range_text(side.min(), side.max(), float(np.median(side)), ",.0f") for side in (widths, heights)]
        rows.append((scan.name, looked_at(len(scan.looked), scan.total, "image"), *sides,
                     range_text(ratios.min(), ratios.max(), float(np.median(ratios)), ".2f"), share_text(float(np.mean(ratios > 1.0)))))
    return Block("As stored", "", size_charts("sizes", found, edges),
                 header=("pack", "images", "width", "height", "aspect ratio", "wider than high"), rows=rows)

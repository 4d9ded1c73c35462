"""Sizes and aspect ratios of images, before and after the transform."""
from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import _charts as charts
from ._charts import Mark, Panel, Series
from ._image_scan import Array, ImageScan
from ._page import Block, Section, counted, looked_at, share_text, shown

MAX_SQUEEZE = 1.5  # as C++'s kMaxSqueeze, which the manifest counts by
MAX_CROP_LOSS = 0.5  # as C++'s kMaxCropLoss
RATIO_UNIT = 1 << 20  # of ranges of aspect ratios, which are as those of whole numbers so many times as large


def size_section(scans: Sequence[ImageScan]) -> Section:
    section = Section("sizes", "Sizes and aspect ratios")
    for index, scan in enumerate(scans):
        inputs = scan.info.get("inputs")
        edges = common_edges(scan, inputs)
        if inputs and inputs["formats"]:
            section.blocks.append(input_block(scan, inputs, edges, index))
            section.warnings += squeeze_warnings(scan, inputs) + crop_warnings(scan, inputs) + alpha_warnings(scan, inputs)
        if scan.info.get("own_sizes"):
            section.blocks.append(stored_block(scan, edges, index))
        elif not inputs:
            size = scan.info["sample"]
            section.blocks.append(Block(f"{scan.name}: all images are stored as {size['width']} x {size['height']} pixels",
                                        "Sizes of the input images are not recorded: packs of earlier builds, parts by "
                                        "themselves and external files do not have them."))
    return section


def squeeze_warnings(scan: ImageScan, inputs: Dict[str, Any]) -> List[str]:
    squeezed = inputs["squeezed"]
    if not squeezed:
        return []
    return [f"{scan.name}: {squeezed:,} of {counted(scan.total, 'image')} {'was' if squeezed == 1 else 'were'} squeezed or "
            f"stretched by more than {MAX_SQUEEZE:g} to 1, at most by {inputs['max_squeeze']:.2f} to 1"]


def crop_warnings(scan: ImageScan, inputs: Dict[str, Any]) -> List[str]:
    cropped = inputs.get("cropped", 0)
    if not cropped:
        return []
    return [f"{scan.name}: {cropped:,} of {counted(scan.total, 'image')} lost more than {MAX_CROP_LOSS:.0%} of the area to the "
            f"crop, at most {inputs['max_crop_loss']:.1%}"]


def alpha_warnings(scan: ImageScan, inputs: Dict[str, Any]) -> List[str]:
    dropped = inputs.get("alpha_dropped", 0)
    if not dropped:
        return []
    return [f"{scan.name}: {dropped:,} of {counted(scan.total, 'image')} {'has' if dropped == 1 else 'have'} alpha, which was "
            "dropped: transparent pixels got the colors that they hide"]


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

    def over(self, edges: Array) -> Array:
        """Images between the edges."""
        return np.histogram(self.begins, edges, weights=self.images)[0]

    @property
    def half(self) -> float:
        """About the median: the begin of its range."""
        at = int(np.searchsorted(np.cumsum(self.images), self.images.sum() / 2))
        return max(float(self.begins[at]), float(self.least))


def common_edges(scan: ImageScan, inputs: Optional[Dict[str, Any]]) -> Tuple[Array, Array]:
    """Edges of sides and of aspect ratios, the same before and after."""
    sides = [np.unique(scan.sizes).astype(float)]
    ratios = [np.unique(scan.sizes[:, 1] / scan.sizes[:, 0])]
    for entry in inputs["formats"] if inputs else []:
        sides += [np.array([*map(float, entry[key]["ranges"])]) for key in ("width", "height")]
        ratios.append(np.array([*map(float, entry["aspect_ratio"]["ranges"])]))
    return edges_of(np.unique(np.concatenate(sides))), edges_of(np.unique(np.concatenate(ratios)), RATIO_UNIT)


def input_block(scan: ImageScan, inputs: Dict[str, Any], edges: Tuple[Array, Array], index: int) -> Block:
    """The inputs' sizes; where all images are stored in one size with marks at it."""
    width, height, ratio = (Distribution(inputs, key) for key in ("width", "height", "aspect_ratio"))
    size = scan.info["sample"]
    own = bool(scan.info.get("own_sizes"))
    stored = None if own else (size["width"], size["height"])
    pixels, aspects = stored_marks(stored)
    panels = size_panels("inputs: before", edges, [part.over(edges[0]) for part in (width, height)], ratio.over(edges[1]),
                         pixels, aspects)
    what = "each image in its own size" if own else f"{size['width']} x {size['height']}"
    title = (f"{scan.name}: inputs are {width.least:,} to {width.most:,} pixels wide and {height.least:,} to {height.most:,} "
             f"high, stored is {what}")
    are_alike = width.least == width.most and height.least == height.most
    if are_alike:
        title = f"{scan.name}: all inputs are {width.least:,} x {height.least:,} pixels, stored is {what}"
    rows = [format_row(entry) for entry in inputs["formats"]]
    note = f"Of all packed images{transform_text(scan)}. Ranges are an eighth of a power of two wide."
    if inputs["squeezed"]:
        note += " A short side (--resize 256) with --crop, or --fit, keeps the aspect ratio."
    if inputs.get("cropped"):
        note += " --fit instead of --crop keeps whole images."
    if inputs.get("alpha_dropped"):
        note += " --background white shows white behind transparent pixels, --channels rgba keeps alpha."
    return Block(title, note, "" if are_alike else charts.histogram(f"inputs{index}", panels),
                 ("format", "images", "width", "height", "aspect ratio"), rows)


def stored_marks(stored: Optional[Tuple[int, int]]) -> Tuple[List[Mark], List[Mark]]:
    """Marks at the sides that all images are stored with, and at their ratio."""
    if not stored:
        return [], []
    width, height = stored
    sides = [Mark(width, f"stored: {width}")] if width == height else \
        [Mark(width, f"stored width: {width}"), Mark(height, f"stored height: {height}")]
    return sides, [Mark(width / height, f"stored: {width / height:.2f}")]


def size_panels(when: str, edges: Tuple[Array, Array], sides: Sequence[Array], ratios: Array, pixels: Sequence[Mark] = (),
                aspects: Sequence[Mark] = ()) -> List[Panel]:
    both = [Series("width", sides[0]), Series("height", sides[1], charts.SECOND)]
    return [Panel(edges[0], both, f"{when}, pixels", pixels, True),
            Panel(edges[1], [Series("images", ratios)], f"{when}, width / height", aspects, True)]


def format_row(entry: Dict[str, Any]) -> Sequence[str]:
    cells = []
    for key, number in (("width", "{:,.0f}"), ("height", "{:,.0f}"), ("aspect_ratio", "{:.2f}")):
        spread = Distribution({"formats": [entry]}, key)
        ends = [number.format(end) for end in (spread.least, spread.most)]
        cells.append(ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}, median about {number.format(spread.half)}")
    return (shown(entry["format"]), f"{entry['images']:,}", *cells)


def transform_text(scan: ImageScan) -> str:
    spec = scan.info.get("spec", {})
    how = [f"{key} {spec[key]}" for key in ("resize", "fit", "crop", "max-side", "short-side")
           if spec.get(key, "none") not in ("none", "0")]
    return f", before {', '.join(how)}" if how else "; nothing was resized or cropped"


def stored_block(scan: ImageScan, edges: Tuple[Array, Array], index: int) -> Block:
    heights, widths = scan.sizes.T
    ratios = widths / heights
    longest = scan.sizes.max(axis=1)
    landscape = float(np.mean(ratios > 1.0))
    title = (f"{scan.name}: {share_text(landscape)} of the stored images are wider than high; "
             f"half of them have a long side of at most {int(np.median(longest)):,} pixels")
    note = (f"{looked_at(len(scan.looked), scan.total, 'image')}. Width {widths.min():,} to {widths.max():,}, height "
            f"{heights.min():,} to {heights.max():,}, aspect ratio {ratios.min():.2f} to {ratios.max():.2f}.")
    panels = size_panels("stored: after", edges, [np.histogram(side, edges[0])[0] for side in (widths, heights)],
                         np.histogram(ratios, edges[1])[0])
    return Block(title, note, charts.histogram(f"sizes{index}", panels))

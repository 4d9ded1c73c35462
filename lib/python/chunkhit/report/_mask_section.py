"""Values of masks."""
from __future__ import annotations

from typing import List, Sequence

import numpy as np

from .._error import counted
from .._figures import Figure, mask_colors
from . import _charts as charts
from ._charts import Series
from ._contact_sheet import figures_of
from ._image_findings import SIDE
from ._image_scan import ImageScan
from ._page import LOST, Block, Finding, Row, Section, looked_at, share_text

NAMES = {0: "0 (not colored)", 255: "255 (often: ignore)"}
SHOWN_VALUES = 30
SHOWN_RARE = 10
RARE = 3  # masks
ENOUGH = 10 * RARE  # masks that are looked at before a value can be rare


def mask_sections(scans: Sequence[ImageScan]) -> List[Section]:
    """A section of each field of masks."""
    sections = []
    for name in {name: None for scan in scans for name in scan.masks}:
        section = Section("masks", "Masks") if name == "mask" else Section(f"masks-{name}", f"Masks ({name})")
        own = [scan for scan in scans if name in scan.masks]
        section.blocks = [mask_block(own[0], name)] if len(own) == 1 else [masks_block(own, name, scans)]
        section.blocks += rare_blocks(own, name)
        section.findings = [finding for number, scan in enumerate(scans) if name in scan.masks for finding in mask_findings(scan, name, number)]
        sections.append(section)
    if sections:
        sections[0].checks = ["masks of one value alone"]
        few = [scan.name for scan in scans if scan.masks and len(scan.looked) < ENOUGH]
        if len(few) < sum(bool(scan.masks) for scan in scans):
            sections[0].checks.append(f"values in fewer than {RARE} masks")
        if few:
            sections[0].unchecked.append(f"values in fewer than {RARE} masks of {', '.join(few)}, as there are fewer than {ENOUGH}")
    return sections


def mask_block(scan: ImageScan, name: str) -> Block:
    pixels, masks, alone = scan.masks[name]
    values = np.flatnonzero(pixels)
    most = int(pixels.argmax())
    shown = np.sort(values[np.argsort(-pixels[values], kind="stable")][:SHOWN_VALUES])
    left_out = f" The {SHOWN_VALUES} values of most pixels are shown." if len(values) > SHOWN_VALUES else ""
    singles = ", ".join(f"{value} in {alone[value]:,}" for value in np.flatnonzero(alone)[:8])
    note = (f"{looked_at(len(scan.looked), scan.total, 'mask')}; {most} has {share_text(pixels[most] / pixels.sum())} of the pixels. "
            f"{counted(int(alone.sum()), 'mask')} with one value in all pixels{f' ({singles})' if singles else ''}.{left_out} The first bar "
            "is the share of pixels, the second that of the masks that have the value. Colors are those of the contact sheet.")
    colors = [charts.GRID, *mask_colors()[1:]]
    series = [Series(name, 100 * counts[shown] / total, [colors[value] for value in shown])
              for name, counts, total in (("pixels", pixels, pixels.sum()), ("masks", masks, len(scan.looked)))]
    return Block(f"{scan.name}: {counted(len(values), 'value')}", note,
                 bars=[charts.bars([NAMES.get(value, str(value)) for value in shown], series, " %")])


def masks_block(scans: Sequence[ImageScan], name: str, packs: Sequence[ImageScan]) -> Block:
    """Values of several packs in common charts: shares of pixels, then shares of masks."""
    pixels = [scan.masks[name][0] for scan in scans]
    total = np.sum(pixels, axis=0)
    values = np.flatnonzero(total)
    shown = np.sort(values[np.argsort(-total[values], kind="stable")][:SHOWN_VALUES])
    labels = [NAMES.get(value, str(value)) for value in shown]
    shares = [(100 * counts[shown] / max(1, counts.sum()), 100 * masks[shown] / len(scan.looked))
              for scan in scans for counts, masks in [scan.masks[name][:2]]]
    swatches = {label: mask_colors()[value] for label, value in zip(labels, shown) if value != 0}
    both = [charts.bars(labels, [Series(f"{scan.name}, {what}", found[at], charts.pack_color(packs.index(scan)))
                                 for scan, found in zip(scans, shares)], " %", swatches=swatches)
            for at, what in enumerate(("of pixels", "of masks"))]
    left_out = f" The {SHOWN_VALUES} values of most pixels are shown." if len(values) > SHOWN_VALUES else ""
    note = "; ".join(f"{scan.name}: {looked_at(len(scan.looked), scan.total, 'mask').lower()}, {counted(int(scan.masks[name][2].sum()), 'mask')} "
                     "with one value in all pixels" for scan in scans)
    return Block(counted(len(values), "value"), f"{note}.{left_out}", bars=both)


def rare_blocks(scans: Sequence[ImageScan], name: str) -> List[Block]:
    """The values of the fewest masks, each with an image; none where there are few values."""
    masks = np.sum([scan.masks[name][1] for scan in scans], axis=0)
    values = np.flatnonzero(masks)
    rare = sorted(values[np.argsort(masks[values], kind="stable")][:SHOWN_RARE].tolist(), key=lambda value: (masks[value], value))
    if len(values) < 3:
        return []
    figures = []
    for value in rare:
        number, scan = next((at, scan) for at, scan in enumerate(scans) if scan.masks[name][0][value] > 0)
        figures.append(value_figure(scan, name, value, int(masks[value]), f"rare-{name}-{value}-{number}"))
    return [Block("Rarest values", "", figures=figures)]


def value_figure(scan: ImageScan, name: str, value: int, masks: int, prefix: str) -> Figure:
    """The image whose mask has the most pixels of the value."""
    figure = figures_of(scan, [int(scan.best_with[name][value])], prefix, SIDE)[0]
    return figure._replace(caption=f"{value}: in {counted(masks, 'mask')}", label=f"{scan.name} {figure.caption}")


def mask_findings(scan: ImageScan, name: str, number: int) -> List[Finding]:
    masks = scan.masks[name][1]
    values, rare = np.flatnonzero(masks), np.flatnonzero((masks > 0) & (masks < RARE))
    if len(values) == 1:
        return [Finding(LOST, f"{scan.name}: all pixels of all masks are {values[0]}")]
    if len(scan.looked) < ENOUGH or not len(rare):
        return []
    listed = ", ".join(map(str, rare[:8])) + (", …" if len(rare) > 8 else "")
    figures = [value_figure(scan, name, value, int(masks[value]), f"few-{name}-{value}-{number}") for value in rare[:SHOWN_RARE].tolist()]
    return [Finding(LOST, f"{scan.name}: {counted(len(rare), 'value')} of masks in fewer than {RARE} of {len(scan.looked):,}: {listed}",
                    [Row("", figures)])]

"""Keeps a page small: cuts images, those that say least first."""
from __future__ import annotations

from dataclasses import replace
from typing import Iterator, List, NamedTuple, Sequence, Tuple

from .._figures import Figure
from ._page import MAX_BYTES, Block, Finding, Section

MARKUP = 400  # bytes of a figure beside its images and texts


class Level(NamedTuple):
    """How many images are kept at most."""

    block: int  # of a block, as a class of the contact sheet
    rows: int  # of a finding
    row: int  # of a row
    findings: int = 10**9  # that have images, the worst of them


LEVELS = (Level(10**9, 10**9, 10**9), Level(9, 20, 12), Level(7, 20, 12), Level(6, 20, 12), Level(5, 20, 12),
          Level(4, 12, 12), Level(3, 8, 8), Level(2, 6, 6), Level(1, 6, 6, 20), Level(1, 4, 4, 12),
          Level(1, 3, 4, 6), Level(0, 2, 4, 6), Level(0, 1, 3, 6), Level(0, 0, 0, 0))


def figure_bytes(figure: Figure) -> int:
    texts = (figure.source, figure.mask, figure.caption, figure.file * 3, figure.detail, figure.label, *(source for _, source in figure.fields))
    return MARKUP + sum(len(text.encode()) for text in texts)


def cut_block(block: Block, level: Level) -> Block:
    """The block with as many images, evenly spread."""
    count = len(block.figures)
    if count <= level.block:
        return block
    note = f"{block.note}; {level.block} of these are shown" if level.block else block.note
    return block._replace(note=note, figures=[block.figures[(2 * at + 1) * count // (2 * level.block)] for at in range(level.block)])


def cut_finding(finding: Finding, level: Level) -> Finding:
    return finding._replace(rows=[row._replace(figures=row.figures[:level.row]) for row in finding.rows[:level.rows]])


def cut(sections: Sequence[Section], level: Level) -> List[Section]:
    """The sections with as many images."""
    costs = sorted(finding.cost for section in sections for finding in section.findings)
    last = costs[min(level.findings, len(costs)) - 1] if costs and level.findings else -1
    kept = []
    for section in sections:
        findings = [cut_finding(finding, level if finding.cost <= last else LEVELS[-1]) for finding in section.findings]
        changed = replace(section, findings=findings, blocks=[cut_block(block, level) for block in section.blocks])
        anchors = {figure.anchor for figure in figures_of_all([changed])}
        changed.tiles = [tile for tile in section.tiles if tile[1] in anchors]
        kept.append(changed)
    return kept


def figures_of_all(sections: Sequence[Section]) -> Iterator[Figure]:
    for section in sections:
        for block in section.blocks:
            yield from block.figures
        for finding in section.findings:
            for row in finding.rows:
                yield from row.figures


def fitted(sections: Sequence[Section], text_bytes: int) -> Tuple[List[Section], int]:
    """The sections with as many images as fit into MAX_BYTES beside so many bytes of texts and charts, and the number of those that do
    not."""
    total = len(list(figures_of_all(sections)))
    found = list(sections)
    for level in LEVELS:
        found = cut(sections, level)
        if text_bytes + sum(map(figure_bytes, figures_of_all(found))) <= MAX_BYTES:
            break
    return found, total - len(list(figures_of_all(found)))

"""The page: sections of blocks, which the template page.html shows, and numbers as it shows them."""
from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import List, Mapping, NamedTuple, Sequence, Tuple

from .._error import counted
from .._figures import Figure


class Bar(NamedTuple):
    """A number as a bar."""

    width: float  #: percent of the longest
    text: str
    color: str  #: of CSS


class Bars(NamedTuple):
    """Rows of bars: of each label a bar a series."""

    names: Sequence[Tuple[str, str]]  #: of the series, with their colors; none where there is only one
    rows: Sequence[Tuple[str, Sequence[Bar]]]
    links: Mapping[str, str] = {}  #: anchors that labels lead to
    swatches: Mapping[str, str] = {}  #: colors of labels that are colored elsewhere


class Block(NamedTuple):
    """What was found, below a title of at most five words: any of a note, charts, bars, a table and a contact sheet."""

    title: str
    note: str = ""
    charts: Sequence[str] = ()  #: HTML of _charts.py, beside each other where there is room
    bars: Sequence[Bars] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figures: Sequence[Figure] = ()
    anchor: str = ""  #: by which it is shown alone


class Row(NamedTuple):
    """Images side by side, with what they have in common."""

    note: str
    figures: Sequence[Figure]


class Finding(NamedTuple):
    """What is wrong, with the images that show it. The top of the page has all, those of the least cost first."""

    cost: int
    text: str
    rows: Sequence[Row] = ()


MAX_BYTES = 1_450_000  # of a page, which images fill

# What findings cost, the worst first: figures of merit that are wrong, wrong lessons, lost data, odd images, what a split brings.
LEAK, MISLABELED, LOST, UNEVEN, ODD, BY_DESIGN = range(6)


@dataclass
class Section:
    """A part of the page. Its key figures, tiles, findings and checks stand at the top."""

    anchor: str
    title: str
    blocks: List[Block] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)  #: findings of LOST that have no images
    findings: List[Finding] = field(default_factory=list)
    checks: List[str] = field(default_factory=list)  #: what would have been a finding
    unchecked: List[str] = field(default_factory=list)  #: what was not looked for, or not everywhere, and why
    keys: List[Tuple[str, str]] = field(default_factory=list)  #: numbers, and what they count
    filters: List[Tuple[str, int]] = field(default_factory=list)  #: names of packs, and their numbers in anchors of figures
    tiles: List[Tuple[str, str, str]] = field(default_factory=list)  #: small images as data URIs, anchors of figures, and names


def all_findings(sections: Sequence[Section]) -> List[Tuple[Section, Finding]]:
    """Those of all sections, the worst first."""
    found = [(section, finding) for section in sections
             for finding in [*section.findings, *(Finding(LOST, warning) for warning in section.warnings)]]
    return sorted(found, key=lambda pair: pair[1].cost)


def short_name(file: str, most: int = 30) -> str:
    """The last part of a path, without its middle where it is long."""
    name = file.rsplit("/", 1)[-1] or file
    if len(name) <= most:
        return name
    end = most // 2 + 1
    return f"{name[:most - 1 - end]}…{name[-end:]}"


def bytes_text(count: float) -> str:
    """Bytes in powers of 1000, as the commands print them."""
    if count < 999.5:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 999.95:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:,.1f} TB"


def share_text(share: float) -> str:
    """A share as percent, with a decimal where it is small."""
    percent = 100 * share
    digits = ".0f" if percent >= 10 or percent == 0 else ".1f" if percent >= 0.1 else ".2g"
    return f"{percent:{digits}} %"


def looked_at(looked: int, total: int, thing: str) -> str:
    """'All 12 images', or '10 of 12 images'."""
    return f"All {counted(total, thing)}" if looked == total else f"{looked:,} of {counted(total, thing)}"


def file_name(file: str) -> str:
    """HTML of a file's short name, which may break behind its signs."""
    from markupsafe import Markup

    return Markup("<wbr>").join(re.split(r"(?<=[^\w…]|_)", short_name(file)))


def page_text(title: str, subtitle: str, sections: Sequence[Section], version: str) -> str:
    import jinja2

    from ._page_size import LEVELS, cut, fitted

    loader = jinja2.FileSystemLoader(os.path.dirname(os.path.abspath(__file__)))
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                     undefined=jinja2.StrictUndefined)
    environment.filters["file_name"] = file_name
    template = environment.get_template("page.html")

    def text_of(some: Sequence[Section], left_out: int) -> str:
        return str(template.render(title=title, subtitle=subtitle, sections=some, findings=all_findings(some), version=version,
                                   left_out=counted(left_out, "image") if left_out else ""))

    bare = text_of(cut(sections, LEVELS[-1]), 0)
    tiles = sum(len(source) + 300 for section in sections for source, _, _ in section.tiles)
    return text_of(*fitted(sections, len(bare.encode()) + tiles))

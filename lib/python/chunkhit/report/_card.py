"""A card of a report, for a link or a message: title, images, and the three worst findings, as PNG of 1200 x 630 pixels."""
from __future__ import annotations

import base64
import io
import os
from typing import Any, List, Sequence, Tuple

from .._error import Error
from .._pages import shown
from ._page import LEAK, MISLABELED, Finding, Section

WIDTH, HEIGHT, EDGE = 1200, 630, 48
TILE, ROWS = 92, 2
SHOWN = 3
BACKGROUND, TEXT, MUTED, WORST, OTHER = "#0f1419", "#e6e9ec", "#9aa4ae", "#ff7b72", "#d9a514"


def card_path(path: str) -> str:
    """The path; raises Error "usage" for one that does not end in .png."""
    if os.path.splitext(path)[1].lower() != ".png" or "://" in path:
        raise Error(f"`card`: expected a local name that ends in .png, found {shown(path)}", "usage")
    return path


def font(size: int, is_bold: bool = False) -> Any:
    from matplotlib import font_manager  # type: ignore
    from PIL import ImageFont  # type: ignore

    return ImageFont.truetype(font_manager.findfont(font_manager.FontProperties("DejaVu Sans", weight="bold" if is_bold else "normal")), size)


def wrapped(text: str, face: Any, width: int, lines: int) -> List[str]:
    """The text in at most so many lines of this width; an ellipsis ends what does not fit."""
    found: List[str] = []
    words = text.split()
    while words and len(found) < lines:
        count = 1
        while count < len(words) and face.getlength(" ".join(words[:count + 1])) <= width:
            count += 1
        found.append(" ".join(words[:count]))
        words = words[count:]
    if not found:
        return []
    is_cut = bool(words)
    while found[-1] and face.getlength(found[-1] + ("…" if is_cut else "")) > width:
        found[-1], is_cut = found[-1][:-1], True
    return [*found[:-1], found[-1] + ("…" if is_cut else "")]


def draw_card(title: str, sections: Sequence[Section], findings: Sequence[Tuple[Section, Finding]]) -> bytes:
    """PNG of the card."""
    from PIL import Image, ImageDraw

    card = Image.new("RGB", (WIDTH, HEIGHT), BACKGROUND)
    draw = ImageDraw.Draw(card)
    inside = WIDTH - 2 * EDGE
    draw.text((EDGE, 34), wrapped(title, font(40, True), inside, 1)[0], TEXT, font(40, True))
    keys = " · ".join(f"{number} {what}" for section in sections for number, what in section.keys)
    draw.text((EDGE, 92), wrapped(keys, font(22), inside, 1)[0] if keys else "", MUTED, font(22))
    top = 144 + draw_tiles(card, [source for section in sections for source, _, _ in section.tiles], 140)
    count = len(findings)
    heading = "Nothing odd was found in what was checked." if not count else f"{count} finding{'s' * (count > 1)}, the worst:"
    draw.text((EDGE, top), heading, MUTED, font(22))
    top += 40
    for section, finding in findings[:SHOWN]:
        lines = wrapped(f"{section.title}: {finding.text}", font(24), inside - 24, 2)
        draw.rectangle((EDGE, top + 2, EDGE + 5, top + 32 * len(lines) - 2), WORST if finding.cost in (LEAK, MISLABELED) else OTHER)
        for line in lines:
            draw.text((EDGE + 22, top), line, TEXT, font(24))
            top += 32
        top += 14
    written = io.BytesIO()
    card.save(written, "PNG", optimize=True)
    return written.getvalue()


def draw_tiles(card: Any, sources: Sequence[str], top: int) -> int:
    """Draws images that are data URIs in rows; returns their height."""
    from PIL import Image, ImageOps

    across = (WIDTH - 2 * EDGE) // TILE
    some = list(sources[:across * ROWS])
    for number, source in enumerate(some):
        tile = Image.open(io.BytesIO(base64.b64decode(source.split(",", 1)[1]))).convert("RGB")
        card.paste(ImageOps.fit(tile, (TILE - 4, TILE - 4)), (EDGE + number % across * TILE, top + number // across * TILE))
    return -(-len(some) // across) * TILE + 8

"""The page: sections of blocks, which the template page.html shows, and texts as it shows them."""
from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from dataclasses import dataclass, field
from typing import Any, List, NamedTuple, Sequence, Tuple

from .._error import Error, counted
from .._paths import Path, native_path


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


class Bar(NamedTuple):
    """A number as a bar."""

    width: float  #: percent of the longest
    text: str
    color: str  #: of CSS


class Bars(NamedTuple):
    """Rows of bars: of each label a bar a series."""

    names: Sequence[Tuple[str, str]]  #: of the series, with their colors; none where there is only one
    rows: Sequence[Tuple[str, Sequence[Bar]]]


class Block(NamedTuple):
    """What was found, below a title of at most five words: any of a note, charts, bars, a table and a contact sheet."""

    title: str
    note: str = ""
    charts: Sequence[str] = ()  #: SVG, beside each other where there is room
    bars: Sequence[Bars] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    figures: Sequence[Figure] = ()


@dataclass
class Section:
    """A part of the page. Its key figures, tiles, warnings and checks stand at the top."""

    anchor: str
    title: str
    blocks: List[Block] = field(default_factory=list)
    warnings: List[str] = field(default_factory=list)
    checks: List[str] = field(default_factory=list)  #: what would have been a warning
    keys: List[Tuple[str, str]] = field(default_factory=list)  #: numbers, and what they count
    tiles: List[Tuple[str, str]] = field(default_factory=list)  #: small images as data URIs, and anchors of figures


def shown(text: str) -> str:
    """The text with \\xNN for bytes that are not UTF-8 and control characters, \\uNNNN for what would change its order."""

    def escaped(match: "re.Match[str]") -> str:
        if is_visible(match.group()):
            return match.group()
        code = ord(match.group())
        if 0xDC80 <= code <= 0xDCFF:  # as os.fsdecode spells a byte
            code -= 0xDC00
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return re.sub(r"[^ -~]", escaped, text)


def is_visible(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


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

    loader = jinja2.FileSystemLoader(os.path.dirname(os.path.abspath(__file__)))
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                     undefined=jinja2.StrictUndefined)
    environment.filters["file_name"] = file_name
    template = environment.get_template("page.html")
    return template.render(title=title, subtitle=subtitle, sections=sections, version=version)


def page_path(name: str, path: Path) -> str:
    """The path of a page; raises Error "usage" for one whose ending is of another format."""
    target = os.fsdecode(native_path(path, name))
    if "://" in target:
        raise Error(f"`{name}`: {shown(target)} is on a server, expected a file here: any tool uploads it then", "usage")
    is_device = os.path.exists(target) and not os.path.isfile(target)
    if os.path.splitext(target)[1].lower() not in (".html", ".htm") and not is_device:
        raise Error(f"`{name}`: expected a name that ends in .html, found {shown(target)}", "usage")
    return target


def write_page(path: str, text: str) -> None:
    """Writes the file aside, then renames it; raises Error "cannot_write"."""
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        raise Error(f"{shown(path)}: cannot be written: it is there and is no file", "cannot_write")
    aside: Any = None
    try:
        descriptor, aside = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=os.path.dirname(target))
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o666 & ~umask())
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except OSError as error:
        if aside and os.path.exists(aside):
            os.unlink(aside)
        raise Error(f"{shown(path)}: cannot be written: {error.strerror}", "cannot_write") from None


def umask() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1], 8) for line in status if line.startswith("Umask:"))

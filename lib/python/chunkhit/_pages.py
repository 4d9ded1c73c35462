"""Texts as pages show them, and the file of a page."""
from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from typing import Any

from ._error import Error
from ._paths import Path, native_path


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

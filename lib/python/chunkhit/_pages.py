"""Texts as pages show them, and the file of a page."""
from __future__ import annotations

import os
import re
import unicodedata

from ._error import Error
from ._paths import Path, native_path
from ._publish import new_file


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


def write_page(path: str, data: bytes) -> None:
    """Writes a page, or an image of one, as a whole or not at all; raises Error "cannot_write"."""
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        raise Error(f"{shown(path)}: cannot be written: it is there and is no file", "cannot_write")
    with new_file(target, force=True) as file:
        file.write(data)

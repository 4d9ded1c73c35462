"""The tables beside a pack's parts: rejects.csv, warnings.csv and run.json, as schemas/manifest.md describes them."""
from __future__ import annotations

import csv
import json
import os
import re
from typing import Any, Dict, Iterator, List, NamedTuple

from .._error import Error
from ._page import shown

MAX_REASONS = 500  # kinds of reasons that are counted one by one
EXAMPLES = 3


class Reason(NamedTuple):
    """Rejects or warnings of one reason."""

    text: str  # of the first
    rows: int
    files: List[str]  # the first ones


def manifest_of(path: str) -> Dict[str, Any]:
    """The manifest of a local pack; empty for a part, and for a pack on a server."""
    file = path if path.endswith("manifest.json") else os.path.join(path, "manifest.json")
    if not os.path.isfile(file):
        return {}
    with open(file, encoding="utf-8") as opened:
        found: Dict[str, Any] = json.load(opened)
    return found


def folder_of(path: str) -> str:
    return os.path.dirname(path) if path.endswith("manifest.json") else path


def reasons_of(path: str, table: str, column: str) -> List[Reason]:
    """Rows of the table `rejects` or `warnings` of a local pack by their reason, numbers aside; the most frequent first.
    Raises Error "bad_data" where the table that the manifest lists is not there, or is none."""
    listed = manifest_of(path).get(table)
    if not listed:
        return []
    file = os.path.join(folder_of(path), listed["file"])
    try:
        with open(file, newline="", encoding="utf-8", errors="surrogateescape") as opened:
            kinds = count_reasons(csv.reader(opened), column)
    except OSError as error:
        raise Error(f"{shown(file)}: cannot be read: {error.strerror}", "bad_data") from None
    except (ValueError, IndexError, csv.Error) as error:
        raise Error(f"{shown(file)}: expected a table with a column {column}: {error}", "bad_data") from None
    return sorted(kinds.values(), key=lambda reason: -reason.rows)


def count_reasons(rows: Iterator[List[str]], column: str) -> Dict[str, Reason]:
    kinds: Dict[str, Reason] = {}
    header: List[str] = next(rows, [])
    reason_at, file_at = header.index(column), 2 if header[0] == "pack" else 1
    for row in rows:
        kind = re.sub(r"[0-9][0-9.,]*", "#", row[reason_at])
        if kind not in kinds and len(kinds) >= MAX_REASONS:
            kind = "other reasons"
        seen = kinds.setdefault(kind, Reason(row[reason_at] if kind != "other reasons" else kind, 0, []))
        files = seen.files + [row[file_at]] if len(seen.files) < EXAMPLES else seen.files
        kinds[kind] = Reason(seen.text, seen.rows + 1, files)
    return kinds


def run_of(path: str) -> Dict[str, Any]:
    """How the last run went; empty where it is not known."""
    file = os.path.join(folder_of(path), "run.json")
    if not os.path.isfile(file):
        return {}
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            found = json.load(opened)
    except (OSError, ValueError):  # it is not sealed: whatever it says is a help only
        return {}
    return found if isinstance(found, dict) else {}

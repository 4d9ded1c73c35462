"""The tables beside a pack's parts: rejects.csv, warnings.csv and run.json, as schemas/manifest.md describes them; of
packs on servers, too."""
from __future__ import annotations

import csv
import io
import json
import os
import re
from typing import Any, Dict, Iterator, List, NamedTuple

from .. import _chunkhit
from .._error import Error
from .._pages import shown

MAX_REASONS = 500  # kinds of reasons that are counted one by one
EXAMPLES = 3


class Reason(NamedTuple):
    """Rejects or warnings of one reason."""

    text: str  # of the first
    rows: int
    files: List[str]  # the first ones


def folder_of(path: str) -> str:
    return os.path.dirname(path) if path.endswith("manifest.json") else path


def text_of(path: str, name: str) -> str:
    """A file beside the parts of a pack."""
    return _chunkhit.read_pack_file(os.fsencode(folder_of(path)), name).decode(errors="surrogateescape")


def reasons_of(path: str, table: str, column: str) -> List[Reason]:
    """Rows of the table `rejects` or `warnings` of a pack by their reason, numbers aside; the most frequent first.
    Raises Error "bad_data" where the table that the manifest lists is not there, or is none."""
    listed = json.loads(text_of(path, "manifest.json")).get(table)
    if not listed:
        return []
    try:
        kinds = count_reasons(csv.reader(io.StringIO(text_of(path, listed["file"]), newline="")), column)
    except (ValueError, IndexError, csv.Error) as error:
        raise Error(f"{shown(folder_of(path))}/{listed['file']}: expected a table with a column {column}: {error}",
                    "bad_data") from None
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
    try:
        found = json.loads(text_of(path, "run.json"))
    except (Error, ValueError):  # it is not sealed: whatever it says is a help only
        return {}
    return found if isinstance(found, dict) else {}

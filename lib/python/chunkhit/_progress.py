"""The progress of a command, as one line in a terminal or a notebook."""
from __future__ import annotations

import sys
from typing import Any, Dict

RATE_AFTER_SECONDS = 0.2  # of a phase; a rate over less says nothing


def is_shown() -> bool:
    """Returns whether progress is visible: standard error is a terminal, or this is a notebook's kernel."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def progress_text(event: Dict[str, Any], has_rate: bool = True) -> str:
    """One line for an event of --progress json."""
    things = next(name[: -len("_done")] for name in event if name.endswith("_done"))
    done, total = event[f"{things}_done"], event[f"{things}_total"]
    text = f"{event['phase']}: {done:,}" + (f" of {total:,} {things} ({done / total:.0%})" if total else f" {things}")
    rate = event[f"{things}_per_second"]
    if rate and has_rate:
        text += f", {rate:,.0f}/s"
    return text + (f", {event['rejected']:,} rejected" if event["rejected"] else "")


class ProgressLine:
    """Writes each text over the one before; writes nothing where nobody looks."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._width = 0
        self._phase = ""
        self._counting_since = 0.0

    def show(self, event: Dict[str, Any]) -> None:
        if not self._wanted:
            return
        is_counting = any(value for name, value in event.items() if name.endswith(("_done", "_total")))
        if event["phase"] != self._phase or not is_counting:
            self._phase, self._counting_since = event["phase"], event["seconds"]
        self._write(progress_text(event, event["seconds"] - self._counting_since >= RATE_AFTER_SECONDS))

    def end(self) -> None:
        if self._width:
            self._write("")
            print(end="\r", file=sys.stderr, flush=True)

    def _write(self, text: str) -> None:
        print(f"\r{text:{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(text)

"""A record of each epoch: how long it took, and how much of that training waited for data."""
from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable, Optional, Union

from ._chunkhit import LoaderStats
from ._error import ArgumentError, Error, counted
from ._paths import Path
from ._types import EpochRecord

Target = Union[Path, Callable[[EpochRecord], object], Any]
SCALARS = ("seconds", "wait_seconds", "wait_fraction", "transform_seconds", "samples_per_second")


def line_of(record: EpochRecord) -> str:
    whole = "" if record["complete"] else ", stopped"
    return (f"epoch {record['epoch']}{whole}: {counted(record['batches'], 'batch')}, {counted(record['samples'], 'sample')} in "
            f"{record['seconds']:.3f} s ({record['samples_per_second']:,.0f} samples/s); {record['verdict']}")


def append_line(path: Path, record: EpochRecord) -> None:
    """One write, so that lines of several processes stay whole."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(descriptor, (json.dumps(record) + "\n").encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Error(f"{os.fsdecode(path)}: {error.strerror}", "cannot_write") from error


class EpochLog:
    """Writes the records of a loader's epochs."""

    def __init__(self, target: Target) -> None:
        is_path = isinstance(target, (str, os.PathLike))
        # The method of a SummaryWriter is as good as itself.
        is_method = getattr(target, "__name__", "") == "add_scalar"
        self._add_scalar: Any = target if is_method else getattr(target, "add_scalar", None)
        if not (is_path or callable(target) or self._add_scalar):
            raise ArgumentError("log_epochs: expected \"stderr\", the path of a file, a function or a SummaryWriter, "
                            f"found {target!r}")
        self._target = target
        self._epoch: Optional[int] = None  # that runs
        self._before: Optional[LoaderStats] = None

    def begin(self, epoch: int, stats: LoaderStats) -> None:
        self._epoch = epoch
        self._before = stats

    def end(self, stats: LoaderStats, rank: int, complete: bool) -> None:
        """Writes the record of the epoch that runs, if one does and has had a batch."""
        epoch, before, self._epoch = self._epoch, self._before, None
        if epoch is None or before is None:
            return
        found = stats.since(before)
        if found.batches > 0:
            self._write({
                "epoch": epoch, "rank": rank, "complete": complete, "batches": found.batches, "samples": found.samples,
                "seconds": found.seconds, "wait_seconds": found.wait_seconds, "wait_fraction": found.wait_fraction,
                "transform_seconds": found.transform_seconds,
                "samples_per_second": found.samples / found.seconds if found.seconds else 0.0, "verdict": found.verdict()})

    def _write(self, record: EpochRecord) -> None:
        if self._add_scalar:
            for name in SCALARS:
                self._add_scalar(f"chunkhit/{name}", dict(record)[name], record["epoch"])
        elif self._target == "stderr":
            print(line_of(record), file=sys.stderr, flush=True)
        elif isinstance(self._target, (str, os.PathLike)):
            append_line(self._target, record)
        else:
            self._target(record)

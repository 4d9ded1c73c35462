"""What is seen of a pack of ratings: counts of users, items, values and days."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, List

import numpy as np

from .._datasets import SparseDataset
from .._error import Error
from ._image_scan import spread_samples

DEFAULT_RATINGS = 50_000_000  # that are looked at where no number of users is given
GROUP_RATINGS = 4_000_000
BURST_RATINGS = 5_000_000  # whose items and times are kept
BOT_RATINGS = 100  # of a user in a second
CELLS = 48  # of the sparsity map, on each side
DAY = {"seconds": 86_400, "milliseconds": 86_400 * 10 ** 3, "microseconds": 86_400 * 10 ** 6, "nanoseconds": 86_400 * 10 ** 9}


@dataclass(eq=False)
class RatingScan:
    """A pack of ratings with what was seen of it; numbers are of the rows `looked`."""

    name: str
    info: Dict[str, Any]
    dataset: SparseDataset
    looked: np.ndarray[Any, Any]
    user_counts: np.ndarray[Any, Any]  # ratings of each row
    item_counts: np.ndarray[Any, Any]  # ratings of each column
    held_counts: np.ndarray[Any, Any]  # held-out ratings of each row; empty without
    values: Dict[float, int]  # of X
    held_values: Dict[float, int]  # of the held-out ratings; empty without
    cells: np.ndarray[Any, Any]  # (at most CELLS, at most CELLS): ratings in each area of rows and columns
    row_ids: Any
    column_ids: Any
    held_items: np.ndarray[Any, Any]  # held-out ratings of each column; zeros without
    most_at_once: np.ndarray[Any, Any]  # the most ratings of each row within a second; zeros without times
    burst_items: np.ndarray[Any, Any]  # columns and times of ratings of every so many rows
    burst_times: np.ndarray[Any, Any]
    days: Counter[int] = field(default_factory=Counter)  # since 1970, of the ratings; of those held out where there are any

    @property
    def rows(self) -> int:
        return int(self.info["rows"])

    @property
    def columns(self) -> int:
        return int(self.info["columns"])


def nnz_of(info: Dict[str, Any], matrix: str = "X") -> int:
    return next((int(entry["nnz"]) for entry in info["matrices"] if entry["name"] == matrix), 0)


def spread_rows(info: Dict[str, Any], samples: int, seed: int) -> np.ndarray[Any, Any]:
    """All rows, or runs of neighbors, evenly spread, at random positions."""
    rows, ratings = info["rows"], nnz_of(info)
    if samples < 0:
        samples = 0 if ratings <= DEFAULT_RATINGS else max(1, int(rows * DEFAULT_RATINGS / ratings))
    return spread_samples(rows, samples, seed)


def scan_ratings(name: str, path: str, samples: int, seed: int) -> RatingScan:
    """Looks at `samples` users; 0: all, below 0: as many as have about DEFAULT_RATINGS."""
    dataset = SparseDataset(path, format="csr", cache="none")  # each row is read once
    info: Any = dataset.info
    looked = spread_rows(info, samples, seed)
    held_counts = np.zeros(len(looked) if dataset.has_held_out else 0, np.int64)
    cells = np.zeros((min(CELLS, len(looked)), min(CELLS, dataset.column_count)), np.int64)
    scan = RatingScan(name, info, dataset, looked, np.zeros(len(looked), np.int64), np.zeros(dataset.column_count, np.int64),
                      held_counts, {}, {}, cells,
                      ids_or_none(dataset.row_ids), ids_or_none(dataset.column_ids),
                      np.zeros(dataset.column_count, np.int64), np.zeros(len(looked), np.int64), np.empty(0, np.int64),
                      np.empty(0, np.int64))
    group = max(1, int(GROUP_RATINGS / max(1.0, nnz_of(info) / max(1, len(dataset)))))
    step = -(-int(nnz_of(info) * len(looked) / max(1, len(dataset))) // BURST_RATINGS) or 1
    bursts: List[Any] = []
    for begin in range(0, len(looked), group):
        read = dataset[looked[begin:begin + group]]
        parts = read if isinstance(read, tuple) and not hasattr(read, "indptr") else (read,)
        add_rows(scan, begin, parts[0])
        if dataset.has_held_out:
            scan.held_counts[begin:begin + group] = np.diff(parts[1].indptr)
            scan.held_items += np.bincount(parts[1].indices, minlength=scan.columns)
            scan.held_values = with_values(scan.held_values, parts[1].values)
        add_times(scan, parts[dataset.has_held_out].times)
        if scan.info.get("times") in DAY:
            bursts += [add_bursts(scan, begin, part, step) for part in parts if part.times is not None and len(part.times)]
    if bursts:
        scan.burst_items, scan.burst_times = (np.concatenate(found) for found in zip(*bursts))
    return scan


def add_bursts(scan: RatingScan, begin: int, part: Any, step: int) -> Any:
    """Counts the most ratings of each row within a second; returns columns and times of the ratings of every `step`-th row."""
    counts = np.diff(part.indptr)
    rows = begin + np.repeat(np.arange(len(counts)), counts)
    times = np.asarray(part.times).astype(np.int64)
    order = np.lexsort((times, rows))
    seconds = times[order] // (DAY[scan.info["times"]] // 86_400)
    is_new = np.append(True, (np.diff(rows[order]) != 0) | (np.diff(seconds) != 0))
    begins = np.flatnonzero(is_new)
    np.maximum.at(scan.most_at_once, rows[order][begins], np.diff(np.append(begins, len(order))))
    kept = rows % step == 0
    return part.indices[kept].astype(np.int64), times[kept]


def add_times(scan: RatingScan, times: Any) -> None:
    if times is None or not len(times) or scan.info.get("times") not in DAY:
        return
    days, numbers = np.unique(times // DAY[scan.info["times"]], return_counts=True)
    scan.days.update(dict(zip(days.tolist(), numbers.tolist())))


def ids_or_none(read: Any) -> Any:
    """Own ids; None where the source, an external matrix, has none."""
    try:
        return np.asarray(read())
    except Error:
        return None


def add_rows(scan: RatingScan, begin: int, rows: Any) -> None:
    counts = np.diff(rows.indptr)
    scan.user_counts[begin:begin + len(counts)] = counts
    scan.item_counts += np.bincount(rows.indices, minlength=scan.columns)
    scan.values = with_values(scan.values, rows.values)
    high, wide = scan.cells.shape
    row_cells = np.repeat((begin + np.arange(len(counts))) * high // len(scan.looked), counts)
    column_cells = rows.indices.astype(np.int64) * wide // scan.columns
    scan.cells += np.bincount(row_cells * wide + column_cells, minlength=high * wide).reshape(high, wide)


def with_values(counts: Dict[float, int], values: Any) -> Dict[float, int]:
    """Counts of values with those of more ratings."""
    for value, number in zip(*(each.tolist() for each in np.unique(values, return_counts=True))):
        counts[value] = counts.get(value, 0) + number
    if len(counts) <= 100_000:
        return counts
    rounded: Dict[float, int] = {}
    for value, number in counts.items():  # values that hardly repeat: as 4 digits
        key = float(f"{value:.4g}")
        rounded[key] = rounded.get(key, 0) + number
    return rounded

"""What the page says of packs of ratings."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Sequence

import numpy as np

from . import _charts as charts
from .._datasets import SparseDataset
from .._error import Error
from ._charts import Series
from ._page import Block, Section, bytes_text, counted, looked_at, share_text, shown

DEFAULT_RATINGS = 50_000_000  # that are looked at where no number of users is given
GROUP_RATINGS = 4_000_000
CELLS = 48  # of the sparsity map, on each side
MAX_VALUES = 24  # shown one by one


@dataclass(eq=False)
class RatingScan:
    """A pack of ratings with what was seen of it; numbers are of the rows `looked`."""

    name: str
    info: Dict[str, Any]
    looked: np.ndarray[Any, Any]
    user_counts: np.ndarray[Any, Any]  # ratings of each row
    item_counts: np.ndarray[Any, Any]  # ratings of each column
    held_counts: np.ndarray[Any, Any]  # held-out ratings of each row; empty without
    values: Dict[float, int]
    cells: np.ndarray[Any, Any]  # (at most CELLS, at most CELLS): ratings in each area of rows and columns
    row_ids: Any
    column_ids: Any

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
    from ._image_scan import spread_samples

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
    scan = RatingScan(name, info, looked, np.zeros(len(looked), np.int64), np.zeros(dataset.column_count, np.int64),
                      held_counts, {}, cells,
                      ids_or_none(dataset.row_ids), ids_or_none(dataset.column_ids))
    group = max(1, int(GROUP_RATINGS / max(1.0, nnz_of(info) / max(1, len(dataset)))))
    for begin in range(0, len(looked), group):
        read = dataset[looked[begin:begin + group]]
        parts = read if isinstance(read, tuple) and not hasattr(read, "indptr") else (read,)
        add_rows(scan, begin, parts[0])
        if dataset.has_held_out:
            scan.held_counts[begin:begin + group] = np.diff(parts[1].indptr)
    return scan


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
    values, numbers = np.unique(rows.values, return_counts=True)
    for value, number in zip(values.tolist(), numbers.tolist()):
        scan.values[value] = scan.values.get(value, 0) + number
    if len(scan.values) > 100_000:  # values that hardly repeat: as 4 digits
        rounded: Dict[float, int] = {}
        for value, number in scan.values.items():
            key = float(f"{value:.4g}")
            rounded[key] = rounded.get(key, 0) + number
        scan.values = rounded
    high, wide = scan.cells.shape
    row_cells = np.repeat((begin + np.arange(len(counts))) * high // len(scan.looked), counts)
    column_cells = rows.indices.astype(np.int64) * wide // scan.columns
    scan.cells += np.bincount(row_cells * wide + column_cells, minlength=high * wide).reshape(high, wide)


def coverage(scan: RatingScan) -> str:
    return f"{looked_at(len(scan.looked), scan.rows, 'user')}, {counted(int(scan.user_counts.sum()), 'rating')}."


def is_by_users(scan: RatingScan) -> bool:
    """Whether users are held out as a whole: X of their packs is not that of training."""
    return scan.info["spec"].get("split-by") in ("users", "users-by-id")


def own_ratings(scan: RatingScan) -> int:
    """Ratings of the pack's own split: X of validation and test repeats others, but of users that are held out."""
    held = nnz_of(scan.info, "held_out")
    return held if scan.info["split_name"] in ("validation", "test") and not is_by_users(scan) else nnz_of(scan.info) + held


def left_out_warnings(scan: RatingScan) -> List[str]:
    """A warning where the split left out more than a tenth of the pack's ratings."""
    name = scan.info["split_name"]
    if name in ("", "train"):
        return []
    left_out = (scan.info.get("stats") or {}).get("left_out", {})
    lost = sum(count for what, count in left_out.items() if what.startswith(f"{name}: ratings of"))
    kept = own_ratings(scan)
    if 10 * lost <= lost + kept:
        return []
    return [f"{scan.name} lacks {share_text(lost / (lost + kept))} of its ratings, {lost:,} of {lost + kept:,}: their users have "
            "none that are given, or their items none in training"]


def overview(scans: Sequence[RatingScan]) -> Section:
    rows = []
    for scan in scans:
        ratings, held = nnz_of(scan.info), nnz_of(scan.info, "held_out")
        cells = max(1, scan.rows * scan.columns)
        stored = sum(part["bytes"] for part in scan.info["parts"])
        values = scan.info["values"]
        scale = "" if values["scale"] == 1 else f", times {values['scale']:g}"
        stored_as = "1 each" if values["type"] == "none" else values["type"] + scale
        rows.append((scan.name, f"{scan.rows:,}", f"{scan.columns:,}", f"{ratings:,}", f"{held:,}" if held else "–",
                     share_text(ratings / cells), stored_as, f"{bytes_text(stored)}, {scan.info['codec']}"))
    header = ("pack", "users", "items", "ratings (X)", "held out", "rated pairs", "values as", "stored")
    has_train = any(scan.info["split_name"] == "train" for scan in scans)
    total = sum(own_ratings(scan) if has_train else nnz_of(scan.info) + nnz_of(scan.info, "held_out") for scan in scans)
    title = f"{counted(len(scans), 'pack')}, {counted(total, 'rating')}"
    repeats = has_train and any(own_ratings(scan) < nnz_of(scan.info) + nnz_of(scan.info, "held_out") for scan in scans)
    note = "X of validation and test repeats ratings of the packs before: they count once." if repeats else ""
    section = Section("rating-packs", "Packs of ratings", [Block(title, note, header=header, rows=rows)])
    for scan in scans:
        section.warnings += left_out_warnings(scan)
        section.warnings += [f"{scan.name}: damaged: {shown(problem)}" for problem in scan.info.get("problems", [])]
    return section


def value_section(scans: Sequence[RatingScan]) -> Section:
    section = Section("values", "Values")
    few = [scan for scan in scans if 1 < len(scan.values) <= MAX_VALUES]
    if few:
        section.blocks.append(value_bars(few))
    for index, scan in enumerate(scans):
        values = np.array(sorted(scan.values))
        if len(values) == 0:
            section.blocks.append(Block(f"{scan.name}: there are no ratings"))
        elif len(values) == 1:
            section.blocks.append(Block(f"{scan.name}: every rating is {values[0]:g}", coverage(scan)))
        elif scan not in few:
            numbers = np.array([scan.values[value] for value in values.tolist()])
            section.blocks.append(value_histogram(scan, index, values, numbers))
    return section


def value_bars(scans: Sequence[RatingScan]) -> Block:
    """How often each value occurs, in all packs side by side."""
    values = sorted({value for scan in scans for value in scan.values})
    panels = [Series(scan.name, [scan.values.get(value, 0) for value in values], color)
              for scan, color in zip(scans, (charts.ACCENT, charts.SECOND) * len(scans))]
    means = [sum(value * number for value, number in scan.values.items()) / sum(scan.values.values()) for scan in scans]
    most = max(values, key=lambda value: sum(scan.values.get(value, 0) for scan in scans))
    title = (f"{most:g} is the most frequent of {len(values)} values; the mean is "
             + ", ".join(f"{mean:.2f} in {scan.name}" for mean, scan in zip(means, scans)))
    note = " ".join(f"{scan.name}: {coverage(scan).lower()}" for scan in scans)
    return Block(title, note, charts.bars("values", [f"{value:g}" for value in values], panels))


def value_histogram(scan: RatingScan, index: int, values: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any]) -> Block:
    at = np.searchsorted(np.cumsum(numbers), numbers.sum() / 2)
    is_wide = values[0] > 0 and values[-1] / values[0] > 1000
    counts, edges = np.histogram(np.log10(values) if is_wide else values, 40, weights=numbers)
    title = f"{scan.name}: half of the ratings are at most {values[at]:g}, from {values[0]:g} to {values[-1]:g}"
    x_label = "logarithm (base 10) of the value" if is_wide else "value"
    svg = charts.histogram(f"values{index}", [charts.Panel(edges, [Series("ratings", counts)], x_label)])
    return Block(title, coverage(scan), svg)


def activity_section(scans: Sequence[RatingScan]) -> Section:
    section = Section("activity", "Ratings of each user and item")
    for index, scan in enumerate(scans):
        if not scan.user_counts.any():
            continue
        users, items = scan.user_counts, scan.item_counts
        rated = items[items > 0]
        title = (f"{scan.name}: half of the users have at least {charts.plain(float(np.median(users[users > 0])))} ratings, "
                 f"half of the items {charts.plain(float(np.median(rated)))}")
        svg = charts.ranks(f"ranks{index}", [Series("users", users), Series("items", items, charts.SECOND)], "ratings")
        cold = int((items == 0).sum())
        note = coverage(scan) + (f" {counted(cold, 'item')} without a rating in them." if cold else "")
        section.blocks.append(Block(title, note, svg))
        section.blocks.append(share_block(scan, index, users, rated))
        section.blocks.append(map_block(scan, index))
        section.warnings += cold_warnings(scan)
    return section


def share_block(scan: RatingScan, index: int, users: np.ndarray[Any, Any], items: np.ndarray[Any, Any]) -> Block:
    held = np.cumsum(np.sort(items)[::-1]) / items.sum()
    half = (int(np.searchsorted(held, 0.5)) + 1) / len(items)
    svg = charts.shares(f"shares{index}", [Series("users", users[users > 0]), Series("items", items, charts.SECOND)],
                        "most active users, most rated items, %", "share of all ratings, %")
    return Block(f"{scan.name}: half of all ratings are of {share_text(half)} of the items",
                 "The straight line is what equal shares would be.", svg)


def map_block(scan: RatingScan, index: int) -> Block:
    lengths = [np.bincount(np.arange(count) * cells // count, minlength=cells)
               for count, cells in zip((len(scan.looked), scan.columns), scan.cells.shape)]
    density = scan.cells / np.outer(*lengths)
    filled = scan.user_counts.sum() / max(1, len(scan.looked) * scan.columns)
    svg = charts.density_map(f"map{index}", density, "items in the order of the columns, %",
                             "users in the order of the rows, %")
    down, across = density.shape
    note = (f"The map divides the users that were looked at into {down} groups, from top to bottom, and the items into {across}, from "
            "left to right. The stronger the color of an area, the more of its pairs of a user and an item are rated, on a "
            "logarithmic scale; blank areas have none.")
    title = (f"{scan.name}: {share_text(filled)} of all pairs of a user and an item are rated, {share_text(density.max())} in the area "
             "of the map that has most")
    return Block(title, note, svg)


def cold_warnings(scan: RatingScan) -> List[str]:
    if len(scan.looked) < scan.rows or scan.info["split_name"] not in ("", "train"):
        return []  # columns are those of training
    cold = int((scan.item_counts == 0).sum())
    return [f"{scan.name}: {counted(cold, 'item')} of {scan.columns:,} have no rating"] if cold else []


def step_section(scans: Sequence[RatingScan]) -> Section:
    section = Section("steps", "What each rule removed")
    seen = []
    for index, scan in enumerate(scans):
        stats = scan.info.get("stats") or {}
        if stats in seen:
            continue  # the packs of a split have those of the run
        seen.append(stats)
        section.blocks.append(step_block(scan, stats, index))
        if stats.get("bad_lines"):
            reasons = ", ".join(f"{shown(reason)}: {count:,}" for reason, count in stats["reasons"].items())
            section.warnings.append(f"{scan.name}: {counted(stats['bad_lines'], 'line')} gave no rating: {reasons}")
    return section


def step_block(scan: RatingScan, stats: Dict[str, Any], index: int) -> Block:
    steps = stats.get("steps") or []
    if not steps:
        return Block(f"{scan.name}: steps are not recorded", "Merged packs, parts and external files have none.")
    counts = ("ratings", "users", "items")
    rows = [(steps[0]["name"], *(f"{steps[0][count]:,}" for count in counts), "–", "–", "–")]
    for before, step in zip(steps, steps[1:]):
        rows.append((step["name"], *(f"{step[count]:,}" for count in counts),
                     *(f"{before[count] - step[count]:,}" for count in counts)))
    left = steps[-1]["ratings"] / max(1, steps[0]["ratings"])
    out = [f"{shown(reason)}: {count:,}" for reason, count in stats.get("left_out", {}).items()]
    panels = [Series(f"{count} left", [step[count] for step in steps], color)
              for count, color in zip(counts, (charts.ACCENT, charts.ACCENT, charts.SECOND))]
    svg = charts.bars(f"steps{index}", [step["name"] for step in steps], panels)
    title = f"The rules keep all ratings of the input, {steps[0]['ratings']:,}" if left == 1 else \
        f"The rules keep {share_text(left)} of the input's ratings, {steps[-1]['ratings']:,} of {steps[0]['ratings']:,}"
    return Block(title, "Left out by the split: " + "; ".join(out) + "." if out else "", svg,
                 header=("step", *counts, *(f"{count} removed" for count in counts)), rows=rows)


def split_section(scans: Sequence[RatingScan]) -> Section:
    """Sizes of the packs, and what two of them have in common; of at least two packs."""
    section = Section("splits", "Splits")
    labels = [scan.name for scan in scans]
    held = [nnz_of(scan.info, "held_out") for scan in scans]
    panels = [Series("users", [scan.rows for scan in scans]),
              Series("ratings (X)", [nnz_of(scan.info) for scan in scans])]
    panels += [Series("held-out ratings", held, charts.SECOND)] if any(held) else []
    largest = max(range(len(scans)), key=lambda at: nnz_of(scans[at].info))
    title = f"{labels[largest]} has the most ratings, {nnz_of(scans[largest].info):,}"
    section.blocks.append(Block(title, "", charts.bars("splits", labels, panels)))
    rows = []
    for first in range(len(scans)):
        for second in range(first + 1, len(scans)):
            one, other = scans[first], scans[second]
            rows.append((f"{one.name}, {other.name}", overlap(one.row_ids, other.row_ids),
                         overlap(rated_ids(one), rated_ids(other))))
    section.blocks.append(Block("Users and items that two packs have in common",
                                "Items are those with a rating in X of the users that were looked at.",
                                header=("packs", "users", "items"), rows=rows))
    return section


def rated_ids(scan: RatingScan) -> Any:
    return None if scan.column_ids is None else scan.column_ids[scan.item_counts > 0]


def overlap(first: Any, second: Any) -> str:
    if first is None or second is None:
        return "no ids are recorded"
    if first.dtype != second.dtype:
        return "ids of different types"
    common = len(np.intersect1d(first, second))
    return f"{common:,} of {len(first):,} and {len(second):,}"

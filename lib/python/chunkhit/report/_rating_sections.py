"""What the page says of packs of ratings."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .._error import counted
from .._pages import shown
from . import _charts as charts
from ._charts import Panel, Series
from ._page import Block, Section, bytes_text, looked_at, share_text
from ._rating_scan import RatingScan, nnz_of

MAX_VALUES = 24  # shown one by one
TOP = 10  # items, and numbers of ratings of users
TITLES = ("title", "name")


def is_by_users(scan: RatingScan) -> bool:
    """Whether users are held out as a whole: X of their packs is not that of training."""
    return scan.info["spec"].get("split-by") in ("users", "users-by-id")


def own_ratings(scan: RatingScan) -> int:
    """Ratings of the pack's own split: X of validation and test repeats others, but of users that are held out."""
    held = nnz_of(scan.info, "held_out")
    return held if scan.info["split_name"] in ("validation", "test") and not is_by_users(scan) else nnz_of(scan.info) + held


def overview(scans: Sequence[RatingScan]) -> Section:
    rows = []
    for scan in scans:
        ratings, held = nnz_of(scan.info), nnz_of(scan.info, "held_out")
        stored = sum(part["bytes"] for part in scan.info["parts"])
        rows.append((scan.name, f"{scan.rows:,}", f"{scan.columns:,}", f"{ratings:,}", f"{held:,}" if held else "–",
                     share_text(ratings / max(1, scan.rows * scan.columns)), values_text(scan), f"{bytes_text(stored)}, {scan.info['codec']}"))
    header = ("pack", "users", "items", "ratings (X)", "held out", "rated pairs", "values", "stored")
    has_train = any(scan.info["split_name"] == "train" for scan in scans)
    total = sum(own_ratings(scan) if has_train else nnz_of(scan.info) + nnz_of(scan.info, "held_out") for scan in scans)
    repeats = has_train and any(own_ratings(scan) < nnz_of(scan.info) + nnz_of(scan.info, "held_out") for scan in scans)
    note = "X of validation and test repeats ratings of the packs before: they count once." if repeats else ""
    section = Section("rating-packs", "Packs of ratings", [Block("", note, header=header, rows=rows)],
                      checks=["sizes of the packs' files and hashes of the chunks that were read"])
    section.keys = [(f"{total:,}", "ratings"), (f"{different([scan.row_ids for scan in scans], [scan.rows for scan in scans]):,}", "users"),
                    (f"{different([scan.column_ids for scan in scans], [scan.columns for scan in scans]):,}", "items"),
                    (bytes_text(sum(part["bytes"] for scan in scans for part in scan.info["parts"])), "stored")]
    section.checks += ["ratings that the split left out"] if has_train else []
    for scan in scans:
        if scan.info.get("lost"):
            section.warnings.append(f"{shown(scan.info['lost'])}: their users have none that are given, or their items none in training")
        section.warnings += [f"{scan.name}: damaged: {shown(problem)}" for problem in scan.info.get("problems", [])]
    section.blocks += [overlap_block(scans)] if len(scans) > 1 else []
    return section


def values_text(scan: RatingScan) -> str:
    """The values of a pack, and how they are stored."""
    found = {**scan.values, **scan.held_values}
    if not found:
        return "none"
    if len(found) == 1:
        return f"all {next(iter(found)):g}"
    values = scan.info["values"]
    scale = "" if values["scale"] == 1 else f" times {values['scale']:g}"
    return f"{min(found):g} to {max(found):g}, as {values['type']}{scale}"


def different(ids: Sequence[Any], counts: Sequence[int]) -> int:
    """How many ids there are in all packs; where they are not known the most of a pack."""
    if any(each is None for each in ids) or len({each.dtype for each in ids}) > 1:
        return max(counts)
    return len(ids[0]) if len(ids) == 1 else len(np.unique(np.concatenate(ids)))


def overlap_block(scans: Sequence[RatingScan]) -> Block:
    """What two packs have in common."""
    rows = [(f"{one.name}, {other.name}", overlap(one.row_ids, other.row_ids), overlap(rated_ids(one), rated_ids(other)))
            for at, one in enumerate(scans) for other in scans[at + 1:]]
    return Block("In common", "Items are those with a rating in X of the users that were looked at.",
                 header=("packs", "users", "items"), rows=rows)


def rated_ids(scan: RatingScan) -> Any:
    return None if scan.column_ids is None else scan.column_ids[scan.item_counts > 0]


def overlap(first: Any, second: Any) -> str:
    if first is None or second is None:
        return "no ids are recorded"
    if first.dtype != second.dtype:
        return "ids of different types"
    common = len(np.intersect1d(first, second))
    return f"{common:,} of {len(first):,} and {len(second):,}"


def value_section(scans: Sequence[RatingScan]) -> Section:
    """Values of packs that have several: one by one where there are few, beside each other. Of packs with held-out ratings theirs
    alone, as X of most splits repeats those of training."""
    section = Section("values", "Values")
    counts = [ValueCounts(scan.name + (", held out" if scan.held_values else ""), scan.held_values or scan.values,
                          charts.pack_color(index)) for index, scan in enumerate(scans)]
    few = [each for each in counts if 1 < len(each.counts) <= MAX_VALUES]
    many = [each for each in counts if len(each.counts) > MAX_VALUES]
    if few:
        values = sorted({value for each in few for value in each.counts})
        means = "; ".join(f"{sum(value * number for value, number in each.counts.items()) / sum(each.counts.values()):.2f} in "
                          f"{each.name}" for each in few)
        series = [Series(each.name, [each.counts.get(value, 0) for value in values], each.color) for each in few]
        section.blocks.append(Block("", f"The mean is {means}.", bars=[charts.bars([f"{value:g}" for value in values], series)]))
    if many:
        section.blocks.append(value_histograms(many))
    return section


class ValueCounts(NamedTuple):
    """How many ratings of a pack have each value."""

    name: str
    counts: Dict[float, int]
    color: str


def value_histograms(packs: Sequence[ValueCounts]) -> Block:
    """Values that are too many to stand one by one."""
    panels, rows = [], []
    for index, (name, counts, _) in enumerate(packs):
        values = np.array(sorted(counts))
        numbers = np.array([counts[value] for value in values.tolist()])
        at = np.searchsorted(np.cumsum(numbers), numbers.sum() / 2)
        is_wide = values[0] > 0 and values[-1] / values[0] > 1000
        edges = np.geomspace(values[0], np.nextafter(values[-1], np.inf), 41) if is_wide else np.linspace(values[0], values[-1], 41)
        series = [Series("ratings", np.histogram(values, edges, weights=numbers)[0])]
        panels.append(charts.histogram(f"values{index}", Panel(edges, series, "value", log=bool(is_wide), title=name)))
        rows.append((name, *(f"{value:g}" for value in (values[0], values[at], values[-1]))))
    return Block("", "", panels, header=("pack", "smallest", "median", "largest"), rows=rows)


def activity_section(scans: Sequence[RatingScan]) -> Section:
    """Ratings of users and items, of all packs in one chart; the most rated items and the coldest users of training."""
    section = Section("activity", "Users and items")
    rated = [scan for scan in scans if scan.user_counts.any()]
    if not rated:
        return section
    users, items = ([Series(scan.name, getattr(scan, counts), charts.pack_color(scans.index(scan))) for scan in rated]
                    for counts in ("user_counts", "item_counts"))
    panels = [charts.ranks("users", "ratings of each user", users), charts.ranks("items", "ratings of each item", items)]
    header = ("pack", "looked at", "users: fewest", "median", "most", "items: median", "most", "without rating", "half of the ratings")
    note = "Dots are medians; users without ratings do not count."
    section.blocks.append(Block("", note, panels, header=header, rows=[activity_row(scan) for scan in rated]))
    section.blocks += [block for scan in rated if is_training(scan) for block in (top_block(scan), cold_block(scan))][:6]
    section.blocks.append(map_block(rated))
    whole = [scan for scan in scans if len(scan.looked) == scan.rows and is_training(scan)]  # columns are those of training
    section.checks += ["items without a rating in training"] if whole else []
    for scan in whole:
        cold = int((scan.item_counts == 0).sum())
        section.warnings += [f"{scan.name}: {counted(cold, 'item')} of {scan.columns:,} have no rating"] if cold else []
    return section


def is_training(scan: RatingScan) -> bool:
    return scan.info["split_name"] in ("", "train")


def activity_row(scan: RatingScan) -> Tuple[str, ...]:
    users, items = (counts[counts > 0] for counts in (scan.user_counts, scan.item_counts))
    held = np.cumsum(np.sort(items)[::-1]) / items.sum()
    half = (int(np.searchsorted(held, 0.5)) + 1) / len(items)
    numbers = (users.min(), np.median(users), users.max(), np.median(items), items.max(), (scan.item_counts == 0).sum())
    return (scan.name, looked_at(len(scan.looked), scan.rows, "user"), *(charts.plain(float(number)) for number in numbers),
            f"of {share_text(half)} of the items")


def title_of_items(scan: RatingScan) -> Optional[str]:
    """The kept column of texts that names items best."""
    texts = [column["name"] for column in scan.info.get("item_columns", []) if column["type"] == "text"]
    return next((name for name in texts if name.lower() in TITLES), texts[0] if texts else None)


def top_block(scan: RatingScan) -> Block:
    """The items with the most ratings, by title where the pack keeps one."""
    order = np.argsort(-scan.item_counts, kind="stable")[:TOP]
    order = order[scan.item_counts[order] > 0]
    ids = [str(column) for column in order] if scan.column_ids is None else [shown(str(each)) for each in scan.column_ids[order]]
    users = max(1, int((scan.user_counts > 0).sum()))
    rows: List[Tuple[str, ...]] = [(f"{scan.item_counts[column]:,}", share_text(scan.item_counts[column] / users), name)
                                   for column, name in zip(order, ids)]
    header = ["ratings", "of the users", "item" if scan.column_ids is not None else "column"]
    title = title_of_items(scan)
    if title:
        names = scan.dataset.item_column(title, order)
        rows, header = [(*row, shown(str(name))) for row, name in zip(rows, names)], [*header, shown(title)]
    return Block(f"{scan.name}: most rated items", header=header, rows=rows)


def cold_block(scan: RatingScan) -> Block:
    """The users with the fewest ratings, by their number."""
    rows = []
    for ratings in np.unique(scan.user_counts)[:TOP]:
        own = scan.looked[np.flatnonzero(scan.user_counts == ratings)]
        some = own[:3] if scan.row_ids is None else scan.row_ids[own[:3]]
        rows.append((f"{ratings:,}", f"{len(own):,}", ", ".join(shown(str(each)) for each in some) + (", …" if len(own) > 3 else "")))
    return Block(f"{scan.name}: coldest users", header=("ratings", "users", "the first ones"), rows=rows)


def map_block(scans: Sequence[RatingScan]) -> Block:
    panels = []
    for index, scan in enumerate(scans):
        lengths = [np.bincount(np.arange(count) * cells // count, minlength=cells)
                   for count, cells in zip((len(scan.looked), scan.columns), scan.cells.shape)]
        panels.append(charts.density_map(f"map{index}", scan.name, scan.cells / np.outer(*lengths)))
    note = ("Users in the order of the rows, from top to bottom, items in that of the columns. The stronger the color of an area, the "
            "more of its pairs are rated, on a logarithmic scale; blank areas have none.")
    return Block("Where ratings are", note, panels)


def time_section(scans: Sequence[RatingScan]) -> Section:
    """When ratings were made, of packs that keep their times."""
    section = Section("times", "Times")
    timed = [scan for scan in scans if scan.days]
    if not timed:
        return section
    first, last = min(min(scan.days) for scan in timed), max(max(scan.days) for scan in timed)
    edges = np.linspace(first, last + 1, 41)
    series = [Series(scan.name, np.histogram(list(scan.days), edges, weights=list(scan.days.values()))[0],
                     charts.pack_color(scans.index(scan))) for scan in timed]
    rows = [(scan.name, date(min(scan.days)), date(median_day(scan.days)), date(max(scan.days))) for scan in timed]
    note = "Packs with held-out ratings show those alone." if any(len(scan.held_counts) for scan in timed) else ""
    section.blocks.append(Block("", note, [charts.pack_histogram("times", Panel(edges, series, "", dates=True, title="ratings"))],
                                header=("pack", "first", "median", "last"), rows=rows))
    return section


def date(day: int) -> str:
    return str(np.datetime64(int(day), "D"))


def median_day(days: Dict[int, int]) -> int:
    ordered = sorted(days)
    return ordered[int(np.searchsorted(np.cumsum([days[day] for day in ordered]), sum(days.values()) / 2))]


def step_section(scans: Sequence[RatingScan]) -> Section:
    section = Section("steps", "What each rule removed", checks=["lines that gave no rating"])
    runs: List[Tuple[str, Dict[str, Any]]] = []
    for scan in scans:
        stats = scan.info.get("stats") or {}
        if stats in [known for _, known in runs]:
            continue  # the packs of a split have those of the run
        runs.append((scan.name, stats))
        section.blocks.append(step_block(scan, stats))
    for name, stats in runs:
        if stats.get("bad_lines"):
            reasons = ", ".join(f"{shown(reason)}: {count:,}" for reason, count in stats["reasons"].items())
            source = "the input" if len(runs) == 1 else f"the input of {name}"
            section.warnings.append(f"{source}: {counted(stats['bad_lines'], 'line')} gave no rating: {reasons}")
    return section


def step_block(scan: RatingScan, stats: Dict[str, Any]) -> Block:
    steps = stats.get("steps") or []
    if not steps:
        return Block(scan.name, "Steps are not recorded: merged packs, parts and external files have none.")
    counts = ("ratings", "users", "items")
    rows = [(steps[0]["name"], *(f"{steps[0][count]:,}" for count in counts), "–", "–", "–")]
    for before, step in zip(steps, steps[1:]):
        if all(before[count] == step[count] for count in counts):
            continue
        rows.append((step["name"], *(f"{step[count]:,}" for count in counts),
                     *(f"{before[count] - step[count]:,}" for count in counts)))
    left = steps[-1]["ratings"] / max(1, steps[0]["ratings"])
    out = [f"{shown(reason)}: {count:,}" for reason, count in stats.get("left_out", {}).items()]
    note = f"{share_text(left)} of the input's ratings are kept, {steps[-1]['ratings']:,} of {steps[0]['ratings']:,}."
    note += f" Left out by the split: {'; '.join(out)}." if out else ""
    return Block("", note, header=("step", *counts, *(f"{count} removed" for count in counts)), rows=rows)

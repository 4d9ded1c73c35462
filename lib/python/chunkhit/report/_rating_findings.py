"""What is wrong with ratings: bots, bursts, and what packs of a split give away to each other."""
from __future__ import annotations

from typing import Any, List, Sequence

import numpy as np

from .._error import counted
from .._pages import shown
from ._page import BY_DESIGN, LEAK, LOST, ODD, Finding, Section, share_text
from ._rating_scan import BOT_RATINGS, DAY, RatingScan

Array = np.ndarray[Any, Any]

MIN_OF_BURST = 50  # ratings of an item, below which an hour of them is chance
BURST_SHARE = 0.8  # of an item's ratings within an hour
COMPARED_RATINGS = 2_000_000  # of a pack, whose pairs of user and item are compared with another's
MAX_LATER = 0.01  # share of training ratings after the test's begin
MAX_SHIFT = 0.15  # difference of the shares that the tenth of items that is most popular in training has
MIN_SHIFTED = 500  # ratings that are compared
MAX_UNSEEN = 0.01  # share of a test's ratings whose items training never saw
SHOWN_NAMES = 5
BY_USERS = ("users", "users-by-id")
TESTS = ("validation", "valid", "val", "dev", "eval", "test")


def rating_findings(scans: Sequence[RatingScan]) -> Section:
    section = Section("accused", "Ratings")
    for scan in scans:
        if scan.days:
            section.findings += bot_findings(scan) + burst_findings(scan)
        if len(scan.looked) < scan.rows:
            section.unchecked.append(f"{scan.rows - len(scan.looked):,} of {scan.rows:,} users of {scan.name}")
    timed = [scan.name for scan in scans if scan.days]
    section.checks += [f"users with {BOT_RATINGS} ratings in a second, items rated in an hour"] if timed else []
    section.unchecked += [] if timed else ["bots, bursts and leakage in time, as no pack keeps times (--keep-times)"]
    trained = [scan for scan in scans if role(scan) == "train"]
    for train in trained:
        for other in scans:
            if role(other) in TESTS:
                section.findings += pair_findings(train, other)
    if trained and len(scans) > 1:
        section.checks += ["ratings that packs share", "training ratings after the test's begin", "shifts of popularity",
                           "items that training never saw"]
    return section


def role(scan: RatingScan) -> str:
    """Its split; where it has none, its name."""
    return str(scan.info["split_name"] or scan.name.rsplit("/", 1)[-1])


def names_of(ids: Any, positions: Array) -> str:
    some = [str(at) for at in positions[:SHOWN_NAMES]] if ids is None else [shown(str(each)) for each in ids[positions[:SHOWN_NAMES]]]
    return ", ".join(some) + (", …" if len(positions) > SHOWN_NAMES else "")


def bot_findings(scan: RatingScan) -> List[Finding]:
    bots = np.flatnonzero(scan.most_at_once >= BOT_RATINGS)
    if not len(bots):
        return []
    bots = bots[np.argsort(-scan.most_at_once[bots], kind="stable")]
    are = "user is" if len(bots) == 1 else "users are"
    return [Finding(LOST, f"{scan.name}: {len(bots):,} {are} probably no people: up to {int(scan.most_at_once[bots[0]]):,} ratings within "
                    f"a second: {names_of(scan.row_ids, scan.looked[bots])}")]


def burst_findings(scan: RatingScan) -> List[Finding]:
    """Items of which nearly all ratings lie within an hour."""
    hour = DAY[scan.info["times"]] // 24
    order = np.lexsort((scan.burst_times, scan.burst_items))
    items, times = scan.burst_items[order], scan.burst_times[order]
    totals = np.bincount(items, minlength=scan.columns)
    wanted = np.maximum(np.ceil(BURST_SHARE * totals).astype(np.int64), MIN_OF_BURST)[items]
    last = np.arange(len(items)) + wanted - 1
    fits = np.flatnonzero(last < np.cumsum(totals)[items])
    burst = np.unique(items[fits[times[last[fits]] - times[fits] <= hour]])
    is_one_day = len(scan.days) < 3  # all ratings are of one burst
    if not len(burst) or is_one_day:
        return []
    return [Finding(LOST, f"{scan.name}: {counted(len(burst), 'item')} got nearly all ratings within an hour, up to "
                    f"{int(totals[burst].max()):,}: {names_of(scan.column_ids, burst)}")]


def pair_findings(train: RatingScan, other: RatingScan) -> List[Finding]:
    """What training and another pack of its split have in common that they should not."""
    findings = shared_ratings(train, other) + later_ratings(train, other)
    tested = other.held_items if len(other.held_counts) else other.item_counts
    if train.column_ids is None or other.column_ids is None or train.column_ids.dtype != other.column_ids.dtype:
        return findings
    _, at_train, at_other = np.intersect1d(train.column_ids, other.column_ids, return_indices=True)
    trained = np.zeros(other.columns, np.int64)
    trained[at_other] = train.item_counts[at_train]
    return findings + unseen_items(train, other, trained, tested) + shifted_items(train, other, trained, tested)


def shared_ratings(train: RatingScan, other: RatingScan) -> List[Finding]:
    """Users of both packs where users are held out; pairs of user and item that training and the other's own ratings have."""
    if train.row_ids is None or other.row_ids is None or train.row_ids.dtype != other.row_ids.dtype:
        return []
    common, at_train, at_other = np.intersect1d(train.row_ids[train.looked], other.row_ids[other.looked], return_indices=True)
    if len(common) and other.info["spec"].get("split-by") in BY_USERS:
        return [Finding(LEAK, f"{train.name} and {other.name} have {counted(len(common), 'user')} in common, although users are held out: "
                        f"{names_of(common, np.arange(len(common)))}")]
    if train.info.get("repeats"):  # a user took the item again
        return []
    if not len(common) or train.column_ids is None or other.column_ids is None or train.column_ids.dtype != other.column_ids.dtype:
        return []
    count = max(1, int(COMPARED_RATINGS / max(1.0, float(train.user_counts[at_train].mean()))))
    picks = np.unique(np.linspace(0, len(common) - 1, min(count, len(common))).astype(int))
    _, train_items, other_items = np.intersect1d(train.column_ids, other.column_ids, return_indices=True)
    numbers = np.full(other.columns, -1, np.int64)
    numbers[other_items] = train_items
    ours, theirs = own_pairs(train, train.looked[at_train[picks]], None), own_pairs(other, other.looked[at_other[picks]], numbers)
    shared = int(np.isin(theirs, ours).sum())
    if not shared:
        return []
    return [Finding(LEAK, f"{train.name} and {other.name} have {counted(shared, 'rating')} in common, {share_text(shared / len(theirs))} of "
                    f"those of {counted(len(picks), 'user')}: what is learned from one is measured on the other")]


def own_pairs(scan: RatingScan, rows: Array, numbers: Any) -> Array:
    """A number of each pair of the position among `rows` and the item, of the held-out ratings where there are any. `numbers` are those
    of items, -1 where the other pack has none."""
    order = np.argsort(rows)
    read = scan.dataset[rows[order]]
    parts = read if isinstance(read, tuple) and not hasattr(read, "indptr") else (read,)
    part = parts[len(scan.held_counts) > 0]
    items = part.indices.astype(np.int64) if numbers is None else numbers[part.indices]
    pairs = np.repeat(order, np.diff(part.indptr)).astype(np.int64) * (1 << 32) + items
    return np.asarray(pairs[items >= 0])


def later_ratings(train: RatingScan, other: RatingScan) -> List[Finding]:
    """Whether training has ratings after the other's begin, which is the day when it has 1 % of its ratings."""
    if not train.days or not other.days:
        return []
    days = np.array(sorted(other.days))
    begin = int(days[np.searchsorted(np.cumsum([other.days[day] for day in days.tolist()]), 0.01 * sum(other.days.values()))])
    later = sum(count for day, count in train.days.items() if day > begin) / sum(train.days.values())
    if later <= MAX_LATER:
        return []
    split = other.info["spec"].get("split-by")
    if split == "leave-one-out" and role(other) != "test":
        return []  # of the test it is said
    if split == "leave-one-out":
        return [Finding(BY_DESIGN, f"{share_text(later)} of the ratings of {train.name} are later than the begin of {other.name}, by "
                        f"design of {split}: users have last ratings of their own")]
    cost = ODD if split in BY_USERS else LEAK
    return [Finding(cost, f"{share_text(later)} of the ratings of {train.name} are later than the begin of {other.name}, "
                    f"{np.datetime64(begin, 'D')} (1 % of its ratings come before): a model knows the future that it is tested on; pack-sparse --split-by time keeps it away")]


def unseen_items(train: RatingScan, other: RatingScan, trained: Array, tested: Array) -> List[Finding]:
    is_whole = len(train.looked) == train.rows
    unseen, total = int(tested[trained == 0].sum()), int(tested.sum())
    if not is_whole or not total or unseen <= MAX_UNSEEN * total:
        return []
    items = int(((tested > 0) & (trained == 0)).sum())
    return [Finding(LOST, f"{train.name} has no rating of {items:,} of {int((tested > 0).sum()):,} items of {other.name}, which have "
                    f"{share_text(unseen / total)} of its ratings")]


def shifted_items(train: RatingScan, other: RatingScan, trained: Array, tested: Array) -> List[Finding]:
    """Whether items that are popular in training are as popular in the test."""
    if min(trained.sum(), tested.sum()) < MIN_SHIFTED:
        return []
    top = np.argsort(-trained, kind="stable")[:max(1, int((trained > 0).sum()) // 10)]
    before, after = (float(counts[top].sum() / counts.sum()) for counts in (trained, tested))
    if abs(before - after) <= MAX_SHIFT:
        return []
    return [Finding(ODD, f"popularity shifts between {train.name} and {other.name}: the tenth of the items that is most rated in training "
                    f"has {share_text(before)} of its ratings, and {share_text(after)} of those of {other.name}")]

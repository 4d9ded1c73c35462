"""Images that are in packs twice: equal pixels, and near-duplicates."""
from __future__ import annotations

from collections import defaultdict
from typing import Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from ._contact_sheet import figures_of
from ._image_scan import ImageScan, keys_of
from ._page import Block, Figure, Section, counted, looked_at, shown
from ._perceptual import FLAT, MAX_BITS, near_groups

SHOWN_GROUPS = 100
SHOWN_OF_GROUP = 6
SHOWN_PAIRS = 24


class Found(NamedTuple):
    """An image that was looked at."""

    scan: int  # position of its pack
    at: int  # position in the scan's `looked`


def all_found(scans: Sequence[ImageScan]) -> List[Found]:
    return [Found(index, at) for index, scan in enumerate(scans) for at in range(len(scan.looked))]


def sample_of(scans: Sequence[ImageScan], found: Found) -> int:
    return int(scans[found.scan].looked[found.at])


def named(scans: Sequence[ImageScan], found: Found) -> str:
    """An image's pack, number, file and class."""
    scan = scans[found.scan]
    sample = sample_of(scans, found)
    key = keys_of(scan, [sample])[0]
    name = f"{scan.name} #{sample}" + (f" {shown(key)}" if key else "")
    if scan.labels.ndim == 1 and scan.labels[sample] >= 0:
        label = int(scan.labels[sample])
        name += f" ({scan.names.get(label, label)})"
    return name


def coverage(scans: Sequence[ImageScan]) -> str:
    parts = [f"{scan.name}: {looked_at(len(scan.looked), scan.total, 'image').lower()}" for scan in scans]
    note = "; ".join(parts) + "."
    if any(len(scan.looked) < scan.total for scan in scans):
        note += " Duplicates of images that were not looked at are not found: --samples 0 looks at all."
    return note


def equal_groups(scans: Sequence[ImageScan]) -> List[List[Found]]:
    """Groups of images of equal shape and pixels; those of several packs first, then the largest."""
    groups: Dict[bytes, List[Found]] = defaultdict(list)
    for found in all_found(scans):
        groups[scans[found.scan].digests[found.at]].append(found)
    several = [group for group in groups.values() if len(group) > 1]
    return sorted(several, key=lambda group: (-len({found.scan for found in group}), -len(group), group[0]))


def pairs_of_packs(scans: Sequence[ImageScan], groups: Sequence[Sequence[Found]]) -> Dict[Tuple[int, int], int]:
    """Numbers of groups that two packs have in common."""
    counts: Dict[Tuple[int, int], int] = defaultdict(int)
    for group in groups:
        packs = sorted({found.scan for found in group})
        for first in range(len(packs)):
            for second in range(first + 1, len(packs)):
                counts[packs[first], packs[second]] += 1
    return dict(counts)


def has_other_labels(scans: Sequence[ImageScan], group: Sequence[Found]) -> bool:
    labels = set()
    for found in group:
        scan = scans[found.scan]
        label = scan.labels[sample_of(scans, found)]
        labels.add(tuple(label.tolist()) if scan.labels.ndim == 2 else scan.names.get(int(label), str(label)))
    return len(labels) > 1


def duplicate_section(scans: Sequence[ImageScan]) -> Section:
    section = Section("duplicates", "Exact duplicates")
    groups = equal_groups(scans)
    if not groups:
        section.blocks.append(Block("No two images have equal pixels", coverage(scans)))
        return section
    for (first, second), count in pairs_of_packs(scans, groups).items():
        section.warnings.append(f"{scans[first].name} and {scans[second].name} have {counted(count, 'image')} in common: "
                                "what is learned from one is measured on the other")
    others = [group for group in groups if has_other_labels(scans, group)]
    if others:
        section.warnings.append(f"{counted(len(others), 'group')} of equal images have different labels: "
                                + "; ".join(named(scans, found) for found in others[0][:3]))
    section.blocks.append(group_block(scans, groups))
    return section


def group_block(scans: Sequence[ImageScan], groups: Sequence[Sequence[Found]]) -> Block:
    surplus = sum(len(group) - 1 for group in groups)
    rows = []
    for group in groups[:SHOWN_GROUPS]:
        names = [named(scans, found) for found in group[:SHOWN_OF_GROUP]]
        if len(group) > SHOWN_OF_GROUP:
            names.append(f"… and {len(group) - SHOWN_OF_GROUP:,} more")
        where = "between packs" if len({found.scan for found in group}) > 1 else "within a pack"
        labels = "different" if has_other_labels(scans, group) else "equal"
        rows.append((f"{len(group):,}", where, labels, "; ".join(names)))
    note = coverage(scans)
    if len(groups) > SHOWN_GROUPS:
        note += f" {SHOWN_GROUPS} of {counted(len(groups), 'group')} are listed."
    figures = [figure for group in groups[:12]
               for figure in figures_of(scans[group[0].scan], [sample_of(scans, group[0])], f"equal{group[0].scan}")]
    have = "has" if len(groups) == 1 else "have"
    title = f"{counted(surplus, 'image')} could be left out: {counted(len(groups), 'group')} of images {have} equal pixels"
    return Block(title, note, header=("images", "where", "labels", "samples and files"), rows=rows, figures=figures)


def near_section(scans: Sequence[ImageScan]) -> Section:
    """Near-duplicates; the scans have perceptual hashes."""
    section = Section("near-duplicates", "Near-duplicates")
    every = all_found(scans)
    hashes = np.concatenate([scan.perceptual for scan in scans if scan.perceptual is not None])
    contrast = np.concatenate([scan.contrast for scan in scans])
    digests = [digest for scan in scans for digest in scan.digests]
    pairs, flat, is_cut = near_groups(hashes, contrast, digests)
    note = (f"{coverage(scans)} Hashes of brightness gradients (128 bits) that differ in at most {MAX_BITS} bits; look at the "
            f"pairs, as plain scenes may resemble each other. {counted(flat, 'image')} of a contrast below {FLAT:g} "
            f"{'is' if flat == 1 else 'are'} left out.")
    if not pairs:
        section.blocks.append(Block("No two images look alike", note))
        return section
    between = [pair for pair in pairs if every[pair[0]].scan != every[pair[1]].scan]
    if between:
        first, second = (named(scans, every[index]) for index in between[0][:2])
        section.warnings.append(f"{counted(len(between), 'pair')} of near-duplicates {'is' if len(between) == 1 else 'are'} "
                                f"between packs: {first}; {second}")
    within = [pair for pair in pairs if every[pair[0]].scan == every[pair[1]].scan]
    section.blocks.append(near_block(scans, every, between + within, note, is_cut))
    return section


def near_block(scans: Sequence[ImageScan], every: List[Found], pairs: Sequence[Tuple[int, int, int]], note: str,
               is_cut: bool) -> Block:
    rows, figures = [], []
    for number, (first, second, bits) in enumerate(pairs[:SHOWN_GROUPS]):
        rows.append((f"{bits}", named(scans, every[first]), named(scans, every[second])))
        if number < SHOWN_PAIRS:
            figures += [pair_figure(scans, every[index], number) for index in (first, second)]
    if len(pairs) > SHOWN_GROUPS:
        note += f" {SHOWN_GROUPS} of {len(pairs):,} pairs are listed, {SHOWN_PAIRS} shown."
    title = f"{counted(len(pairs), 'pair')} of images {'looks' if len(pairs) == 1 else 'look'} alike"
    title = f"At least {title}" if is_cut else title
    return Block(title, note, header=("different bits", "image", "image"), rows=rows, figures=figures)


def pair_figure(scans: Sequence[ImageScan], found: Found, number: int) -> Figure:
    figure = figures_of(scans[found.scan], [sample_of(scans, found)], f"near{number}-{found.scan}")[0]
    return figure._replace(caption=f"pair {number + 1}: {figure.caption}")

"""Images that are in packs twice: equal pixels, and near-duplicates."""
from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

from .._error import counted
from .._figures import upright
from .._pages import shown
from ._contact_sheet import figures_of
from ._image_findings import SIDE, finding_figures
from ._image_scan import DUPLICATE_BYTES, NEAR_IMAGES, Array, ImageScan, keys_of
from ._page import LEAK, MISLABELED, Block, Finding, Row, Section, bytes_text, looked_at
from ._perceptual import FLAT, MAX_BITS, near_groups

SHOWN_GROUPS = 100
SHOWN_OF_GROUP = 6
SHOWN_PAIRS = 6  # side by side
MIN_ALIKE = 0.99  # correlation of thumbnails of near-duplicates
MAX_COMPARED = 5000  # pairs whose pixels are compared
PIXELS = 64  # of a side of images, at most, whose pixels are compared
MIN_EQUAL, MAX_GAIN, MAX_SHIFT = 0.95, 1.5, 32  # correlation of pixels, ratio of contrasts, difference of a channel's mean, of 255


class Found(NamedTuple):
    """An image that was compared."""

    scan: int  # position of its pack
    sample: int


class Compared:
    """The images of all packs that were compared, in a row."""

    def __init__(self, scans: Sequence[ImageScan]) -> None:
        self.digests = np.concatenate([scan.hashes.digests for scan in scans])
        self._ends = np.cumsum([len(scan.hashes.samples) for scan in scans])
        self._scans = scans

    def found(self, at: int) -> Found:
        scan = int(np.searchsorted(self._ends, at, side="right"))
        first = self._ends[scan] - len(self._scans[scan].hashes.samples)
        return Found(scan, int(self._scans[scan].hashes.samples[at - first]))

    def equal_groups(self) -> Iterator[List[Found]]:
        """Groups of images of equal shape and pixels."""
        order = np.lexsort((self.digests[:, 1], self.digests[:, 0]))  # stable: each group is in the order of the packs
        ordered = self.digests[order]
        is_first = np.ones(len(order) + 1, bool)
        is_first[1:-1] = (ordered[1:] != ordered[:-1]).any(axis=1)
        begins = np.flatnonzero(is_first)
        lengths = np.diff(begins)
        for begin, length in zip(begins[:-1][lengths > 1], lengths[lengths > 1]):
            yield [self.found(int(at)) for at in order[begin:begin + length]]


def named(scans: Sequence[ImageScan], found: Found) -> str:
    """An image's pack, number, file and class."""
    scan = scans[found.scan]
    key = keys_of(scan, [found.sample])[0]
    name = f"{scan.name} #{found.sample}" + (f" {shown(key)}" if key else "")
    if scan.labels.ndim == 1 and scan.labels[found.sample] >= 0:
        label = int(scan.labels[found.sample])
        name += f" ({scan.names.get(label, label)})"
    return name


def coverage(scans: Sequence[ImageScan]) -> str:
    parts = [f"{scan.name}: {looked_at(len(scan.hashes.samples), scan.total, 'image').lower()}" for scan in scans]
    note = "; ".join(parts) + "."
    if any(len(scan.hashes.samples) < scan.total for scan in scans):
        note += (f" Duplicates of the others are not found. Of packs with more than {bytes_text(DUPLICATE_BYTES)} of pixels "
                 "only the images that are looked at are compared; --duplicates all reads and compares all.")
    return note


def equal_groups(scans: Sequence[ImageScan]) -> List[List[Found]]:
    """Groups of images of equal shape and pixels; those of several packs first, then the largest."""
    return sorted(Compared(scans).equal_groups(),
                  key=lambda group: (-len({found.scan for found in group}), -len(group), group[0]))


def pairs_of_packs(scans: Sequence[ImageScan], groups: Sequence[Sequence[Found]]) -> Dict[Tuple[int, int], int]:
    """Numbers of groups that two packs have in common."""
    counts: Dict[Tuple[int, int], int] = defaultdict(int)
    for group in groups:
        packs = sorted({found.scan for found in group})
        for first in range(len(packs)):
            for second in range(first + 1, len(packs)):
                counts[packs[first], packs[second]] += 1
    return dict(counts)


def one_of_each(group: Sequence[Found], kind: Callable[[Found], Any] = lambda found: found.scan) -> List[Found]:
    """The first of each kind, which is the pack unless another is given."""
    return list({kind(found): found for found in reversed(group)}.values())[::-1]


def side_by_side(scans: Sequence[ImageScan], groups: Sequence[Sequence[Found]], prefix: str) -> List[Row]:
    """Images of the first groups, a row each."""
    return [Row("", [figure for found in group[:3]
                     for figure in finding_figures(scans[found.scan], [found.sample], f"{prefix}{number}-{found.scan}")])
            for number, group in enumerate(groups[:SHOWN_PAIRS])]


def label_of(scans: Sequence[ImageScan], found: Found) -> Any:
    """What tells the image's label from others."""
    scan = scans[found.scan]
    label: Any = scan.labels[found.sample]
    return tuple(label.tolist()) if scan.labels.ndim == 2 else scan.names.get(int(label), str(label))


def has_other_labels(scans: Sequence[ImageScan], group: Sequence[Found]) -> bool:
    labels = {label_of(scans, found) for found in group}
    return len(labels - {"-1"}) > 1  # -1: none


def is_single(scans: Sequence[ImageScan], found: Found) -> bool:
    """Whether the image is of one color."""
    hashes = scans[found.scan].hashes
    return bool(hashes.is_single[np.searchsorted(hashes.samples, found.sample)])


def duplicate_section(scans: Sequence[ImageScan]) -> Section:
    section = Section("duplicates", "Exact duplicates", checks=["equal images of different labels"])
    section.checks += ["equal images in two packs"] if len(scans) > 1 else []
    groups = equal_groups(scans)
    section.unchecked += [f"copies of {missing:,} images" for missing in [sum(scan.total - len(scan.hashes.samples) for scan in scans)]
                          if missing]
    if not groups:
        section.blocks.append(Block("", f"No two images have equal pixels. {coverage(scans)}"))
        return section
    telling = [group for group in groups if not is_single(scans, group[0])]  # others are equal by chance, and a finding of their own
    for (first, second), count in pairs_of_packs(scans, telling).items():
        both = [group for group in telling if {first, second} <= {found.scan for found in group}]
        section.findings.append(Finding(
            LEAK, f"{scans[first].name} and {scans[second].name} have {counted(count, 'image')} in common: "
            "what is learned from one is measured on the other", side_by_side(scans, [one_of_each(group) for group in both], "shared")))
    others = [group for group in telling if has_other_labels(scans, group)]
    if others:
        section.findings.append(Finding(
            MISLABELED, f"{counted(len(others), 'group')} of equal images {'has' if len(others) == 1 else 'have'} different labels: "
            + "; ".join(named(scans, found) for found in others[0][:3]),
            side_by_side(scans, [one_of_each(group, lambda found: label_of(scans, found)) for group in others], "conflict")))
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
               for figure in figures_of(scans[group[0].scan], [group[0].sample], f"equal{group[0].scan}", SIDE)]
    have = "has" if len(groups) == 1 else "have"
    note = f"{counted(surplus, 'image')} could be left out: {counted(len(groups), 'group')} of images {have} equal pixels. {note}"
    return Block("", note, header=("images", "where", "labels", "samples and files"), rows=rows, figures=figures)


def confirmed(thumbs: np.ndarray[Any, Any], pairs: Sequence[Tuple[int, int, int]]) -> List[Tuple[int, int, int]]:
    """Pairs whose thumbnails are alike whatever their brightness and contrast: hashes of plain scenes agree by chance."""
    kept = []
    for begin in range(0, len(pairs), 4096):
        part = pairs[begin:begin + 4096]
        first, second = (thumbs[[pair[side] for pair in part]].astype(np.float32) for side in (0, 1))
        first, second = (one - one.mean(axis=1, keepdims=True) for one in (first, second))
        lengths = np.sqrt((first * first).sum(axis=1) * (second * second).sum(axis=1)) + 1e-6
        alike = (first * second).sum(axis=1) / lengths >= MIN_ALIKE
        kept += [pair for pair, is_alike in zip(part, alike) if is_alike]
    return kept


def small_pixels(scans: Sequence[ImageScan], wanted: Sequence[Found]) -> Dict[Found, Any]:
    """Images of at most PIXELS pixels a side, of 1 or 3 channels, by what was found."""
    from PIL import Image  # type: ignore

    found = {}
    for number, scan in enumerate(scans):
        samples = np.array(sorted({one.sample for one in wanted if one.scan == number}), np.int64)
        for begin in range(0, len(samples), 64):
            for sample, image in zip(samples[begin:begin + 64].tolist(), scan.dataset[samples[begin:begin + 64]][0]):
                pixels = upright(image, scan.info)
                pixels = pixels[..., :3] if pixels.shape[2] >= 3 else pixels[..., 0]
                whole = Image.fromarray(np.ascontiguousarray(pixels))
                found[Found(number, sample)] = whole.resize((min(PIXELS, whole.width), min(PIXELS, whole.height)), Image.BOX)
    return found


def are_equal_pixels(first: Any, second: Any) -> bool:
    """Whether images of at most PIXELS pixels a side agree, but for noise and a small change of brightness and contrast. Patterns that
    repeat have alike hashes and thumbnails whatever their colors and periods."""
    from PIL import Image

    mode = "RGB" if first.mode == second.mode == "RGB" else "L"
    size = (min(first.width, second.width), min(first.height, second.height))
    both: List[Array] = [np.asarray(one.convert(mode).resize(size, Image.BOX), np.float32).reshape(-1, len(mode)) for one in (first, second)]
    if np.abs(both[0].mean(axis=0) - both[1].mean(axis=0)).max() > MAX_SHIFT:
        return False
    one, other = (pixels - pixels.mean() for pixels in both)
    lengths = float(np.linalg.norm(one)) + 1e-6, float(np.linalg.norm(other)) + 1e-6
    return float((one * other).sum()) >= MIN_EQUAL * lengths[0] * lengths[1] and max(lengths) <= MAX_GAIN * min(lengths)


def near_section(scans: Sequence[ImageScan]) -> Section:
    """Near-duplicates; the scans have perceptual hashes."""
    section = Section("near-duplicates", "Near-duplicates", checks=["near-duplicates of different labels"])
    section.checks += ["near-duplicates between packs"] if len(scans) > 1 else []
    compared = Compared(scans)
    hashes, contrast, thumbs = (np.concatenate([getattr(scan.hashes, key) for scan in scans])
                                for key in ("perceptual", "contrast", "thumbs"))
    near, flat, is_cut = near_groups(hashes, contrast, compared.digests)
    alike = [(compared.found(first), compared.found(second), bits) for first, second, bits in confirmed(thumbs, near)]
    is_cut = is_cut or len(alike) > MAX_COMPARED
    pixels = small_pixels(scans, [found for pair in alike[:MAX_COMPARED] for found in pair[:2]])
    pairs = [pair for pair in alike[:MAX_COMPARED] if are_equal_pixels(pixels[pair[0]], pixels[pair[1]])]
    section.unchecked += [f"near-duplicates beyond the first {min(len(alike), MAX_COMPARED):,} pairs of alike thumbnails"] if is_cut else []
    note = (f"{coverage(scans)} Hashes of brightness gradients (128 bits) that differ in at most {MAX_BITS} bits, of images whose "
            f"thumbnails correlate by {MIN_ALIKE:g} and whose pixels agree. {counted(flat, 'image')} of a contrast below "
            f"{FLAT:g} {'is' if flat == 1 else 'are'} left out.")
    if not pairs:
        section.blocks.append(Block("", f"No two images look alike. {note}"))
        return section
    between = [pair for pair in pairs if pair[0].scan != pair[1].scan]
    within = [pair for pair in pairs if pair[0].scan == pair[1].scan]
    section.findings += near_findings(scans, between, [pair for pair in pairs if has_other_labels(scans, pair[:2])])
    section.blocks.append(near_block(scans, between + within, note, is_cut))
    return section


def groups_first(pairs: Sequence[Tuple[Found, Found, int]]) -> List[Tuple[Found, Found, int]]:
    """The first pair of each group of images that are alike, then the others."""
    group: Dict[Found, Found] = {}

    def root(found: Found) -> Found:
        while group.setdefault(found, found) != found:
            group[found] = group[group[found]]
            found = group[found]
        return found

    for first, second, _ in pairs:
        group[root(second)] = root(first)
    firsts: List[Tuple[Found, Found, int]] = []
    others: List[Tuple[Found, Found, int]] = []
    seen = set()
    for pair in pairs:
        (others if root(pair[0]) in seen else firsts).append(pair)
        seen.add(root(pair[0]))
    return firsts + others


def near_findings(scans: Sequence[ImageScan], between: Sequence[Tuple[Found, Found, int]],
                  others: Sequence[Tuple[Found, Found, int]]) -> List[Finding]:
    """Of pairs between packs, and of pairs of different labels."""
    findings = []
    for cost, pairs, text, prefix in ((LEAK, between, "between packs", "leak"), (MISLABELED, others, "of different labels", "differ")):
        if pairs:
            first, second = (named(scans, found) for found in pairs[0][:2])
            findings.append(Finding(cost, f"{counted(len(pairs), 'pair')} of near-duplicates {'is' if len(pairs) == 1 else 'are'} "
                                    f"{text}: {first}; {second}", side_by_side(scans, [pair[:2] for pair in groups_first(pairs)], prefix)))
    return findings


def near_block(scans: Sequence[ImageScan], pairs: Sequence[Tuple[Found, Found, int]], note: str, is_cut: bool) -> Block:
    rows = [(f"{bits}", named(scans, first), named(scans, second)) for first, second, bits in pairs[:SHOWN_GROUPS]]
    if len(pairs) > SHOWN_GROUPS:
        note += f" {SHOWN_GROUPS} of {len(pairs):,} pairs are listed."
    title = f"{counted(len(pairs), 'pair')} of images {'looks' if len(pairs) == 1 else 'look'} alike"
    note = f"{'At least ' if is_cut else ''}{title}. {note}"
    return Block("", note, header=("different bits", "image", "image"), rows=rows)


def without_near(total: int) -> Section:
    """What is said where near-duplicates are not looked for."""
    return Section("near-duplicates", "Near-duplicates", unchecked=[
        f"near-duplicates, as there are {total:,} images; --near-duplicates compares more than {NEAR_IMAGES:,}" if total > NEAR_IMAGES
        else "near-duplicates"])

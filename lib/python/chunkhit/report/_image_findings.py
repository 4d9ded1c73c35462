"""What is wrong with images that are looked at one by one: labels that neighbors contradict, dark, bright, flat, blurred, narrow images."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from .._error import counted
from .._figures import Figure
from .._pages import shown
from ._contact_sheet import figures_of
from ._image_scan import DARK, LIGHT, MAX_NORMAL, Array, ImageScan
from ._label_errors import MIN_SCORE, NEIGHBORS, Suspect, find_label_errors
from ._page import LOST, MISLABELED, ODD, UNEVEN, Finding, Row, Section, share_text
from ._perceptual import FLAT

SIDE = 112  # to which images of findings are shrunk, so that a page of many findings stays small
SHOWN_SUSPECTS = 20
SHOWN_NEIGHBORS = 3
SHOWN_ODD = 12
FAR = 6.0  # deviations from the median, by the median of deviations, that stand out
MIN_SPREAD = 0.1  # of a logarithm, below which deviations count as this
NARROW = 3.0  # aspect ratio
MIN_LOOKED = 20  # images, below which none stands out


def class_of(scan: ImageScan, sample: int) -> str:
    """The label as the page shows it; empty without classes."""
    if scan.labels.ndim != 1 or scan.labels[sample] < 0:
        return ""
    return scan.names.get(int(scan.labels[sample]), f"class {int(scan.labels[sample])}")


def finding_figures(scan: ImageScan, samples: Sequence[int], prefix: str) -> List[Figure]:
    """Figures with their packs, numbers and labels, without the masks that would hide what is found."""
    return [figure._replace(caption=f"{scan.name} {figure.caption}", label=figure.label or class_of(scan, int(sample)), mask="")
            for figure, sample in zip(figures_of(scan, samples, prefix, SIDE), samples)]


class Suspects(NamedTuple):
    """Images of all packs whose features are known and that are not plain, in a row, with those whose labels are probably wrong."""

    scan_of: Array  # position of each one's pack
    sample_of: Array
    names: List[str]  # of classes
    labels: Array
    found: List[Suspect]
    agreement: float
    checked: int


def find_suspects(scans: Sequence[ImageScan], min_score: float = MIN_SCORE) -> Suspects:
    names: Dict[str, int] = {}
    kept = [~scan.is_plain[np.searchsorted(scan.looked, scan.probed)] for scan in scans]
    judged = [scan.probed[is_kept] for scan, is_kept in zip(scans, kept)]
    labels = np.array([names.setdefault(class_of(scan, sample), len(names)) for scan, own in zip(scans, judged) for sample in own], np.int64)
    scan_of = np.repeat(np.arange(len(scans)), [len(own) for own in judged])
    samples = np.concatenate(judged)
    check = find_label_errors(np.concatenate([scan.features[is_kept] for scan, is_kept in zip(scans, kept)]), labels, min_score)
    return Suspects(scan_of, samples, list(names), labels, check.suspects, check.agreement, check.checked)


def suspect_section(scans: Sequence[ImageScan]) -> Section:
    """Probable label errors of packs of classes."""
    section = Section("label-errors", "Probable label errors")
    classed = [scan for scan in scans if scan.has_classes and len(scan.probed)]
    if not classed:
        section.unchecked.append("wrong labels, as labels are no classes")
        return section
    suspects = find_suspects(classed)
    total = sum(scan.total for scan in classed)
    if not suspects.checked:
        why = f"as only {share_text(suspects.agreement)} of the labels are those of most neighbors" \
            if suspects.agreement else "as there are few images"
        section.unchecked.append(f"wrong labels, {why}")
        return section
    section.checks.append("labels that the nearest images contradict")
    if suspects.checked < total:
        section.unchecked.append(f"labels of {total - suspects.checked:,} of {total:,} images, which are not looked at, or nearly of one "
                                 "color")
    if suspects.found:
        count = len(suspects.found)
        text = (f"{counted(count, 'label')} {'is' if count == 1 else 'are'} probably wrong, of {suspects.checked:,} that were checked: "
                "images that look alike have another one.")
        text += f" The {SHOWN_SUSPECTS} most probable are shown." if count > SHOWN_SUSPECTS else ""
        rows = [suspect_row(classed, suspects, suspect, number) for number, suspect in enumerate(suspects.found[:SHOWN_SUSPECTS])]
        section.findings.append(Finding(MISLABELED, text, rows))
    return section


def suspect_row(scans: Sequence[ImageScan], suspects: Suspects, suspect: Suspect, number: int) -> Row:
    """The image, and neighbors of the class that fits better."""
    figures = []
    for position in [suspect.at, *suspect.neighbors[:SHOWN_NEIGHBORS]]:
        scan = int(suspects.scan_of[position])
        figures += finding_figures(scans[scan], [int(suspects.sample_of[position])], f"label{number}-{scan}")
    own, better = (suspects.names[number] for number in (int(suspects.labels[suspect.at]), suspect.better))
    return Row(f"labeled {own}; {len(suspect.neighbors)} of {NEIGHBORS} neighbors are {better}", figures)


def far_below(values: Array) -> Array:
    """Whether positive numbers are far below the others, by their logarithms."""
    logs = np.log(np.maximum(values, 1e-6))
    half = np.median(logs)
    return np.asarray(logs < half - FAR * max(MIN_SPREAD, 1.4826 * float(np.median(np.abs(logs - half)))))


def has_deep(scan: ImageScan) -> bool:
    """Whether any input has 16 bits."""
    return bool((scan.info.get("inputs") or {}).get("deep"))


def odd_looks(scan: ImageScan) -> List[Tuple[str, str, Array, Array]]:
    """Looks that stand out: an anchor, a text, whether images have it, and by what they are ordered, ascending."""
    is_dark, is_bright = scan.lightest < DARK, scan.darkest > LIGHT
    is_black = is_dark & has_deep(scan)  # whatever their contrast, which 16 bits lost
    flat = (scan.contrast < np.where(is_dark | is_bright, FLAT / 2, FLAT)) & ~is_black
    ratio = scan.sizes[:, 1] / scan.sizes[:, 0]
    lengths = np.maximum(ratio, 1 / ratio)
    return [("dark", "nearly black", ~flat & is_dark, scan.lightest),
            ("bright", "nearly white", ~flat & is_bright, -scan.darkest),
            ("flat", "of one color or nearly", flat, scan.contrast),
            ("blurred", "much more blurred than the others", ~flat & far_below(scan.sharpness), scan.sharpness),
            ("narrow", f"longer than {NARROW:g} to 1, and most others are not", (lengths > NARROW) & far_below(1 / lengths), -lengths)]


def look_section(scans: Sequence[ImageScan]) -> Section:
    section = Section("looks", "Odd images", checks=["images that are nearly black or white, of one color, blurred, or narrow"])
    for scan in scans:
        if len(scan.looked) < scan.total:
            section.unchecked.append(f"looks of {scan.total - len(scan.looked):,} of {scan.total:,} images of {scan.name}")
    for number, scan in enumerate(scans):
        for anchor, text, is_so, order in odd_looks(scan):
            has_lost = anchor == "dark" and has_deep(scan)
            share = float(np.mean(is_so)) if len(is_so) else 0.0
            is_normal = share > MAX_NORMAL and anchor != "flat"
            if not is_so.any() or ((is_normal or len(is_so) < MIN_LOOKED) and not has_lost):
                continue
            samples = scan.looked[np.flatnonzero(is_so)[np.argsort(order[is_so], kind="stable")]]
            rows = [Row("", finding_figures(scan, samples[:SHOWN_ODD].tolist(), f"{anchor}{number}"))]
            found = f"{scan.name}: {counted(len(samples), 'image')} of {len(scan.looked):,} {'is' if len(samples) == 1 else 'are'} {text}"
            found += f", the first is sample {int(samples.min())}" if anchor == "flat" else ""
            section.findings.append(Finding(LOST if has_lost or share > 0.05 else ODD, found + lost_text(scan, has_lost), rows))
    return section


def lost_text(scan: ImageScan, has_lost: bool) -> str:
    """Why images of 16 bits became black, and the way out."""
    if not has_lost:
        return ""
    inputs = scan.info["inputs"]
    return (f". {counted(inputs['deep'], 'input file')} {'has' if inputs['deep'] == 1 else 'have'} 16 bits, with values of at most "
            f"{inputs['max_value']:,}: pack-images --scale-from 0,{inputs['max_value']} keeps their levels")


def small_class_findings(scans: Sequence[ImageScan], texts: Sequence[Tuple[int, str, str]]) -> List[Finding]:
    """Findings of classes: positions of packs, texts, and names of the classes, of which images are shown."""
    findings: List[Finding] = []
    for number, text, name in texts:
        holders = [(at, scan, scan.labels == class_id) for at, scan in enumerate(scans) if scan.has_classes
                   for class_id, own in scan.names.items() if own == name and (scan.labels == class_id).any()]
        figures = [figure for at, scan, is_own in holders[:2]
                   for figure in finding_figures(scan, np.flatnonzero(is_own)[:6].tolist(), f"class{number}-{len(findings)}-{at}")]
        findings.append(Finding(UNEVEN, text, [Row(shown(name), figures)] if figures else []))
    return findings

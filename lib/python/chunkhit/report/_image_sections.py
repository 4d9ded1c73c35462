"""What the page says of packs of images."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from . import _charts as charts
from .._error import Error, counted
from .._pages import shown
from ._charts import Panel, Series
from ._contact_sheet import MAX_CLASSES, sheet_blocks, sheet_note, shown_classes, tile
from ._image_findings import small_class_findings
from ._image_scan import ImageScan, mask_names
from ._pack_tables import Reason, reasons_of, run_of
from ._page import Block, Section, bytes_text, looked_at, share_text
from ._perceptual import FLAT

MAX_RATIO = 10  # of the largest class to the smallest before it is a warning
TILES = 48
MAX_FILTERS = 8  # packs that page.html can show alone
ORDERS = ("sequential", "windowed", "random")
CHECKS = ["sizes of the packs' files and hashes of the chunks that were read"]
DARK, LIGHT = 16, 239


def overview(scans: Sequence[ImageScan]) -> Section:
    rows = []
    for scan in scans:
        info = scan.info
        size = info["sample"]
        shape = "each its own size" if info.get("own_sizes") else f"{size['width']} x {size['height']}"
        stored = sum(part["bytes"] for part in info["parts"])
        rows.append((scan.name, f"{scan.total:,}", f"{info.get('rejected', 0):,}", label_text(info), shape,
                     f"{size['channels']}, {size['layout']}", f"{info['container']}, {info['codec']}",
                     f"{bytes_text(stored)} / {bytes_text(info['raw_bytes'])}"))
    header = ("pack", "samples", "rejects", "labels", "pixels", "channels", "stored as", "bytes stored / raw")
    section = Section("packs", "Packs of images", [Block("", "; ".join(origin(scan) for scan in scans), header=header, rows=rows)],
                      checks=CHECKS, keys=key_figures(scans))
    for scan in scans:
        section.warnings += [f"{scan.name}: damaged: {shown(problem)}" for problem in scan.info.get("problems", [])]
    return section


def key_figures(scans: Sequence[ImageScan]) -> List[Tuple[str, str]]:
    total, rejected = sum(scan.total for scan in scans), sum(scan.info.get("rejected", 0) for scan in scans)
    classes = {name for scan in scans for name in scan.label_sets or (scan.names.values() if scan.has_classes else ())}
    shapes = {"own sizes" if scan.info.get("own_sizes") else "{width} x {height}".format(**scan.info["sample"]) for scan in scans}
    stored = sum(part["bytes"] for scan in scans for part in scan.info["parts"])
    keys = [(f"{total:,}", "images"), (f"{rejected:,}", "rejects"), (f"{len(classes):,}", "classes"),
            ("own" if shapes == {"own sizes"} else next(iter(shapes)) if len(shapes) == 1 else "various",
             "sizes" if shapes == {"own sizes"} else "pixels"), (bytes_text(stored), "stored")]
    return [key for key in keys if key != ("0", "classes")]


def label_text(info: Dict[str, Any]) -> str:
    if info["labels"]["kind"] == "numbers":
        return counted(len(info["labels"]["columns"]), "number") + (" of 0 and 1" if info.get("label_counts") else "")
    classes = sum(entry["id"] != -1 for entry in info["classes"])
    return "masks" if not classes and mask_names(info) else counted(classes, "class")


def origin(scan: ImageScan) -> str:
    """Where a pack comes from, as far as it says so."""
    if scan.info.get("external"):
        return f"{scan.name}: an external file, which does not say how it was made"
    run = run_of(scan.path)
    roots = sorted({str(root).rstrip("/").rsplit("/", 1)[-1] for root in dict(run.get("roots") or {}).values()})
    made = f"{scan.name}: made by {scan.info.get('tool') or 'an unknown version'}"
    return made + (f" of {', '.join(shown(root) for root in roots)}" if roots else ", of a folder that is not recorded")


def kind_warnings(scans: Sequence[ImageScan]) -> List[str]:
    """A warning where labels of one pack are classes and those of another numbers."""
    classes = [scan.name for scan in scans if scan.labels.ndim == 1]
    numbers = [scan.name for scan in scans if scan.labels.ndim == 2]
    if not classes or not numbers:
        return []
    return [f"labels are classes in {', '.join(classes)}, but numbers in {', '.join(numbers)}: packs of one data set need one "
            "--label-type"]


def class_section(scans: Sequence[ImageScan]) -> Section:
    section = Section("classes", "Classes", warnings=kind_warnings(scans), checks=["kinds of labels"] if len(scans) > 1 else [])
    scans = [scan for scan in scans if scan.has_classes or scan.label_sets]
    if not scans:
        return section
    section.checks += [f"classes that are uneven by more than {MAX_RATIO} to 1"] + (["classes that a pack lacks"] if len(scans) > 1 else [])
    tables = [scan.class_counts for scan in scans]
    texts = [(number, *found) for number, (scan, table) in enumerate(zip(scans, tables)) for found in ratio_warnings(scan, table)]
    section.findings += small_class_findings(scans, texts + missing_classes(scans, tables))
    section.blocks.append(class_block(scans, tables))
    return section


def class_block(scans: Sequence[ImageScan], tables: List[Dict[str, int]]) -> Block:
    """Bars of the classes; a click on the name of a class shows its images alone."""
    ordered = shown_classes(scans)
    every = {name for table in tables for name in table}
    with_images = len({name for table in tables for name, count in table.items() if count})
    ratio = max(largest_ratio(table) for table in tables)
    note = "Classes have about as many images each." if ratio < 1.5 else \
        f"The largest class has {ratio:.1f} times the images of the smallest."
    if any(scan.label_sets for scan in scans):
        note += " An image may have several."
    if len(scans) > 1:
        note += " Bars are shares of each pack, numbers are images."
    if with_images > MAX_CLASSES:
        note += (f" The {MAX_CLASSES // 2} largest and the {MAX_CLASSES // 2} smallest of {with_images:,} classes; "
                 f"{with_images - MAX_CLASSES:,} between them are left out.")
    if len(every) > max(MAX_CLASSES, with_images):
        note += f" {counted(len(every) - with_images, 'class')} without images are left out."
    classed = [scan.class_counts for scan in scans if scan.has_classes]
    filled = [name for name in ordered if any(table.get(name) for table in classed)]
    note += " A click on a class shows its images alone." if filled else ""
    series = [Series(scan.name, [table.get(name, 0) for name in ordered], charts.pack_color(index))
              for index, (scan, table) in enumerate(zip(scans, tables))]
    return Block("", note, bars=[charts.bars(ordered, series, links={name: f"show{number}" for number, name in enumerate(filled)})])


def largest_ratio(table: Dict[str, int]) -> float:
    counts = [count for count in table.values() if count]
    return max(counts) / min(counts) if counts else 1.0


def ratio_warnings(scan: ImageScan, table: Dict[str, int]) -> List[Tuple[str, str]]:
    """A text with its smallest class, where classes are uneven."""
    if largest_ratio(table) <= MAX_RATIO:
        return []
    filled = {label: count for label, count in table.items() if count}
    most, least = max(filled, key=lambda label: filled[label]), min(filled, key=lambda label: filled[label])
    advice = '; sampler="balanced" draws each class as often' if scan.has_classes and scan.is_for_training else ""
    return [(f"{scan.name}: {most} has {filled[most]:,} images, {least} {filled[least]:,}: more than {MAX_RATIO} to 1{advice}", least)]


def missing_classes(scans: Sequence[ImageScan], tables: List[Dict[str, int]]) -> List[Tuple[int, str, str]]:
    """Classes that one pack has and another of the same data set lacks: positions of packs, texts, and the first class."""
    found = []
    for number, (scan, table) in enumerate(zip(scans, tables)):
        related = [other for other in tables if has_same_classes(table, other)]
        lacking = sorted({name for other in related for name, count in other.items() if count and not table.get(name)})
        if lacking:
            shown_names = ", ".join(lacking[:5]) + (", …" if len(lacking) > 5 else "")
            text = f"{scan.name}: has no image of {counted(len(lacking), 'class')} that other packs have: {shown_names}"
            found.append((number, text, lacking[0]))
    return found


def has_same_classes(table: Dict[str, int], other: Dict[str, int]) -> bool:
    """Whether packs share most of their classes: those of a split do, also where one has no image of some."""
    return 2 * len(table.keys() & other.keys()) > min(len(table), len(other))


def sheet_section(scans: Sequence[ImageScan], seed: int) -> Section:
    blocks = sheet_blocks(scans, seed)
    most = len({name for scan in scans if scan.has_classes for name, count in scan.class_counts.items() if count})
    figures = [figure for block in blocks for figure in block.figures]
    some = [figures[at] for at in np.linspace(0, len(figures) - 1, min(TILES, len(figures))).astype(int)]
    return Section("sheet", "Contact sheet", [Block("", sheet_note(scans, most)), *blocks],
                   filters=[(scan.name, number) for number, scan in enumerate(scans[:MAX_FILTERS])] if len(scans) > 1 else [],
                   tiles=[(tile(figure), figure.anchor, figure.caption) for figure in some])


def brightness_section(scans: Sequence[ImageScan]) -> Section:
    section = Section("brightness", "Brightness and channels", checks=["channels of one value"])
    rows = []
    for scan in scans:
        rows.append((scan.name, looked_at(len(scan.looked), scan.total, "image"), f"{np.median(scan.brightness):.0f}",
                     *(share_text(float(np.mean(found))) for found in (
                         scan.brightness < DARK, scan.brightness > LIGHT, scan.contrast < FLAT))))
        section.warnings += clipped_warnings(scan)
    edges = np.linspace(0, 256, 65)
    means = [Series(scan.name, np.histogram(scan.brightness, edges)[0], charts.pack_color(index))
             for index, scan in enumerate(scans)]
    panels = [charts.pack_histogram("brightness", Panel(edges, means, "mean brightness of an image", title="images")),
              *(channel_panel(scan, index, edges) for index, scan in enumerate(scans[:MAX_FILTERS]))]
    header = ("pack", "images", "median", f"nearly black (below {DARK})", f"nearly white (above {LIGHT})", "of one color")
    section.blocks.append(Block("", "Of 255; at most 16,384 pixels of an image.", panels, header=header, rows=rows))
    return section


def clipped_warnings(scan: ImageScan) -> List[str]:
    shares = scan.counts / np.maximum(scan.counts.sum(axis=1, keepdims=True), 1)
    lost = [f"channel {channel}" for channel in range(len(shares)) if shares[channel].max() > 0.999]
    return [f"{scan.name}: {', '.join(lost)}: nearly all pixels have one value"] if lost else []


def channel_panel(scan: ImageScan, index: int, edges: np.ndarray[Any, Any]) -> str:
    """How often channels have each value."""
    values = scan.counts.reshape(len(scan.counts), 64, 4).sum(axis=2)
    values = 100 * values / np.maximum(values.sum(axis=1, keepdims=True), 1)
    names = {1: ("gray",), 2: ("gray", "alpha"), 3: ("red", "green", "blue"), 4: ("red", "green", "blue", "alpha")}
    colors = {"red": charts.RED, "green": charts.GREEN, "blue": charts.BLUE}
    own = names.get(len(values), [f"channel {channel}" for channel in range(len(values))])
    series = [Series(name, counts, colors.get(name, charts.ACCENT)) for name, counts in zip(own, values)]
    return charts.histogram(f"channels{index}", Panel(edges, series, "value of a channel", title=f"{scan.name}, % of pixels"))


def reject_section(scans: Sequence[ImageScan]) -> Section:
    """Rejects and warnings of the packs that have any."""
    section = Section("rejects", "Rejects and warnings", checks=["rejects"])
    for table, column, what, key in (("rejects", "reason", "rejected", "rejected"),
                                     ("warnings", "warning", "packed with warnings", "warned")):
        section.blocks += [table_block(scan, table, column, what) for scan in scans if scan.info.get(key)]
    for scan in scans:
        rejected, rows = scan.info.get("rejected", 0), scan.info.get("rows", 0)
        if rejected:
            section.warnings.append(f"{scan.name}: {rejected:,} of {counted(rows, 'row')} "
                                    f"{'was' if rejected == 1 else 'were'} rejected, {share_text(rejected / rows)}{main_reason(scan)}")
    return section


def main_reason(scan: ImageScan) -> str:
    """Behind a number of rejects: why, for the most of them. A server may not have their table."""
    try:
        reason = reasons_of(scan.path, "rejects", "reason")[0]
    except (Error, IndexError):
        return ""
    return f": {shown(reason.text)}" if reason.rows == scan.info["rejected"] else f"; {reason.rows:,} of them: {shown(reason.text)}"


def table_block(scan: ImageScan, table: str, column: str, what: str) -> Block:
    total = scan.info["rejected" if table == "rejects" else "warned"]
    title = f"{scan.name}: {total:,} {what}"
    try:
        reasons: List[Reason] = reasons_of(scan.path, table, column)
    except Error as error:
        if "://" not in scan.path:
            raise
        return Block(title, f"The reasons are not known: {shown(str(error))}")  # a server may not have the table
    rows = [(f"{reason.rows:,}", shown(reason.text), ", ".join(shown(file) for file in reason.files))
            for reason in reasons[:20]]
    kinds = f"{len(reasons)} kinds" if len(reasons) <= 20 else f"The 20 most frequent of {len(reasons)} kinds"
    note = f"{kinds} of reasons; the first text of each." if len(reasons) > 1 else ""
    return Block(title, note, header=("images", column, "files, the first ones"), rows=rows)


def chunk_section(scans: Sequence[ImageScan]) -> Section:
    """Parts and chunks, and what h5py's chunk cache finds of HDF5 packs of one shape."""
    rows, advice = [], []
    has_hits = any(scan.info.get("advised_cache") and not scan.info["default_cache"]["bypass"] for scan in scans)
    for scan in scans:
        info = scan.info
        plain: Any = info.get("default_cache")
        advised: Any = info.get("advised_cache")
        samples = f"{info['chunk_samples']:,}" if info.get("chunk_samples") else "various"
        hits = ["–" if not advised else "not used" if plain["bypass"] else f"{share_text(plain[order])}, {share_text(advised[order])}"
                for order in (ORDERS if has_hits else ())]
        rows.append((scan.name, f"{len(info['parts']):,}", f"{sum(part['chunks'] for part in info['parts']):,}", samples,
                     bytes_text(info.get("chunk_bytes", 0)), *hits))
        if advised and not plain["bypass"]:
            advice.append(f"{scan.name}: rdcc_nbytes={advised['rdcc_nbytes']}, rdcc_nslots={advised['rdcc_nslots']}, "
                          f"rdcc_w0={advised['rdcc_w0']}")
    header = ["pack", "parts", "chunks", "samples a chunk", "bytes a chunk", *(f"hits, {order}" for order in ORDERS if has_hits)]
    note = "Hits are predicted for single samples read with h5py: with its cache as it comes, and as advised. " if advice else ""
    return Section("chunks", "Parts and chunks", [Block("", note + "; ".join(advice), header=header, rows=rows)])

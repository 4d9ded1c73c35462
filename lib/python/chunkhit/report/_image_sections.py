"""What the page says of packs of images."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import _charts as charts
from .._error import Error
from ._charts import Mark, Panel, Series
from ._contact_sheet import contact_sheet, sheet_note
from ._image_scan import ImageScan
from ._pack_tables import Reason, reasons_of, run_of
from ._page import Block, Section, bytes_text, counted, looked_at, share_text, shown

MAX_RATIO = 10  # of the largest class to the smallest before it is a warning
SHOWN_CLASSES = 30
SHOWN_PARTS = 8
DARK, LIGHT, FLAT = 16, 239, 2.0


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
    title = f"{counted(len(scans), 'pack')}, {counted(sum(scan.total for scan in scans), 'image')}"
    note = "; ".join(origin(scan) for scan in scans)
    section = Section("packs", "Packs of images", [Block(title, note, header=header, rows=rows)])
    for scan in scans:
        section.warnings += [f"{scan.name}: damaged: {shown(problem)}" for problem in scan.info.get("problems", [])]
    return section


def label_text(info: Dict[str, Any]) -> str:
    if info["labels"]["kind"] == "numbers":
        return counted(len(info["labels"]["columns"]), "number")
    return counted(len(info["classes"]), "class")


def origin(scan: ImageScan) -> str:
    """Where a pack comes from, as far as it says so."""
    if scan.info.get("external"):
        return f"{scan.name}: an external file, which does not say how it was made"
    run = run_of(scan.path)
    roots = sorted({str(root) for root in dict(run.get("roots") or {}).values()})
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
    section = Section("classes", "Classes", warnings=kind_warnings(scans))
    scans = [scan for scan in scans if scan.labels.ndim == 1]
    if not scans:
        return section
    names: Dict[str, None] = {}
    tables = []
    for scan in scans:
        own = scan.names
        ids, counts = np.unique(scan.labels, return_counts=True)
        table = {name: 0 for name in own.values()}
        for class_id, count in zip(ids.tolist(), counts.tolist()):
            name = own.get(class_id, f"class {class_id}")
            table[name] = table.get(name, 0) + count
        names.update(dict.fromkeys(table))
        tables.append(table)
    section.warnings += [warning for scan, table in zip(scans, tables) for warning in ratio_warnings(scan, table)]
    section.warnings += missing_classes(scans, tables)
    section.blocks.append(class_block(scans, tables, list(names), bool(section.warnings)))
    return section


def class_block(scans: Sequence[ImageScan], tables: List[Dict[str, int]], names: List[str], is_uneven: bool) -> Block:
    ordered = sorted(names, key=lambda name: -sum(table.get(name, 0) for table in tables))
    note = ""
    if len(ordered) > SHOWN_CLASSES:
        note = (f"The {SHOWN_CLASSES // 2} largest and the {SHOWN_CLASSES // 2} smallest of {len(ordered):,} classes; "
                f"{len(ordered) - SHOWN_CLASSES:,} between them are left out.")
        ordered = ordered[:SHOWN_CLASSES // 2] + ordered[-(SHOWN_CLASSES // 2):]
    panels = [Series(scan.name, [table.get(name, 0) for name in ordered], (charts.ACCENT, charts.SECOND)[index % 2])
              for index, (scan, table) in enumerate(zip(scans, tables))]
    ratio = max(largest_ratio(table) for table in tables)
    title = "Classes are uneven" if is_uneven else "All classes have about as many images" if ratio < 1.5 else \
        f"The largest class has {ratio:.1f} times the images of the smallest"
    return Block(title, note, charts.bars("classes", ordered, panels))


def largest_ratio(table: Dict[str, int]) -> float:
    counts = [count for count in table.values() if count]
    return max(counts) / min(counts) if counts else 1.0


def ratio_warnings(scan: ImageScan, table: Dict[str, int]) -> List[str]:
    if largest_ratio(table) <= MAX_RATIO:
        return []
    filled = {label: count for label, count in table.items() if count}
    most, least = max(filled, key=lambda label: filled[label]), min(filled, key=lambda label: filled[label])
    advice = '; sampler="balanced" draws each class as often' if scan.is_for_training else ""
    return [f"{scan.name}: {most} has {filled[most]:,} images, {least} {filled[least]:,}: more than {MAX_RATIO} to 1{advice}"]


def missing_classes(scans: Sequence[ImageScan], tables: List[Dict[str, int]]) -> List[str]:
    """Warnings of classes that one pack has and another of the same data set lacks."""
    found = []
    for scan, table in zip(scans, tables):
        related = [other for other in tables if has_same_classes(table, other)]
        lacking = sorted({name for other in related for name, count in other.items() if count and not table.get(name)})
        if lacking:
            shown_names = ", ".join(lacking[:5]) + (", …" if len(lacking) > 5 else "")
            found.append(f"{scan.name}: has no image of {counted(len(lacking), 'class')} that other packs have: {shown_names}")
    return found


def has_same_classes(table: Dict[str, int], other: Dict[str, int]) -> bool:
    """Whether packs share most of their classes: those of a split do, also where one has no image of some."""
    return 2 * len(table.keys() & other.keys()) > min(len(table), len(other))


def sheet_section(scans: Sequence[ImageScan], seed: int) -> Section:
    blocks = [block for number, scan in enumerate(scans) for block in contact_sheet(scan, number, scans, seed)]
    most = max(len(scan.info["classes"]) for scan in scans)
    return Section("sheet", "Contact sheet", [Block("Images as they are stored", sheet_note(scans, most)), *blocks])


def brightness_section(scans: Sequence[ImageScan]) -> Section:
    section = Section("brightness", "Brightness and channels")
    for index, scan in enumerate(scans):
        dark, light = float(np.mean(scan.brightness < DARK)), float(np.mean(scan.brightness > LIGHT))
        flat = np.flatnonzero(scan.contrast < FLAT)
        title = f"{scan.name}: half of the images have a mean brightness below {np.median(scan.brightness):.0f} of 255"
        note = (f"{looked_at(len(scan.looked), scan.total, 'image')}, at most 16,384 pixels of each. Nearly black (below "
                f"{DARK}): {share_text(dark)}, nearly white (above {LIGHT}): {share_text(light)}, "
                f"of one color: {share_text(len(flat) / len(scan.looked))}.")
        section.blocks.append(Block(title, note, brightness_chart(scan, index)))
        if len(flat) > max(1, 0.01 * len(scan.looked)):
            section.warnings.append(f"{scan.name}: {len(flat):,} of {counted(len(scan.looked), 'image')} are of one color, "
                                    f"the first is sample {int(scan.looked[flat[0]])}")
        section.warnings += clipped_warnings(scan)
    return section


def clipped_warnings(scan: ImageScan) -> List[str]:
    shares = scan.counts / np.maximum(scan.counts.sum(axis=1, keepdims=True), 1)
    lost = [f"channel {channel}" for channel in range(len(shares)) if shares[channel].max() > 0.999]
    return [f"{scan.name}: {', '.join(lost)}: nearly all pixels have one value"] if lost else []


def brightness_chart(scan: ImageScan, index: int) -> str:
    edges = np.linspace(0, 256, 65)
    images = np.histogram(scan.brightness, edges)[0]
    values = scan.counts.reshape(len(scan.counts), 64, 4).sum(axis=2)
    values = 100 * values / np.maximum(values.sum(axis=1, keepdims=True), 1)
    names = {1: ("gray",), 2: ("gray", "alpha"), 3: ("red", "green", "blue"), 4: ("red", "green", "blue", "alpha")}
    colors = {"red": charts.RED, "green": charts.GREEN, "blue": charts.BLUE}
    own = names.get(len(values), [f"channel {channel}" for channel in range(len(values))])
    series = [Series(name, counts, colors.get(name, charts.ACCENT)) for name, counts in zip(own, values)]
    median = float(np.median(scan.brightness))
    return charts.histogram(f"brightness{index}", [
        Panel(edges, [Series("images", images)], "mean brightness of an image", [Mark(median, f"median {median:.0f}")]),
        Panel(edges, series, "values of pixels, % of a channel")])


def reject_section(scans: Sequence[ImageScan]) -> Section:
    """Rejects and warnings of the packs that have any."""
    section = Section("rejects", "Rejects and warnings")
    for table, column, what, key in (("rejects", "reason", "rejected", "rejected"),
                                     ("warnings", "warning", "packed with warnings", "warned")):
        for index, scan in enumerate(scans):
            if scan.info.get(key):
                section.blocks.append(table_block(scan, table, column, what, index))
    for scan in scans:
        rejected, rows = scan.info.get("rejected", 0), scan.info.get("rows", 0)
        if rejected:
            section.warnings.append(f"{scan.name}: {rejected:,} of {counted(rows, 'row')} "
                                    f"{'was' if rejected == 1 else 'were'} rejected, {share_text(rejected / rows)}")
    return section


def table_block(scan: ImageScan, table: str, column: str, what: str, index: int) -> Block:
    try:
        reasons: List[Reason] = reasons_of(scan.path, table, column)
    except Error as error:
        if "://" not in scan.path:
            raise
        total = scan.info["rejected" if table == "rejects" else "warned"]  # a server may not have the table
        return Block(f"{scan.name}: {counted(total, 'image')} {'was' if total == 1 else 'were'} {what}",
                     f"The reasons are not known: {shown(str(error))}")
    total = sum(reason.rows for reason in reasons)
    rows = [(f"{reason.rows:,}", shown(reason.text), ", ".join(shown(file) for file in reason.files))
            for reason in reasons[:20]]
    kinds = f"{len(reasons)} kinds" if len(reasons) <= 20 else f"The 20 most frequent of {len(reasons)} kinds"
    note = f"{kinds} of reasons; the first text of each." if len(reasons) > 1 else ""
    most = reasons[:8]
    series = Series(f"images {what}", [reason.rows for reason in most], charts.SECOND)
    svg = charts.bars(f"{table}{index}", [shown(reason.text) for reason in most], [series]) if len(most) > 1 else ""
    return Block(f"{scan.name}: {counted(total, 'image')} {'was' if total == 1 else 'were'} {what}", note, svg,
                 header=("images", column, "files, the first ones"), rows=rows)


def chunk_section(scans: Sequence[ImageScan]) -> Section:
    section = Section("chunks", "Parts and chunks")
    for index, scan in enumerate(scans):
        info = scan.info
        parts = [(part["file"], part["samples"], part["chunks"]) for part in info["parts"]]
        count, size = info.get("chunk_samples", 0), bytes_text(info.get("chunk_bytes", 0))
        title = f"{scan.name}: {counted(len(parts), 'part')}, {counted(sum(chunks for _, _, chunks in parts), 'chunk')}"
        if info.get("chunk_bytes"):
            title += f" of {counted(count, 'sample')} = {size}" if count else f" of up to {size}"
        note = "" if len(parts) <= SHOWN_PARTS else f"The first {SHOWN_PARTS} of {counted(len(parts), 'part')}."
        if any(samples for _, samples, _ in parts):
            section.blocks.append(Block(title, note, charts.part_rows(f"parts{index}", parts[:SHOWN_PARTS], count)))
        section.blocks += cache_blocks(scan, index)
    return section


def cache_blocks(scan: ImageScan, index: int) -> List[Block]:
    """What h5py's chunk cache finds; it reads HDF5 packs of one shape alone."""
    plain, advised = scan.info.get("default_cache"), scan.info.get("advised_cache")
    if not plain or not advised:
        return []
    setting = f"rdcc_nbytes={advised['rdcc_nbytes']}, rdcc_nslots={advised['rdcc_nslots']}, rdcc_w0={advised['rdcc_w0']}"
    orders = ("sequential", "windowed", "random")
    rates: List[Tuple[str, Optional[List[float]]]] = [
        (name, None if cache["bypass"] else [100 * cache[order] for order in orders])
        for name, cache in (("h5py as it comes", plain), ("advised", advised))]
    panels = [Series(name, values, color)
              for (name, values), color in zip(rates, (charts.SECOND, charts.ACCENT)) if values]
    if not panels:
        return [Block(f"{scan.name}: single samples are read exactly, past h5py's cache")]
    least, most = (share_text(end(panels[0].values) / 100) for end in (min, max))
    title = f"{scan.name}: h5py finds {least if least == most else f'{least} to {most}'} of the samples in its cache"
    if len(panels) > 1 and panels[0].values != panels[1].values:
        title += f" as it comes, with the advised one {share_text(min(panels[1].values) / 100)} or more"
    return [Block(title, f"Predicted hits of reading single samples with h5py in three orders; advised: {setting}.",
                  charts.bars(f"cache{index}", orders, panels, " %"))]

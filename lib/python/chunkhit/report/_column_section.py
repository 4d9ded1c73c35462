"""Columns that are kept beside the labels, and labels that are numbers."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from .._chunkhit import may_be_ids
from .._error import counted
from .._pages import shown
from . import _charts as charts
from ._charts import Panel, Series
from ._image_findings import finding_figures
from ._image_scan import ImageScan
from ._page import LEAK, Block, Finding, Row, Section

MAX_VALUES = 24  # of whole numbers that are shown one by one
TOP_TEXTS = 12
SHOWN_IDS = 6  # that packs have in common


class Column(NamedTuple):
    """A column of a pack: its own values, of all samples."""

    pack: str
    values: np.ndarray[Any, Any]

    @property
    def known(self) -> np.ndarray[Any, Any]:
        """Without missing values."""
        is_known = self.values != "" if self.values.dtype == object else np.isfinite(self.values)
        return np.asarray(self.values[is_known])


def label_section(scans: Sequence[ImageScan]) -> Section:
    """Labels that are numbers, without those of 0 and 1, which are classes."""
    columns: Dict[str, List[Column]] = {}
    for scan in scans:
        if scan.labels.ndim == 2 and not scan.label_sets:
            for name, values in zip(scan.info["labels"]["columns"], scan.labels.T):
                columns.setdefault(name, []).append(Column(scan.name, values.astype(np.float64)))
    return Section("labels", "Labels", column_blocks(columns, "label"))


def column_section(scans: Sequence[ImageScan]) -> Section:
    columns: Dict[str, List[Column]] = {}
    for scan in scans:
        for column in scan.info.get("columns", []):
            columns.setdefault(column["name"], []).append(Column(scan.name, scan.dataset.column(column["name"])))
    specs = {scan.name: scan.info.get("spec", {}) for scan in scans}
    split = {name for name, spec in specs.items() if "split-name" in spec or spec.get("split-folders", "none") != "none"}
    of_split = {name: [column for column in own if column.pack in split] for name, own in columns.items()}
    findings = [finding for name, own in of_split.items() if own for finding in shared_ids(scans, name, own)]
    section = Section("columns", "Kept columns", column_blocks(columns, "column"), findings=findings)
    if len(split) > 1:
        section.checks += ["values of columns of ids that packs of a split have in common"] if columns else []
        section.unchecked += [] if columns else ["groups that packs share, as patients: no column is kept (--keep-columns)"]
    return section


def shared_ids(scans: Sequence[ImageScan], name: str, columns: Sequence[Column]) -> List[Finding]:
    """A finding where packs have ids in common, with an image of each pack."""
    known = [set(column.known.tolist()) for column in columns]
    every = set().union(*known)
    shared = [value for value in every if sum(value in values for values in known) > 1]
    values = columns[0].values
    is_counted = values.dtype == object or np.issubdtype(values.dtype, np.integer)
    count = sum(len(column.known) for column in columns)
    if not shared or not is_counted or not may_be_ids(name, values.dtype == object, len(every), count):
        return []
    rows = [Row(f"{shown(name)} {shown(str(value))}", group_figures(scans, columns, value, f"group{number}"))
            for number, value in enumerate(sorted(shared)[:SHOWN_IDS])]
    text = (f"Column {shown(name)}: {len(shared):,} of {counted(len(every), 'value')} {'is' if len(shared) == 1 else 'are'} in several "
            f"packs of the split, as {shown(str(min(shared)))}. A model is tested on what it was trained on; pack-images "
            f"--split-group {shown(name)} keeps the images of a value in one pack.")
    return [Finding(LEAK, text, rows)]


def group_figures(scans: Sequence[ImageScan], columns: Sequence[Column], value: Any, prefix: str) -> List[Any]:
    """The first image of this value of each of two packs."""
    of_packs = {scan.name: (number, scan) for number, scan in enumerate(scans)}
    found = [(of_packs[column.pack], np.flatnonzero(column.values == value)) for column in columns]
    return [figure for (number, scan), samples in [pair for pair in found if len(pair[1])][:2]
            for figure in finding_figures(scan, samples[:1].tolist(), f"{prefix}-{number}")]


def column_blocks(columns: Dict[str, List[Column]], chart: str) -> List[Block]:
    return [column_block(name, own, f"{chart}{at}") for at, (name, own) in enumerate(columns.items())]


def column_block(name: str, columns: Sequence[Column], chart: str) -> Block:
    """A column of all packs that have it."""
    known = [column for column in columns if len(column.known)]
    if not known:
        return Block(shown(name), "All values are missing.")
    kinds = {column.values.dtype == object for column in known}
    if kinds == {True, False}:
        return Block(shown(name), "Text in some packs, numbers in others.")
    return text_block(name, known, missing_text(columns), chart) if kinds == {True} else \
        number_block(name, known, missing_text(columns), chart)


def missing_text(columns: Sequence[Column]) -> str:
    counts = [(column.pack, len(column.values) - len(column.known), len(column.values)) for column in columns]
    return " ".join(f"{pack}: {missing:,} of {counted(total, 'value')} {'is' if missing == 1 else 'are'} missing."
                    for pack, missing, total in counts if missing)


def text_block(name: str, columns: Sequence[Column], missing: str, chart: str) -> Block:
    counts: Dict[str, int] = {}
    tables: List[Dict[str, int]] = []
    for column in columns:
        values, numbers = np.unique(column.known.astype(str), return_counts=True)
        tables.append(dict(zip(values.tolist(), numbers.tolist())))
        for value, number in tables[-1].items():
            counts[value] = counts.get(value, 0) + number
    if len(counts) > TOP_TEXTS and max(counts.values()) == 1:
        return Block(shown(name), f"{counted(len(counts), 'text')}, no two of them equal, as {shown(min(counts))}. {missing}")
    top = sorted(counts, key=lambda value: (-counts[value], value))[:TOP_TEXTS]
    panels = [Series(column.pack, [table.get(value, 0) for value in top], charts.pack_color(index))
              for index, (column, table) in enumerate(zip(columns, tables))]
    note = missing if len(top) == len(counts) else f"The {len(top)} most frequent are shown. {missing}"
    found = f"Every text is {shown(top[0])}." if len(counts) == 1 else f"{counted(len(counts), 'text')}."
    return Block(shown(name), f"{found} {note}", bars=[charts.bars([shown(value) for value in top], panels)])


def number_block(name: str, columns: Sequence[Column], missing: str, chart: str) -> Block:
    values = np.concatenate([column.known for column in columns])
    least, most = values.min(), values.max()
    if least == most:
        return Block(shown(name), f"Every value is {number_text(least)}. {missing}")
    halves = ", ".join(f"{number_text(np.median(column.known))} in {column.pack}" for column in columns)
    note = f"{number_text(least)} to {number_text(most)}; the median is {halves}. {missing}"
    distinct = np.unique(values)
    if len(distinct) <= MAX_VALUES and np.all(distinct == np.round(distinct)):
        series = [Series(column.pack, [int((column.known == value).sum()) for value in distinct], charts.pack_color(index))
                  for index, column in enumerate(columns)]
        return Block(shown(name), note, bars=[charts.bars([number_text(value) for value in distinct], series)])
    edges, label, log = number_edges(values)
    series = [Series(column.pack, np.histogram(column.known, edges)[0], charts.pack_color(index))
              for index, column in enumerate(columns)]
    return Block(shown(name), note, [charts.pack_histogram(chart, Panel(edges, series, label, log=log, title="samples"))])


def number_edges(values: np.ndarray[Any, Any]) -> Tuple[np.ndarray[Any, Any], str, bool]:
    """Edges of 40 ranges at most; whole numbers lie between them, and positive ones of many sizes get ranges that widen."""
    least, most = float(values.min()), float(values.max())
    if least > 0 and most / least > 1000:
        return np.geomspace(least, np.nextafter(most, np.inf), 41), "value", True
    if np.issubdtype(values.dtype, np.integer) and most - least < 1 << 52:
        step = max(1, -(-int(most - least + 1) // 40))
        return np.arange(least, most + step + 1, step) - 0.5, "value", False
    return np.linspace(least, most, 41), "value", False


def number_text(number: float) -> str:
    return f"{number:,.0f}" if number == round(number) else f"{number:,.5g}"

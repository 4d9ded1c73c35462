"""Charts as SVG, drawn by matplotlib. Text stays text; colors are the page's CSS variables, so that light and dark mode
have their own."""
from __future__ import annotations

import colorsys
import io
import re
import warnings
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

# A color of matplotlib stands for each variable of the page's style.
VARIABLES = {"#010201": "fg", "#010202": "muted", "#010203": "grid", "#010204": "accent", "#010205": "second",
             "#010206": "red", "#010207": "green", "#010208": "blue", "#010209": "bg"}
FG, MUTED, GRID, ACCENT, SECOND, RED, GREEN, BLUE, BACK = VARIABLES
STYLE: Dict[str, Any] = {
    "svg.fonttype": "none", "text.parse_math": False, "font.family": "DejaVu Sans", "font.size": 10, "text.color": FG,
    "axes.edgecolor": MUTED, "axes.labelcolor": MUTED, "axes.spines.top": False, "axes.spines.right": False,
    "axes.facecolor": "none", "axes.titlesize": 10, "axes.titlelocation": "left", "axes.titlecolor": FG,
    "axes.axisbelow": True, "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelsize": 9, "ytick.labelsize": 9,
    "grid.color": GRID, "figure.facecolor": "none", "savefig.facecolor": "none", "lines.linewidth": 1.8,
    "axes.unicode_minus": False,
}
WIDTH = 7.6  # inches
MAX_PANELS = 4
READABLE = 0.75  # of a chart's own size


class Series(NamedTuple):
    """Numbers with the name that stands at them."""

    name: str
    values: Any
    color: Any = ACCENT  #: one, or of bars one each


class Mark(NamedTuple):
    """A number that is marked in a panel."""

    at: float
    name: str


class Panel(NamedTuple):
    """Counts between edges, one series or several, for a histogram."""

    edges: Any
    series: Sequence[Series]
    x_label: str
    marks: Sequence[Mark] = ()
    log: bool = False


def mask_colors() -> List[str]:
    """Colors of the 256 values of masks: steps of an irrational part of the hues, so that those in use differ; 255 is gray."""
    return ["#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hsv_to_rgb(value * 2 ** 0.5 % 1, 0.85, 0.9))
            for value in range(255)] + ["#808080"]


def short(text: str, most: int = 28) -> str:
    return text if len(text) <= most else text[:most - 1] + "…"


def plain(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:.3g}"


class Chart:
    """A figure of some axes side by side; `svg()` gives what was drawn on them."""

    def __init__(self, name: str, height: float, columns: int = 1, width: float = WIDTH, **options: Any) -> None:
        import matplotlib  # type: ignore
        from matplotlib.figure import Figure  # type: ignore

        self._name = name
        style: Dict[Any, Any] = {**STYLE, "svg.hashsalt": name}
        self._style = matplotlib.rc_context(style)
        self._style.__enter__()
        self._figure = Figure(figsize=(width, height), layout="constrained")
        self.axes: List[Any] = list(self._figure.subplots(1, columns, squeeze=False, **options)[0])

    def svg(self) -> str:
        written = io.StringIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")  # browsers have more fonts
            metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            self._figure.savefig(written, format="svg", metadata=metadata)
        self._style.__exit__(None, None, None)
        return inline(written.getvalue(), self._name)


def inline(svg: str, name: str) -> str:
    """The SVG as an element of the page: ids of its own, variables for colors, as wide as there is room, but no smaller
    than its text can be read."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    for color, variable in VARIABLES.items():
        svg = svg.replace(color, f"var(--{variable})")
    svg = re.sub(r"font: ([0-9.]+)px [^;\"]*", r"font-size: \1px", svg)
    found = re.search(r'width="([0-9.]+)pt"', svg)
    assert found
    width = float(found.group(1)) * 4 / 3
    head = f'<svg class="chart" role="img" style="max-width: {width:.0f}px; min-width: {READABLE * width:.0f}px"'
    return head + re.sub(r'\s(?:width|height)="[0-9.]+pt"', "", svg[4:], count=2)


def bars(name: str, labels: Sequence[str], panels: Sequence[Series], unit: str = "") -> str:
    """Horizontal bars with their numbers at the ends; up to four panels beside each other, with the labels at the first."""
    if len(panels) > MAX_PANELS:
        rest = bars(f"{name}-{len(panels)}", labels, panels[MAX_PANELS:], unit)
        return bars(name, labels, panels[:MAX_PANELS], unit) + rest
    chart = Chart(name, 0.55 + 0.25 * len(labels), len(panels), sharey=True)
    rows = np.arange(len(labels))
    for axes, series in zip(chart.axes, panels):
        values = np.asarray(series.values, dtype=float)
        axes.barh(rows, values, 0.72, color=series.color)
        for row, value in zip(rows, values):
            axes.annotate(f"{plain(value)}{unit}", (value, row), (4, 0), textcoords="offset points", va="center",
                          fontsize=9)
        axes.set_title(short(series.name, 60 // len(panels)))
        axes.set_xlim(0, max(1e-9, values.max() if len(values) else 1) * (1.12 + 0.12 * len(panels)))
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(axis="y", length=0)
    chart.axes[0].set_yticks(rows, [short(label, 46 if len(panels) == 1 else 34) for label in labels])
    chart.axes[0].set_ylim(len(labels) - 0.4, -0.6)
    return chart.svg()


def histogram(name: str, panels: Sequence[Panel], titles: bool = False) -> str:
    """Counts between edges, as outlines with their names above; of one series filled, with `titles` below its name."""
    chart = Chart(name, 2.7 if titles else 2.5, len(panels))
    for axes, panel in zip(chart.axes, panels):
        for series in panel.series:
            axes.stairs(np.asarray(series.values, dtype=float), panel.edges, color=series.color,
                        fill=len(panel.series) == 1, linewidth=1.6)
        name_series(axes, panel.series)
        if titles:
            axes.set_title(short(panel.series[0].name, 60 // len(panels)))
        axes.set_xlabel(panel.x_label)
        axes.set_ylim(0, 1.22 * max(1e-9, *(float(np.max(series.values)) for series in panel.series)))
        axes.yaxis.set_major_formatter(lambda value, _: plain(value))
        axes.yaxis.set_major_locator(ticker(4))
        axes.grid(axis="y", linewidth=0.6)
        if panel.log:
            axes.set_xscale("log")
            log_ticks(axes, panel.edges)
        draw_marks(axes, panel)
    return chart.svg()


def draw_marks(axes: Any, panel: Panel) -> None:
    """Lines at numbers, with their names on the side that has more room; several below each other."""
    low, high = axes.get_xlim()
    for row, mark in enumerate(panel.marks):
        share = np.log(mark.at / low) / np.log(high / low) if panel.log else (mark.at - low) / (high - low)
        axes.axvline(mark.at, color=FG, linewidth=1, linestyle=(0, (3, 3)))
        axes.annotate(mark.name, (mark.at, 1), (4 if share < 0.5 else -4, -3 - 12 * (row + (len(panel.series) > 1))), va="top",
                      ha="left" if share < 0.5 else "right", fontsize=9, xycoords=("data", "axes fraction"),
                      textcoords="offset points")


def log_ticks(axes: Any, edges: Any) -> None:
    """Up to six ticks at round numbers that a person divides by: 1, 2, 5 or powers of two."""
    from matplotlib.ticker import FixedLocator, NullLocator  # type: ignore

    low, high = float(edges[0]), float(edges[-1])
    for steps in ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0 ** power for power in range(-7, 19) for step in steps if low <= step * 10.0 ** power <= high]
        if len(ticks) <= 6:
            break
    else:
        ticks = ticks[::-(-len(ticks) // 6)]
    ticks = ticks or [low, high]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: plain(value))


def ticker(count: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(count)


def name_series(axes: Any, all_series: Sequence[Series]) -> None:
    """Writes the names of several series above them, each in its color."""
    if len(all_series) < 2:
        return
    from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, TextArea  # type: ignore

    names = [TextArea(series.name, textprops={"color": series.color, "fontsize": 9}) for series in all_series]
    packed = HPacker(children=names, sep=10, pad=0)
    axes.add_artist(AnchoredOffsetbox("upper right", child=packed, frameon=False, borderpad=0.1))


def ranks(name: str, panels: Sequence[Series], y_label: str) -> str:
    """Numbers from the largest to the smallest, both axes logarithmic; largest and median are named."""
    chart = Chart(name, 2.9, len(panels), sharey=True)
    for axes, series in zip(chart.axes, panels):
        values = np.sort(np.asarray(series.values))[::-1]
        values = values[values > 0]
        picks = np.unique(np.geomspace(1, max(len(values), 1), 200).astype(int)) - 1
        axes.loglog(picks + 1, values[picks], color=series.color, marker="o" if len(values) < 30 else None, markersize=3)
        axes.set_title(series.name)
        axes.set_xlabel("rank")
        axes.grid(linewidth=0.6)
        median = float(np.median(values))
        for rank, value, text in ((1, values[0], "most"), ((len(values) + 1) / 2, median, "median")):
            axes.plot(rank, value, "o", color=FG, markersize=4)
            axes.annotate(f"{text}: {plain(value)}", (rank, value), (6, 6), textcoords="offset points", fontsize=9)
        plain_powers(axes)
    chart.axes[0].set_ylim(0.8, 4 * max(int(np.max(series.values)) for series in panels))
    chart.axes[0].set_ylabel(y_label)
    return chart.svg()


def plain_powers(axes: Any) -> None:
    """Numbers as 1,000 instead of 10 to the power of 3."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: plain(value))
        axis.set_minor_formatter("")


def shares(name: str, all_series: Sequence[Series], x_label: str, y_label: str) -> str:
    """How much the most active part of each series holds: curves of shares, named where they are steep."""
    chart = Chart(name, 3.0, width=5.2)
    axes = chart.axes[0]
    halves = []
    for series in all_series:
        values = np.sort(np.asarray(series.values, dtype=float))[::-1]
        held = np.concatenate([[0], np.cumsum(values)]) / max(values.sum(), 1)
        share = np.linspace(0, 1, len(held))
        picks = np.unique(np.linspace(0, len(held) - 1, 300).astype(int))
        axes.plot(100 * share[picks], 100 * held[picks], color=series.color)
        halves.append(100 * share[int(np.searchsorted(held, 0.5))])
    for number, (series, x) in enumerate(zip(all_series, halves)):
        axes.plot(x, 50, "o", color=series.color, markersize=5)
        line = {"arrowstyle": "-", "color": series.color, "linewidth": 0.6, "relpos": (0, 0.5), "shrinkA": 1}
        axes.annotate(f"{series.name}: half by {share_of(x)} %", (x, 50), (min(max(halves) + 9, 64), 40 - 12 * number),
                      color=series.color, fontsize=10, va="center", arrowprops=line)
    axes.plot([0, 100], [0, 100], color=GRID, linewidth=1)
    axes.set(xlabel=x_label, ylabel=y_label, xlim=(0, 100), ylim=(0, 101))
    return chart.svg()


def share_of(percent: float) -> str:
    return f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"


def density_map(name: str, density: Any, x_label: str, y_label: str) -> str:
    """Shares of 0 to 1 as a color that is the more opaque the larger they are, on a scale of logarithms."""
    from matplotlib.colors import to_rgb  # type: ignore

    chart = Chart(name, 3.6, width=5.2)
    axes = chart.axes[0]
    filled = density[density > 0]
    low, high = (np.log10(filled.min()), np.log10(filled.max())) if filled.size else (-1.0, 0.0)
    with np.errstate(divide="ignore"):
        opacity = np.clip((np.log10(density) - low) / max(high - low, 1e-9), 0, 1)
    cells = np.zeros((*density.shape, 4))
    cells[..., :3] = to_rgb("#3b82f6")
    cells[..., 3] = np.where(density > 0, 0.08 + 0.92 * opacity, 0)
    axes.imshow(cells, aspect="auto", interpolation="nearest", extent=(0, 100, 100, 0))
    axes.set(xlabel=x_label, ylabel=y_label)
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)
    return chart.svg()


def stacked(name: str, labels: Sequence[str], parts: Sequence[Series], unit: str) -> str:
    """Bars of parts, whose names stand above, and in each part its number where there is room."""
    chart = Chart(name, 0.85 + 0.42 * len(labels))
    axes = chart.axes[0]
    table = np.array([np.asarray(part.values, dtype=float) for part in parts])
    ends = np.cumsum(table, axis=0)
    total = max(float(ends[-1].max()), 1e-9)
    for index, part in enumerate(parts):
        begins = ends[index] - table[index]
        axes.barh(range(len(labels)), table[index], 0.66, left=begins, color=part.color, edgecolor=BACK, linewidth=1)
        for row, (begin, value) in enumerate(zip(begins, table[index])):
            text = f"{plain(value)}{unit}"
            if value / total > 0.013 * len(text):
                axes.text(begin + value / 2, row, text, ha="center", va="center", fontsize=9, color=BACK)
    axes.set_yticks(range(len(labels)), [short(label) for label in labels])
    name_series(axes, parts)
    axes.set(xlim=(0, total), ylim=(len(labels) - 0.5, -0.95))
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(lambda value, _: plain(value) + unit)
    return chart.svg()


def part_rows(name: str, parts: Sequence[Tuple[str, int, int]], chunk_samples: int) -> str:
    """Parts as rows of chunks, as long as they have samples. `parts`: file, samples, chunks."""
    chart = Chart(name, 0.75 + 0.36 * len(parts))
    axes = chart.axes[0]
    longest = max(samples for _, samples, _ in parts)
    for row, (file, samples, chunks) in enumerate(parts):
        width = chunk_samples or samples / max(chunks, 1)
        shown_chunks = min(chunks, 2 * 120)  # more would be a gray bar
        step = chunks / max(shown_chunks, 1)
        for chunk in range(shown_chunks):
            begin, end = int(chunk * step) * width, min(int((chunk + 1) * step) * width, samples)
            axes.barh(row, end - begin, 0.7, left=begin, color=ACCENT, edgecolor=BACK, alpha=1 if chunk % 2 else 0.72,
                      linewidth=0.8 if shown_chunks < 80 else 0)
        text = f"{samples:,} in {chunks:,} chunk{'' if chunks == 1 else 's'}"
        axes.text(samples + longest * 0.01, row, text, va="center", fontsize=9)
    axes.set_yticks(range(len(parts)), [short(file) for file, _, _ in parts])
    axes.set(xlim=(0, longest * 1.3), ylim=(len(parts) - 0.5, -0.5), xlabel="samples of a part")
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= longest])
    axes.xaxis.set_major_formatter(lambda value, _: plain(value))
    axes.spines["bottom"].set_bounds(0, longest)
    axes.tick_params(axis="y", length=0)
    return chart.svg()

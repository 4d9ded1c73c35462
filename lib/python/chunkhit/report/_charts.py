"""Charts: bars, which the page draws as HTML, and panels of SVG, drawn by matplotlib. Text stays text; colors are the page's
CSS variables, so that light and dark mode have their own."""
from __future__ import annotations

import html
import io
import re
import warnings
from typing import Any, Dict, Mapping, NamedTuple, Sequence

import numpy as np

from .._error import Error, counted
from ._page import Bar, Bars

# A color of matplotlib stands for each variable of the page's style.
VARIABLES = {"#010201": "fg", "#010202": "muted", "#010203": "grid", "#010204": "accent", "#010205": "second",
             "#010206": "red", "#010207": "green", "#010208": "blue"}
FG, MUTED, GRID, ACCENT, SECOND, RED, GREEN, BLUE = VARIABLES
STYLE: Dict[str, Any] = {
    "svg.fonttype": "none", "text.parse_math": False, "font.family": "DejaVu Sans", "font.size": 9, "text.color": FG,
    "axes.edgecolor": MUTED, "axes.labelcolor": MUTED, "axes.spines.top": False, "axes.spines.right": False,
    "axes.facecolor": "none", "axes.titlesize": 9.5, "axes.titlelocation": "left", "axes.titlecolor": FG,
    "axes.axisbelow": True, "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelsize": 8.5, "ytick.labelsize": 8.5,
    "grid.color": GRID, "figure.facecolor": "none", "savefig.facecolor": "none", "lines.linewidth": 1.6,
    "axes.unicode_minus": False,
}
WIDTH, HEIGHT = 3.7, 2.3  # inches: as wide as a phone, and a third of a desktop's page
TABLE_ROWS = 8  # of a chart's numbers, which bins are summed into


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
    title: str = ""
    dates: bool = False  #: edges are days since 1970


def pack_color(index: int) -> str:
    """Of a pack among those of the page."""
    return (ACCENT, SECOND, GREEN, RED, MUTED)[index % 5]


def plain(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 or number == int(number) else f"{number:.3g}"


def short(number: float) -> str:
    """The same with three digits that count, below 10,000 without commas: numbers of an axis, as years."""
    return plain(number) if abs(number) >= 10_000 else f"{number:.4g}"


def css(color: str) -> str:
    return f"var(--{VARIABLES[color]})" if color in VARIABLES else color


def bars(labels: Sequence[str], all_series: Sequence[Series], unit: str = "", links: Mapping[str, str] = {},
         swatches: Mapping[str, str] = {}) -> Bars:
    """Bars with their numbers. Those of several packs are as long as their shares of the pack; with a unit, as the numbers. Labels with
    an anchor in `links` lead there; those in `swatches` have a color beside them."""
    tables = [np.asarray(series.values, dtype=float) for series in all_series]
    is_shares = len(tables) > 1 and not unit
    lengths = [table / max(table.sum(), 1e-12) if is_shares else table for table in tables]
    longest = max([float(length.max()) for length in lengths if len(length)] + [1e-12])
    rows = []
    for row, label in enumerate(labels):
        rows.append((label, [
            Bar(round(100 * float(length[row]) / longest, 2), f"{plain(table[row])}{unit}",
                css(series.color if isinstance(series.color, str) else series.color[row]))
            for series, table, length in zip(all_series, tables, lengths)]))
    names = [(series.name, css(series.color)) for series in all_series if isinstance(series.color, str)]
    return Bars(names if len(names) > 1 else [], rows, links, {label: css(color) for label, color in swatches.items()})


def check_fonts() -> None:
    """Raises Error "try_again" where matplotlib's list of fonts lacks its own: one that was made while files could not be opened."""
    import matplotlib  # type: ignore
    from matplotlib import font_manager

    try:
        font_manager.findfont("DejaVu Sans", fallback_to_default=False)
    except ValueError:
        raise Error(f"matplotlib's list of fonts in {matplotlib.get_cachedir()} lacks its own font: remove fontlist-*.json there, and "
                    "rerun", "try_again") from None


class Chart:
    """A figure of one panel; `svg()` gives what was drawn on its axes."""

    def __init__(self, name: str, title: str = "", height: float = HEIGHT) -> None:
        import matplotlib
        from matplotlib.figure import Figure  # type: ignore

        check_fonts()
        self._name = name
        style: Dict[Any, Any] = {**STYLE, "svg.hashsalt": name}
        self._style = matplotlib.rc_context(style)
        self._style.__enter__()
        self._figure = Figure(figsize=(WIDTH, height), layout="constrained")
        self.axes: Any = self._figure.subplots()
        self.axes.set_title(title)

    def svg(self, said: str) -> str:
        """What was drawn, with the words that a screen reader says instead."""
        written = io.StringIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")  # browsers have more fonts
            metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            self._figure.savefig(written, format="svg", metadata=metadata)
        self._style.__exit__(None, None, None)
        return inline(written.getvalue(), self._name, said)


def inline(svg: str, name: str, said: str) -> str:
    """The SVG as an element of the page: a title in words, ids of its own, variables for colors, as wide as there is room."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    for color, variable in VARIABLES.items():
        svg = svg.replace(color, f"var(--{variable})")
    svg = re.sub(r"font: ([0-9.]+)px [^;\"]*", r"font-size: \1px", svg)
    svg = re.sub(r'\s(?:width|height)="[0-9.]+pt"', "", svg[4:], count=2)
    return f'<svg class="chart" role="img" aria-labelledby="{name}-said"' + \
        re.sub(">", lambda _: f'><title id="{name}-said">{html.escape(said)}</title>', svg, count=1)


def quantile(counts: Any, edges: Any, share: float) -> float:
    """Where this share of what was counted is below, as if each bin were even."""
    sums = np.concatenate([[0.0], np.cumsum(np.asarray(counts, dtype=float))])
    return float(np.interp(share * sums[-1], sums, np.asarray(edges, dtype=float)))


def histogram_words(panel: Panel) -> str:
    """What the histogram shows: of each series where its middle half lies."""
    said = [f"{panel.title or 'Histogram'} by {panel.x_label}"]
    for series in panel.series:
        low, half, high = (short(quantile(series.values, panel.edges, share)) for share in (0.25, 0.5, 0.75))
        said.append(f"{series.name}: half lies between {low} and {high}, the median is about {half}" if np.sum(series.values) > 0 else
                    f"{series.name}: nothing")
    return "; ".join([*said, *(mark.name for mark in panel.marks)])


def histogram_table(panel: Panel) -> str:
    """HTML of the numbers as a table that opens by a click."""
    used = np.flatnonzero(np.sum([np.asarray(series.values) for series in panel.series], axis=0))
    if not len(used):
        return ""
    cuts = np.unique(np.linspace(used[0], used[-1] + 1, min(TABLE_ROWS, used[-1] + 1 - used[0]) + 1).astype(int))
    unit = " %" if panel.title.endswith(("% of each pack", "% of pixels")) else ""
    rows = [[f"{short(panel.edges[begin])} to {short(panel.edges[end])}",
             *(plain(float(np.sum(series.values[begin:end]))) + unit for series in panel.series)] for begin, end in zip(cuts[:-1], cuts[1:])]
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in (panel.x_label, *(series.name for series in panel.series)))
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<details class="numbers"><summary>{html.escape(panel.title or "numbers")} as a table</summary><table><tr>{head}</tr>{body}</table>' \
        "</details>"


def histogram(name: str, panel: Panel) -> str:
    """HTML of counts between edges: of one series filled, of several as outlines with their names above; the numbers as a table."""
    chart = Chart(name, panel.title)
    axes = chart.axes
    for series in panel.series:
        axes.stairs(np.asarray(series.values, dtype=float), panel.edges, color=series.color,
                    fill=len(panel.series) == 1, linewidth=1.4)
    name_series(axes, panel.series)
    axes.set_xlabel(panel.x_label)
    axes.set_ylim(0, 1.22 * max(1e-9, *(float(np.max(series.values)) for series in panel.series)))
    axes.yaxis.set_major_formatter(lambda value, _: plain(value))
    axes.yaxis.set_major_locator(ticker(4))
    axes.xaxis.set_major_locator(ticker(6))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}" if abs(value) < 10_000 else plain(value))
    axes.grid(axis="y", linewidth=0.6)
    if panel.log:
        axes.set_xscale("log")
        log_ticks(axes, panel.edges)
    if panel.dates:
        date_ticks(axes, panel.edges)
    draw_marks(axes, panel)
    return chart.svg(histogram_words(panel)) + histogram_table(panel)


def pack_histogram(name: str, panel: Panel) -> str:
    """The same of packs: of several in percent of each, so that they compare."""
    if len(panel.series) == 1:
        return histogram(name, panel)
    shares = [series._replace(values=100 * np.asarray(series.values) / max(1, np.sum(series.values))) for series in panel.series]
    return histogram(name, panel._replace(series=shares, title=f"{panel.title}, % of each pack"))


def draw_marks(axes: Any, panel: Panel) -> None:
    """Lines at numbers, with their names on the side that has more room; several below each other."""
    low, high = axes.get_xlim()
    for row, mark in enumerate(panel.marks):
        share = np.log(mark.at / low) / np.log(high / low) if panel.log else (mark.at - low) / (high - low)
        axes.axvline(mark.at, color=FG, linewidth=1, linestyle=(0, (3, 3)))
        axes.annotate(mark.name, (mark.at, 1), (4 if share < 0.5 else -4, -3 - 12 * (row + (len(panel.series) > 1))), va="top",
                      ha="left" if share < 0.5 else "right", fontsize=8.5, xycoords=("data", "axes fraction"),
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


def date_ticks(axes: Any, edges: Any) -> None:
    """Up to six months, or days where they are few."""
    from matplotlib.dates import AutoDateLocator, DateFormatter  # type: ignore

    axes.xaxis.set_major_locator(AutoDateLocator(minticks=2, maxticks=5))
    axes.xaxis.set_major_formatter(DateFormatter("%Y-%m" if edges[-1] - edges[0] > 120 else "%Y-%m-%d"))


def ticker(count: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(count)


def name_series(axes: Any, all_series: Sequence[Series]) -> None:
    """Writes the names of several series above them, each in its color."""
    if len(all_series) < 2:
        return
    from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, TextArea  # type: ignore

    names = [TextArea(series.name, textprops={"color": series.color, "fontsize": 8.5}) for series in all_series]
    packed = HPacker(children=names, sep=8, pad=0)
    axes.add_artist(AnchoredOffsetbox("upper right", child=packed, frameon=False, borderpad=0.1))


def ranks(name: str, title: str, all_series: Sequence[Series]) -> str:
    """Numbers from the largest to the smallest, both axes logarithmic; dots are at the medians."""
    chart = Chart(name, title)
    axes = chart.axes
    most, said = 1, [title]
    for series in all_series:
        values = np.sort(np.asarray(series.values))[::-1]
        values = values[values > 0]
        picks = np.unique(np.geomspace(1, max(len(values), 1), 200).astype(int)) - 1
        axes.loglog(picks + 1, values[picks], color=series.color, marker="o" if len(values) < 30 else None, markersize=3)
        axes.plot((len(values) + 1) / 2, float(np.median(values)), "o", color=series.color, markersize=4)
        most = max(most, int(values[0]))
        said.append(f"{series.name}: the most are {plain(values[0])}, the median is {plain(float(np.median(values)))} of {len(values):,}")
    axes.set_ylim(0.8, 3 * most)
    axes.set_xlabel("rank")
    axes.grid(linewidth=0.6)
    for axis in (axes.xaxis, axes.yaxis):  # 1,000 instead of 10 to the power of 3
        axis.set_major_formatter(lambda value, _: plain(value))
        axis.set_minor_formatter("")
    name_series(axes, all_series)
    return chart.svg("; ".join(said))


def density_map(name: str, title: str, density: Any) -> str:
    """Shares of 0 to 1 as a color that is the more opaque the larger they are, on a scale of logarithms."""
    from matplotlib.colors import to_rgb  # type: ignore

    chart = Chart(name, title, 2.7)
    axes = chart.axes
    filled = density[density > 0]
    low, high = (np.log10(filled.min()), np.log10(filled.max())) if filled.size else (-1.0, 0.0)
    with np.errstate(divide="ignore"):
        opacity = np.clip((np.log10(density) - low) / max(high - low, 1e-9), 0, 1)
    cells = np.zeros((*density.shape, 4))
    cells[..., :3] = to_rgb("#3b82f6")
    cells[..., 3] = np.where(density > 0, 0.08 + 0.92 * opacity, 0)
    axes.imshow(cells, aspect="auto", interpolation="nearest", extent=(0, 100, 100, 0))
    axes.set(xlabel="items, %", ylabel="users, %")
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)
    return chart.svg(f"{title}: map of ratings, items across, users down; {counted(int((density > 0).sum()), 'cell')} of {density.size:,} "
                     f"have ratings, at most {100 * float(density.max(initial=0)):.3g} % of a cell")

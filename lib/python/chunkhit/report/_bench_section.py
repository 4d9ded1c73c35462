"""What pack-bench --json measured."""
from __future__ import annotations

import json
from typing import Any, Dict, List

from . import _charts as charts
from .._error import Error, counted
from .._pages import shown
from ._charts import Series
from ._page import Block, Section, bytes_text, share_text

STAGES = (("fetch_seconds", "fetch", charts.ACCENT), ("decode_seconds", "decode", charts.SECOND),
          ("assemble_seconds", "assemble", charts.GREEN), ("idle_seconds", "idle", charts.MUTED))


def read_bench(path: str) -> Dict[str, Any]:
    """What a file holds; raises Error "bad_data" where pack-bench --json did not write it."""
    try:
        with open(path, encoding="utf-8") as file:
            bench = json.load(file)
    except OSError as error:
        raise Error(f"{shown(path)}: cannot be read: {error.strerror}", "bad_data") from None
    except ValueError as error:
        raise Error(f"{shown(path)}: expected JSON of pack-bench --json, found {error}", "bad_data") from None
    keys = sorted(bench) if isinstance(bench, dict) else []
    if "settings" not in keys or not ("epochs" in keys or "tuning" in keys):
        found = ", ".join(keys[:5]) or type(bench).__name__
        raise Error(f"{shown(path)}: expected the keys settings and epochs (or tuning) of pack-bench --json, "
                    f"found {shown(found)}", "bad_data")
    return dict(bench)


def bench_section(path: str) -> Section:
    bench = read_bench(path)
    try:
        return tune_section(bench) if "tuning" in bench else epochs_section(bench)
    except (KeyError, TypeError, AttributeError) as error:
        raise Error(f"{shown(path)}: expected what pack-bench --json writes; {type(error).__name__}: {error}",
                    "bad_data") from None


def settings_block(settings: Dict[str, Any]) -> Block:
    shown_settings = [(name, shown(", ".join(map(str, value)) if isinstance(value, list) else str(value)))
                      for name, value in settings.items() if value not in (None, "", [])]
    return Block("Settings", header=("setting", "value"), rows=shown_settings)


def epochs_section(bench: Dict[str, Any]) -> Section:
    section = Section("bench", "Measured by pack-bench", checks=["warnings of pack-bench"])
    epochs: List[Dict[str, Any]] = bench["epochs"]
    rate, step_ms = bench["samples_per_second"], bench["settings"]["step_ms"]
    waited = f"the loop waited {share_text(bench['wait_fraction'])} of the time" if step_ms else "an empty loop only waits"
    note = f"{rate:,.0f} samples a second, {bytes_text(bench['bytes_per_second'])}/s; {waited}."
    per_epoch = [(f"epoch {number}", f"{epoch['samples_per_second']:,.0f}", share_text(epoch["wait_fraction"]),
                  f"{1000 * epoch['first_batch_seconds']:.3g} ms") for number, epoch in enumerate(epochs)]
    section.blocks.append(Block("Epochs", note, header=("", "samples a second", "waited", "first batch after"), rows=per_epoch))
    section.blocks.append(stage_block(bench["stats"]))
    rows = [("chunk cache", f"{counted(bench['chunk_hits'], 'hit')}, {counted(bench['chunk_misses'], 'miss')}"),
            ("chunks fetched", f"{bench['chunk_fetches']:,}"),
            ("largest memory of the process", bytes_text(bench["peak_rss_bytes"])),
            ("verdict", shown(bench["verdict"])),
            ("steps of the training", f"{step_ms:g} ms" if step_ms else "none: the loop is empty")]
    section.blocks.append(Block("Cache, memory, verdict", header=("what", "found"), rows=rows))
    section.blocks.append(settings_block(bench["settings"]))
    section.warnings += [f"pack-bench: {shown(warning)}" for warning in bench["warnings"]]
    return section


def stage_block(stats: Dict[str, Any]) -> Block:
    busiest = max(STAGES[:3], key=lambda stage: float(stats[stage[0]]))
    worked = sum(stats[key] for key, _, _ in STAGES[:3])
    note = (f"Workers spent {share_text(stats[busiest[0]] / max(worked, 1e-12))} of their working time in the stage {busiest[1]}. "
            f"Seconds of all {counted(stats['threads'], 'worker thread')} together.")
    series = Series("seconds", [stats[key] for key, _, _ in STAGES], [color for _, _, color in STAGES])
    return Block("Stages", note, bars=[charts.bars([name for _, name, _ in STAGES], [series], " s")])


def tune_section(bench: Dict[str, Any]) -> Section:
    section = Section("bench", "Chosen by pack-bench --tune")
    note = (f"{bench['samples_per_second']:,.0f} samples a second with {counted(bench['threads'], 'thread')}, "
            f"{counted(bench['prefetch'], 'batch')} ahead and cache {shown(bench['cache'])}."
            + ("" if bench["has_settled"] else " Stopped before the loader settled."))
    rows = [(str(number), shown(text)) for number, text in enumerate(bench["tuning"], 1)]
    section.blocks.append(Block("Settings tried", note, header=("", "what was tried, and why"), rows=rows))
    section.blocks.append(settings_block(bench["settings"]))
    return section

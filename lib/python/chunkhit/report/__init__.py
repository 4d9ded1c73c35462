"""A page to look at: what packs hold, and what is odd about it. One HTML file, which needs nothing else.

    python3 -m chunkhit.report train val -o report.html
    chunkhit.report.write_report(["train", "val"], "report.html")

It needs matplotlib and jinja2 (Debian's python3-matplotlib and python3-jinja2), which are imported when a report is made.
"""
from __future__ import annotations

from ._command import main, write_report

__all__ = ["main", "write_report"]

#!/usr/bin/env python3
"""Runs clang-tidy over the sources of lib/ and tools/ with the checks of .clang-tidy; a finding is an error.

Usage: tidy.py ROOT [PATH...]     all sources, or those compiled together with one whose path has one of these parts
"""
import pathlib
import re
import shutil
import subprocess
import sys

from compile_commands import configured, run_all

ROOT = pathlib.Path(sys.argv[1]).resolve()
WANTED = sys.argv[2:]


def sources(entry):
    """The sources that a compile command reads: those of a joint source, or the one itself."""
    path = pathlib.Path(entry["directory"], entry["file"])
    return re.findall(r'#include "([^"]+)"', path.read_text()) if "/Unity/" in str(path) else [str(path)]


def main():
    tool = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if not tool:
        sys.exit("clang-tidy is not installed")
    build = ROOT / "build" / "tidy"
    entries = [entry for entry in configured(ROOT, build, "-DCHUNKHIT_UNITY=ON", "-DCHUNKHIT_SAMPLES=OFF")
               if not WANTED or any(part in path for path in sources(entry) for part in WANTED)]
    # Joint sources include others, and each names its own.
    failed = run_all([tool, "--quiet", "--checks=-bugprone-suspicious-include", "--warnings-as-errors=*", f"-p={build}",
                      f"--header-filter=^{ROOT}/(lib|tools)/", entry["file"]] for entry in entries)
    print(f"{sum(len(sources(entry)) for entry in entries)} sources, {failed} of {len(entries)} runs with findings")
    sys.exit(1 if failed or not entries else 0)


if __name__ == "__main__":
    main()

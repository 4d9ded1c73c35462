#!/usr/bin/env python3
"""Runs clang-tidy over every source of lib/ and tools/ with the checks of .clang-tidy; a finding is an error.

Usage: tidy.py ROOT BUILD_FOLDER [PART_OF_A_PATH...]    with parts: only the sources whose path has one of them
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(sys.argv[1]).resolve()
BUILD = pathlib.Path(sys.argv[2]).resolve()
WANTED = sys.argv[3:] or [""]


def our_sources():
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    ours = (ROOT / "lib", ROOT / "tools")
    files = {pathlib.Path(entry["directory"], entry["file"]).resolve() for entry in commands}
    files = [path for path in files if any(folder in path.parents for folder in ours)]
    # Largest first, so that the last one to end is a short one.
    return sorted((path for path in files if any(part in str(path) for part in WANTED)),
                  key=lambda path: -path.stat().st_size)


def findings(tool, path):
    """The output of a file that does not pass, else nothing."""
    run = subprocess.run(
        [tool, "--quiet", "--warnings-as-errors=*", f"-p={BUILD}", f"--header-filter=^{ROOT}/(lib|tools)/",
         # The compile commands may be GCC's.
         "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-unused-command-line-argument", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return run.stdout or (run.stderr if run.returncode else "")


def main():
    tool = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if not tool:
        sys.exit("clang-tidy is not installed")
    sources = our_sources()
    if not sources:
        sys.exit(f"{BUILD}/compile_commands.json names no source of lib/ or tools/")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        texts = [text for text in pool.map(lambda path: findings(tool, path), sources) if text]
    print("\n".join(texts))
    print(f"{len(sources)} sources, {len(texts)} of them with findings")
    sys.exit(1 if texts else 0)


main()

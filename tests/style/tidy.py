#!/usr/bin/env python3
"""Runs clang-tidy over sources of lib/ and tools/ with the checks of .clang-tidy; a finding is an error.

Usage: tidy.py ROOT BUILD_FOLDER            the sources that changed, or include what changed, since the last commit of
                                            which all sources passed (tidy_passed)
       tidy.py ROOT BUILD_FOLDER --all      all; where they pass and nothing is uncommitted, tidy_passed is written
       tidy.py ROOT BUILD_FOLDER PATH...    the sources whose path has one of these parts
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(sys.argv[1]).resolve()
BUILD = pathlib.Path(sys.argv[2]).resolve()
ALL = sys.argv[3:] == ["--all"]
WANTED = [] if ALL else sys.argv[3:]
PASSED = ROOT / "tests" / "style" / "tidy_passed"
# What decides about every source.
RULES = (".clang-tidy", "cmake/", "CMakeLists.txt", "tests/style/tidy.py")


def git(*arguments):
    run = subprocess.run(["git", "-C", str(ROOT), *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return run.stdout if run.returncode == 0 else None


def changed_since_passed():
    """Paths below ROOT that differ from the commit that passed; None where that is not known, or the rules changed."""
    commit = PASSED.read_text().strip() if PASSED.exists() else ""
    tracked = git("diff", "--name-only", commit, "--") if re.fullmatch("[0-9a-f]{40}", commit) else None
    if tracked is None:
        return None
    changed = tracked.split() + (git("ls-files", "--others", "--exclude-standard") or "").split()
    return None if any(path.startswith(RULES) for path in changed) else set(changed)


def project_includes(path, known={}):
    """The project's files that a file includes, through others too, and itself."""
    if path not in known:
        known[path] = {path}
        for name in re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE):
            for folder in (ROOT / "lib", ROOT / "lib" / "include", ROOT / "tools", path.parent):
                if (folder / name).exists():
                    known[path] = known[path] | project_includes((folder / name).resolve())
                    break
    return known[path]


def wanted(sources):
    if WANTED:
        return [path for path in sources if any(part in str(path) for part in WANTED)]
    changed = None if ALL else changed_since_passed()
    if changed is None:
        return sources
    return [path for path in sources if any(str(used.relative_to(ROOT)) in changed for used in project_includes(path))]


def our_sources():
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    ours = (ROOT / "lib", ROOT / "tools")
    files = {pathlib.Path(entry["directory"], entry["file"]).resolve() for entry in commands}
    files = [path for path in files if any(folder in path.parents for folder in ours)]
    # Largest first, so that the last one to end is a short one.
    return sorted(files, key=lambda path: -path.stat().st_size)


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
    every, sources = len(sources), wanted(sources)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        texts = [text for text in pool.map(lambda path: findings(tool, path), sources) if text]
    print("\n".join(texts))
    print(f"{len(sources)} of {every} sources, {len(texts)} of them with findings")
    if ALL and not texts and git("status", "--porcelain") == "":
        PASSED.write_text(git("rev-parse", "HEAD"))
    sys.exit(1 if texts else 0)


main()

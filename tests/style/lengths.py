#!/usr/bin/env python3
"""Checks the lengths and names of files, and that no file of lib/ opens a namespace for all. Usage: lengths.py ROOT"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
MAX_LINES = 500
# Names that say nothing about what is inside.
EMPTY_NAMES = re.compile(r"(^|[_-])(utils?|common|misc|helpers?|managers?)([_.-]|$)")


def problems(path):
    name = path.relative_to(ROOT)
    if EMPTY_NAMES.search(path.name):
        yield f"{name}: a name that does not say what is inside"
    if path.suffix not in (".h", ".c", ".cpp", ".cu", ".py", ".sh"):
        return
    lines = path.read_text().splitlines()
    if len(lines) > MAX_LINES:
        yield f"{name}: {len(lines)} lines, at most {MAX_LINES}"
    if name.parts[0] == "lib":
        for number, line in enumerate(lines, 1):
            if re.match(r"\s*using\s+namespace\b", line):
                yield f"{name}:{number}: using namespace"


def main():
    files = [path for folder in ("lib", "tools", "tests", "samples") for path in sorted((ROOT / folder).rglob("*"))
             if path.is_file() and "corpus" not in path.parts and "__pycache__" not in path.parts]
    found = [error for path in files for error in problems(path)]
    print("\n".join(found))
    print(f"{len(files)} files, {len(found)} problems")
    sys.exit(1 if found or not files else 0)


main()

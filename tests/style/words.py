#!/usr/bin/env python3
"""Checks that what users read has none of the words that this project once used in place of the field's.

Usage: words.py ROOT. Read are the public headers, the commands' texts, the Python package and all pages."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
INSTEAD = {
    "picture": "image", "grey": "gray", "foreign": "external", "stranger": "external file, unknown file",
    "lone": "single", "residency": "cache", "told": "detected, distinguished",
    "afresh": "from scratch, start over", "anew": "again", "whoever": "the caller, the owner", "somebody": "the caller",
    "let go": "release", "lets go": "releases", "goes on": "continues, resumes", "of others": "external",
    "others wrote": "external", "at work": "worker", "kept_batches": "retained_batches",
}
WORDS = re.compile(r"(?<![A-Za-z_])(" + "|".join(word.replace(" ", r"\s+") for word in INSTEAD) + r")s?(?![A-Za-z_])", re.I)
# A C++ text: what a command prints.
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')


def texts(path):
    """Pairs of line number and text."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if path.suffix == ".cpp":
            for text in LITERAL.findall(line):
                yield number, text
        else:
            yield number, line


def main():
    pages = [path for path in ROOT.rglob("*.md") if not {"build", ".git", "corpus"} & set(path.relative_to(ROOT).parts)]
    files = [*pages, *(ROOT / "lib/include").rglob("*.h"), *(ROOT / "tools").glob("*.cpp"),
             *(ROOT / "lib/python/chunkhit").glob("*.py*")]
    found = [f"{path.relative_to(ROOT)}:{number}: \"{word}\", say {INSTEAD[re.sub(' +', ' ', word.lower())]}"
             for path in sorted(files) for number, text in texts(path) for word in WORDS.findall(text)]
    print("\n".join(found))
    print(f"{len(files)} files, {len(found)} words")
    sys.exit(1 if found or len(files) < 30 else 0)


main()

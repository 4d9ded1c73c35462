#!/usr/bin/env python3
"""Checks that texts and code have none of the words that this project once used in place of the field's.

Usage: words.py ROOT. Read are all headers, the texts of the C++ sources, the Python package and all pages; names in
C++ are read in all of lib, tools and tests."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
INSTEAD = {
    "picture": "image", "grey": "gray", "foreign": "external", "stranger": "external file, unknown file",
    "lone": "single", "residency": "cache", "told": "detected, distinguished",
    "afresh": "from scratch, start over", "anew": "again", "whoever": "the caller, the owner", "somebody": "the caller",
    "let go": "release", "lets go": "releases", "goes on": "continues, resumes", "of others": "external",
    "others wrote": "external", "at work": "worker", "kept_batches": "retained_batches", "maker": "decoder, assembler",
    "someone else": "the owner, another program", "content does not tell": "content is ambiguous",
}
WORDS = re.compile(r"(?<![A-Za-z_])(" + "|".join(word.replace(" ", r"\s+") for word in INSTEAD) + r")s?(?![A-Za-z_])", re.I)
# A part of a name in C++: `make_maker`, `least_threads_`, `kMostBytes`.
NAME = re.compile(r"\bmakers?_|_makers?\b|\b(?:least|most)_\w|\bk(?:Least|Most)[A-Z]|\b\w*[a-z]Maker\b")
# A C++ text: what a command prints.
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
COMMENT = re.compile(r"(?:^|\s)///?\s.*")


def texts(path):
    """Pairs of line number and text."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if path.suffix == ".cpp":
            for text in [*LITERAL.findall(line), *COMMENT.findall(line)]:
                yield number, text
        else:
            yield number, line


def main():
    pages = [path for path in ROOT.rglob("*.md") if not {"build", ".git", "corpus"} & set(path.relative_to(ROOT).parts)]
    sources = [path for folder in ("lib", "tools", "tests") for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cpp")]
    files = [*pages, *(path for path in sources if "tests" not in path.relative_to(ROOT).parts),
             *(ROOT / "lib/python/chunkhit").glob("*.py*")]
    found = [f"{path.relative_to(ROOT)}:{number}: \"{word}\", say {INSTEAD[re.sub(' +', ' ', word.lower())]}"
             for path in sorted(files) for number, text in texts(path) for word in WORDS.findall(text)]
    found += [f"{path.relative_to(ROOT)}:{number}: \"{name}\", say min, max, decoder or assembler"
              for path in sorted(sources) for number, line in enumerate(path.read_text().splitlines(), 1) for name in NAME.findall(line)]
    print("\n".join(found))
    print(f"{len(files)} files, {len(found)} words")
    sys.exit(1 if found or len(files) < 30 else 0)


main()

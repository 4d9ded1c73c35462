#!/usr/bin/env python3
"""Write which Debian package depends on which others, from apt's own lists, as a table of ratings.

usage: export_dependencies.py OUT.csv        (columns: package,dependency; needs `apt-get update` before)
A package is a user, what it depends on its items: a real user-item matrix that is on every Debian machine.
"""
import csv
import re
import subprocess
import sys

NAME = re.compile(r"\s*([a-z0-9][a-z0-9+.-]+)")


def dependencies(paragraph):
    """The package of a paragraph and the packages that its Depends and Recommends name, each once."""
    fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
    wanted = ", ".join(fields[name] for name in ("Pre-Depends", "Depends", "Recommends") if name in fields)
    names = (NAME.match(choice) for choice in re.split(r"[,|]", wanted))
    return fields.get("Package"), dict.fromkeys(match.group(1) for match in names if match)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    available = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True, text=True).stdout
    seen = {}
    for paragraph in available.split("\n\n"):
        package, wanted = dependencies(paragraph)
        if package and wanted:
            seen.setdefault(package, wanted)
    if not seen:
        sys.exit("apt-cache dumpavail names no packages; run apt-get update first")
    with open(sys.argv[1], "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["package", "dependency"])
        for package, wanted in seen.items():
            writer.writerows((package, each) for each in wanted)


if __name__ == "__main__":
    main()

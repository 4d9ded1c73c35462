#!/usr/bin/env python3
"""Compiles each source of lib/, tools/ and samples/, and each header of lib/, by itself: builds compile several at once, where one
may lean on what another includes. Usage: alone.py ROOT"""
import pathlib
import re
import shlex
import sys
import tempfile

from compile_commands import configured, run_all

ROOT = pathlib.Path(sys.argv[1]).resolve()
LIB = ROOT / "lib"
# The -inl.h are bodies that Highway includes once per instruction set, and python/ needs the interpreter's headers; tests/gpu
# compiles what needs CUDA's.
LEFT_OUT = re.compile(r"-inl\.h$|^python/|chunkhit/cuda(_kernels|_memory)?\.h$")


def first_includes(sources):
    """Headers that a source includes before all others, which shows already that they need no other."""
    for path in sources:
        if found := re.search(r'^#include ["<]([^">]+)', path.read_text(), re.MULTILINE):
            yield found[1]


def main():
    entries = configured(ROOT, ROOT / "build" / "alone", "-DCHUNKHIT_UNITY=OFF")
    commands = [[*shlex.split(entry["command"].split(" -o ")[0]), "-Werror", "-fsyntax-only", entry["file"]] for entry in entries]
    shown = set(first_includes(pathlib.Path(entry["file"]) for entry in entries))
    names = [str(path.relative_to(LIB)).removeprefix("include/") for path in sorted(LIB.rglob("*.h"))]
    flags = next(command for command, entry in zip(commands, entries) if "/lib/pack/" in entry["file"])[:-1]
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(name for name in names if name not in shown and not LEFT_OUT.search(name)):
            source = pathlib.Path(folder, f"{number}.cpp")
            source.write_text(f'#include "{name}"\n')
            commands.append([*flags, "-I/usr/include/hdf5/serial", str(source)])
        failed = run_all(commands)
    print(f"{len(entries)} sources and {len(commands) - len(entries)} headers, {failed} of them not complete")
    sys.exit(1 if failed or len(entries) < 100 else 0)


main()

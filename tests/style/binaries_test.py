#!/usr/bin/env python3
"""What every binary of the build tree promises the loader: no search path that another user may fill, and hardening.
Usage: binaries_test.py BUILD_FOLDER"""
import os
import re
import subprocess
import sys
import tempfile

BUILD = sys.argv[1]


def read(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def binaries():
    for folder in ("tools", "lib", "lib/python/chunkhit", "hdf5-plugins"):
        for entry in sorted(os.scandir(os.path.join(BUILD, folder)), key=lambda entry: entry.name):
            is_binary = re.search(r"^pack-[a-z]+$|\.so[.0-9]*$", entry.name)
            if is_binary and entry.is_file(follow_symlinks=False) and is_elf(entry.path):
                yield entry.path


def errors_of(path):
    dynamic = read("-d", path)
    for run_path in re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic):
        for element in run_path.split(":"):
            # An empty or relative element is searched in the working directory: a hostile dataset's folder, say.
            if not element.startswith(("/", "$ORIGIN")):
                yield f"RUNPATH {run_path!r} has the element {element!r}"
    if "BIND_NOW" not in dynamic and not re.search(r"FLAGS_1.*NOW", dynamic):
        yield "is not linked with -z now"
    if "GNU_RELRO" not in read("-l", path):
        yield "has no RELRO"
    if ".so" not in os.path.basename(path) and "PIE" not in dynamic:
        yield "is not position-independent"
    symbols = read("--dyn-syms", path)
    if "__cxa_thread_atexit" in symbols:
        # Where memory lacks, the C library ends the process there.
        yield "has a thread_local with a destructor: use PerThread, or a pointer"
    if os.path.getsize(path) < 2 << 20:
        return  # too little code to need either, as the Python binding
    if "__stack_chk_fail" not in symbols:
        yield "has no stack protector"
    if not re.search(r"__\w+_chk@", symbols.replace("__stack_chk", "")):
        yield "calls no checking function of the C library (_FORTIFY_SOURCE)"


def check_planted_library():
    """A library planted in the working directory is not loaded."""
    with tempfile.TemporaryDirectory() as folder:
        command = os.path.abspath(os.path.join(BUILD, "tools/pack-info"))
        names = re.findall(r"NEEDED.*\[(.*)\]", read("-d", command))
        for name in names:
            with open(os.path.join(folder, name), "wb") as file:
                file.write(b"planted")
        done = subprocess.run([command, "--version"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return [] if done.returncode == 0 else [f"{command} in a folder with planted libraries: {done.stdout}"]


found = list(binaries())
errors = [f"{path}: {error}" for path in found for error in errors_of(path)] + check_planted_library()
print("\n".join(errors))
print(f"{len(found)} binaries, {len(errors)} errors")
sys.exit(1 if errors or len(found) < 7 else 0)

#!/usr/bin/env python3
"""The wheel and the bundle of cmake/bundle.py: what is inside, and in a bare system of Debian 12 and of 13 they pack, verify, read and
train, with the bytes of this build's packs. Usage: bundle_test.py TOOLS_FOLDER ROOT; 77 without root, or elsewhere than on Debian 12."""
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile

TOOLS, ROOT = map(os.path.abspath, sys.argv[1:3])
sys.path[:0] = [f"{ROOT}/tests/support", f"{ROOT}/cmake"]
import h5py
import numpy as np
import bundle
from bright_rows import pack_bright_rows
from PIL import Image

TYPES = ["bmp", "gif", "jpg", "png", "ppm", "tiff", "webp"]
COMMANDS = ["pack-bench", "pack-images", "pack-info", "pack-merge", "pack-run", "pack-sparse", "pack-verify"]
RATINGS = "user,item,rating\n" + "".join(f"u{user},i{item},{1 + (user + item) % 3}\n" for user in range(4) for item in range(3) if user + item)
# Loads a binding without NumPy, and reads a pack by it.
LOAD = """
import importlib.util, json, sys
from importlib.machinery import ExtensionFileLoader
loader = ExtensionFileLoader("_chunkhit", sys.argv[1])
binding = importlib.util.module_from_spec(importlib.util.spec_from_loader("_chunkhit", loader))
loader.exec_module(binding)
assert json.loads(binding.verify_pack_json(sys.argv[2], False, 1, "images", None))["problems"] == []
"""


def check(holds, *what):
    if not holds:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    check(done.returncode == 0, *command, "exit", done.returncode, done.stdout.decode(errors="replace"))
    return done.stdout.decode()


def write_inputs(folder):
    """Inputs of use_bundle.sh, and this build's packs of them; returns the hashes of their parts."""
    for name, seed in (("train", 1), ("test", 2)):
        pack_bright_rows(TOOLS, folder, name, ["ant", "bee", "cat"], seed)
    draw = np.random.default_rng(3)
    for index, kind in enumerate(TYPES):
        os.makedirs(f"{folder}/types/{index % 2}", exist_ok=True)
        Image.fromarray(draw.integers(0, 256, (20, 30, 3), dtype=np.uint8)).save(f"{folder}/types/{index % 2}/{kind}.{kind}")
    with open(f"{ROOT}/tests/fuzz/corpus/decode/jxl-lossy", "rb") as file, open(f"{folder}/types/1/jxl.jxl", "wb") as image:
        seed = file.read()
        image.write(seed[seed.index(b"\xff\x0a"):])  # the fuzzer's options come first
    with open(f"{folder}/ratings.csv", "w") as file:
        file.write(RATINGS)
    with h5py.File(f"{folder}/external.h5", "w") as file:
        file["images"] = draw.integers(0, 256, (5, 4, 4, 3), dtype=np.uint8)
        file["labels"] = np.arange(5)
    quiet = ["--progress", "none"]
    crop = ["types", "--resize", "16", "--crop", "16", *quiet]
    run(f"{TOOLS}/pack-images", *crop, "-o", "types-pack", cwd=folder)
    run(f"{TOOLS}/pack-images", *crop, "--container", "shard", "--codec", "zstd", "-o", "shard", cwd=folder)
    run(f"{TOOLS}/pack-sparse", "ratings.csv", "-o", "ratings", *quiet, cwd=folder)
    packs = ["train", "test", "types-pack", "shard", "ratings"]
    hashes = run("bash", "-c", "sha256sum {train,test,types-pack}/part-*.h5 {shard,ratings}/part-*.zst", cwd=folder)
    run("rm", "-r", *packs, cwd=folder)
    return hashes


def check_wheel(path, folder):
    """The name says for whom it is; each library is in it or in the platform; each has its licence; symbols are old enough."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        archive.extractall(folder)
        programs = {os.path.basename(entry.filename) for entry in archive.infolist()
                    if entry.filename.startswith("chunkhit/bin/") and entry.external_attr >> 16 & 0o111}
    check(programs == set(COMMANDS), "programs in the wheel:", *programs)
    binaries = [name for name in names if open(f"{folder}/{name}", "rb").read(4) == b"\x7fELF"]
    libraries = {os.path.basename(name) for name in binaries if name.startswith("chunkhit/lib/")}
    check(not any("curl" in name or "hdf5" in name for name in libraries), *libraries)
    for name in binaries:
        header = run("readelf", "-dVW", f"{folder}/{name}")
        for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", header):
            check(needed in libraries or bundle.SYSTEM.match(needed), name, "needs", needed)
        for version in re.findall(r"Name: GLIBC_2\.([0-9]+)", header):
            check(int(version) <= 36, name, "needs GLIBC 2." + version)
        runpath = re.findall(r"(?:RPATH|RUNPATH)\).*\[(.*)\]", header)
        check(all(entry.startswith("$ORIGIN") and ":" not in entry for entry in runpath), name, *runpath)
    tags = re.findall(r"cp(3)([0-9]+)", os.path.basename(path))
    for major, minor in tags:
        check(f"chunkhit/_chunkhit.cpython-{major}{minor}-x86_64-linux-gnu.so" in binaries, major, minor, *binaries)
    with open(f"{folder}/chunkhit/LICENSES/README.md") as file:
        listed = set(re.findall(r"\]\((.*)\)", file.read()))
    held = set(os.listdir(f"{folder}/chunkhit/LICENSES")) - {"README.md", "chunkhit"}
    check(listed == held and {"hdf5", "onetbb", "libzstd", "pybind11"} <= held, *(listed ^ held), "of", *held)
    # LGPL libraries lie beside, GPL ones nowhere.
    check(any(name.startswith("libexif-") for name in libraries) and "jbigkit" not in held, *held)


def check_interpreters(folder, pack):
    """Each binding is loaded and used by its interpreter, where this machine has that; NumPy is not needed for it."""
    for (major, minor), python in bundle.interpreters([]).items():
        run(python, "-c", LOAD, f"{folder}/chunkhit/_chunkhit.cpython-{major}{minor}-x86_64-linux-gnu.so", pack)
        print(f"Python {major}.{minor}: binding loaded, a pack verified")


def main():
    with open("/etc/os-release") as file:
        is_bookworm = 'VERSION_ID="12"' in file.read()
    if not is_bookworm or os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"]).returncode != 0:
        print("skipped: not Debian 12, no root, or no mount namespaces")
        sys.exit(77)
    run("/usr/bin/python3", f"{ROOT}/cmake/bundle.py")
    (package,), (commands,) = glob.glob(f"{ROOT}/build/dist/*.whl"), glob.glob(f"{ROOT}/build/dist/*.tar.zst")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("inputs", "bundle", "wheel"):
            os.mkdir(f"{folder}/{name}")
        check_wheel(package, f"{folder}/wheel")
        hashes = write_inputs(f"{folder}/inputs")
        run(f"{TOOLS}/pack-images", f"{folder}/inputs/types", "-o", f"{folder}/pack", "--resize", "8", "--crop", "8", "--progress", "none")
        check_interpreters(f"{folder}/wheel", f"{folder}/pack")
        run("tar", "-I", "zstd", "-xf", commands, "-C", f"{folder}/bundle", "--strip-components", "1")
        run("cp", package, folder)
        run("tar", "-C", folder, "-cf", f"{folder}/all.tar", "bundle", "inputs", os.path.basename(package))
        for suite in ("bookworm", "trixie"):
            with open(f"{folder}/all.tar", "rb") as archive:
                said = run("bash", f"{ROOT}/tests/on_debian.sh", "--fresh", suite, "bash", "tests/install/use_bundle.sh", stdin=archive)
            check(said.count(hashes) == 2, suite, "packs have other bytes:", said, "expected", hashes)
            accuracy = re.search(r"test accuracy ([0-9.]+) %", said)
            check(accuracy and float(accuracy[1]) > 95, said)
            print(f"{suite}: {re.search('chunkhit .* libraries', said)[0]}; test accuracy {accuracy[1]} %")


main()

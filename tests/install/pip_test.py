#!/usr/bin/env python3
"""`pip install .` and `pip wheel .` with Debian's tools alone, in a virtual environment: the package holds the
libraries, packs and reads with them, and is removed whole. Binaries are those of the build tree.
Usage: pip_test.py BUILD_FOLDER ROOT"""
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

BUILD, ROOT = map(os.path.abspath, sys.argv[1:3])
SOURCES = ["CMakeLists.txt", "LICENSE", "MANIFEST.in", "cmake", "lib", "pyproject.toml", "setup.py"]
ALONE = ["--no-build-isolation", "--no-index", "--no-deps"]
USE = """
import os, sys
import numpy
import chunkhit

for index in range(4):
    os.makedirs(f"images/{index % 2}", exist_ok=True)
    with open(f"images/{index % 2}/{index}.ppm", "wb") as file:
        file.write(b"P6 2 1 255\\n" + bytes([index] * 6))
chunkhit.pack_images("images", "train")
batches = list(chunkhit.ImageLoader("train", batch_size=4))
assert sorted(int(image[0, 0, 0]) for image in batches[0][0]) == [0, 1, 2, 3]
with open("/proc/self/maps") as file:
    loaded = {line.split()[-1] for line in file if "chunkhit" in line}
assert len(loaded) == 3 and all(path.startswith(sys.prefix) for path in loaded), loaded
print(chunkhit.__file__)
"""


def check(holds, *what):
    if not holds:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def run(*command, expect=0, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    check(done.returncode == expect, *command, "exit", done.returncode, done.stdout)
    return done.stdout


def main(folder):
    sources = os.path.join(folder, "sources")
    os.mkdir(sources)
    for name in SOURCES:
        path = os.path.join(ROOT, name)
        (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, os.path.join(sources, name))
    run("/usr/bin/python3", "-m", "venv", "--system-site-packages", f"{folder}/venv")
    python = f"{folder}/venv/bin/python"
    environment = {**os.environ, "CHUNKHIT_BUILD_FOLDER": BUILD, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}
    environment.pop("PYTHONPATH", None)

    found = run(python, "-m", "pip", "install", *ALONE, ".", cwd=sources, expect=1,
                env={**environment, "CHUNKHIT_BUILD_FOLDER": f"{folder}/venv"})
    check("not found; expected a build of the target chunkhit_python" in found, found)

    run(python, "-m", "pip", "install", *ALONE, ".", cwd=sources, env=environment)
    os.mkdir(f"{folder}/use")
    used = run(python, "-c", USE, cwd=f"{folder}/use", env=environment)
    check(used.startswith(f"{folder}/venv/lib/"), used)
    run(python, "-m", "pip", "uninstall", "--yes", "chunkhit", env=environment)
    check(not glob.glob(f"{folder}/venv/lib/*/site-packages/chunkhit*"), "left after pip uninstall")

    run(python, "-m", "pip", "wheel", *ALONE, "--wheel-dir", f"{folder}/wheels", ".", cwd=sources, env=environment)
    (wheel,) = glob.glob(f"{folder}/wheels/chunkhit-*-cp3*-linux_*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    modules = {str(path.relative_to(f"{ROOT}/lib/python")) for path in pathlib.Path(f"{ROOT}/lib/python/chunkhit").rglob("*.*")
               if "__pycache__" not in path.parts}
    binaries = {name for name in names if ".so" in name}
    stubs = {name for name in names if name.endswith(".pyi")} - modules
    check({"chunkhit/_loaders.pyi", "chunkhit/torch.pyi"} < stubs, "the wheel holds no stubs that are generated:", *sorted(names))
    check(names - binaries - stubs == modules, "the wheel holds", *sorted(names), "expected", *sorted(modules))
    check(len(binaries) == 3 and {"chunkhit/libchunkhit.so.0", "chunkhit/libchunkhit_pack.so.0"} < binaries, *binaries)
    print(os.path.basename(wheel), len(names), "files")


with tempfile.TemporaryDirectory() as scratch:
    main(os.path.realpath(scratch))

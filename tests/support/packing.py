"""What the scripts in tests/failures share: a small set of images, running the commands, comparing packs."""
import contextlib
import csv
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from PIL import Image

BIN = sys.argv[1]
# Whether each point of a sweep is taken, or every nth (tests/run.sh --deep).
DEEP = "CHUNKHIT_TEST_DEEP" in os.environ


def sanitizer_runtimes():
    """The sanitizers' libraries that the commands load: they refuse to start behind another preloaded library."""
    loaded = subprocess.run(["ldd", os.path.join(BIN, "pack-images")], stdout=subprocess.PIPE, check=True).stdout.decode()
    return [line.split()[2] for line in loaded.splitlines() if "asan.so" in line]


# For LD_PRELOAD: its calls are then between the sanitizer's and the C library's.
SHIM = ":".join([*sanitizer_runtimes(), sys.argv[2]])
# HDF5 asks for whatever a damaged part says: it must get the null that the C library would give.
os.environ.setdefault("ASAN_OPTIONS", "allocator_may_return_null=1")
os.environ.setdefault("LSAN_OPTIONS", "print_suppressions=0:suppressions="
                      + os.path.join(os.path.dirname(__file__), "hdf5_leaks.supp"))
# Started in the background or by nohup, scripts ignore signals, and so would the commands that they start.
for ended_by in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(ended_by, signal.SIG_DFL)
# Small parts and chunks, so that the paths of many parts run on little data.
SMALL = ["--resize", "16x12", "--chunk-samples", "16", "--part-bytes", "40000"]
OWN_SIZES = ["--sizes", "own", "--part-samples", "60", "--chunk-bytes", "20000"]


class Workspace:
    """A folder that is removed at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="chunkhit-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def __call__(self, name):
        return os.path.join(self.path, name)


def make_images(root, count=400, bad=0, seed=1, odd=False):
    """Writes `count` small images (JPEG and PNG) in three classes and labels.csv; the last `bad` are broken, and every
    seventh JPEG claims an unknown JFIF revision where `odd`, which is a warning."""
    rng = np.random.default_rng(seed)
    rows = []
    for index in range(count):
        label = ("ant", "bee", "cat")[index % 3]
        name = f"images/{label}/{index:05d}.{'png' if index % 5 == 0 else 'jpg'}"
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        coarse = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((64, 48), Image.BICUBIC).save(path)
        if odd and index % 7 == 0 and path.endswith("jpg"):
            with open(path, "r+b") as file:
                file.seek(11)
                file.write(b"\x09")
        if index >= count - bad:
            with open(path, "r+b") as file:
                file.truncate(os.path.getsize(path) // 2)
        rows.append((name, label))
    with open(os.path.join(root, "labels.csv"), "w", newline="") as file:
        csv.writer(file).writerows([("file", "label")] + rows)
    return rows


def sanitizer_accuses_us(text):
    """Whether a sanitizer reports an error outside of HDF5. A damaged part may crash HDF5, which is why pack-verify reads it
    in a child process: then the report's first frame that is not the sanitizer's own is HDF5's."""
    frames = [line for line in text.splitlines() if re.match(r"\s+#\d+ ", line) and "libsanitizer" not in line]
    hdf5_crashed = "ERROR: AddressSanitizer" in text and frames and "libhdf5" in frames[0]
    return re.search(r"ERROR: \w+Sanitizer|runtime error:", text) and not hdf5_crashed


def run(command, *arguments, expect=0, env=None, timeout=120):
    """Runs a command and returns its output; ends the test when the exit code is another than expected."""
    done = subprocess.run([os.path.join(BIN, command), *map(str, arguments)], stdin=subprocess.DEVNULL, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
    text = done.stdout.decode(errors="replace")
    # Their exit codes are also those of commands, and pack-verify takes a crash in its child for a damaged part.
    if sanitizer_accuses_us(text):
        raise SystemExit(f"{command} {' '.join(map(str, arguments))}\n{text}")
    codes = (expect,) if isinstance(expect, int) else expect
    if done.returncode not in codes:
        raise SystemExit(f"{command} {' '.join(map(str, arguments))}\nexit {done.returncode}, expected {codes}\n{text}")
    return text if isinstance(expect, int) else (done.returncode, text)


def pack(root, output, *arguments, **how):
    shape = [] if "--sizes" in arguments else SMALL
    return run("pack-images", root, "--labels", os.path.join(root, "labels.csv"), *shape, "--progress", "none",
               "--output", output, *arguments, **how)


def fingerprint(folder):
    """Hash of every file that two equal packs share (run.json and the stamps of inputs may differ)."""
    return {name: hashlib.sha256(open(os.path.join(folder, name), "rb").read()).hexdigest()
            for name in sorted(os.listdir(folder)) if name != "run.json" and not name.endswith(".inputs")}


def files_of(folder):
    """Every file below a folder but run.json, and its bytes."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            if name != "run.json":
                with open(os.path.join(path, name), "rb") as file:
                    found[os.path.join(os.path.relpath(path, folder), name)] = file.read()
    return found


def draw_seed():
    """The seed of what a test draws, printed: CHUNKHIT_TEST_SEED, a number or "random". By default always the same, so
    that a test that passed passes again."""
    given = os.environ.get("CHUNKHIT_TEST_SEED", "1")
    seed = random.randrange(1 << 30) if given == "random" else int(given)
    print("seed", seed, flush=True)
    return seed


def check(truth, *what):
    if not truth:
        raise SystemExit("FAILED: " + " ".join(map(str, what)))


def outcome(test, space):
    """Calls a test; returns "passed", or why it was skipped."""
    try:
        test(space)
    except unittest.SkipTest as reason:
        return f"skipped: {reason}"
    return "passed"


def run_tests(names, workspace=None):
    """Calls a script's functions test_*, all in `workspace` or each in one of its own."""
    for name, test in list(names.items()):
        if name.startswith("test_"):
            with contextlib.nullcontext(workspace) if workspace else Workspace() as space:
                print(name, outcome(test, space), flush=True)

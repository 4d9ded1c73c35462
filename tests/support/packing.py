"""What the scripts in tests/failures share: a small set of pictures, running the commands, comparing packs."""
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

BIN, SHIM = sys.argv[1], sys.argv[2]
# Small parts and chunks, so that the paths of many parts run on little data.
SMALL = ["--resize", "16x12", "--chunk-samples", "16", "--part-bytes", "40000"]


class Workspace:
    """A folder that is removed at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="chunkhit-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def __call__(self, name):
        return os.path.join(self.path, name)


def make_pictures(root, count=400, bad=0, seed=1):
    """Writes `count` small pictures (JPEG and PNG) in three classes and labels.csv; the last `bad` are broken."""
    rng = np.random.default_rng(seed)
    rows = []
    for index in range(count):
        label = ("ant", "bee", "cat")[index % 3]
        name = f"images/{label}/{index:05d}.{'png' if index % 5 == 0 else 'jpg'}"
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        coarse = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((64, 48), Image.BICUBIC).save(path)
        if index >= count - bad:
            with open(path, "r+b") as file:
                file.truncate(os.path.getsize(path) // 2)
        rows.append((name, label))
    with open(os.path.join(root, "labels.csv"), "w", newline="") as file:
        csv.writer(file).writerows([("file", "label")] + rows)
    return rows


def run(command, *arguments, expect=0, env=None, timeout=120):
    """Runs a command and returns its output; ends the test when the exit code is another than expected."""
    done = subprocess.run([os.path.join(BIN, command), *map(str, arguments)], stdin=subprocess.DEVNULL, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
    text = done.stdout.decode(errors="replace")
    codes = (expect,) if isinstance(expect, int) else expect
    if done.returncode not in codes:
        raise SystemExit(f"{command} {' '.join(map(str, arguments))}\nexit {done.returncode}, expected {codes}\n{text}")
    return text if isinstance(expect, int) else (done.returncode, text)


def pack(root, output, *arguments, **how):
    return run("pack-images", root, "--labels", os.path.join(root, "labels.csv"), *SMALL, "--progress", "none",
               "--output", output, *arguments, **how)


def fingerprint(folder):
    """Hash of every file that two equal packs share (run.json may differ)."""
    return {name: hashlib.sha256(open(os.path.join(folder, name), "rb").read()).hexdigest()
            for name in sorted(os.listdir(folder)) if name != "run.json"}


def check(truth, *what):
    if not truth:
        raise SystemExit("FAILED: " + " ".join(map(str, what)))

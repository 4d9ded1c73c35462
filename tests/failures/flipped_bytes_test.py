"""Every flipped bit, truncation, swap, stranger and missing file of a pack is found by pack-verify."""
import os
import random
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import Workspace, check, make_pictures, pack, run

FLIPS_A_FILE = 25


def expect_fault(folder, what):
    text = run("pack-verify", folder, expect=65)
    check("part-" in text or ".json" in text or ".csv" in text, what, text)
    return text


with Workspace() as space:
    root = space("photos")
    make_pictures(root, 160, bad=2)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    for arguments in (["--container", "hdf5"], ["--container", "hdf5", "--compress", "deflate"], ["--container", "shard"]):
        good = space("pack")
        pack(root, good, *arguments, "--max-errors", "10", "--force")
        for name in sorted(os.listdir(good)):
            if name == "run.json":
                continue
            path = os.path.join(good, name)
            data = open(path, "rb").read()
            size = len(data)
            # The beginning and the end hold the structure; the rest is sampled.
            places = {0, size // 2, size - 1, *(rng.randrange(min(size, 4096)) for _ in range(FLIPS_A_FILE // 2)),
                      *(rng.randrange(size) for _ in range(FLIPS_A_FILE // 2))}
            for place in places:
                damaged = bytearray(data)
                damaged[place] ^= 1 << rng.randrange(8)
                open(path, "wb").write(damaged)
                expect_fault(good, f"{name}: byte {place} flipped")
            for keep in (0, 1, size // 3, size - 1):
                open(path, "wb").write(data[:keep])
                expect_fault(good, f"{name}: cut to {keep} bytes")
            open(path, "wb").write(data + b"\0")
            expect_fault(good, f"{name}: a byte appended")
            open(path, "wb").write(data)
        parts = sorted(name for name in os.listdir(good) if name.startswith("part-") and not name.endswith(".json"))
        a, b = (os.path.join(good, name) for name in parts[:2])
        shutil.copy(a, space("kept"))
        shutil.copy(b, a)
        expect_fault(good, "a part twice")
        os.remove(a)
        check("part-00000" in expect_fault(good, "a part missing"), "names the missing part")
        shutil.copy(space("kept"), a)
        shutil.copy(a, os.path.join(good, parts[0].replace("00000", "00099")))
        check("00099" in expect_fault(good, "a stranger"), "names the stranger")
        os.remove(os.path.join(good, parts[0].replace("00000", "00099")))
        check("whole" in run("pack-verify", good), "whole again")
        print(*arguments, "passed")

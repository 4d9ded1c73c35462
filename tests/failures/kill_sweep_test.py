"""Killed before each call that changes the output: the same command finishes with the right bytes and leaves nothing else.

A third argument, "all", takes every call, and so does tests/run.sh --deep but for ratings that spill; else the later ones of a kind are
taken ever more sparsely."""
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import DEEP, SHIM, Workspace, check, fingerprint, make_images, run
from sparse_packs import random_ratings, write_csv

ALL = len(sys.argv) > 3
OPS = ("mkdir", "open", "write", "pwrite", "ftruncate", "fsync", "close", "rename", "unlink", "rmdir")


def tree(folder):
    """Every entry below a folder, hidden ones too."""
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, folders, names in os.walk(folder) for name in folders + names)


def packs_of(out):
    return [at for at, _, names in os.walk(out) if "manifest.json" in names]


def prints(out):
    return {os.path.relpath(at, out): fingerprint(at) for at in packs_of(out)}


def numbers(takes_all):
    """1, 2, 3, ... or with growing gaps."""
    number = 1
    while True:
        yield number
        number += 1 if takes_all else max(1, number // 4)


def sweep(space, command, ops=OPS, takes_all=ALL, **environment):
    run(*command, "-o", space("golden/out"))
    golden, files = prints(space("golden/out")), tree(space("golden"))
    killed = 0
    for op in ops:
        for nth in numbers(takes_all):
            out = space("killed/out")
            code, _ = run(*command, "-o", out, expect=(0, -signal.SIGKILL),
                          env={"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:kill", "FAULT_PATH": out, **environment})
            run(*command, "-o", out)
            check(prints(out) == golden, command, op, nth, "differs from an undisturbed run")
            check(tree(space("killed")) == files, command, op, nth, "left", set(tree(space("killed"))) ^ set(files))
            shutil.rmtree(space("killed"))
            if code == 0:
                break
            killed += 1
    shutil.rmtree(space("golden"))
    print(" ".join(command[0:1] + command[2:]), *environment, "passed:", killed, "kills, nothing left behind", flush=True)


def sweep_spilled(space):
    """Ratings that do not fit into memory: in a file without a name, and where the file system has none."""
    ratings = write_csv(space("many.csv"), random_ratings(2, users=110000, items=400, count=700000))
    command = ["pack-sparse", ratings, "--memory-bytes", "32M", "--threads", "1", "--part-bytes", "2M", "--progress", "none"]
    text = run(*command, "-o", space("unread/out"), expect=73,
               env={"LD_PRELOAD": SHIM, "FAULT": "pread:1", "FAULT_PATH": space("unread/out")})
    check("spill" in text and "cannot read back" in text, "nothing was spilled", text)
    shutil.rmtree(space("unread"), ignore_errors=True)
    sweep(space, command)
    sweep(space, command, OPS if ALL else ("open", "pwrite", "close", "unlink"), NO_TMPFILE="1")


with Workspace() as space:
    root = space("photos")
    make_images(root, 60)
    images = ["pack-images", root, "--labels", f"{root}/labels.csv", "--resize", "16x12", "--chunk-samples", "8",
              "--part-bytes", "20000", "--progress", "none"]
    ratings = ["pack-sparse", write_csv(space("ratings.csv"), random_ratings(1, users=100, items=40, count=1500)),
               "--part-bytes", "3000", "--progress", "none"]
    for command in (images, [*images, "--container", "shard", "--split", "train=0.7,val=0.3"],
                    [*ratings, "--memory-bytes", "32M", "--threads", "1"], [*ratings, "--container", "hdf5"]):
        sweep(space, command, takes_all=ALL or DEEP)
    sweep_spilled(space)

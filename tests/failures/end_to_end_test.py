"""Packs small sets and reads them with h5py; equal bytes for any number of threads, whatever is rejected."""
import csv
import json
import os
import sys

import h5py
import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import Workspace, check, fingerprint, make_pictures, pack, run


def read(folder):
    """Pixels, labels, rows and files of all parts of an HDF5 pack."""
    parts = [part["file"] for part in json.load(open(f"{folder}/manifest.json"))["parts"]]
    columns = {name: [] for name in ("images", "labels", "rows", "files")}
    for part in parts:
        with h5py.File(f"{folder}/{part}") as file:
            for name, values in columns.items():
                values.append(file[name][:])
    return {name: np.concatenate(values) for name, values in columns.items()}


def check_pixels(root, folder, rows):
    data = read(folder)
    for index, row in enumerate(data["rows"]):
        file, label = rows[row]
        check(data["files"][index].decode() == file, "file of row", row)
        check(("ant", "bee", "cat")[data["labels"][index]] == label, "label of row", row)
        expected = np.asarray(Image.open(f"{root}/{file}").convert("RGB").resize((16, 12), Image.BILINEAR))
        check(np.array_equal(data["images"][index], expected), "pixels of row", row)
    return data


def check_rejects(root, folder, bad):
    with open(f"{folder}/rejects.csv", newline="") as file:
        rejects = list(csv.DictReader(file))
    check(len(rejects) == bad, len(rejects), "rejects, expected", bad)
    check(all(reject["reason"] for reject in rejects), "a reject without a reason")


def test_pixels_threads_and_rejects(space):
    root = space("photos")
    rows = make_pictures(root, 400, bad=9)
    for arguments in (["--compress", "none"], ["--compress", "deflate"], ["--compress", "zstd:3"],
                      ["--container", "shard"], ["--container", "shard", "--compress", "none", "--layout", "nchw"]):
        packs = []
        for threads in (1, 2, 4, 7):
            out = space("out-" + "-".join(a.strip("-:") for a in arguments) + str(threads))
            pack(root, out, *arguments, "--threads", threads, "--max-errors", "10%")
            packs.append(fingerprint(out))
            check(packs[-1] == packs[0], arguments, threads, "threads: other bytes than with 1")
            check("whole" in run("pack-verify", out), "verify")
        check_rejects(root, out, 9)
        if arguments[-1] in ("none", "deflate"):
            data = check_pixels(root, out, rows) if "--container" not in arguments else None
            check(data is None or len(data["rows"]) == 391, "samples")


def test_class_folders_equal_the_csv(space):
    root = space("photos")
    run("pack-images", root + "/images", "--resize", "16x12", "--output", space("folders"), "--order", "input", "--max-errors", "9")
    data = read(space("folders"))
    check(list(data["labels"]) == sorted(data["labels"]), "classes in order")
    check(json.loads(run("pack-info", space("folders"), "--json"))["classes"][1]["name"] == "bee", "class names")


def test_split_covers_every_row_once(space):
    out = space("split")
    pack(space("photos"), out, "--split", "train=0.8,val=0.2", "--max-errors", "10%")
    rows = np.concatenate([read(f"{out}/{name}")["rows"] for name in ("train", "val")])
    check(len(set(rows)) == len(rows) == 391, "rows of the split")


def test_rejects_are_an_input_again(space):
    text = run("pack-images", space("photos"), "--labels", space("out-compress-none1/rejects.csv"), "--resize", "16x12",
               "--accept-warnings", "--output", space("again"), "--max-errors", "100%", expect=(0, 1, 65))[1]
    check("9 rows" in text or "9 files" in text, text)


def test_same_command_again_does_nothing(space):
    out = space("out-compress-none1")
    before = fingerprint(out)
    check("already packed" in pack(space("photos"), out, "--max-errors", "10%"), "already packed")
    check(fingerprint(out) == before, "the finished pack changed")
    text = pack(space("photos"), out, "--seed", "1", expect=73)
    check("seed: 0 before, 1 now" in text, text)
    pack(space("photos"), out, "--seed", "1", "--max-errors", "10%", "--force")


with Workspace() as workspace:
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test(workspace)
            print(name, "passed")

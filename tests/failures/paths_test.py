"""Paths that lead out of ROOT, or to what is no file, are rejects with a reason; nothing else is opened."""
import csv
import os
import socket
import subprocess
import sys

import h5py
import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, Workspace, check, run, run_tests

SECRET = 77  # the gray of the image outside, which must be in no pack


def make_root(space):
    """A root with images that are fine, and every way out of it."""
    root = space("root")
    os.makedirs(f"{root}/in/deep")
    os.makedirs(space("outside"))
    Image.new("RGB", (8, 8), (SECRET,) * 3).save(space("outside/secret.png"))
    for name in ("in/a.png", "in/deep/b.png", "UPPER.png", "upper.png", "cafe\u0301.png", "caf\u00e9.png", "line\nend.png"):
        Image.new("RGB", (8, 8), (10, 20, 30)).save(f"{root}/{name}")
    for name, target in {"link-within.png": "in/a.png", "link-out.png": "../outside/secret.png",
                         "link-absolute.png": space("outside/secret.png"), "folder-out": "../outside",
                         "loop.png": "loop.png", "proc.png": "/proc/self/exe", "dangling.png": "nothing",
                         "magic": "/proc/self/root", "link-to-link.png": "folder-out/secret.png",
                         "within-absolute.png": f"{root}/in/a.png"}.items():
        os.symlink(target, f"{root}/{name}")
    os.mkfifo(f"{root}/fifo.png")
    socket.socket(socket.AF_UNIX).bind(f"{root}/socket.png")
    os.makedirs(f"{root}/folder.png")
    open(f"{root}/empty.png", "w").close()
    with open(f"{root}/other.png", "w") as file:
        file.write("no image at all")
    if os.geteuid() == 0:
        subprocess.run(["mknod", f"{root}/device.png", "c", "1", "5"], stderr=subprocess.DEVNULL)  # /dev/zero
    return root


GOOD = ["in/a.png", "in/deep/b.png", "./in/a.png", "in/../in/a.png", "in//a.png", "in/deep/../../in/a.png",
        "link-within.png", "within-absolute.png", "UPPER.png", "upper.png", "cafe\u0301.png", "caf\u00e9.png", "line\nend.png"]
LEADS_OUT = ["../outside/secret.png", "in/../../outside/secret.png", "link-out.png", "link-absolute.png",
             "folder-out/secret.png", "link-to-link.png", "/etc/passwd", "/dev/zero",
             "../root/in/a.png", "in/deep/../../../root/in/a.png", "/proc/self/exe", "..", "proc.png", "magic/etc/passwd"]
REJECTED = {"loop.png": "link", "dangling.png": "no such file", "missing.png": "no such file", "in/a.png/b": "no such file",
            "magic/x": "no such file", "fifo.png": "not a regular file", "socket.png": "not a regular file", "folder.png": "folder", ".": "folder", "in/": "folder",
            "empty.png": "empty", "other.png": "not an image",
            "x" * 300 + ".png": "name too long", "d/" * 2500 + "a.png": "name too long", "~/a.png": "no such file",
            "$HOME/a.png": "no such file", "in\\none.png": "no such file", "IN/A.PNG": "no such file",
            "file:///etc/passwd": "no such file", "http://localhost/a.png": "no such file"}


def absolute_paths(space):
    """Paths of one image below the root, by several names of the root; packs have it relative to the root."""
    root, alias = space("root"), space("alias")
    if not os.path.islink(alias):
        os.symlink("root", alias)
    return [f"{root}/in/a.png", f"{root}//in/a.png", f"{alias}/in/a.png", f"{root}/../root/in/a.png", f"{root}/in/a.png"]


def check_packed(space, out):
    """Every row is where it belongs, and the image outside is nowhere."""
    good = [*GOOD, *["in/a.png"] * len(absolute_paths(space))]
    with open(f"{out}/rejects.csv", newline="") as file:
        reasons = {row["file"]: row["reason"] for row in csv.DictReader(file)}
    expected = {*LEADS_OUT, *REJECTED}
    check(set(reasons) == expected, set(reasons) ^ expected)
    for name in LEADS_OUT:
        check("leads out of the root" in reasons[name], name, reasons[name])
    for name, words in REJECTED.items():
        check(words in reasons[name].lower(), name[:40], reasons[name])
    with h5py.File(f"{out}/part-00000.h5") as part:
        check(sorted(file.decode() for file in part["files"][:]) == sorted(good), part["files"][:])
        check(not np.any(part["images"][:] == SECRET), "an image from outside was packed")


def test_rows_of_a_list(space):
    root = make_root(space)
    if os.path.exists(f"{root}/device.png"):
        REJECTED["device.png"] = "not a regular file"
    # A neighbour whose path begins as the root's, behind a row that is the root itself.
    os.makedirs(root + "2/in")
    Image.new("RGB", (8, 8), (SECRET,) * 3).save(root + "2/in/a.png")
    LEADS_OUT.append(root + "2/in/a.png")
    rows = [*GOOD, *absolute_paths(space), root + "/", *LEADS_OUT, *REJECTED]
    with open(space("list.csv"), "w", newline="") as file:
        csv.writer(file).writerows([("file", "label"), *((name, "a") for name in rows)])
    run("pack-images", root, "--labels", space("list.csv"), "--max-errors", "100%", "--output", space("listed"), timeout=30)
    check_packed(space, space("listed"))


def test_rows_of_one_file_by_two_names_are_in_one_pack_of_a_split(space):
    root, names = space("root"), ["in/a.png", "in/deep/b.png", "UPPER.png", "upper.png"]
    with open(space("twice.csv"), "w", newline="") as file:
        csv.writer(file).writerows([("file", "label"), *((name, "a") for name in names), *((f"{root}/{name}", "a") for name in names)])
    run("pack-images", root, "--labels", space("twice.csv"), "--split", "train=0.5,val=0.5", "--output", space("split"), timeout=30)
    packs = []
    for name in ("train", "val"):
        with h5py.File(space(f"split/{name}/part-00000.h5")) as part:
            packs.append(sorted(file.decode() for file in part["files"][:]))
    check(len(packs[0]) == 4 and not set(packs[0]) & set(packs[1]), packs)


def test_class_folders(space):
    run("pack-images", space("root"), "--resize", "8x8", "--max-errors", "100%", "--output", space("found"), timeout=30)
    with open(space("found/rejects.csv"), newline="") as file:
        found = {row["file"]: row["reason"] for row in csv.DictReader(file)}
    check("folder-out" in found and "link" in found["folder-out"], found)
    with h5py.File(space("found/part-00000.h5")) as part:
        check({file.decode() for file in part["files"][:]} == {"in/a.png", "in/deep/b.png"}, part["files"][:])


def test_a_link_that_is_swapped_meanwhile_leads_nowhere(space):
    """A file that is by turns an image and a link out of ROOT: packed, or rejected, but never the one outside."""
    root = space("racing")
    os.makedirs(f"{root}/x")
    Image.new("RGB", (8, 8), (10, 20, 30)).save(f"{root}/good.png")
    with open(space("race.csv"), "w") as file:
        file.write("file,label\ngood.png,a\n" + "x/swapped.png,a\n" * 5000)
    os.link(f"{root}/good.png", f"{root}/x/swapped.png")
    swapper = subprocess.Popen(
        ["bash", "-c", f"cd {root}; while :; do ln -sf ../../outside/secret.png x/swapped.png; ln -f good.png x/swapped.png; done"])
    try:
        run("pack-images", root, "--labels", space("race.csv"), "--resize", "8x8", "--max-errors", "100%",
            "--output", space("raced"))
    finally:
        swapper.kill()
        swapper.wait()
    with h5py.File(space("raced/part-00000.h5")) as part:
        check(not np.any(part["images"][:] == SECRET), "the image outside was packed")
        print("  packed", len(part["images"]), "of 5001")


def test_links_in_the_output_are_not_followed(space):
    os.makedirs(space("trap"))
    with open(space("precious"), "w") as file:
        file.write("precious")
    for name in ("part-00000.h5", ".part-00000.h5.tmp", "manifest.json", ".manifest.json.tmp", "rejects.csv"):
        os.symlink(space("precious"), space(f"trap/{name}"))
        run("pack-images", space("root"), "--resize", "8x8", "--max-errors", "100%", "--output", space("trap"), expect=(0, 65, 73))
        check(open(space("precious")).read() == "precious", name, "was written through")
        for left in os.listdir(space("trap")):
            os.remove(space(f"trap/{left}"))


with Workspace() as workspace:
    check(os.path.exists(f"{BIN}/pack-images"), BIN)
    run_tests(globals(), workspace)

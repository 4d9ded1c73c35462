"""Packs of images of their own sizes: the same bytes for any threads, tasks and interruptions; little memory, faults, rejects."""
import csv
import errno
import json
import os
import random
import subprocess
import sys
import time

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from limits import run_limited
from packing import BIN, SHIM, Workspace, check, draw_seed, fingerprint, make_images, run, sanitizer_runtimes

MIB = 1 << 20
SMALL = ["--sizes", "own", "--part-samples", "50", "--chunk-bytes", "20000", "--max-errors", "10%"]


def pack(root, out, *arguments, **how):
    return run("pack-images", root, "--labels", f"{root}/labels.csv", *SMALL, "--progress", "none", "-o", out,
               *arguments, **how)


def make_photos(root, count=400):
    """Those of `make_images`, three of them at other sizes and one of eight without an end."""
    rows = make_images(root, count)
    draw = np.random.default_rng(2)
    for index, (name, _) in enumerate(rows):
        path = f"{root}/{name}"
        if index % 3:
            width, height = (int(side) for side in draw.integers(20, 200, 2))
            Image.open(path).resize((width, height)).save(path)
        if index % 100 == 8:
            with open(path, "r+b") as file:
                file.truncate(os.path.getsize(path) * 2 // 3)
    return rows


def check_equal(out, golden):
    found = fingerprint(out)
    check(found == golden, out, "has other bytes than a plain run makes:", sorted(n for n in found.keys() | golden.keys() if found.get(n) != golden.get(n)))
    check(not any(name.startswith(".") or name.endswith(".tmp") for name in os.listdir(out)), "left behind", os.listdir(out))


def test_bytes_do_not_depend_on_threads_or_memory(space, root, golden):
    for arguments in (("--threads", 2), ("--threads", 7), ("--threads", 32), ("--memory-bytes", "1300M")):
        out = space("x".join(map(str, arguments)))
        pack(root, out, *arguments)
        check_equal(out, golden)


def test_what_is_rejected(root, plain):
    with open(f"{plain}/rejects.csv", newline="") as file:
        rejects = list(csv.DictReader(file))
    check(len(rejects) == 4 and all(int(each["row"]) % 100 == 8 for each in rejects), rejects)
    check(all("truncated" in each["reason"] for each in rejects), rejects)
    manifest = json.load(open(f"{plain}/manifest.json"))
    check((manifest["samples"], manifest["rejected"], len(manifest["parts"])) == (396, 4, 8), manifest)
    check(manifest["sample"] == {"channels": 3, "layout": "nhwc", "dtype": "uint8"}, manifest["sample"])
    check(all(part["chunks"] > 3 for part in manifest["parts"]), manifest["parts"])


def test_killed_at_random_moments(space, root, golden):
    rng = random.Random(draw_seed())
    out = space("killed")
    for _ in range(8):
        process = subprocess.Popen([f"{BIN}/pack-images", root, "--labels", f"{root}/labels.csv", *SMALL, "-o", out],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 0.4))
        process.kill()
        process.wait()
    pack(root, out)
    check_equal(out, golden)


def test_tasks_make_the_plain_pack(space, root, golden):
    out = space("planned")
    pack(root, out, "--plan", 3)
    for task in (2, 0, 1):
        run("pack-run", out, "--task", task)
    run("pack-run", out)
    check_equal(out, golden)
    check(not os.path.exists(f"{out}/plan.json"), "the plan stayed")


def test_a_file_that_changed_is_packed_anew(space, root, golden):
    out, changed = space("changed"), f"{root}/images/bee/00001.jpg"
    pack(root, out)
    with open(changed, "rb") as file:
        before = file.read()
    Image.open(changed).transpose(Image.ROTATE_90).save(changed)
    text = pack(root, out)
    check("1 image changed" in text and "1 part packed again" in text, text)
    check(fingerprint(out) != golden, "the change was not seen")
    run("pack-verify", out)
    with open(changed, "wb") as file:
        file.write(before)
    pack(root, out)
    check_equal(out, golden)


def test_merged_packs_and_their_lists(space, root, plain):
    other, merged = space("other"), space("merged")
    pack(root, other, "--seed", 4, "--max-side", 64)
    text = run("pack-merge", merged, plain, other)
    check("different settings: max-side" in text, text)
    run("pack-verify", merged)
    info = json.loads(run("pack-info", merged, "--json"))
    parts = [json.loads(run("pack-info", each, "--json")) for each in (plain, other)]
    check(info["samples"] == 2 * 396 and info["raw_bytes"] == sum(each["raw_bytes"] for each in parts), info)
    check(info["sizes"]["height"]["max"] == parts[0]["sizes"]["height"]["max"], info["sizes"])
    listed = run("pack-info", plain, "--list")
    check(sum(line.startswith("images/") for line in listed.splitlines()) == 396, listed[:200])
    fixed = space("fixed")
    run("pack-images", root, "--labels", f"{root}/labels.csv", "--resize", "16x12", "--container", "shard", "--codec", "none",
        "--max-errors", "10%", "--progress", "none", "-o", fixed)
    code, text = run("pack-merge", space("mixed"), plain, fixed, expect=(65,))
    check("their own sizes" in text, code, text)


def test_damage_is_found(space, root, plain):
    out = space("damaged")
    for third in (1, 2):
        subprocess.run(["cp", "-r", plain, out], check=True)
        part = f"{out}/part-00003.zst"
        place = os.path.getsize(part) * third // 3
        with open(part, "r+b") as file:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 4]))
        text = run("pack-verify", out, expect=65)
        check("part-00003." in text and "part-00002" not in text, text)
        os.remove(part)
        pack(root, out)
        check_equal(out, fingerprint(plain))
        subprocess.run(["rm", "-r", out], check=True)


def test_files_as_they_are(space, root, plain):
    """Every flipped bit of a payload is found, merged with tiles or not."""
    out, merged = space("files"), space("files-merged")
    pack(root, out, "--jpeg-tile", 0)
    text = run("pack-merge", merged, plain, out)
    check("different settings" not in text, "the pixels are the same", text)
    run("pack-verify", merged)
    part = f"{out}/part-00002.zst"
    with open(part, "rb") as file:
        good = file.read()
    with open(f"{root}/images/bee/00001.jpg", "rb") as file:
        begin, end = 4096, 4096 + 50 * len(file.read())
    rng = random.Random(draw_seed())
    for _ in range(20):
        damaged = bytearray(good)
        damaged[rng.randrange(begin, min(end, len(good)))] ^= 1 << rng.randrange(8)
        with open(part, "wb") as file:
            file.write(damaged)
        text = run("pack-verify", out, expect=65)
        check("part-00002." in text, text)


def test_a_write_that_fails(space, root, golden):
    out = space("failed")
    failed = 0
    for nth in (1, 3, 8, 20, 40):
        for error in (errno.ENOSPC, errno.EIO):
            code, text = pack(root, out, expect=(0, 73), env={"LD_PRELOAD": SHIM, "FAULT": f"pwrite:{nth}:{error}", "FAULT_PATH": out})
            failed += code == 73
            check((code == 73) == (os.strerror(error) in text), code, text)
            pack(root, out)
            check_equal(out, golden)
            subprocess.run(["rm", "-r", out], check=True)
    check(failed >= 4, "only", failed, "writes failed")


def test_large_images_stay_within_memory(space):
    """Raw images of 30 MB each, more of them at once than there is room for."""
    root = space("large")
    os.makedirs(f"{root}/x")
    coarse = np.random.default_rng(1).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize((4000, 2500), Image.BICUBIC).save(f"{root}/x/00.png", compress_level=1)
    for index in range(1, 24):
        os.link(f"{root}/x/00.png", f"{root}/x/{index:02}.png")
    plain = None
    for threads in (1, 8):
        out = space(f"large-{threads}")
        done = run_limited("pack-images", root, "--sizes", "own", "--store", "raw", "--progress", "none",
                           "-o", out, "--threads", str(threads), "--memory-bytes", "700M", "--max-decode-bytes", "256M", seconds=300)
        check(done.code == 0, done)
        check(sanitizer_runtimes() or done.peak_bytes < 740 * MIB, done)
        plain = plain or fingerprint(out)
        check(fingerprint(out) == plain, "threads changed the pack")
        run("pack-verify", out)


def test_huge_images_are_rejected_or_shrunk(space):
    huge = space("huge")
    os.makedirs(f"{huge}/x")
    for name in "ab":
        Image.new("RGB", (9000, 6000), (3, 4, 5) if name == "a" else 9).save(f"{huge}/x/{name}.png", compress_level=1)
    code, text = run("pack-images", huge, "--sizes", "own", "--store", "raw", "-o", space("huge-out"), expect=(1,))
    check("162.0 MB in the pack, over the limit" in text and "--max-side" in text, text)
    run("pack-images", huge, "--sizes", "own", "--max-side", 500, "-o", space("huge-out"))


def test_dry_run_and_wrong_flags(space, root):
    text = pack(root, space("none"), "--dry-run")
    check("each image its own size" in text and "8 parts" in text, text)
    check(not os.path.exists(space("none")), "a dry run wrote something")
    for flags, words in ((("--resize", "64"), "--max-side"), (("--container", "hdf5"), "--container: expected shard, found hdf5; HDF5 takes images of one shape"),
                         (("--quality", "101"), "--quality"), (("--store", "png"), "--store"), (("--codec", "zstd"), "--codec")):
        text = run("pack-images", root, *SMALL, *flags, "-o", space("none"), expect=2)
        check(words in text and "`" not in text, flags, text)
    text = run("pack-images", root, "--max-side", 64, "-o", space("none"), expect=2)
    check("--sizes own" in text, text)


with Workspace() as space:
    test_huge_images_are_rejected_or_shrunk(space)
with Workspace() as space:
    root = space("photos")
    make_photos(root)
    plain = space("plain")
    pack(root, plain, "--threads", 1)
    golden = fingerprint(plain)
    run("pack-verify", plain)
    test_what_is_rejected(root, plain)
    test_bytes_do_not_depend_on_threads_or_memory(space, root, golden)
    test_killed_at_random_moments(space, root, golden)
    test_tasks_make_the_plain_pack(space, root, golden)
    test_a_file_that_changed_is_packed_anew(space, root, golden)
    test_merged_packs_and_their_lists(space, root, plain)
    test_damage_is_found(space, root, plain)
    test_files_as_they_are(space, root, plain)
    test_a_write_that_fails(space, root, golden)
    test_large_images_stay_within_memory(space)
    test_dry_run_and_wrong_flags(space, root)
print("images of their own sizes passed")

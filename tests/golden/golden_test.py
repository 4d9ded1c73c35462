"""Packs and unfinished plans that each version wrote, kept here as VERSION.tar.xz: this one must still read them, sample by
sample, resume loaders from their states, and finish the plans of this version with the same bytes, or name the libraries that
differ; those of earlier ones are named.
Usage: golden_test.py BIN [--record NAME]; --record adds NAME.tar.xz, for a release or a new layout. 0.1.0 has no
merged ratings, 0.1.0-ratings has them, and a plan of ratings, which is no longer finished; both have no images of their own sizes, 0.1.0-own-sizes has;
these three have no states, 0.1.0-states has; all four have no times of ratings, 0.1.0-times has; all five have no masks, 0.1.0-masks
has; all six have no views, 0.1.0-views has; none of them has hashes of samples, 0.2.0 has;
none of these has several fields, 0.2.0-fields has; none has items that repeat in a row, 0.2.0-repeats has.
Images of their own sizes in HDF5 (own-sizes-hdf5) are read, and no longer written."""
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import h5py
import numpy as np
from PIL import Image

import chunkhit

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
from pack_contents import contents  # noqa: E402

BIN = sys.argv[1]
IMAGES = ["pack-images", "images", "--labels", "images/labels.csv", "--chunk-samples", "4", "--progress", "none"]
RATINGS = ["pack-sparse", "ratings.csv", "--chunk-rows", "8", "--progress", "none"]
SPLIT = ["--split-by", "users", "--test", "8"]
# What is recorded: a folder, and the command that writes it.
PACKS = {
    "hdf5": [*IMAGES, "--codec", "deflate", "--part-bytes", "2600"],
    "raw": [*IMAGES, "--codec", "none", "--part-bytes", "2600"],
    "shard": [*IMAGES, "--container", "shard"],
    "numbers": [*IMAGES, "--container", "shard", "--codec", "zstd", "--label-column", "x", "--label-column", "y"],
    "merged": ["pack-merge"],
    "own-sizes": ["pack-images", "images", "--labels", "images/labels.csv", "--sizes", "own", "--progress", "none"],
    "own-sizes-small": ["pack-images", "images", "--labels", "images/labels.csv", "--sizes", "own", "--max-side", "9", "--progress", "none"],
    "masks-shard": [*IMAGES, "--pair", "masks", "--container", "shard"],
    "masks-hdf5": [*IMAGES, "--pair", "masks", "--codec", "deflate", "--part-bytes", "3600"],
    "masks-own-sizes": ["pack-images", "images", "--labels", "images/labels.csv", "--pair", "masks", "--sizes", "own", "--progress", "none"],
    "views-shard": [*IMAGES, "--pair", "views:view", "--container", "shard"],
    "views-hdf5": [*IMAGES, "--pair", "views:view", "--codec", "deflate", "--part-bytes", "4600"],
    "fields-shard": [*IMAGES, "--pair", "masks", "--pair", "depth=views:view", "--container", "shard"],
    "fields-hdf5": [*IMAGES, "--pair", "kinds=masks", "--pair", "views:view", "--codec", "none", "--part-bytes", "4600"],
    "ratings-shard": [*RATINGS, *SPLIT],
    "times-shard": ["pack-sparse", "timed.csv", *RATINGS[2:], *SPLIT, "--keep-times"],
    "times-hdf5": ["pack-sparse", "timed.csv", "--progress", "none", *SPLIT, "--keep-times", "--container", "hdf5"],
    "repeats-shard": ["pack-sparse", "plays.csv", *RATINGS[2:], *SPLIT, "--keep-times", "--duplicates", "keep"],
    "repeats-hdf5": ["pack-sparse", "plays.csv", "--progress", "none", *SPLIT, "--keep-times", "--duplicates", "keep", "--container", "hdf5"],
    "ratings-hdf5": [*[word for word in RATINGS if word not in ("--chunk-rows", "8")], *SPLIT, "--container", "hdf5"],
}
PLAN = [*PACKS["hdf5"], "--plan", "9"]
GROUPED = ["ratings-0.csv", "ratings-1.csv", "ratings-2.csv"]


def check(holds, *what):
    if not holds:
        raise SystemExit("FAILED: " + " ".join(map(str, what)))


def run(command, *arguments, folder, expect=(0,)):
    done = subprocess.run([command, *arguments], executable=os.path.join(BIN, command), cwd=folder, stdin=subprocess.DEVNULL,
                          timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode(errors="replace")
    check(done.returncode in expect, command, *arguments, "exit", done.returncode, text)
    return done.returncode, text


def files_of(folder):
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            if name != "run.json" and not name.endswith(".inputs"):
                with open(os.path.join(path, name), "rb") as file:
                    found[os.path.relpath(os.path.join(path, name), folder)] = file.read()
    return found


def loader_of(pack):
    """A loader of each kind of order that a state depends on: a shuffle, a seed, an augmentation."""
    info = chunkhit.pack_info(pack)
    if "matrices" in info:
        return chunkhit.SparseLoader(pack, batch_size=3, shuffle="global", seed=9)
    resized = {"resized_crop": {"height": 4, "width": 4}} if info.get("own_sizes") else {}
    return chunkhit.ImageLoader(pack, batch_size=3, shuffle="window", seed=9, augment={"flip_horizontal": 0.5, **resized})


def samples_of(loader):
    return [(batch.rows if hasattr(batch, "rows") else batch.samples).tolist() for batch in loader]


def stopped(pack):
    """The state of a loader after two batches, and the samples of the batches that follow."""
    loader = loader_of(pack)
    epoch = loader.epoch(1)
    next(epoch), next(epoch)
    state = json.loads(json.dumps(loader.state_dict()))
    return {"state": state, "samples": samples_of(epoch)}


def packs_in(folder):
    """Every pack below a folder, by its path in it."""
    return sorted(os.path.relpath(path, folder) for path, _, names in os.walk(folder) if "manifest.json" in names)


def write_inputs(folder):
    rng = np.random.default_rng(1)
    for name in ("images", "masks", "views"):
        os.makedirs(os.path.join(folder, name))
    with open(os.path.join(folder, "images/labels.csv"), "w") as table:
        table.write("file,label,x,y\n")
        for index in range(22):
            coarse = rng.integers(0, 256, (2, 3, 3), dtype=np.uint8)
            image = Image.fromarray(coarse).resize((12, 8), Image.BICUBIC)
            image.save(os.path.join(folder, f"images/{index:02}.png"))
            Image.fromarray(255 - np.asarray(image)[::-1] // 2).save(os.path.join(folder, f"views/{index:02}.png"))
            classes = np.kron(rng.integers(0, 4, (4, 6)), np.ones((2, 2))).astype(np.uint8)
            Image.fromarray(classes).save(os.path.join(folder, f"masks/{index:02}.png"))
            table.write(f"{index:02}.png,{('ant', 'bee', 'cat')[index % 3]},{index / 4},{-index}\n")
    pairs = sorted({(int(user), int(item)) for user, item in zip(rng.integers(0, 40, 300), rng.zipf(1.5, 300) % 30)})
    with open(os.path.join(folder, "ratings.csv"), "w") as table:
        table.write("user,item,rating\n")
        table.writelines(f"u{user},i{item},{(user * item % 10 + 1) / 2}\n" for user, item in pairs)
    with open(os.path.join(folder, "timed.csv"), "w") as table:
        table.write("user,item,rating,time\n")
        table.writelines(f"u{user},i{item},{(user * item % 10 + 1) / 2},{1_500_000_000 + 86_400 * user + item * item}\n"
                         for user, item in pairs)
    with open(os.path.join(folder, "plays.csv"), "w") as table:
        table.write("user,item,rating,time\n")
        table.writelines(f"u{user},i{item},{(user * play % 10 + 1) / 2},{1_500_000_000 + 86_400 * (user + play * item % 5)}\n"
                         for play in range(4) for user, item in pairs if play == 0 or (user + item) % 3 < play)
    for own, name in enumerate(GROUPED):
        with open(os.path.join(folder, name), "w") as table:
            table.write("user,item,rating\n")
            table.writelines(f"u{user},i{item},{(user * item % 10 + 1) / 2}\n" for user, item in pairs if user % 3 == own)


def record_ratings(folder):
    """Ratings that were merged."""
    run(*RATINGS, "--output", "items", folder=folder)
    for own in (0, 1):
        run(*RATINGS[:1], GROUPED[own], *RATINGS[2:], "--reuse-ids", "items", "--values", "u8:0.5", "--output", f"some{own}", folder=folder)
    run("pack-merge", "ratings-merged", "some0", "some1", folder=folder)
    for name in ("items", "some0", "some1"):
        shutil.rmtree(os.path.join(folder, name))


def record(folder):
    os.makedirs(folder)
    write_inputs(folder)
    for name, command in PACKS.items():
        packs = ["shard", "shard2"] if name == "merged" else []
        if packs:
            run(*PACKS["shard"], "--seed", "5", "--output", "shard2", folder=folder)
        run(*command, *(["merged", *packs] if packs else ["--output", name]), folder=folder)
    shutil.rmtree(os.path.join(folder, "shard2"))
    run(*PLAN, "--output", "plan", folder=folder)
    run("pack-run", "plan", "--task", "1", "--progress", "none", folder=folder)
    record_ratings(folder)
    for path, _, names in os.walk(folder):
        for name in names:
            if name == "run.json" or name.endswith(".inputs"):
                os.remove(os.path.join(path, name))
    with open(os.path.join(folder, "expected.json"), "w") as file:
        packs = {pack: os.path.join(folder, pack) for pack in packs_in(folder)}
        json.dump({pack: {**contents(path), "stopped": stopped(path)} for pack, path in packs.items()}, file, indent=1)
        file.write("\n")


def archive(folder, path):
    """Writes a tar of the folder's files that depends on nothing but their names and bytes."""
    def plain(entry):
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() else 0o644
        return entry

    check(not os.path.exists(path), path, "is recorded already")
    with tarfile.open(path, "w:xz") as tar:
        for name in sorted(os.listdir(folder)):
            tar.add(os.path.join(folder, name), name, filter=plain)


def check_packs(folder):
    with open(os.path.join(folder, "expected.json")) as file:
        expected = json.load(file)
    check(packs_in(folder) == sorted(expected) and expected, "packs are missing in", folder)
    for pack, recorded in expected.items():
        path = os.path.join(folder, pack)
        if before := recorded.pop("stopped", None):
            loader = loader_of(path)
            loader.load_state_dict(before["state"])
            resumed = samples_of(loader)
            check(resumed == before["samples"], pack, "after its state had", before["samples"], "has", resumed)
        found = contents(path)
        check(found == recorded, pack, "was", recorded, "is", found)
        run("pack-verify", path, folder=folder)
        if "x" not in recorded:
            with tempfile.TemporaryDirectory() as space:
                _, listed = run("pack-info", path, "--list", folder=space)
                rows = [line for line in listed.splitlines() if not line.startswith("note: ")]
                check(len(rows) == recorded["samples"] + 1, listed)


def check_damage_is_found(pack):
    """Of a layout that is only read now: every damage, and a change by another program."""
    part = os.path.join(pack, "part-00000.h5")
    with open(part, "rb") as file:
        whole = file.read()
    for at in range(9, len(whole), len(whole) // 41):
        with open(part, "wb") as file:
            file.write(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1:])
        check(chunkhit.verify_pack(pack)["problems"], "byte", at, "of", part)
    with open(part, "wb") as file:
        file.write(whole)
    with h5py.File(part, "r+") as file:
        file.attrs["another"] = 1
    try:
        chunkhit.ImageDataset(part)
    except chunkhit.Error as error:
        check("own sizes without the index" in str(error), error)
    else:
        check(False, part, "was opened without its index")


def check_old_packs_are_inputs(folder, space):
    train, test = (os.path.join(folder, "ratings-shard", name) for name in ("train", "test"))
    run("pack-sparse", train, test, "--output", "joined", "--progress", "none", folder=space)
    of_text, of_packs = (chunkhit.pack_info(os.path.join(space, "joined")), chunkhit.pack_info(train))
    check(of_text["rows"] == of_packs["rows"] + chunkhit.pack_info(test)["rows"], of_text["rows"])


def without_inputs(files):
    """The files; records of parts without the sizes of their input images and the codec's library, which the first builds of
    0.1.0 did not record: a later one writes them for the parts that it packs."""
    def shortened(content):
        record = json.loads(content)
        return {**record, "part": {**record["part"], "inputs": None, "codec_library": None}, "xxh3": None}

    return {path: shortened(content) if re.search(r"part-[0-9]+[.]json$", str(path)) else content
            for path, content in files.items()}


def rows_in(folder):
    return {pack: {**contents(os.path.join(folder, pack)), "pack_id": None} for pack in packs_in(folder)}


def check_plan(folder, space, name, root, finished):
    plan = os.path.join(space, name)
    if not os.path.exists(os.path.join(folder, name)):
        return "not there"
    shutil.copytree(os.path.join(folder, name), plan)
    status = chunkhit.plan_status(plan)
    check(status["parts_done"] == 1 and status["parts"] > 2 and 1 not in status["missing_tasks"], status)
    code, said = run("pack-run", plan, "--root", root, "--progress", "none", folder=space, expect=(0, 65))
    if code == 65:
        check("in the plan: contents could differ" in said, said)
        return "of another version"
    expected = os.path.join(folder, finished)
    if "compressed chunks may have other bytes" in said:
        check(rows_in(plan) == rows_in(expected), "the finished plan has other samples than the pack")
    else:
        check(without_inputs(files_of(plan)) == without_inputs(files_of(expected)), "the finished plan differs from the pack")
    return "finished"


def main():
    if "--record" in sys.argv:
        # Always the same folder, because the plan names it.
        record("/tmp/chunkhit-golden")
        archive("/tmp/chunkhit-golden", os.path.join(HERE, sys.argv[3] + ".tar.xz"))
        shutil.rmtree("/tmp/chunkhit-golden")
    versions = sorted(name for name in os.listdir(HERE) if name.endswith(".tar.xz"))
    check(versions, "nothing is recorded")
    for version in versions:
        with tempfile.TemporaryDirectory() as space:
            folder = os.path.join(space, "golden")
            with tarfile.open(os.path.join(HERE, version)) as tar:
                tar.extractall(folder)
            check_packs(folder)
            check_old_packs_are_inputs(folder, space)
            if os.path.exists(own_sizes := os.path.join(folder, "own-sizes-hdf5")):
                check_damage_is_found(own_sizes)
            print(version, "passed; its plan is", check_plan(folder, space, "plan", os.path.join(folder, "images"), "hdf5"))


if __name__ == "__main__":
    main()

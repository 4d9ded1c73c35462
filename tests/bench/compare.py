#!/usr/bin/python3
"""Compares the speed of two builds: packers and readers, each workload by both in turns.

usage: compare.py OLD_BUILD NEW_BUILD [--only NAME] [--rounds N]
       compare.py --base COMMIT [NEW_BUILD] [--only NAME] [--rounds N]     builds COMMIT in build/compare; NEW_BUILD: build/release

Prints a line a workload: median CPU time, clock time and page faults of OLD, the ratios NEW/OLD of each with the spread of
the CPU ratio over the rounds (N, 5 by default). A CPU ratio above 1.05 is marked. Each reads the packs that it made, because a
change of the format is a change of the speed; where OLD is too old to make one, both read NEW's.
Inputs are made once, in build/compare/inputs; packs are written to /dev/shm. About 5 minutes on two cores; needs
python3-numpy, python3-pil and nginx-light.
"""
import argparse
import filecmp
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / "build" / "compare"
LIMIT = 1.05
PHOTOS, SMALL, LARGE, PARTS = 500, 24_000, 1_500, 100


class Failed(Exception):
    """A build cannot do a workload: it is too old for it."""


# ---- Inputs, equal for both builds

def photo(random, height, width):
    """Smooth areas, edges and grain, so that JPEG and photo codecs work as hard as on photographs."""
    from PIL import Image
    coarse = Image.fromarray(random.integers(0, 256, (height // 24 + 2, width // 24 + 2, 3), np.uint8))
    image = np.asarray(coarse.resize((width, height), Image.BICUBIC), np.int16)
    return np.clip(image + random.normal(0, 6, image.shape), 0, 255).astype(np.uint8)


def make_inputs(folder):
    from PIL import Image
    random = np.random.default_rng(1)
    (folder / "photos" / "a").mkdir(parents=True)
    (folder / "photos" / "b").mkdir()
    for number in range(PHOTOS):
        image = Image.fromarray(photo(random, 384, 512))
        image.save(folder / "photos" / "ab"[number % 2] / f"{number:04}.jpg", quality=88)
    for name, count, side in (("small", SMALL, 64), ("large", LARGE, 224)):
        (folder / name).mkdir()
        for number in range(100):
            Image.fromarray(photo(random, side, side)).save(folder / name / f"{number}.jpg", quality=88)
        lines = [f"{number % 100}.jpg,{number % 10}" for number in range(count)]
        (folder / f"{name}.csv").write_text("file,label\n" + "\n".join(lines) + "\n")
    subprocess.run([sys.executable, HERE / "make_ratings.py", folder / "ratings.csv", "0.2"], check=True)


def inputs():
    folder = KEPT / "inputs"
    if not folder.exists():
        partial = KEPT / "inputs.partial"
        shutil.rmtree(partial, ignore_errors=True)
        make_inputs(partial)
        partial.rename(folder)
    return folder


# ---- Workloads of commands: packing

PACKING = {
    "pack JPEG to 64": ("pack-images", "photos", "--resize", "96x128", "--crop", "64x64"),
    "pack JPEG to 224": ("pack-images", "photos", "--resize", "256", "--crop", "224x224"),
    "pack own sizes": ("pack-images", "photos", "--sizes", "own", "--max-side", "400"),
    "pack photo shards": ("pack-images", "photos", "--resize", "256", "--crop", "224x224", "--container", "shard"),
    "pack 4 M ratings": ("pack-sparse", "ratings.csv"),
}


def pack(build, out, command, *arguments):
    """CPU seconds, seconds and page faults of a command."""
    shutil.rmtree(out, ignore_errors=True)
    run = [build / "tools" / command, *(inputs() / each if (inputs() / each).exists() else each for each in arguments),
           "--output", out, "--progress", "none"]
    begin = time.perf_counter()
    process = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    messages = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    if status != 0:
        raise Failed(f"{build}: {command}: {messages.decode().strip()}")
    return used.ru_utime + used.ru_stime, seconds, used.ru_minflt


# ---- Workloads of a process of its own: reading. Each gives what is done once before the measurement, and what is measured.

def epochs(loader, count):
    loader_epochs = iter(range(1, 1000))
    for _ in loader.epoch(0):
        pass

    def read():
        for _ in range(count):
            for _ in loader.epoch(next(loader_epochs)):
                pass
    return read


def images(packs, pack_name, count, **options):
    import chunkhit
    return epochs(chunkhit.ImageLoader(f"{packs}/{pack_name}", batch_size=256, seed=1, **options), count)


def rows(packs, count, **options):
    import chunkhit
    return epochs(chunkhit.SparseLoader(f"{packs}/ratings", batch_size=500, shuffle="global", seed=1, **options), count)


def many_opened(packs):
    import chunkhit
    return lambda: [chunkhit.ImageLoader(f"{packs}/parts", batch_size=16) for _ in range(120)]


def first_batches(packs):
    import chunkhit
    return lambda: [next(iter(chunkhit.ImageLoader(f"{packs}/large-shard", batch_size=64, shuffle="window", seed=each).epoch(0)))
                    for each in range(4)]


def single_samples(packs):
    import chunkhit
    dataset = chunkhit.ImageDataset(f"{packs}/small")
    order = np.random.default_rng(1).permutation(len(dataset))[:20000].tolist()
    return lambda: [dataset[each] for each in order]


CROPS = {"resized_crop": {"height": 224, "width": 224}, "flip_horizontal": 0.5}
READING = {
    "64, global, memory": lambda packs: images(packs, "small", 25, shuffle="global", cache="decoded"),
    "64, window, file": lambda packs: images(packs, "small", 12, shuffle="window", cache="none"),
    "64, wide window, file": lambda packs: images(packs, "small", 12, shuffle="window", window_chunks=128, cache="none"),
    "64, in order, file": lambda packs: images(packs, "small", 6, shuffle="none", cache="none"),
    "224, global, memory": lambda packs: images(packs, "large", 12, shuffle="global", cache="decoded"),
    "224, window, photo shards": lambda packs: images(packs, "large-shard", 2, shuffle="window", cache="none"),
    "224, float32, flip, crop": lambda packs: images(packs, "large", 5, shuffle="window", cache="decoded", dtype="float32", augment={
        "crop_height": 192, "crop_width": 192, "random_crop": True, "flip_horizontal": 0.5}),
    "resized crops, JPEG tiles": lambda packs: images(packs, "own-jpeg", 12, shuffle="window", augment=CROPS),
    "resized crops, raw": lambda packs: images(packs, "own-raw", 10, shuffle="window", augment=CROPS),
    "ratings, dense": lambda packs: rows(packs, 6),
    "ratings, CSR": lambda packs: rows(packs, 60, format="csr"),
    "open 100 parts": many_opened,
    "first batch": first_batches,
    "single samples in Python": single_samples,
    "over http": lambda packs: images(os.environ["PACKS_URL"], "large", 15, shuffle="window", cache="none"),
}


def share(old, new):
    """Lets both builds read one pack where both have packed equal parts: equal bytes on other pages took up to 1.3 of the time."""
    parts = sorted(path.name for path in old.glob("part-*") if path.suffix != ".json")
    if parts and filecmp.cmpfiles(old, new, parts, shallow=False)[0] == parts:
        shutil.rmtree(old)
        old.symlink_to(new)


def make_packs(old, new, packs):
    """Each build's packs, in packs/old and packs/new."""
    def make(name, *arguments):
        pack(new, packs / "new" / name, *arguments)
        try:
            pack(old, packs / "old" / name, *arguments)
        except Failed:
            shutil.copytree(packs / "new" / name, packs / "old" / name)
        share(packs / "old" / name, packs / "new" / name)
    make("small", "pack-images", "small", "--labels", "small.csv")
    make("large", "pack-images", "large", "--labels", "large.csv")
    make("large-shard", "pack-images", "large", "--labels", "large.csv", "--container", "shard")
    make("parts", "pack-images", "small", "--labels", "small.csv", "--chunk-samples", "24",
         "--part-bytes", str(SMALL * 64 * 64 * 3 // PARTS))
    make("own-jpeg", "pack-images", "photos", "--sizes", "own")
    make("own-raw", "pack-images", "photos", "--sizes", "own", "--store", "raw")
    make("ratings", "pack-sparse", "ratings.csv")


def child(name, packs):
    """Runs in a process of its own: prints what the measured part of a reading takes."""
    read = READING[name](packs)
    before, begin = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    read()
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps([cpu, seconds, after.ru_minflt - before.ru_minflt]))


def read_by(build, packs, name, url):
    environment = {**os.environ, "PYTHONPATH": str(build / "lib" / "python"), "PACKS_URL": url, "no_proxy": "*"}
    run = subprocess.run([sys.executable, __file__, "--child", name, str(packs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, env=environment)
    if run.returncode != 0:
        raise Failed(f"{build}: {name}: {run.stderr.strip().splitlines()[-1]}")
    return json.loads(run.stdout)


# ---- The table

def line(name, old, new):
    """A row of the table; `old` and `new` have CPU seconds, seconds and page faults of each round."""
    ratios = sorted(b[0] / a[0] for a, b in zip(old, new))
    base, other = ([statistics.median(each[figure] for each in times) for figure in range(3)] for times in (old, new))
    cpu, clock = other[0] / base[0], other[1] / base[1]
    faults = f"{other[2] / base[2]:.2f}" if base[2] > 1000 else ""
    mark = "  slower" if cpu > LIMIT else ""
    return (f"| {name:26} | {base[0]:6.2f} | {base[1]:6.2f} | {base[2]:8.0f} | **{cpu:.2f}** ({ratios[0]:.2f}–{ratios[-1]:.2f}) "
            f"| {clock:.2f} | {faults} |{mark}")


def built(commit):
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", commit], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    folder = KEPT / commit
    if not (folder / "build" / "tools" / "pack-images").exists():
        if not (folder / "source").exists():
            subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", folder / "source", commit], check=True)
        subprocess.run(["cmake", "--preset", "release", "-B", folder / "build", "-DCHUNKHIT_TESTS=OFF"], cwd=folder / "source", check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", folder / "build"], check=True, stdout=subprocess.DEVNULL)
    return folder / "build"


def measured(old, new, work, only, rounds):
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from servers import Nginx
    packing = {name: arguments for name, arguments in PACKING.items() if only in name}
    reading = [name for name in READING if only in name]
    if not packing and not reading:
        sys.exit(f"--only {only}: expected a part of one of: {', '.join([*PACKING, *READING])}")
    for name, arguments in packing.items():
        yield name, lambda build: pack(build, work / "out", *arguments)
    if not reading:
        return
    packs = work / "packs"
    make_packs(old, new, packs)
    whose = {old: "old", new: "new"}
    with Nginx(packs, work / "server") as server:
        for name in reading:
            yield name, lambda build: read_by(build, packs / whose[build], name, f"{server.url}/{whose[build]}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("builds", nargs="*", type=pathlib.Path)
    parser.add_argument("--base", metavar="COMMIT")
    parser.add_argument("--only", metavar="NAME", default="")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.base:
        given.builds = [built(given.base), *(given.builds or [ROOT / "build" / "release"])]
    if len(given.builds) != 2:
        parser.error(f"expected two builds, found {len(given.builds)}")
    old, new = (each.resolve() for each in given.builds)
    for build in (old, new):
        if not (build / "tools" / "pack-images").exists():
            parser.error(f"{build}: is no build: tools/pack-images is missing")
    inputs()
    print(f"| {'workload':26} | CPU s | s | page faults | CPU new/old (spread) | clock | faults |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        for name, measure in measured(old, new, pathlib.Path(work), given.only, given.rounds):
            times = ([], [])
            try:
                for number in range(given.rounds):
                    for turn in (0, 1) if number % 2 == 0 else (1, 0):
                        times[turn].append(measure((old, new)[turn]))
            except Failed as reason:
                print(f"| {name:26} | {reason} |", flush=True)
                continue
            print(line(name, *times), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()

#!/usr/bin/python3
"""Measures random resized crops to 224 from packs of images of their own sizes, beside a bare decode of the same files and
torchvision's DataLoader, all in one run; CPU time, medians of interleaved rounds. Where a module `ffcv` can be imported, FFCV as well.

usage: PYTHONPATH=BUILD_FOLDER/lib/python[:FFCV] own_sizes_bench.py BUILD_FOLDER CORPUS [ROUNDS [EVERY [RATES.json]]]
CORPUS is made by make_photos.py; of its files every EVERY-th (3) is read, ROUNDS (5) times. Packs go to /dev/shm. RATES.json is
for chart.py: images per second of CPU time.
"""
import glob
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

import torch
import torchvision

import chunkhit

os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")  # OpenMP's threads take CPU time while they wait
try:
    import peer_ffcv
except ModuleNotFoundError as error:
    if error.name not in ("ffcv", "cv2", "numba"):
        raise
    peer_ffcv = None

build, corpus = sys.argv[1:3]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
every = int(sys.argv[4]) if len(sys.argv) > 4 else 3
files = sorted(glob.glob(f"{corpus}/images/**/*.jpg", recursive=True))[::every]
folder = "/dev/shm/chunkhit-own-sizes"
CROP = dict(flip_horizontal=0.5, resized_crop=dict(height=224, width=224))
EPOCHS = 4  # of a round; loaders make a few batches ahead
ENCODED = "JPEG q90, max side 512"  # of files that were shrunk and encoded beforehand, as FFCV does with all
PACKS = {"JPEG": {}, "JPEG, files as they are": dict(jpeg_tile=0), "JPEG, max side 512": dict(max_side=512), ENCODED: {},
         "pixels, short side 256": dict(short_side=256, store="raw"), "pixels, max side 512": dict(max_side=512, store="raw")}
PEERS = [*((f"chunkhit {ours}", f"FFCV {theirs}, max side 512") for theirs in ("jpg", "half jpg")
           for ours in ("JPEG, max side 512", ENCODED, f"{ENCODED}, half decoded")),
         ("chunkhit pixels, max side 512", "FFCV raw, max side 512"),
         ("chunkhit pixels, short side 256", "FFCV raw, short side 256"),
         ("chunkhit pixels, max side 512", "bare resize of pixels, max side 512"),
         ("chunkhit pixels, short side 256", "bare resize of pixels, short side 256")]


def cpu_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Files(torch.utils.data.Dataset):
    """What a training script has: PIL, RandomResizedCrop, a flip; uint8."""

    change = torchvision.transforms.Compose([
        torchvision.transforms.RandomResizedCrop(224), torchvision.transforms.RandomHorizontalFlip(),
        torchvision.transforms.PILToTensor()])

    def __len__(self):
        return len(files)

    def __getitem__(self, number):
        return self.change(torchvision.datasets.folder.pil_loader(files[number])), 0


def run_torchvision():
    for _ in torch.utils.data.DataLoader(Files(), batch_size=32, shuffle=True, num_workers=2):
        pass
    return 1


def run_bare():
    subprocess.run([f"{build}/tests/bare_decode", "1", *files], check=True, stdout=subprocess.DEVNULL)
    return 1


def measured(run):
    """A function that gives the CPU us an image of `run`, which reads all files and returns how often."""
    def measure():
        begin = cpu_seconds()
        epochs = run()
        time.sleep(0.3)  # until the loader has made ahead what it may, as it had at the beginning
        return (cpu_seconds() - begin) / epochs / len(files) * 1e6
    return measure


def bare_resize(name):
    """The same for the crops of a raw pack's pixels without a loader; the program measures its loop itself."""
    command = [f"{build}/tests/bare_resize", f"{folder}/{name}", str(EPOCHS), "2"]
    return lambda: float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def make_loader(name, **options):
    loader = chunkhit.ImageLoader(f"{folder}/{name}", batch_size=32, prefetch=1, shuffle="window", threads=2, augment=CROP, **options)
    epochs = iter(range(1 << 30))

    def run(count=EPOCHS):
        for _ in range(count):
            for _ in loader.epoch(next(epochs)):
                pass
        return count
    run(1)  # reads what it keeps in memory, and decodes what stays decoded
    return measured(run)


def print_packed(name, seconds, size):
    packed = "" if seconds is None else f"{seconds / len(files) * 1e6:6.0f} us CPU an image; "
    print(f"{name:36} {packed}{size / len(files):8.0f} bytes an image, {size / sum(map(os.path.getsize, files)):.3f} of the files'",
          flush=True)


def encode(file, to, number):
    image = torchvision.datasets.folder.pil_loader(file)
    scale = min(1, 512 / max(image.size))
    image.resize((int(image.width * scale), int(image.height * scale))).save(f"{to}/{number:06}.jpg", quality=90)


def pack():
    os.makedirs(f"{folder}/files/all")
    os.makedirs(f"{folder}/{ENCODED} files/all")
    for number, file in enumerate(files):
        shutil.copy(file, f"{folder}/files/all/{number:06}.jpg")
        encode(file, f"{folder}/{ENCODED} files/all", number)
    times = {name: [] for name in PACKS}
    for number in range(rounds * len(PACKS)):
        name = list(PACKS)[number % len(PACKS)]
        source = f"{folder}/{name} files" if name == ENCODED else f"{folder}/files"
        begin = cpu_seconds()
        chunkhit.pack_images(source, f"{folder}/{name}", sizes="own", progress=False, threads=2, force=True, **PACKS[name])
        times[name].append(cpu_seconds() - begin)
    for name, seconds in times.items():
        size = sum(part["bytes"] for part in chunkhit.pack_info(f"{folder}/{name}")["parts"])
        print_packed(f"chunkhit {name}", statistics.median(seconds), size)


def make_ffcv():
    """FFCV's loaders by name; none without FFCV."""
    loaders = {}
    for name in peer_ffcv.WAYS if peer_ffcv else []:
        path = f"{folder}/{name}.beton"
        payload, size = peer_ffcv.write(name, files, path)
        print_packed(f"FFCV {name}, samples", None, payload)
        print_packed(f"FFCV {name}, file", None, size)
        loaders[f"FFCV {name}"] = measured(peer_ffcv.make_loader(path, len(files), EPOCHS))
    return loaders


def half_decoded(name):
    """The memory that keeps about half of a pack's images decoded."""
    info = chunkhit.pack_info(f"{folder}/{name}")
    sizes = info["sizes"]
    decoding = 2 * 3 * (sizes["stored_bytes"]["max"] + sizes["height"]["max"] * sizes["width"]["max"])  # of two threads, about
    return info["stored_bytes"] + decoding + info["raw_bytes"] // 2


shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
pack()
ways = {"bare whole decode": measured(run_bare),
        "torchvision DataLoader": measured(run_torchvision),
        **make_ffcv(),
        "bare resize of pixels, max side 512": bare_resize("pixels, max side 512"),
        "bare resize of pixels, short side 256": bare_resize("pixels, short side 256"),
        "chunkhit JPEG": make_loader("JPEG", cache="compressed"),
        "chunkhit JPEG, files as they are": make_loader("JPEG, files as they are", cache="compressed"),
        "chunkhit JPEG, half decoded in memory": make_loader("JPEG", cache_bytes=half_decoded("JPEG")),
        "chunkhit JPEG, decoded in memory": make_loader("JPEG", cache="decoded"),
        "chunkhit JPEG, max side 512": make_loader("JPEG, max side 512", cache="compressed"),
        f"chunkhit {ENCODED}": make_loader(ENCODED, cache="compressed"),
        f"chunkhit {ENCODED}, half decoded": make_loader(ENCODED, cache_bytes=half_decoded(ENCODED)),
        "chunkhit pixels, max side 512": make_loader("pixels, max side 512"),
        "chunkhit pixels, short side 256": make_loader("pixels, short side 256")}
times = {name: [] for name in ways}
for _ in range(rounds):
    for name, way in ways.items():
        times[name].append(way())
shutil.rmtree(folder)
median = {name: statistics.median(each) for name, each in times.items()}
print(f"{len(files)} photos, median of {rounds} rounds, {time.strftime('%Y-%m-%d')}")
for name, each in median.items():
    print(f"{name:38} {each:6.0f} us CPU an image, {median['bare whole decode'] / each:5.2f} of bare whole decodes, "
          f"{median['torchvision DataLoader'] / each:5.2f} of torchvision's")
for ours, theirs in PEERS:
    if theirs in median:
        print(f"{ours}: {median[theirs] / median[ours]:.2f} times as fast as {theirs}")
if len(sys.argv) > 5:
    with open(sys.argv[5], "w", encoding="utf-8") as file:
        json.dump({name: {"images_per_second": round(1e6 / each)} for name, each in median.items()}, file, indent=1)
        file.write("\n")

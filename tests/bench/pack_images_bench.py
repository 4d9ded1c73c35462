#!/usr/bin/python3
"""Measures pack-images beside its limit (bare libjpeg-turbo) and its peer (Pillow + h5py), all in one run.

usage: pack_images_bench.py BUILD_FOLDER CORPUS [RUNS]
CORPUS is made by make_photos.py. Output goes to /dev/shm. Prints the median of RUNS (5) interleaved runs.
"""
import glob
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys

build, corpus = sys.argv[1:3]
runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
here = os.path.dirname(os.path.abspath(__file__))
threads = str(len(os.sched_getaffinity(0)))
files = sorted(glob.glob(f"{corpus}/images/*/*.jpg"))
out = "/dev/shm/chunkhit-bench"
base = [f"{build}/tools/pack-images", corpus, "--labels", f"{corpus}/datapath_with_label.csv", "--progress", "none",
        "--force", "--output", out]
SMALL = ["--resize", "96x128", "--crop", "64x64"]
LARGE = ["--resize", "256", "--crop", "224x224"]
REGION = ["--check", "region"]
CASES = {"96x128 crop 64, hdf5": SMALL, "the same, --check region": [*SMALL, *REGION],
         "256 crop 224, hdf5": LARGE, "256 crop 224, --check region": [*LARGE, *REGION],
         "96x128 crop 64, fast": [*SMALL, "--decode", "fast"],
         "96x128 crop 64, shard": [*SMALL, "--container", "shard"],
         "96x128 crop 64, zstd-3": [*SMALL, "--container", "shard", "--codec", "zstd:3"]}


def output(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()


def pack(arguments):
    text = output(base + arguments)
    return int(re.search(r"\(([\d,]+) img/s\)", text)[1].replace(",", ""))


rates = {name: [] for name in ["bare decode", *CASES, "Pillow + h5py"]}
ratios = {}
for _ in range(runs):
    rates["bare decode"].append(int(output([f"{build}/tests/bare_decode", threads, *files])))
    for name, arguments in CASES.items():
        rates[name].append(pack(arguments))
        info = json.loads(output([f"{build}/tools/pack-info", out, "--json"]))
        ratios[name] = info["raw_bytes"] / info["stored_bytes"]
    rates["Pillow + h5py"].append(int(output(["/usr/bin/python3", f"{here}/peer_h5py.py", corpus, "/dev/shm/chunkhit-peer.h5"])))
shutil.rmtree(out)
os.remove("/dev/shm/chunkhit-peer.h5")

median = {name: statistics.median(values) for name, values in rates.items()}
print(f"{len(files)} photos, {threads} threads, median of {runs}")
for name, rate in median.items():
    print(f"{name:28} {rate:7.0f} img/s  {rate / median['bare decode']:5.2f} of bare decode"
          + (f"  ratio {ratios[name]:.2f}" if name in ratios else ""))
small = median["96x128 crop 64, hdf5"]
print(f"fast / exact {median['96x128 crop 64, fast'] / small:.2f}; shard / hdf5 {median['96x128 crop 64, shard'] / small:.2f}; "
      f"photo / zstd-3 ratio {ratios['96x128 crop 64, shard'] / ratios['96x128 crop 64, zstd-3']:.2f}; "
      f"hdf5 / Pillow + h5py {small / median['Pillow + h5py']:.1f}; "
      f"peak memory of all packs {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MiB")

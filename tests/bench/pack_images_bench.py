#!/usr/bin/python3
"""Measures pack-images beside its limit (bare libjpeg-turbo) and its peer (Pillow + h5py), all in one run.

usage: pack_images_bench.py BUILD_FOLDER CORPUS [RUNS]
CORPUS is made by make_photos.py. Output goes to /dev/shm. Prints medians of RUNS (5) interleaved runs: CPU time, which other
programs hardly change, with the least and the most of the runs' ratios, and images a second by the clock.
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

build, corpus = sys.argv[1:3]
runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
here = os.path.dirname(os.path.abspath(__file__))
threads = str(len(os.sched_getaffinity(0)))
files = sorted(glob.glob(f"{corpus}/images/*/*.jpg"))
out = "/dev/shm/chunkhit-bench"
base = [f"{build}/tools/pack-images", corpus, "--labels", f"{corpus}/datapath_with_label.csv", "--progress", "none",
        "--output", out]
SMALL = ["--resize", "96x128", "--crop", "64x64"]
LARGE = ["--resize", "256", "--crop", "224x224"]
REGION = ["--check", "region"]
CASES = {"96x128 crop 64, hdf5": SMALL, "the same, --check region": [*SMALL, *REGION],
         "256 crop 224, hdf5": LARGE, "256 crop 224, --check region": [*LARGE, *REGION],
         "96x128 crop 64, fast": [*SMALL, "--decode", "fast"],
         "256 crop 224, fast": [*LARGE, "--decode", "fast"],
         "256 crop 224, shard": [*LARGE, "--container", "shard"],
         "96x128 crop 64, shard": [*SMALL, "--container", "shard"],
         "96x128 crop 64, zstd-3": [*SMALL, "--container", "shard", "--codec", "zstd:3"]}


def output(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measured(command):
    """Images a second, and CPU µs an image, of a whole process, without those of removing what is there."""
    shutil.rmtree(out, ignore_errors=True)
    cpu, begin = cpu_seconds(), time.perf_counter()
    output(command)
    return len(files) / (time.perf_counter() - begin), (cpu_seconds() - cpu) * 1e6 / len(files)


found = {name: [] for name in ["bare decode", *CASES, "Pillow + h5py"]}
ratios = {}
for _ in range(runs):
    found["bare decode"].append(tuple(map(float, output([f"{build}/tests/bare_decode", threads, *files]).split())))
    for name, arguments in CASES.items():
        found[name].append(measured(base + arguments))
        info = json.loads(output([f"{build}/tools/pack-info", out, "--json"]))
        ratios[name] = info["raw_bytes"] / info["stored_bytes"]
    found["Pillow + h5py"].append(measured(["/usr/bin/python3", f"{here}/peer_h5py.py", corpus, "/dev/shm/chunkhit-peer.h5"]))
shutil.rmtree(out, ignore_errors=True)
os.remove("/dev/shm/chunkhit-peer.h5")


def ratio(over, under):
    """How many times as fast, by CPU time of the same turn."""
    values = [b[1] / a[1] for a, b in zip(found[over], found[under])]
    return f"{statistics.median(values):5.2f} ({min(values):.2f}–{max(values):.2f})"


print(f"{len(files)} photos, {threads} threads, median of {runs}")
for name, turns in found.items():
    rate, micros = (statistics.median(turn[index] for turn in turns) for index in (0, 1))
    print(f"{name:28} {micros:7.0f} µs  {ratio(name, 'bare decode')} of bare decode  {rate:7.0f} img/s"
          + (f"  ratio {ratios[name]:.2f}" if name in ratios else ""))
small = "96x128 crop 64, hdf5"
print(f"fast / exact {ratio('96x128 crop 64, fast', small)}, to 224 {ratio('256 crop 224, fast', '256 crop 224, hdf5')};"
      f" shard / hdf5 {ratio('96x128 crop 64, shard', small)};"
      f" photo / zstd-3 ratio {ratios['96x128 crop 64, shard'] / ratios['96x128 crop 64, zstd-3']:.2f}; "
      f"hdf5 / Pillow + h5py {ratio(small, 'Pillow + h5py')}; "
      f"peak memory of all packs {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MiB")

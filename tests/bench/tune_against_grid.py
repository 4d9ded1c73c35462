#!/usr/bin/python3
"""Compares the settings that pack-bench --tune ends with to the best of all combinations.

usage: tune_against_grid.py BUILD_FOLDER PACK [ROUNDS] [FLAGS...]
FLAGS go to every pack-bench (--shuffle window, --dtype float32, ...). All combinations of threads, prefetch, window and cache
that --tune can reach from its start are tried once, in steps of four times; then the five best and --tune's own are measured
again in ROUNDS (5) turns. Prints medians in samples per second and --tune's share of the best; the aim is 0.95.
"""
import itertools
import json
import math
import os
import statistics
import subprocess
import sys

build, pack = sys.argv[1:3]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
flags = sys.argv[4:]
AIM = 0.95
FINALISTS = 5
MIN_SECONDS = 0.5  # of a measure, as in --tune; shorter epochs are repeated
USAGE_ERROR = 2  # the loader refuses a setting: too little memory, say


def bench(*more):
    return subprocess.run([f"{build}/tools/pack-bench", pack, "--json", *flags, *more], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL)


def rate(setting, epochs=3):
    """Gives the samples per second of the epochs after the first, in which hashes are checked; 0 where it is refused."""
    threads, prefetch, window, cache = setting
    run = bench("--threads", str(threads), "--prefetch", str(prefetch), "--window-chunks", str(window), "--cache", cache,
                "--epochs", str(1 + epochs))
    if run.returncode == USAGE_ERROR:
        return 0
    run.check_returncode()
    measured = json.loads(run.stdout)["epochs"][1:]
    seconds = sum(epoch["seconds"] for epoch in measured)
    if seconds < MIN_SECONDS / 2:
        return rate(setting, math.ceil(epochs * MIN_SECONDS / seconds))
    return sum(epoch["samples"] for epoch in measured) / seconds


def chunk_count():
    text = subprocess.run([f"{build}/tools/pack-info", pack, "--json"], check=True, stdout=subprocess.PIPE).stdout
    return sum(part["chunks"] for part in json.loads(text)["parts"])


def grid(shuffle):
    cpus = len(os.sched_getaffinity(0))
    threads = sorted({1, cpus, 2 * cpus, 4 * cpus})
    windows = [64]
    if shuffle == "window":
        windows = [window for window in (8, 32, 128, 512) if window < chunk_count()] or windows
    return itertools.product(threads, (1, 4, 16, 64), windows, ("decoded", "compressed", "none"))


def words(setting):
    return "threads {:<3} prefetch {:<3} window {:<4} {}".format(*setting)


tuning = bench("--tune")
tuning.check_returncode()
report = json.loads(tuning.stdout)
best = report["best"]
tuned = best["threads"], best["prefetch"], best["window_chunks"], best["cache"]
print(f"--tune: {len(report['tries'])} tries, {words(tuned)}")

tried = {setting: rate(setting) for setting in grid(report["settings"]["shuffle"])}
print(f"grid: {len(tried)} settings, {sum(value == 0 for value in tried.values())} refused")
finalists = [tuned] + [each for each in sorted(tried, key=tried.get, reverse=True) if each != tuned][:FINALISTS]
rates = {setting: [] for setting in finalists}
for _ in range(rounds):
    for setting in finalists:
        rates[setting].append(rate(setting))
medians = {setting: statistics.median(values) for setting, values in rates.items()}
for setting in sorted(medians, key=medians.get, reverse=True):
    print(f"{words(setting):50} {medians[setting]:9.0f} samples/s{'  --tune' if setting == tuned else ''}")
print(f"--tune gives {medians[tuned] / max(medians.values()):.2f} of the best; aim {AIM}")

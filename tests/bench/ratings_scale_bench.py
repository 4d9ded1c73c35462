#!/usr/bin/python3
"""Compares pack-sparse of many ratings to that of few: in memory, and spilling to disk.

usage: ratings_scale_bench.py BUILD_FOLDER FEW.csv MANY.csv [ROUNDS] [MEMORY] [SPILL_FEW] [SPILL_MANY]
Prints medians of ROUNDS (2) interleaved rounds: CPU seconds, seconds by the clock, peak memory, page faults; and the ratios.
MEMORY (8G) holds all ratings; SPILL_FEW (200M) and SPILL_MANY (2G) do not. Output goes to the folder of MANY.csv.
"""
import os
import shutil
import statistics
import subprocess
import sys
import time

if len(sys.argv) < 4:
    sys.exit(__doc__)
build, few, many = sys.argv[1:4]
rounds, memory, spill_few, spill_many = (sys.argv[4:] + [2, "8G", "200M", "2G"][len(sys.argv) - 4:])[:4]
OUT = os.path.join(os.path.dirname(os.path.abspath(many)), "ratings-scale-out")


def run(path, limit):
    shutil.rmtree(OUT, ignore_errors=True)
    begin = time.monotonic()
    process = subprocess.Popen([os.path.join(build, "tools/pack-sparse"), path, "--output", OUT, "--memory-bytes", limit],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"pack-sparse {path} --memory-bytes {limit} ended with {status >> 8}")
    return used.ru_utime + used.ru_stime, time.monotonic() - begin, used.ru_maxrss / 1024, used.ru_minflt


cases = {"few, in memory": (few, memory), "many, in memory": (many, memory), "few, spilled": (few, spill_few),
         "many, spilled": (many, spill_many)}
times = {name: [] for name in cases}
for _ in range(int(rounds)):
    for name, case in cases.items():
        times[name].append(run(*case))
shutil.rmtree(OUT, ignore_errors=True)
medians = {name: [statistics.median(values) for values in zip(*found)] for name, found in times.items()}
for name, (cpu, clock, peak, faults) in medians.items():
    print(f"{name:16} {cpu:7.2f} CPU s  {clock:6.2f} s  {peak:6.0f} MiB  {faults:9,.0f} page faults")
for where in ("in memory", "spilled"):
    one, other = medians[f"few, {where}"], medians[f"many, {where}"]
    print(f"{where}: {other[0] / one[0]:.1f} times the CPU time, {other[1] / one[1]:.1f} by the clock")

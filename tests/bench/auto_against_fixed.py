#!/usr/bin/python3
"""Compares loaders with threads="auto", prefetch="auto" to the best of all fixed settings.

usage: auto_against_fixed.py BUILD_FOLDER INPUTS [ROUNDS] [STEP_MS] [NAME...]
INPUTS holds the packs tiny, large, photo, deflate and rows (README.md makes them); NAMEs choose among the workloads, of which
remote is the pack photo from nginx with 5 ms of latency. Each
fixed setting of threads (1, CPUs, 2 and 4 times as many) and prefetch (1, 4, 16, 64) is tried once; the five best are then
measured in ROUNDS (15) turns with the automatic loader, once that has settled. After each batch the loop sleeps STEP_MS (0).
Prints medians in samples per second and the share of the best; the aim is 0.95. The control is a second loader of one fixed
setting: its share of the first one shows the machine's noise.
"""
import itertools
import os
import pathlib
import statistics
import sys
import tempfile
import time

build, inputs = sys.argv[1:3]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 15
step_seconds = float(sys.argv[4]) / 1000 if len(sys.argv) > 4 else 0
names = sys.argv[5:]
sys.path.insert(0, os.path.join(build, "lib/python"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import chunkhit  # noqa: E402
from servers import Nginx  # noqa: E402

AIM = 0.95
FINALISTS = 5
TURN_SECONDS = 0.5
RUN_IN_BATCHES = 70  # those that were made ahead while others had their turn
SETTLE_SECONDS = 60
CPUS = len(os.sched_getaffinity(0))
WORKLOADS = {
    "tiny": (chunkhit.ImageLoader, "tiny", dict(batch_size=256, shuffle="window")),
    "large": (chunkhit.ImageLoader, "large", dict(batch_size=64, shuffle="global")),
    "photo": (chunkhit.ImageLoader, "photo", dict(batch_size=256, shuffle="window", cache="none")),
    "deflate": (chunkhit.ImageLoader, "deflate", dict(batch_size=256, shuffle="window", cache="none")),
    "remote": (chunkhit.ImageLoader, "photo", dict(batch_size=256, shuffle="window", cache="none")),
    "csr": (chunkhit.SparseLoader, "rows", dict(batch_size=500, shuffle="global", format="csr")),
}


class Loop:
    """A training loop over one loader, a few epochs a turn: pauses between epochs do not count as steps."""

    def __init__(self, workload, threads, prefetch):
        kind, path, options = WORKLOADS[workload]
        folder = server.url if workload == "remote" else inputs
        self.loader = kind(os.path.join(folder, path), threads=threads, prefetch=prefetch, **options)
        self.epoch = 0

    def run_epoch(self):
        batches = samples = 0
        for batch in self.loader.epoch(self.epoch):
            batches += 1
            samples += len(batch.samples) if hasattr(batch, "samples") else len(batch.rows)
            if step_seconds:
                time.sleep(step_seconds)
        self.epoch += 1
        return batches, samples

    def rate(self, seconds=TURN_SECONDS):
        """Samples per second of a turn."""
        run_in = 0
        while run_in < RUN_IN_BATCHES:
            run_in += self.run_epoch()[0]
        begin, samples = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            samples += self.run_epoch()[1]
        return samples / (time.perf_counter() - begin)

    def settle(self):
        """Runs until the loader has settled; returns the seconds and batches that it took."""
        begin, batches = time.perf_counter(), 0
        while time.perf_counter() - begin < SETTLE_SECONDS:
            batches += self.run_epoch()[0]
            if any("settled" in text for text in self.loader.stats().tuning):
                break
        return time.perf_counter() - begin, batches


def by_rounds(mine, others):
    """The median share of rounds, whose turns are near in time, and its quartiles."""
    shares = sorted(each / other for each, other in zip(mine, others))
    low, middle, high = statistics.quantiles(shares, n=4)
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def compare(workload):
    grid = list(itertools.product(sorted({1, CPUS, 2 * CPUS, 4 * CPUS}), (1, 4, 16, 64)))
    tried = {}
    for setting in grid:
        loop = Loop(workload, *setting)
        loop.run_epoch()  # checks hashes, and fills the memory
        tried[setting] = loop.rate()
        loop.loader.close()
    tuned = Loop(workload, "auto", "auto")
    tuned.run_epoch()
    seconds, batches = tuned.settle()
    best = sorted(tried, key=tried.get, reverse=True)[:FINALISTS]
    loops = {"auto": tuned, "control": Loop(workload, *best[0]), **{setting: Loop(workload, *setting) for setting in best}}
    rates = {setting: [] for setting in loops}
    for loop in loops.values():
        loop.run_epoch()
    for turn in range(rounds):
        order = list(loops.items())
        for setting, loop in order if turn % 2 else reversed(order):
            rates[setting].append(loop.rate())
    medians = {setting: statistics.median(values) for setting, values in rates.items()}
    stats = tuned.loader.stats()
    fixed = max(best, key=medians.get)
    print(f"{workload}: auto {medians['auto']:,.0f} samples/s with threads {stats.threads}, prefetch {stats.prefetch}, after "
          f"{batches} batches, {seconds:.1f} s; best fixed {medians[fixed]:,.0f} with threads {fixed[0]}, prefetch {fixed[1]}; "
          f"share {medians['auto'] / medians[fixed]:.2f}, by rounds {by_rounds(rates['auto'], rates[fixed])}; control "
          f"{by_rounds(rates['control'], rates[best[0]])}; worst of the grid {min(tried.values()) / max(tried.values()):.2f}")
    for text in stats.tuning:
        print("   ", text)
    for loop in loops.values():
        loop.loader.close()
    return medians["auto"] / medians[fixed]


root = pathlib.Path(inputs).resolve()
with tempfile.TemporaryDirectory() as work, Nginx(root, work, latency=0.005) as server:
    shares = {name: compare(name) for name in names or WORKLOADS}
print(f"least share {min(shares.values()):.2f}; aim {AIM}")

#!/usr/bin/python3
"""Packing by a plan on simulated nodes: N control groups with a quota of CPUS / N CPUs each.

usage: nodes.py BUILD PHOTOS ROWS.csv [ROUNDS CPUS]   (PHOTOS as make_photos.py makes them; at least 8,000 rows; medians of 3 rounds; 2 CPUs)
A plan of 40 equal tasks; each node takes the next task until none is left, and the pack must be the same for every N. The efficiency is
the time in which one such node alone packs 40 / N tasks, divided by the time in which N of them pack all. Needs root and the cpu
controller of cgroups, version 1 or 2. It shows imbalance and what nodes of one machine cost each other: there is no network, no
shared storage and no second page cache in it."""
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

build, photos, rows = sys.argv[1:4]
rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
cpus = float(sys.argv[5]) if len(sys.argv) > 5 else 2
TASKS, PERIOD_US = 40, 100_000
V1, V2 = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"


def write(path, text):
    with open(path, "w") as file:
        file.write(str(text))


class Cluster:
    """The group above all nodes. It has the first call on the CPUs, so that other work on the machine takes as little from many
    nodes as from one."""

    def __init__(self):
        self.is_v1 = os.path.isdir(V1)
        self.path = f"{V1 if self.is_v1 else V2}/chunkhit-{os.getpid()}"
        if not self.is_v1:
            write(f"{V2}/cgroup.subtree_control", "+cpu")
        os.mkdir(self.path)
        if self.is_v1:
            write(f"{self.path}/cpu.shares", 100_000)
        else:
            write(f"{self.path}/cpu.weight", 10_000)
            write(f"{self.path}/cgroup.subtree_control", "+cpu")

    def remove(self):
        os.rmdir(self.path)


class Node:
    """A control group that gets `cpus` CPUs."""

    def __init__(self, cluster, name, cpus):
        self.is_v1 = cluster.is_v1
        self.path = f"{cluster.path}/{name}"
        os.mkdir(self.path)
        quota = int(cpus * PERIOD_US)
        if self.is_v1:
            write(f"{self.path}/cpu.cfs_period_us", PERIOD_US)
            write(f"{self.path}/cpu.cfs_quota_us", quota)
        else:
            write(f"{self.path}/cpu.max", f"{quota} {PERIOD_US}")

    def run(self, *command):
        """CPU seconds of a command in this group."""
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=lambda: write(f"{self.path}/cgroup.procs", os.getpid()))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, (command, process.returncode)
        return usage.ru_utime + usage.ru_stime

    def throttled_seconds(self):
        with open(f"{self.path}/cpu.stat") as file:
            stat = dict(line.split() for line in file)
        return int(stat["throttled_time"]) / 1e9 if self.is_v1 else int(stat["throttled_usec"]) / 1e6

    def remove(self):
        os.rmdir(self.path)


def pack(nodes, tasks, threads, at):
    """Runs tasks on these nodes; seconds by the clock and of CPU."""
    left, cpu, failed = queue.SimpleQueue(), [], []
    for task in tasks:
        left.put(task)

    def work(node):
        try:
            while True:
                cpu.append(node.run(f"{build}/tools/pack-run", at, "--threads", str(threads), "--progress", "none", "--task", str(left.get_nowait())))
        except queue.Empty:
            pass
        except BaseException as error:  # an assertion in a thread would be lost
            failed.append(error)

    begun = time.monotonic()
    workers = [threading.Thread(target=work, args=(node,)) for node in nodes]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failed, failed
    return {"seconds": time.monotonic() - begun, "cpu_s": sum(cpu), "throttled_s": sum(node.throttled_seconds() for node in nodes)}


def files_of(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if name != "run.json" and not name.endswith(".inputs"):
            with open(f"{folder}/{name}", "rb") as file:
                found[name] = file.read()
    return found


def measure(cluster, count, at):
    """A pack by `count` nodes, and its tasks' share by one node alone before it."""
    with open(rows) as file:
        samples = sum(1 for _ in file) - 1
    chunk = samples // TASKS // 4
    flags = ["--resize", "96x128", "--crop", "64", "--container", "shard", "--chunk-samples", str(chunk),
             "--part-bytes", str(4 * chunk * 64 * 64 * 3), "--max-errors", "0", "--progress", "none"]
    nodes, threads = [], max(1, int(cpus) // count)
    try:
        for number in range(count):
            nodes.append(Node(cluster, f"{count}-{number}", cpus / count))
        result = {}
        for who, some, tasks in (("alone", nodes[:1], range(0, TASKS, count)), ("together", nodes, range(TASKS))):
            subprocess.run([f"{build}/tools/pack-images", photos, "--labels", rows, *flags, "--output", f"{at}-{who}", "--plan", str(TASKS)],
                           stdout=subprocess.DEVNULL, check=True)
            with open(f"{at}-{who}/plan.json") as plan:
                assert json.load(plan)["tasks"] == TASKS
            for key, value in pack(some, tasks, threads, f"{at}-{who}").items():
                result[f"{who}: {key}"] = value
        return result
    finally:
        for node in nodes:
            node.remove()


def main(cluster, folder):
    measured, golden = {}, None
    for _ in range(rounds):
        for count in (1, 2, 5, 10):
            found = measure(cluster, count, f"{folder}/{count}")
            found["efficiency"] = found["alone: seconds"] / found["together: seconds"]
            measured.setdefault(count, []).append(found)
            subprocess.run([f"{build}/tools/pack-run", f"{folder}/{count}-together", "--progress", "none"], stdout=subprocess.DEVNULL, check=True)
            golden = golden or files_of(f"{folder}/{count}-together")
            assert files_of(f"{folder}/{count}-together") == golden, "another pack"
            shutil.rmtree(f"{folder}/{count}-together"), shutil.rmtree(f"{folder}/{count}-alone")
    return {count: {key: round(statistics.median(one[key] for one in found), 3) for key in found[0]} for count, found in measured.items()}


if not os.path.isdir(V1) and not os.path.exists(f"{V2}/cgroup.controllers"):
    sys.exit(print("skipped: no cpu controller of cgroups is mounted"))
try:
    group = Cluster()
except OSError as error:
    sys.exit(print(f"skipped: {error}"))
try:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as space:
        print(json.dumps({f"nodes, {TASKS} tasks, {cpus:g} CPUs": main(group, space)}, indent=1))
finally:
    group.remove()

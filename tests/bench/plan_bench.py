#!/usr/bin/python3
"""CPU seconds of packing by a plan beside a plain run, and of the metadata of 10,000 parts.

usage: plan_bench.py BUILD PHOTOS ROWS.csv [ROUNDS TASKS]   (PHOTOS as make_photos.py makes them; medians of 3 rounds; 100 tasks)"""
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

build, photos, rows = sys.argv[1:4]
rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3
TASKS = int(sys.argv[5]) if len(sys.argv) > 5 else 100


def run(command, *arguments, env=None, codes=(0,)):
    """CPU seconds, wall seconds and peak MB of a command."""
    begun, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen([f"{build}/tools/{command}", *map(str, arguments)], stdout=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in codes, (command, arguments, process.returncode)
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss / 1024


def plan_against_plain(at):
    flags = [photos, "--labels", rows, "--resize", "96x128", "--crop", 64, "--part-bytes", "3M", "--progress", "none", "--output"]
    measured = {"plain": [], "plan": [], "tasks": [], "finish": []}
    for _ in range(rounds):
        measured["plain"].append(run("pack-images", *flags, f"{at}/plain")[0])
        measured["plan"].append(run("pack-images", *flags, f"{at}/planned", "--plan", TASKS)[0])
        measured["tasks"].append(sum(run("pack-run", f"{at}/planned", "--task", task, "--progress", "none")[0] for task in range(TASKS)))
        idle = [run("pack-run", f"{at}/planned", "--task", task, "--progress", "none")[0] for task in range(10)]
        measured.setdefault("task with nothing to do", []).append(statistics.median(idle))
        measured["finish"].append(run("pack-run", f"{at}/planned", "--progress", "none")[0])
        for name in os.listdir(f"{at}/plain"):
            if name != "run.json":
                with open(f"{at}/plain/{name}", "rb") as one, open(f"{at}/planned/{name}", "rb") as other:
                    assert one.read() == other.read(), name
        for folder in ("plain", "planned"):
            shutil.rmtree(f"{at}/{folder}")
    result = {name: round(statistics.median(values), 3) for name, values in measured.items()}
    result["fixed cost of a task"] = round((result["tasks"] - result["plain"]) / TASKS, 3)
    result["of plain"] = round((result["plan"] + result["tasks"] + result["finish"]) / result["plain"], 3)
    return result


def ten_thousand_parts(at):
    """Status and finish of 10,000 parts; with 1 ms added to every open, stat and rename, too."""
    with open(rows) as file:
        lines = file.readlines()
    with open(f"{at}/rows.csv", "w") as file:
        file.write(lines[0] + "".join((lines[1:] * (80_000 // len(lines) + 1))[:80_000]))
    flags = [photos, "--labels", f"{at}/rows.csv", "--resize", "16x12", "--chunk-samples", 8, "--part-bytes", 8 * 576, "--container",
             "shard", "--progress", "none", "--output", f"{at}/parts"]
    run("pack-images", *flags, "--plan", 100)
    run("pack-run", f"{at}/parts", "--task", "0-99", "--progress", "none")
    slow = {"LD_PRELOAD": f"{build}/tests/libfault_shim.so", "DELAY_US": "1000", "FAULT_PATH": at}
    result = {}
    for name, env in (("", {}), (", 1 ms later", slow)):
        for what, command, codes in (("status", ("pack-info", f"{at}/parts"), (75,)),
                                     ("finish", ("pack-run", f"{at}/parts", "--progress", "none"), (0,))):
            shutil.rmtree(f"{at}/saved", ignore_errors=True)
            os.mkdir(f"{at}/saved")
            for plan in ("plan.json", "plan.rows"):
                shutil.copy(f"{at}/parts/{plan}", f"{at}/saved")
            cpu, wall, peak = run(*command, env=env, codes=codes)
            result[what + name] = {"cpu_s": round(cpu, 2), "wall_s": round(wall, 2), "peak_mb": round(peak)}
            if what == "finish":
                os.remove(f"{at}/parts/manifest.json")
                for plan in ("plan.json", "plan.rows"):
                    shutil.copy(f"{at}/saved/{plan}", f"{at}/parts")
    return result


with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
    print(json.dumps({f"plan, {TASKS} tasks, finish; CPU s": plan_against_plain(folder), "10,000 parts": ten_thousand_parts(folder)}, indent=1))

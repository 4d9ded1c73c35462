#!/usr/bin/python3
"""CPU seconds of a plan of ratings, stage by stage, beside a plain run of pack-sparse on the same files.

usage: ratings_plan_bench.py BUILD RATINGS.csv [INPUTS ROUNDS]   (RATINGS.csv as make_ratings.py makes it; 20 inputs; medians of 3 rounds)
The table is cut between users into INPUTS files below /dev/shm. Each round runs all ways of packing, one after the other."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

build, table = sys.argv[1:3]
count = int(sys.argv[3]) if len(sys.argv) > 3 else 20
rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 3


def cut(at):
    """Files of about equal size, each user whole in one of them."""
    with open(table) as file:
        header, size = file.readline(), os.path.getsize(table)
        paths, written, user, out = [], 0, None, None
        for line in file:
            if line.split(",", 1)[0] != user:
                user = line.split(",", 1)[0]
                if len(paths) < count and written >= len(paths) * size / count:
                    if out:
                        out.close()
                    paths.append(f"{at}/{len(paths):03}.csv")
                    out = open(paths[-1], "w")
                    out.write(header)
            out.write(line)
            written += len(line)
        out.close()
    return paths


def cpu(command, *arguments):
    process = subprocess.Popen([f"{build}/tools/{command}", *map(str, arguments), "--progress", "none"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (command, arguments, process.returncode)
    return usage.ru_utime + usage.ru_stime


def main(at):
    inputs, plan = cut(at), f"{at}/plan"
    measured = {}
    note = lambda name, seconds: measured.setdefault(name, []).append(seconds)
    for _ in range(rounds):
        note("pack-sparse of all files", cpu("pack-sparse", *inputs, "-o", f"{at}/plain"))
        note("plan", cpu("pack-sparse", *inputs, "-o", plan, "--plan", count))
        note("pack-run, all stages", cpu("pack-run", plan))
        shutil.rmtree(plan)
        cpu("pack-sparse", *inputs, "-o", plan, "--plan", count)
        for stage, tasks in (("count", count), ("columns", 0), ("pack", count), ("finish", 0)):
            words = [] if stage == "finish" else ["--stage", stage]
            each = [cpu("pack-run", plan, *words, *(["--task", task] if tasks else [])) for task in range(max(1, tasks))]
            note(f"stage {stage}, {len(each)} commands", sum(each))
        shutil.rmtree(plan), shutil.rmtree(f"{at}/plain")
    result = {name: round(statistics.median(values), 3) for name, values in measured.items()}
    plain = result["pack-sparse of all files"]
    result["plan and pack-run, of plain"] = round((result["plan"] + result["pack-run, all stages"]) / plain, 2)
    result["plan and all commands, of plain"] = round((result["plan"] + sum(value for name, value in result.items() if name.startswith("stage"))) / plain, 2)
    return result


with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
    print(json.dumps({"CPU s": main(folder)}, indent=1))

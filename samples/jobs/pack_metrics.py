#!/usr/bin/python3
"""Writes how far a pack is, for the textfile collector of Prometheus' node exporter: pack_metrics.py FOLDER FILE.prom

Run it by cron or a timer. The file is replaced by one rename, so that no scrape sees half of it. It does not see damage:
pack-verify does."""
import json
import os
import subprocess
import sys


def main(folder, output):
    done = subprocess.run(["pack-info", folder, "--json"], stdout=subprocess.PIPE)
    if done.returncode not in (0, 75):  # 75: tasks still run
        sys.exit(done.returncode)
    found = json.loads(done.stdout)
    values = {"rows": found["rows"], "rejected": found["rejected"], "finished": int(found.get("finished", True))}
    if "parts_done" in found:  # of a plan
        values.update(parts=found["parts"], parts_done=found["parts_done"], tasks_missing=len(found["missing_tasks"]))
    label = json.dumps(folder, ensure_ascii=False)
    lines = [f"# TYPE chunkhit_pack_{name} gauge\nchunkhit_pack_{name}{{pack={label}}} {value}\n" for name, value in values.items()]
    with open(output + ".tmp", "w", encoding="utf-8") as file:
        file.writelines(lines)
    os.replace(output + ".tmp", output)


if __name__ == "__main__":
    main(*sys.argv[1:])

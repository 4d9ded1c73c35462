#!/usr/bin/python3
"""Runs the tasks of a plan on a Dask cluster, then finishes the pack: dask_run.py FOLDER TASKS [SCHEDULER]

Any engine that can run a command for each number (Ray, Spark) does it like this."""
import subprocess
import sys
from distributed import Client
def run_task(folder, task):
    # Dask starts a task again whose worker was killed; setpriv ends the command with its worker.
    command = ["pack-run", folder, "--task", str(task), "--progress", "none"]
    code = subprocess.run(["setpriv", "--pdeathsig", "TERM", *command]).returncode
    if code not in (0, 1, 2, 65, 73):  # those are the same on every machine
        raise RuntimeError(f"task {task}: exit code {code}")
    return code

def main(folder, tasks, scheduler=None):
    with Client(scheduler) as client:
        futures = [client.submit(run_task, folder, task, retries=3, pure=False) for task in range(int(tasks))]
        codes = client.gather(futures, errors="skip")
        print(len(futures) - codes.count(0), "tasks failed; pack-run does what is missing")
    sys.exit(subprocess.run(["pack-run", folder]).returncode)

if __name__ == "__main__":
    main(*sys.argv[1:])

"""Runs beside others that change what is read between two calls of the system."""
import errno
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SHIM, SMALL, Workspace, check, fingerprint, make_images, pack, run, run_tests


def gone(path):
    """The file is there when it is asked for, and gone when it is opened."""
    return {"LD_PRELOAD": SHIM, "FAULT": f"open:1:{errno.ENOENT}", "FAULT_PATH": path}


def planned(space, name):
    """The folder of a finished plan, and a copy of its plan beside it."""
    root, out = space(f"{name}-images"), space(name)
    make_images(root, 60)
    run("pack-images", f"{root}/images", *SMALL, "-o", out, "--plan", 2)
    os.makedirs(space(f"{name}-plan"))
    for file in ("plan.json", "plan.rows"):
        shutil.copy(f"{out}/{file}", space(f"{name}-plan"))
    run("pack-run", out)
    return out


def test_a_task_ended_with_65_beside_one_that_finished_the_plan(space):
    out = planned(space, "planned")
    golden = fingerprint(out)
    for file in ("plan.json", "plan.rows"):
        for name in ("plan.json", "plan.rows"):
            shutil.copy(f"{space('planned-plan')}/{name}", out)
        for arguments in ((), ("--task", 0)):
            run("pack-run", out, *arguments, env=gone(f"{out}/{file}"))
    check("finished" in run("pack-info", out, env=gone(f"{out}/plan.json")), "no pack")
    run("pack-run", out)
    check(fingerprint(out) == golden, os.listdir(out))


def test_files_that_went_away_between_two_calls_ended_commands(space):
    root, out = space("images"), space("pack")
    make_images(root, 60)
    pack(root, out)
    golden = fingerprint(out)
    for name in ("manifest.json", "run.json", "part-00000.json"):
        pack(root, out, env=gone(f"{out}/{name}"))
        check(fingerprint(out) == golden, name)
        run("pack-info", out, expect=(0, 65) if name == "manifest.json" else 0, env=gone(f"{out}/{name}"))
    run("pack-merge", space("merged"), out, env=gone(f"{out}/run.json"))
    run("pack-verify", space("merged"))


def test_the_loser_of_two_appends_ended_with_73_instead_of_75(space):
    """It says that the command is to be run again, which schedulers do for 75 alone."""
    packs = []
    for number in range(3):
        root = space(f"day{number}")
        make_images(root, 60, seed=number + 1)
        pack(root, space(f"day{number}.pack"))
        packs.append(space(f"day{number}.pack"))
    out = space("all")
    run("pack-merge", out, packs[0])
    held = {**os.environ, "LD_PRELOAD": SHIM, "FAULT": "open:1:halt", "FAULT_PATH": f"{packs[1]}/part-00000.json"}
    slow = subprocess.Popen([f"{BIN}/pack-merge", out, out, packs[1]], env=held, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    _, status = os.waitpid(slow.pid, os.WUNTRACED)
    check(os.WIFSTOPPED(status), "it did not halt", status)
    run("pack-merge", out, out, packs[2])
    os.kill(slow.pid, signal.SIGCONT)
    text = slow.communicate(timeout=120)[0].decode()
    check(slow.returncode == 75 and "run the command again" in text, slow.returncode, text)
    run("pack-merge", out, out, packs[1])
    run("pack-verify", out)


with Workspace() as workspace:
    run_tests(globals(), workspace)

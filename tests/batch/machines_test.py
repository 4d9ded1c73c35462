"""Machines whose clocks differ, and a folder of images that is unmounted under a task: planned packs get the right bytes, and no
reject. Machines are processes that know another host name, a clock that is set wrongly, and no locks of each other."""
import json
import os
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SHIM, SMALL, Workspace, check, draw_seed, files_of, make_images, run

HOUR, DAYS = 3600, 3 * 86400


def begin(space, name, count=300, tasks=4):
    root, out = space(name), space(name + "-pack")
    make_images(root, count)
    how = (root, "--labels", f"{root}/labels.csv", *SMALL, "--progress", "none", "--output")
    run("pack-images", *how, out + "-plain")
    run("pack-images", *how, out, "--plan", tasks)
    return root, out, files_of(out + "-plain")


def machine(name, ahead, *arguments, **env):
    """Starts pack-run as another machine would run it; without root it has this machine's name."""
    command = [os.path.join(BIN, "pack-run"), *map(str, arguments), "--progress", "none", "--threads", "1"]
    if os.getuid() == 0:
        command = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name, *command]
    env = {**os.environ, "LD_PRELOAD": SHIM, "CLOCK_OFFSET": str(ahead), "NO_FLOCK": "1", **env}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)


def ended(process, expect):
    text = process.communicate(timeout=120)[0].decode(errors="replace")
    check(process.returncode in expect, "exit", process.returncode, "expected", expect, text)
    return process.returncode


def leave_file_of_another_machine(out):
    """What a task elsewhere is writing, or wrote before its machine was lost."""
    path = f"{out}/.part-00000.h5.elsewhere-17-17-12345678.tmp"
    with open(path, "w") as file:
        file.write("begun")
    return path


def check_finished(out, golden):
    run("pack-run", out, "--progress", "none")
    found = files_of(out)
    check(found == golden, "differ:", sorted(name for name in found.keys() | golden.keys() if found.get(name) != golden.get(name)))


def test_the_shim_sets_the_clock(space):
    """Else the tests below show nothing: run.json has the time of the clock."""
    _, out, golden = begin(space, "clock", count=20)
    before = time.strftime("%FT%TZ", time.gmtime(time.time() + DAYS))
    ended(machine("node0", DAYS, out), (0,))
    with open(f"{out}/run.json") as file:
        started = json.load(file)["started"]
    check(before <= started <= time.strftime("%FT%TZ", time.gmtime(time.time() + DAYS)), before, started)
    check(files_of(out) == golden, "differs")


def test_tasks_of_machines_whose_clocks_are_an_hour_apart(space):
    _, out, golden = begin(space, "hours")
    begun = leave_file_of_another_machine(out)
    running = [machine(f"node{index}{hour}", hour * HOUR, out, "--task", index, DELAY_US="300") for index in range(4) for hour in (-1, 1)]
    check([ended(process, (0,)) for process in running] == 8 * [0], "a task failed")
    ended(machine("finish", HOUR, out), (0,))
    check(os.path.exists(begun), "removed what another machine may be writing")
    os.remove(begun)
    check(files_of(out) == golden, "differs")


def test_a_finish_whose_clock_is_days_ahead_takes_others_files_for_forgotten(space):
    """It removes what tasks are writing; they notice, and nothing wrong is published."""
    _, out, golden = begin(space, "days")
    begun = leave_file_of_another_machine(out)
    running = [machine(f"node{index}", 0, out, "--task", index, DELAY_US="3000") for index in range(4)]
    time.sleep(0.2)
    finish = machine("ahead", DAYS, out)
    ended(finish, (0, 75))
    check(not os.path.exists(begun), "others' files were not taken for forgotten: the test shows nothing")
    print("exit codes of the tasks:", *(ended(process, (0, 75)) for process in running))
    check_finished(out, golden)


def test_an_image_folder_that_is_lazily_unmounted_under_a_task(space):
    if os.getuid() != 0 or shutil.which("mount") is None:
        return "needs root"
    root, out, golden = begin(space, "lazy")
    os.rename(root, root + "-server")
    os.mkdir(root)
    mount = ["mount", "--bind", root + "-server", root]
    if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode != 0:
        return "cannot mount here"
    draw, mounted, codes = random.Random(draw_seed()), True, set()
    try:
        for _ in range(8):
            for name in os.listdir(out):
                if name.startswith("part-"):
                    os.remove(f"{out}/{name}")
            running = [machine("node", 0, out, "--task", index, DELAY_US="500") for index in range(4)]
            time.sleep(draw.random() * 0.4)
            subprocess.run(["umount", "-l", root], check=True)
            mounted = False
            late = machine("late", 0, out, "--task", "0-3")
            codes.update(ended(process, (0, 75)) for process in [*running, late])
            for name in os.listdir(out):
                if name.startswith("part-"):
                    with open(f"{out}/{name}", "rb") as file:
                        check(file.read() == golden["./" + name], name, "differs")
            subprocess.run(mount, check=True)
            mounted = True
        print("exit codes:", *sorted(codes))
        check(75 in codes, "no task met the unmounted folder", codes)
        check_finished(out, golden)
    finally:
        if mounted:
            subprocess.run(["umount", "-l", root], check=False)
    return None


with Workspace() as workspace:
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            reason = test(workspace)
            print(name, "skipped: " + reason if reason else "passed", flush=True)

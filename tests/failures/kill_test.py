"""Killed or stopped at any moment, the same command finishes with the bytes of an undisturbed run."""
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, DEEP, SHIM, SMALL, Workspace, check, draw_seed, fingerprint, make_images, pack, run

KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 100 if DEEP else 10


def begin(root, out):
    return subprocess.Popen([f"{BIN}/pack-images", root, "--labels", f"{root}/labels.csv", *SMALL, "--output", out],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finish(root, out, golden):
    pack(root, out)
    check(fingerprint(out) == golden, out, "differs from an undisturbed run")
    check(not any(name.startswith(".") for name in os.listdir(out)), "left behind", os.listdir(out))
    run("pack-verify", out)


with Workspace() as space:
    root = space("photos")
    make_images(root, 900, odd=True)
    pack(root, space("golden"))
    golden = fingerprint(space("golden"))
    check(os.path.getsize(space("golden/warnings.csv")) > 1000, "warnings.csv lists the odd images")
    begun = time.perf_counter()
    pack(root, space("timed"))
    whole = time.perf_counter() - begun

    seed = draw_seed()
    rng = random.Random(seed)
    for kill in range(KILLS):
        out = space("killed")
        process = begin(root, out)
        time.sleep(rng.uniform(0, whole))
        process.kill()
        process.wait()
        if kill % 3 == 2:  # kills add up before the pack is finished
            finish(root, out, golden)
            subprocess.run(["rm", "-rf", out], check=True)
    finish(root, space("killed"), golden)
    check(sorted(os.listdir(space("killed"))) == sorted(os.listdir(space("golden"))), "left behind")
    print("kill -9 at", KILLS, "random moments passed")

    for op in ("open", "pwrite", "fsync", "rename"):
        for nth in (1, 2, 3, 5, 9, 14) if DEEP else (1, 3, 9):
            out = space(f"{op}{nth}")
            run("pack-images", root, "--labels", f"{root}/labels.csv", *SMALL, "--output", out, expect=(0, -signal.SIGKILL),
                env={"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:kill", "FAULT_PATH": out})
            finish(root, out, golden)
    print("killed before the nth open, pwrite, fsync and rename passed")

    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        out = space(f"stopped{number}")
        stopped, results = False, []
        for delay in (None, 0.3, 0.2, 0.1, 0.05, 0.02):
            process = begin(root, out)
            if delay is not None:
                time.sleep(whole * delay)
            while delay is None and process.poll() is None and not os.path.isdir(out):
                time.sleep(0.0005)  # on a busy machine the moments below may all come before it handles signals
            process.send_signal(number)
            begun = time.perf_counter()
            result = process.wait(timeout=60)
            stopped = stopped or result == code
            results.append(result)
            check(result in (0, code, -number), "exit", result)
            left = [name for name in os.listdir(out) if name.endswith(".tmp")] if os.path.isdir(out) else []
            check(not left or result == -number, "left behind", left)
            if result == 0:
                subprocess.run(["rm", "-rf", out], check=True)
        check(stopped, "no run was stopped by signal", number, results)
        finish(root, out, golden)
    print("SIGTERM and SIGINT passed")

"""Two equal runs at once, on a file system whose locks other machines do not see: both end well with the right bytes.

An argument behind the two usual ones is the number of pairs."""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SHIM, SMALL, Workspace, check, draw_seed, fingerprint, make_images, run
from sparse_packs import random_ratings, write_csv

PAIRS = int(sys.argv[3]) if len(sys.argv) > 3 else 12
NO_LOCK = {**os.environ, "LD_PRELOAD": SHIM, "NO_FLOCK": "1"}


def begin(command, out):
    return subprocess.Popen([f"{BIN}/{command[0]}", *command[1:], "-o", out, "--progress", "none"], env=NO_LOCK,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def end(process, out, codes=(0,)):
    text = process.communicate(timeout=120)[0].decode(errors="replace")
    check(process.returncode in codes, out, "exit", process.returncode, text)
    return process.returncode


def check_pack(out, golden):
    check(fingerprint(out) == golden, out, "differs from an undisturbed run", os.listdir(out))


def test_pairs_begun_at_once(space, command, golden):
    for pair in range(PAIRS):
        out = space(f"pair{pair}")
        runs = [begin(command, out) for _ in range(2)]
        for process in runs:
            end(process, out)
        check_pack(out, golden)
        shutil.rmtree(out)


def test_one_of_three_is_killed(space, command, golden):
    for trial in range(max(1, PAIRS // 4)):
        out = space(f"three{trial}")
        runs = [begin(command, out) for _ in range(3)]
        time.sleep(space.random.uniform(0, space.whole))
        runs[0].kill()
        end(runs[0], out, (0, -signal.SIGKILL))
        for process in runs[1:]:
            end(process, out)
        end(begin(command, out), out)  # what the killed one left is removed
        check_pack(out, golden)
        shutil.rmtree(out)


def test_one_fails_and_takes_away_the_folder_that_it_made(space, command, golden):
    for nth in (1, 2, 3, 5, 8):
        out = space(f"fails{nth}")
        failing = {**NO_LOCK, "FAULT": f"pwrite:{nth}:28:sticky", "FAULT_PATH": out}
        arguments = [f"{BIN}/{command[0]}", *command[1:], "-o", out, "--progress", "none"]
        other = begin(command, out)
        done = subprocess.run(arguments, env=failing, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(done.returncode in (0, 73), done.returncode, done.stdout.decode())
        end(other, out)
        check_pack(out, golden)
        shutil.rmtree(out)


def test_another_machine_may_still_write(space, command, golden):
    out = space("other")
    os.makedirs(out)
    name = ".manifest.json.node7-1-2-0123abcd.tmp"
    open(f"{out}/{name}", "w").close()
    text = run(*command, "-o", out, "--progress", "none")
    check(f"another machine writes, or left within a day: {name}" in text, text)
    check(name in os.listdir(out), "removed what another machine may write")
    os.utime(f"{out}/{name}", (1, 1))
    run(*command, "-o", out, "--progress", "none")
    check_pack(out, golden)
    shutil.rmtree(out)


with Workspace() as space:
    root = space("photos")
    make_images(root, 400)
    write_csv(space("ratings.csv"), random_ratings(1))
    seed = draw_seed()
    space.random = random.Random(seed)
    sparse = ["pack-sparse", space("ratings.csv"), "--part-bytes", "3000"]
    for command in (["pack-images", root, "--labels", f"{root}/labels.csv", *SMALL],
                    ["pack-images", root, "--labels", f"{root}/labels.csv", *SMALL, "--container", "shard"],
                    [*sparse, "--chunk-rows", "16"], [*sparse, "--container", "hdf5"]):
        begun = time.perf_counter()
        run(*command, "-o", space("golden"))
        space.whole = time.perf_counter() - begun
        golden = fingerprint(space("golden"))
        shutil.rmtree(space("golden"))
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test(space, command, golden)
                print(os.path.basename(command[0]), *command[-2:], name, "passed")

"""With many threads, several parts are packed at once: whatever ends or disturbs a run, the bytes are those of one thread."""
import errno
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SHIM, SMALL, Workspace, check, fingerprint, make_images, pack, run

THREADS = ("--threads", 32)  # 8 parts at once
KINDS = (("hdf5", "none"), ("hdf5", "deflate"), ("shard", "photo"), ("shard", "none"))


def faulty(fault, out):
    return {"LD_PRELOAD": SHIM, "FAULT": fault, "FAULT_PATH": out}


def check_whole(out, golden):
    check(fingerprint(out) == golden, out, "has other bytes than one thread makes")
    check(not any(name.startswith(".") or name.endswith(".tmp") for name in os.listdir(out)), "left behind", os.listdir(out))


def unfinished_parts(out):
    return {match[0] for name in os.listdir(out) if not name.endswith(".json")
            for match in [re.search(r"part-\d+\.(h5|zst)", name)] if match and name != match[0]}


def test_bytes_do_not_depend_on_threads(space, root):
    for container, codec in KINDS:
        how = ("--container", container, "--codec", codec)
        pack(root, space(f"{container}-{codec}"), "--threads", 1, *how)
        for threads in (2, 8, 32):
            out = space(f"{container}-{codec}-{threads}")
            pack(root, out, "--threads", threads, *how)
            check_whole(out, fingerprint(space(f"{container}-{codec}")))
        run("pack-verify", out)


def test_a_write_that_fails_or_is_cut_short(space, root):
    for container, codec in KINDS:
        golden = fingerprint(space(f"{container}-{codec}"))
        how = ("--container", container, "--codec", codec, *THREADS)
        failed = 0
        for nth in (1, 4, 9, 20, 33, 51, 90):
            for error in (errno.ENOSPC, errno.EIO):
                out = space("failed")
                code, text = pack(root, out, *how, expect=(0, 73), env=faulty(f"pwrite:{nth}:{error}", out))
                check((code == 73) == (os.strerror(error) in text) and (code == 0) == os.path.exists(f"{out}/manifest.json"), code, text)
                failed += code == 73
                pack(root, out, *how)
                check_whole(out, golden)
                subprocess.run(["rm", "-r", out], check=True)
        check(failed >= 12, "only", failed, "writes failed")
        pack(root, out, *how, env=faulty("pwrite:1:short:sticky", out))
        check_whole(out, golden)
        subprocess.run(["rm", "-r", out], check=True)


def test_killed_in_several_parts(space, root):
    most = 0
    for container, codec in KINDS:
        how = ("--container", container, "--codec", codec)
        out = space("killed")
        for nth in (5, 30, 60, 100):
            run("pack-images", root, "--labels", f"{root}/labels.csv", *SMALL, *how, *THREADS, "--output", out, expect=(0, -signal.SIGKILL),
                env=faulty(f"pwrite:{nth}:kill", out))
            most = max(most, len(unfinished_parts(out)))
        pack(root, out, *how, *THREADS)
        check_whole(out, fingerprint(space(f"{container}-{codec}")))
        subprocess.run(["rm", "-r", out], check=True)
    check(most >= 3, "at most", most, "parts were packed at once")


def test_stopped_by_a_signal(space, root):
    """The signal comes at a write, so that it comes before the end on any machine."""
    command = ["pack-images", root, "--labels", f"{root}/labels.csv", "--resize", "320x240", "--part-bytes", "4M", "--output"]
    run(*command, space("large"))
    out = space("stopped")
    for nth in (30, 15, 5):
        run(*command, out, *THREADS, expect=143, env=faulty(f"pwrite:{nth}:stop", out))
    run(*command, out, *THREADS)
    check_whole(out, fingerprint(space("large")))


def test_rejects_of_all_parts_count_together(space):
    root = space("damaged")
    make_images(root, 400, bad=40)
    rows = open(f"{root}/labels.csv").read()
    pack(root, space("one"), "--max-errors", 40, "--threads", 1)
    pack(root, space("many"), "--max-errors", 40, *THREADS)
    check_whole(space("many"), fingerprint(space("one")))
    text = pack(root, space("over"), "--max-errors", 39, *THREADS, expect=1)
    with open(space("over/rejects.csv")) as file:
        listed = file.read().splitlines()[1:]
    check(len(listed) == 40 and "39" in text, len(listed), text)
    check(all(line.split(",")[1] in rows for line in listed), listed)
    pack(root, space("over"), "--max-errors", 40, *THREADS)
    check_whole(space("over"), fingerprint(space("one")))


def test_two_processes_finish_one_plan(space, root):
    for container, codec in KINDS:
        out = space(f"planned-{container}-{codec}")
        pack(root, out, "--container", container, "--codec", codec, "--plan", 3)
        both = [subprocess.Popen([f"{BIN}/pack-run", out, *map(str, THREADS), "--progress", "none"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                for _ in range(2)]
        said = [process.communicate(timeout=120)[0].decode() for process in both]
        # One may find that the other has finished and removed the plan.
        check(0 in [process.returncode for process in both], said)
        check_whole(out, fingerprint(space(f"{container}-{codec}")))


with Workspace() as space:
    root = space("photos")
    make_images(root, 600, odd=True)
    test_bytes_do_not_depend_on_threads(space, root)
    test_a_write_that_fails_or_is_cut_short(space, root)
    test_killed_in_several_parts(space, root)
    test_stopped_by_a_signal(space, root)
    test_rejects_of_all_parts_count_together(space)
    test_two_processes_finish_one_plan(space, root)
print("parts that are packed at once are those of one thread")

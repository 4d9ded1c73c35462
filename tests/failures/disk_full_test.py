"""A full disk or a limit on file sizes ends with 73 and a clear message; with room the same command goes on."""
import os
import re
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, DEEP, SHIM, SMALL, Workspace, check, fingerprint, make_images, pack, run

ENOSPC, EDQUOT, EROFS, EACCES = 28, 122, 30, 13
SMALL_DISK = 150 << 10


def set_size(folder, size):
    subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)


def check_refused(text, folder):
    """Ended with a message, and nothing looks like a pack or a part that is not whole."""
    check("No space left" in text or "free" in text, text)
    left = os.listdir(folder) if os.path.isdir(folder) else []
    check("manifest.json" not in left and not any(name.endswith(".tmp") for name in left), left)


def check_preflight(root, disk):
    """What cannot fit is refused before anything is written, with what is needed and what is free."""
    text = run("pack-images", root, "--labels", f"{root}/labels.csv", *SMALL, "--output", f"{disk}/out", expect=73)
    found = re.search(r"needs about (\S+) (\S+), (\S+) (\S+) are free", text)
    check(found and all(float(found[number]) > 0 for number in (1, 3)), text)
    check("are free; with room there, the same command resumes" in text, text)
    check(not os.path.exists(f"{disk}/out"), "left an output")
    check(f"{disk}/out" in text, text)
    dry = run("pack-images", root, "--labels", f"{root}/labels.csv", *SMALL, "--output", f"{disk}/out", "--dry-run")
    check(re.search(r"warning: .*needs about .* are free: packing would be refused", dry), dry)


def check_sizes(root, container, disk, golden):
    """Disks of growing size: each refuses or holds the whole pack; then there is room and the run goes on."""
    codes = []
    for size in range(200, 2600, 100 if DEEP else 600):
        set_size(disk, f"{size}k")
        code, text = pack(root, f"{disk}/out", "--container", container, expect=(0, 73))
        codes.append(code)
        if code == 73:
            check_refused(text, f"{disk}/out")
            check(re.search("with room (for about [0-9.]+ [kM]B )?there, the same command resumes", text), text)
            kept = re.search(r"; (\d+) finished parts? (is|are) kept; with room for about", text)
            finished = [name for name in os.listdir(f"{disk}/out") if re.fullmatch(r"part-\d+\.json", name)] if os.path.isdir(f"{disk}/out") else []
            check(int(kept[1]) == len(finished) if kept else not finished, text, finished)
    check(codes[0] == 73, "200 KiB were enough", codes)
    set_size(disk, "32m")
    pack(root, f"{disk}/out", "--container", container)
    check(fingerprint(f"{disk}/out") == golden, "differs after there was room")
    return codes


def check_missing_part(root, container, disk, golden):
    """Where only the first part is missing, there has to be room for one: later ones are there."""
    out = f"{disk}/out"
    for name in os.listdir(out):
        if name == "manifest.json" or name.startswith("part-00000."):
            os.remove(f"{out}/{name}")
    used = os.statvfs(disk)
    set_size(disk, f"{((used.f_blocks - used.f_bfree) * used.f_frsize >> 10) + 200}k")
    pack(root, out, "--container", container)
    check(fingerprint(out) == golden, "differs after a part was packed again")


with Workspace() as space:
    root = space("photos")
    make_images(root, 600)
    for container in ("hdf5", "shard"):
        pack(root, space(container), "--container", container)
        golden = fingerprint(space(container))

        for nth in range(1, 40, 1 if DEEP else 9):
            for op in ("pwrite", "ftruncate"):
                out = space(f"{container}-{op}-{nth}")
                code, text = pack(root, out, "--container", container, expect=(0, 73),
                                  env={"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:{ENOSPC}:sticky", "FAULT_PATH": out})
                if code == 73:
                    check("No space left" in text, text)
                    check(not os.path.exists(out + "/manifest.json"), "a manifest of an unfinished pack")
                pack(root, out, "--container", container)
                check(fingerprint(out) == golden, out, "differs")
        out = space(f"{container}-quota")
        text = pack(root, out, "--container", container, expect=73,
                    env={"LD_PRELOAD": SHIM, "FAULT": f"pwrite:5:{EDQUOT}:sticky", "FAULT_PATH": out})
        check("Disk quota exceeded" in text and out in text, text)
        # A folder that must not be written was said to lack room.
        for error in (EROFS, EACCES):
            text = pack(root, out, "--container", container, expect=73,
                        env={"LD_PRELOAD": SHIM, "FAULT": f"pwrite:1:{error}:sticky", "FAULT_PATH": out})
            check("with permission to write there, the same command resumes" in text and "room" not in text, text)
        pack(root, out, "--container", container)
        check(fingerprint(out) == golden, out, "differs")
        print(container, "ENOSPC from the nth write passed")

        small = space("tmpfs")
        os.makedirs(small, exist_ok=True)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=150k", "tmpfs", small], stderr=subprocess.DEVNULL).returncode == 0:
            try:
                text = pack(root, small + "/out", "--container", container, expect=73)
                check("free" in text or "No space left" in text, text)
                check(not any(name.endswith(".tmp") for _, _, names in os.walk(small) for name in names), "left-overs")
                subprocess.run(["mount", "-o", "remount,size=8m", small], check=True)
                pack(root, small + "/out", "--container", container)
                check(fingerprint(small + "/out") == golden, "differs after there was room")
                shutil.rmtree(small + "/out")
                set_size(small, SMALL_DISK)
                check_preflight(root, small)
                print(container, "disks of growing size:", check_sizes(root, container, small, golden))
                check_missing_part(root, container, small, golden)
            finally:
                subprocess.run(["umount", small], check=True)
            print(container, "small tmpfs passed")
        else:
            print("a tmpfs cannot be mounted here: that part was not run")

        done = subprocess.run([f"{BIN}/pack-images", root, "--labels", f"{root}/labels.csv", *SMALL, "--container", container,
                               "--output", space("limited" + container)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000)))
        check(done.returncode == 73 and b"File too large" in done.stdout, done.returncode, done.stdout.decode())
        print(container, "file-size limit passed")

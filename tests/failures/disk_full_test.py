"""A full disk or a limit on file sizes ends with 73 and a clear message; with room the same command goes on."""
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SHIM, SMALL, Workspace, check, fingerprint, make_pictures, pack, run

ENOSPC = 28

with Workspace() as space:
    root = space("photos")
    make_pictures(root, 600)
    for container in ("hdf5", "shard"):
        pack(root, space(container), "--container", container)
        golden = fingerprint(space(container))

        for nth in range(1, 40, 3):
            for op in ("pwrite", "fallocate"):
                out = space(f"{container}-{op}-{nth}")
                code, text = pack(root, out, "--container", container, expect=(0, 73),
                                  env={"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:{ENOSPC}:sticky", "FAULT_PATH": out})
                if code == 73:
                    check("No space left" in text, text)
                    check(not os.path.exists(out + "/manifest.json"), "a manifest of an unfinished pack")
                pack(root, out, "--container", container)
                check(fingerprint(out) == golden, out, "differs")
        print(container, "ENOSPC from the nth write passed")

        small = space("tmpfs")
        os.makedirs(small, exist_ok=True)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=150k", "tmpfs", small], stderr=subprocess.DEVNULL).returncode == 0:
            try:
                text = pack(root, small + "/out", "--container", container, expect=73)
                check("free" in text or "No space left" in text, text)
                check(not any(name.endswith(".tmp") for name in os.listdir(small + "/out")), "left-overs")
                subprocess.run(["mount", "-o", "remount,size=8m", small], check=True)
                pack(root, small + "/out", "--container", container)
                check(fingerprint(small + "/out") == golden, "differs after there was room")
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

"""Errors of the nth system call: never a wrong pack, never a crash; short reads and writes change nothing."""
import errno
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import SHIM, Workspace, check, fingerprint, make_pictures, pack, run


def faulty(op, nth, what, path):
    return {"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:{what}", "FAULT_PATH": path}


with Workspace() as space:
    root = space("photos")
    make_pictures(root, 300)
    for container in ("hdf5", "shard"):
        pack(root, space(container), "--container", container)
        golden = fingerprint(space(container))
        failed = 0
        for op in ("pwrite", "fsync", "rename", "close", "open"):
            for nth in (1, 2, 3, 4, 5, 7, 10, 15, 22, 40):
                out = space(f"{container}-{op}-{nth}")
                code, text = pack(root, out, "--container", container, expect=(0, 65, 73, 75), env=faulty(op, nth, errno.EIO, out))
                failed += code != 0
                if code == 0:
                    check(fingerprint(out) == golden, out, "exit 0, but other bytes")
                pack(root, out, "--container", container)
                check(fingerprint(out) == golden, out, "differs after the fault")
        check(failed >= 20, "only", failed, "faults were noticed")
        for op in ("pwrite", "pread", "read"):
            out = space(f"{container}-short-{op}")
            pack(root, out, "--container", container, env=faulty(op, 1, "short:sticky", out if op != "read" else root))
            check(fingerprint(out) == golden, op, "short calls changed the pack")
        out = space(f"{container}-eintr")
        pack(root, out, "--container", container, env=faulty("pwrite", 2, errno.EINTR, out))
        check(fingerprint(out) == golden, "EINTR changed the pack")
        print(container, "passed:", failed, "faults ended a run, none spoilt a pack")
    out = space("unreadable")
    text = pack(root, out, "--max-errors", "1", env=faulty("read", 5, errno.EIO, root))
    check("1 rejected" in text, text)
    print("an unreadable input is a reject")

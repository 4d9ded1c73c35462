"""Errors of the nth system call: never a wrong pack, never a crash; short reads and writes change nothing."""
import errno
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import SHIM, Workspace, check, fingerprint, make_pictures, pack, run


def faulty(op, nth, what, path):
    return {"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:{what}", "FAULT_PATH": path}


def check_given_up(out, text):
    """The message names the place; what could not be flushed, closed or renamed is not there."""
    left = os.listdir(out) if os.path.isdir(out) else []
    check(out in text or "photos" in text, out, text)
    check("manifest.json" not in left or "cannot flush the folder" in text, out, text, left)
    check(not any(name.endswith(".tmp") for name in left), left)


with Workspace() as space:
    root = space("photos")
    make_pictures(root, 300)
    for container in ("hdf5", "shard"):
        pack(root, space(container), "--container", container)
        golden = fingerprint(space(container))
        failed = 0
        cases = [(op, nth, "") for op in ("pwrite", "fsync", "rename", "close", "open") for nth in (1, 2, 3, 4, 5, 7, 10, 15, 22, 40)]
        cases += [(op, nth, "") for op in ("ftruncate", "pread", "read") for nth in (1, 2, 4, 9)]
        cases += [(op, nth, ":sticky") for op in ("pwrite", "fsync", "rename", "close") for nth in (1, 3, 9)]
        for op, nth, how in cases:
            out = space(f"{container}-{op}-{nth}{how.replace(':', '-')}")
            code, text = pack(root, out, "--container", container, expect=(0, 65, 73, 75),
                              env=faulty(op, nth, f"{errno.EIO}{how}", out))
            failed += code != 0
            if code == 0:
                check(fingerprint(out) == golden, out, "exit 0, but other bytes")
            else:
                check_given_up(out, text)
            pack(root, out, "--container", container)
            check(fingerprint(out) == golden, out, "differs after the fault")
        check(failed >= 20, "only", failed, "faults were noticed")
        # A flush or a close that failed once is not tried again: the part is given up and written anew.
        for op, words in (("fsync", "cannot flush to disk"), ("close", "cannot close")):
            said = ""
            for nth in range(1, 13):
                out = space(f"{container}-once-{op}-{nth}")
                code, text = pack(root, out, "--container", container, expect=(0, 73), env=faulty(op, nth, errno.EIO, out))
                check(code == 0 or "Input/output error" in text, text)
                said += text
                pack(root, out, "--container", container)
                check(fingerprint(out) == golden, out, "differs after the fault")
            check(words in said, op, "never failed where it counts:", said)
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

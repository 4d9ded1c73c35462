"""Errors of the nth system call: never a wrong pack, never a crash; short reads and writes change nothing."""
import errno
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import SHIM, Workspace, check, fingerprint, make_images, pack, run


def bad(op, nth, what, path):
    return {"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:{what}", "FAULT_PATH": path}


def check_given_up(out, text):
    """The message names the place; what could not be flushed, closed or renamed is not there."""
    left = os.listdir(out) if os.path.isdir(out) else []
    check(out in text or "photos" in text, out, text)
    check("manifest.json" not in left or "cannot flush the folder" in text, out, text, left)
    check(not any(name.endswith(".tmp") for name in left), left)


MACHINE_ERRORS = [("read", 200, error) for error in (errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ENOMEM)]
MACHINE_ERRORS += [("openat2", 150, error) for error in (errno.EMFILE, errno.ENFILE, errno.ETIMEDOUT, errno.EHOSTDOWN)]


def check_unfinished(out, golden):
    """Parts that are there are whole; nothing says that there are no more."""
    left = os.listdir(out)
    check("manifest.json" not in left and not any(name.endswith(".tmp") for name in left), left)
    parts = [name for name in left if name.endswith(".json")]
    check(all(fingerprint(out)[name] == golden[name] for name in parts), "a part that is not whole")
    found = run("pack-info", out, expect=75 if parts else (65, 75))
    check(not parts or f"{len(parts)} finished" in found, found)
    if parts:
        told = json.loads(run("pack-info", out, "--json", expect=75))
        check(told["parts"] == len(parts) and told["rows"] >= told["samples"] > 0 and not told["finished"], told)


def check_bare_mount_point(space, root):
    """Files that are all missing from a folder that is there look like one that is not mounted."""
    shutil.copytree(root, space("mounted"))
    for name in os.listdir(space("mounted/images/bee")):
        os.rename(space(f"mounted/images/bee/{name}"), space(name))
    for limit in ("1%", "100%"):
        text = pack(space("mounted"), space("bare"), "--max-errors", limit, expect=75)
        check("images/bee: is empty, as a file system that is not mounted" in text, text)
    os.rename(space("00004.jpg"), space("mounted/images/bee/00004.jpg"))
    pack(space("mounted"), space("bare"), "--max-errors", "100%")
    print("a mount that is missing is no reject")


def check_listing(space, root):
    """A folder that could not be listed ended the run with 65, as if its images were at error."""
    arguments = ("pack-images", root, "--resize", "16x12", "--progress", "none", "--output")
    run(*arguments, space("listed"))
    run(*arguments, space("listed-late"), env=bad("readdir", 5, errno.ESTALE, root))
    check(fingerprint(space("listed-late")) == fingerprint(space("listed")), "a passing error changed the list")
    for nth in (1, 40):
        text = run(*arguments, space("unlisted"), expect=75, env=bad("readdir", nth, f"{errno.ESTALE}:sticky", root))
        check(os.strerror(errno.ESTALE) in text and root in text and not os.path.exists(space("unlisted")), text)
    print("a folder that cannot be listed now is no bad input")


def check_outside_is_a_reject(space, root):
    """A path into an empty folder outside of ROOT was taken for a mount that is missing, and ended each run with 75."""
    os.mkdir(space("empty"))
    with open(f"{root}/labels.csv") as file:
        rows = file.read()
    with open(space("outside.csv"), "w") as file:
        file.write(f"{rows}{space('empty')}/1.jpg,bee\n")
    text = run("pack-images", root, "--labels", space("outside.csv"), "--resize", "16x12", "--progress", "none", "--output", space("outside"))
    check("leads out of the root folder" in text, text)


with Workspace() as space:
    root = space("photos")
    make_images(root, 300)
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
                              env=bad(op, nth, f"{errno.EIO}{how}", out))
            failed += code != 0
            if code == 0:
                check(fingerprint(out) == golden, out, "exit 0, but other bytes")
            else:
                check_given_up(out, text)
            pack(root, out, "--container", container)
            check(fingerprint(out) == golden, out, "differs after the error")
        check(failed >= 20, "only", failed, "problems were noticed")
        # A flush or a close that failed once is not tried again: the part is given up and written anew.
        for op, words in (("fsync", "cannot flush to disk"), ("close", "cannot close")):
            said = ""
            for nth in range(1, 13):
                out = space(f"{container}-once-{op}-{nth}")
                code, text = pack(root, out, "--container", container, expect=(0, 73), env=bad(op, nth, errno.EIO, out))
                check(code == 0 or "Input/output error" in text, text)
                said += text
                pack(root, out, "--container", container)
                check(fingerprint(out) == golden, out, "differs after the error")
            check(words in said, op, "never failed where it counts:", said)
        for op in ("pwrite", "pread", "read"):
            out = space(f"{container}-short-{op}")
            pack(root, out, "--container", container, env=bad(op, 1, "short:sticky", out if op != "read" else root))
            check(fingerprint(out) == golden, op, "short calls changed the pack")
        out = space(f"{container}-eintr")
        pack(root, out, "--container", container, env=bad("pwrite", 2, errno.EINTR, out))
        check(fingerprint(out) == golden, "EINTR changed the pack")
        print(container, "passed:", failed, "problems ended a run, none spoilt a pack")
    golden = fingerprint(space("hdf5"))
    for op, nth in (("read", 5), ("openat2", 30)):
        out = space(f"passing-{op}")
        text = pack(root, out, env=bad(op, nth, errno.ESTALE, root))
        check("0 rejected" in text and fingerprint(out) == golden, text)
    print("an error that passes changed nothing")
    for op, nth, error in MACHINE_ERRORS:
        out = space(f"unreadable-{op}-{error}")
        text = pack(root, out, "--max-errors", "100%", expect=75, env=bad(op, nth, f"{error}:sticky", root))
        check(os.strerror(error) in text and "images/" in text and "same command to resume" in text, text)
        check_unfinished(out, golden)
        pack(root, out)
        check(fingerprint(out) == golden, out, "differs after the error")
    print("errors of the machine are no rejects")
    for op, path, error in (("openat2", root, errno.EIO), ("read", f"{root}/labels.csv", errno.ESTALE), ("open", f"{root}/labels.csv", errno.EMFILE)):
        text = pack(root, space("first"), expect=75, env=bad(op, 1, f"{error}:sticky", path))
        check(os.strerror(error) in text and ("labels.csv" if op != "openat2" else "images/") in text, text)
    check_listing(space, f"{root}/images")
    out = space("gone")
    text = pack(root, out, "--max-errors", "100%", expect=75, env=bad("openat2", 90, f"{errno.ENOENT}:sticky", root))
    check("could be read when the run began" in text, text)
    check_unfinished(out, golden)
    check_bare_mount_point(space, root)
    check_outside_is_a_reject(space, root)

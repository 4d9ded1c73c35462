"""A machine that lacks memory or descriptors, or storage that does not answer, is never called damage: pack-verify ends
with 0 or 75, names what was missing, and advises to remove nothing."""
import errno
import os
import re
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from packing import BIN, SHIM, Workspace, check, make_images, pack, run  # noqa: E402

MIB = 1 << 20
NOT_STARTED = 127  # by the dynamic linker, for lack of memory or descriptors


def verify(path, resource_name=None, limit=0, **env):
    """Exit code and text of pack-verify under one limit."""
    def enter():
        if resource_name is not None:
            resource.setrlimit(resource_name, (limit, limit))

    done = subprocess.run([os.path.join(BIN, "pack-verify"), path, "--threads", "2"], preexec_fn=enter, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **env})
    return done.returncode, done.stdout.decode(errors="replace")


def asks_to_try_again(code, text, names):
    """Ends the test where a healthy pack is called anything else than whole or unknown."""
    check(code in (0, 75, NOT_STARTED), code, text)
    if code == 75:
        check("to repair" not in text and re.search(names, text), text)
    return code == 75


def least_addresses():
    """The fewest KiB of addresses with which pack-verify gets as far as its main: below, its libraries may abort."""
    low, high = 4 << 10, 400 << 10
    while high - low > 16:
        middle = (low + high) // 2
        if verify("--help", resource.RLIMIT_AS, middle << 10)[0] == 0:
            high = middle
        else:
            low = middle
    return high


def packs(space):
    root = space("root")
    make_images(root, 300)
    table = space("ratings.csv")
    with open(table, "w") as file:
        file.write("user,item,rating\n")
        for user in range(2000):
            file.writelines(f"{user},{(user * 7 + k * k) % 500},{1 + k % 5}\n" for k in range(20))
    made = []
    for container in ("hdf5", "shard"):
        made += [space("images-" + container), space("matrix-" + container)]
        pack(root, made[-2], "--container", container)
        run("pack-sparse", table, "--container", container, "--output", made[-1])
    return made


def large_index(space):
    """A shard whose ids and index need more than the 64 MiB that they may always take."""
    table = space("many.csv")
    with open(table, "w") as file:
        file.writelines(f"a-user-with-a-long-name-{user},{user % 100}\n" for user in range(1_200_000))
    run("pack-sparse", table, "--output", space("many"), "--header", "no")
    return space("many")


def bad_sector_is_damage(path):
    """Bytes in a middle chunk that the storage never gives, while it gives the others: named, with what to repair."""
    part = os.path.join(path, "part-00000.h5")
    sector = os.path.getsize(part) // 2 // 4096 * 4096
    code, text = verify(path, LD_PRELOAD=SHIM, FAULT_PATH=path, BAD_BYTE=str(sector))
    check(code == 65 and "bad sector" in text and "part-00000.h5: chunk" in text, code, text)


if __name__ == "__main__":
    with Workspace() as space:
        made = packs(space)
        refused = 0
        if ":" not in SHIM:
            code, text = verify(large_index(space), resource.RLIMIT_AS, 200 * MIB)
            check(code == 75 and "its ids and its index need" in text and "to repair" not in text, code, text)
        # The sanitizers take terabytes of addresses, and descriptors of their own.
        if ":" not in SHIM:
            least = least_addresses()
            for path in made:
                for kibibytes in [*range(0, 15 << 10, 150), *range(15 << 10, 160 << 10, 4 << 10)]:
                    limit = (least + 64 + kibibytes) << 10
                    refused += asks_to_try_again(*verify(path, resource.RLIMIT_AS, limit), "memory|ulimit|threads")
                for files in range(4, 16):
                    refused += asks_to_try_again(*verify(path, resource.RLIMIT_NOFILE, files), "Too many open files")
            check(refused >= 8, "only", refused, "limits were felt")
        for path in made:
            for call, error, names in (("pread", errno.EIO, "Input/output error"), ("pread", errno.ESTALE, "Stale"),
                                       ("open", errno.ENFILE, "Too many open files in system"),
                                       ("open", errno.ENOMEM, "Cannot allocate")):
                for nth in range(1, 60, 6):
                    shim = {"LD_PRELOAD": SHIM, "FAULT": f"{call}:{nth}:{error}", "FAULT_PATH": path}
                    refused += asks_to_try_again(*verify(path, **shim), names)
        bad_sector_is_damage(made[0])
        print("healthy packs:", refused, "runs ask to try again, none called damaged")

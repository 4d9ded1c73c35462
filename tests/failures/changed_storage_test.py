"""Storage that gives another byte of a pack than was written, at once or after some epochs: commands that read it from a file end with
65 and name the sample, in every order and cache. Usage: changed_storage_test.py BIN SHIM"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SHIM, Workspace, check, make_images, pack
from shard_reader import Hdf5Part

SAMPLE = 16 * 12 * 3
SETTINGS = [(shuffle, cache) for shuffle in ("none", "window", "global") for cache in ("decoded", "compressed", "none")]


def evict(path):
    """Leaves the file to the storage: its pages go from memory."""
    fd = os.open(path, os.O_RDONLY)
    os.fdatasync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def command(space, other_byte, name, *arguments):
    environment = dict(os.environ, LD_PRELOAD=SHIM, FAULT_PATH=space("pack/part-00000.h5"), OTHER_BYTE=other_byte)
    done = subprocess.run([os.path.join(BIN, name), *map(str, arguments)], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode()


def bench(space, other_byte, shuffle, cache):
    return command(space, other_byte, "pack-bench", space("pack"), "--shuffle", shuffle, "--window-chunks", 2, "--cache", cache,
                   "--batch-size", 20, "--epochs", 4, "--threads", 2)


def main():
    with Workspace() as space:
        make_images(space("in"))
        pack(space("in"), space("pack"))
        path = space("pack/part-00000.h5")
        part = Hdf5Part(path)
        check(part.version == 3 and part.sample_bytes == SAMPLE, part.version, part.sample_bytes)
        at = int(part.chunks[1][0]) + 2 * SAMPLE + 5  # of the third sample of the second chunk
        block = part.block_bytes() // SAMPLE
        samples = f"samples {part.chunks[1][3]}-{part.chunks[1][3] + block - 1}"
        for shuffle, cache in SETTINGS:
            evict(path)
            code, text = bench(space, f"{at}", shuffle, cache)
            check(code == 65 and f"part-00000.h5: chunk 1 (" in text and samples in text, shuffle, cache, code, text)
            # The first reads are right, so that only later epochs have the other byte.
            evict(path)
            code, text = bench(space, f"{at}:3", shuffle, cache)
            check(code == (65 if cache == "none" else 0), shuffle, cache, code, text)
        code, text = command(space, f"{at}", "pack-verify", space("pack"))
        check(code == 65 and samples in text, code, text)
        code, text = command(space, f"{part.data.rfind(b'chunkhit index')}:1000", "pack-verify", space("pack"))
        check(code == 0, code, text)


if __name__ == "__main__":
    main()

"""pack-sparse keeps --memory-bytes; where ids or one user's ratings cannot fit, it says so early, with a limit that would do."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import h5py
import numpy as np

from limits import run_limited
from packing import Workspace, check, fingerprint, run, run_tests, sanitizer_runtimes

MIB = 1 << 20
# The program and its libraries; sanitizers take far more.
BASE = 40 * MIB if not sanitizer_runtimes() else 1 << 40


def test_limits_below_what_the_program_takes_were_accepted(space):
    with open(space("few.csv"), "w") as file:
        file.writelines(f"{n % 20},{n // 20},1\n" for n in range(60))
    for memory, threads, least in (("1M", 1, "32M"), ("8M", 1, "32M"), ("40M", 8, "60M")):
        text = run("pack-sparse", space("few.csv"), "--memory-bytes", memory, "--threads", threads, "-o", space("few"), expect=2)
        check(f"need at least {least} in all" in text, text)
    for memory, threads in (("32M", 1), ("40M", 2), ("60M", 8)):
        done = run_limited("pack-sparse", space("few.csv"), "--memory-bytes", memory, "--threads", threads, "-o", space("few"), "--force")
        check(done.code == 0 and done.peak_bytes < max(int(memory[:-1]) << 20, BASE - 40 * MIB), memory, done)


def write(path, lines):
    with open(path, "w") as file:
        file.write("user,item,rating\n")
        file.writelines(lines)


def pack(space, name, memory, out, *more):
    return run_limited("pack-sparse", space(name), "--memory-bytes", memory, "--threads", 2, "--progress", "none", *more,
                       "--output", space(out))


def kept(done, mebibytes):
    return done.peak_bytes <= mebibytes * MIB * 1.1 + BASE


def in_mebibytes(memory):
    return int(memory[:-1]) * (1024 if memory[-1] == "G" else 1)


def named_limit_does(space, name, *more):
    """The error of 64M comes before anything is written, and the limit that it names is enough and is kept."""
    done = pack(space, name, "64M", "small", *more)
    check(done.code == 2 and "--memory-bytes 67.1 MB cannot hold" in done.text, done)
    check(kept(done, 64), "64M", done)
    check(not os.path.exists(space("small/manifest.json")), "left a pack")
    memory = re.search(r"give --memory-bytes (\d+[MG])( or more)?$", done.text, re.MULTILINE)[1]
    found = pack(space, name, memory, "enough", *more)
    check(found.code == 0 and kept(found, in_mebibytes(memory)), memory, found)
    print(f"  {name}: {memory} named, peak {found.peak_bytes // MIB} MiB")


def test_ids_that_memory_cannot_hold_took_far_more_of_it(space):
    write(space("ids.csv"), (f"{1000000 + user * 7},{5000000 + user * 3},{user % 5 + 1}\n" for user in range(500_000)))
    named_limit_does(space, "ids.csv")
    write(space("texts.csv"), (f"AVPGEZGRDP{user:08d},B00{user:08d}XY,{user % 5 + 1}\n" for user in range(300_000)))
    named_limit_does(space, "texts.csv", "--force")


def test_the_items_of_a_list_were_not_counted(space):
    with open(space("items.csv"), "w") as file:
        file.write("column,ratings,item\n")
        file.writelines(f"{item},1,B00{item:08d}XYZWVUTS\n" for item in range(700_000))
    write(space("few.csv"), (f"{index % 100},B00{index * 7:08d}XYZWVUTS,1\n" for index in range(20_000)))
    named_limit_does(space, "few.csv", "--reuse-ids", space("items.csv"), "--force")
    with open(space("users.txt"), "w") as file:
        file.writelines(f"user-with-a-long-name-{user}\n" for user in range(700_000))
    done = pack(space, "few.csv", "64M", "users", "--split-by", "users", "--test-users", space("users.txt"))
    check(done.code == 2 and "ids of --test-users" in done.text and kept(done, 64), done)


def test_the_labels_of_rows_were_not_counted(space):
    with open(space("labels.svm"), "w") as file:
        file.writelines(f"{row % 5},1,2,3 qid:{row // 10} {row * 7 % 5000}:1 {6000 + row % 5000}:2\n" for row in range(900_000))
    done = pack(space, "labels.svm", "192M", "labels")
    check(done.code in (0, 2) and kept(done, 192), done)
    check(done.code == 0 or "with the rows' labels" in done.text, done)
    named_limit_does(space, "labels.svm", "--force")


def test_the_ratings_of_one_user_took_more_than_memory(space):
    write(space("one.csv"), (f"1,{index % 1000},{index % 5 + 1}\n" for index in range(3_000_000)))
    named_limit_does(space, "one.csv", "--duplicates", "max", "--force")


def test_many_ratings_of_neighbouring_users_took_more_than_memory(space):
    write(space("near.csv"), (f"{user},{(index * 7 + user) % 20000},{(index + user) % 5 + 1}\n"
                              for index in range(3000) for user in range(1000)))
    done = pack(space, "near.csv", "64M", "spilled", "--part-bytes", "4M")
    check(done.code == 0 and kept(done, 64), done)
    print(f"  near.csv: peak {done.peak_bytes // MIB} MiB")
    run("pack-sparse", space("near.csv"), "--memory-bytes", "2G", "--part-bytes", "4M", "--output", space("whole"))
    check(fingerprint(space("spilled")) == fingerprint(space("whole")), "other bytes from disk than from memory")


def test_times_of_long_rows_took_more_than_memory(space):
    write_timed = (f"{user},{(index * 7 + user) % 20000},{(index + user) % 5 + 1},{1500000000 + index * 977}\n"
                   for index in range(3000) for user in range(1000))
    with open(space("timed.csv"), "w") as file:
        file.write("user,item,rating,time\n")
        file.writelines(write_timed)
    for container in ("shard", "hdf5"):
        done = pack(space, "timed.csv", "64M", container, "--part-bytes", "4M", "--keep-times", "--container", container)
        check(done.code == 0 and kept(done, 64), container, done)
        print(f"  timed.csv in {container}: peak {done.peak_bytes // MIB} MiB")


def write_h5ad(path, rows, columns, arrays, names=None):
    """Writes AnnData with an entry a row; `arrays` says how data, indices and indptr lie."""
    with h5py.File(path, "w") as file:
        x = file.create_group("X")
        x.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [rows, columns]})
        x.create_dataset("data", data=np.ones(rows, "f4"), **arrays)
        x.create_dataset("indices", data=np.arange(rows, dtype="i4") % columns, **arrays)
        x.create_dataset("indptr", data=np.arange(rows + 1), **arrays)
        for table, count in (("obs", rows), ("var", columns)):
            group = file.create_group(table)
            if names:
                group.attrs["_index"] = "_index"
                group.create_dataset("_index", data=names(table, count), **({"chunks": (min(count, 113),), "compression": "gzip"}))


def test_large_chunks_of_a_small_h5ad_took_more_than_memory(space):
    packed = {"chunks": (1 << 24,), "maxshape": (None,), "compression": "gzip", "compression_opts": 1}
    write_h5ad(space("chunks.h5ad"), 20_000, 300, packed)
    named_limit_does(space, "chunks.h5ad", "--force")


def test_the_names_of_an_h5ad_took_more_than_memory(space):
    write_h5ad(space("names.h5ad"), 900_000, 300, {"compression": "gzip", "compression_opts": 1, "chunks": (1 << 16,)},
               lambda table, count: np.arange(count))
    named_limit_does(space, "names.h5ad", "--force")


def test_a_damaged_h5ad_that_claims_huge_sizes_took_gigabytes(space):
    rows, columns = 1237, 331
    plain = {"chunks": (1009,), "compression": "gzip", "shuffle": True, "maxshape": (None,)}
    write_h5ad(space("sound.h5ad"), rows, columns, plain, lambda table, count: np.array([f"{table}{n}" for n in range(count)], "S16"))
    with open(space("sound.h5ad"), "rb") as file:
        sound = file.read()
    random = np.random.default_rng(3)
    places = [(at, width, size) for size in (rows, rows + 1, columns, 1009, 113, 16) for width in (4, 8)
              for at in range(len(sound) - width) if sound[at:at + width] == size.to_bytes(width, "little")]
    largest = 0
    for index in random.permutation(6 * len(places))[:120]:
        position, width, size = places[index // 6]
        claimed = (size * 1000, 1 << 24, 1 << 27, (1 << 28) - 1, 1 << 30, (1 << 31) - 1)[index % 6]
        with open(space("damaged.h5ad"), "wb") as file:
            file.write(sound[:position] + claimed.to_bytes(width, "little") + sound[position + width:])
        done = pack(space, "damaged.h5ad", "64M", "damaged", "--force")
        check(done.code in (0, 2, 65, 75) and kept(done, 64), position, size, claimed, done)
        largest = max(largest, done.peak_bytes)
    print(f"  120 files, largest peak {largest // MIB} MiB")


with Workspace() as workspace:
    run_tests(globals(), workspace)

"""pack-merge: what the merged pack holds, kills before every call that changes a file, and what is refused."""
import csv
import json
import os
import shutil
import signal
import subprocess
import sys

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from optional import optional
from packing import BIN, SHIM, Workspace, check, fingerprint, files_of, make_images, outcome, run
from sparse_packs import Pack, as_entries, random_ratings, write_csv

anndata = optional("anndata")
SCHEMA = json.load(open(os.path.join(os.path.dirname(__file__), "../../schemas/manifest.schema.json")))
NO_LINKS = {"LD_PRELOAD": SHIM, "NO_LINKS": "1"}
OPS = ("mkdir", "open", "write", "pwrite", "link", "fsync", "close", "rename", "unlink")


def make_pack(space, name, count, draw, rename=None, bad=0, **flags):
    """A pack of small parts; `rename` gives classes other names."""
    root = space(f"photos-{name}")
    rows = make_images(root, count, bad=bad, seed=draw, odd=bad > 0)
    with open(f"{root}/labels.csv", "w", newline="") as file:
        csv.writer(file).writerows([("file", "label")] + [(path, (rename or {}).get(label, label)) for path, label in rows])
    spec = {"resize": "16x12", "container": "shard", "chunk-samples": 8, "part-bytes": 10000, "max-errors": 9, **flags}
    run("pack-images", root, "--labels", f"{root}/labels.csv", "--output", space(name), "--progress", "none",
        *(word for flag, value in spec.items() for word in (f"--{flag}", value)))
    return space(name)


def manifest(folder):
    with open(f"{folder}/manifest.json") as file:
        read = json.load(file)
    if read["format"] == "chunkhit-images":
        jsonschema.validate(read, SCHEMA)
    return read


def rows(folder, table):
    listed = manifest(folder)[table]["file"]
    with open(f"{folder}/{listed}", newline="") as file:
        return list(csv.DictReader(file))


def faults(path, fault):
    return {"LD_PRELOAD": SHIM, "FAULT": fault, "FAULT_PATH": path}


def test_holds_all_of_the_packs(space, a, b):
    run("pack-merge", space("all"), a, b)
    merged, parts = manifest(space("all")), [manifest(a), manifest(b)]
    check(merged["version"] == 2 and "version" in parts[0] and parts[0]["version"] == 1, "versions")
    for key in ("rows", "samples", "rejected", "warned"):
        check(merged[key] == sum(part[key] for part in parts), key, merged[key])
    names = [record["name"] for record in merged["classes"]]
    check(names == ["ant", "bee", "cat", "aardvark", "zebra"], names)
    counted = {}
    for part in parts:
        for record in part["classes"]:
            counted[record["name"]] = counted.get(record["name"], 0) + record["samples"]
    check({record["name"]: record["samples"] for record in merged["classes"]} == counted, "samples of classes")
    listed = [part["file"] for part in merged["parts"]]
    check(len(set(listed)) == len(listed) == sum(len(part["parts"]) for part in parts), listed)
    for name in ("rejects", "warnings"):
        expected = [(str(pack), row["row"], row["file"], row["label"]) for pack, folder in enumerate((a, b))
                    for row in rows(folder, name)]
        found = [(row["pack"], row["row"], row["file"], row["label"]) for row in rows(space("all"), name)]
        check(found == expected and len(found) > 0, name, found)
    run("pack-verify", space("all"))
    run("pack-merge", space("by-manifest"), f"{a}/manifest.json", f"{b}//")
    check(fingerprint(space("by-manifest")) == fingerprint(space("all")), "named by their manifests")
    for part in merged["parts"]:
        check(os.stat(space("all") + "/" + part["file"]).st_nlink == 3, part["file"], "is no link")


def test_appended_one_by_one_is_merged_at_once(space, a, b, c):
    run("pack-merge", space("once"), a, b, c)
    shutil.copytree(a, space("grown"))
    for more in (b, c):
        run("pack-merge", space("grown"), space("grown"), more)
        done = run("pack-merge", space("grown"), space("grown"), more)
        check("already merged" in done, done)
        run("pack-verify", space("grown"))
    once, grown = manifest(space("once")), manifest(space("grown"))
    for key in once:
        same = key in ("rejects", "warnings", "xxh3") or once[key] == grown[key]
        check(same, key, once[key], grown[key])
    check([rows(space("once"), t) for t in ("rejects", "warnings")] == [rows(space("grown"), t) for t in ("rejects", "warnings")], "tables")
    check(len([name for name in os.listdir(space("grown")) if name.startswith("rejects")]) == 1, os.listdir(space("grown")))


def test_a_pack_is_put_in_front(space, a, b):
    """OUT need not be the first: its parts keep their names, the order is that of the command."""
    run("pack-merge", space("ba"), b, a)
    shutil.copytree(a, space("front"))
    run("pack-merge", space("front"), b, space("front"))
    check("already merged" in run("pack-merge", space("front"), b, space("front")), "done")
    run("pack-verify", space("front"))
    found, expected = manifest(space("front")), manifest(space("ba"))
    check([found[key] for key in ("pack_id", "classes", "mean")] == [expected[key] for key in ("pack_id", "classes", "mean")], "differ")
    check([part["xxh3"] for part in found["parts"]] == [part["xxh3"] for part in expected["parts"]], "order of parts")


def test_copies_where_there_are_no_links(space, a, b):
    out = space("copied")
    text = run("pack-merge", out, a, b, env=NO_LINKS)
    check("0 linked" in text, text)
    check(fingerprint(out) == fingerprint(space("all")), "copies differ from links")
    check(all(os.stat(f"{out}/{name}").st_nlink == 1 for name in os.listdir(out)), "linked")


def sweep(space, before, packs):
    """Kills before each call; OUT is as before or whole, and the same command ends it."""
    def start():
        shutil.rmtree(space("killed"), ignore_errors=True)
        os.mkdir(space("killed"))
        if before:
            shutil.copytree(before, space("killed/out"))

    out, killed, noted = space("killed/out"), 0, 0
    start()
    old = files_of(out)
    run("pack-merge", out, *packs)
    golden = files_of(out)
    for op in OPS:
        for nth in range(1, 200):
            start()
            code, _ = run("pack-merge", out, *packs, expect=(0, -signal.SIGKILL), env=faults(out, f"{op}:{nth}:kill"))
            held = files_of(out)
            is_old = all(held.get(name) == data for name, data in old.items() if not name.endswith(".inputs"))
            is_new = all(held.get(name) == data for name, data in golden.items())
            check(is_old or is_new, op, nth, "neither as before nor whole", sorted(held))
            if before or is_new:
                run("pack-info", out)
                noted += "but of a run that appends packs to it" in run("pack-verify", out)
            run("pack-merge", out, *packs)
            check(files_of(out) == golden, op, nth, "left", sorted(set(files_of(out)) ^ set(golden)))
            if code == 0:
                break
            killed += 1
    check(killed > 20, "only", killed, "kills")
    check(not before or noted > 0, "files of killed appends were silent")
    print("kills", killed, flush=True)


def test_kills(space, a, b, c):
    sweep(space, "", [a, b])
    sweep(space, a, [space("killed/out"), b, c])


def test_killed_copies(space, a, b):
    """A file system without links: copies are whole or not there."""
    out, golden = space("nolinks"), fingerprint(space("all"))
    for op in ("open", "pwrite", "fsync", "rename"):
        for nth in range(1, 60):
            code, _ = run("pack-merge", out, a, b, expect=(0, -signal.SIGKILL), env={**faults(out, f"{op}:{nth}:kill"), **NO_LINKS})
            run("pack-merge", out, a, b, env=NO_LINKS)
            check(fingerprint(out) == golden, op, nth)
            shutil.rmtree(out)
            if code == 0:
                break


def test_refusals(space, a, b):
    def refused(expect, words, *arguments):
        text = run("pack-merge", *arguments, expect=expect)
        check(all(word in text for word in words), words, text)

    other = make_pack(space, "other", 20, 9, resize="20x12")
    planes = make_pack(space, "planes", 20, 9, layout="nchw")
    hdf5 = make_pack(space, "hdf5", 20, 9, container="hdf5")
    ids = make_pack(space, "ids", 20, 9, {"ant": "0", "bee": "1", "cat": "2"})
    numbers = make_pack(space, "numbers", 20, 9, {"ant": "0.5", "bee": "1.5", "cat": "2.5"})
    out = space("no")
    refused(65, ["12x20x3", "expected 12x16x3", other, a], out, a, other)
    refused(65, ["nchw", planes, a], out, a, planes)
    refused(65, ["container", hdf5, a], out, a, hdf5)
    refused(65, ["without names", ids, a], out, a, ids)
    refused(65, ["numbers", numbers, a], out, a, numbers)
    refused(65, ["repeated", a], out, a, b, a)
    refused(65, ["repeated", space("all"), a], out, space("all"), a)
    check(not os.path.exists(out), "left", out)
    refused(73, ["holds another pack"], space("all"), b, a)
    os.mkdir(space("half"))
    refused(65, ["no finished pack"], out, a, space("half"))
    os.makedirs(space("split"))
    shutil.copytree(a, space("split/train"))
    refused(65, [f"pack-merge {out}/train {space('split')}/train"], out, space("split"), b)
    shutil.copytree(a, space("damaged"))
    os.truncate(space("damaged/part-00001.zst"), 100)
    refused(65, ["part-00001.zst", "pack-verify"], out, b, space("damaged"))
    shutil.copytree(b, space("begun"))
    os.remove(space("begun/manifest.json"))
    refused(73, ["unfinished pack"], space("begun"), a)


def test_other_images_with_the_same_names_are_appended(space):
    """A folder that is filled anew each day: the pack has the id of yesterday's, but other pixels."""
    for container in ("shard", "hdf5"):
        days = [f"{day}-{container}" for day in ("monday", "tuesday", "wednesday")]
        for number, day in enumerate(days):
            os.makedirs(space("day/cat"), exist_ok=True)
            for index in range(8):
                with open(space(f"day/cat/{index}.ppm"), "wb") as file:
                    file.write(b"P6 4 4 255 " + bytes([index + 80 * number] * 48))
            run("pack-images", space("day"), "--output", space(day), "--container", container, "--progress", "none")
        packs, out = [space(day) for day in days], space(f"days-{container}")
        check(len({manifest(pack)["pack_id"] for pack in packs}) == 1, "the packs have ids of their own")
        run("pack-merge", out, packs[0])
        alone = manifest(out)["pack_id"]
        run("pack-merge", out, out, packs[1])
        run("pack-verify", out)
        check(manifest(out)["samples"] == 16 and manifest(out)["pack_id"] != alone, manifest(out))
        found = [part["xxh3"] for part in manifest(out)["parts"]]
        check(found == [part["xxh3"] for pack in packs[:2] for part in manifest(pack)["parts"]] and len(set(found)) == 2, found)
        check("already merged" in run("pack-merge", out, out, packs[1]), "not recognised")
        for again in packs[:2]:
            text = run("pack-merge", space("twice"), out, again, expect=65)
            check("is repeated" in text and again in text, text)
        text = run("pack-merge", out, packs[0], packs[2], expect=73)
        check("holds another pack" in text, text)


def test_machine_faults_publish_nothing(space, a, b):
    """A source that is removed meanwhile, a full disk, a source that cannot be read."""
    out = space("faulty")
    for path, fault, links, code in ((out, "link:3:2", {}, 65), (out, "pwrite:2:28", NO_LINKS, 73), (out, "link:2:5", {}, 73),
                                     (out, "rename:2:5", {}, 73), (b, "pread:9:5", NO_LINKS, 75), (out, "fsync:1:5", {}, 73)):
        text = run("pack-merge", out, a, b, expect=code, env={**faults(path, fault), **links})
        check(not os.path.exists(f"{out}/manifest.json"), fault, text)
    run("pack-merge", out, a, b)
    check(fingerprint(out) == fingerprint(space("all")), "differs")
    before = files_of(a)
    run("pack-merge", a, a, b, expect=73, env=faults(a, "fsync:2:5"))
    check(all(files_of(a)[name] == data for name, data in before.items()), "a is not as it was")
    run("pack-info", a)
    shutil.rmtree(a)
    run("pack-verify", out)  # its parts stay


def test_two_merges_at_once(space, a, b):
    """Equal merges whose locks do not see each other end with the right pack; one may have to be run again."""
    for _ in range(10):
        shutil.rmtree(space("two"), ignore_errors=True)
        command = [os.path.join(BIN, "pack-merge"), space("two"), a, b]
        env = {**os.environ, "LD_PRELOAD": SHIM, "NO_FLOCK": "1"}
        runs = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(3)]
        codes = [(each.communicate()[0], each.returncode)[1] for each in runs]
        check(0 in codes and set(codes) <= {0, 75}, codes)
        run("pack-merge", *command[1:])
        check(fingerprint(space("two")) == fingerprint(space("all")), codes)


def test_packing_into_a_merged_pack_is_refused(space, a, b):
    golden = files_of(space("all"))
    photos = space("photos-a")
    text = run("pack-images", photos, "--labels", f"{photos}/labels.csv", "--resize", "16x12", "-o", space("all"), expect=73)
    check("merged pack" in text, text)
    check("nothing to do" in run("pack-run", space("all")), "a plan that ended in it is finished")
    check(files_of(space("all")) == golden, "changed")


def test_damage_is_not_to_be_rebuilt(space, a, b):
    for name in ("part-00001.zst", "manifest.json"):
        run("pack-merge", space("torn"), a, b, env=NO_LINKS)
        with open(space(f"torn/{name}"), "r+b") as file:
            file.seek(3000)
            file.write(b"\0\1\2\3")
        text = run("pack-verify", space("torn"), expect=65)
        check("was merged" in text and "to repair, remove" not in text, text)
        shutil.rmtree(space("torn"))


def pack_ratings(space, name, ratings, *flags):
    table = write_csv(space(f"{name}.csv"), ratings)
    run("pack-sparse", table, "--output", space(name), "--progress", "none", "--values", "u8:0.5", *flags)
    return space(name)


def halves(count, **how):
    """Ratings of one list of items, each user's in one of `count` lists."""
    ratings = random_ratings(7, **how)
    return [[rating for rating in ratings if rating[0] // 7 % count == part] for part in range(count)]


def check_ratings(folder, packs):
    merged = Pack(folder)
    for which in ("x", "held_out"):
        expected = {}
        for part in packs:
            expected.update(getattr(part, which))
        check(getattr(merged, which) == expected, folder, which)
    check(merged.users == [user for part in packs for user in part.users], "users")
    counts = [sum(each) for each in zip(*([ratings for _, ratings in part.items] for part in packs))]
    check([ratings for _, ratings in merged.items] == counts, "items")
    run("pack-verify", folder)
    return merged


def test_ratings_entry_by_entry(space, many):
    sizes = (["--chunk-rows", "16", "--part-bytes", "3000"], ["--chunk-rows", "8", "--part-bytes", "2000"], [])
    x, y, z = (pack_ratings(space, name, ratings, *size, *(["--reuse-ids", space("x")] if name != "x" else []))
               for name, ratings, size in zip("xyz", many, sizes))
    run("pack-merge", space("ratings"), x, y, z)
    merged = check_ratings(space("ratings"), [Pack(each) for each in (x, y, z)])
    check(merged.manifest["version"] == 2 and len(merged.shards) > 6, "parts")
    shutil.copytree(x, space("rgrown"))
    for packs, more in (([x, y], y), ([x, y, z], z)):
        run("pack-merge", space("rgrown"), space("rgrown"), more)
        check("already merged" in run("pack-merge", space("rgrown"), space("rgrown"), more), "done")
        grown = check_ratings(space("rgrown"), [Pack(each) for each in packs])
    check(grown.manifest["pack_id"] == merged.manifest["pack_id"], "another id")
    # Both work where packs do: as items of a new pack, and as its input.
    again = pack_ratings(space, "again", many[0], "--reuse-ids", space("rgrown"))
    check([item for item, _ in Pack(again).items] == [item for item, _ in merged.items], "items reused")
    run("pack-sparse", space("rgrown"), "--output", space("repacked"), "--progress", "none")
    check(Pack(space("repacked")).x == merged.x, "as input")
    text = run("pack-sparse", space("x.csv"), "--output", space("ratings"), "--progress", "none", expect=73)
    check("merged pack" in text, text)
    return x, y


def test_ratings_of_a_split(space, many):
    folders = []
    for name, ratings in zip(("s0", "s1"), many):
        flags = ["--split-by", "ratio", "--test", "0.3", "--chunk-rows", "16"]
        folders.append(pack_ratings(space, name, ratings, *flags, *(["--reuse-ids", space("s0")] if folders else [])))
    text = run("pack-merge", space("split-all"), *folders, expect=65)
    words = (f"pack-merge {space('split-all')}/{name} {folders[0]}/{name}" for name in ("train", "test"))
    check("; ".join(f"{each} …" for each in words) in text, text)
    for name in ("train", "test"):
        packs = [f"{folder}/{name}" for folder in folders]
        run("pack-merge", space(f"split-all/{name}"), *packs)
        merged = check_ratings(space(f"split-all/{name}"), [Pack(each) for each in packs])
        check(merged.manifest["spec"]["split-name"] == name, merged.manifest["spec"])
    text = run("pack-merge", space("no"), *(f"{folders[0]}/{name}" for name in ("train", "test")), expect=65)
    check("X and held_out, expected X" in text, text)


def test_ratings_in_hdf5(space, many):
    packs = [pack_ratings(space, name, many[at], "--container", "hdf5", *(["--reuse-ids", space("h0")] if at else []))
             for at, name in enumerate(("h0", "h1"))]
    run("pack-merge", space("h"), *packs)
    run("pack-verify", space("h"))
    found = {}
    for part in manifest(space("h"))["parts"]:
        data = anndata.read_h5ad(space("h") + "/" + part["file"])
        matrix = data.X.tocoo()
        for row, column, value in zip(matrix.row, matrix.col, matrix.data):
            found[data.obs_names[row], data.var_names[column]] = float(value)
    check(found == as_entries(many[0] + many[1]), "entries")


def test_exact_values_stay_exact_where_all_of_a_pack_begin_ranges(space):
    counts, packs = {}, []
    for name, users, values in (("powers", 50, [1, 2, 4]), ("stars", 30, [1, 2, 3, 4, 5])):
        ratings = [(f"{name}{user}", item, values[(user * 7 + item) % len(values)], 0) for user in range(users) for item in range(40)]
        for rating in ratings:
            counts[rating[2]] = counts.get(rating[2], 0) + 1
        more = ["--reuse-ids", packs[0]] if packs else []
        packs.append(space(name))
        run("pack-sparse", write_csv(space(f"{name}.csv"), ratings), "--values", "f32", *more, "--progress", "none", "--output", space(name))
    run("pack-merge", space("exact"), *packs)
    stats = manifest(space("exact"))["stats"]
    check({entry["value"]: entry["ratings"] for entry in stats["values"]} == counts, stats["values"], counts)
    check("value_ranges" not in stats, stats)


def test_other_settings_and_the_same_list_are_noted(space):
    root = space("photos-noted")
    make_images(root, 20, seed=8)
    for name, resize in (("noted-a", "16x12"), ("noted-b", "16x12"), ("noted-c", "16x12")):
        filters = ["--resample", "nearest"] if name == "noted-b" else ["--seed", "5"] if name == "noted-c" else []
        run("pack-images", root, "--resize", resize, *filters, "--progress", "none", "--output", space(name))
    done = subprocess.run([os.path.join(BIN, "pack-merge"), space("noted"), space("noted-a"), space("noted-b")], capture_output=True, text=True)
    check(done.returncode == 0 and "different settings: resample" in done.stdout + done.stderr, done)
    check("the same list of inputs" in done.stdout + done.stderr, done)


def test_ratings_that_do_not_fit(space, many, x, y):
    def refused(words, *packs):
        text = run("pack-merge", space("no"), *packs, expect=65)
        check(all(word in text for word in [*words, *packs]), words, text)

    reuse = ["--reuse-ids", x]
    refused(["items", "pack-sparse"], x, pack_ratings(space, "few", many[1][:20]))
    refused(["column", "expected"], x, pack_ratings(space, "other-order", many[1], "--id-order", "first"))
    table = write_csv(space("wide.csv"), many[1])
    run("pack-sparse", table, "--output", space("wide"), "--progress", "none", "--values", "f32", *reuse)
    refused(["f32", "expected u8 times 0.5"], x, space("wide"))
    twice = many[1] + many[0][:1]
    refused([f"user {many[0][0][0]} is also in", "--duplicates"], x, pack_ratings(space, "twice", twice, *reuse))
    text = run("pack-merge", space("no"), x, space("a"), expect=65)
    check("holds images, expected matrices" in text, text)


with Workspace() as space:
    a = make_pack(space, "a", 90, 1, bad=2)
    b = make_pack(space, "b", 70, 2, {"ant": "zebra", "cat": "aardvark"}, bad=1, **{"seed": 5, "chunk-samples": 5})
    c = make_pack(space, "c", 50, 3, {"bee": "yak"})
    test_holds_all_of_the_packs(space, a, b)
    test_appended_one_by_one_is_merged_at_once(space, a, b, c)
    test_a_pack_is_put_in_front(space, a, b)
    test_copies_where_there_are_no_links(space, a, b)
    test_kills(space, a, b, c)
    test_killed_copies(space, a, b)
    test_refusals(space, a, b)
    test_other_images_with_the_same_names_are_appended(space)
    test_packing_into_a_merged_pack_is_refused(space, a, b)
    test_damage_is_not_to_be_rebuilt(space, a, b)
    test_two_merges_at_once(space, a, b)
    many = halves(3, items=40)
    x, y = test_ratings_entry_by_entry(space, many)
    test_ratings_of_a_split(space, many)
    print("ratings in HDF5", outcome(lambda folder: test_ratings_in_hdf5(folder, many), space))
    test_exact_values_stay_exact_where_all_of_a_pack_begin_ranges(space)
    test_other_settings_and_the_same_list_are_noted(space)
    test_ratings_that_do_not_fit(space, many, x, y)
    sweep(space, x, [space("killed/out"), y])
    test_machine_faults_publish_nothing(space, a, b)
print("passed")

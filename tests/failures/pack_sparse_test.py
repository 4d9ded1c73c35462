"""pack-sparse end to end: what is packed is what was read, for every format and split."""
import gzip
import json
import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SHIM, Workspace, check, fingerprint, run, run_tests
from sparse_packs import SMALL, Pack, as_entries, pack, random_ratings, write_csv


def test_a_pack_holds_the_ratings(space):
    ratings = random_ratings(1)
    source = write_csv(space("ratings.csv"), ratings)
    text = pack(source, "-o", space("plain"), *SMALL)
    packed = Pack(space("plain"))
    check(packed.x == as_entries(ratings), "other ratings")
    check(len(packed.shards) > 3, "only", len(packed.shards), "parts")
    check(packed.manifest["values"] == {"type": "u8", "scale": 0.5}, packed.manifest["values"])
    counts = [count for _, count in packed.items]
    check(counts == sorted(counts, reverse=True) and dict(packed.items) == packed.item_counts(), "popularity order")
    check(packed.manifest["stats"]["steps"][-1]["ratings"] == len(ratings), packed.manifest["stats"])
    check("bytes a rating" in text and "pack-verify" in text, text)
    check("whole" in run("pack-verify", space("plain")), "pack-verify")
    check("6,000" in run("pack-info", space("plain")), run("pack-info", space("plain")))
    check('"nnz": 6000' in run("pack-info", space("plain"), "--json"), "pack-info --json")


def test_threads_and_memory_change_nothing(space):
    source = space("ratings.csv")
    golden = fingerprint(space("plain"))
    for threads in (1, 2, 4):
        pack(source, "-o", space(f"threads{threads}"), *SMALL, "--threads", threads)
        check(fingerprint(space(f"threads{threads}")) == golden, threads, "threads give other bytes")
    large = write_csv(space("large.csv"), random_ratings(2, users=110000, items=400, count=700000))
    pack(large, "-o", space("kept"))
    little = ["--memory-bytes", "32M", "--threads", 1]
    text = pack(large, "-o", space("unread"), *little, expect=73,
                env={"LD_PRELOAD": SHIM, "FAULT": "pread:1", "FAULT_PATH": space("unread")})
    check("cannot read back" in text, "nothing was spilled", text)
    pack(large, "-o", space("spilled"), *little)
    check(fingerprint(space("spilled")) == fingerprint(space("kept")), "ratings that do not fit give other bytes")


def test_compressed_inputs_and_stdin_give_the_same_pack(space):
    golden = fingerprint(space("plain"))
    with open(space("ratings.csv"), "rb") as file:
        text = file.read()
    with gzip.open(space("r.csv.gz"), "wb") as file:
        file.write(text)
    subprocess.run(["zstd", "-q", space("ratings.csv"), "-o", space("r.csv.zst")], check=True)
    for name in ("r.csv.gz", "r.csv.zst"):
        pack(space(name), "-o", space(name + ".pack"), *SMALL)
    subprocess.run([f"{BIN}/pack-sparse", "-", "-o", space("stdin.pack"), *SMALL], input=text, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name in ("r.csv.gz.pack", "r.csv.zst.pack", "stdin.pack"):
        found = fingerprint(space(name))
        for part in golden:
            check(part == "manifest.json" or found[part] == golden[part], name, part, "differs")


def test_hdf5_holds_the_ratings(space):
    import h5py
    from scipy.sparse import csr_matrix
    pack(space("ratings.csv"), "-o", space("h5"), "--container", "hdf5", "--order", "input", "--id-order", "sorted")
    with h5py.File(space("h5/part-00000.h5")) as part:
        x = part["X"]
        matrix = csr_matrix((x["data"][:], x["indices"][:], x["indptr"][:]), x.attrs["shape"]).toarray()
    ratings = random_ratings(1)
    users = list(dict.fromkeys(user for user, *_ in ratings))
    items = sorted({item for _, item, *_ in ratings})
    expected = np.zeros((len(users), len(items)))
    for user, item, value, _ in ratings:
        expected[users.index(user), items.index(item)] = value
    check((matrix == expected).all(), "other ratings in HDF5")
    check("whole" in run("pack-verify", space("h5")), "pack-verify of HDF5")
    check("codec deflate" in run("pack-info", space("h5/part-00000.h5")), "the filter of a single part")
    raw = pack(space("ratings.csv"), "-o", space("raw"), "--container", "hdf5", "--codec", "none")
    check("whole" in run("pack-verify", space("raw")), "raw")
    text = run("pack-info", space("raw/part-00000.h5"))
    check("codec none" in text and "0 chunks" not in text, text)
    with h5py.File(space("raw/part-00000.h5")) as part:
        x = part["X"]
        check(x["indices"].compression is None and not x["indices"].shuffle, "is compressed", raw)
        again = csr_matrix((x["data"][:], x["indices"][:], x["indptr"][:]), x.attrs["shape"])
        check(sorted(again.data) == sorted(value for *_, value, _ in ratings), "other ratings, stored raw")


def load_split(space, name, *arguments):
    ratings = random_ratings(1)
    pack(space("ratings.csv"), "-o", space(name), *SMALL, *arguments)
    packs = {part: Pack(space(f"{name}/{part}")) for part in sorted(os.listdir(space(name)))}
    for part in packs:
        check("whole" in run("pack-verify", space(f"{name}/{part}")), part)
        check(packs[part].items == packs["train"].items, "the packs have other columns")
    check(dict(packs["train"].items) == packs["train"].item_counts(), "items.csv counts for training")
    return ratings, packs


def check_held_out(ratings, packs):
    """Ratings are for training or held out, none twice; those of items without training are left out."""
    items = {item for item, _ in packs["train"].items}
    all_ratings = {pair: value for pair, value in as_entries(ratings).items() if pair[1] in items}
    held_out = {}
    for name in ("validation", "test"):
        if name not in packs:
            continue
        part = packs[name]
        check(part.held_out and not set(part.held_out) & set(part.x), name, "held out and given")
        given = packs["train"].x if name == "validation" else {**packs["train"].x, **held_out}
        check(all(given[pair] == value for pair, value in part.x.items()), name, "X has others than the packs before")
        check(not set(held_out) & set(part.held_out), "held out twice")
        held_out.update(part.held_out)
    check({**packs["train"].x, **held_out} == all_ratings, "ratings were lost")
    return held_out


def test_split_users(space):
    ratings, packs = load_split(space, "users", "--split-by", "users", "--validation", "40", "--test", "0.1")
    users = {name: {user for user, _ in part.users} for name, part in packs.items()}
    check(len(users["validation"]) <= 40 and len(users["test"]) <= 30, {name: len(each) for name, each in users.items()})
    check(not users["train"] & users["validation"] and not users["test"] & (users["train"] | users["validation"]), "shared users")
    items = {item for item, _ in packs["train"].items}
    source = as_entries(ratings)
    for name in ("validation", "test"):
        part = packs[name]
        check(not set(part.x) & set(part.held_out), "given and asked for")
        for user in users[name]:
            given = [pair for pair in part.x if pair[0] == user]
            asked = [pair for pair in part.held_out if pair[0] == user]
            seen = [pair for pair in source if pair[0] == user and pair[1] in items]
            check(sorted(given + asked) == sorted(seen), user, "lost ratings")
            check(len(asked) == int((1 - 0.8) * len(seen) + 1e-9), user, len(asked), "of", len(seen), "asked for")


def test_split_ratio(space):
    ratings, packs = load_split(space, "ratio", "--split-by", "ratio", "--test", "0.2", "--validation", "10%")
    held_out = check_held_out(ratings, packs)
    check(0.2 < len(held_out) / len(ratings) < 0.31, len(held_out))


def test_x_of_test_lacked_the_validation_ratings_of_some_splits(space):
    for name, split in (("ratio", ["ratio", "--test", "0.2"]), ("time", ["time", "--test", "0.2"]), ("one", ["leave-one-out"])):
        for how in ([], ["--hide-validation"]):
            _, packs = load_split(space, f"x-{name}{len(how)}", "--validation", "1" if name == "one" else "0.1", "--split-by", *split, *how)
            test, validation = packs["test"], packs["validation"]
            users = {user for user, _ in test.users}
            both = {pair for pair in validation.held_out if pair[0] in users}
            check(both and (both <= set(test.x)) == (not how) and (not both & set(test.x)) == bool(how), name, how)
            spec = {"hide-validation": packs["train"].manifest["spec"].get("hide-validation")}
            check(spec == {"hide-validation": "true" if how else None if name == "one" else "false"}, name, spec)


def test_split_leave_one_out(space):
    ratings, packs = load_split(space, "one", "--split-by", "leave-one-out")
    check_held_out(ratings, packs)
    latest = {}
    for user, item, _, time in ratings:
        if time >= latest.get(str(user), (-1, 0))[0]:
            latest[str(user)] = (time, str(item))
    items = {item for item, _ in packs["train"].items}
    for user, item in packs["test"].held_out:
        check(latest[user][1] == item, user, "another one is the last")
    asked = {user for user, _ in packs["test"].held_out}
    trained = {user for user, _ in packs["train"].x}
    check(asked == {user for user, (_, item) in latest.items() if item in items and user in trained}, "users without a last one")


def test_leave_one_out_is_the_same_pack_with_test_1(space):
    source = write_csv(space("same.csv"), [(user, item, 5, (user + item) % 4) for user in range(6) for item in range(4)])
    pack(source, "--split-by", "leave-one-out", "-o", space("same"))
    said = pack(source, "--split-by", "leave-one-out", "--test", "1", "-o", space("same"))
    check("already packed" in said, said)


def test_leave_one_out_ignored_test_0(space):
    text = pack(space("same.csv"), "--split-by", "leave-one-out", "--validation", "1", "--test", "0", "-o", space("none"), expect=2)
    check("--test: expected 1" in text and "always holds out one rating" in text and "found 0" in text, text)
    text = run("pack-sparse", "--help")
    check(text.count("leave-one-out: 1 (0)") == 1 and text.count("leave-one-out: always 1 (0)") == 1, text)
    pack(space("same.csv"), "--split-by", "leave-one-out", "-o", space("same"), "--save-config", space("same.toml"))
    check("already packed" in pack(space("same.csv"), "-o", space("same"), "--config", space("same.toml")), "its recipe")


def test_the_users_of_a_preset_were_ratings_of_another_split(space):
    few = ["--preset", "vae-cf", "--above", "0", "--min-user", "0", "-o", space("preset")]
    pack(space("same.csv"), *few, "--split-by", "leave-one-out")
    check(sorted(os.listdir(space("preset"))) == ["test", "train"], os.listdir(space("preset")))
    text = pack(space("same.csv"), *few, "--split-by", "ratio", expect=2)
    check("expected --validation or --test" in text, text)


def test_a_split_that_lost_a_pack_was_whole(space):
    for split in (["leave-one-out", "--validation", "1"], ["ratio", "--validation", "0.3", "--test", "0.3"],
                  ["time", "--validation", "0.3", "--before", "3"]):
        out = space("lost-" + split[0])
        pack(space("same.csv"), "--split-by", *split, "-o", out)
        run("pack-verify", out)
        for name in ("validation", "test", "train"):
            os.rename(f"{out}/{name}", space("aside"))
            text = run("pack-verify", "--quick", out, expect=65)
            check(f"{out}/{name}: is missing: {out}/" in text and "is of the split train, validation, test" in text, text)
            os.rename(space("aside"), f"{out}/{name}")
    pack(space("same.csv"), "--split-by", "users-by-id", "--test", "0.4", "--fold-in", "0.5", "-o", space("by-id"))
    check("missing" not in run("pack-verify", space("by-id")), "users decide which packs there are")


def test_an_unfinished_pack_hid_the_damage_of_the_others(space):
    out = space("hidden")
    pack(space("same.csv"), "--split-by", "leave-one-out", "--validation", "1", "-o", out)
    os.remove(f"{out}/test/manifest.json")
    part = next(name for name in os.listdir(f"{out}/validation") if name.startswith("part-") and not name.endswith(".json"))
    os.truncate(f"{out}/validation/{part}", 100)
    text = run("pack-verify", out, expect=65)
    check(f"{out}/test: no finished pack" in text and f"{out}/validation/{part}" in text and f"{out}/train: 1 part" in text, text)


def test_split_time(space):
    ratings, packs = load_split(space, "time", "--split-by", "time", "--before", "400")
    check_held_out(ratings, packs)
    times = {(str(user), str(item)): time for user, item, _, time in ratings}
    check(max(times[pair] for pair in packs["train"].x) < 400 <= min(times[pair] for pair in packs["test"].held_out), "the cut")


def test_a_test_that_lost_most_of_its_ratings_was_not_odd(space):
    ratings = [(user, item, 5, user) for user in range(20) for item in range(5)]  # users 16 to 19 are new after the cut
    ratings.append((0, 5, 5, 19))  # of a cold item
    ratings.append((1, 0, 5, 30))
    source = write_csv(space("new.csv"), [rating for rating in ratings if rating[:3] != (1, 0, 5) or rating[3] == 30])
    said = pack(source, "--split-by", "time", "--before", "16", "-o", space("new"))
    words = "lacks 95 % of its ratings, 21 of 22"
    check("left out: test: ratings of users without both given and held-out ratings: 20\n" in said and f"warning: test {words}: 1 of items that training lacks and 20 of users without both given "
          "and held-out ratings; 5 users are left out\n" in said, said)  # new items are not rare ones: no advice on these
    check(words in run("pack-info", space("new/test")), run("pack-info", space("new/test")))
    check("warning" not in run("pack-info", space("new/train")), "train")
    check([json.loads(run("pack-info", "--json", space(f"new/{name}")))["lost"] for name in ("train", "test")] == ["", f"test {words}"], "json")


def test_more_was_asked_for_where_more_did_not_help(space):
    rows = {"cold": [(user, user, 5, user) for user in range(9)],  # each user and item once
            "equal": [(user, item, 5, 7) for user in range(4) for item in range(3)],
            "few": [(user, item, 5, user) for user in range(8) for item in range(4)]}
    for name in rows:
        write_csv(space(f"{name}.csv"), rows[name])
    open(space("empty.csv"), "w").write("userId,movieId,rating,timestamp\n")
    for name, flags, words in (
            ("cold", ["time", "--test", "0.2"], "of its 1 user none has both given and held-out ratings: training lacks the items of 1 rating"),
            ("cold", ["leave-one-out"], "no user has more than 1 rating"),
            ("equal", ["time", "--test", "0.25"], "`--test` 0.25 of 12 ratings is 3, and more have equal times, which stay together; the "
             "latest time, 7, has 12 ratings".replace("`", "")),
            ("equal", ["time", "--before", "2020-01-01"], "the latest time, 7, has 12 ratings; such times have no unit"),
            ("equal", ["time", "--test", "0.01"], "--test 0.01 of 12 ratings is none"),
            ("equal", ["ratio", "--test", "0.2"], "--test 0.2 of each user's ratings is less than 1; the largest user has 3"),
            ("few", ["users", "--test", "2"], "none of its 2 users has 5 items that training has"),
            ("few", ["users", "--test", "0.01"], "--test 0.01 of 8 users is none")):
        said = pack(space(f"{name}.csv"), "-o", space("helpless"), "--split-by", *flags, "--dry-run", expect=2)
        check("test gets no rows" in said and words in said, name, flags, said)
    said = pack("--train-file", space("few.csv"), "--test-file", space("empty.csv"), "-o", space("helpless"), expect=2)
    check("test gets no rows: its files hold no rating" in said, said)


def test_vae_cf_on_a_file_worked_by_hand(space):
    # a to e have five items above 3.5; f has four, g has five of which one is only 3.5.
    ratings = [(user, item, 4.0) for user in "abcde" for item in range(1, 6)]
    ratings += [("f", item, 5.0) for item in range(1, 5)] + [("g", item, 5.0) for item in range(1, 5)] + [("g", 5, 3.5)]
    ratings += [("a", 9, 3.5)]
    source = write_csv(space("hand.csv"), ratings, "user,item,rating")
    text = pack(source, "-o", space("vae"), "--preset", "vae-cf", "--validation", "1", "--test", "1")
    packs = {name: Pack(space(f"vae/{name}")) for name in ("train", "validation", "test")}
    steps = {step["name"]: (step["users"], step["items"], step["ratings"]) for step in packs["train"].manifest["stats"]["steps"]}
    check(steps["input"] == (7, 6, 35) and steps["above"] == (7, 5, 33) and steps["min-user"] == (5, 5, 25), steps, text)
    check(len(packs["train"].users) == 3 and len(packs["train"].x) == 15, packs["train"].users)
    check(all(len(packs[name].x) == 4 and len(packs[name].held_out) == 1 for name in ("validation", "test")), "fold-in")
    check(packs["train"].manifest["values"]["type"] == "none", "binarised values are stored")
    check(packs["train"].manifest["spec"]["above"] == "3.5", packs["train"].manifest["spec"])
    check("users" in run("pack-sparse", source, "-o", space("vae2"), "--preset", "vae-cf", expect=2), "20,000 of 5 users")


def test_bad_lines(space):
    lines = ["userId,movieId,rating", "1,10,4", "2,20,x", "3,,4", "4,40,5", "5,50"]
    with open(space("bad.csv"), "w") as file:
        file.write("\n".join(lines))
    text = pack(space("bad.csv"), "-o", space("bad"), expect=1)
    check("bad.csv:3:" in text and not os.path.exists(space("bad/manifest.json")), text)
    text = pack(space("bad.csv"), "-o", space("bad"), "--on-error", "skip", expect=1)
    check("--max-errors" in text, text)
    text = pack(space("bad.csv"), "-o", space("bad"), "--on-error", "skip", "--max-errors", "3")
    stats = Pack(space("bad")).manifest["stats"]
    check(stats["bad_lines"] == 3 and sum(stats["reasons"].values()) == 3, stats)
    inputs = [(each["file"], each["lines"], each["header_lines"], each["ratings"]) for each in stats["inputs"]]
    check(inputs == [("bad.csv", 6, 1, 2)], stats)
    check("3 bad lines" in text, text)
    # The printed command ended with 1.
    check("--on-error skip --max-errors 3" in run("pack-info", space("bad")), "made by")
    # Of later reasons no line was shown.
    with open(space("many.csv"), "w") as file:
        file.write("\n".join([lines[0], "1,10,4", *(f"{user},2,x" for user in range(20)), "3,,4"]))
    text = pack(space("many.csv"), "-o", space("many"), "--on-error", "skip", "--max-errors", "30")
    check("many.csv:7:" in text and "many.csv:8:" not in text and "many.csv:23:" in text, text)


def test_duplicates(space):
    source = write_csv(space("twice.csv"), [("ann", "tea", 4, 30), ("bob", "tea", 2, 1), ("ann", "tea", 5, 20)])
    text = pack(source, "-o", space("twice"), expect=65)
    check("user ann" in text and "item tea" in text and "--duplicates" in text, text)
    for rule, value in (("sum", 9), ("last", 4), ("first", 5), ("max", 5)):
        pack(source, "-o", space(rule), "--duplicates", rule)
        check(Pack(space(rule)).x == {("ann", "tea"): value, ("bob", "tea"): 2}, rule, Pack(space(rule)).x)


def test_an_input_without_ratings_was_not_named(space):
    for name, text, words in (("nothing.csv", "", "nothing.csv: expected ratings, found none: it is empty"),
                              ("header.csv", "user,item,rating\n", "header.csv: expected ratings, found none: none of its 1 line is one")):
        open(space(name), "w").write(text)
        said = pack(space(name), "-o", space("none"), expect=65)
        check(words in said, said)
    check("there are no ratings in the input" in pack(space("nothing.csv"), space("header.csv"), "-o", space("none"), expect=65), "two")


def test_other_formats(space):
    from scipy import io, sparse
    matrix = sparse.random(40, 30, 0.2, "csr", random_state=3, data_rvs=lambda n: np.arange(1, n + 1))
    expected = {(str(row), str(column)): value for row, column, value in zip(*sparse.find(matrix))}
    sparse.save_npz(space("m.npz"), matrix)
    io.mmwrite(space("m.mtx"), matrix)
    with open(space("m.svm"), "w") as file:
        for row in range(matrix.shape[0]):
            begin, end = matrix.indptr[row:row + 2]
            entries = sorted(zip(matrix.indices[begin:end], matrix.data[begin:end]))
            file.write(f"{row % 2} " + " ".join(f"{column}:{value}" for column, value in entries) + "\n")
    pack(space("m.npz"), "-o", space("npz"))
    check(Pack(space("npz")).x == expected, "npz")
    pack(space("m.mtx"), "-o", space("mtx"))
    check(Pack(space("mtx")).x == {(str(int(row) + 1), str(int(column) + 1)): value for (row, column), value in expected.items()}, "mtx")
    pack(space("m.svm"), "-o", space("svm"))
    packed = Pack(space("svm"))
    check(packed.x == expected, "svmlight")
    labels = np.concatenate([shard.labels.reshape(-1) for shard in packed.shards])
    check(packed.manifest["label_columns"] == ["label"], packed.manifest["label_columns"])
    check([int(label) for label in labels] == [int(user) % 2 for user, _ in packed.users], "labels")
    pack(space("m.npz"), "-o", space("turned"), "--transpose")
    check(Pack(space("turned")).x == {pair[::-1]: value for pair, value in expected.items()}, "--transpose")


def pack_stdin(text, *arguments):
    run = subprocess.run([f"{BIN}/pack-sparse", "-", "--progress", "none", *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return run.returncode, run.stdout.decode()


def test_matrices_from_stdin(space):
    for name, format in (("m.mtx", "matrix-market"), ("m.svm", "svmlight")):
        with open(space(name), "rb") as file:
            text = file.read()
        for way, (source, how) in {"told": (text, []), "packed": (gzip.compress(text), []), "named": (text, ["--format", format])}.items():
            code, out = pack_stdin(source, "-o", space(f"{name}.{way}"), *how)
            check(code == 0, name, way, out)
            check(Pack(space(f"{name}.{way}")).x == Pack(space(name[2:])).x, name, way, "other ratings")
    with open(space("m.npz"), "rb") as file:
        code, out = pack_stdin(file.read(), "-o", space("m.npz.stdin"))
    check(code == 0 and Pack(space("m.npz.stdin")).x == Pack(space("npz")).x, "other ratings", out)
    code, out = pack_stdin(b"", "-o", space("none"), "--format", "hdf5")
    check(code == 65 and "stdin" in out and "/proc" not in out, out)
    for flag, value in (("--user", "1"), ("--delimiter", ","), ("--header", "yes"), ("--quote", "double")):
        text = pack(space("m.mtx"), "-o", space("none"), flag, value, expect=2)
        check(flag in text and "matrix-market" in text, text)


def test_binary_files_are_read_compressed(space):
    os.link(space("h5/part-00000.h5"), space("m.h5ad"))
    for name in ("m.npz", "m.h5ad"):
        pack(space(name), "-o", space(f"{name}.pack"))
        for end, command in (("gz", "gzip"), ("zst", "zstd")):
            subprocess.run([command, "-qkf", space(name)], check=True)
            pack(space(f"{name}.{end}"), "-o", space(f"{name}.{end}.pack"))
            check(Pack(space(f"{name}.{end}.pack")).x == Pack(space(f"{name}.pack")).x, name, end, "other ratings")
    with open(space("m.npz"), "rb") as plain, gzip.open(space("cut.npz.gz"), "wb") as file:
        file.write(plain.read()[:-30])
    text = pack(space("cut.npz.gz"), "-o", space("cut"), expect=65)
    check("cut.npz.gz: " in text and "/proc" not in text, text)


def test_rows_without_entries_are_told(space):
    with open(space("gaps.mtx"), "w") as file:
        file.write("%%MatrixMarket matrix coordinate real general\n6 8 3\n1 1 2\n2 2 3\n4 3 4\n")
    words = "shape 6 x 8: 3 rows and 5 columns without entries are left out"
    check(words in pack(space("gaps.mtx"), "-o", space("gaps")), words)
    check(words in pack(space("gaps.mtx"), "-o", space("turned_gaps"), "--transpose"), words, "transposed")


def test_ids_are_utf8(space):
    with open(space("latin.csv"), "wb") as file:
        file.write("user,item,rating\nJosé,tea,1\nAnn,café,2\nBob,tea,3\n".encode("latin-1") + "Zoë,tea,4\n".encode())
    text = pack(space("latin.csv"), "-o", space("latin"), expect=1)
    check("latin.csv:2:1: user: expected UTF-8" in text, text)
    pack(space("latin.csv"), "-o", space("latin"), "--on-error", "skip", "--max-errors", "2")
    packed = Pack(space("latin"))
    check(packed.x == {("Bob", "tea"): 3, ("Zoë", "tea"): 4}, packed.x)
    check(packed.manifest["stats"]["reasons"] == {
        f"{field}: expected UTF-8; `encoding` latin-1 reads ISO 8859-1": 1 for field in ("item", "user")}, packed.manifest["stats"])


def test_reused_ids_give_the_same_columns(space):
    ratings = random_ratings(2, items=120)
    source = write_csv(space("new.csv"), ratings)
    pack(source, "-o", space("reused"), "--reuse-ids", space("plain"))
    packed, old = Pack(space("reused")), Pack(space("plain"))
    known = {item for item, _ in old.items}
    check([item for item, _ in packed.items] == [item for item, _ in old.items], "other columns")
    check(packed.x == {pair: value for pair, value in as_entries(ratings).items() if pair[1] in known}, "other ratings")


with Workspace() as workspace:
    run_tests(globals(), workspace)

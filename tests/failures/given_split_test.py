#!/usr/bin/python3
"""Splits that are given: as files of ratings, and as lists of held-out users. Packs equal what pandas makes of the files.

usage: given_split_test.py BIN_FOLDER SHIM
"""
import gzip
import itertools
import os
import sys

import numpy as np
import pandas as pd
import scipy.sparse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import Workspace, check, fingerprint, run, run_tests
from sparse_packs import SMALL, Pack, as_entries, pack, random_ratings, write_csv

PARTS = ("train", "validation", "test")


# A model of the rules, in pandas.

def random_table(random, count, ids, doubles):
    """Ratings of a part each, in the order of the files; an item and users that training lacks are among them."""
    part = np.sort(random.choice(3, count, p=(0.7, 0.1, 0.2)))
    user, item = random.integers(0, 60, count), (random.random(count) ** 2 * 40).astype(int)
    user[(user > 55) & (part == 0)] = 0
    item[(item > 36) & (part == 0)] = 0
    if ids == "text":
        user, item = [f"u{each}" for each in user], [f'i "{each}", ü' for each in item]
    table = pd.DataFrame({"part": part, "user": user, "item": item, "value": random.integers(0, 11, count) / 2,
                          "time": random.integers(0, 300, count)})
    return table if doubles else table.drop_duplicates(["user", "item"]).reset_index(drop=True)


def write_parts(space, name, table, timed, files_each):
    """Writes the files of a split, `files_each` of each part, and gives the flags that name them."""
    columns = ["user", "item", "value"] + ["time"] * timed
    flags = []
    for number, part in enumerate(PARTS):
        for index, rows in enumerate(np.array_split(np.flatnonzero(table.part == number), files_each)):
            path = space(f"{name}-{part}-{index}.csv" + ".gz" * (index % 2))
            table.loc[rows, columns].to_csv(path, index=False)
            flags += [f"--{part}-file", path]
    return flags


def merge_doubles(table, rule, timed):
    if rule == "max":
        order = table.sort_values("value", ascending=False, kind="stable")
        return order.drop_duplicates(["user", "item"]).sort_index()
    order = table.sort_values("time", kind="stable") if timed else table
    kept = order.drop_duplicates(["user", "item"], keep="first" if rule == "first" else "last").sort_index()
    if rule == "sum":
        kept = kept.assign(value=table.groupby(["user", "item"])["value"].transform("sum"))
    return kept


def keep_frequent(table, min_user, min_item):
    before = None
    while before != len(table):
        before = len(table)
        table = table[table.groupby("user")["user"].transform("size") >= min_user]
        table = table[table.groupby("item")["item"].transform("size") >= min_item]
    return table


def entries(table):
    return {(str(r.user), str(r.item)): r.value for r in table.itertuples()}


def expected_packs(table, columns=None):
    """{part: (X, held_out, users left out, ratings of cold items)} of what the rules left."""
    train = table[table.part == 0]
    columns = set(train["item"]) if columns is None else columns & set(table["item"])
    warm = table[table["item"].isin(columns)]
    packs = {"train": (entries(warm[warm.part == 0]), {}, 0, 0)}
    for number, part in ((1, "validation"), (2, "test")):
        x, asked = warm[warm.part < number], warm[warm.part == number]
        of_part = table[table.part == number]
        users = set(x["user"]) & set(asked["user"])
        packs[part] = (entries(x[x["user"].isin(users)]), entries(asked[asked["user"].isin(users)]),
                       len(set(of_part["user"]) - users), len(of_part) - len(asked))
    return packs


def check_packs(folder, expected, what):
    packs = {part: Pack(os.path.join(folder, part)) for part in PARTS}
    left_out = dict(packs["train"].manifest["stats"]["left_out"].items())
    for part, (x, asked, users, cold) in expected.items():
        check(packs[part].x == x, what, part, "X differs")
        check(packs[part].held_out == asked, what, part, "held_out differs")
        check(packs[part].items == packs["train"].items, what, part, "other columns")
        check(left_out.get(f"{part}: users without both given and held-out ratings", 0) == users, what, left_out, users)
        check(left_out.get(f"{part}: ratings of items without ratings for training", 0) == cold, what, left_out, cold)
    check({item: n for item, n in packs["train"].items if n} == packs["train"].item_counts(), what, "items.csv counts others")
    return packs


def test_a_given_split_could_not_be_packed(space):
    random = np.random.default_rng(5)
    cases = itertools.product(("numbers", "text"), ("error", "first", "last", "max", "sum"), (True, False), ((0, 0), (9, 6)))
    for case, (ids, rule, timed, (min_user, min_item)) in enumerate(cases):
        table = random_table(random, 1500, ids, rule != "error")
        flags = write_parts(space, f"case{case}", table, timed, 1 + case % 3)
        left = table[table.value != 0]
        left = left if rule == "error" else merge_doubles(left, rule, timed)
        left = keep_frequent(left[left.value > 1], min_user, min_item)
        what = (ids, rule, timed, min_user, min_item)
        output = space(f"case{case}")
        pack(*flags, "-o", output, "--duplicates", rule, "--above", "1", "--min-user", min_user, "--min-item", min_item,
             *SMALL, *(["--memory-bytes", "40M"] if case % 4 == 0 else []))
        packs = check_packs(output, expected_packs(left), what)
        check("whole" in run("pack-verify", output), what)
        spec = packs["test"].manifest["spec"]
        check([spec["split-by"]] + [spec[f"{part}-file"] for part in PARTS] == ["given"] + [str(1 + case % 3)] * 3, spec)


def test_given_files_ignored_the_columns_of_another_pack(space):
    table = random_table(np.random.default_rng(6), 1500, "text", False)
    table = table[table.value != 0].reset_index(drop=True)
    flags = write_parts(space, "reuse", table, True, 1)
    pack(space("reuse-test-0.csv"), "-o", space("columns"), *SMALL)
    pack(*flags, "-o", space("reused"), "--reuse-ids", space("columns"), *SMALL)
    items = {item for item, _ in Pack(space("columns")).items}
    packs = check_packs(space("reused"), expected_packs(table[table["item"].isin(items)], items), "reuse-ids")
    check([item for item, _ in packs["train"].items] == [item for item, _ in Pack(space("columns")).items], "other columns")


def test_a_rating_of_two_files_was_given_and_asked_for(space):
    train = write_csv(space("two-train.csv"), [(1, 1, 5), (1, 2, 4), (1, 3, 4), (2, 1, 3), (4, 3, 3)], "user,item,rating")
    test = write_csv(space("two-test.csv"), [(1, 3, 2), (2, 3, 2)], "user,item,rating")
    files = ["--train-file", train, "--test-file", test]
    text = pack(*files, "-o", space("two"), expect=65)
    check("user 1 has several ratings of item 3" in text and "--duplicates" in text, text)
    pack(*files, "-o", space("two-first"), "--duplicates", "first")
    check(Pack(space("two-first/test")).held_out == {("2", "3"): 2.0}, "the training file's rating is the first")
    pack(*files, "-o", space("two-last"), "--duplicates", "last")
    check(Pack(space("two-last/test")).held_out == {("1", "3"): 2.0, ("2", "3"): 2.0}, "the test file's rating is the last")
    check(("1", "3") not in Pack(space("two-last/test")).x, "given and asked for")


def test_other_formats_of_given_files(space):
    open(space("ui-train.txt"), "w").write("0 10 11 12\n1 10 11\n2\n3 12 10\n")
    open(space("ui-test.txt"), "w").write("0 13\n1 12\n2 10\n3 11\n")
    files = ["--train-file", space("ui-train.txt"), "--test-file", space("ui-test.txt"), "-o", space("ui")]
    check("--format" in pack(*files, expect=65), "two numbers a line may be a table")
    pack(*files, "--format", "user-items")
    check(Pack(space("ui/test")).held_out == {("1", "12"): 1.0, ("3", "11"): 1.0}, "user-items")
    random = np.random.default_rng(7)
    whole = scipy.sparse.random(80, 50, 0.3, "csr", random_state=7, data_rvs=lambda n: random.integers(1, 6, n).astype("f4")).tocoo()
    is_test = random.random(whole.nnz) < 0.2
    table = pd.DataFrame({"part": is_test * 2, "user": whole.row, "item": whole.col, "value": whole.data})
    flags = []
    for part, mask in (("train", ~is_test), ("test", is_test)):
        rows = [array[mask] for array in (whole.data, whole.row, whole.col)]
        scipy.sparse.save_npz(space(f"{part}.npz"), scipy.sparse.csr_matrix((rows[0], (rows[1], rows[2])), whole.shape))
        flags += [f"--{part}-file", space(f"{part}.npz")]
    pack(*flags, "-o", space("npz"), *SMALL)
    found, expected = Pack(space("npz/test")), expected_packs(table)["test"]
    check((found.x, found.held_out) == expected[:2], "npz")
    open(space("a.svm"), "w").write("1 1:2 2:3\n")
    text = pack("--train-file", space("a.svm"), "--test-file", space("a.svm"), "--format", "svmlight", "-o", space("svm"), expect=2)
    check("--train-file: has no meaning for svmlight" in text, text)


def test_a_changed_division_of_the_same_files_was_taken_for_packed(space):
    ratings = random_ratings(3, count=3000)
    paths = [write_csv(space(f"third{index}.csv"), ratings[index::3]) for index in range(3)]
    files = ["--train-file", paths[0], "--validation-file", paths[1], "--test-file", paths[2]]
    pack(*files, "-o", space("again"), *SMALL)
    before = fingerprint(space("again/test"))
    text = pack(*files, "-o", space("again"), *SMALL)
    check(text.count("already packed") == 3 and fingerprint(space("again/test")) == before, text)
    for dry in ([], ["--dry-run"]):
        other = ["--train-file", paths[0], "--train-file", paths[1], "--test-file", paths[2]]
        text = pack(*other, "-o", space("again"), *SMALL, *dry, expect=73)
        check("another" in text and "validation" in text, text)
        swapped = ["--train-file", paths[0], "--validation-file", paths[2], "--test-file", paths[1]]
        check("input changed" in pack(*swapped, "-o", space("again"), *SMALL, *dry, expect=73), "swapped files")
    os.remove(space("again/test/manifest.json"))
    text = pack(*files, "-o", space("again"), *SMALL)
    check(text.count("already packed") == 2 and fingerprint(space("again/test")) == before, text)
    # Of matrices ids and entries are hashed: where a file ends counts, too.
    entries_in_order = [(row + 1, column + 1, 1 + (row + column) % 5) for column in range(9) for row in range(20)]
    entries_in_order.sort(key=lambda entry: entry[0] * 7919 % 31 + entry[1] * 104729 % 37)
    for name, end in (("early", 100), ("late", 140)):
        for part, own in (("train", entries_in_order[:end]), ("test", entries_in_order[end:])):
            with open(space(f"{name}-{part}.mtx"), "w") as file:
                file.write(f"%%MatrixMarket matrix coordinate real general\n20 9 {len(own)}\n")
                file.writelines(f"{row} {column} {value}\n" for row, column, value in own)
    cut = {name: ["--train-file", space(f"{name}-train.mtx"), "--test-file", space(f"{name}-test.mtx")] for name in ("early", "late")}
    pack(*cut["early"], "-o", space("ends"))
    check("input changed" in pack(*cut["late"], "-o", space("ends"), expect=73), "another end of the training file")


def test_lists_of_users_were_not_held_out(space):
    ratings = random_ratings(4)
    source = write_csv(space("users.csv"), ratings)
    random = np.random.default_rng(8)
    users = random.permutation(sorted({str(user) for user, *_ in ratings}))
    listed = {"validation": set(users[:30]), "test": set(users[30:70])}
    flags = []
    for part, own in listed.items():
        path = space(f"{part}-users.txt")
        with open(path, "w") as file:
            file.write("\ufeff" * (part == "test") + "\r\n".join(random.permutation(sorted(own))) + "\n" * (part == "test"))
        flags += [f"--{part}-users", path]
    pack(source, "--split-by", "users", *flags, "-o", space("listed"), *SMALL)
    packs = {part: Pack(space(f"listed/{part}")) for part in PARTS}
    check_listed(ratings, packs, listed)
    with gzip.open(space("test-users.gz"), "wt") as file:
        file.write(open(space("test-users.txt"), encoding="utf-8-sig").read())
    text = pack(source, "--split-by", "users", *flags[:2], "--test-users", space("test-users.gz"), "-o", space("listed"), *SMALL)
    check(text.count("already packed") == 3, "the order of a list and its compression do not count", text)
    open(space("fewer.txt"), "w").write("\n".join(sorted(listed["test"])[1:]))
    for dry in ([], ["--dry-run"]):
        text = pack(source, "--split-by", "users", *flags[:2], "--test-users", space("fewer.txt"), "-o", space("listed"), *SMALL, *dry,
                    expect=73)
        check("test-users" in text, text)
    # What is drawn beside a list is drawn from the others.
    pack(source, "--split-by", "users", *flags[2:], "--validation", "0.1", "-o", space("drawn"), *SMALL)
    packs = {part: Pack(space(f"drawn/{part}")) for part in PARTS}
    drawn = {user for user, _ in packs["validation"].users}
    check(20 < len(drawn) <= 30 and not drawn & listed["test"], len(drawn))
    pack(source, "--preset", "vae-cf", *flags, "-o", space("vae"), *SMALL)
    check({user for user, _ in Pack(space("vae/test")).users} <= listed["test"], "the preset holds out the list")


def check_listed(ratings, packs, listed):
    source = as_entries(ratings)
    held_out = listed["validation"] | listed["test"]
    train = {pair: value for pair, value in source.items() if pair[0] not in held_out}
    check(packs["train"].x == train, "training has other users")
    items = {item for _, item in train}
    for part, own in listed.items():
        both = {**packs[part].x, **packs[part].held_out}
        users = {user for user, _ in packs[part].users}
        check(both == {pair: value for pair, value in source.items() if pair[0] in users and pair[1] in items}, part)
        seen = {user: sum(pair[0] == user and pair[1] in items for pair in source) for user in own}
        check(users == {user for user, count in seen.items() if count >= 5}, part, "other users")
        asked = {user: sum(pair[0] == user for pair in packs[part].held_out) for user in users}
        check(all(asked[user] == int(0.2 * seen[user] + 1e-9) for user in users), part, "another share is asked for")
        left_out = packs[part].manifest["stats"]["left_out"].get(f"{part}: users without both given and held-out ratings", 0)
        check(left_out == len(own - users), part, left_out)


def test_listed_users_without_ratings_went_unsaid(space):
    source = write_csv(space("few.csv"), [(user, item, 5) for user in range(20) for item in range(6 if user else 2)], "user,item,rating")
    open(space("zero.txt"), "w").write("0\n7\n")
    pack(source, "--split-by", "users", "--test-users", space("zero.txt"), "--min-user", "3", "-o", space("zero"))
    test = Pack(space("zero/test"))
    check([user for user, _ in test.users] == ["7"], test.users)
    check(test.manifest["stats"]["left_out"] == {"test: users without both given and held-out ratings": 1},
          test.manifest["stats"]["left_out"])
    for name, lines, words in (("unknown", "3\n77\n0078\n4\n", "--test-users: 2 of 4 users are not in the input, the first is 0078"),
                               ("twice", "3\n4\n3\n", "twice.txt: user 3 is repeated"), ("none", "\n\n", "found none")):
        open(space(f"{name}.txt"), "w").write(lines)
        for dry in ([], ["--dry-run"]):
            text = pack(source, "--split-by", "users", "--test-users", space(f"{name}.txt"), "-o", space("bad"), *dry, expect=65)
            check(words in text, text)
    text = pack(source, "--split-by", "users", "--test-users", space("zero.txt"), "--validation-users", space("zero.txt"), "-o",
                space("bad"), expect=65)
    check("--validation-users, --test-users: 2 users in both, the first is 0" in text, text)
    open(space("all.txt"), "w").write("\n".join(map(str, range(20))))
    text = pack(source, "--split-by", "users", "--test-users", space("all.txt"), "-o", space("bad"), expect=2)
    check("the input has only 20 users, and training needs some" in text, text)


def test_bad_combinations_were_not_said(space):
    source = write_csv(space("one.csv"), random_ratings(9, count=400))
    files = ["--train-file", source, "--test-file", source]
    for arguments, words in (([source, *files], "INPUT"), (["--train-file", source], "--test-file"),
                             (["--test-file", source], "--train-file: expected"), ([*files, "--split-by", "ratio"], "--split-by ratio"),
                             ([*files, "--test", "0.1"], "test"), ([*files, "--before", "2"], "--before"),
                             ([*files, "--fold-in", "0.5"], "--fold-in"), ([*files, "--split-order", "input"], "--split-order"),
                             ([*files, "--test-users", source], "--test-users: only for --split-by users"),
                             ([source, "--split-by", "given"], "--train-file"),
                             ([source, "--test-users", source], "--test-users: only for --split-by users"),
                             ([source, "--split-by", "users", "--test", "3", "--test-users", source], "--test, --test-users: expected one"),
                             ([source, "--split-by", "users"], "expected --validation or --test")):
        text = pack(*arguments, "-o", space("wrong"), expect=2)
        check(words in text, arguments, text)
        check(not os.path.exists(space("wrong")), arguments, "wrote something")
    # A recipe holds the files.
    halves = [write_csv(space(f"half{first}.csv"), random_ratings(9)[first::2]) for first in (0, 1)]
    given = ["--train-file", halves[0], "--test-file", halves[1]]
    pack(*given, "-o", space("recipe"), "--save-config", space("given.toml"), *SMALL)
    check("already packed" in pack("--config", space("given.toml")), "the recipe means another pack")
    pack(source, "-o", space("plain"), "--save-config", space("plain.toml"))
    check("already packed" in pack(source, "--config", space("plain.toml")), "a recipe without files")


with Workspace() as workspace:
    run_tests(globals(), workspace)

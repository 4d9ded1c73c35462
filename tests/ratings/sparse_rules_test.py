#!/usr/bin/python3
"""Rules, filters, splits and columns equal those that pandas gives, on random ratings.

usage: sparse_rules_test.py RATING_PACKS_PROBE
What is drawn by chance is checked for its counts and for not overlapping, not for who was drawn.
"""
import itertools
import json
import subprocess
import sys

import numpy as np
import pandas as pd


def random_ratings(seed, duplicates):
    random = np.random.default_rng(seed)
    count = 4000
    table = pd.DataFrame({
        "user": random.integers(0, 150, count),
        "item": (random.random(count) ** 2 * 90).astype(int),
        "value": random.integers(0, 11, count) / 2,
        "time": random.integers(-50, 400, count)})
    if not duplicates:
        table = table.drop_duplicates(["user", "item"])
    for column in ("user", "item"):  # numbers by first appearance
        table[column] = pd.factorize(table[column])[0]
    return table.reset_index(drop=True)


def counts(table, name):
    return [name, table.user.nunique(), table.item.nunique(), len(table)]


def merge_duplicates(table, rule):
    if rule in ("first", "last"):  # by time; of equal ones the first or last in the input
        table = table.sort_values("time", kind="stable")
        return table.drop_duplicates(["user", "item"], keep=rule).sort_index()
    grouped = table.groupby(["user", "item"], as_index=False)
    return grouped.agg(value=("value", rule), time=("time", "last"))


def min_counts(table, options):
    min_user, min_item = options.get("min-user", 0), options.get("min-item", 0)
    steps = []

    def keep(column, least):
        return table[table.groupby(column)[column].transform("size") >= least]

    if not min_user and not min_item:
        return table, steps
    before = None
    while before != len(table):
        before = len(table)
        table = keep("user", min_user)
        table = keep("item", min_item)
    name = " and ".join(["min-item"] * bool(min_item) + ["min-user"] * bool(min_user))
    return table, steps + [counts(table, name)]


def apply_steps(table, options):
    """The ratings that are left, and the counts after each step."""
    steps = [counts(table, "input")]
    table = table[table.value != 0]
    steps.append(counts(table, "zeros"))
    table = merge_duplicates(table, options["duplicates"])
    steps.append(counts(table, "duplicates"))
    if "above" in options:
        table = table[table.value > options["above"]]
        steps.append(counts(table, "above"))
    if options.get("binarize"):
        table = table.assign(value=1.0)
        steps.append(counts(table, "binarize"))
    table, more = min_counts(table, options)
    return table, steps + more


def run(probe, table, options):
    text = "".join(f"{r.user} {r.item} {r.value} {r.time}\n" for r in table.itertuples())
    arguments = [f"{name}={value}" for name, value in options.items()]
    out = subprocess.run([probe, *arguments], input=text, capture_output=True, text=True, check=True).stdout
    made = json.loads(out)
    assert "error" not in made, (options, made)
    return made


def triplets(made, pack, matrix):
    """{(user, item): value} of a matrix; its rows must be ascending."""
    rows = pack[matrix]
    found = {}
    for row, (begin, end) in enumerate(zip(rows["indptr"], rows["indptr"][1:])):
        columns = rows["indices"][begin:end]
        assert all(a < b for a, b in zip(columns, columns[1:])), (pack["name"], row)
        for at in range(begin, end):
            value = rows["values"][at] if rows["values"] else 1.0
            found[pack["users"][row], made["items"][rows["indices"][at]]] = value
    return found


def as_dict(table):
    return {(r.user, r.item): r.value for r in table.itertuples()}


def check_columns(made, train):
    popular = train.groupby("item").size().reset_index(name="count")
    popular = popular.sort_values(["count", "item"], ascending=[False, True])
    assert made["items"] == popular["item"].tolist()
    assert made["counts"] == popular["count"].tolist()


def check_whole(made, table):
    check_columns(made, table)
    (pack,) = made["packs"]
    assert triplets(made, pack, "x") == as_dict(table)
    assert pack["longest"] == table.groupby("user").size().max()
    assert sorted(pack["users"]) == sorted(table.user.unique())


def check_users(made, table, options):
    names = {pack["name"]: pack for pack in made["packs"]}
    everyone = table.user.nunique()
    held = {name: options[name] if options[name] >= 1 else int(options[name] * everyone)
            for name in ("validation", "test")}
    train_users = set(names["train"]["users"])
    assert len(train_users) == everyone - sum(held.values())
    train = table[table.user.isin(train_users)]
    check_columns(made, train)
    assert triplets(made, names["train"], "x") == as_dict(train)
    seen = set(train.item)
    for name, count in held.items():
        pack = names[name]
        assert len(pack["users"]) + pack["left_out"] == count
        assert not train_users & set(pack["users"])
        given, asked = triplets(made, pack, "x"), triplets(made, pack, "held_out")
        mine = table[table.user.isin(pack["users"]) & table.item.isin(seen)]
        assert not given.keys() & asked.keys() and {**given, **asked} == as_dict(mine)
        for user, size in mine.groupby("user").size().items():
            assert sum(u == user for u, _ in asked) == int(0.2 * size) >= 1 and size >= 5
    assert not set(names["validation"]["users"]) & set(names["test"]["users"])


def check_parts(made, table, expected_sizes=None, expected_parts=None):
    """Splits that divide each user's ratings: train and held-out parts, by sizes or by what they must be."""
    names = {pack["name"]: pack for pack in made["packs"]}
    train = triplets(made, names["train"], "x")
    everything = as_dict(table)
    check_columns(made, table[[(r.user, r.item) in train for r in table.itertuples()]])
    seen = {item for _, item in train}
    users_in_training = {user for user, _ in train}
    for name in set(names) - {"train"}:
        pack = names[name]
        asked = triplets(made, pack, "held_out")
        assert not asked.keys() & train.keys()
        assert set(pack["users"]) == {user for user, _ in asked}
        given = {k: v for k, v in train.items() if k[0] in set(pack["users"])}
        if name == "test" and "validation" in names:
            validation = triplets(made, names["validation"], "held_out")
            given.update({k: v for k, v in validation.items() if k[0] in set(pack["users"])})
        assert triplets(made, pack, "x") == given
        if expected_parts:
            part = {k for k in expected_parts[name] if k[1] in seen and k[0] in users_in_training}
            assert asked == {k: everything[k] for k in part}
        if expected_sizes:
            for user, size in table.groupby("user").size().items():
                found = sum(u == user for u, _ in asked)
                unseen = pack["unseen"]
                assert expected_sizes[name](size) - unseen <= found <= expected_sizes[name](size)
    if expected_parts:
        assert train.keys() == expected_parts["train"]
    if expected_sizes:
        for user, size in table.groupby("user").size().items():
            assert sum(u == user for u, _ in train) == expected_sizes["train"](size)


def check_leave_one_out(made, table):
    order = table.sort_values("time", kind="stable")
    last = order.groupby("user").tail(1)
    rest = order.drop(last.index)
    single = set(table.user) - set(rest.user)
    last = last[~last.user.isin(single)]
    keys = {"test": set(as_dict(last)), "validation": set()}
    keys["train"] = set(as_dict(table)) - keys["test"]
    check_parts(made, table, expected_parts=keys)


def check_last_two_out(made, table):
    """The test's X has what validation asks for: the ratings before the last one."""
    order = table.sort_values("time", kind="stable")
    age = order.groupby("user").cumcount(ascending=False)
    size = order.groupby("user").user.transform("size")
    test, validation = order[(age == 0) & (size > 1)], order[(age == 1) & (size > 2)]
    keys = {"test": set(as_dict(test)), "validation": set(as_dict(validation))}
    keys["train"] = set(as_dict(table)) - keys["test"] - keys["validation"]
    check_parts(made, table, expected_parts=keys)


def check_latest(made, table, share):
    """A share of each user's ratings, the latest; of equal times the later in the input."""
    order = table.sort_values("time", kind="stable")
    age = order.groupby("user").cumcount(ascending=False)
    count = (share * order.groupby("user")["item"].transform("size")).astype(int)
    last = order[age < count]
    keys = {"test": set(as_dict(last))}
    keys["train"] = set(as_dict(table)) - keys["test"]
    check_parts(made, table, expected_parts=keys)


def check_time(made, table, share):
    """At most the share, and ratings of one time stay together."""
    count = int(share * len(table))
    cut = min(t for t in sorted(set(table.time)) + [table.time.max() + 1] if (table.time >= t).sum() <= count)
    keys = {"test": set(as_dict(table[table.time >= cut])), "train": set(as_dict(table[table.time < cut]))}
    check_parts(made, table, expected_parts=keys)


def main():
    probe = sys.argv[1]
    rules = [{"duplicates": rule, **more} for rule, more in itertools.product(
        ["sum", "last", "first", "max"],
        [{}, {"above": 2}, {"above": 2.5, "binarize": 1}, {"min-user": 12, "min-item": 20},
         {"min-item": 30}, {"min-user": 20}])]
    for seed, options in enumerate(rules):
        table = random_ratings(seed, duplicates=True)
        left, steps = apply_steps(table, options)
        made = run(probe, table, {**options, "seed": seed, "memory": 1 if seed % 2 else 10**9})
        assert made["steps"] == steps, (options, made["steps"], steps)
        check_whole(made, left)
    for seed in range(4):
        options = {"duplicates": "error", "seed": seed, "memory": 1 if seed % 2 else 10**9}
        table = random_ratings(100 + seed, duplicates=False)
        left, _ = apply_steps(table, {"duplicates": "first"})
        users = {"split": "users", "validation": 20, "test": 0.2}
        check_users(run(probe, table, {**options, **users}), left, users)
        ratio = run(probe, table, {**options, "split": "ratio", "validation": 0.1, "test": 0.2})
        check_parts(ratio, left, {"test": lambda n: int(0.2 * n), "validation": lambda n: int(0.1 * n),
                                  "train": lambda n: n - int(0.2 * n) - int(0.1 * n)})
        check_leave_one_out(run(probe, table, {**options, "split": "leave-one-out"}), left)
        check_last_two_out(run(probe, table, {**options, "split": "leave-one-out", "validation": 1}), left)
        latest = {"split": "ratio", "test": 0.2, "split-order": "time"}
        check_latest(run(probe, table, {**options, **latest}), left, 0.2)
        check_time(run(probe, table, {**options, "split": "time", "test": 0.2}), left, 0.2)
    print(f"{len(rules)} sets of rules and 5 splits are as pandas says")


if __name__ == "__main__":
    main()

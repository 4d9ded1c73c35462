"""What pack-sparse says of tables that it may read in another way than was meant."""
import os
import subprocess

import numpy as np
import pytest

import chunkhit


def said(*arguments, code=0):
    done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-sparse"), *map(str, arguments), "--progress", "none"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == code, done.stdout
    return done.stdout


AMAZON = [("B00004YUTF", "A2SUAM1J3GNN3B"), ("0151004714", "AAP7PPBU72QFM1"), ("B0000AQRSU", "A3S5KWSXVJ7XQ2")]


def test_users_and_items_of_amazon_were_swapped_with_a_note_by_order_only(tmp_path):
    (tmp_path / "2018.csv").write_text("".join(f"{item},{user},{n}.0,12345678{n:02}\n" for n, (item, user) in enumerate(AMAZON, 1)))
    (tmp_path / "2014.csv").write_text("".join(f"{user},{item},{n}.0,12345678{n:02}\n" for n, (item, user) in enumerate(AMAZON, 1)))
    text = said(tmp_path / "2018.csv", "-o", tmp_path / "swapped")
    assert "warning: column 1 is read as users, but looks like products (0151004714)" in text
    assert "--user 2 --item 1 takes them the other way" in text
    assert "looks like products" not in said(tmp_path / "2018.csv", "--user", 2, "--item", 1, "-o", tmp_path / "right")
    assert "looks like products" not in said(tmp_path / "2014.csv", "-o", tmp_path / "other")


def test_of_several_inputs_the_note_showed_only_the_last(tmp_path):
    (tmp_path / "a.csv").write_text("item,user,rating\n" + "".join(f"i{n},u{n % 3},{n % 5}\n" for n in range(9)))
    (tmp_path / "b.csv").write_text("user,item,rating\n" + "".join(f"v{n % 3},i{n},{n % 5}\n" for n in range(9)))
    text = said(tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "a.csv", "--duplicates", "last", "-o", tmp_path / "out")
    assert "columns: user user (by name), item item (by name), value rating (by name)" in text
    (tmp_path / "d.csv").write_text("".join(f"w{n % 3},i{n},{n % 5}\n" for n in range(9)))
    text = said(tmp_path / "d.csv", tmp_path / "b.csv", "-o", tmp_path / "mixed")
    assert "columns: user 1 (by order)" in text and f"{tmp_path / 'b.csv'}: columns: user user (by name)" in text


def test_fractions_of_a_second_before_1970_did_not_order(tmp_path):
    (tmp_path / "old.csv").write_text("user,item,rating,time\n" + "".join(
        f"u{user},i{item},1,-200000000.{9 - (item + user) % 8}\n" for user in range(8) for item in range(8)))
    said(tmp_path / "old.csv", "--split-by", "leave-one-out", "-o", tmp_path / "out")
    held = chunkhit.SparseDataset(tmp_path / "out" / "test", format="csr")
    items, users = held.column_ids(), held.row_ids()
    rows = held[list(range(8))][1]
    for row, user in enumerate(users):  # -200000000.2 is later than -200000000.9
        latest = items[rows.indices[rows.indptr[row]]]
        assert (int(latest[1:]) + int(user[1:])) % 8 == 7


@pytest.mark.parametrize("limit, advised", [(0, True), (4, True), (5, False), (20, False)])
def test_the_advice_of_min_item_came_back_where_it_was_followed(tmp_path, limit, advised):
    random = np.random.default_rng(3)
    lines = [f"u{user},i{item},1\n" for user in range(60) for item in random.integers(0, 30, 12)]
    lines += [f"u{user},new{user}-{item},1\n" for user in range(60) for item in range(9)]  # most are one user's alone
    (tmp_path / "table.csv").write_text("user,item,rating\n" + "".join(sorted(set(lines))))
    text = said(tmp_path / "table.csv", "--split-by", "users", "--test", 20, "--min-item", limit, "-o", tmp_path / "out")
    assert ("--min-item 5, say" in text) == advised, text


def test_a_split_by_time_in_which_no_test_user_trained_named_no_way_out(tmp_path):
    (tmp_path / "table.csv").write_text("user,item,rating,time\n" + "".join(
        f"{'old' if day < 50 else 'new'}{day},i{day % 7},1,{1_500_000_000 + day * 86400}\n" for day in range(100)))
    text = said(tmp_path / "table.csv", "--split-by", "time", "--test", "0.5", "-o", tmp_path / "out", code=2)
    assert "test gets no rows" in text and "--split-by ratio tests users that train" in text

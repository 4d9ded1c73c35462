"""What pack-report accuses in packs of ratings: each test injects errors into clean ratings, of which it finds nothing."""
import numpy as np
import pandas
import pytest

import chunkhit
from chunkhit.report import write_report

DAY = 86_400
USERS, ITEMS = 120, 60


@pytest.fixture(scope="module")
def clean():
    """Ratings of two years: each user rates 30 of 60 items, minutes apart, on days of their own."""
    random = np.random.default_rng(11)
    rows = []
    for user in range(USERS):
        begin = int(random.integers(0, 700)) * DAY
        days = np.sort(random.integers(0, 30, 30))
        for at, item in enumerate(random.permutation(ITEMS)[:30]):
            rows.append((f"u{user:03}", f"i{item:02}", 1 + at % 5, 10 ** 9 + begin + int(days[at]) * DAY + 60 * at))
    return pandas.DataFrame(rows, columns=["user", "item", "rating", "time"])


def found_in(folder, table, **options):
    table.to_csv(folder / "ratings.csv", index=False)
    chunkhit.pack_sparse(folder / "ratings.csv", folder / "packs", keep_times=True, progress=False, **options)
    return [line for line in write_report(folder / "packs", folder / "report.html") if line.startswith("Ratings: ")]


def given(folder, train, test, **options):
    """What is found in packs of these tables."""
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    chunkhit.pack_sparse(None, folder / "packs", train_file=folder / "train.csv", test_file=folder / "test.csv", keep_times=True,
                         progress=False, **options)
    return [line for line in write_report(folder / "packs", folder / "report.html") if line.startswith("Ratings: ")]


def test_clean_ratings_are_not_accused(clean, tmp_path):
    assert found_in(tmp_path, clean, split_by="time", test=0.2) == []
    page = (tmp_path / "report.html").read_text()
    assert "training ratings after the test" in page and "users with 100 ratings in a second" in page


def test_users_that_are_bots_are_found(clean, tmp_path):
    bot = pandas.DataFrame({"user": "bot", "item": [f"x{at:03}" for at in range(150)], "rating": 5, "time": 10 ** 9 + 77})
    found = found_in(tmp_path, pandas.concat([clean, bot]))
    assert found == ["Ratings: packs: 1 user is probably no people: up to 150 ratings within a second: bot"]


def test_an_item_that_is_rated_in_one_burst_is_found(clean, tmp_path):
    burst = pandas.DataFrame({"user": [f"u{at:03}" for at in range(80)], "item": "pushed", "rating": 5,
                              "time": 10 ** 9 + 400 * DAY // 3600 * 3600 + 20 * np.arange(80)})
    found = found_in(tmp_path, pandas.concat([clean, burst]))
    assert len(found) == 1 and "1 item got nearly all ratings within an hour, up to 80: pushed" in found[0]


def test_leakage_in_time_is_found(clean, tmp_path):
    found = found_in(tmp_path, clean, split_by="ratio", test=0.2, split_order="random")
    assert len(found) == 1 and "of the ratings of train are later than the begin of test, 2001-" in found[0]
    assert "(1 % of its ratings come before)" in found[0]


def test_leave_one_out_is_no_leak_by_mistake(clean, tmp_path):
    found = found_in(tmp_path, clean, split_by="leave-one-out", validation=1)
    assert len(found) == 1 and "of the ratings of train are later than the begin of test, by design of leave-one-out" in found[0]
    page = (tmp_path / "report.html").read_text()
    assert 'class="finding cost5' in page and 'class="finding cost0' not in page


@pytest.mark.parametrize("count", [0, 12])
def test_ratings_in_two_packs_are_found(clean, tmp_path, count):
    """In packs of two runs, whose rows and columns have orders of their own."""
    late = clean.time >= clean.time.quantile(0.8)
    repeated = clean[~late][clean[~late].user.isin(clean[late].user)].head(count)
    for name, table in (("train", clean[~late]), ("test", pandas.concat([repeated, clean[late]]))):
        table.sample(frac=1, random_state=1).to_csv(tmp_path / f"{name}.csv", index=False)
        chunkhit.pack_sparse(tmp_path / f"{name}.csv", tmp_path / name, progress=False)
    found = write_report([tmp_path / "train", tmp_path / "test"], tmp_path / "report.html")
    shared = [line for line in found if "in common" in line]
    assert len(shared) == (count > 0) and all(line.startswith("Ratings: train and test have 12 ratings in common") for line in shared)


def test_items_that_training_never_saw_are_found(clean, tmp_path):
    late = clean.time >= clean.time.quantile(0.8)
    train = clean[~late & (clean.item != "i07")]
    for name, table in (("train", train), ("test", clean[late])):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        chunkhit.pack_sparse(tmp_path / f"{name}.csv", tmp_path / name, progress=False)
    found = write_report([tmp_path / "train", tmp_path / "test"], tmp_path / "report.html")
    share = 100 * (clean[late].item == "i07").mean()
    assert f"Ratings: train has no rating of 1 of 60 items of test, which have {share:.1f} % of its ratings" in found


def test_a_shift_of_popularity_is_found(clean, tmp_path):
    items = clean.item.str[1:].astype(int)
    late = np.random.default_rng(12).random(len(clean)) < 0.4
    train = clean[~late & ((items >= 54) | (clean.index % 5 == 0))]
    found = given(tmp_path, train, clean[late])
    assert any("popularity shifts between train and test" in line for line in found)
    (tmp_path / "same").mkdir()
    assert not any("popularity" in line for line in given(tmp_path / "same", clean[~late], clean[late]))

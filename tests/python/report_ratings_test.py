"""What pack-report says of ratings, as pandas counts them."""
import html
import os
import re
import sys

import numpy as np
import pandas
import pytest

import chunkhit
from chunkhit.report import write_report

from report_test import needs_chromium, table_rows, texts

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
import browser  # noqa: E402


def test_looks_at_as_many_users_as_asked_for(ratings, tmp_path):
    write_report(ratings[0] / "whole", tmp_path / "report.html", samples=48)
    text = (tmp_path / "report.html").read_text()
    assert "48 of 211 users" in text and "at most 48 users, drawn by seed 0" in text


def test_ratings_equal_those_of_pandas(ratings, tmp_path):
    folder, _ = ratings
    write_report(folder / "whole", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    table = pandas.read_csv(folder / "ratings.csv")
    found = texts(text)
    for value, count in table.rating.value_counts().items():
        assert f"{value:g}" in found and f"{count:,}" in found
    users, items = table.groupby("user").size(), table.groupby("item").size()
    held = items.sort_values(ascending=False).cumsum() / len(table)
    half = (np.searchsorted(held, 0.5) + 1) / len(items)
    row = ["whole", "All 211 users", *(f"{number:g}" for number in (users.min(), users.median(), users.max(), items.median(), items.max())),
           str(97 - len(items)), f"of {100 * half:.0f} % of the items"]
    assert row in table_rows(text)
    filled = len(table) / (len(users) * len(items))
    assert table_rows(text)[1][5] == f"{100 * filled:.0f} %"
    assert f"The mean is {table.rating.mean():.2f} in whole." in found
    said = re.findall(r'role="img" aria-labelledby="(?:users|items|map0)-said"[^>]*><title[^>]*>([^<]*)<', text)
    assert said[:2] == [f"ratings of each {what}; whole: the most are {counts.max():,}, the median is {counts.median():g} of {len(counts):,}"
                        for what, counts in (("user", users), ("item", items))]
    assert len(said) == 3 and said[2].startswith("whole: map of ratings, items across, users down; ")
    assert len(re.findall("<title id=", text)) == text.count("<svg") >= 3


def test_shows_what_rules_and_the_split_did(ratings, tmp_path):
    folder, _ = ratings
    table = pandas.read_csv(folder / "ratings.csv")
    chunkhit.pack_sparse(folder / "ratings.csv", tmp_path / "split", above=3, split_by="users", test=40, validation=30,
                         progress=False)
    write_report(tmp_path / "split", tmp_path / "report.html")
    rows = table_rows((tmp_path / "report.html").read_text())
    kept = table[table.rating > 3]
    step = next(row for row in rows if row and row[0] == "above")
    assert step[1:4] == [f"{len(kept):,}", f"{kept.user.nunique():,}", f"{kept.item.nunique():,}"]
    assert step[4] == f"{len(table) - len(kept):,}"
    datasets = {name: chunkhit.SparseDataset(tmp_path / "split" / name, format="csr") for name in ("train", "test")}
    items = [{dataset.column_id(int(column)) for column in np.unique(first(dataset[:]).indices)}
             for dataset in datasets.values()]
    common = next(row for row in rows if row and row[0] == "train, test")
    assert common[1] == f"0 of {len(datasets['train'])} and {len(datasets['test'])}"
    assert common[2] == f"{len(items[0] & items[1])} of {len(items[0])} and {len(items[1])}"


def test_ratings_of_a_split_were_counted_several_times(ratings, tmp_path):
    chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "split", split_by="ratio", test=0.2, validation=0.2, progress=False)
    write_report(tmp_path / "split", tmp_path / "report.html")
    infos = {name: chunkhit.pack_info(tmp_path / "split" / name) for name in ("train", "validation", "test")}
    own = sum(info["matrices"][0 if name == "train" else 1]["nnz"] for name, info in infos.items())
    found = texts((tmp_path / "report.html").read_text())
    assert found[found.index("ratings") - 1] == f"{own:,}"


def first(read):
    """X of what a dataset gives with or without held-out ratings."""
    return read if hasattr(read, "indptr") else read[0]


@pytest.fixture(scope="module")
def vae(ratings, tmp_path_factory):
    """The page of three packs whose ratings are all 1."""
    folder = tmp_path_factory.mktemp("vae")
    chunkhit.pack_sparse(ratings[0] / "ratings.csv", folder / "vae", preset="vae-cf", validation=0.2, test=0.2, progress=False)
    write_report(folder / "vae", folder / "report.html")
    return folder / "report.html"


@pytest.mark.deep
@needs_chromium
def test_a_page_of_a_split_is_short(vae):
    assert browser.look(vae, width=1200)["height"] <= 2500
    seen = browser.look(vae, width=400)
    assert seen["overflow"] <= 0 and seen["cut"] == []


def test_packs_of_a_split_share_their_charts(vae):
    text = vae.read_text()
    assert [title for title in re.findall("<h[123]>(.*?)</h[123]>", text) if len(title.split()) > 5] == []
    assert [row[6] for row in table_rows(text)[1:4]] == ["all 1"] * 3 and 'id="values"' not in text
    charts = [chart for chart in re.findall(r"<svg.*?</svg>", text, re.DOTALL) if "rank" in chart]
    assert len(charts) == 2 and all(f">{name}</text>" in chart for chart in charts for name in ("train", "validation", "test"))


@pytest.fixture(scope="module")
def timed(ratings, tmp_path_factory):
    """A pack with titles and times, and the table that it was made of."""
    folder = tmp_path_factory.mktemp("timed")
    table = pandas.read_csv(ratings[0] / "ratings.csv")
    table["time"] = pandas.Timestamp("2001-03-01").value // 10 ** 9 + np.arange(len(table)) * 86_400
    table.to_csv(folder / "ratings.csv", index=False)
    items = pandas.DataFrame({"item": sorted(table.item.unique())})
    items["title"] = [f"Night & <b>{item}</b>" for item in items.item]
    items.to_csv(folder / "items.csv", index=False)
    chunkhit.pack_sparse(folder / "ratings.csv", folder / "pack", item_columns=folder / "items.csv", keep_times=True, progress=False)
    write_report(folder / "pack", folder / "report.html")
    return table, (folder / "report.html").read_text()


def test_most_rated_items_stand_by_title_and_coldest_users_by_id(timed):
    table, page = timed
    items, users = table.groupby("item").size(), table.groupby("user").size()
    rows = [[html.unescape(cell) for cell in row] for row in table_rows(page)]
    top = [row for row in rows if len(row) == 4 and "Night" in row[3]]
    assert [int(row[0]) for row in top] == items.sort_values(ascending=False)[:10].tolist()
    for count, share, item, title in top:
        assert items[item] == int(count) and title == f"Night & <b>{item}</b>"
        assert share.startswith(f"{100 * int(count) / len(users):.0f}")
    least = users.min()
    cold = next(row for row in rows if len(row) == 3 and row[0] == str(least))
    assert cold[1] == str((users == least).sum())
    assert set(re.findall("u[0-9]+", cold[2])) <= set(users[users == least].index)


def test_times_are_shown_as_dates(timed):
    table, page = timed
    days = pandas.to_datetime(table.time, unit="s").dt.strftime("%Y-%m-%d")
    assert ["pack", days.min(), days.sort_values().iloc[(len(days) - 1) // 2], days.max()] in table_rows(page)
    assert any(re.fullmatch("200[1-4]-[01][0-9]", text) for text in texts(page))


def test_values_of_a_test_repeated_those_of_training(ratings, tmp_path):
    """X of the test has the ratings of training, as its users are the same."""
    write_report(ratings[0] / "split", tmp_path / "report.html")
    held = chunkhit.SparseDataset(ratings[0] / "split" / "test").to_scipy(held_out=True).data
    train = chunkhit.SparseDataset(ratings[0] / "split" / "train").to_scipy().data
    assert f"The mean is {train.mean():.2f} in train; {held.mean():.2f} in test, held out." in texts((tmp_path / "report.html").read_text())


def test_bad_lines_of_the_input_were_called_those_of_train(tmp_path):
    lines = [f"u{user},i{item},{1 + item}" for user in range(9) for item in range(4)] + ["u1,,3"]
    (tmp_path / "ratings.csv").write_text("\n".join(["user,item,rating", *lines, ""]))
    chunkhit.pack_sparse(tmp_path / "ratings.csv", tmp_path / "split", split_by="ratio", test=0.3, on_error="skip", progress=False)
    found = write_report(tmp_path / "split", tmp_path / "report.html")
    assert [line for line in found if "gave no rating" in line] == ["What each rule removed: the input: 1 line gave no rating: item: expected an id: 1"]

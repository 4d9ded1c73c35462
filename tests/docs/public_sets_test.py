#!/usr/bin/env python3
"""The flags that tools/ratings.md gives for public data sets read small files of the same form: each row of the table is run over
180 ratings of 30 users and 20 items, and finds these. Usage: public_sets_test.py ROOT TOOLS_FOLDER"""
import io
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile

import h5py
import numpy as np

ROOT, TOOLS = map(os.path.abspath, sys.argv[1:3])
DRAW = random.Random(1)
PAIRS = [(user, item) for user in range(1, 31) for item in DRAW.sample(range(1, 21), 6)]
RATINGS = [(user, item, DRAW.randint(1, 5), 1_100_000_000 + 86_400 * index) for index, (user, item) in enumerate(PAIRS)]


def check(holds, *what):
    if not holds:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def lines(form, header=""):
    """A line for each rating: `form` has {user}, {item}, {value} and {time}."""
    return header + "".join(form.format(user=user, item=item, value=value, time=time) for user, item, value, time in RATINGS)


def user_items(first, last):
    """A line for each user: its number, and some of its items."""
    items = {user: [str(item) for other, item in PAIRS if other == user] for user in range(1, 31)}
    return "".join(f"{user} {' '.join(own[first:last])}\n" for user, own in items.items())


def netflix():
    return "".join(f"{item}:\n" + "".join(f"{user},{value},2005-09-06\n" for user, other, value, _ in RATINGS if other == item)
                   for item in range(1, 21))


def cell_ranger():
    """Bytes, as latin-1, of a file of 10x Genomics whose genes are the items; antibodies stand beside them."""
    pairs, buffer = sorted((user, item) for user, item, _, _ in RATINGS), io.BytesIO()
    entries = [(user, item) for user in range(1, 31) for item in [*(item for other, item in pairs if other == user), 21, 22]]
    with h5py.File(buffer, "w") as file:
        for name, values in (("data", np.ones(len(entries), "i4")), ("indices", np.array([item - 1 for _, item in entries])),
                             ("indptr", np.arange(0, len(entries) + 1, len(entries) // 30)), ("shape", np.array([22, 30])),
                             ("barcodes", np.array([f"AC{user}-1" for user in range(30)], "S")),
                             ("features/id", np.array([f"ENSG{item}" for item in range(22)], "S")),
                             ("features/feature_type", np.array(["Gene Expression"] * 20 + ["Antibody Capture"] * 2, "S"))):
            file["matrix/" + name] = values
    return buffer.getvalue().decode("latin-1")


# Begin of a row's first cell: the files that its flags and its INPUT name.
SETS = {
    "MovieLens 20M": {"ratings.csv": lines("{user},{item},{value}.5,{time}\n", "userId,movieId,rating,timestamp\n")},
    "MovieLens 1M": {"ratings.dat": lines("{user}::{item}::{value}::{time}\n"),
                     "movies.dat": "".join(f"{item}::Caf\xe9 {item} (1995)::Animation|Comedy\n" for item in range(1, 21))},
    "MovieLens 100K": {"u.data": lines("{user}\t{item}\t{value}\t{time}\n"),
                       "u.item": "".join(f"{item}|Caf\xe9 {item}|01-Jan-1995||0|1\n" for item in range(1, 21)),
                       "u.user": "".join(f"{user}|24|M|writer|85711\n" for user in range(1, 31))},
    "Amazon 2014, ratings": {"ratings.csv": lines("A{user}X,B{item}Y,{value}.0,{time}\n")},
    "Amazon 2018, ratings": {"ratings.csv": lines("B{item}Y,A{user}X,{value}.0,{time}\n")},
    "Amazon 2023, ratings": {"ratings.csv": lines("A{user},B{item},{value}.0,{time}123\n", "user_id,parent_asin,rating,timestamp\n")},
    "Amazon reviews": {"reviews.json": lines('{{"reviewerID": "A{user}", "asin": "B{item}", "helpful": [0, 0], "reviewText": "a \\"b\\"",'
                                             ' "overall": {value}.0, "unixReviewTime": {time}, "reviewTime": "09 13, 2009"}}\n')},
    "Yelp": {"review.json": lines('{{"review_id":"K{time}","user_id":"m{user}","business_id":"X{item}","stars":{value}.0,"useful":0,'
                                  '"text":"t","date":"2018-07-07 22:09:11"}}\n')},
    "Goodreads": {"interactions.json": lines('{{"user_id": "{user:032x}", "book_id": "{item}", "review_id": "{time}", "is_read": true,'
                                             ' "rating": {value}, "date_added": "Wed Dec 09 19:39:58 -0800 2015", "read_at": ""}}\n')},
    "Netflix": {"combined_data_1.txt": netflix()},
    "Gowalla, check-ins": {"checkins.txt": lines("{user}\t2010-10-19T23:55:27Z\t30.2359\t-97.7951\t{item}\n")},
    "Gowalla, Yelp2018": {"train.txt": user_items(0, 5), "test.txt": user_items(5, 6)},
    "Book-Crossing": {"ratings.csv": lines('"{user}";"{item}X";"{value}"\r\n', '"User-ID";"ISBN";"Book-Rating"\r\n')},
    "Last.fm 360K": {"plays.tsv": lines('{user:040x}\t\tArtist "{item}"\t{value}\n')},
    "Last.fm of HetRec": {"user_artists.dat": lines("{user}\t{item}\t{value}\n", "userID\tartistID\tweight\n")},
    "KuaiRec": {"big_matrix.csv": lines("{user},{item},4381,6067,2020-07-05 05:27:48.378,20200705,{time}.378,0.{value}\n",
                                        "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n")},
    "KuaiRand": {"log.csv": lines("{user},{item},20220408,1200,{time}123,1,0\n", "user_id,video_id,date,hourmin,time_ms,is_click,is_like\n")},
    "RecBole": {"a.inter": lines("{user}\t{item}\t{value}\t{time}\n", "user_id:token\titem_id:token\trating:float\ttimestamp:float\n")},
    "10x Genomics": {"filtered_feature_bc_matrix.h5": cell_ranger()},
    "Million Song": {"train_triplets.txt": lines("{user:040x}\tSO{item}\t{value}\n")},
}
# Rows of sets that are no input as they are.
OTHERS = {"Steam of UCSD", "CiteULike"}


def rows():
    """Pairs of a set and its flags, the first code of the second cell that is flags."""
    with open(f"{ROOT}/tools/ratings.md") as file:
        table = re.search(r"^\| set, file \|.*\n\|.*\n((?:\|.*\n)+)", file.read(), re.M)[1]
    for line in table.splitlines():
        name, flags = (cell.strip() for cell in line.strip("|").split(" | "))
        yield name, " ".join(re.findall(r"`(--[^`]*)`", flags))


def run(name, flags, files):
    for path, text in files.items():
        with open(path, "w", encoding="latin-1", newline="") as file:
            file.write(text)
    inputs = [] if "--train-file" in flags else list(files)[:1]
    done = subprocess.run([f"{TOOLS}/pack-sparse", *inputs, *shlex.split(flags), "--dry-run"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    check(done.returncode == 0, name, flags, "exit", done.returncode, done.stdout)
    found = re.search(r"^input +(\d+) +(\d+) +(\d+)$", done.stdout, re.M)
    check(found and found.groups() == ("30", "20", "180"), name, flags, done.stdout)


def main():
    left = set(SETS)
    for name, flags in rows():
        mine = [start for start in SETS if name.startswith(start)]
        check(len(mine) == 1 or name.split(":")[0] in OTHERS, name, "is no set of this test")
        for start in mine:
            run(name, flags, SETS[start])
            left.remove(start)
    check(not left, "not in the table:", *left)
    print(f"{len(SETS)} sets")


with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    main()
    os.chdir("/")

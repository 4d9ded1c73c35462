#!/usr/bin/python3
"""Measures sequences of the last 50 items of each user beside pandas and NumPy: CPU time.

usage: PYTHONPATH=BUILD/lib/python sequences_pandas.py RATINGS.csv [ROUNDS]     (make_ratings.py RATINGS.csv 0.2; 3 rounds)
pandas: a stable sort by user and time once, then a loop over users that copies the last items into padded rows; both give the same.
"""
import statistics
import sys
import tempfile
import time

import numpy as np
import pandas as pd

import chunkhit

LENGTH, BATCH = 50, 256
csv, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3


def cpu_seconds(work):
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def sort_table():
    table = pd.read_csv(csv, usecols=["userId", "movieId", "timestamp"])
    table = table.sort_values(["userId", "timestamp"], kind="stable")
    return table.userId.to_numpy(), table.movieId.to_numpy()


def padded_rows(users, items):
    ends = np.append(np.flatnonzero(np.diff(users)) + 1, len(users))
    begins, rows = np.append(0, ends[:-1]), []
    for first in range(0, len(ends), BATCH):
        batch = np.full((len(ends[first:first + BATCH]), LENGTH), -1, np.int64)
        for row, (begin, end) in enumerate(zip(begins[first:first + BATCH], ends[first:first + BATCH])):
            last = items[max(begin, end - LENGTH):end]
            batch[row, LENGTH - len(last):] = last
        rows.append(batch)
    return np.concatenate(rows)


with tempfile.TemporaryDirectory() as folder:
    packing, _ = cpu_seconds(lambda: chunkhit.pack_sparse(csv, f"{folder}/pack", keep_times=True, order="input", id_order="sorted", progress=False))
    sorting, (users, items) = cpu_seconds(sort_table)
    loader = chunkhit.SparseLoader(f"{folder}/pack", format="sequences", length=LENGTH, batch_size=BATCH, times=False)
    ids = np.array([int(loader.column_id(column)) for column in range(loader.column_count)] + [-1])
    epochs = iter(range(rounds + 1))
    read = lambda: [batch.x.copy() for batch in loader.epoch(next(epochs))]  # noqa: E731
    first, batches = cpu_seconds(read)
    expected = padded_rows(users, items)
    if not np.array_equal(ids[np.concatenate(batches)], expected):
        sys.exit("the sequences differ from pandas' stable sort")
    ours = statistics.median(cpu_seconds(read)[0] for _ in range(rounds))
    loop = statistics.median(cpu_seconds(lambda: padded_rows(users, items))[0] for _ in range(rounds))
    count = len(expected)
    print(f"{len(users):,} ratings of {count:,} users, length {LENGTH}, medians of {rounds}")
    print(f"CPU s: packing {packing:.2f}, reading and sorting with pandas {sorting:.2f}")
    print(f"rows a CPU second: first epoch {count / first:,.0f}, later {count / ours:,.0f}; NumPy loop {count / loop:,.0f}: "
          f"{loop / ours:.1f} times")

#!/usr/bin/python3
"""Writes ratings anew so that each user is whole in one file, as a plan needs them: group_dask.py FOLDER FILES INPUT.csv …

FOLDER then has FILES files for pack-sparse FOLDER/*.csv --plan TASKS. Name the column of users in USER. A file without
users is left out; the order of a user's ratings is lost: keep a column of times where --duplicates or the split needs it."""
import os
import sys

import dask.dataframe

USER = "user"


def write(part, path):
    if len(part) > 0:
        part.to_csv(path, index=False)


def main(folder, files, *inputs):
    os.makedirs(folder)
    ratings = dask.dataframe.read_csv(inputs, dtype=str, keep_default_na=False).shuffle(USER, npartitions=int(files))
    paths = [os.path.join(folder, f"{index:05d}.csv") for index in range(ratings.npartitions)]
    dask.compute(*[dask.delayed(write)(part, path) for part, path in zip(ratings.to_delayed(), paths)])


if __name__ == "__main__":
    main(*sys.argv[1:])

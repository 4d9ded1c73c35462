#!/usr/bin/python3
"""Packs ratings on a Dask cluster: dask_ratings.py FOLDER PARTS INPUT.csv … [-- FLAG …]

Groups the ratings by user into FOLDER/part-N.csv, counts the items, packs each part and merges the packs into FOLDER/all.
FLAGs are those of pack-sparse; give --values, so that all parts store one type. Name the column of users in USER. The order of
a user's ratings is lost: keep a column of times where --duplicates or the split needs it."""
import glob
import os
import subprocess
import sys

import dask.dataframe
from distributed import Client

USER = "user"
COUNTED_ALONE = ("--min-item",)  # the items keep to it


def write(part, path):
    if len(part) > 0:
        part.to_csv(path, index=False)


def pack(path, items, flags):
    output = os.path.join(os.path.dirname(path), "packs", os.path.basename(path)[:-len(".csv")])
    # Dask starts a task again whose worker was killed; setpriv ends the command with its worker.
    command = ["pack-sparse", path, "--reuse-ids", items, *flags, "-o", output, "--progress", "none"]
    subprocess.run(["setpriv", "--pdeathsig", "TERM", *command], check=True)


def without(flags, left_out):
    return [word for index, word in enumerate(flags) if word not in left_out and (index == 0 or flags[index - 1] not in left_out)]


def main(folder, parts, *rest):
    inputs, flags = (rest[:rest.index("--")], rest[rest.index("--") + 1:]) if "--" in rest else (rest, ())
    os.makedirs(folder)
    with Client() as client:
        ratings = dask.dataframe.read_csv(list(inputs), dtype=str, keep_default_na=False).shuffle(USER, npartitions=int(parts))
        paths = [os.path.join(folder, f"part-{index}.csv") for index in range(ratings.npartitions)]
        dask.compute(*[dask.delayed(write)(part, path) for part, path in zip(ratings.to_delayed(), paths)])
        paths, items = list(filter(os.path.exists, paths)), os.path.join(folder, "items.csv")
        subprocess.run(["pack-sparse", *paths, "--count-items", *flags, "-o", items], check=True)
        flags = without(flags, COUNTED_ALONE)
        client.gather([client.submit(pack, path, items, flags, retries=3, pure=False) for path in paths])
    for name in ("", "train", "validation", "test"):
        packs = [os.path.dirname(path) for path in glob.glob(os.path.join(folder, "packs/*", name, "manifest.json"))]
        if packs:
            subprocess.run(["pack-merge", os.path.join(folder, "all", name), *sorted(packs)], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

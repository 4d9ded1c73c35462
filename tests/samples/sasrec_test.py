#!/usr/bin/env python3
"""SASRec of samples/python finds the next item of walks more often than popularity does, also where items come again.

Usage: sasrec_test.py SAMPLES_FOLDER"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import torch

import chunkhit.torch

SAMPLE = os.path.join(sys.argv[1], "python/sasrec.py")

for options in ([], ["--repeats"]):
    done = subprocess.run([sys.executable, SAMPLE, "--epochs", "8", "--batch", "32", "--json", *options], stdout=subprocess.PIPE,
                          check=True, text=True)
    found = json.loads(done.stdout)
    print(found)
    assert found["users"] > 1_000 and found["hit_rate"] > 1.5 * found["hit_rate_of_popular"] > 0, found

with tempfile.TemporaryDirectory() as folder:
    # 8 users rated items 0 to 59 and then 60. The others, of whom training learns item 60, took item 1 last.
    lines = [f"{user},{item},1,{1_600_000_000 + item}" for user in range(8) for item in range(61)]
    lines += [f"{user},{item},1,{1_600_000_000 + item % 60}" for user in range(8, 30) for item in (60, 0, 1)]
    with open(f"{folder}/ratings.csv", "w") as file:
        file.write("\n".join(["user,item,rating,timestamp", *lines, ""]))
    chunkhit.pack_sparse(f"{folder}/ratings.csv", f"{folder}/packs", keep_times=True, split_by="leave-one-out", min_user=3)

    # The folder of a split was no input; a bad line ended in a traceback.
    small = [sys.executable, SAMPLE, f"{folder}/packs", "--epochs", "1", "--length", "5", "--json"]
    assert json.loads(subprocess.run(small, stdout=subprocess.PIPE, check=True, text=True).stdout)["users"] == 30
    with open(f"{folder}/bad.csv", "w") as file:
        file.write("\n".join(["user,item,rating,timestamp", *lines, "7,,1,1", ""]))
    failed = subprocess.run([sys.executable, SAMPLE, f"{folder}/bad.csv"], stderr=subprocess.PIPE, text=True)
    assert failed.returncode == 1 and failed.stderr.startswith("sasrec.py: ") and "Traceback" not in failed.stderr, failed

    # Only the items of the window were left out of what is shown.
    spec = importlib.util.spec_from_file_location("sasrec", SAMPLE)
    sasrec = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sasrec)
    test = chunkhit.torch.SparseLoader(f"{folder}/packs/test", format="sequences", length=5, times=False)
    seen = chunkhit.SparseDataset(f"{folder}/packs/test", format="csr", held_out=False)
    first = torch.tensor([-float(test.column_id(column)) for column in range(test.column_count)])
    assert sasrec.hit_rate(test, seen, lambda x: first.expand(len(x), -1)) == 1

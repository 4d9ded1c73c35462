#!/usr/bin/env python3
"""BPR of samples/python finds items that suit its users more often than popularity does.

Usage: bpr_test.py SAMPLES_FOLDER"""
import json
import os
import subprocess
import sys
import tempfile

import chunkhit

SAMPLE = os.path.join(sys.argv[1], "python/bpr.py")

done = subprocess.run([sys.executable, SAMPLE, "--epochs", "8", "--json"], stdout=subprocess.PIPE, check=True, text=True)
found = json.loads(done.stdout)
print(found)
assert found["users"] > 1_000 and found["hit_rate"] > 1.5 * found["hit_rate_of_popular"] > 0, found

with tempfile.TemporaryDirectory() as folder:
    with open(f"{folder}/ratings.csv", "w") as file:
        file.writelines(f"{user},{(user + step) % 30},1\n" for user in range(40) for step in range(5))
    chunkhit.pack_sparse(f"{folder}/ratings.csv", f"{folder}/packs", user=1, item=2, value=3, split_by="leave-one-out",
                         split_order="random")
    small = [sys.executable, SAMPLE, f"{folder}/packs", "--epochs", "1", "--json"]
    assert json.loads(subprocess.run(small, stdout=subprocess.PIPE, check=True, text=True).stdout)["users"] == 40

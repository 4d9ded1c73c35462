#!/usr/bin/env python3
"""SASRec of samples/python finds the next item of walks more often than popularity does, also where items come again.

Usage: sasrec_test.py SAMPLES_FOLDER"""
import json
import os
import subprocess
import sys

SAMPLE = os.path.join(sys.argv[1], "python/sasrec.py")

for options in ([], ["--repeats"]):
    done = subprocess.run([sys.executable, SAMPLE, "--epochs", "8", "--batch", "32", "--json", *options], stdout=subprocess.PIPE,
                          check=True, text=True)
    found = json.loads(done.stdout)
    print(found)
    assert found["users"] > 1_000 and found["hit_rate"] > 1.5 * found["hit_rate_of_popular"] > 0, found

#!/usr/bin/env python3
"""BPR of samples/python finds items that suit its users more often than popularity does.

Usage: bpr_test.py SAMPLES_FOLDER"""
import json
import os
import subprocess
import sys

SAMPLE = os.path.join(sys.argv[1], "python/bpr.py")

done = subprocess.run([sys.executable, SAMPLE, "--epochs", "8", "--json"], stdout=subprocess.PIPE, check=True, text=True)
found = json.loads(done.stdout)
print(found)
assert found["users"] > 1_000 and found["hit_rate"] > 1.5 * found["hit_rate_of_popular"] > 0, found

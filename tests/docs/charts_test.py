#!/usr/bin/env python3
"""The charts of the pages show the figures that the pages and the recorded files have. Usage: charts_test.py ROOT"""
import os
import subprocess
import sys
import tempfile

BENCH = os.path.join(os.path.abspath(sys.argv[1]), "tests/bench")
CHARTS = {"epoch.svg": ["epoch_chart.py"], "own_sizes.svg": ["chart.py", f"{BENCH}/own_sizes.json"]}

with tempfile.TemporaryDirectory() as scratch:
    for chart, (script, *inputs) in CHARTS.items():
        with open(f"{BENCH}/{chart}", encoding="utf-8") as file:
            shown = file.read()
        title = shown.partition(', logarithmic scale</text>')[0].rpartition(">")[2] if inputs else "resnet18"
        subprocess.run([sys.executable, f"{BENCH}/{script}", *inputs, f"{scratch}/{chart}", title], check=True)
        with open(f"{scratch}/{chart}", encoding="utf-8") as file:
            if file.read() != shown:
                sys.exit(f"FAILED: {chart} is not what {script} draws")
print(f"{len(CHARTS)} charts")

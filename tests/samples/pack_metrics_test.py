#!/usr/bin/env python3
"""The sample that watches a planned pack must write what pack-info counts, before, between and after its tasks.

Usage: pack_metrics_test.py SAMPLES_FOLDER TOOLS_FOLDER"""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from PIL import Image

SAMPLE = os.path.join(sys.argv[1], "jobs/pack_metrics.py")
ENVIRONMENT = {**os.environ, "PATH": os.path.abspath(sys.argv[2]) + ":" + os.environ["PATH"]}


def run(*command):
    return subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class PackMetrics(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.pack = f'{folder.name}/a "pack"'
        os.makedirs(f"{folder.name}/photos/ant")
        for number in range(20):
            Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(f"{folder.name}/photos/ant/{number}.png")
        planned = run("pack-images", f"{folder.name}/photos", "-o", self.pack, "--chunk-samples", "5", "--part-bytes", "1000", "--plan", "4")
        self.assertEqual(planned.returncode, 0, planned.stderr)

    def metrics(self):
        """The values by name, of the lines that Prometheus reads."""
        done = run(sys.executable, SAMPLE, self.pack, f"{self.folder}/pack.prom")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(f"{self.folder}/pack.prom", encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if not line.startswith("#")]
        label = '{pack="' + self.pack.replace('"', '\\"') + '"} '
        return {name.replace("chunkhit_pack_", ""): int(value) for name, value in (line.split(label) for line in lines)}

    def test_parts_are_counted_until_the_pack_is_finished(self):
        expected = {"rows": 20, "rejected": 0, "finished": 0, "parts": 4, "parts_done": 0, "tasks_missing": 4}
        self.assertEqual(self.metrics(), expected)
        self.assertEqual(run("pack-run", self.pack, "--task", "2").returncode, 0)
        self.assertEqual(self.metrics(), {**expected, "parts_done": 1, "tasks_missing": 3})
        self.assertEqual(run("pack-run", self.pack).returncode, 0)
        self.assertEqual(self.metrics(), {"rows": 20, "rejected": 0, "finished": 1})
        self.assertFalse(os.path.exists(f"{self.folder}/pack.prom.tmp"))

    def test_a_pack_without_a_plan_may_be_unfinished(self):
        with open(f"{self.folder}/photos/ant/zebra.png", "w") as file:
            file.write("no image")
        self.pack = f"{self.folder}/unplanned"
        ended = run("pack-images", f"{self.folder}/photos", "-o", self.pack, "--order", "input", "--chunk-samples", "5", "--part-bytes", "1000",
                    "--threads", "1", "--on-error", "fail")
        self.assertEqual(ended.returncode, 1, ended.stderr)
        found = self.metrics()
        self.assertEqual((found["finished"], sorted(found)), (0, ["finished", "rejected", "rows"]))

    def test_a_folder_that_is_no_pack_keeps_the_file_and_the_exit_code(self):
        self.metrics()
        done = run(sys.executable, SAMPLE, f"{self.folder}/photos", f"{self.folder}/pack.prom")
        self.assertEqual(done.returncode, run("pack-info", f"{self.folder}/photos", "--json").returncode)
        self.assertGreater(done.returncode, 0)
        self.assertEqual(self.metrics()["rows"], 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""The sample of several processes must prove what it says, in one run and over runs of 1, 2 and 4 processes, and notice when it
does not hold.

Usage: ddp_test.py SAMPLES_FOLDER"""
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import torch

import chunkhit.torch

SAMPLE = os.path.join(sys.argv[1], "python/ddp.py")
sys.path.insert(0, os.path.dirname(SAMPLE))
import ddp  # noqa: E402


# Debian 12's PyTorch does not know Python 3.11's flags of nothing: it must be told of a process that is none.
LAUNCHER = "-m torch.distributed.run --standalone --redirects 9:1 --tee 9:1 --nproc_per_node".split()


def launch(ranks, *arguments):
    """Once more where it takes minutes: on a busy machine the launcher was seen to wait for ever."""
    command = ["timeout", "--kill-after=10", "150", sys.executable, *LAUNCHER, str(ranks), SAMPLE, *arguments]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode not in (124, 137):
            break
    return done


class Ddp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkpoint = f"{folder.name}/left.pt"

    def proves(self, done, *claims):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("NOT", done.stdout)
        for claim in claims:
            self.assertIn(f"ok   {claim}", done.stdout)

    def test_two_ranks_share_an_epoch_out_and_others_end_it(self):
        self.proves(launch(2), "2 ranks took 17 steps each", "2 ranks together: each of 1,003 samples once, but for 1 that",
                    "all ranks have the same weights", "2 ranks stopped after 8 steps with one state",
                    "1 went on for 9 steps each", "2, then 1: each of 1,003 samples once", "2, then 2: each", "2, then 4: each")

    def test_runs_of_one_two_and_four_go_on_from_one_another(self):
        first = launch(1, "--checkpoint", self.checkpoint, "--steps", "5")
        self.proves(first, "1 ranks took 5 steps each")
        self.assertIn("stopped in the middle of the epoch", first.stdout)
        self.proves(launch(2, "--checkpoint", self.checkpoint, "--steps", "5"), "2 ranks took 5 steps each")
        self.proves(launch(4, "--checkpoint", self.checkpoint), "4 ranks took 7 steps each",
                    "all runs together: each of 1,003 samples once, but for 1 that")

    def test_two_go_on_where_four_saved_before_they_were_killed(self):
        self.proves(launch(4, "--checkpoint", self.checkpoint, "--steps", "5"), "4 ranks took 5 steps each")
        # Whenever it is killed: nothing is saved before its last step.
        killed = subprocess.Popen([sys.executable, *LAUNCHER, "4", SAMPLE, "--checkpoint", self.checkpoint, "--steps", "50"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            killed.wait(6)
        except subprocess.TimeoutExpired:
            os.killpg(killed.pid, signal.SIGKILL)
            killed.wait()
        self.proves(launch(2, "--checkpoint", self.checkpoint), "all runs together: each of 1,003 samples once, but for 1 that")

    def test_a_claim_that_does_not_hold_is_an_error(self):
        """A checkpoint that forgot the samples of its steps."""
        with tempfile.TemporaryDirectory() as folder:
            loader = chunkhit.torch.ImageLoader(ddp.own_pack(folder), batch_size=60, **ddp.ORDER)
        next(loader.epoch(ddp.EPOCH))
        torch.save({"loader": loader.state_dict(), "model": torch.nn.Linear(192, 3).state_dict(), "samples": []}, self.checkpoint)
        done = launch(1, "--checkpoint", self.checkpoint)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("NOT  all runs together", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

"""Ctrl-C while a loader waits for its first batch, whose reading takes seconds under strace."""
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
import signal, sys
import chunkhit

loader = chunkhit.ImageLoader(sys.argv[1], residency="stream", check_hashes="always")
epoch = loader.epoch(0)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    next(epoch)
    print("a batch came first")
except KeyboardInterrupt:
    print("batches", loader.stats().batches)
signal.setitimer(signal.ITIMER_REAL, 0)
print("then", len(next(epoch).images))
"""


@pytest.mark.skipif(not shutil.which("strace"), reason="strace makes reading slow")
def test_ctrl_c_comes_before_the_batch(packs):
    part = packs / "shard" / "part-00000.zst"
    assert part.exists()
    run = subprocess.run(
        ["strace", "-f", "-o", "/dev/null", "-P", str(part), "-e", "trace=pread64", "-e",
         "inject=pread64:delay_enter=400000:when=3+", sys.executable, "-c", PROGRAM, str(part)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
    assert run.stdout.split() == ["batches", "0", "then", "100"], run.stderr

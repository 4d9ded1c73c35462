"""Ctrl-C, and a look at the statistics, while a loader waits for its first batch, whose reading takes seconds under strace."""
import shutil
import subprocess
import sys

import pytest

INTERRUPTED = """
import signal, sys, time
import chunkhit

loader = chunkhit.ImageLoader(sys.argv[1], cache="none", check_hashes="always")
epoch = loader.epoch(0)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
late = []
for attempt in range(4):
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    begin = time.monotonic()
    try:
        next(epoch)
        print("a batch came first")
    except KeyboardInterrupt:
        late.append(time.monotonic() - begin - 0.02)
print("batches", loader.stats().batches, "in time" if min(late) < 0.1 else late)
print("then", len(next(epoch).images))
"""

WATCHED = """
import sys, threading
import chunkhit

loader = chunkhit.ImageLoader(sys.argv[1], cache="none", check_hashes="always")
epoch = loader.epoch(0)
looks = threading.Timer(0.2, lambda: print("batches", loader.stats().batches, loader.state_dict() != {}))
looks.start()
batch = next(epoch)
print("then", len(batch.images), loader.stats().batches)
looks.join()
"""


pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace makes reading slow")


def run_slowly(packs, program):
    """What the program prints, for which every read of the part but the first few takes 0.4 seconds."""
    part = packs / "shard" / "part-00000.zst"
    assert part.exists()
    run = subprocess.run(
        ["strace", "-f", "-o", "/dev/null", "-P", str(part), "-e", "trace=pread64", "-e",
         "inject=pread64:delay_enter=400000:when=3+", sys.executable, "-c", program, str(part)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_ctrl_c_comes_before_the_batch(packs):
    """The best of four: other programs may take the CPU meanwhile, which is not what is tested."""
    assert run_slowly(packs, INTERRUPTED) == "batches 0 in time then 100".split()


def test_another_thread_sees_the_statistics_before_the_batch(packs):
    assert run_slowly(packs, WATCHED) == ["batches", "0", "True", "then", "100", "1"]

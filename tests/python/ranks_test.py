"""Processes that share an epoch decode each chunk once, whatever becomes of one of them."""
import json
import os
import signal
import subprocess
import sys
import zlib

import pytest

import chunkhit

RANKS = 4
# Gives a line a batch, and waits for one before the next.
RANK = """
import json, sys, zlib
import chunkhit
path, rank, ranks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
loader = chunkhit.ImageLoader(path, batch_size=5, shuffle="global", seed=2, cache="decoded", rank=rank, world_size=ranks, threads=1)
for batch in loader.epoch(0):
    print(json.dumps([[int(sample), zlib.crc32(image.tobytes())] for sample, image in zip(batch.samples, batch.images)]), flush=True)
    sys.stdin.readline()
print("null", flush=True)
sys.stdin.readline()
stats = loader.stats()
print(json.dumps({"fetches": stats.chunk_fetches, "shared": stats.shared_chunks, "notices": list(stats.notices)}), flush=True)
sys.stdin.readline()
"""


class Rank:
    def __init__(self, path, rank, folder):
        self.process = subprocess.Popen([sys.executable, "-c", RANK, str(path), str(rank), str(RANKS)], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)})

    def next(self):
        return json.loads(self.process.stdout.readline())

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def rest(self):
        """Batches to the end of the epoch."""
        batches = []
        while found := self.next():
            batches += found
            self.go_on()
        return batches

    def end(self):
        """The statistics. Threads of a rank read ahead of its epoch, so that they hold for all only when all have ended theirs."""
        self.go_on()
        stats = self.next()
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(timeout=60) == 0
        return stats


@pytest.fixture(params=["hdf5", "shard"])
def pack(packs, request):
    return packs / request.param


def expected_of(pack):
    dataset = chunkhit.ImageDataset(pack)
    return {sample: zlib.crc32(dataset[sample][0].tobytes()) for sample in range(len(dataset))}


def test_each_chunk_is_decoded_by_one_rank(pack, tmp_path):
    ranks = [Rank(pack, rank, tmp_path) for rank in range(RANKS)]
    batches = [rank.rest() for rank in ranks]
    found = [rank.end() for rank in ranks]
    assert {sample: crc for batch in batches for sample, crc in batch} == expected_of(pack)
    chunks = chunkhit.ImageLoader(pack).mixing().chunks
    assert sum(stats["fetches"] for stats in found) == chunks
    assert all(stats["fetches"] + stats["shared"] <= chunks and stats["notices"] == [] for stats in found)
    assert list(tmp_path.iterdir()) == [tmp_path / f"chunkhit-{os.geteuid()}"]
    assert not any((tmp_path / f"chunkhit-{os.geteuid()}").iterdir())


def test_others_go_on_beside_killed_and_stopped_ranks(pack, tmp_path):
    ranks = [Rank(pack, rank, tmp_path) for rank in range(RANKS)]
    first = [rank.next() for rank in ranks]
    ranks[0].process.kill()
    ranks[1].process.send_signal(signal.SIGSTOP)
    restarted = Rank(pack, 0, tmp_path)
    found = {}
    for rank in [restarted, *ranks[2:]]:
        if rank is not restarted:
            rank.go_on()
        found.update(rank.rest())
    ranks[1].process.send_signal(signal.SIGCONT)
    ranks[1].go_on()
    found.update(ranks[1].rest())
    for batch in first:
        found.update(batch)
    for rank in [restarted, *ranks[1:]]:
        rank.end()
    ranks[0].process.wait()
    assert found == expected_of(pack)


def test_a_rank_that_no_memory_is_shared_with_says_why(pack, tmp_path):
    (tmp_path / f"chunkhit-{os.geteuid()}").mkdir(mode=0o755)
    rank = Rank(pack, 0, tmp_path)
    rank.rest()
    assert [notice for notice in rank.end()["notices"] if "is open to other users" in notice]

"""What processes of a machine ask a server for: manifest, indexes and chunks once."""
import collections
import json
import multiprocessing
import shutil
import signal
import subprocess
import sys
import threading
import zlib

import pytest

import chunkhit
from ranks_test import RANKS, Rank, expected_of
from remote_test import FaultServer, Nginx, assert_equal, batches, nginx  # noqa: F401, a fixture

pytestmark = pytest.mark.usefixtures("network")
OPTIONS = dict(batch_size=16, threads=1, prefetch=1)
READER = """
import json, sys, zlib
import chunkhit
loader = chunkhit.ImageLoader(sys.argv[1], batch_size=16, cache="decoded", threads=2, prefetch=1)
print(json.dumps([[int(sample), zlib.crc32(image.tobytes())] for batch in loader.epoch(0) for sample, image in zip(batch.samples, batch.images)]))
"""
WHETHER_THE_SAME = "bytes=0-0"  # asked for where another process has read the rest


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where processes find each other, and no others."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def asked(server):
    """How often each range was asked for."""
    return collections.Counter((path, ranges) for _, path, ranges, _ in server.requests() if ranges != WHETHER_THE_SAME)


@pytest.mark.parametrize("pack", ["hdf5", "shard"])
def test_ranks_ask_for_nothing_twice(packs, nginx, folder, pack):  # noqa: F811
    nginx.forget_requests()
    ranks = [Rank(f"{nginx.url}/images/{pack}", rank, folder) for rank in range(RANKS)]
    found = [sample for rank in ranks for sample in rank.rest()]
    stats = [rank.end() for rank in ranks]
    assert dict(map(tuple, found)) == expected_of(packs / pack)
    assert all(each["notices"] == [] for each in stats)
    assert sum(each["fetches"] for each in stats) == chunkhit.ImageLoader(packs / pack).mixing().chunks
    assert set(asked(nginx).values()) == {1}


def test_what_is_open_is_opened_again_by_a_byte_of_each_file(packs, ratings, nginx):  # noqa: F811
    first = chunkhit.ImageLoader(f"{nginx.url}/images/hdf5", **OPTIONS)
    nginx.forget_requests()
    second = chunkhit.ImageLoader(f"{nginx.url}/images/hdf5", **OPTIONS)
    requests = nginx.requests()
    assert {ranges for _, _, ranges, _ in requests} == {WHETHER_THE_SAME}
    assert len(requests) == 1 + len(list((packs / "hdf5").glob("part-*.h5")))
    assert_equal(batches(first), batches(second))


def test_a_pack_that_was_replaced_is_opened_anew(packs, folder):
    root = folder / "root"
    shutil.copytree(packs / "shard", root / "pack")
    with Nginx(root, folder / "nginx") as server:
        before = chunkhit.ImageLoader(f"{server.url}/pack", **OPTIONS)
        shutil.rmtree(root / "pack")
        chunkhit.pack_images(packs / "images", root / "pack", container="shard", resize=(12, 16))
        after = chunkhit.ImageLoader(f"{server.url}/pack", **OPTIONS)
        assert_equal(batches(after), batches(chunkhit.ImageLoader(root / "pack", **OPTIONS)))
        with pytest.raises(chunkhit.Error, match="it was replaced"):
            batches(before)


@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGSTOP])
def test_nobody_waits_for_one_that_was_opening(packs, folder, ends):
    hangs = threading.Event()

    def fault(path, first, last, number):
        if "part-" not in path or hangs.is_set():
            return None
        hangs.set()
        return {"delay": 600}

    with FaultServer(packs, fault) as server:
        url = f"{server.url}/shard"
        other = subprocess.Popen([sys.executable, "-c", "import chunkhit, sys; chunkhit.ImageLoader(sys.argv[1])", url])
        assert hangs.wait(60)
        other.send_signal(ends)
        assert_equal(batches(chunkhit.ImageLoader(url, **OPTIONS)), batches(chunkhit.ImageLoader(packs / "shard", **OPTIONS)))
        other.kill()
        other.wait()


def test_an_error_of_opening_is_met_by_each(packs, folder):
    root = folder / "root"
    shutil.copytree(packs / "shard", root / "pack")
    part = next((root / "pack").glob("part-*.zst"))
    part.write_bytes(part.read_bytes()[:-100])
    with Nginx(root, folder / "nginx") as server:
        for _ in range(2):
            with pytest.raises(chunkhit.Error, match=part.name):
                chunkhit.ImageLoader(f"{server.url}/pack", **OPTIONS)


def test_forked_workers_ask_for_what_their_parent_has_not(packs, nginx):  # noqa: F811
    dataset = chunkhit.ImageDataset(f"{nginx.url}/images/shard")
    expected = expected_of(packs / "shard")
    assert zlib.crc32(dataset[0][0].tobytes()) == expected[0]
    nginx.forget_requests()

    def read(results):
        nonlocal dataset
        results.put({sample: zlib.crc32(dataset[sample][0].tobytes()) for sample in reversed(range(len(dataset)))})
        dataset = None

    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=read, args=(results,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    assert [results.get(timeout=60) for _ in workers] == [expected] * 3
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert set(asked(nginx).values()) == {1} and len(asked(nginx)) == chunkhit.ImageLoader(packs / "shard").mixing().chunks - 1


def test_a_server_that_is_silent_for_long_changes_no_pixel(packs, folder, monkeypatch):
    """A thread took the bytes that another one of its process waited for: the process crashed, others got zeros."""
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "60")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    # Longer than others wait for a process that finishes nothing; what opening reads begins with the file.
    with FaultServer(packs, lambda path, first, last, number: {"delay": 8} if first > 0 else None) as server:
        readers = [subprocess.Popen([sys.executable, "-c", READER, f"{server.url}/shard"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
        found = [reader.communicate(timeout=300)[0] for reader in readers]
    assert [reader.returncode for reader in readers] == [0, 0]
    assert [dict(json.loads(text)) for text in found] == [expected_of(packs / "shard")] * 2


@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGSTOP])
def test_others_fetch_what_one_had_asked_for(packs, folder, monkeypatch, ends):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    hangs = threading.Event()

    def fault(path, first, last, number):
        if first == 0 or hangs.is_set():
            return None
        hangs.set()
        return {"delay": 600}

    with FaultServer(packs, fault) as server:
        command = [sys.executable, "-c", READER, f"{server.url}/shard"]
        other = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        assert hangs.wait(60)
        other.send_signal(ends)
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, check=True).stdout
        other.kill()
        other.wait()
    assert dict(json.loads(found)) == expected_of(packs / "shard")


def test_ranks_fill_one_folder(packs, nginx, folder, monkeypatch):  # noqa: F811
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    loaders = [chunkhit.ImageLoader(f"{nginx.url}/images/shard", cache="none", cache_dir=folder / "kept", rank=rank, world_size=2, **OPTIONS) for rank in range(2)]
    for loader in loaders:
        batches(loader, 0)
    nginx.forget_requests()
    found = {int(sample): zlib.crc32(image.tobytes()) for loader in loaders for batch in loader.epoch(1) for sample, image in zip(batch.samples, batch.images)}
    assert found == expected_of(packs / "shard")
    assert not nginx.requests()

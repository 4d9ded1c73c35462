"""Packs on servers: nginx over http and https, and a server that faults."""
import concurrent.futures
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from described_order import EPOCH_ORDER, Permutation, random_bits  # noqa: E402
from read_batches import assert_equal, batches  # noqa: E402
from servers import FaultServer, Nginx, make_certificate  # noqa: E402

pytestmark = pytest.mark.usefixtures("network")


@pytest.fixture(scope="module")
def nginx(packs, ratings, tmp_path_factory):
    work = tmp_path_factory.mktemp("nginx")
    (work / "root").mkdir()
    (work / "root" / "images").symlink_to(packs)
    (work / "root" / "ratings").symlink_to(ratings[0])
    with Nginx(work / "root", work) as server:
        yield server


@pytest.mark.parametrize("pack", ["hdf5", "shard"])
@pytest.mark.parametrize("shuffle", ["none", "window", "global"])
@pytest.mark.parametrize("cache", ["decoded", "compressed", "none"])
def test_gives_the_batches_of_the_local_pack(packs, nginx, pack, shuffle, cache):
    options = dict(batch_size=16, shuffle=shuffle, window_chunks=3, seed=5, cache=cache)
    local = chunkhit.ImageLoader(packs / pack, **options)
    remote = chunkhit.ImageLoader(f"{nginx.url}/images/{pack}", **options)
    for epoch in range(3):
        assert_equal(batches(remote, epoch), batches(local, epoch))
    assert remote.stats().remote_bytes > 0 and local.stats().remote_bytes == 0


@pytest.mark.parametrize("shuffle", ["none", "window", "global"])
@pytest.mark.parametrize("cache", ["decoded", "compressed", "none"])
def test_gives_the_batches_of_a_local_and_a_remote_pack_together(packs, nginx, shuffle, cache):
    options = dict(batch_size=16, shuffle=shuffle, window_chunks=3, seed=5, cache=cache)
    local = chunkhit.ImageLoader([packs / "shard", packs / "hdf5"], **options)
    mixed = chunkhit.ImageLoader([packs / "shard", f"{nginx.url}/images/hdf5"], **options)
    for epoch in range(2):
        assert_equal(batches(mixed, epoch), batches(local, epoch))
    assert 0 < mixed.stats().remote_bytes < mixed.stats().stored_bytes


@pytest.mark.parametrize("container", ["shard", "hdf5"])
def test_gives_rows_of_remote_matrices(ratings, nginx, tmp_path, container):
    folder, _ = ratings
    options = dict(chunk_rows=16) if container == "shard" else {}
    chunkhit.pack_sparse(folder / "ratings.csv", folder / f"as-{container}", container=container, **options)
    local = chunkhit.SparseLoader(folder / f"as-{container}", batch_size=20, shuffle="window")
    remote = chunkhit.SparseLoader(f"{nginx.url}/ratings/as-{container}", batch_size=20, shuffle="window")
    for one, other in zip(remote.epoch(0), local.epoch(0)):
        np.testing.assert_array_equal(one.rows, other.rows)
        np.testing.assert_array_equal(one.x, other.x)
    assert remote.row_id(3) == local.row_id(3)
    pairs = [chunkhit.SparseLoader(path, format="pairs", shuffle="window", window_chunks=3, negatives=2)
             for path in (folder / f"as-{container}", f"{nginx.url}/ratings/as-{container}")]
    for one, other in zip(*pairs, strict=True):
        for found, expected in zip(one.x, other.x):
            np.testing.assert_array_equal(found, expected)


def test_takes_parts_manifests_lists_and_datasets(packs, nginx):
    url = f"{nginx.url}/images"
    part = chunkhit.ImageLoader(f"{url}/hdf5/part-00000.h5", batch_size=100)
    manifest = chunkhit.ImageLoader(f"{url}/hdf5/manifest.json", batch_size=100)
    both = chunkhit.ImageLoader([f"{url}/hdf5", str(packs / "shard")], batch_size=100)
    assert (part.size, manifest.size, both.size) == (100, 100, 200)
    dataset, local = chunkhit.ImageDataset(f"{url}/hdf5"), chunkhit.ImageDataset(packs / "hdf5")
    np.testing.assert_array_equal(dataset[[90, 3, 55]][0], local[[90, 3, 55]][0])


def test_reads_only_what_batches_need(packs, nginx):
    loader = chunkhit.ImageLoader(f"{nginx.url}/images/shard", batch_size=100, cache="none", threads=1, prefetch=1)
    nginx.forget_requests()
    assert len(batches(loader)) == 1
    time.sleep(0.1)
    ranges = [asked for _, _, asked, _ in nginx.requests()]
    # 15 chunks, those of the next epoch, which is made ahead, and those that are asked for ahead: once an epoch.
    assert 15 <= len(ranges) <= 45
    assert all(ranges.count(asked) <= 3 for asked in ranges)


@pytest.mark.parametrize("count, requests", [(5000, 2), (100_000, 4)])
def test_opening_asks_for_an_index_once(tmp_path, count, requests):
    """One of more than 4 MB was read once more for the hash of its part, by a request for each 256 KiB."""
    pixels = np.random.default_rng(1).integers(0, 256, (count, 8, 8, 1), np.uint8)
    with chunkhit.ImageWriter(tmp_path / "many", container="shard") as writer:
        for index, image in enumerate(pixels):
            writer.add(image, index % 3)
    with Nginx(tmp_path, tmp_path / "server") as server:
        chunkhit.ImageLoader(f"{server.url}/many", batch_size=100)
        asked = [asked for _, path, asked, _ in server.requests() if path.endswith(".zst")]
    ranges = sorted(tuple(map(int, each.removeprefix("bytes=").split("-"))) for each in asked)
    assert len(ranges) <= requests and ranges[0] == (0, 65535)
    assert all(end < begin for (_, end), (begin, _) in zip(ranges, ranges[1:])), ranges


def test_https_needs_a_certificate_that_is_trusted(packs, tmp_path, monkeypatch):
    certificate = make_certificate(tmp_path)
    with Nginx(packs, tmp_path / "nginx", certificate) as server:
        with pytest.raises(chunkhit.Error, match="certificate"):
            chunkhit.ImageLoader(f"{server.url}/hdf5")
        monkeypatch.setenv("CURL_CA_BUNDLE", str(certificate[0]))
        options = dict(batch_size=16, shuffle="global")
        assert_equal(batches(chunkhit.ImageLoader(f"{server.url}/hdf5", **options)),
                     batches(chunkhit.ImageLoader(packs / "hdf5", **options)))


# What a server may do, each for some requests, without a batch being lost.
FAULTS = {
    "cut": lambda path, first, last, number: {"cut": 4096} if number % 3 == 1 else None,
    "503": lambda path, first, last, number: {"status": 503} if number % 3 == 1 else None,
    "429": lambda path, first, last, number: {"status": 429, "headers": {"Retry-After": "1"}} if number == 9 else None,
    "slow": lambda path, first, last, number: {"pause": 0.02} if number % 5 == 1 else None,
    "truncated": lambda path, first, last, number: {"longer": 0, "shorter": 100} if number % 4 == 1 else None,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_survives(packs, fault):
    expected = batches(chunkhit.ImageLoader(packs / "hdf5", batch_size=16, shuffle="window"))
    with FaultServer(packs, FAULTS[fault]) as server:
        found = batches(chunkhit.ImageLoader(f"{server.url}/hdf5", batch_size=16, shuffle="window"))
    assert_equal(found, expected)


def later(fault, path="part-00000"):
    """Faults only once the part was opened: for its chunks."""
    return lambda asked, first, last, number: fault if path in asked and number > 6 else None


@pytest.mark.parametrize("fault, code, message", [
    ({"status": 404}, "bad_data", "part-00000.h5: HTTP 404"),
    ({"status": 403}, "usage", "HTTP 403 Forbidden: write user and password to ~/.netrc"),
    ({"status": 500}, "try_again", r"HTTP 500 .*tried \d+ times? in"),
    ({"shift": 1}, "bad_data", r"answers with bytes from \d+ on, expected \d+"),
    ({"ignores_range": True}, "bad_data", "does not support range requests"),
    ({"etag": '"other"'}, "bad_data", 'has ETag "other", expected .*: it was replaced since it was opened'),
    ({"longer": 5}, "bad_data", r"has \d+ bytes, expected \d+: it was replaced since it was opened"),
    ({"silent": True}, "try_again", r"tried \d+ times? in"),
    ({"cut": 0}, "try_again", r"tried \d+ times? in"),
])
def test_says_what_a_server_did_wrong(packs, monkeypatch, fault, code, message):
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "2")
    with FaultServer(packs, later(fault)) as server:
        loader = chunkhit.ImageLoader(f"{server.url}/hdf5", batch_size=16, cache="none")
        with pytest.raises(chunkhit.Error, match=message) as raised:
            batches(loader)
        assert raised.value.code == code


@pytest.mark.parametrize("pack", ["hdf5", "shard"])
def test_a_chunk_that_was_damaged_on_its_way_is_fetched_again(packs, pack):
    damaged, is_open = set(), threading.Event()

    def damage(path, first, last, number):
        if not is_open.is_set() or first in damaged:
            return None
        damaged.add(first)
        return {"damages": True}
    with FaultServer(packs, damage) as server:
        loader = chunkhit.ImageLoader(f"{server.url}/{pack}", batch_size=16, cache="none")
        is_open.set()
        assert_equal(batches(loader), batches(chunkhit.ImageLoader(packs / pack, batch_size=16)))
        assert damaged
    is_open.clear()
    with FaultServer(packs, lambda *_: {"damages": True} if is_open.is_set() else None) as server:
        loader = chunkhit.ImageLoader(f"{server.url}/{pack}", batch_size=16, cache="none")
        is_open.set()
        with pytest.raises(chunkhit.Error, match=rf"{server.url}/{pack}/part-.*: chunk .*: checksum") as raised:
            batches(loader)
        assert raised.value.code == "bad_data"


def test_follows_redirects_but_not_for_ever(packs, monkeypatch):
    with FaultServer(packs) as target:
        def redirect(path, first, last, number):
            return {"status": 302, "headers": {"Location": f"{target.url}{path}"}}
        with FaultServer(packs, redirect) as server:
            assert len(batches(chunkhit.ImageLoader(f"{server.url}/hdf5", batch_size=16))) == 7

    def endless(path, first, last, number):
        return {"status": 302, "headers": {"Location": path}}
    with FaultServer(packs, endless) as server, pytest.raises(chunkhit.Error, match="(?i)redirects"):
        chunkhit.ImageLoader(f"{server.url}/hdf5")


def test_waits_for_a_server_behind_a_redirect(packs, tmp_path, monkeypatch):
    expected = batches(chunkhit.ImageLoader(packs / "hdf5", batch_size=16))
    with Nginx(packs, tmp_path) as target:
        def redirect(path, first, last, number):
            return {"status": 302, "headers": {"Location": f"{target.url}{path}"}}
        with FaultServer(packs, redirect) as server:
            loader = chunkhit.ImageLoader(f"{server.url}/hdf5", batch_size=16, cache="none", on_corrupt="skip")
            target.stop()
            restart = threading.Timer(1, target.start)
            restart.start()
            assert_equal(batches(loader), expected)
            restart.join()
            assert loader.stats().corrupt_samples == 0
            target.stop()
            monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "1")
            with pytest.raises(chunkhit.Error, match="(?i)connect.*tried") as raised:
                chunkhit.ImageLoader(f"{server.url}/hdf5")
            assert raised.value.code == "try_again"


@pytest.mark.parametrize("url, message", [
    ("http://127.0.0.1:1/pack", r"manifest.json: .*(?i:connect).*tried \d+ times?"),
    ("ftp://127.0.0.1/pack", "unknown scheme, expected https://, http:// or s3://"),
    ("HTTP://127.0.0.1/pack", "unknown scheme, expected https://, http:// or s3://"),
    ("https://", "URL without a host"),
    ("https://user:secret@127.0.0.1/pack", "write them to ~/.netrc"),
    ("https://user:a/secret@127.0.0.1/pack", "write them to ~/.netrc"),
    ("https://user:12/secret@127.0.0.1/pack", "write them to ~/.netrc"),
    ("https://127.0.0.1/pack?token=secret", "a URL with a query"),
    ("s3://AKIA:secret@bucket/pack", "set AWS_ACCESS_KEY_ID"),
])
def test_rejects_urls(monkeypatch, url, message):
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "1")
    with pytest.raises(chunkhit.Error, match=message) as raised:
        chunkhit.ImageLoader(url)
    assert "secret" not in str(raised.value)


def test_a_missing_pack_is_named(nginx):
    with pytest.raises(chunkhit.Error, match="manifest.json: HTTP 404 Not Found; expected the URL of a pack's folder"):
        chunkhit.ImageLoader(f"{nginx.url}/nothing")


def test_survives_a_restart_of_the_server_in_mid_epoch(packs, tmp_path):
    expected = batches(chunkhit.ImageLoader(packs / "shard", batch_size=4, shuffle="window", window_chunks=2))
    with Nginx(packs, tmp_path) as server:
        loader = chunkhit.ImageLoader(f"{server.url}/shard", batch_size=4, shuffle="window", window_chunks=2,
                                      prefetch=1, cache_bytes=20000, threads=1)
        epoch, found = iter(loader.epoch(0)), []
        for _ in range(5):
            batch = next(epoch)
            found.append((batch.images.copy(), batch.labels.copy(), batch.samples.copy()))
        server.stop()
        restart = threading.Timer(1.5, server.start)
        restart.start()
        for batch in epoch:
            found.append((batch.images.copy(), batch.labels.copy(), batch.samples.copy()))
        restart.join()
    assert_equal(found, expected)


def test_goes_on_after_a_server_was_away_for_too_long(packs, tmp_path, monkeypatch):
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "0.5")
    options = dict(batch_size=4, shuffle="window", window_chunks=2, prefetch=1, cache_bytes=20000, threads=1)
    expected = batches(chunkhit.ImageLoader(packs / "shard", **options))
    with Nginx(packs, tmp_path) as server:
        loader = chunkhit.ImageLoader(f"{server.url}/shard", **options)
        found = []
        with pytest.raises(chunkhit.Error) as raised:
            for batch in loader.epoch(0):
                found.append((batch.images.copy(), batch.labels.copy(), batch.samples.copy()))
                if len(found) == 5:
                    server.stop()
        assert raised.value.code == "try_again"
        server.start()
        loader.load_state_dict(loader.state_dict())
        found += batches(loader)
    assert_equal(found, expected)


def test_the_second_epoch_comes_from_the_disk(packs, nginx, tmp_path):
    options = dict(batch_size=8, shuffle="window", window_chunks=1, cache="none", cache_bytes=20000, threads=1, prefetch=1)
    local = chunkhit.ImageLoader(packs / "shard", **options)
    loader = chunkhit.ImageLoader(f"{nginx.url}/images/shard", cache_dir=tmp_path / "cache", **options)
    assert_equal(batches(loader, 0), batches(local, 0))
    fetched = loader.stats().remote_bytes
    nginx.forget_requests()
    assert_equal(batches(loader, 1), batches(local, 1))
    assert nginx.requests() == [] and loader.stats().remote_bytes == fetched
    assert loader.stats().disk_chunks >= 15
    # Another process, or a restart, has them, too.
    again = chunkhit.ImageLoader(f"{nginx.url}/images/shard", cache_dir=tmp_path / "cache", **options)
    nginx.forget_requests()
    assert_equal(batches(again, 0), batches(local, 0))
    assert again.stats().remote_bytes == 0 and nginx.requests() == []


def test_a_damaged_file_of_the_disk_cache_is_fetched_again(packs, nginx, tmp_path):
    options = dict(batch_size=16, cache="none")
    url, cache = f"{nginx.url}/images/shard", tmp_path / "cache"
    expected = batches(chunkhit.ImageLoader(url, cache_dir=cache, **options))
    files = sorted(cache.glob("*/*.chunk"))
    assert len(files) == 15
    damaged = bytearray(files[4].read_bytes())
    damaged[7] ^= 1
    files[4].write_bytes(damaged)
    files[6].write_bytes(b"")
    loader = chunkhit.ImageLoader(url, cache_dir=cache, **options)
    assert_equal(batches(loader), expected)
    assert loader.stats().remote_bytes > 0
    fresh = chunkhit.ImageLoader(url, cache_dir=cache, **options)
    assert_equal(batches(fresh), expected)
    assert fresh.stats().remote_bytes == 0


@pytest.mark.parametrize("shuffle", ["none", "window"])
def test_a_small_disk_keeps_what_is_needed_soonest(packs, nginx, tmp_path, shuffle):
    url, cache, size = f"{nginx.url}/images/shard", tmp_path / "cache", 8 * 4096
    loader = chunkhit.ImageLoader(url, batch_size=10, shuffle=shuffle, window_chunks=2, cache="none", threads=1,
                                  prefetch=1, cache_dir=cache, cache_disk_bytes=size)
    nginx.forget_requests()
    for epoch in range(6):
        assert len(batches(loader, epoch)) == 10
        assert len(list(cache.glob("*/*.chunk"))) <= 8
    # 8 of 15 chunks fit, and are found in each epoch but the first; a few of the next one were asked for, too.
    assert len(nginx.requests()) <= 15 + 6 * 7
    assert loader.stats().disk_chunks > 0
    assert [note for note in loader.stats().notices if "fetched chunks not kept, for lack of room: cache_disk_bytes" in note]
    del loader
    assert int.from_bytes((cache / "used-bytes").read_bytes(), "little") == 4096 * len(list(cache.glob("*/*.chunk")))


def test_a_small_disk_lacks_only_what_the_next_epoch_needs_last(packs, nginx, tmp_path):
    loader = chunkhit.ImageLoader(f"{nginx.url}/images/shard", batch_size=7, shuffle="window", window_chunks=1, seed=3,
                                  cache="none", cache_bytes=12000, threads=1, prefetch=1, cache_dir=tmp_path / "cache",
                                  cache_disk_bytes=8 * 4096)
    nginx.forget_requests()
    batches(loader, 0)
    epoch = iter(loader.epoch(1))
    for _ in range(12):
        next(epoch)
    # Each chunk of the shard begins at a multiple of 4096 bytes, behind its header.
    asked = [int(ranges[6:].split("-")[0]) // 4096 - 1 for _, _, ranges, _ in nginx.requests()]
    visits = Permutation(15, random_bits(3, EPOCH_ORDER, 1))
    assert set(asked) == set(range(15)) and len(asked) > 15
    assert [asked.count(visits(visit)) for visit in range(8)] == 8 * [1]


def test_processes_share_the_disk_cache(packs, nginx, tmp_path):
    url, cache = f"{nginx.url}/images/shard", tmp_path / "cache"
    program = ("import sys, chunkhit, hashlib\n"
               "loader = chunkhit.ImageLoader(sys.argv[1], batch_size=16, cache='none', cache_dir=sys.argv[2])\n"
               "digest = hashlib.sha256(b''.join(batch.images.tobytes() for batch in loader.epoch(0))).hexdigest()\n"
               "print(digest, loader.stats().remote_bytes)\n")
    nginx.forget_requests()
    runs = [subprocess.Popen([sys.executable, "-c", program, url, cache], stdout=subprocess.PIPE, text=True)
            for _ in range(4)]
    found = [run.communicate()[0].split() for run in runs]
    assert len({digest for digest, _ in found}) == 1
    stored = sum(file.stat().st_size for file in cache.glob("*/*.chunk"))
    # Each chunk crosses the network once, not once a process.
    assert sum(int(count) for _, count in found) == stored


def test_a_process_that_does_not_go_on_holds_nobody_up(packs, nginx, tmp_path):
    url, cache = f"{nginx.url}/images/shard", tmp_path / "cache"
    options = dict(batch_size=4, shuffle="window", window_chunks=2, cache="none", cache_dir=cache, threads=2)
    stopped = chunkhit.ImageLoader(url, **options)
    next(stopped.epoch(0))  # it has asked for all chunks ahead
    with concurrent.futures.ThreadPoolExecutor(1) as reading, contextlib.closing(stopped):
        found = reading.submit(batches, chunkhit.ImageLoader(url, seed=8, **options)).result(timeout=60)  # not 10 s a chunk
    assert_equal(found, batches(chunkhit.ImageLoader(packs / "shard", seed=8, **{**options, "cache_dir": ""})))


def test_a_killed_process_leaves_a_usable_cache(packs, nginx, tmp_path):
    url, cache = f"{nginx.url}/images/shard", tmp_path / "cache"
    program = ("import sys, os, chunkhit\n"
               "loader = chunkhit.ImageLoader(sys.argv[1], batch_size=7, cache='none', cache_dir=sys.argv[2])\n"
               "for number, batch in enumerate(loader.epoch(0)):\n"
               "    if number == int(sys.argv[3]): os.kill(os.getpid(), 9)\n")
    for batch in (0, 3, 9):
        assert subprocess.run([sys.executable, "-c", program, url, cache, str(batch)]).returncode == -signal.SIGKILL
    pack = next(path for path in cache.iterdir() if path.is_dir())
    (pack / "00000-00000002-0000000000000000.chunk.begun").write_bytes(b"left over")
    expected = batches(chunkhit.ImageLoader(packs / "shard", batch_size=16))
    assert_equal(batches(chunkhit.ImageLoader(url, batch_size=16, cache="none", cache_dir=cache)), expected)
    assert not list(cache.glob("*/*.begun"))
    files = list(cache.glob("*/*.chunk"))
    assert len(files) == 15
    assert int.from_bytes((cache / "used-bytes").read_bytes(), "little") == 4096 * 15


def test_a_full_disk_costs_only_time(packs, nginx, tmp_path):
    if os.getuid() != 0:
        pytest.skip("needs root to mount a small file system")
    cache = tmp_path / "cache"
    cache.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", cache], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        url = f"{nginx.url}/images/shard"
        loader = chunkhit.ImageLoader(url, batch_size=16, cache="none", cache_dir=cache, cache_disk_bytes=10**9)
        expected = chunkhit.ImageLoader(packs / "shard", batch_size=16, cache="none")
        for epoch in range(3):
            assert_equal(batches(loader, epoch), batches(expected, epoch))
        assert loader.stats().disk_chunks > 0
        del loader
    finally:
        subprocess.run(["umount", "-l", cache], check=True)


def test_a_folder_of_something_else_is_no_cache(nginx, tmp_path):
    (tmp_path / "thesis.txt").write_text("irreplaceable")
    url = f"{nginx.url}/images/shard"
    with pytest.raises(chunkhit.Error, match="cache_dir: .*: holds thesis.txt, expected an empty folder or a cache"):
        chunkhit.ImageLoader(url, cache_dir=tmp_path)
    with pytest.raises(chunkhit.Error, match="cache_disk_bytes: needs cache_dir"):
        chunkhit.ImageLoader(url, cache_disk_bytes=100)
    with pytest.raises(chunkhit.Error, match="cache_dir: ~/chunks: ~ is for shells"):
        chunkhit.ImageLoader(url, cache_dir="~/chunks")
    with pytest.raises(chunkhit.Error, match="^cache_dir: /proc/chunks: cannot create"):
        chunkhit.ImageLoader(url, cache_dir="/proc/chunks")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "chunkhit-disk-cache").write_text("chunkhit disk cache 9\n")
    with pytest.raises(chunkhit.Error, match="made by another version"):
        chunkhit.ImageLoader(url, cache_dir=tmp_path / "other")


def test_info_and_verify_read_remote_packs(packs, nginx):
    url = f"{nginx.url}/images/shard"
    assert chunkhit.pack_info(url)["samples"] == 100
    report = chunkhit.verify_pack(url)
    assert (report["samples"], report["problems"]) == (100, [])
    with FaultServer(packs, lambda path, first, last, number: {"shift": 0, "status": 404}
                     if path.endswith("part-00000.json") else None) as server:
        assert any("part-00000.json: HTTP 404" in problem for problem in chunkhit.verify_pack(f"{server.url}/hdf5")["problems"])


def test_a_forked_child_reads_with_connections_of_its_own(packs, nginx):
    dataset = chunkhit.ImageDataset(f"{nginx.url}/images/shard")
    expected = dataset[[5]][0]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        equal = np.array_equal(dataset[[5, 60]][0][0], expected[0])
        os.write(writing, b"1" if equal else b"0")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0 and os.read(reading, 1) == b"1"
    np.testing.assert_array_equal(dataset[[5]][0], expected)


def test_a_forked_child_may_end_with_the_loader_of_its_parent(packs, nginx):
    program = ("import gc, os, sys, chunkhit\n"
               "loader = chunkhit.ImageLoader(sys.argv[1], batch_size=16, cache='none')\n"
               "dataset = chunkhit.ImageDataset(sys.argv[1])\n"
               "next(iter(loader)), dataset[3]\n"
               "if os.fork() == 0:\n"
               "    dataset[5]\n"
               "    del loader, dataset\n"
               "    gc.collect()\n"
               "    sys.exit(0)\n"
               "assert os.wait()[1] == 0\n"
               "next(iter(loader)), dataset[5]\n")
    # Python 3.12 and later warn of any fork beside threads.
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", program, f"{nginx.url}/images/shard"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")


def test_nothing_is_packed_into_a_url(packs):
    for url in ("s3://bucket/train", "https://127.0.0.1/train"):
        with pytest.raises(chunkhit.Error, match=f"output: {url} is on a server, expected a folder here: a pack is written to a local one") as raised:
            chunkhit.pack_images(packs / "images", url)
        assert raised.value.code == "usage"


def test_the_memory_of_what_is_on_its_way_is_bounded(packs, nginx):
    for shuffle in ("window", "global"):
        with pytest.raises(chunkhit.Error, match="cache_bytes: this order needs"):
            chunkhit.ImageLoader(f"{nginx.url}/images/shard", shuffle=shuffle, cache="none", cache_bytes=3000)


def test_mixtures_samplers_and_states_are_those_of_local_packs(packs, nginx, tmp_path):
    url, options = f"{nginx.url}/images", dict(batch_size=10, shuffle="window", window_chunks=2, cache="none")
    for sampler in ({"subset": ["a"]}, {"sampler": {"a": 3.0, "b": 1.0}}):
        local = chunkhit.ImageLoader(packs / "shard", **options, **sampler)
        remote = chunkhit.ImageLoader(f"{url}/shard", cache_dir=tmp_path / "cache", **options, **sampler)
        for epoch in range(3):
            assert_equal(batches(remote, epoch), batches(local, epoch))
    local = chunkhit.ImageLoader({packs / "shard": 0.7, packs / "hdf5": 0.3}, **options)
    remote = chunkhit.ImageLoader({f"{url}/shard": 0.7, f"{url}/hdf5": 0.3}, cache_dir=tmp_path / "cache", **options)
    for epoch in range(3):
        assert_equal(batches(remote, epoch), batches(local, epoch))
    epoch = iter(local.epoch(1))
    next(epoch)
    remote.load_state_dict(local.state_dict())
    assert_equal(batches(remote, 1), [(b.images.copy(), b.labels.copy(), b.samples.copy()) for b in epoch])

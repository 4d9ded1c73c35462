"""What waits for a server can be interrupted, says what it waits for, and asks for much at a time."""
import concurrent.futures
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from servers import FaultServer, Nginx  # noqa: E402

pytestmark = pytest.mark.usefixtures("network")


@pytest.fixture
def interrupted(monkeypatch):
    """Calls a function into which Ctrl-C comes when it `waits()`, as it still does then. Nothing else ends it for a day."""
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "86400")

    def run(call, waits):
        def press():
            while not waits():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        def end(*_):
            assert waits()
            raise KeyboardInterrupt

        signal.signal(signal.SIGINT, end)
        threading.Thread(target=press, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            call()
    before = signal.getsignal(signal.SIGINT)
    yield run
    signal.signal(signal.SIGINT, before)


WAITS = {
    "refused": lambda path, *_: {"status": 503},
    "silent": lambda path, *_: {"silent": True},
    "silent part": lambda path, *_: {"silent": True} if path.endswith(".h5") else None,
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("open_it", [chunkhit.ImageLoader, chunkhit.ImageDataset, chunkhit.pack_info, chunkhit.verify_pack])
def test_ctrl_c_ends_opening(packs, interrupted, wait, open_it):
    if wait == "silent part" and open_it is chunkhit.pack_info:
        pytest.skip("reads no part")
    with FaultServer(packs, WAITS[wait]) as server:
        interrupted(lambda: open_it(f"{server.url}/hdf5"), server.has_failed.is_set)


@pytest.mark.parametrize("sizes", ["own", "one"])
def test_ctrl_c_ends_reading_samples(packs, interrupted, tmp_path, sizes):
    if sizes == "own":
        chunkhit.pack_images(packs / "images", tmp_path / "pack", sizes="own")
    else:
        (tmp_path / "pack").symlink_to(packs / "shard")
    opened = []
    with FaultServer(tmp_path, lambda *_: {"silent": True} if opened else None) as server:
        dataset = chunkhit.ImageDataset(f"{server.url}/pack")
        opened.append(dataset)
        interrupted(lambda: dataset[:50], server.has_failed.is_set)
        opened.clear()
        np.testing.assert_array_equal(dataset[3][0], chunkhit.ImageDataset(tmp_path / "pack")[3][0])


@pytest.fixture
def waiting(packs, monkeypatch):
    """A loader whose server is silent about chunks, and that server."""
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "86400")
    opened = []
    with FaultServer(packs, lambda *_: {"silent": True} if opened else None) as server:
        opened.append(chunkhit.ImageLoader(f"{server.url}/shard", cache="none"))
        yield opened[0], server


def test_ctrl_c_comes_before_the_batch(waiting, interrupted):
    loader, server = waiting
    epoch, begun = loader.epoch(0), []
    interrupted(lambda: begun.append(epoch) or next(epoch), lambda: begun and server.has_failed.is_set())
    assert loader.stats().batches == 0
    server.go_on.set()
    assert len(next(epoch).images) == 100


def test_another_thread_sees_the_statistics_before_the_batch(waiting):
    loader, server = waiting
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        batch = other.submit(next, loader.epoch(0))
        assert server.has_failed.wait(60)
        assert loader.stats().batches == 0 and loader.state_dict() != {} and not batch.done()
        server.go_on.set()
        assert len(batch.result().images) == 100 and loader.stats().batches == 1


def test_warns_while_a_server_fails(packs, monkeypatch, logs, caplog):
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "60")
    with FaultServer(packs, lambda *_: None if caplog.records else {"status": 503}) as server, \
            logs("HTTP 503.*tried again for up to", "chunkhit.remote") as found:
        assert len(chunkhit.ImageDataset(f"{server.url}/hdf5")) == 100
    assert len(found) == 1 and server.url in found[0].getMessage()


def test_commands_say_what_they_wait_for(packs, monkeypatch):
    """They waited for a minute without a word."""
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "30")
    has_said = threading.Event()
    with FaultServer(packs, lambda *_: None if has_said.is_set() else {"status": 503}) as server:
        command = [f"{os.environ['CHUNKHIT_TOOLS']}/pack-info", f"{server.url}/hdf5"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
            said = run.stderr.readline()
            has_said.set()
            said += run.communicate(timeout=60)[1]
    assert run.returncode == 0
    assert said == f"pack-info: {server.url}/hdf5/manifest.json: HTTP 503 Service Unavailable, tried again for up to 30 s\n"


def test_ctrl_c_ends_opening_by_a_command(packs):
    with FaultServer(packs, WAITS["silent"]) as server:
        bench = subprocess.Popen([f"{os.environ['CHUNKHIT_TOOLS']}/pack-bench", f"{server.url}/shard"])
        assert server.has_failed.wait(60)
        bench.send_signal(signal.SIGINT)
        assert bench.wait() == 128 + signal.SIGINT


def test_datasets_ask_for_many_chunks_at_a_time(packs):
    together, opened = threading.Barrier(15), []

    def fault(*_):
        if opened:
            together.wait(60)
    with FaultServer(packs, fault) as server:
        dataset = chunkhit.ImageDataset(f"{server.url}/shard")
        opened.append(dataset)
        for found, expected in zip(dataset[:], chunkhit.ImageDataset(packs / "shard")[:]):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["images", "rows"])
def test_datasets_keep_chunks_on_the_disk(packs, ratings, tmp_path, kind):
    folder, dataset_class = (packs, chunkhit.ImageDataset) if kind == "images" else (ratings[0], chunkhit.SparseDataset)
    if kind == "rows":
        chunkhit.pack_sparse(folder / "ratings.csv", tmp_path / "rows", container="shard", chunk_rows=16)
        folder = tmp_path
    name = "shard" if kind == "images" else "rows"
    with Nginx(folder, tmp_path / "nginx") as server:
        found = []
        for _ in range(2):
            server.forget_requests()
            dataset = dataset_class(f"{server.url}/{name}", cache_dir=tmp_path / "cache")
            opening = len(server.requests())
            found.append(dataset[:])
            asked = len(server.requests()) - opening
        assert asked == 0
    assert any((tmp_path / "cache").rglob("*.chunk"))
    for one, other in zip(np.atleast_1d(found[0]) if kind == "rows" else found[0], found[1]):
        np.testing.assert_array_equal(one, other)


def head(first, last, size, status="206 Partial Content", *more):
    lines = [f"HTTP/1.1 {status}", f"Content-Range: bytes {first}-{last}/{size}", f"Content-Length: {last - first + 1}", 'ETag: "1"', *more]
    return "\r\n".join([*lines, "", ""]).encode()


def slowly(data, first, last):
    yield head(first, last, len(data))
    for at in range(first, min(last + 1, first + 60)):
        yield data[at:at + 1]
        yield 0.3


def endless(begin, piece):
    def pieces(data, first, last):
        yield begin
        while True:
            yield piece
            yield 0.01
    return pieces


def once(*answer):
    return {"stream": lambda data, first, last: [part(data, first, last) if callable(part) else part for part in answer]}


def asked_back(seconds):
    return {"status": 503, "headers": {"Retry-After": seconds}}


HOSTILE = {
    "three bytes a second": {"stream": slowly},
    "a byte a connection": once(lambda data, first, last: head(first, last, len(data)) + data[first:first + 1]),
    "a failure without end": {"stream": endless(b"HTTP/1.1 500 Oops\r\n\r\n", b"oops" * 100)},
    "a failure without end, drop by drop": {"stream": endless(b"HTTP/1.1 404 Not Found\r\n\r\n", b"o")},
    "a redirect without end": {"stream": endless(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n", b"oops" * 100)},
    "a head without end": {"stream": endless(b"HTTP/1.1 206 Partial Content\r\n", b"X-More: and more\r\n")},
    "no answer": {"stream": endless(b"", b"")},
    "an empty answer": once(b""),
    "no HTTP": once(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "a short body": once(lambda data, first, last: head(first, last, len(data)) + data[first:(first + last) // 2]),
    "a long body": once(lambda data, first, last: head(first, last, len(data)).replace(b"Content-Length", b"X-Length") + data[first:] + data),
    "no range": once(b"HTTP/1.1 206 Partial Content\r\n\r\n", lambda data, first, last: data[first:last + 1]),
    "another range": {"shift": 1},
    "another size": {"longer": 7},
    "a size beyond all": once(lambda data, first, last: head(first, last, (1 << 64) - 1) + data[first:last + 1]),
    "other bytes": {"damages": True},
    "the whole file": {"ignores_range": True},
    "Retry-After 0": asked_back("0"), "Retry-After 1": asked_back("1"), "Retry-After 60": asked_back("60"),
    "Retry-After 10^9": asked_back("1000000000"), "Retry-After 10^30": asked_back("1" + "0" * 30),
    "a date": asked_back("Wed, 21 Oct 2065 07:28:00 GMT"), "a negative Retry-After": asked_back("-5"),
}


def read_from(packs, container, way, begins):
    """What a hostile server brings about: the samples, or the error."""
    opened = begins == "at once"
    with FaultServer(packs, lambda *_: {"etag": '"1"', **(HOSTILE[way] if opened else {})}) as server:
        try:
            dataset = chunkhit.ImageDataset(f"{server.url}/{container}")
            opened = True
            return dataset[:][0]
        except chunkhit.Error as error:
            return error


def test_no_server_stops_a_reader_for_ever_or_gives_it_wrong_bytes(packs, monkeypatch):
    """All at once: they wait, and do not compute. Slow servers, and failures without end, were read for ever."""
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "1")
    right = chunkhit.ImageDataset(packs / "shard")[:][0]
    cases = [(container, way, begins) for container in ("shard", "hdf5") for way in HOSTILE for begins in ("at once", "later")]
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as threads:
        results = list(threads.map(lambda case: read_from(packs, *case), cases))
    for case, found in zip(cases, results):
        if not isinstance(found, chunkhit.Error):
            np.testing.assert_array_equal(found, right, err_msg=str(case))


def evenly(data, first, last):
    """800 bytes a second, from the same time on for all requests."""
    yield head(first, last, len(data))
    for at in range(first, last + 1, 80):
        yield data[at:min(at + 80, last + 1)]
        yield 0.1


def test_requests_that_share_a_slow_server_were_each_called_too_slow(packs, tmp_path, monkeypatch):
    """The floor of 1 KiB a second was one for each request."""
    chunkhit.pack_images(packs / "images", tmp_path / "train", resize=(12, 9), container="shard", codec="none", chunk_samples=10)
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "4")
    opened = False
    with FaultServer(tmp_path, lambda *_: {"etag": '"1"', **({"stream": evenly} if opened else {})}) as server:
        dataset = chunkhit.ImageDataset(f"{server.url}/train")
        opened = True
        np.testing.assert_array_equal(dataset[:][0], chunkhit.ImageDataset(tmp_path / "train")[:][0])


def test_a_server_that_asks_to_be_left_alone_for_long_is_asked_again_in_time(packs, monkeypatch):
    """Retry-After of more than the limit ended reading after one try, in 0 seconds."""
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "1")
    with FaultServer(packs, lambda path, first, last, number: asked_back("60") if number == 0 else None) as server:
        assert len(chunkhit.ImageDataset(f"{server.url}/hdf5")) == 100


@pytest.fixture
def locked_cache(packs, tmp_path, monkeypatch):
    """A cache whose lock another process never gives back."""
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "1")
    (tmp_path / "cache").mkdir()
    with open(tmp_path / "cache" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tmp_path / "cache"


def test_a_lock_that_is_never_given_back_is_no_cache(packs, locked_cache):
    """Opening waited for it without end."""
    with FaultServer(packs) as server:
        loader = chunkhit.ImageLoader(f"{server.url}/shard", batch_size=100, shuffle="none", cache_dir=locked_cache)
        np.testing.assert_array_equal(next(iter(loader)).images, chunkhit.ImageDataset(packs / "shard")[:][0])
    assert [note for note in loader.stats().notices if f"{locked_cache}/lock: locked by another process" in note]


def test_ctrl_c_ends_waiting_for_a_lock(packs, locked_cache, interrupted):
    def waits():  # the lock is open here, too
        return [os.path.realpath(each) for each in pathlib.Path("/proc/self/fd").iterdir()].count(str(locked_cache / "lock")) > 1
    with FaultServer(packs) as server:
        interrupted(lambda: chunkhit.ImageDataset(f"{server.url}/shard", cache_dir=locked_cache), waits)


def test_what_others_plant_in_a_cache_is_not_followed(packs, tmp_path):
    """Pipes were waited for, and links led out of the cache."""
    cache, outside = tmp_path / "cache", tmp_path / "outside"
    with FaultServer(packs) as server:
        def read():
            return chunkhit.ImageDataset(f"{server.url}/shard", cache_dir=cache)[:][0]
        right = read()
        chunks = sorted(cache.rglob("*.chunk"))
        chunks[0].unlink()
        os.mkfifo(chunks[0])
        outside.write_text("precious")
        chunks[1].unlink()
        os.link(outside, f"{chunks[1]}.begun")
        np.testing.assert_array_equal(read(), right)
        np.testing.assert_array_equal(read(), right)
        assert outside.read_text() == "precious"
        pack = chunks[0].parent
        pack.rename(tmp_path / "elsewhere")
        pack.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(chunkhit.Error, match="cache_dir: .*cannot open the folder"):
            read()


@pytest.mark.parametrize("container", ["shard", "hdf5"])
def test_opening_asks_for_a_small_part_at_most_three_times(packs, container):
    """Parts were opened twice, and what was read of them was asked for again for their hash."""
    asked = []
    with FaultServer(packs, lambda path, *_: asked.append(path)) as server:
        dataset = chunkhit.ImageDataset(f"{server.url}/{container}")
    assert len(dataset) == 100
    parts = [path for path in asked if "part-" in path]
    assert all(parts.count(path) <= 3 for path in parts), parts


@pytest.mark.parametrize("container, sizes", [("shard", "fixed"), ("hdf5", "fixed"), ("shard", "own")])
def test_opening_a_shard_asked_for_the_padding_of_each_chunk(tmp_path, container, sizes):
    """A pack of 50 MB took 1,003 requests, because the head and the tail that opening asks for held few chunks."""
    chunk = {"chunk_samples": 2} if sizes == "fixed" else {"chunk_bytes": 20_000}
    pixels = np.random.default_rng(1).integers(0, 256, (300, 64, 64, 3), dtype=np.uint8)
    with chunkhit.ImageWriter(tmp_path / "pack", container=container, codec="none", sizes=sizes, **chunk) as writer:
        for image in pixels:
            writer.add(image, 0)
    asked = []
    with FaultServer(tmp_path, lambda path, first, last, _: asked.append((path, last - first))) as server:
        assert len(chunkhit.ImageDataset(f"{server.url}/pack")) == 300
    parts = [each for each in asked if "part-" in each[0]]
    chunks = sum(part["chunks"] for part in chunkhit.pack_info(tmp_path / "pack")["parts"])
    assert chunks >= 100 and len(parts) <= 3, parts

"""What waits for a server can be interrupted, says what it waits for, and asks for much at a time."""
import os
import signal
import sys
import time

import numpy as np
import pytest

import chunkhit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from servers import FaultServer, Nginx  # noqa: E402

pytestmark = pytest.mark.usefixtures("network")


@pytest.fixture
def interrupted():
    """Calls a function, into which Ctrl-C comes after a while; returns the seconds from there to its end."""
    def run(call, after=0.5):
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, after)
        begin = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            call()
        return time.monotonic() - begin - after
    before = signal.getsignal(signal.SIGALRM)
    yield run
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


WAITS = {
    "refused": lambda path, first, last, number: {"status": 503},
    "silent": lambda path, first, last, number: {"delay": 20} if number == 0 else None,
    "silent part": lambda path, first, last, number: {"delay": 20} if path.endswith(".h5") else None,
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("open_it", [chunkhit.ImageLoader, chunkhit.ImageDataset, chunkhit.pack_info, chunkhit.verify_pack])
def test_ctrl_c_ends_opening(packs, interrupted, wait, open_it):
    with FaultServer(packs, WAITS[wait]) as server:
        if wait == "silent part" and open_it is chunkhit.pack_info:
            pytest.skip("reads no part")
        assert interrupted(lambda: open_it(f"{server.url}/hdf5")) < 5


@pytest.mark.parametrize("sizes", ["own", "one"])
def test_ctrl_c_ends_reading_samples(packs, interrupted, tmp_path, sizes):
    if sizes == "own":
        chunkhit.pack_images(packs / "images", tmp_path / "pack", sizes="own")
    else:
        (tmp_path / "pack").symlink_to(packs / "shard")
    opened = []
    with FaultServer(tmp_path, lambda *_: {"delay": 20} if opened else None) as server:
        dataset = chunkhit.ImageDataset(f"{server.url}/pack")
        opened.append(dataset)
        assert interrupted(lambda: dataset[:50]) < 5
        opened.clear()
        np.testing.assert_array_equal(dataset[3][0], chunkhit.ImageDataset(tmp_path / "pack")[3][0])


def test_warns_while_a_server_fails(packs, monkeypatch):
    monkeypatch.setenv("CHUNKHIT_RETRY_SECONDS", "30")
    begin = time.monotonic()

    def away(path, first, last, number):
        return {"status": 503} if time.monotonic() - begin < 5 else None
    with FaultServer(packs, away) as server, pytest.warns(RuntimeWarning, match="HTTP 503.*tried again for up to") as found:
        assert len(chunkhit.ImageDataset(f"{server.url}/hdf5")) == 100
    assert len(found) == 1 and server.url in str(found[0].message)


def test_datasets_ask_for_many_chunks_at_a_time(packs, tmp_path):
    if not os.path.exists(Nginx.ECHO):
        pytest.skip("needs libnginx-mod-http-echo")
    local = chunkhit.ImageDataset(packs / "shard")
    with Nginx(packs, tmp_path, latency=0.5) as server:
        dataset = chunkhit.ImageDataset(f"{server.url}/shard")
        begin = time.monotonic()
        images, labels = dataset[:]
        assert time.monotonic() - begin < 0.5 * 15 / 2  # 15 chunks one after the other take twice as long
    np.testing.assert_array_equal(images, local[:][0])
    np.testing.assert_array_equal(labels, local[:][1])


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

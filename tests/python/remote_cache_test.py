"""The disk cache of remote packs beside others: what they may read of it, and what they may do to its files."""
import os
import stat

import pytest

import chunkhit
from remote_test import assert_equal, batches, nginx  # noqa: F401, a fixture

pytestmark = pytest.mark.usefixtures("network")
OPTIONS = dict(batch_size=16, cache="none", threads=1, prefetch=1)


def test_cached_chunks_were_readable_by_all_users(packs, nginx, tmp_path):  # noqa: F811
    cache = tmp_path / "cache"
    before = os.umask(0)
    try:
        batches(chunkhit.ImageLoader(f"{nginx.url}/images/shard", cache_dir=cache, **OPTIONS))
    finally:
        os.umask(before)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    for pack in (path for path in cache.iterdir() if path.is_dir()):
        assert stat.S_IMODE(pack.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in pack.iterdir()} == {0o600}
        pack.chmod(0o755)  # as an earlier version made it
    batches(chunkhit.ImageLoader(f"{nginx.url}/images/shard", cache_dir=cache, **OPTIONS))
    assert {stat.S_IMODE(path.stat().st_mode) for path in cache.iterdir() if path.is_dir()} == {0o700}


def test_a_number_that_another_process_cut_ended_the_reader(packs, nginx, tmp_path):  # noqa: F811
    """SIGBUS: the file was mapped."""
    cache = tmp_path / "cache"
    loader = chunkhit.ImageLoader(f"{nginx.url}/images/shard", cache_dir=cache, **OPTIONS)
    epoch = iter(loader.epoch(0))
    next(epoch)
    os.truncate(cache / "used-bytes", 0)
    for _ in epoch:
        pass
    assert_equal(batches(loader, 1), batches(chunkhit.ImageLoader(packs / "shard", **OPTIONS), 1))
    stored = 4096 * len(list(cache.glob("*/*.chunk")))
    assert stored == 4096 * 15
    assert int.from_bytes((cache / "used-bytes").read_bytes(), "little") == stored

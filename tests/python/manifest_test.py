"""How often opening reads a pack's manifest: with a million samples' labels it is the slow part of opening."""
import ctypes
import os
import struct

import pytest

import chunkhit

IN_OPEN, IN_CLOSE = 0x20, 0x18


class Opens:
    """Counts how often a file is opened; a close between two opens keeps the system from joining them."""

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK)
        watch = self.libc.inotify_add_watch(self.fd, os.fsencode(path), IN_OPEN | IN_CLOSE)
        if self.fd < 0 or watch < 0:
            pytest.skip("this system watches no files")

    def count(self):
        events, opens = os.read(self.fd, 1 << 16), 0
        while events:
            _, mask, _, length = struct.unpack_from("iIII", events)
            opens += mask & IN_OPEN != 0
            events = events[16 + length:]
        os.close(self.fd)
        return opens


@pytest.mark.parametrize("reader", [chunkhit.ImageLoader, chunkhit.ImageDataset])
@pytest.mark.parametrize("pack", ["hdf5", "shard"])
def test_images_read_it_once(packs, reader, pack):
    opens = Opens(packs / pack / "manifest.json")
    reader(packs / pack)
    assert opens.count() == 1


@pytest.mark.parametrize("reader", [chunkhit.SparseLoader, chunkhit.SparseDataset])
def test_matrices_read_it_once(ratings, reader):
    folder, _ = ratings
    for pack in ("whole", "split/train"):
        opens = Opens(folder / pack / "manifest.json")
        reader(folder / pack)
        assert opens.count() == 1

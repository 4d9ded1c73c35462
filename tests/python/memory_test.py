"""What stays in memory: nothing."""
import gc
import os
import sys
import tracemalloc
import weakref

import numpy as np

import chunkhit
from conftest import resident_bytes

EPOCHS = 1000


def read_epochs(loader, first, end):
    for epoch in range(first, end):
        for batch in loader.epoch(epoch):
            assert batch[0] is not None


def grown_bytes(loader):
    """Python's and the process's memory over the last epochs, after as many that fill caches."""
    read_epochs(loader, 0, EPOCHS // 10)
    gc.collect()
    tracemalloc.start()
    before, resident = tracemalloc.take_snapshot(), resident_bytes()
    read_epochs(loader, EPOCHS // 10, EPOCHS)
    gc.collect()
    resident = resident_bytes() - resident
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    return sum(each.size_diff for each in after.compare_to(before, "lineno")
               if "tracemalloc" not in each.traceback[0].filename), resident


def test_a_thousand_epochs_leave_nothing(packs, ratings):
    for loader in (chunkhit.ImageLoader(packs / "hdf5", batch_size=16, shuffle="window"),
                   chunkhit.SparseLoader(ratings[0] / "whole", batch_size=25, format="csr"),
                   chunkhit.SparseLoader(ratings[0] / "whole", batch_size=25)):
        of_python, of_process = grown_bytes(loader)
        assert of_python < 20_000 and of_process < 2_000_000


def test_loaders_and_batches_that_nobody_has_are_gone(packs):
    def count():
        gc.collect()
        return sum(type(each) is chunkhit.ImageLoader for each in gc.get_objects())

    before = count()
    loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16)
    batch = next(iter(loader))
    watched = weakref.ref(batch.images)
    del loader
    assert count() == before and watched() is not None
    assert sys.getrefcount(batch.images) == 3  # the tuple's, the property's result, the argument
    del batch
    assert watched() is None


def test_a_dropped_loader_frees_its_threads_and_memory_at_once(packs, ratings):
    """Loader and epoch referred to each other, so that only Python's collection of cycles ended them; and freed batches
    stayed in the allocator."""
    def threads():
        return len(os.listdir("/proc/self/task"))

    gc.collect()
    gc.disable()
    try:
        before, resident = threads(), resident_bytes()
        for _ in range(5):
            loaders = [chunkhit.ImageLoader(packs / "hdf5", batch_size=4000, dtype="float32", threads=2),
                       chunkhit.SparseLoader(ratings[0] / "whole", batch_size=20000, threads=2)]
            for loader in loaders:
                batches = iter(loader)
                next(batches)
                assert threads() > before
            kept = [loader.epoch(1) for loader in loaders]
            del loader, loaders, batches
            assert threads() > before, "an epoch keeps its loader"
            del kept
            assert threads() <= before  # threads of earlier tests may end meanwhile
        grown = resident_bytes() - resident
        assert grown < 30_000_000, grown
    finally:
        gc.enable()


def test_none_and_words_are_not_used_up(packs, ratings):
    """References to shared objects that a binding loses or takes too often show in their counts."""
    loader = chunkhit.SparseLoader(ratings[0] / "whole", batch_size=25)
    dataset = chunkhit.ImageDataset(packs / "hdf5")
    watched = [None, np.dtype(np.float32), np.dtype(np.uint64), chunkhit.CsrRows]
    before = [sys.getrefcount(each) for each in watched]
    for epoch in range(300):
        read_epochs(loader, epoch, epoch + 1)
        dataset[3], dataset[:5]
    assert all(abs(sys.getrefcount(each) - count) < 100 for each, count in zip(watched, before, strict=True))

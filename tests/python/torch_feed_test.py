"""What chunkhit.torch does with batches on their way to a GPU, on a stand-in for one: streams that run at once, and the
CPU's memory. What only a GPU can show is in torch_cuda_test.py."""
import contextlib
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import chunkhit  # noqa: E402
import chunkhit.torch  # noqa: E402
from chunkhit import _torch_cuda  # noqa: E402


class StandInStream:
    def __init__(self, device=None):
        self.waited_for = []

    def wait_event(self, event):
        self.waited_for.append(event)


class StandInEvent:
    def record(self, stream):
        self.recorded = True
        self.stream = stream

    def synchronize(self):
        assert self.recorded


@pytest.fixture
def stand_in(monkeypatch):
    """The caller's stream."""
    current = StandInStream()
    of_thread = threading.local()

    def current_stream(device):
        return getattr(of_thread, "stream", current)

    @contextlib.contextmanager
    def on_stream(stream):
        before = current_stream(None)
        of_thread.stream = stream
        yield
        of_thread.stream = before

    for name, value in {"Stream": StandInStream, "Event": StandInEvent, "current_stream": current_stream,
                        "device": lambda device: contextlib.nullcontext(), "stream": on_stream}.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(_torch_cuda.DeviceFeed, "_record", staticmethod(lambda made, stream: None))
    # A real copy: memory that is used again while a "copy" looks into it would not be one.
    monkeypatch.setattr(_torch_cuda, "to_device", lambda array, device: None if array is None else torch.from_numpy(
        np.array(array.view(np.int64) if array.dtype == np.uint64 else array)))
    monkeypatch.setattr(_torch_cuda, "pinned_memory", None)
    monkeypatch.setattr(chunkhit.torch, "pinned_memory", None)
    monkeypatch.setattr(chunkhit.torch, "cuda_device", lambda device: device and torch.device("cpu"))
    return current


@pytest.mark.parametrize("layout", ["nchw", "nhwc", None])
@pytest.mark.parametrize("dtype, normalize", [("uint8", None), ("float32", None), ("float32", dict(mean=[0.5, 0.25, 0], std=[1, 2, 4])),
                                              ("float16", None), ("bfloat16", dict(mean=[0.5, 0.25, 0], std=[1, 2, 4]))])
def test_gives_the_images_of_the_cpu(packs, stand_in, dtype, layout, normalize):
    options = dict(batch_size=16, shuffle="window", seed=3, dtype=dtype, layout=layout, normalize=normalize)
    there = chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", **options)
    here = chunkhit.torch.ImageLoader(packs / "hdf5", **options)
    for epoch in range(3):
        for found, expected in zip(there.epoch(epoch), here.epoch(epoch), strict=True):
            torch.testing.assert_close(found.images, expected.images, atol=1e-5, rtol=1e-5)
            assert found.labels.tolist() == expected.labels.tolist()
            assert (found.samples.tolist(), found.index) == (expected.samples.tolist(), expected.index)
    assert len(stand_in.waited_for) == 3 * 7


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("format", ["dense_f32", "dense_f16", "csr"])
def test_gives_the_rows_of_the_cpu(ratings, stand_in, format):
    options = dict(batch_size=25, shuffle="window", seed=3, format=format)
    there = chunkhit.torch.SparseLoader(ratings[0] / "split" / "test", device="cuda", **options)
    here = chunkhit.torch.SparseLoader(ratings[0] / "split" / "test", **options)
    for found, expected in zip(there, here, strict=True):
        for mine, theirs in ((found.x, expected.x), (found.held_out, expected.held_out)):
            assert (mine.dtype, mine.layout) == (theirs.dtype, theirs.layout)
            dense = [each.to_dense() if format == "csr" else each for each in (mine, theirs)]
            np.testing.assert_array_equal(*(each.numpy() for each in dense))


@pytest.mark.parametrize("position", range(8))
def test_a_state_leaves_out_the_batch_that_is_on_its_way(packs, stand_in, position):
    options = dict(batch_size=16, shuffle="window", seed=3)
    expected = [batch.samples.tolist() for batch in chunkhit.torch.ImageLoader(packs / "hdf5", **options)]
    loader = chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", **options)
    epoch = loader.epoch(0)
    for _ in range(position):
        next(epoch)
    other = chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", **options)
    other.load_state_dict(loader.state_dict())
    assert [batch.samples.tolist() for batch in other] == expected[position:]


def test_another_epoch_forgets_the_batch_that_was_on_its_way(packs, stand_in):
    loader = chunkhit.torch.ImageLoader(packs / "hdf5", batch_size=16, device="cuda")
    next(loader.epoch(0))
    assert [batch.index for batch in loader.epoch(5)] == list(range(7))
    assert {batch.epoch for batch in loader} == {6}


def test_a_damaged_chunk_takes_no_batch_before_it_away(packs, stand_in, tmp_path):
    part = bytearray((packs / "hdf5" / "part-00000.h5").read_bytes())
    damaged = chunkhit.ImageDataset(packs / "hdf5")[50][0].tobytes()
    part[part.find(damaged)] ^= 1
    (tmp_path / "part-00000.h5").write_bytes(part)
    for device in ("cuda", None):
        loader = chunkhit.torch.ImageLoader(tmp_path / "part-00000.h5", batch_size=7, device=device)
        epoch = loader.epoch(0)
        assert [next(epoch).index for _ in range(7)] == list(range(7))
        for _ in range(2):
            with pytest.raises(chunkhit.Error, match="checksum"):
                next(epoch)


@pytest.mark.parametrize("position", range(7))
def test_a_batch_for_which_memory_was_wanting_is_not_lost(packs, stand_in, monkeypatch, position):
    options = dict(batch_size=16, shuffle="window", seed=3)
    expected = [batch.samples.tolist() for batch in chunkhit.torch.ImageLoader(packs / "hdf5", **options)]
    loader = chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", **options)
    epoch, found = loader.epoch(0), []
    copy, copies = _torch_cuda.to_device, iter(range(100))

    def failing(array, device):
        if next(copies) == 3 * position:  # three arrays a batch
            raise RuntimeError("CUDA out of memory")
        return copy(array, device)

    monkeypatch.setattr(_torch_cuda, "to_device", failing)
    while len(found) < 7:
        try:
            found.append(next(epoch).samples.tolist())
        except RuntimeError:
            other = chunkhit.torch.ImageLoader(packs / "hdf5", **options)
            other.load_state_dict(loader.state_dict())
            assert [batch.samples.tolist() for batch in other] == expected[len(found) :]
    assert found == expected and next(copies) > 21


def test_says_what_is_not_made_on_a_device(packs, ratings, stand_in):
    with pytest.raises(chunkhit.Error, match="normalize: is for dtype=\"float32\""):
        chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", normalize=dict(mean=[0, 0, 0], std=[1, 1, 1]))
    with pytest.raises(chunkhit.Error, match="dtype: expected uint8, float32, float16, bfloat16, found 'float64'"):
        chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", dtype="float64")
    with pytest.raises(chunkhit.Error, match="dense_u8 is not made on a device"):
        chunkhit.torch.SparseLoader(ratings[0] / "whole", device="cuda", format="dense_u8")

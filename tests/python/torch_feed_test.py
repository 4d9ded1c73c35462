"""What chunkhit.torch does with batches on their way to a GPU, on a stand-in for one: streams that run at once, and the
CPU's memory. What only a GPU can show is in torch_cuda_test.py."""
import contextlib

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

    def synchronize(self):
        assert self.recorded


@pytest.fixture
def stand_in(monkeypatch):
    """The caller's stream."""
    current = StandInStream()
    for name, value in {"Stream": StandInStream, "Event": StandInEvent, "current_stream": lambda device: current,
                        "device": lambda device: contextlib.nullcontext(),
                        "stream": lambda stream: contextlib.nullcontext()}.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(_torch_cuda.DeviceFeed, "_record", staticmethod(lambda made, stream: None))
    # A real copy: memory that is used again while a "copy" looks into it would not be one.
    monkeypatch.setattr(_torch_cuda, "to_device", lambda array, device: None if array is None else torch.from_numpy(
        np.array(array.view(np.int64) if array.dtype == np.uint64 else array)))
    monkeypatch.setattr(_torch_cuda, "pinned_memory", None)
    monkeypatch.setattr(chunkhit.torch, "pinned_memory", None)
    monkeypatch.setattr(chunkhit.torch, "cuda_device", lambda device: device and torch.device("cpu"))
    return current


@pytest.mark.parametrize("as_", ["u8", "f32"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc", None])
@pytest.mark.parametrize("normalize", [None, dict(mean=[0.5, 0.25, 0], std=[1, 2, 4])])
def test_gives_the_images_of_the_cpu(packs, stand_in, as_, layout, normalize):
    options = dict(batch_size=16, shuffle="window", seed=3, as_=as_, layout=layout, normalize=normalize)
    there = chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", **options)
    here = chunkhit.torch.ImageLoader(packs / "hdf5", **options)
    for epoch in range(3):
        for found, expected in zip(there.epoch(epoch), here.epoch(epoch), strict=True):
            torch.testing.assert_close(found.images, expected.images, atol=1e-5, rtol=1e-5)
            assert found.labels.tolist() == expected.labels.tolist()
            assert (found.samples.tolist(), found.index) == (expected.samples.tolist(), expected.index)
    assert len(stand_in.waited_for) == 3 * 7


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("as_", ["dense_f32", "dense_f16", "csr"])
def test_gives_the_rows_of_the_cpu(ratings, stand_in, as_):
    options = dict(batch_size=25, shuffle="window", seed=3, as_=as_)
    there = chunkhit.torch.SparseLoader(ratings[0] / "split" / "test", device="cuda", **options)
    here = chunkhit.torch.SparseLoader(ratings[0] / "split" / "test", **options)
    for found, expected in zip(there, here, strict=True):
        for mine, theirs in ((found.x, expected.x), (found.held_out, expected.held_out)):
            assert (mine.dtype, mine.layout) == (theirs.dtype, theirs.layout)
            dense = [each.to_dense() if as_ == "csr" else each for each in (mine, theirs)]
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


def test_says_what_is_not_made_on_a_device(ratings, stand_in):
    with pytest.raises(chunkhit.Error, match="dense_u8 is not made on a device"):
        chunkhit.torch.SparseLoader(ratings[0] / "whole", device="cuda", as_="dense_u8")

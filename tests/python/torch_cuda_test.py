"""chunkhit.torch with batches on a GPU."""
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import chunkhit  # noqa: E402
import chunkhit.torch  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_gives_the_images_of_the_cpu(packs, dtype, layout):
    options = dict(batch_size=16, shuffle="window", seed=3, dtype=dtype, layout=layout)
    there = chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", **options)
    here = chunkhit.torch.ImageLoader(packs / "hdf5", **options)
    for epoch in range(3):
        for found, expected in zip(there.epoch(epoch), here.epoch(epoch), strict=True):
            assert found.images.is_cuda and found.labels.is_cuda
            close = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-5)  # a rounding apart
            torch.testing.assert_close(found.images.cpu(), expected.images, atol=close, rtol=close)
            assert found.labels.tolist() == expected.labels.tolist() and found.index == expected.index


def test_normalises_as_the_cpu_does(packs):
    for options in (dict(), dict(normalize_like=packs / "shard"), dict(normalize=dict(mean=[0.5] * 3, std=[0.25] * 3))):
        there = chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", dtype="float32", **options)
        here = chunkhit.torch.ImageLoader(packs / "hdf5", dtype="float32", **options)
        torch.testing.assert_close(next(iter(there)).images.cpu(), next(iter(here)).images, atol=1e-5, rtol=1e-5)
        assert there.stats().notices == here.stats().notices
    with pytest.raises(chunkhit.Error, match="normalize_like: excludes normalize"):
        chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", dtype="float32", normalize_like=packs / "shard",
                                   normalize=dict(mean=[0.5] * 3))


@pytest.mark.parametrize("format", ["dense_f32", "dense_f16", "csr"])
def test_gives_the_rows_of_the_cpu(ratings, format):
    options = dict(batch_size=25, shuffle="window", seed=3, format=format)
    there = chunkhit.torch.SparseLoader(ratings[0] / "split" / "test", device="cuda", **options)
    here = chunkhit.torch.SparseLoader(ratings[0] / "split" / "test", **options)
    for found, expected in zip(there, here, strict=True):
        for mine, theirs in ((found.x, expected.x), (found.held_out, expected.held_out)):
            assert mine.is_cuda
            np.testing.assert_array_equal(mine.to_dense().cpu().numpy(), theirs.to_dense().numpy())


def test_pixels_are_there_however_late_they_are_looked_at(packs):
    loader = chunkhit.torch.ImageLoader(packs / "hdf5", batch_size=16, device="cuda", layout=None, prefetch=1)
    held = [images for epoch in range(5) for images, _ in loader.epoch(epoch)]
    expected = chunkhit.ImageDataset(packs / "hdf5")[:][0]
    for epoch in range(5):
        found = torch.cat(held[epoch * 7 : epoch * 7 + 7]).cpu().numpy()
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("position", range(8))
def test_a_state_leaves_out_the_batch_that_is_on_its_way(packs, position):
    options = dict(batch_size=16, shuffle="window", seed=3)
    expected = [batch.samples.tolist() for batch in chunkhit.torch.ImageLoader(packs / "hdf5", **options)]
    loader = chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", **options)
    epoch = loader.epoch(0)
    for _ in range(min(position, 7)):
        next(epoch)
    other = chunkhit.torch.ImageLoader(packs / "hdf5", device="cuda", **options)
    other.load_state_dict(loader.state_dict())
    assert [batch.samples.tolist() for batch in other] == expected[position:]

"""chunkhit.torch on the CPU, DataLoader over the datasets, and torch.distributed."""
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import chunkhit  # noqa: E402
import chunkhit.torch  # noqa: E402
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler  # noqa: E402


def test_gives_the_tensors_of_the_numpy_loader(packs):
    options = dict(batch_size=16, shuffle="window", seed=3)
    arrays = chunkhit.ImageLoader(packs / "hdf5", layout="nchw", **options)
    for (images, labels), batch in zip(chunkhit.torch.ImageLoader(packs / "hdf5", **options), arrays, strict=True):
        assert (images.dtype, labels.dtype, images.shape[1:]) == (torch.uint8, torch.int64, (3, 6, 8))
        np.testing.assert_array_equal(images.numpy(), batch.images)
        np.testing.assert_array_equal(labels.numpy(), batch.labels)


@pytest.mark.parametrize("device", ["meta", "gpu", 1.5])
def test_names_the_device_that_it_cannot_serve(packs, device):
    with pytest.raises(chunkhit.Error, match=f"device: expected cpu or cuda, found {device}"):
        chunkhit.torch.ImageLoader(packs / "hdf5", device=device)


def test_says_the_samples_as_int64(packs):
    batch = next(iter(chunkhit.torch.ImageLoader(packs / "hdf5", batch_size=3)))
    assert batch.samples.dtype == torch.int64 and batch.samples.tolist() == [0, 1, 2]


def test_float_images_are_normalised(packs):
    images, _ = next(iter(chunkhit.torch.ImageLoader(packs / "hdf5", batch_size=100, dtype="float32")))
    assert images.dtype == torch.float32
    torch.testing.assert_close(images.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(images.std((0, 2, 3), unbiased=False), torch.ones(3), atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, np.float32, np.dtype("float32"), "float32"])
def test_a_dtype_is_as_good_as_its_name(packs, dtype):
    kinds = [chunkhit.torch.ImageLoader] + ([] if isinstance(dtype, torch.dtype) else [chunkhit.ImageLoader])
    for kind in kinds:
        images, _ = next(iter(kind(packs / "hdf5", dtype=dtype, layout="nchw", normalize=dict(mean=[0, 0, 0], std=[1, 1, 1]))))
        assert "float32" in str(images.dtype) and 0.9 < float(images.max()) <= 1
    assert next(iter(chunkhit.torch.ImageLoader(packs / "hdf5", dtype=torch.uint8))).images.dtype == torch.uint8


@pytest.mark.parametrize("dtype", [torch.float64, "float64", "half", ["float16"], np.int64, float, 3])
def test_a_dtype_that_loaders_do_not_make_is_named(packs, dtype):
    with pytest.raises(chunkhit.Error, match="dtype: expected uint8, float32, float16, bfloat16, found ") as caught:
        chunkhit.torch.ImageLoader(packs / "hdf5", dtype=dtype)
    assert caught.value.code == "usage"


def test_held_tensors_keep_their_pixels(packs):
    loader = chunkhit.torch.ImageLoader(packs / "hdf5", batch_size=16, layout=None, prefetch=1, threads=1)
    parts = [images[:2] for epoch in range(3) for images, _ in loader.epoch(epoch)]
    del loader
    expected = chunkhit.ImageDataset(packs / "hdf5")
    for number, part in enumerate(parts):
        first = number % 7 * 16
        np.testing.assert_array_equal(part.numpy(), expected[first : first + 2][0])


@pytest.mark.parametrize("format", ["dense_f32", "dense_f16", "dense_u8"])
def test_dense_tensors_may_be_changed_in_place(ratings, expected_rows, format):
    loader = chunkhit.torch.SparseLoader(ratings[0] / "whole", batch_size=25, format=format, prefetch=1, threads=1)
    scale = loader.value_scale if format == "dense_u8" else 1
    for epoch in range(3):
        for batch in loader.epoch(epoch):
            np.testing.assert_array_equal(batch.x.numpy() * scale, expected_rows(loader, batch.rows))
            batch.x.fill_(9)


@pytest.mark.filterwarnings("error")
def test_a_promise_not_to_write_gives_tensors_without_a_warning(ratings, expected_rows):
    loader = chunkhit.torch.SparseLoader(ratings[0] / "split" / "test", batch_size=25, writable=False)
    for batch in loader:
        np.testing.assert_array_equal((batch.x + batch.held_out).numpy(), expected_rows(loader, batch.rows))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_gives_csr_tensors(ratings, expected_rows):
    loader = chunkhit.torch.SparseLoader(ratings[0] / "whole", batch_size=25, format="csr")
    for batch in loader:
        assert batch.x.layout == torch.sparse_csr
        np.testing.assert_array_equal(batch.x.to_dense().numpy(), expected_rows(loader, batch.rows))


def test_goes_on_where_a_state_dict_was_taken(packs, tmp_path):
    options = dict(batch_size=16, shuffle="window", seed=3)
    loader = chunkhit.torch.ImageLoader(packs / "hdf5", **options)
    left = loader.epoch(2)
    next(left)
    torch.save({"loader": loader.state_dict()}, tmp_path / "state.pt")
    other = chunkhit.torch.ImageLoader(packs / "hdf5", **options)
    other.load_state_dict(torch.load(tmp_path / "state.pt")["loader"])
    other.set_epoch(2)
    assert [batch.samples.tolist() for batch in other] == [batch.samples.tolist() for batch in left]


@pytest.mark.parametrize("workers, context", [(0, None), (2, "fork"), (2, "spawn")])
def test_datasets_serve_a_data_loader(packs, ratings, workers, context):
    dataset = chunkhit.ImageDataset(packs / "shard")
    loader = DataLoader(dataset, batch_size=16, num_workers=workers, multiprocessing_context=context)
    for _ in range(2):
        images, labels = (torch.cat(parts).numpy() for parts in zip(*loader))
        np.testing.assert_array_equal(images, dataset[:][0])
        np.testing.assert_array_equal(labels, dataset.labels())
    rows = chunkhit.SparseDataset(ratings[0] / "split" / "test")
    x, held_out = (torch.cat(parts).numpy() for parts in zip(*DataLoader(
        rows, batch_size=16, num_workers=workers, multiprocessing_context=context)))
    np.testing.assert_array_equal(x, rows[:][0])
    np.testing.assert_array_equal(held_out, rows[:][1])


def test_datasets_serve_whole_batches(packs):
    dataset = chunkhit.ImageDataset(packs / "hdf5")
    batches = BatchSampler(SequentialSampler(dataset), 16, drop_last=False)
    shapes = [images.shape for images, _ in DataLoader(dataset, sampler=batches, batch_size=None, num_workers=2)]
    assert shapes == [(16, 6, 8, 3)] * 6 + [(4, 6, 8, 3)]


def test_an_error_of_a_worker_keeps_its_kind(packs, tmp_path):
    dataset = chunkhit.ImageDataset(packs / "hdf5")
    dataset._paths = [str(tmp_path / "gone")]
    with pytest.raises(chunkhit.Error, match="gone") as caught:
        list(DataLoader(dataset, num_workers=1))
    assert caught.value.code == "bad_data"
    first, *traceback = str(caught.value).split("\n")
    assert first.startswith(f"{tmp_path}/gone: ") and first.endswith(" (in DataLoader worker process 0)")
    assert traceback[1].startswith("Original Traceback") and "gone" in traceback[-1]


def test_a_data_loader_around_a_loader_is_refused(packs):
    with pytest.raises(TypeError, match="chunkhit.ImageDataset"):
        list(DataLoader(chunkhit.torch.ImageLoader(packs / "hdf5")))


def test_options_of_a_data_loader_are_named_as_here(packs, ratings):
    with pytest.raises(TypeError, match="num_workers: no such option; threads= is"):
        chunkhit.torch.ImageLoader(packs / "hdf5", num_workers=2)
    with pytest.raises(TypeError, match="pin_memory: no such option; device="):
        chunkhit.torch.SparseLoader(ratings[0] / "whole", pin_memory=True)


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_of_csr_come_whole_from_a_data_loader(ratings, workers):
    dataset = chunkhit.SparseDataset(ratings[0] / "whole", format="csr")
    batches = BatchSampler(SequentialSampler(dataset), 50, drop_last=False)
    loader = DataLoader(dataset, batch_size=None, sampler=batches, collate_fn=lambda rows: rows, num_workers=workers)
    np.testing.assert_array_equal(np.concatenate([rows.to_dense() for rows in loader]), dataset[:].to_dense())
    lists = DataLoader(dataset, batch_size=50, collate_fn=list, num_workers=workers)
    assert [len(rows) for rows in lists] == [50, 50, 50, 50, 11]


RANK = """
import sys
import torch.distributed as distributed
import chunkhit.torch

distributed.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=int(sys.argv[3]), world_size=2)
loader = chunkhit.torch.ImageLoader(sys.argv[1], batch_size=10, shuffle="global")
print(len(loader), *(sample for batch in loader for sample in batch.samples.tolist()))
"""


def test_ranks_of_torch_distributed_share_the_samples_out(packs, tmp_path):
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, packs / "hdf5", tmp_path / "meeting", str(rank)],
                              stdout=subprocess.PIPE, text=True) for rank in range(2)]
    numbers = [[int(word) for word in rank.communicate(timeout=100)[0].split()] for rank in ranks]
    assert [each[0] for each in numbers] == [5, 5]
    assert sorted(numbers[0][1:] + numbers[1][1:]) == list(range(100))


@pytest.mark.parametrize("pack", ["hdf5", "numbers"])
def test_a_dataset_gives_tensors_with_channels_first(packs, pack):
    stored, dataset = chunkhit.ImageDataset(packs / pack), chunkhit.torch.ImageDataset(packs / pack)
    for key in (3, -1, slice(5, 9), [7, 2]):
        (image, label), (pixels, expected) = dataset[key], stored[key]
        assert image.dtype == torch.uint8 and type(label) is (torch.Tensor if isinstance(expected, np.ndarray) else int)
        np.testing.assert_array_equal(image.numpy(), np.moveaxis(pixels, -1, -3))
        np.testing.assert_array_equal(label, expected)
    batches = list(DataLoader(dataset, batch_size=16, num_workers=2))
    np.testing.assert_array_equal(torch.cat([images for images, _ in batches]).permute(0, 2, 3, 1).numpy(), stored[:][0])
    np.testing.assert_array_equal(torch.cat([labels for _, labels in batches]).numpy(), stored.labels())
    assert isinstance(dataset, torch.utils.data.Dataset)
    np.testing.assert_array_equal((dataset + dataset)[len(dataset) + 3][0], dataset[3][0])
    half = chunkhit.torch.ImageDataset(packs / pack, transform=lambda image: image / 2)
    torch.testing.assert_close(half[3][0], dataset[3][0] / 2)
    torch.testing.assert_close(half.__getitems__([3])[0][0], dataset[3][0] / 2)


def test_a_dataset_gives_masks_and_images_of_their_own_sizes(masked):
    stored, dataset = (kind(masked / "pack", fields=["image", "mask"]) for kind in (chunkhit.ImageDataset, chunkhit.torch.ImageDataset))
    for (image, mask), (pixels, expected) in zip([dataset[7], *zip(*dataset[2:5])], [stored[7], *zip(*stored[2:5])]):
        np.testing.assert_array_equal(image.permute(1, 2, 0).numpy(), pixels)
        np.testing.assert_array_equal(mask.numpy(), expected)
    image, label = chunkhit.torch.ImageDataset(masked / "pack", fields=["label", "image"])[7][::-1]
    assert label == stored.labels()[7]
    np.testing.assert_array_equal(image.permute(1, 2, 0).numpy(), stored[7][0])
    for fields, words in (("image", "expected a list of names"), (["depth"], "mask, not depth"), (["view"], "mask, not view")):
        with pytest.raises(chunkhit.Error, match=words):
            chunkhit.ImageDataset(masked / "pack", fields=fields)


def test_a_dataset_of_ratings_is_that_of_arrays():
    with pytest.raises(AttributeError, match="'SparseDataset'; chunkhit.SparseDataset gives arrays, of which DataLoader"):
        chunkhit.torch.SparseDataset

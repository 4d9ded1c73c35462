"""Second images: packed, read, cropped and flipped as Pillow and NumPy do both."""
import json
import os

import chunkhit
import h5py
import numpy as np
import pytest
from PIL import Image

from masks_test import smooth

COUNT, SIZE = 30, (48, 40)  # of samples: width, height
CONTAINERS = ("hdf5", "shard")


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """The folder of noisy/ and clean/, and both as arrays by the image's name."""
    folder = tmp_path_factory.mktemp("twins")
    random = np.random.default_rng(11)
    known = {}
    for number in range(COUNT):
        name = f"{'ab'[number % 2]}/{number:03}"
        height, width = (int(side) for side in random.integers(60, 120, 2))
        files = []
        for kind, endings in (("noisy", ("jpg", "png")), ("clean", ("png", "jpg", "jpg"))):
            path = folder / kind / f"{name}.{endings[number % len(endings)]}"
            path.parent.mkdir(parents=True, exist_ok=True)
            image = Image.fromarray(np.stack([smooth(random, height, width, 256) for _ in range(3)], -1))
            image.save(path, quality=90)
            files.append(path)
        known[str(files[0].relative_to(folder / "noisy"))] = tuple(np.asarray(Image.open(file).convert("RGB")) for file in files)
    return folder, known


def pack(folder, out, container="hdf5", **options):
    options = {"resize": SIZE, **options}
    report = chunkhit.pack_images(folder / "noisy", out, pair={"view": folder / "clean"}, container=container, progress=False, **options)
    assert chunkhit.verify_pack(out)["problems"] == []
    return report


def resized(array):
    return np.asarray(Image.fromarray(array).resize(SIZE, Image.BILINEAR))


def both(path):
    """Images and views by the name of the image."""
    dataset = chunkhit.ImageDataset(path)
    assert dataset.info["fields"] == {"view": "view"}
    images, labels = dataset[:]
    assert set(labels) == {-1}
    return dict(zip(dataset.keys(), zip(images, dataset.views(slice(None)))))


@pytest.mark.parametrize("container, codec", [("hdf5", "none"), ("hdf5", "deflate"), ("shard", "photo"), ("shard", "zstd"), ("shard", "none")])
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_samples_are_those_of_pillow(twins, tmp_path, container, codec, layout):
    folder, known = twins
    pack(folder, tmp_path / "out", container, codec=codec, layout=layout, chunk_samples=7)
    found = both(tmp_path / "out")
    assert sorted(found) == sorted(known)
    for key, pair in found.items():
        for array, expected in zip(pair, known[key]):
            array = array if layout == "nhwc" else array.transpose(1, 2, 0)
            np.testing.assert_array_equal(array, resized(expected))
    dataset = chunkhit.ImageDataset(tmp_path / "out")
    np.testing.assert_array_equal(dataset.views([3, 1])[1], dataset.views([1])[0])


AUGMENTS = [dict(flip_horizontal=0.5, crop_height=29, crop_width=31, random_crop=True, crop_padding=3),
            dict(flip_horizontal=0.5, resized_crop=dict(height=29, width=31)), dict(resize_short=30, crop_height=24, crop_width=26)]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("augment", AUGMENTS)
def test_crops_and_flips_are_those_of_the_image(twins, tmp_path, container, layout, augment):
    """A view that is the negative of its image stays it, where both are rounded."""
    folder, known = twins
    for file, (image, _) in known.items():
        for kind, array in (("noisy", image), ("clean", 255 - image)):
            path = tmp_path / kind / f"{file.rsplit('.', 1)[0]}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(array).save(path)
    pack(tmp_path, tmp_path / "out", container, resize=None, crop=60)
    resizes = "resized_crop" in augment or "resize_short" in augment
    seen = []
    loader = chunkhit.ImageLoader(tmp_path / "out", batch_size=7, shuffle="window", seed=3, augment=augment, layout=layout)
    for batch in loader.epoch(1):
        assert batch.views.dtype == np.uint8 and batch.views.shape == batch.images.shape
        sums = batch.images.astype(int) + batch.views
        inside = sums != 0  # the padding of both is 0
        assert inside.all() or "crop_padding" in augment
        assert np.abs(sums[inside] - 255).max() <= (2 if resizes else 0)
        seen += batch.samples.tolist()
    assert sorted(seen) == list(range(COUNT))


@pytest.mark.parametrize("augment", AUGMENTS)
def test_where_views_are_the_images_the_images_are_the_views(twins, tmp_path, augment):
    """Both in uint8 and float32, to the last bit: what is done to an image is done to a view."""
    folder, _ = twins
    for name, kinds in (("there", ("noisy", "clean")), ("back", ("clean", "noisy"))):
        chunkhit.pack_images(folder / kinds[0], tmp_path / name, pair={"view": folder / kinds[1]}, resize=SIZE, order="input", progress=False)
    for options in (dict(), dict(dtype="float32", normalize=dict(mean=[0.1, 0.2, 0.3], std=[0.4, 0.5, 0.6]))):
        there, back = (chunkhit.ImageLoader(tmp_path / name, batch_size=8, shuffle="window", seed=5, augment=augment, **options)
                       for name in ("there", "back"))
        for one, other in zip(there.epoch(2), back.epoch(2)):
            np.testing.assert_array_equal(one.samples, other.samples)
            np.testing.assert_array_equal(one.views, other.images)
            np.testing.assert_array_equal(one.images, other.views)


@pytest.mark.parametrize("container", CONTAINERS)
def test_floats_are_normalized_as_the_images(twins, tmp_path, container):
    folder, _ = twins
    pack(folder, tmp_path / "out", container)
    views = chunkhit.ImageDataset(tmp_path / "out").views(slice(None))
    mean, std = np.float32([0.1, 0.2, 0.3]), np.float32([0.5, 0.6, 0.7])
    loader = chunkhit.ImageLoader(tmp_path / "out", batch_size=8, dtype="float32", normalize=dict(mean=mean.tolist(), std=std.tolist()), layout="nhwc")
    for batch in loader:
        np.testing.assert_allclose(batch.views, (views[batch.samples.astype(int)] / 255 - mean) / std, atol=1e-5)
        assert batch.views.dtype == np.float32


def test_h5py_reads_both(twins, tmp_path):
    folder, _ = twins
    pack(folder, tmp_path / "out", codec="deflate", chunk_samples=7)
    found = both(tmp_path / "out")
    with h5py.File(tmp_path / "out/part-00000.h5") as file:
        assert sorted(set(file) & {"images", "masks", "samples", "views"}) == ["images", "samples", "views"]
        for key, image, view in zip(file["files"].asstr()[:], file["images"][:], file["views"][:]):
            np.testing.assert_array_equal(image, found[key][0])
            np.testing.assert_array_equal(view, found[key][1])


def test_the_manifest_has_another_version(twins, tmp_path):
    """A reader that knows no views does not take them for masks, or for pixels of images."""
    folder, _ = twins
    pack(folder, tmp_path / "out")
    with open(tmp_path / "out/manifest.json") as file:
        manifest = json.load(file)
    assert manifest["version"] == 4 and manifest["sample"]["view"] == "uint8" and manifest["spec"]["pair-kind"] == "view"
    chunkhit.pack_images(folder / "noisy", tmp_path / "plain", resize=SIZE, progress=False)
    with pytest.raises(chunkhit.Error, match="40x48x3 nhwc, expected 40x48x3 nhwc with views"):
        chunkhit.ImageLoader([tmp_path / "out", tmp_path / "plain"])


def test_bad_views_are_rejects(twins, tmp_path):
    folder, known = twins
    for name in ("noisy", "clean"):
        (tmp_path / name).mkdir()
    for number, (file, (image, view)) in enumerate(list(known.items())[:8]):
        Image.fromarray(image).save(tmp_path / f"noisy/{number}.png")
        Image.fromarray(view).save(tmp_path / f"clean/{number}.png")
    os.remove(tmp_path / "clean/1.png")
    Image.fromarray(view[:-1]).save(tmp_path / "clean/2.png")
    with open(tmp_path / "clean/3.png", "r+b") as file:
        file.truncate(300)
    turned = Image.Exif()
    turned[0x112] = 3  # upside down
    Image.fromarray(list(known.values())[4][1]).save(tmp_path / "clean/4.png", exif=turned)
    chunkhit.pack_images(tmp_path / "noisy", tmp_path / "out", pair={"view": tmp_path / "clean"}, resize=SIZE, max_errors=5, progress=False)
    reasons = (tmp_path / "out/rejects.csv").read_text()
    for words in ("has no view: expected 1.png, or of another extension", "its view 2.png: has ", "its view 3.png: "):
        assert words in reasons, reasons
    found = both(tmp_path / "out")
    assert sorted(found) == ["0.png", "4.png", "5.png", "6.png", "7.png"]
    np.testing.assert_array_equal(found["4.png"][1], resized(np.ascontiguousarray(list(known.values())[4][1][::-1, ::-1])))


def test_a_changed_view_is_packed_again(twins, tmp_path):
    folder, known = twins
    os.system(f"cp -r {folder}/noisy {folder}/clean {tmp_path}")

    def pack_again():
        pack(tmp_path, tmp_path / "out")
        return (tmp_path / "out/part-00000.h5").stat().st_mtime_ns

    first = pack_again()
    assert pack_again() == first
    file = next((tmp_path / "clean").glob("*/000.*"))
    Image.fromarray(np.full_like(known["a/000.jpg"][1], 200)).save(file)
    assert pack_again() > first
    assert np.all(both(tmp_path / "out")["a/000.jpg"][1] > 190)


def test_plans_and_merges_keep_views(twins, tmp_path):
    folder, known = twins
    for seed, name in enumerate(("one", "two")):
        chunkhit.pack_images(folder / "noisy", tmp_path / name, seed=seed, pair={"view": folder / "clean"}, resize=SIZE, plan=2,
                             part_bytes=100_000)
        for task in (0, 1, None):
            chunkhit.run_plan(tmp_path / name, task=task, progress=False)
    chunkhit.merge_packs([tmp_path / "one", tmp_path / "two"], tmp_path / "both")
    assert chunkhit.verify_pack(tmp_path / "both")["problems"] == []
    dataset = chunkhit.ImageDataset(tmp_path / "both")
    assert len(dataset) == 2 * COUNT
    for key, view in zip(dataset.keys(), dataset.views(slice(None))):
        np.testing.assert_array_equal(view, resized(known[key][1]))


def test_torch_gives_tensors_of_both(twins, tmp_path):
    torch = pytest.importorskip("torch")
    import chunkhit.torch
    folder, _ = twins
    pack(folder, tmp_path / "out")
    loader = chunkhit.torch.ImageLoader(tmp_path / "out", batch_size=8, transform=lambda images: images + 1)
    batch = next(iter(loader))
    expected = chunkhit.ImageDataset(tmp_path / "out").views(batch.samples.numpy()).transpose(0, 3, 1, 2)
    assert torch.equal(batch.views, torch.from_numpy(np.ascontiguousarray(expected))), "a transform leaves views as they are"
    images, labels = batch
    assert images.shape == batch.views.shape and labels.dtype == torch.int64
    with pytest.raises(chunkhit.Error, match="without their view:"):
        chunkhit.torch.ImageLoader(tmp_path / "out", batch_size=8, sample_transform=lambda image: image)


def test_damaged_views_are_found(twins, tmp_path):
    folder, _ = twins
    for container in CONTAINERS:
        pack(folder, tmp_path / container, container)
        part = next((tmp_path / container).glob("part-00000.[hz]*"))
        data = part.read_bytes()
        for at in range(5000, len(data), len(data) // 12):
            part.write_bytes(data[:at] + bytes([data[at] ^ 64]) + data[at + 1:])
            assert chunkhit.verify_pack(tmp_path / container)["problems"], (container, at)


def test_what_views_do_not_go_with_is_an_error(twins, tmp_path):
    folder, _ = twins
    for options, words in ((dict(sizes="own"), "images of their own sizes have masks alone"),
                           (dict(mask_column="x"), "found class folders")):
        with pytest.raises(chunkhit.Error, match=words) as error:
            chunkhit.pack_images(folder / "noisy", tmp_path / "out", pair={"view": folder / "clean"}, **options)
        assert error.value.code == "usage"
    chunkhit.pack_images(folder / "noisy", tmp_path / "plain", resize=SIZE, progress=False)
    assert next(iter(chunkhit.ImageLoader(tmp_path / "plain", batch_size=4))).views is None
    with pytest.raises(chunkhit.Error, match="read_field: the samples have no field 'view', but images alone"):
        chunkhit.ImageDataset(tmp_path / "plain").views([0])

"""Images with masks: packed, read, cropped and flipped as Pillow does both."""
import os
import shutil
import subprocess
import sys

import chunkhit
import h5py
import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

COUNT, CLASSES = 40, 21


def smooth(random, height, width, count):
    """Values below `count` that change slowly."""
    small = Image.fromarray(random.integers(0, 256, (height // 16 + 2, width // 16 + 2), dtype=np.uint8))
    return (np.asarray(small.resize((width, height), Image.BICUBIC)).astype(int) * count // 256).astype(np.uint8)


def save_pairs(folder, images, channel):
    """images/NN.png, masks/ (a channel of them) and views/ (inverted)."""
    for kind in ("images", "masks", "views"):
        (folder / kind).mkdir()
    for number, image in enumerate(images):
        for kind, array in (("images", image), ("masks", image[..., channel]), ("views", 255 - image)):
            Image.fromarray(array).save(folder / kind / f"{number:02}.png")


def save_mask(mask, path, is_palette):
    image = Image.fromarray(mask)
    if is_palette:
        image = image.convert("P")
        image.putdata(mask.ravel().tolist())
        image.putpalette([value for k in range(256) for value in (k * 7 % 256, k * 31 % 256, 255 - k)])
    image.save(path)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """The folder of images/ and masks/, and both as arrays by the image's name."""
    folder = tmp_path_factory.mktemp("pairs")
    random = np.random.default_rng(5)
    arrays = {}
    for number in range(COUNT):
        name = f"{'ab'[number % 2]}/{number:03}"
        for kind in ("images", "masks"):
            (folder / kind / name).parent.mkdir(parents=True, exist_ok=True)
        height, width = (int(side) for side in random.integers(60, 120, 2))
        file = f"{name}.{'jpg' if number % 3 else 'png'}"
        image = np.stack([smooth(random, height, width, 256) for _ in range(3)], -1)
        Image.fromarray(image).save(folder / "images" / file, quality=92)
        mask = smooth(random, height, width, CLASSES)
        save_mask(mask, folder / "masks" / f"{name}.png", number % 4 == 0)
        arrays[file] = np.asarray(Image.open(folder / "images" / file).convert("RGB")), mask
    return folder, arrays


def write_masks(arrays, folder):
    for file, (_, mask) in arrays.items():
        path = folder / f"{file.rsplit('.', 1)[0]}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(mask).save(path)
    return folder


FORMS = [("hdf5", "fixed"), ("shard", "fixed"), ("shard", "own")]


def pack(folder, out, container="hdf5", sizes="fixed", **options):
    if sizes == "fixed":
        options = {"resize": (48, 40), **options}
    report = chunkhit.pack_images(folder / "images", out, pair=folder / "masks", container=container, sizes=sizes, progress=False, **options)
    assert chunkhit.verify_pack(out)["problems"] == []
    return report


def masked(path):
    return chunkhit.ImageDataset(path, fields=("image", "mask"))


def resized(array, size, resample):
    return np.asarray(Image.fromarray(array).resize(size, resample))


@pytest.mark.parametrize("container, sizes", FORMS)
def test_samples_are_those_of_pillow(pairs, tmp_path, container, sizes):
    folder, arrays = pairs
    pack(folder, tmp_path / "out", container, sizes, chunk_bytes=100_000 if sizes == "own" else 0)
    dataset = masked(tmp_path / "out")
    assert dataset.info["fields"] == {"mask": "mask"}
    for number, key in enumerate(dataset.keys()):
        image, mask = arrays[key]
        if sizes == "fixed":
            image, mask = resized(image, (48, 40), Image.BILINEAR), resized(mask, (48, 40), Image.NEAREST)
        found_image, found_mask = dataset[number]
        np.testing.assert_array_equal(found_image, image)
        np.testing.assert_array_equal(found_mask, mask)
    assert dataset[:][1][3].tolist() == chunkhit.ImageDataset(tmp_path / "out").masks([3])[0].tolist()
    image, label = chunkhit.ImageDataset(tmp_path / "out")[3]
    np.testing.assert_array_equal(image, dataset[3][0])
    assert label == chunkhit.ImageDataset(tmp_path / "out").labels()[3]
    images, masks = dataset[[3, 1]]
    np.testing.assert_array_equal(masks[1], dataset[1][1])
    np.testing.assert_array_equal(images[0], dataset[3][0])


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
@pytest.mark.parametrize("codec", ["none", "zstd", "photo"])
def test_crops_and_flips_are_those_of_the_image(pairs, tmp_path, layout, codec):
    """A mask that is the image's red channel stays it, as nothing is mixed."""
    folder, arrays = pairs
    for file, (image, _) in arrays.items():
        red = tmp_path / "masks" / f"{file.rsplit('.', 1)[0]}.png"
        red.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[..., 0]).save(red)
    chunkhit.pack_images(folder / "images", tmp_path / "out", pair=tmp_path / "masks", container="shard", codec=codec, layout=layout,
                         crop=60, progress=False)
    augment = dict(flip_horizontal=0.5, crop_height=41, crop_width=37, random_crop=True, crop_padding=3)
    loader = chunkhit.ImageLoader(tmp_path / "out", batch_size=7, shuffle="window", seed=3, augment=augment, layout="nhwc")
    seen = 0
    for batch in loader:
        images, masks = batch["image"], batch["mask"]
        assert masks.shape == images.shape[:3]
        np.testing.assert_array_equal(masks, images[..., 0])
        seen += len(masks)
    assert seen == COUNT


@pytest.mark.parametrize("container, sizes", FORMS)
def test_random_resized_crops_take_the_nearest_class(pairs, tmp_path, container, sizes):
    """The box is found by a mask of coordinates: its rows, and its columns."""
    folder, arrays = pairs
    boxes = {}
    for axis in (0, 1):
        for file, (image, _) in arrays.items():
            path = tmp_path / f"masks{axis}" / f"{file.rsplit('.', 1)[0]}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            height, width = (40, 48) if sizes == "fixed" else image.shape[:2]
            numbers = np.broadcast_to(np.arange(height)[:, None] if axis == 0 else np.arange(width)[None], (height, width))
            Image.fromarray(numbers.astype(np.uint8)).resize(image.shape[1::-1], Image.NEAREST).save(path)
        out = tmp_path / f"out{axis}"
        chunkhit.pack_images(folder / "images", out, pair=tmp_path / f"masks{axis}", container=container, sizes=sizes, progress=False,
                             **(dict(resize=(48, 40)) if sizes == "fixed" else {}))
        loader = chunkhit.ImageLoader(out, batch_size=8, shuffle="window", seed=3,
                                      augment=dict(resized_crop=dict(height=29, width=31), flip_horizontal=0.5))
        for batch in loader.epoch(2):
            for key, mask in zip(batch.keys, batch.masks):
                boxes.setdefault(key, []).append(mask)
    pack(folder, tmp_path / "out", container, sizes)
    loader = chunkhit.ImageLoader(tmp_path / "out", batch_size=8, shuffle="window", seed=3,
                                  augment=dict(resized_crop=dict(height=29, width=31), flip_horizontal=0.5))
    stored = dict(zip(loader_keys(tmp_path / "out"), masked(tmp_path / "out")[:][1]))
    for batch in loader.epoch(2):
        for key, mask in zip(batch.keys, batch.masks):
            rows, columns = boxes[key]
            np.testing.assert_array_equal(mask, stored[key][rows, columns])


def loader_keys(path):
    return chunkhit.ImageDataset(path).keys()


def test_h5py_reads_both(pairs, tmp_path):
    folder, _ = pairs
    for codec in ("none", "deflate"):
        pack(folder, tmp_path / codec, codec=codec, chunk_samples=7)
        images, masks = masked(tmp_path / codec)[:]
        with h5py.File(tmp_path / codec / "part-00000.h5") as file:
            np.testing.assert_array_equal(file["images"][:], images)
            np.testing.assert_array_equal(file["masks"][:], masks)
            assert file["images"].attrs["layout"] == "nhwc"


def test_bad_masks_are_rejects(pairs, tmp_path):
    folder, arrays = pairs
    masks = write_masks(arrays, tmp_path / "masks")
    os.remove(masks / "a/000.png")
    Image.new("L", (3, 4)).save(masks / "b/001.png")
    Image.new("RGB", arrays["a/002.jpg"][1].shape[::-1], (1, 2, 1)).save(masks / "a/002.png")
    Image.fromarray(np.full(arrays["b/003.png"][1].shape, 256, np.uint16)).save(masks / "b/003.png")
    with open(masks / "a/004.png", "r+b") as file:
        file.truncate(100)
    os.rename(masks / "b/005.png", masks / "b/005.jpg")
    Image.fromarray(arrays["b/005.jpg"][1]).save(masks / "b/005.jpg", quality=90)
    np.save(masks / "a/006.npy", arrays["a/006.png"][1])
    os.remove(masks / "a/006.png")
    report = chunkhit.pack_images(folder / "images", tmp_path / "out", pair=masks, sizes="own", progress=False, max_errors=10)
    with open(tmp_path / "out" / "rejects.csv") as file:
        reasons = {line.split(",")[1]: line for line in file.read().splitlines()[1:]}
    assert report["samples"] == COUNT - 6
    for name, words in (("a/000.png", "has no mask: expected a/000.png, or .npy, .bmp, .gif, .tif, .tiff, .pgm, in"),
                        ("b/001.jpg", "its mask b/001.png: has 3 x 4 pixels, expected"), ("a/002.jpg", "green 2, blue 1 at (0, 0): expected one"),
                        ("b/003.png", "value 256 at (0, 0) does not fit 8 bits"), ("a/004.jpg", "truncated"),
                        ("b/005.jpg", "its mask b/005.jpg: is a JPEG, which changes values along edges")):
        assert words in reasons[name], reasons[name]


def test_masks_beside_the_images_and_twice(pairs, tmp_path):
    """An image was taken as its own mask, and of two masks the one whose extension the thread had seen last."""
    _, arrays = pairs
    for file, (image, mask) in arrays.items():
        stem = f"{tmp_path}/all/{file.split('/')[1][:3]}"
        os.makedirs(tmp_path / "all", exist_ok=True)
        Image.fromarray(image).save(f"{stem}.jpg", quality=95)
        Image.fromarray(mask).save(f"{stem}.png")
        if int(file[2:5]) % 2:
            np.save(f"{stem}.npy", np.zeros_like(mask))
    chunkhit.pack_images(tmp_path / "all", tmp_path / "out", pair=tmp_path / "all", include=["*.jpg"], sizes="own", progress=False)
    dataset = masked(tmp_path / "out")
    by_number = {file[2:5]: mask for file, (_, mask) in arrays.items()}
    for key, mask in zip(dataset.keys(), dataset[:][1]):
        np.testing.assert_array_equal(mask, by_number[key[:3]])
    os.remove(tmp_path / "all/000.jpg")
    with pytest.raises(chunkhit.Error, match="none of 1 image has a mask: 000.png needs 000.png"):
        chunkhit.pack_images(tmp_path / "all", tmp_path / "own", pair=tmp_path / "all", include=["000.*"], sizes="own",
                             on_error="fail", progress=False)


@pytest.mark.parametrize("rename, holds", [("{}_mask", "a/000_mask.png"), ("m_{}", "a/m_000.png"), ("x", "a/x.png")])
@pytest.mark.parametrize("has_table", [False, True])
def test_masks_of_which_none_has_an_images_name_are_an_error_at_once(pairs, tmp_path, rename, holds, has_table):
    """A run rejected a few of them and ended, and did not say what the folder held."""
    folder, arrays = pairs
    for name in arrays:
        target = tmp_path / "masks" / os.path.dirname(name) / (rename.format(os.path.basename(name)[:3]) + ".png")
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(arrays[name][1]).save(target)
    (tmp_path / "list.csv").write_text("file,label\n" + "".join(f"{name},1\n" for name in arrays))
    options = {"labels": tmp_path / "list.csv"} if has_table else {}
    with pytest.raises(chunkhit.Error) as error:
        chunkhit.pack_images(folder / "images", tmp_path / "out", pair=tmp_path / "masks", sizes="own", progress=False, **options)
    first = next(iter(arrays))
    way = f"mask_column names the column of masks in {tmp_path}/list.csv" if has_table else \
        "labels takes a CSV of images and masks, whose column mask_column names"
    assert str(error.value) == (f"pair: none of {COUNT} images has a mask: {first} needs {first[:-4]}.png, .npy, .bmp, .gif, .tif, .tiff or .pgm in "
                                f"{tmp_path}/masks, which holds {holds}; {way}")
    assert error.value.code == "bad_data" and not (tmp_path / "out").exists()


def test_a_changed_mask_is_packed_again(pairs, tmp_path):
    folder, arrays = pairs
    masks = write_masks(arrays, tmp_path / "masks")
    Image.new("L", (3, 4)).save(masks / "b/001.png")  # a reject, which does not count as changed either

    def pack_again():
        chunkhit.pack_images(folder / "images", tmp_path / "out", pair=masks, resize=(48, 40), progress=False, max_errors=1)
        return (tmp_path / "out" / "part-00000.h5").stat().st_mtime_ns

    first = pack_again()
    assert pack_again() == first
    Image.fromarray(arrays["a/000.png"][1] // 2 + 100).save(masks / "a/000.png")
    assert pack_again() > first
    dataset = masked(tmp_path / "out")
    assert dataset[dataset.keys().index("a/000.png")][1].min() >= 100


def test_plans_and_merges_keep_masks(pairs, tmp_path, monkeypatch):
    folder, _ = pairs
    monkeypatch.chdir(folder)
    for seed, name in enumerate(("one", "two")):
        chunkhit.pack_images("images", tmp_path / name, pair="masks", resize=(48, 40), part_bytes=100_000, plan=2, order="input", seed=seed)
    monkeypatch.chdir(tmp_path)  # the plan knows where the masks are
    for name in ("one", "two"):
        for task in (0, 1, None):
            chunkhit.run_plan(tmp_path / name, task=task, progress=False)
    chunkhit.merge_packs([tmp_path / "one", tmp_path / "two"], tmp_path / "both")
    assert chunkhit.verify_pack(tmp_path / "both")["problems"] == []
    images, masks = masked(tmp_path / "both")[:]
    np.testing.assert_array_equal(masks[:COUNT], masks[COUNT:])
    np.testing.assert_array_equal(masks[:COUNT], masked(tmp_path / "one")[:][1])


def test_a_plan_runs_where_images_and_masks_lie_elsewhere(pairs, tmp_path):
    """Masks below another folder than at planning ended each task with "try again"."""
    folder, _ = pairs
    shutil.copytree(folder, tmp_path / "here")
    chunkhit.pack_images(tmp_path / "here/images", tmp_path / "pack", pair=tmp_path / "here/masks", resize=(48, 40), plan=1)
    os.rename(tmp_path / "here", tmp_path / "there")
    with pytest.raises(chunkhit.Error) as error:
        chunkhit.run_plan(tmp_path / "pack", root=tmp_path / "there/images", progress=False)
    assert error.value.code == "try_again" and "pair names the folder of the field" in str(error.value)
    with pytest.raises(chunkhit.Error, match="has no mask") as error:
        chunkhit.run_plan(tmp_path / "pack", root=tmp_path / "there/images", pair=tmp_path / "there", progress=False)
    assert error.value.code == "try_again"
    chunkhit.run_plan(tmp_path / "pack", root=tmp_path / "there/images", pair=tmp_path / "there/masks", progress=False)
    assert len(masked(tmp_path / "pack")[:][1]) == COUNT
    chunkhit.pack_images(tmp_path / "there/images", tmp_path / "plain", resize=(48, 40), plan=1)
    with pytest.raises(chunkhit.Error, match="have no masks"):
        chunkhit.run_plan(tmp_path / "plain", pair=tmp_path / "there/masks", progress=False)


def test_a_flat_folder_needs_no_classes(pairs, tmp_path):
    """Folders are no classes: images beside each other, as data sets for segmentation have them, were none to pack."""
    folder, arrays = pairs
    for kind, extensions in (("images", ("jpg", "png")), ("masks", ("png",))):
        (tmp_path / kind / "more").mkdir(parents=True)
        for number in range(8):
            name = f"{'ab'[number % 2]}/{number:03}"
            source = next(path for path in (folder / kind / f"{name}.{each}" for each in extensions) if path.exists())
            (tmp_path / kind / ("more" if number > 5 else ".") / source.name).write_bytes(source.read_bytes())
    info = chunkhit.pack_images(tmp_path / "images", tmp_path / "out", pair=tmp_path / "masks", sizes="own", order="input", progress=False)
    assert info["samples"] == 8 and [each["id"] for each in info["classes"]] == [-1]
    dataset = masked(tmp_path / "out")
    assert sorted(dataset.keys())[-2:] == ["more/006.png", "more/007.jpg"] and set(dataset.labels()) == {-1}
    for key, mask in zip(dataset.keys(), dataset[:][1]):
        number = int(key.split("/")[-1][:3])
        np.testing.assert_array_equal(mask, arrays[f"{'ab'[number % 2]}/{key.split('/')[-1]}"][1])
    with pytest.raises(chunkhit.Error, match="classes: folders are no classes with pair"):
        chunkhit.pack_images(tmp_path / "images", tmp_path / "x", pair=tmp_path / "masks", classes=tmp_path / "out")


@pytest.mark.parametrize("container, sizes", FORMS)
def test_a_program_adds_masks(pairs, tmp_path, container, sizes):
    folder, arrays = pairs
    options = dict(container=container, sizes=sizes, progress=False, **(dict(resize=(48, 40)) if sizes == "fixed" else {}))
    with chunkhit.ImageWriter(tmp_path / "written", **options) as writer:
        for number, (file, (image, mask)) in enumerate(arrays.items()):
            given = Image.open(folder / "masks" / f"{file.rsplit('.', 1)[0]}.png") if number % 2 else mask
            writer.add(image, key=file, mask=given)
    pack(folder, tmp_path / "packed", container, sizes)
    packed, written = (masked(tmp_path / name) for name in ("packed", "written"))
    masks = dict(zip(packed.keys(), packed[:][1]))
    for key, image, mask in zip(written.keys(), *written[:]):
        np.testing.assert_array_equal(mask, masks[key])
        if sizes == "own":
            np.testing.assert_array_equal(image, arrays[key][0])
    chunkhit.pack_dataset([arrays[file] for file in arrays], tmp_path / "dataset", **options)
    again = masked(tmp_path / "dataset")
    files = list(arrays)
    for key, mask in zip(again.keys(), again[:][1]):
        np.testing.assert_array_equal(mask, masks[files[int(key)]])
    with chunkhit.ImageWriter(tmp_path / "wrong", max_errors=1, **options) as writer:
        writer.add(*next(iter(arrays.values()))[:1], mask=np.zeros((3, 4), np.uint8))
        writer.add(next(iter(arrays.values()))[0], mask=next(iter(arrays.values()))[1])
        with pytest.raises(chunkhit.Error, match="fields: found none, expected mask as before"):
            writer.add(next(iter(arrays.values()))[0])
        with pytest.raises(chunkhit.Error, match="mask: expected class ids of shape"):
            writer.add(next(iter(arrays.values()))[0], mask=np.zeros((3, 4, 3), np.uint8))
    assert "its mask: has 4 x 3 pixels, expected" in (tmp_path / "wrong" / "rejects.csv").read_text()
    with pytest.raises(chunkhit.Error, match="pair: no such option; help.ImageWriter."):
        chunkhit.ImageWriter(tmp_path / "pair", pair=folder / "masks")


def test_masks_are_not_for_archives(pairs, tmp_path):
    folder, _ = pairs
    os.system(f"tar -C {folder}/images -cf {tmp_path}/images.tar .")
    with pytest.raises(chunkhit.Error, match="pair: is for images that are files of a folder"):
        chunkhit.pack_images(tmp_path / "images.tar", tmp_path / "out", pair=folder / "masks", resize=(48, 40))


def test_torch_gives_tensors_of_both(pairs, tmp_path):
    torch = pytest.importorskip("torch")
    import chunkhit.torch
    folder, _ = pairs
    pack(folder, tmp_path / "out")

    def change(images, *, batch):
        return {"image": images * 2, "mask": batch.masks + 1}

    loader = chunkhit.torch.ImageLoader(tmp_path / "out", batch_size=8, dtype="float32", transform=change)
    batch = next(iter(loader))
    images, labels = batch
    masks = batch["mask"]
    assert torch.equal(labels, batch.labels) and torch.equal(masks, batch.masks)
    assert images.dtype == torch.float32 and masks.dtype == torch.uint8 and masks.shape == (8, 40, 48)
    expected = chunkhit.ImageDataset(tmp_path / "out").masks(batch.samples.numpy())
    assert torch.equal(masks, torch.from_numpy(expected) + 1)
    assert batch.labels.shape == (8,) and batch.labels.dtype == torch.int64
    with pytest.raises(chunkhit.Error, match="expected .images, labels. or a dict"):
        next(iter(chunkhit.torch.ImageLoader(tmp_path / "out", batch_size=8, transform=lambda images, labels: images)))
    with pytest.raises(chunkhit.Error, match="transform: returns the field view; the batch has image, label, mask"):
        next(iter(chunkhit.torch.ImageLoader(tmp_path / "out", batch_size=8, transform=lambda images: {"view": images})))


def test_damaged_masks_are_found(pairs, tmp_path):
    folder, _ = pairs
    for container, sizes in FORMS:
        out = tmp_path / f"{container}_{sizes}"
        pack(folder, out, container, sizes)
        part = next(out.glob("part-00000.[hz]*"))
        data = part.read_bytes()
        for at in range(5000, len(data), len(data) // 20):
            part.write_bytes(data[:at] + bytes([data[at] ^ 64]) + data[at + 1:])
            assert chunkhit.verify_pack(out)["problems"], (container, sizes, at)
        part.write_bytes(data)


def test_what_changed_is_seen_and_nothing_else(pairs, tmp_path):
    """A damaged image with a good mask was packed again by each run, and an older mask of equal size was never seen."""
    _, arrays = pairs
    for file, (image, mask) in list(arrays.items())[:6]:
        stem = file.split("/")[1][:3]
        for kind, array in (("images", image), ("masks", mask)):
            (tmp_path / kind).mkdir(exist_ok=True)
            if kind == "images":
                Image.fromarray(array).save(tmp_path / kind / f"{stem}.png")
            else:
                np.save(tmp_path / kind / f"{stem}.npy", array)
    (tmp_path / "images/001.png").write_bytes((tmp_path / "images/001.png").read_bytes()[:200])

    def pack_again(masks="masks"):
        chunkhit.pack_images(tmp_path / "images", tmp_path / "out", pair=tmp_path / masks, resize=(48, 40), progress=False, max_errors=1)
        return (tmp_path / "out" / "part-00000.h5").stat().st_mtime_ns

    first = pack_again()
    assert pack_again() == first
    old = tmp_path / "masks/000.npy"
    np.save(old, arrays["a/000.png"][1] + 100)
    os.utime(old, (1e9, 1e9))
    assert pack_again() > first
    dataset = masked(tmp_path / "out")
    assert dataset[dataset.keys().index("000.png")][1].min() >= 100


def test_mask_files_take_no_more_memory_than_their_pixels(pairs, tmp_path):
    """A file of gigabytes was read whole, and texts in a PNG were expanded."""
    _, arrays = pairs
    image, mask = arrays["a/000.png"]
    for kind in ("images", "masks"):
        (tmp_path / kind).mkdir()
    for number in range(3):
        Image.fromarray(image).save(tmp_path / f"images/{number}.png")
    with open(tmp_path / "masks/0.png", "wb") as file:
        file.truncate(3 << 30)
    chunks = PngInfo()
    for number in range(20):
        chunks.add_text(f"text{number}", "x" * (8 << 20), zip=True)
    Image.fromarray(mask).save(tmp_path / "masks/1.png", pnginfo=chunks)
    Image.fromarray(mask).save(tmp_path / "masks/2.png")
    script = (f"import chunkhit\nchunkhit.pack_images({str(tmp_path / 'images')!r}, {str(tmp_path / 'out')!r}, "
              f"pair={str(tmp_path / 'masks')!r}, resize=(48, 40), progress=False, max_errors=1)\n"
              "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])")
    peak = int(subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, capture_output=True, text=True).stdout)
    assert peak < 150_000, "kB"
    assert "0.png: has 3,221,225,472 bytes, too many" in (tmp_path / "out/rejects.csv").read_text()


def test_messages_name_masks(pairs, tmp_path):
    folder, arrays = pairs
    pack(folder, tmp_path / "with")
    chunkhit.pack_images(folder / "images", tmp_path / "without", resize=(48, 40), progress=False)
    with pytest.raises(chunkhit.Error, match="40x48x3 nhwc, expected 40x48x3 nhwc with masks"):
        chunkhit.ImageLoader([tmp_path / "with", tmp_path / "without"])
    with pytest.raises(chunkhit.Error, match="or with masks or views, have their own labels only"):
        chunkhit.ImageDataset(tmp_path / "with/part-00000.h5", labels="rows")
    with chunkhit.ImageWriter(tmp_path / "out") as writer:
        with pytest.raises(chunkhit.Error, match="mask: expected class ids, bool or integers, found float64"):
            writer.add(arrays["a/000.png"][0], mask=arrays["a/000.png"][1].astype(np.float64))
        writer.close()
    batch = next(iter(chunkhit.ImageLoader(tmp_path / "without", batch_size=4)))
    again = type(batch)(batch)
    assert again.labels is batch.labels and again["image"] is batch.images and again.masks is None, "as tools that move batches make them again"


def test_images_of_one_shape_and_of_their_own_sizes_are_no_one_source(pairs, tmp_path):
    folder, _ = pairs
    chunkhit.pack_images(folder / "images", tmp_path / "fixed", resize=(48, 40))
    chunkhit.pack_images(folder / "images", tmp_path / "own", sizes="own")
    kinds = {"fixed": "images of one shape", "own": "images of their own sizes"}
    for first, other in (("fixed", "own"), ("own", "fixed")):
        words = f"{other}/.*: {kinds[other]}, .*{first}/.*: {kinds[first]}; they cannot be read as one"
        with pytest.raises(chunkhit.Error, match=words):
            chunkhit.ImageDataset([tmp_path / first, tmp_path / other])

"""ImageWriter: images in memory become the packs that pack_images makes of files."""
import io
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import chunkhit

SHAPE = dict(resize=(12, 10), crop=(8, 6))


def pixels(count=6, shape=(6, 8, 3)):
    return np.random.default_rng(5).integers(0, 256, (count, *shape), dtype=np.uint8)


def encoded(image, form):
    file = io.BytesIO()
    Image.fromarray(image).save(file, form)
    return file.getvalue()


def write(output, samples, **options):
    with chunkhit.ImageWriter(output, **options) as writer:
        for sample in samples:
            writer.add(*sample)
    return chunkhit.pack_info(output)


def assert_equal_packs(one, other):
    """Sample by sample, in the order of the packs."""
    for found, expected in zip(chunkhit.ImageDataset(one)[:], chunkhit.ImageDataset(other)[:]):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("take", [
    lambda file: file.read_bytes(),
    lambda file: np.fromfile(file, np.uint8),
    lambda file: np.asarray(Image.open(file)),
    Image.open,
], ids=["bytes", "byte array", "pixels", "Pillow"])
def test_the_pack_is_that_of_the_same_files(packs, tmp_path, take):
    """In order `input` sample by sample, with class names and ids, mean and std of pack_images."""
    expected = chunkhit.pack_images(packs / "images", tmp_path / "files", order="input", **SHAPE)
    files = sorted((packs / "images").glob("*/*.png"))
    found = write(tmp_path / "out", [(take(file), file.parent.name, file.name) for file in files], order="input", **SHAPE)
    assert_equal_packs(tmp_path / "out", tmp_path / "files")
    for key in ("samples", "sample", "classes", "labels", "mean", "std", "chunk_samples", "raw_bytes"):
        assert found[key] == expected[key]
    assert found["spec"]["labels"] == "writer"
    assert chunkhit.verify_pack(tmp_path / "out")["problems"] == []


def test_images_of_their_own_sizes_keep_their_jpeg(tmp_path):
    photos = [encoded(image, "jpeg") for image in (*pixels(3, (40, 30, 3)), *pixels(3, (20, 50, 3)))]
    folder = tmp_path / "in" / "c"
    folder.mkdir(parents=True)
    for number, photo in enumerate(photos):
        (folder / f"{number}.jpg").write_bytes(photo)
    chunkhit.pack_images(tmp_path / "in", tmp_path / "files", sizes="own", order="input")
    found = write(tmp_path / "out", [(photo, "c") for photo in photos], sizes="own", order="input")
    assert found["sizes"]["jpeg"] == 6
    ours, theirs = chunkhit.ImageDataset(tmp_path / "out"), chunkhit.ImageDataset(tmp_path / "files")
    for sample in range(6):
        np.testing.assert_array_equal(ours[sample][0], theirs[sample][0])


def test_split_shuffle_and_containers_are_those_of_pack_images(tmp_path):
    samples = [(image, "ab"[number % 2]) for number, image in enumerate(pixels(40))]
    found = write(tmp_path / "out", samples, split={"train": 0.75, "val": 0.25}, container="shard", chunk_samples=4, seed=3)
    assert {name: info["samples"] for name, info in found.items()} == {"train": 30, "val": 10}
    assert [each["samples"] for each in found["val"]["classes"]] == [5, 5]
    images = np.concatenate([chunkhit.ImageDataset(tmp_path / "out" / name)[:][0] for name in ("train", "val")])
    assert {image.tobytes() for image in images} == {image.tobytes() for image, _ in samples}
    assert [image.tobytes() for image in images] != [image.tobytes() for image, _ in samples]


def test_samples_of_one_key_stay_in_one_pack_of_a_split(tmp_path):
    samples = [(image, 0, number // 4) for number, image in enumerate(pixels(40))]
    write(tmp_path / "out", samples, split={"train": 0.5, "val": 0.5})
    all_images = [image.tobytes() for image in pixels(40)]
    keys = [{all_images.index(image.tobytes()) // 4 for image in chunkhit.ImageDataset(tmp_path / "out" / name)[:][0]}
            for name in ("train", "val")]
    assert keys[0] and keys[1] and not keys[0] & keys[1]


@pytest.mark.parametrize("shape, channels", [((6, 8), "gray"), ((6, 8, 1), "gray"), ((6, 8, 3), "rgb"), ((6, 8, 4), "rgba")])
def test_pixels_of_all_channels_are_packed_as_they_are(tmp_path, shape, channels):
    images = pixels(5, shape)
    write(tmp_path / "out", [(image, number) for number, image in enumerate(images)], order="input", channels=channels)
    found, labels = chunkhit.ImageDataset(tmp_path / "out")[:]
    np.testing.assert_array_equal(found.reshape(images.shape), images)
    assert labels.tolist() == [0, 1, 2, 3, 4]


def test_gray_and_alpha_is_converted_as_a_png_of_it(tmp_path):
    images = pixels(4, (6, 8, 2))
    write(tmp_path / "out", [(image, 0) for image in images], order="input", channels="rgba")
    found, _ = chunkhit.ImageDataset(tmp_path / "out")[:]
    for image, pixel_rows in zip(images, found):
        np.testing.assert_array_equal(pixel_rows, np.asarray(Image.fromarray(image, "LA").convert("RGBA")))


def test_tensors_are_rows_of_pixels_and_never_transposed(tmp_path):
    torch = pytest.importorskip("torch")
    images = pixels(3)
    samples = [(torch.from_numpy(image), torch.tensor(number)) for number, image in enumerate(images)]
    write(tmp_path / "out", samples, order="input")
    found, labels = chunkhit.ImageDataset(tmp_path / "out")[:]
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [0, 1, 2]
    with chunkhit.ImageWriter(tmp_path / "other") as writer:
        with pytest.raises(chunkhit.Error, match=r"expected shape .* found \(3, 6, 8\); permute\(1, 2, 0\)"):
            writer.add(torch.from_numpy(images[0]).permute(2, 0, 1), 0)
        writer.close()


def test_modes_of_pillow_give_the_pixels_of_their_files(tmp_path):
    palette = Image.fromarray(pixels(1)[0]).quantize(16)
    bits = Image.fromarray(pixels(1, (6, 8))[0] > 127)
    cmyk = Image.fromarray(pixels(1)[0]).convert("CMYK")
    write(tmp_path / "out", [(palette, 0), (bits, 0), (cmyk, 0)], order="input")
    found, _ = chunkhit.ImageDataset(tmp_path / "out")[:]
    for image, own in zip(found, (palette, bits, cmyk)):
        np.testing.assert_array_equal(image, np.asarray(own.convert("RGB")))


@pytest.mark.parametrize("form", ["jpeg", "png", "tiff", "webp"])
def test_images_of_pillow_are_turned_as_their_files_are(tmp_path, form):
    exif = Image.Exif()
    exif[0x112] = 6
    file = io.BytesIO()
    Image.fromarray(pixels()[0]).save(file, form, exif=exif, **({"lossless": True} if form == "webp" else {}))
    for value in "apply", "ignore":
        if (form, value) == ("tiff", "ignore"):
            continue  # Pillow has turned it
        write(tmp_path / f"file-{value}", [(file.getvalue(), 0)], exif=value)
        for name, image in ("image", Image.open(file)), ("converted", Image.open(file).convert("RGB")):
            write(tmp_path / f"{name}-{value}", [(image, 0)], exif=value)
            chunkhit.pack_dataset([(image, 0)], tmp_path / f"{name}-dataset-{value}", exif=value)
            for output in f"{name}-{value}", f"{name}-dataset-{value}":
                assert_equal_packs(tmp_path / output, tmp_path / f"file-{value}")


def test_labels_are_ids_names_or_numbers(tmp_path):
    images = pixels(3)
    labels = {"ids": ([7, -1, 7], {}, [7, -1, 7]), "names": (["b", "a", "b"], {}, [1, 0, 1]),
              "given": (["b", "a", "b"], dict(classes=["b", "x", "a"]), [0, 2, 0]),
              "by id": ([2, 0, np.int64(1)], dict(classes=["b", "x", "a"]), [2, 0, 1]),
              "number": ([0.5, np.float32(2), 3.0], {}, [[0.5], [2], [3]]),
              "numbers": ([[1, 2], (3, 4), np.array([5, 6])], dict(label_column=["x", "y"]), [[1, 2], [3, 4], [5, 6]])}
    for name, (given, options, expected) in labels.items():
        info = write(tmp_path / name, zip(images, given), order="input", **options)
        assert chunkhit.ImageDataset(tmp_path / name)[:][1].tolist() == expected, name
    assert [each["name"] for each in chunkhit.pack_info(tmp_path / "by id")["classes"]] == ["b", "x", "a"]
    assert info["labels"] == {"kind": "numbers", "columns": ["x", "y"]}
    info = write(tmp_path / "pack", [(images[0], 2), (images[1], "b")][:1], classes=tmp_path / "given")
    assert [each["name"] for each in info["classes"]] == ["b", "x", "a"]


def test_an_empty_name_is_no_class(tmp_path):
    with chunkhit.ImageWriter(tmp_path / "out") as writer:
        with pytest.raises(chunkhit.Error, match="label: expected the name of a class"):
            writer.add(pixels(1)[0], "")
        writer.close()


def test_a_class_that_is_not_listed_is_an_error(tmp_path):
    samples = [(image, name) for image, name in zip(pixels(3), "bca")]
    with pytest.raises(chunkhit.Error, match='^sample 1: label: found class "c", expected one of the class names b') as caught:
        write(tmp_path / "error", samples, classes=["b"])
    assert caught.value.code == "bad_data"


@pytest.mark.parametrize("message, sample, options", [
    (r"image: expected uint8, found float32; add it before it is converted", (np.zeros((6, 8, 3), np.float32), 0), {}),
    (r"image: expected shape .*found \(6, 8, 5\)", (np.zeros((6, 8, 5), np.uint8), 0), {}),
    (r"image: expected shape .*found \(0, 8, 3\)", (np.zeros((0, 8, 3), np.uint8), 0), {}),
    (r"image: expected 8 bits a channel, found Pillow's mode I;16", (Image.fromarray(np.zeros((6, 8), np.uint16)), 0), {}),
    (r"label: found the name of a class, expected the id of a class as before", (pixels(1)[0], "a"), {}),
    (r"label: found numbers, expected the id of a class as before", (pixels(1)[0], 0.5), {}),
    (r"label: expected the id or the name of a class, or numbers, found None", (pixels(1)[0], None), {}),
    (r"label: expected .* found shape \(6, 8\); a mask is given as mask=",
     (pixels(1)[0], np.zeros((6, 8), np.uint8)), {}),
    (r"label: found 9, expected an id from 0 and below 2", (pixels(1)[0], 9), dict(classes=["a", "b"])),
    (r"key: expected a text or a whole number", (pixels(1)[0], 0, ""), {}),
    (r"id: expected a text or a whole number, found 1.5", (pixels(1)[0], 0, 1.5), {}),
])
def test_a_wrong_sample_is_named_and_not_added(tmp_path, message, sample, options):
    with chunkhit.ImageWriter(tmp_path / "out", **options) as writer:
        writer.add(pixels(1)[0], 0)
        with pytest.raises(chunkhit.Error, match=message) as caught:
            writer.add(*sample)
        assert caught.value.code == "usage"
    assert chunkhit.pack_info(tmp_path / "out")["rows"] == 1


def test_what_is_no_image_is_a_type_error(tmp_path):
    with chunkhit.ImageWriter(tmp_path / "out") as writer:
        with pytest.raises(TypeError, match="image: expected a NumPy array, .* found a str"):
            writer.add("photo.jpg", 0)
        writer.close()


@pytest.mark.parametrize("message, options", [
    ("class names: \"a\" is repeated", dict(classes=["a", "a"])),
    ("chunk_samples and chunk_bytes exclude each other", dict(chunk_samples=5, chunk_bytes=99)),
    ("classes: is for classes with names; several label columns are numbers", dict(label_column=["x", "y"], classes=["a"])),
])
def test_wrong_options_are_errors_at_once(tmp_path, message, options):
    with pytest.raises(chunkhit.Error, match=message) as caught:
        chunkhit.ImageWriter(tmp_path / "out", **options)
    assert caught.value.code == "usage" and os.listdir(tmp_path) == []


def test_bytes_that_are_no_image_are_rejects_with_their_keys(tmp_path, logs):
    good = [(image, "a", f"good {number}") for number, image in enumerate(pixels(200))]
    bad = [(b"no image", "a", "text"), (encoded(pixels(1)[0], "png")[:-20], "b", "cut"), (b"", "b", "nothing")]
    samples = [*good[:100], *bad, *good[100:]]
    with logs("rejected") as warned:
        info = write(tmp_path / "out", samples, max_errors=3)
    assert [each.getMessage() for each in warned] == [
        f"{tmp_path}/out: no image of 1 class could be packed, but it keeps its id: b",
        f"{tmp_path}/out: 3 of 203 samples were rejected and are not in the pack; the first is text: not an image of a known type; "
        f"{tmp_path}/out/rejects.csv lists them"]
    assert warned[0].pathname == __file__  # the caller's line, not one of the package
    assert (info["samples"], info["rejected"], info["rows"]) == (200, 3, 203)
    rejects = (tmp_path / "out/rejects.csv").read_text()
    assert all(f"{name}," in rejects for name in ("text", "cut", "nothing")) and "truncated" in rejects
    with pytest.raises(chunkhit.Error) as caught:
        write(tmp_path / "strict", samples, max_errors=0)
    assert caught.value.code == "too_many_rejects"


def test_images_of_several_shapes_are_an_error_that_names_them(tmp_path):
    with pytest.raises(chunkhit.Error, match="images of different shapes: 0 gives 8x6x3, 1 gives 9x6x3") as caught:
        write(tmp_path / "out", [(pixels(1)[0], 0), (pixels(1, (6, 9, 3))[0], 0)])
    assert caught.value.code == "bad_data"


def test_an_exception_in_the_body_publishes_nothing_and_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="enough"):
        with chunkhit.ImageWriter(tmp_path / "out") as writer:
            writer.add(pixels(1)[0], 0)
            raise ValueError("enough")
    assert os.listdir(tmp_path) == []
    with pytest.raises(chunkhit.Error, match="no image was added") as caught:
        chunkhit.ImageWriter(tmp_path / "out").finish()
    assert caught.value.code == "bad_data" and os.listdir(tmp_path) == []


def test_the_same_samples_again_find_their_pack_and_others_are_an_error(tmp_path):
    samples = [(image, 0) for image in pixels(9)]
    write(tmp_path / "out", samples)
    written = (tmp_path / "out/manifest.json").stat().st_mtime_ns
    write(tmp_path / "out", samples)
    assert (tmp_path / "out/manifest.json").stat().st_mtime_ns == written
    with pytest.raises(chunkhit.Error, match="holds another pack") as caught:
        write(tmp_path / "out", samples[::-1])
    assert caught.value.code == "cannot_write"
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/own.txt").write_text("mine")
    with pytest.raises(chunkhit.Error) as caught:
        chunkhit.ImageWriter(tmp_path / "notes")
    assert caught.value.code == "cannot_write"
    assert write(tmp_path / "out", samples[::-1], force=True)["samples"] == 9


def test_ctrl_c_while_packing_keeps_parts_with_which_the_same_program_continues(tmp_path):
    samples = [(image, 0) for image in pixels(60, (600, 600, 3))]
    options = dict(resize=(256, 256), chunk_samples=1, part_bytes=1, order="input", threads=1)
    raised = []

    def interrupt(event):
        if event["phase"] == "packing" and event["rows_done"] >= 3 and not raised:
            raised.append(event)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out", samples, progress=interrupt, **options)
    parts = {part: part.stat().st_mtime_ns for part in (tmp_path / "out").glob("part-*.h5")}
    assert 3 <= len(parts) < 60
    assert write(tmp_path / "out", samples, **options)["samples"] == 60
    assert all(part.stat().st_mtime_ns == written for part, written in parts.items())


KILLED = """
import os, signal, sys
import numpy as np
import chunkhit

def kill(event):
    if event["phase"] == "packing" and event["rows_done"] >= int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

with chunkhit.ImageWriter(sys.argv[1], chunk_samples=1, part_bytes=1, threads=1, progress=kill) as writer:
    for image in np.random.default_rng(5).integers(0, 256, (300, 200, 200, 3), dtype=np.uint8):
        writer.add(image, 0)
    if sys.argv[2] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("rows", [0, 3])
def test_a_killed_writer_leaves_no_half_pack_and_no_temporary_file(tmp_path, rows):
    """Killed while images are added, and while they are packed."""
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out"), str(rows)])
    assert killed.returncode == -signal.SIGKILL
    assert os.listdir(tmp_path) == (["out"] if rows else [])
    assert not (tmp_path / "out/manifest.json").exists()
    images = np.random.default_rng(5).integers(0, 256, (300, 200, 200, 3), dtype=np.uint8)
    write(tmp_path / "out", [(image, 0) for image in images], chunk_samples=1, part_bytes=1)
    assert chunkhit.verify_pack(tmp_path / "out")["problems"] == []
    assert not [name for name in os.listdir(tmp_path / "out") if name.endswith(".tmp")]


FULL = """
import resource, sys
import numpy as np
import chunkhit

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    with chunkhit.ImageWriter(sys.argv[1]) as writer:
        for _ in range(1000):
            writer.add(np.zeros((64, 64, 3), np.uint8), 0)
except chunkhit.Error as error:
    print(error.code, error)
"""


def test_a_full_disk_is_an_error_of_the_add_that_finds_it_full(tmp_path):
    """A limit on the size of files takes the disk's place."""
    run = subprocess.run([sys.executable, "-c", FULL, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True, check=True)
    assert run.stdout.startswith("cannot_write ") and "cannot write" in run.stdout
    assert os.listdir(tmp_path) == []


def test_progress_counts_added_and_packed_images(tmp_path):
    events = []
    write(tmp_path / "out", [(image, 0) for image in pixels(5)], progress=events.append)
    assert events[0]["phase"] == "listing"
    assert events[-1]["phase"] == "finishing" and events[-1]["rows_done"] == events[-1]["rows_total"] == 5

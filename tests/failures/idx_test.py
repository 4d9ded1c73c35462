"""IDX files, as MNIST has them, as the input of pack-images: the same pixels and labels; shapes that disagree are errors."""
import gzip
import json
import os
import struct
import subprocess
import sys

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, Workspace, check, fingerprint, run


def write_idx(path, array, type_code=8):
    """Writes an array as IDX: two zeros, type, dimensions, the sides as big-endian numbers, the bytes."""
    content = struct.pack(f">BBBB{array.ndim}I", 0, 0, type_code, array.ndim, *array.shape) + array.tobytes()
    with (gzip.open if path.endswith(".gz") else open)(path, "wb") as file:
        file.write(content)
    return path


def pack(*arguments, **how):
    return run("pack-images", *arguments, "--progress", "none", **how)


def images_of(folder):
    """Pixels, labels and names of a pack, in its order."""
    with open(folder + "/manifest.json") as file:
        manifest = json.load(file)
    parts = [h5py.File(os.path.join(folder, part["file"])) for part in manifest["parts"]]
    return (np.concatenate([part["images"][:] for part in parts]), np.concatenate([part["labels"][:] for part in parts]),
            sum([part["files"].asstr()[:].tolist() for part in parts], []))


def mnist(space, count=50, shape=(28, 28)):
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (count, *shape), dtype=np.uint8)
    labels = rng.integers(0, 10, count, dtype=np.uint8)
    return images, labels, write_idx(space("train-images-idx3-ubyte.gz"), images), write_idx(space("train-labels-idx1-ubyte.gz"), labels)


def test_mnist_has_its_pixels_and_labels(space):
    images, labels, image_file, label_file = mnist(space)
    pack(image_file, "--labels", label_file, "-o", space("gray"), "--channels", "gray", "--order", "input", "--part-bytes", "20000")
    found, ids, names = images_of(space("gray"))
    check(np.array_equal(found[..., 0], images) and found.shape == (50, 28, 28, 1), found.shape)
    check(np.array_equal(ids, labels) and names == [f"train-images-idx3-ubyte.gz/{index}" for index in range(50)], names[:3])
    run("pack-verify", space("gray"))
    pack(image_file, "--labels", label_file, "-o", space("rgb"))
    found, ids, names = images_of(space("rgb"))
    order = [int(name.rsplit("/", 1)[1]) for name in names]
    check(sorted(order) == list(range(50)) and order != sorted(order), "shuffled")
    check(all(np.array_equal(found[..., channel], images[order]) for channel in range(3)), "gray as RGB")
    check(np.array_equal(ids, labels[order]), "labels")


def test_plain_files_give_the_bytes_of_compressed_ones_and_runs_resume(space):
    images, labels, image_file, label_file = mnist(space)
    os.makedirs(space("plain"))
    plain = write_idx(space("plain/train-images-idx3-ubyte"), images)
    pack(plain, "--labels", write_idx(space("labels"), labels), "-o", space("a"), "--threads", "1")
    pack(plain, "--labels", label_file, "-o", space("b"), "--threads", "3")
    check(fingerprint(space("a")) == fingerprint(space("b")), "bytes")
    check("already packed" in pack(plain, "--labels", label_file, "-o", space("a")), "again")
    write_idx(plain, images[::-1])
    check("50 images changed" in pack(plain, "--labels", label_file, "-o", space("a")), "changed pixels")
    write_idx(space("labels"), labels[::-1])
    said = pack(plain, "--labels", space("labels"), "-o", space("a"), expect=73)
    check("the input list changed" in said, said)


def test_colors_rows_and_splits(space):
    images, labels, image_file, label_file = mnist(space, 40, (8, 9, 3))
    pack(image_file, "--labels", label_file, "-o", space("color"), "--order", "input")
    check(np.array_equal(images_of(space("color"))[0], images), "N x H x W x 3")
    flat = write_idx(space("flat"), images.reshape(40, -1))
    pack(flat, "--labels", label_file, "-o", space("flat-pack"), "--order", "input", "--channels", "gray")
    check(np.array_equal(images_of(space("flat-pack"))[0].reshape(40, -1), images.reshape(40, -1)), "N x W")
    pack(image_file, "--labels", label_file, "-o", space("split"), "--split", "train=0.5,val=0.5")
    names = images_of(space("split/train"))[2] + images_of(space("split/val"))[2]
    check(len(names) == len(set(names)) == 40, "split")
    with open(space("classes.txt"), "w") as file:
        file.write("".join(f"{number}\n" for number in reversed(range(10))))
    pack(image_file, "--labels", label_file, "-o", space("names"), "--order", "input", "--classes", space("classes.txt"))
    check(np.array_equal(images_of(space("names"))[1], 9 - labels.astype(int)), "--classes")


def test_what_does_not_fit_is_an_error(space):
    images, labels, image_file, label_file = mnist(space)

    def error_of(image_path, label_path, expect=65):
        said = pack(image_path, "--labels", label_path, "-o", space("error"), expect=expect)
        check(not os.path.exists(space("error")), "was begun", said)
        return said

    few = write_idx(space("few"), labels[:-1])
    check("few: holds 49 labels, expected 50, one for each image" in error_of(image_file, few), "counts")
    check("has 3 dimensions, expected labels in one" in error_of(image_file, image_file), "labels that are images")
    check("has shape 50, expected images" in error_of(label_file, label_file), "images that are labels")
    check("holds int32, expected uint8" in error_of(write_idx(space("int"), images.astype(">i4"), 12), label_file), "type")
    check("has shape 50 x 7 x 7 x 16" in error_of(write_idx(space("deep"), images.reshape(50, 7, 7, 16)), label_file), "channels")
    check("has no items: dimension 0 is 0" in error_of(write_idx(space("none"), images[:0]), label_file), "no images")
    whole = gzip.open(image_file).read()
    for name, content, wanted in (("cut", whole[:-1], f"ends at byte {len(whole) - 1}"), ("long", whole + b"x", "more bytes than its shape"),
                                  ("head", whole[:9], "ends at byte"), ("five", b"\0\0\x08\x05" + bytes(30), "has 5 dimensions"),
                                  ("huge", b"\0\0\x08\x03" + b"\xff" * 12 + bytes(99), "has impossibly large dimensions"),
                                  ("large", b"\0\0\x08\x03\0\0\0\x32" + b"\x00\x01\x00\x00" * 2 + bytes(99), "over --max-decode-bytes")):
        with open(space(name), "wb") as file:
            file.write(content)
        said = error_of(space(name), label_file)
        check(f"{name}: " in said and wanted in said, name, said)
    for name, sides in (("many-images", (0xffffffff, 1, 1)), ("many-labels", (0xffffffff,))):
        with open(space(name), "wb") as file:
            file.write(struct.pack(f">BBBB{len(sides)}I", 0, 0, 8, len(sides), *sides) + bytes(99))
    done = subprocess.run(["prlimit", "--as=2000000000", f"{BIN}/pack-images", space("many-images"), "--labels", space("many-labels"), "-o",
                           space("error")], capture_output=True, text=True)
    check(done.returncode == 65 and "many-labels: ends at byte 107" in done.stderr, "headers that agree took 4 GB", done)
    with open(image_file, "rb") as file:
        stored = file.read()
    with open(space("cut.gz"), "wb") as file:
        file.write(stored[:-100])
    check("gzip member 1: is truncated" in error_of(space("cut.gz"), label_file), "gzip")
    check("is no IDX file" in error_of(image_file, __file__), "labels that are text")
    said = pack(image_file, "-o", space("error"), expect=2)
    check("is IDX; give its labels with --labels" in said, said)
    check("belongs to one IDX file, found 2 inputs" in pack(image_file, space("few"), "--labels", label_file, "-o", space("error"),
                                                         expect=2), "two")


for test_name, test in list(globals().items()):
    if test_name.startswith("test_"):
        with Workspace() as workspace:
            test(workspace)
        print(test_name, "passed", flush=True)

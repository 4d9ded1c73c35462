"""Arrays that numpy.save writes are images: the pixels of the same images as PNG, and rejects that name what is wrong."""
import csv
import json
import os
import sys

import h5py
import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import SMALL, Workspace, check, run


def pack(*arguments, **how):
    return run("pack-images", *arguments, "--progress", "none", **how)


def samples(folder):
    found = {}
    with open(folder + "/manifest.json") as file:
        parts = json.load(file)["parts"]
    for part in parts:
        with h5py.File(os.path.join(folder, part["file"])) as file:
            for name, label, image in zip(file["files"].asstr()[:], file["labels"][:], file["images"][:]):
                found[os.path.splitext(name)[0]] = (int(label), image.tobytes())
    return found


def save(path, array, **how):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        np.lib.format.write_array(file, array, **how)


def arrays(count=30, seed=1):
    rng = np.random.default_rng(seed)
    shapes = ((40, 50), (40, 50, 1), (33, 61, 3), (70, 40, 4))
    for index in range(count):
        yield f"{('ant', 'bee')[index % 2]}/{index:03d}", rng.integers(0, 256, shapes[index % 4], dtype=np.uint8)


def test_arrays_have_the_pixels_of_the_same_images_as_png(space):
    for index, (name, array) in enumerate(arrays()):
        save(space(f"npy/{name}.npy"), array, version=((1, 0), (2, 0), (3, 0))[index % 3])
        os.makedirs(os.path.dirname(space(f"png/{name}")), exist_ok=True)
        Image.fromarray(array[..., 0] if array.shape[2:] == (1,) else array).save(space(f"png/{name}.png"))
    for flags in (SMALL, ["--fit", "24", "--channels", "rgba"], ["--resize", "20", "--crop", "16", "--channels", "gray"]):
        for kind in ("npy", "png"):
            pack(space(kind), "-o", space(kind + "-pack"), *flags, "--force")
        found = samples(space("npy-pack"))
        check(len(found) == 30 and found == samples(space("png-pack")), flags)
    pack(space("npy"), "-o", space("own"), "--sizes", "own", "--store", "raw", "--channels", "rgb")
    run("pack-verify", space("own"))


def test_other_types_orders_and_shapes_are_rejects(space):
    for name, array in arrays(8):
        save(space(f"photos/{name}.npy"), array)
    image = np.zeros((20, 30, 3), np.uint8)
    for name, array in (("float", image.astype(np.float32)), ("int16", image.astype(np.int16)), ("bool", image[..., 0] > 0),
                        ("fortran", np.asfortranarray(image)), ("chw", np.zeros((3, 20, 30), np.uint8)), ("flat", image.ravel())):
        save(space(f"photos/ant/{name}.npy"), array)
    np.save(space("photos/ant/object.npy"), np.array([{"a": 1}], dtype=object), allow_pickle=True)
    save(space("photos/ant/cut.npy"), image)
    os.truncate(space("photos/ant/cut.npy"), os.path.getsize(space("photos/ant/cut.npy")) - 5)
    pack(space("photos"), "-o", space("pack"), *SMALL, "--max-errors", "10")
    with open(space("pack/rejects.csv"), newline="") as file:
        reasons = {os.path.basename(row["file"])[:-4]: row["reason"] for row in csv.DictReader(file)}
    wanted = {"float": '"<f4", expected uint8', "int16": '"<i2", expected uint8', "bool": '"|b1", expected uint8', "fortran": "Fortran order",
              "chw": "has shape 3 x 20 x 30", "flat": "has shape 1800", "object": "Python objects, which are never loaded",
              "cut": "truncated: the data ends near row 19 of 20"}
    check(set(reasons) == set(wanted) and all(text in reasons[name] for name, text in wanted.items()), reasons)


for test_name, test in list(globals().items()):
    if test_name.startswith("test_"):
        with Workspace() as workspace:
            test(workspace)
        print(test_name, "passed", flush=True)

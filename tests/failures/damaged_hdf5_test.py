"""external HDF5 files, damaged at random: the library under us crashes or hangs over some, the commands do not.

Usage: damaged_hdf5_test.py TOOLS SHIM"""
import os
import random
import sys
import warnings

import h5py
import numpy as np
import scipy.sparse as sp

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from optional import optional
from packing import Workspace, check, draw_seed, outcome, run

anndata = optional("anndata")

warnings.simplefilter("ignore")
DAMAGES_A_FILE = 12


def random_matrix(rows, columns, seed):
    matrix = sp.random(rows, columns, 0.2, "csr", random_state=seed)
    matrix.data = np.ceil(matrix.data * 100)
    return matrix.astype(np.float32)


def write_anndata(path, layout, compression):
    matrix = random_matrix(40, 20, 1)
    data = anndata.AnnData(matrix.toarray() if layout == "dense" else matrix.asformat(layout), dtype=np.float32)
    data.obs_names, data.var_names = [f"cell {i}" for i in range(40)], [f"gene {i}" for i in range(20)]
    data.layers["counts"] = random_matrix(40, 20, 2).tocsc()
    data.write_h5ad(path, compression=compression)


def write_group(path):
    matrix = random_matrix(25, 30, 3).astype(np.int32)
    with h5py.File(path, "w") as file:
        group = file.create_group("ratings")
        group.create_dataset("data", data=matrix.data, chunks=(10,), compression="gzip", shuffle=True)
        group.create_dataset("indices", data=matrix.indices.astype(np.int64), chunks=(10,), fletcher32=True)
        group["indptr"], group["shape"] = matrix.indptr.astype(np.int64), np.array(matrix.shape, np.int32)


def write_images(path):
    pixels = np.random.default_rng(4).integers(0, 256, (30, 8, 8, 3), np.uint8)
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=pixels, chunks=(4, 5, 8, 3), compression="gzip")
        file["labels"] = np.arange(30)


def damaged(data, rng):
    """Flips, zeros, pieces of elsewhere, and numbers that lead astray, in one to four places; at times cut."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, size = rng.randrange(len(data)), len(data)
        what = rng.randrange(5)
        if what == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif what == 2:
            data[at:at + 8] = rng.choice((0, 1, size, at, rng.randrange(size), 1 << 63, (1 << 64) - 1)).to_bytes(8, "little")
        elif what == 3:
            other = rng.randrange(size)
            data[at:at + 16] = data[other:other + 16]
        elif rng.randrange(4) == 0:
            del data[max(at, 1):]
        del data[size:]
    return bytes(data)


def check_commands(space, path, kind):
    """What reads the file must end with 0, or with 65 and name the file or its ratings; `run` ends the test for all else."""
    commands = [("pack-info", path), ("pack-verify", path)]
    if kind != "images":
        commands.append(("pack-sparse", path, "--output", space("pack"), "--dry-run", "--progress", "none"))
    if kind == "layer":
        commands = [(*commands[-1], "--layer", "counts")]
    for command in commands:
        code, text = run(*command, expect=(0, 65), timeout=300)
        check(code == 0 or path in text or "ratings" in text, command, text)


def anndata_files(space):
    files = {}
    for layout in ("csr", "csc", "dense"):
        for compression in (None, "gzip"):
            files[f"{layout}-{compression}"] = space(f"{layout}-{compression}.h5ad")
            write_anndata(files[f"{layout}-{compression}"], layout, compression)
    return {**files, "layer": files["csr-gzip"]}


with Workspace() as workspace:
    seed = draw_seed()
    rng = random.Random(seed)
    whole = {}
    print("AnnData", outcome(lambda space: whole.update(anndata_files(space)), workspace))
    whole["group"], whole["images"] = workspace("group.h5"), workspace("images.h5")
    write_group(whole["group"])
    write_images(whole["images"])
    for kind, path in whole.items():
        check_commands(workspace, path, kind)
        with open(path, "rb") as file:
            good = file.read()
        for _ in range(DAMAGES_A_FILE):
            with open(workspace("damaged.h5"), "wb") as file:
                file.write(damaged(good, rng))
            check_commands(workspace, workspace("damaged.h5"), kind)
        print(kind, "passed")

#!/usr/bin/python3
"""Reads packs without chunkhit: NumPy, h5py and libzstd are all it needs. schemas/ describes the files.

usage: plain_reader.py PACK [OUTPUT.npz]

Images of one shape, in HDF5 parts and shards, with any codec; or ratings in HDF5. Everything is read into memory.
It compares no hash: `pack-verify PACK` does. Packs with masks, views or own sizes are an error: `pack-export` converts those."""
import ctypes
import ctypes.util
import json
import os
import struct
import sys

import numpy as np


def unzstd(frames, size):
    """Decompresses consecutive zstd frames of `size` bytes in all."""
    library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    library.ZSTD_decompress.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t
    library.ZSTD_decompress.restype = ctypes.c_size_t
    raw = np.empty(size, np.uint8)
    found = library.ZSTD_decompress(raw.ctypes.data, size, frames, len(frames))
    if found != size:
        raise ValueError(f"a chunk is damaged: expected {size} bytes")
    return raw


def undo_photo(residuals, layout):
    """Turns the residuals of samples, as planes, into pixels (schemas/codecs.md)."""
    planes = residuals.cumsum(axis=3, dtype=np.uint8).cumsum(axis=2, dtype=np.uint8)
    if planes.shape[1] == 3:
        planes[:, [0, 2]] += planes[:, 1:2]
    return planes if layout == "nchw" else planes.transpose(0, 2, 3, 1)


def read_shard(path, sample):
    """Pixels and labels of a shard (schemas/shard.md)."""
    with open(path, "rb") as file:
        data = file.read()
    if data[8:24] != b"chunkhit shard\r\n" or struct.unpack_from("<II", data, 24) != (1, 1):
        raise ValueError(f"{path}: expected a shard of images of one shape, version 1")
    codec = data[64:80].rstrip(b"\0").decode()
    at = struct.unpack_from("<Q", data, 104)[0] + 8
    chunk_count, sample_count, label_kind, label_columns = struct.unpack_from("<4Q", data, at)
    chunks = np.frombuffer(data, "<u8", 7 * chunk_count, at + 72).reshape(-1, 7).tolist()
    at += 72 + 56 * chunk_count
    if label_kind == 0:
        labels = np.frombuffer(data, "<i8", sample_count, at)
    else:
        labels = np.frombuffer(data, "<f4", sample_count * label_columns, at).reshape(-1, label_columns)
    height, width, channels = sample["height"], sample["width"], sample["channels"]
    planes = channels, height, width
    shape = planes if sample["layout"] == "nchw" else (height, width, channels)
    images = np.empty((sample_count, *shape), np.uint8)
    for offset, stored, raw, first, count, _, is_filtered in chunks:
        pixels = unzstd(data[offset:offset + stored], raw)
        is_photo = is_filtered and codec == "photo"
        images[first:first + count] = (undo_photo(pixels.reshape(count, *planes), sample["layout"]) if is_photo
                                       else pixels.reshape(count, *shape))
    return images, labels


def read_hdf5(path):
    """Pixels and labels of an HDF5 part (schemas/images-hdf5.md), zstd without HDF5's plug-in."""
    import h5py
    with h5py.File(path, "r") as file:
        stored, labels = file["images"], file["labels"][:]
        if file.attrs["filter"] != "zstd":
            return stored[:], labels
        images = np.empty(stored.shape, np.uint8)
        for first in range(0, len(images), stored.chunks[0]):
            mask, chunk = stored.id.read_direct_chunk((first, 0, 0, 0))
            raw = np.frombuffer(chunk, np.uint8) if mask & 1 else unzstd(chunk, int(np.prod(stored.chunks)))
            images[first:first + stored.chunks[0]] = raw.reshape(stored.chunks)[:len(images) - first]
        return images, labels


def read_images(pack):
    """Pixels, labels (ids or numbers) and names of the classes of a pack, in its order."""
    with open(os.path.join(pack, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    sample = manifest["sample"]
    if manifest["version"] > 2 or "height" not in sample:
        raise ValueError(f"{pack}: masks, views or own sizes; expected images of one shape: see pack-export")
    images, labels = [], []
    for part in manifest["parts"]:
        path = os.path.join(pack, part["file"])
        pixels, own = read_hdf5(path) if path.endswith(".h5") else read_shard(path, sample)
        if "sources" in manifest and own.ndim == 1:  # a merged pack numbers classes anew
            ids = np.array([*manifest["sources"][part["source"]]["classes"], -1], np.int64)
            own = ids[own] if len(ids) > 1 else own
        images.append(pixels)
        labels.append(own)
    return np.concatenate(images), np.concatenate(labels), [each.get("name") for each in manifest["classes"]]


def read_ratings(path):
    """The ratings of an HDF5 part as scipy's CSR matrix (schemas/matrix-hdf5.md)."""
    import h5py
    from scipy.sparse import csr_matrix
    with h5py.File(path, "r") as file:
        group = file["X"]
        return csr_matrix((group["data"][:], group["indices"][:], group["indptr"][:]), group.attrs["shape"])


def main(pack, output=None):
    with open(os.path.join(pack, "manifest.json")) as file:
        manifest = json.load(file)
    if "matrices" in manifest:
        if manifest["container"] != "hdf5":
            raise ValueError("ratings in shards: pack-export writes them as FILE.npz or FILE.csv")
        from scipy.sparse import save_npz, vstack
        rows = vstack([read_ratings(os.path.join(pack, part["file"])) for part in manifest["parts"]], "csr")
        print(f"{pack}: {rows.shape[0]} rows of {rows.shape[1]} columns, {rows.nnz} ratings")
        return save_npz(output, rows) if output else None
    images, labels, classes = read_images(pack)
    print(f"{pack}: {len(images)} images of {images.shape[1:]}, {len(classes)} classes")
    return np.savez(output, images=images, labels=labels, classes=np.array(classes)) if output else None


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(f"plain_reader.py: {error}")

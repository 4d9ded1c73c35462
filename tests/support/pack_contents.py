"""What the readers give of a pack, as hashes: equal for packs of equal contents, whatever compressed them."""
import hashlib

import chunkhit
import numpy as np


def hash_of(*arrays):
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def contents(pack):
    """Hashes of every sample and label, or rating and id, as the readers give them."""
    info = chunkhit.pack_info(pack)
    found = {"pack_id": info["pack_id"], "codec": info["codec"], "container": info["container"]}
    if "matrices" in info:
        rows = chunkhit.SparseDataset(pack)
        read = rows[:] if isinstance(rows[:], tuple) else (rows[:],)
        names = ("x", "held_out", "labels") if rows.has_held_out else ("x", "labels")
        for name, dense in zip(names, read):
            found[name] = hash_of(dense)
        if info.get("times"):
            csr = chunkhit.SparseDataset(pack, format="csr")
            read = csr[:] if csr.has_held_out else (csr[:],)
            found["times"] = hash_of(*(matrix.times for matrix in read))
        ids = "\n".join([*map(str, rows.row_ids()), *map(str, rows.column_ids())])
        return {**found, "rows": len(rows), "ids": hashlib.sha256(ids.encode()).hexdigest()}
    images = chunkhit.ImageDataset(pack)
    pixels, labels = zip(*(images[index] for index in range(len(images))))
    if "mask" in info.get("fields", {}):
        labels = images.masks(slice(None))  # under this name, as the goldens have them
    if "view" in info.get("fields", {}):
        found["views"] = hash_of(images.views(slice(None)))
    found.update({name: hash_of(images.field(name, slice(None))) for name in info.get("fields", {}) if name not in ("mask", "view")})
    return {**found, "samples": len(images), "pixels": hash_of(*(pixels if info.get("own_sizes") else [np.stack(pixels)])), "labels": hash_of(*(labels if info.get("own_sizes") and "mask" in info.get("fields", {}) else [np.stack(labels)])),
            "classes": [each["name"] for each in info["classes"]]}

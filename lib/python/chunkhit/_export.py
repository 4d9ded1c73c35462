"""Packs as files that other tools read."""
import os
from typing import Any, Dict, List, Optional, cast

import numpy as np

from ._datasets import ImageDataset, SparseDataset
from ._error import Error, whole_number
from ._export_images import Export, export_arrays, export_folder, export_tar, pack_command
from ._export_ratings import export_ratings
from ._packing import Progress, pack_info, with_progress
from ._paths import Path, native_path

# Of files, not of a folder that is named v1.2.
FILE_ENDINGS = (".tar", ".npz", ".csv", ".gz", ".tgz", ".zst", ".xz", ".bz2", ".zip", ".7z", ".h5", ".hdf5", ".json", ".parquet", ".npy")
FORMS = {".tar": export_tar, ".npz": export_arrays, "": export_folder}


def samples_of_classes(dataset: ImageDataset, classes: List[str]) -> Any:
    """Numbers of the samples of these classes, or of labels of 0 and 1 of those that have one of them; raises Error "usage" for a
    name that is none."""
    labels = dataset.labels()
    ids = dataset.class_to_idx if labels.ndim == 2 else \
        {each.get("name") or str(each["id"]): each["id"] for each in dataset.info.get("classes") or []}
    unknown = [name for name in classes if name not in ids]
    if unknown:
        raise Error(f"`classes`: {unknown[0]!r} is none of the pack, which has {', '.join(ids) or 'none'}", "usage")
    chosen = [ids[name] for name in classes]
    return np.flatnonzero(labels[:, chosen].any(axis=1) if labels.ndim == 2 else np.isin(labels, chosen))


class Counter:
    """Hands the number of what was written to a function that shows progress."""

    def __init__(self, total: int, on_progress: Any) -> None:
        self._event: Dict[str, Any] = {"phase": "exporting", "rows_done": 0, "rows_total": total, "rejected": 0}
        self._on_progress = on_progress

    def __call__(self, count: int) -> None:
        self._event["rows_done"] += count
        if self._on_progress:
            self._on_progress(dict(self._event))


def export_pack(pack: Path, output: Path, *, classes: Optional[List[str]] = None, force: bool = False,
                plain: bool = False, threads: Optional[int] = None, progress: Progress = None, images: str = "images",
                labels: Optional[str] = None) -> Dict[str, Any]:
    """Writes a pack, in its order, as files that other tools read. The ending of `output` says which:

    images    ".tar": WebDataset's KEY.png, or KEY.jpg where images of their own sizes are stored as JPEG, KEY.cls (class id)
              and KEY.json (label, class, key, kept columns); ".npz": arrays images (n, height, width, channels), labels,
              classes, keys and columns/NAME; without an ending a folder: CLASS/NAME.png or .jpg and labels.csv (label, key,
              columns). pack_images takes tars and folders back
    fields    masks and views: KEY.NAME.png of a tar, such as KEY.mask.png; an array of the field's name of a .npz, masks of the
              field mask; a folder then has images/CLASS/NAME.png, masks/CLASS/NAME.png of the field mask, and
              FIELD/CLASS/NAME.png. pack_images("OUTPUT/images", pair={"mask": "OUTPUT/masks", "depth": "OUTPUT/depth:view"})
              takes it back
    ratings   ".npz": scipy.sparse.load_npz reads it, with the ids in OUTPUT.users.csv and OUTPUT.items.csv; ".csv":
              user,item,value. What is held out is in OUTPUT.held_out.npz or .csv. Times, where the pack keeps them, are
              a column of the table, or in OUTPUT.times.npz and OUTPUT.held_out.times.npz

    classes   images: names of the classes that are written; None: all samples
    force     replace an existing output; of folders only those that were exported
    plain     tables have ' before a text that begins with =, +, - or @ and is no number: spreadsheets would compute it
    threads   encode images; None: all CPUs that the process may use
    progress  as in pack_images
    images, labels
              datasets of an HDF5 file that no pack-* wrote, as in ImageLoader

    Everything is written aside and renamed at the end: an error or Ctrl-C leaves nothing. Returns the number of samples or
    rows, `files`, what was written, and of a tar or folder `command`, which packs it again, unless names of columns have commas.
    Raises Error "usage", "bad_data" or "cannot_write".
    """
    source, target = os.fsdecode(native_path(pack, "pack")), os.fsdecode(native_path(output, "output")).rstrip("/")
    info = pack_info(source, images=images, labels=labels)
    if "path" not in info:
        first = os.path.join(source, next(iter(info)))
        raise Error(f"{source}: holds the packs {', '.join(info)}; export one of them, as {first}", "usage")
    ending = os.path.splitext(target)[1] if target.endswith(FILE_ENDINGS) else ""
    is_ratings = "matrices" in info
    if ending not in ((".npz", ".csv") if is_ratings else FORMS):
        expected = ".npz or .csv for ratings" if is_ratings else ".tar, .npz or a folder for images"
        raise Error(f"`output`: expected {expected}, found {target}", "usage")
    if is_ratings:
        if classes is not None:
            raise Error("`classes`: are for images", "usage")
        rows = SparseDataset(source, format="csr", cache="none")
        matrices = 1 + rows.has_held_out
        files = with_progress(progress, lambda on_progress: export_ratings(
            source, rows, target, force, Counter(matrices * len(rows), on_progress), plain))
        return {"rows": len(rows), "files": files}
    dataset = ImageDataset(source, cache="none", images=images, labels=labels)  # each chunk is read once
    samples = np.arange(len(dataset)) if classes is None else samples_of_classes(dataset, classes)
    count = len(os.sched_getaffinity(0)) if threads is None else max(1, whole_number("`threads`", threads))

    def export(on_progress: Any) -> Export:
        return Export(dataset, cast(Any, dataset.info), samples, count, Counter(len(samples), on_progress), plain)

    with_progress(progress, lambda on_progress: FORMS[ending](export(on_progress), target, force))
    command = "" if ending == ".npz" else pack_command(export(None), target)
    return {"samples": len(samples), "files": [target], **({"command": command} if command else {})}

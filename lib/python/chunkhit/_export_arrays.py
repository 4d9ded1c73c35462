"""Arrays in an .npz file, written piece by piece."""
from __future__ import annotations

import zipfile
from typing import Any, BinaryIO, Iterable, Tuple

import numpy as np
from numpy.typing import NDArray


npy: Any = np.lib.format  # which has no types in every version of NumPy


class ArrayArchive:
    """Writes an .npz as numpy.savez does, without holding its arrays; the same arrays make the same bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)

    def __enter__(self) -> "ArrayArchive":
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self._zip.close()
        else:
            self._zip.fp = None  # nothing more is written: the file is dropped

    def append(self, name: str, array: Any) -> None:
        whole = np.asarray(array)
        self.append_pieces(name, whole.dtype, whole.shape, [whole])

    def append_pieces(self, name: str, dtype: Any, shape: Tuple[int, ...], pieces: Iterable[NDArray[Any]]) -> None:
        """Appends an array of which `pieces` are parts along its first axis, in order."""
        kind = np.dtype(dtype)
        header = {"descr": npy.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
        with self._zip.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
            npy.write_array_header_1_0(member, header)
            for piece in pieces:
                member.write(np.ascontiguousarray(piece, kind).tobytes())

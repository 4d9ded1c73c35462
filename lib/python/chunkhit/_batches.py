"""What loaders hand out."""
from __future__ import annotations

from types import MappingProxyType
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np
from numpy.typing import NDArray


class ImageBatch(Tuple[Any, Any]):
    """A batch of images: `images, labels = batch`. Fields by name: `batch["mask"]`, `batch["image"]`.

    images   of the loader's dtype, (batch, height, width, channels) or (batch, channels, height, width); bfloat16 is
             torch.bfloat16 in tensors, and in NumPy, which lacks it, uint16 of the bits
    labels   int64 class ids (batch,), -1 where there are none; float32 (batch, columns) where labels are numbers,
             also (batch, 1): labels[:, 0] goes with an output (batch,), with which (batch, 1) would broadcast
    fields   what the pack has beside the images, by its name; of the same crops, flips and turns. Masks are uint8
             (batch, height, width), a class id per pixel, resized by nearest pixels; views have the type and shape of `images`
    masks    fields["mask"]; None where there is none
    views    fields["view"]; None where there is none
    samples  uint64 (batch,): which samples of the source these are
    uses     uint64 (batch,), NumPy's also of tensors: 0, or which repeat of the sample in the epoch each is
    keys     their names: the file of each, as the input named it
    epoch    which epoch this is of
    index    its number in the epoch, of this rank

    column("age") gives a column that `pack_images(keep_columns=["age"])` kept.

    The arrays look into the loader's memory, which is theirs as long as any of them lives; they may be written to.
    """

    fields: Mapping[str, Any] = MappingProxyType({})
    uses: Any = None
    samples: Any
    epoch: int
    index: int  # type: ignore[assignment]
    core: Any

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        fields = {"image": self.images, "label": self.labels, **self.fields}
        if key not in fields:
            raise KeyError(f"{key}: the batch has {', '.join(fields)}")
        return fields[key]

    @property
    def masks(self) -> Any:
        return self.fields.get("mask")

    @property
    def views(self) -> Any:
        return self.fields.get("view")

    @property
    def images(self) -> Any:
        return super().__getitem__(0)

    @property
    def labels(self) -> Any:
        return super().__getitem__(1)

    @property
    def keys(self) -> List[str]:
        return list(self.core.keys(self._numbers()))

    def column(self, name: str) -> NDArray[Any]:
        """The values of a kept column: int64 or float64 (batch,), NaN where one is missing, or str as objects."""
        return np.asarray(self.core.column(name, self._numbers()))

    def _numbers(self) -> NDArray[Any]:
        samples = self.samples if isinstance(self.samples, np.ndarray) else self.samples.cpu().numpy()
        return np.asarray(samples, np.uint64)

    @classmethod
    def of(cls, core: Any, images: Any, labels: Any, samples: Any, epoch: int, index: int,
           fields: Optional[Dict[str, Any]] = None, uses: Any = None) -> "ImageBatch":
        """A batch of these parts, of a loader of the binding."""
        batch = cls((images, labels))
        batch.core = core
        batch.fields = fields or {}
        batch.uses = uses
        batch.samples = samples
        batch.epoch = epoch
        batch.index = index
        return batch


class CsrRows(NamedTuple):
    """Rows of a matrix, of which row i has the entries indptr[i] to indptr[i + 1]."""

    indptr: NDArray[Any]  #: int32 (rows + 1,) of a loader, int64 of a dataset
    indices: NDArray[Any]  #: int32 (entries,): columns, ascending in a row; equal ones (`duplicates` keep) by time
    values: NDArray[Any]  #: float32 (entries,)
    shape: Tuple[int, int]
    times: Optional[NDArray[Any]] = None  #: int64 (entries,): when, as the input has it; None where they are not kept

    def to_scipy(self) -> Any:
        """A scipy.sparse.csr_matrix over the same memory."""
        from scipy.sparse import csr_matrix  # type: ignore

        return csr_matrix((self.values, self.indices, self.indptr), shape=self.shape, copy=False)

    def to_dense(self) -> NDArray[Any]:
        """A new float32 array (rows, columns); the values of a column that repeats in a row are added up."""
        dense = np.zeros(self.shape, np.float32)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        cells = rows * self.shape[1] + self.indices
        if (np.diff(cells) > 0).all():
            dense.reshape(-1)[cells] = self.values
        else:
            np.add.at(dense.reshape(-1), cells, self.values)
        return dense


class Pairs(NamedTuple):
    """Ratings one by one: `users, items, values, negatives = batch.x`."""

    users: Any  #: int64 (pairs,): rows of the source
    items: Any  #: int64 (pairs,): columns
    values: Any  #: float32 (pairs,): ratings
    negatives: Any  #: int64 (pairs, negatives): columns that the user has neither in x nor held out


class SparseBatch(Tuple[Any, Any]):
    """A batch of rows of a user-item matrix: `x, held_out = batch`.

    x         (rows, columns) float32, float16 or uint8; or CsrRows; or sequences, int64 (rows, length): items by time, behind
              the padding column_count; or Pairs
    held_out  the held-out ratings of the same rows, in the same form; None where there are none, and with Pairs
    labels    float32 (rows, label columns), or None
    rows      int64 (rows,): which rows of the source these are; format="pairs": of each pair
    epoch     which epoch this is of
    index     its number in the epoch, of this rank
    times     format="csr": int64 (entries of x,), where the pack keeps times; "sequences": int64 (rows, length), 0 where x is padding;
              "pairs" with pair_times: int64 (pairs,)
    lengths   format="sequences": int64 (rows,), items of each row of x without padding
    held_out_times, held_out_lengths
              the same of held_out

    The arrays look into the loader's memory, which is theirs as long as any of them lives. Dense arrays are read-only
    unless the loader was made with writable=True.
    """

    labels: Optional[Any]
    rows: Any
    epoch: int
    index: int  # type: ignore[assignment]
    times: Optional[Any]
    held_out_times: Optional[Any]
    lengths: Optional[Any]
    held_out_lengths: Optional[Any]
    _fields = ("x", "held_out")  # of a named tuple, which libraries make again of its moved or pinned parts

    def __new__(cls, x: Any, held_out: Any, labels: Optional[Any] = None, rows: Any = None, epoch: int = 0, index: int = 0,
                times: Optional[Any] = None, held_out_times: Optional[Any] = None, lengths: Optional[Any] = None,
                held_out_lengths: Optional[Any] = None) -> "SparseBatch":
        batch = super().__new__(cls, (x, held_out))
        batch.labels, batch.rows, batch.epoch, batch.index = labels, rows, epoch, index
        batch.times, batch.held_out_times = times, held_out_times
        batch.lengths, batch.held_out_lengths = lengths, held_out_lengths
        return batch

    def _asdict(self) -> Dict[str, Any]:
        return dict(zip(self._fields, self))

    def __reduce__(self) -> Any:
        return SparseBatch, (*self, self.labels, self.rows, self.epoch, self.index, self.times, self.held_out_times,
                             self.lengths, self.held_out_lengths)

    @property
    def x(self) -> Any:
        return self[0]

    @property
    def held_out(self) -> Any:
        return self[1]


def times_of(matrix: Any) -> Any:
    """The times of a matrix as the binding hands it out."""
    return matrix[5 if is_pairs(matrix) else 3] if isinstance(matrix, tuple) else None


def is_pairs(matrix: Any) -> bool:
    """Whether the binding hands out pairs: (None, users, items, values, negatives, times or None, block)."""
    return isinstance(matrix, tuple) and matrix[0] is None


def is_sequences(matrix: Any) -> bool:
    """Whether the binding hands out sequences: (items, lengths, None, times or None, block)."""
    return isinstance(matrix, tuple) and matrix[2] is None


def lengths_of(matrix: Any) -> Any:
    """The lengths of sequences as the binding hands them out."""
    return matrix[1] if is_sequences(matrix) else None

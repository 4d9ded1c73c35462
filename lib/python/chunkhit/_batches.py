"""What loaders hand out."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from numpy.typing import NDArray


class ImageBatch(Tuple[Any, Any]):
    """A batch of images: `images, labels = batch`; of a pack with masks `images, masks = batch`.

    images   uint8 or float32, (batch, height, width, channels) or (batch, channels, height, width)
    labels   int64 class ids (batch,), -1 where there are none; float32 (batch, columns) where labels are numbers,
             also (batch, 1): labels[:, 0] goes with an output (batch,), with which (batch, 1) would broadcast
    masks    uint8 (batch, height, width): a class id per pixel, cropped, flipped and resized (nearest) as the images; None
             where the pack has none
    views    second images, of the type and shape of `images`, of the same crops and flips; None where the pack has none
    samples  uint64 (batch,): which samples of the source these are
    uses     uint64 (batch,), NumPy's also of tensors: 0, or which repeat of the sample in the epoch each is
    keys     their names: the file of each, as the input named it
    epoch    which epoch this is of
    index    its number in the epoch, of this rank

    column("age") gives a column that `pack_images(keep_columns=["age"])` kept.

    The arrays look into the loader's memory, which is theirs as long as any of them lives; they may be written to.
    """

    masks: Any = None
    views: Any = None
    uses: Any = None
    _labels: Any
    samples: Any
    epoch: int
    index: int  # type: ignore[assignment]
    core: Any

    @property
    def images(self) -> Any:
        return self[0]

    @property
    def labels(self) -> Any:
        return self[1] if self.masks is None else self._labels

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
    def of(cls, core: Any, images: Any, labels: Any, samples: Any, epoch: int, index: int, masks: Any = None,
           views: Any = None, uses: Any = None) -> "ImageBatch":
        """A batch of these parts, of a loader of the binding."""
        batch = cls((images, labels if masks is None else masks))
        batch.core = core
        batch._labels = labels
        batch.masks = masks
        batch.views = views
        batch.uses = uses
        batch.samples = samples
        batch.epoch = epoch
        batch.index = index
        return batch


class CsrRows(NamedTuple):
    """Rows of a matrix, of which row i has the entries indptr[i] to indptr[i + 1]."""

    indptr: NDArray[Any]  #: int32 (rows + 1,) of a loader, int64 of a dataset
    indices: NDArray[Any]  #: int32 (entries,): columns, ascending in a row
    values: NDArray[Any]  #: float32 (entries,)
    shape: Tuple[int, int]
    times: Optional[NDArray[Any]] = None  #: int64 (entries,): when, as the input has it; None where they are not kept

    def to_scipy(self) -> Any:
        """A scipy.sparse.csr_matrix over the same memory."""
        from scipy.sparse import csr_matrix  # type: ignore

        return csr_matrix((self.values, self.indices, self.indptr), shape=self.shape, copy=False)

    def to_dense(self) -> NDArray[Any]:
        """A new float32 array (rows, columns)."""
        dense = np.zeros(self.shape, np.float32)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        dense[rows, self.indices] = self.values
        return dense


class SparseBatch(Tuple[Any, Any]):
    """A batch of rows of a user-item matrix: `x, held_out = batch`.

    x         (rows, columns) float32, float16 or uint8; or CsrRows
    held_out  the held-out ratings of the same rows, in the same form; None where there are none
    labels    float32 (rows, label columns), or None
    rows      uint64 (rows,): which rows of the source these are
    epoch     which epoch this is of
    index     its number in the epoch, of this rank
    times     format="csr": int64 (entries of x,), where the pack keeps times
    held_out_times
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
    _fields = ("x", "held_out")  # of a named tuple, which libraries make again of its moved or pinned parts

    def __new__(cls, x: Any, held_out: Any, labels: Optional[Any] = None, rows: Any = None, epoch: int = 0, index: int = 0,
                times: Optional[Any] = None, held_out_times: Optional[Any] = None) -> "SparseBatch":
        batch = super().__new__(cls, (x, held_out))
        batch.labels, batch.rows, batch.epoch, batch.index = labels, rows, epoch, index
        batch.times, batch.held_out_times = times, held_out_times
        return batch

    def _asdict(self) -> Dict[str, Any]:
        return dict(zip(self._fields, self))

    def __reduce__(self) -> Any:
        return SparseBatch, (*self, self.labels, self.rows, self.epoch, self.index, self.times, self.held_out_times)

    @property
    def x(self) -> Any:
        return self[0]

    @property
    def held_out(self) -> Any:
        return self[1]


def times_of(matrix: Any) -> Any:
    """The times of a matrix as the binding hands it out."""
    return matrix[3] if isinstance(matrix, tuple) else None

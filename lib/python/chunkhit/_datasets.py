"""Map-style datasets: samples by their numbers, for DataLoader and for looking around."""
import os
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from . import _chunkhit
from . import _types as types
from ._batches import CsrRows
from ._error import ArgumentError, Error, counted
from ._ids import Ids
from ._info import OfImages, OfRatings
from ._options import MASKS, has_options, with_defaults
from ._paths import Paths, native_paths, path_list, with_native_paths


def worker_memory_bytes() -> int:
    """What a worker of a DataLoader may take when nothing is said: its share of half of the free memory; else 0."""
    data = sys.modules.get("torch.utils.data")
    worker = data.get_worker_info() if data else None
    if worker is None:
        return 0
    with open("/proc/meminfo") as file:
        free = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:"))
    try:
        with open("/sys/fs/cgroup/memory.max") as most, open("/sys/fs/cgroup/memory.current") as now:
            free = min(free, int(most.read()) - int(now.read()))
    except (OSError, ValueError):
        pass  # no limit
    return max(free // 2 // int(worker.num_workers), 1)


class Dataset:
    """What ImageDataset and SparseDataset have in common.

    A dataset is pickled as its paths and options, and opened again where it is used: in a spawned process, and in a
    forked one, where the parent's files and locks must not be touched.
    """

    _core_class: Any

    def __init__(self, paths: Paths, options: Dict[str, Any]) -> None:
        self._paths = [path if "://" in path else os.path.abspath(path) for path in path_list(paths)]
        self._options = options
        self._open()

    def _open(self) -> None:
        options = dict(self._options)
        if not options["cache_bytes"]:
            options["cache_bytes"] = worker_memory_bytes()
        self._opened = self._core_class(native_paths(self._paths), options)
        self._process = os.getpid()

    @property
    def _core(self) -> Any:
        if os.getpid() != self._process:
            self._open()
        return self._opened

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_opened"} | {"_process": 0}

    def __len__(self) -> int:
        return int(self._core.size)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._summary()} of {', '.join(self._paths)}>"

    def _summary(self) -> str:
        raise NotImplementedError

    def __getitem__(self, key: Any) -> Any:
        """The sample of a number, or several: of a slice, a list or array of numbers, or an array of truths."""
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            number, size = int(key), len(self)
            if not -size <= number < size:
                raise IndexError(f"sample {number} of {size}")
            return self._read_one(number + size if number < 0 else number)
        return self._read(self._numbers(key))

    def __getitems__(self, numbers: List[int]) -> List[Any]:
        """The samples of these numbers, each as `dataset[number]` gives it, read in one go."""
        return self._split(self._read(self._numbers(numbers)))

    def _numbers(self, key: Any) -> NDArray[Any]:
        """uint64 (n,); raises IndexError for a number that is none of a sample."""
        size = self._core.size
        if isinstance(key, slice):
            return np.arange(*key.indices(size)).astype(np.uint64)
        array = np.asarray(key)
        if array.ndim != 1:
            raise IndexError(f"expected a slice or a list of numbers, found {key!r}")
        if array.dtype == bool:
            if len(array) != size:
                raise IndexError(f"{counted(len(array), 'truth')} for {counted(size, 'sample')}")
            array = np.flatnonzero(array)
        if not (np.issubdtype(array.dtype, np.integer) or array.size == 0):
            raise IndexError(f"expected whole numbers, found {array.dtype}")
        if array.size and (int(array.min()) < -size or int(array.max()) >= size):
            raise IndexError(f"sample {int(array.max() if array.max() >= size else array.min())} of {size}")
        return np.where(array < 0, array + size, array).astype(np.uint64)

    def _read(self, numbers: NDArray[Any]) -> Any:
        raise NotImplementedError

    def _read_one(self, number: int) -> Any:
        raise NotImplementedError

    def _split(self, read: Any) -> List[Any]:
        raise NotImplementedError


USUAL_FIELDS = ("image", "label")


def checked_fields(fields: Any) -> Tuple[str, ...]:
    if isinstance(fields, str) or not fields or not all(isinstance(field, str) for field in fields):
        raise ArgumentError(f"fields: expected a list of names, such as ['image', 'mask'], found {fields!r}")
    return tuple(fields)


# What other libraries' datasets call it, or loaders have.
ELSEWHERE = {"transform": "chunkhit.torch.ImageDataset", "batch_size": "a DataLoader, or ImageLoader,",
             "shuffle": "a DataLoader, or ImageLoader,", "masks": MASKS}


@has_options("image_dataset", elsewhere=ELSEWHERE)
class ImageDataset(OfImages, Dataset):
    """The samples of a pack, a part, or another HDF5 file with a uint8 array (n, ...), in the order of the pack.

    dataset[3]                 (image, label): uint8 as stored, (height, width, channels) or (channels, height, width);
                               an int, or float32 (columns,) where labels are numbers
    dataset[3:9], [[1, 5]]     (images, labels) of all of them, with one axis more; images are a list where each has its
                               own size

    fields          what a sample consists of, in this order: "image", "label", and names of info["fields"], of which masks are
                    uint8 (height, width), views as the image; None: image and label
    paths           one path or URL (https://, http://, s3://), or several that are concatenated; their classes are joined
                    by name, as by ImageLoader
    cache_bytes     memory for chunks and decoding; 0: half of the memory available to the process, of which each worker of a
                    DataLoader takes its share

    Raises Error "bad_data" for a damaged pack, IndexError for a number that is
    none of a sample.
    """

    _core_class = _chunkhit.ImageDataset

    def __init__(self, paths: Paths, *, fields: Optional[Sequence[str]] = None, **options: Any) -> None:
        self._fields = USUAL_FIELDS if fields is None else checked_fields(fields)
        super().__init__(paths, with_native_paths(with_defaults("image_dataset", options), "cache_dir"))

    def _open(self) -> None:
        super()._open()
        known = (*USUAL_FIELDS, *self.info.get("fields", {}))
        for field in self._fields:
            if field not in known:
                raise Error(f"fields: the samples have {', '.join(known)}, not {field}", "usage")

    def _repr_html_(self) -> Optional[str]:
        from ._sheet import html_of  # for notebooks alone

        return html_of(self._paths, ImageDataset)

    def masks(self, samples: Any = None) -> Any:
        """The field "mask" of all samples, or of these."""
        return self.field("mask", samples)

    def views(self, samples: Any = None) -> Any:
        """The field "view" of all samples, or of these."""
        return self.field("view", samples)

    def field(self, name: str, samples: Any = None) -> Any:
        """A field of all samples, or of these: masks are uint8 (n, height, width), a list where each has its own size, views as
        their images. Raises Error "usage" where no field has this name."""
        return self._core.field(name, self._numbers(slice(None) if samples is None else samples))

    def labels(self) -> NDArray[Any]:
        """Those of all samples: int64 (n,), or float32 (n, columns); no image is read."""
        return np.asarray(self._core.labels(self._numbers(slice(None))))

    def keys(self, samples: Any = None) -> List[str]:
        """The input file of each sample, or of these, as the pack names it; bytes that are not UTF-8 show as \\xNN. Empty
        texts where the source names no files, as external ones. No image is read."""
        return list(self._core.keys(self._numbers(slice(None) if samples is None else samples)))

    def column(self, name: str, samples: Any = None) -> NDArray[Any]:
        """A column that `pack_images(keep_columns=[name])` kept, of all samples or of these: int64 or float64 (n,), NaN where a
        value is missing, or str as objects. `info["columns"]` lists them."""
        return np.asarray(self._core.column(name, self._numbers(slice(None) if samples is None else samples)))

    def stored_jpeg(self, sample: int) -> Optional[Tuple[bytes, int]]:
        """The JPEG that a sample is stored as, undecoded, and how it is to be turned, as EXIF numbers orientations; None
        where it is stored as pixels."""
        found: Optional[Tuple[bytes, int]] = self._core.stored_jpeg(int(self._numbers([sample])[0]))
        return found

    def _summary(self) -> str:
        return counted(len(self), "sample")

    def _read(self, numbers: NDArray[Any]) -> Tuple[Any, ...]:
        core = self._core
        readers = {"image": core.read, "label": core.labels}
        return tuple(readers[field](numbers) if field in readers else core.field(field, numbers) for field in self._fields)

    def _read_one(self, number: int) -> Any:
        if self._fields == USUAL_FIELDS:
            return self._sample(*self._core.sample(number))
        return self._split(self._read(self._numbers([number])))[0]

    def _sample(self, image: NDArray[Any], label: Any) -> Tuple[Any, Any]:
        return image, label

    def _split(self, read: Any) -> List[Any]:
        # Class ids are given as int.
        return list(zip(*(values.tolist() if getattr(values, "ndim", 0) == 1 else values for values in read)))


@has_options("sparse_dataset")
class SparseDataset(OfRatings, Ids, Dataset):
    """The rows of a pack of pack-sparse, a part of one, or an AnnData file.

    dataset[3]                 float32 (columns,); with format="csr" CsrRows of one row
    dataset[3:9], [[1, 5]]     float32 (rows, columns); or CsrRows
    dataset.to_scipy()         all rows as a scipy.sparse.csr_matrix

    Where the source has held-out ratings (and held_out is True) or labels, it is a tuple: (x, held_out), (x, labels)
    or (x, held_out, labels).

    paths           one path or URL (https://, http://, s3://), or several that are concatenated: their columns are the same
    format          "dense_f32" or "csr"; the loader's other forms are the loader's alone
    held_out        give the held-out matrix, too, where the pack has one
    cache_bytes     memory for chunks; 0: half of the memory available to the process, of which each worker of a DataLoader
                    takes its share

    A DataLoader cannot stack rows of CSR: collate_fn=list leaves them as they are, and
    DataLoader(dataset, batch_size=None, sampler=BatchSampler(RandomSampler(dataset), 500, drop_last=False),
    collate_fn=lambda rows: rows) gives each batch as one CsrRows. Raises what ImageDataset raises.
    """

    _core_class = _chunkhit.SparseDataset

    def __init__(self, paths: Paths, *, format: types.RowFormat = "dense_f32", held_out: bool = True, **options: Any) -> None:
        if format not in ("dense_f32", "csr"):
            raise Error(f"format: expected dense_f32, csr, found {format!r}", "usage")
        self._as = format
        self._wants_held_out = held_out
        super().__init__(paths, with_native_paths(with_defaults("sparse_dataset", options), "cache_dir"))

    @property
    def column_count(self) -> int:
        """Items."""
        return int(self._core.column_count)

    @property
    def has_held_out(self) -> bool:
        return self._wants_held_out and bool(self._core.has_held_out)

    def to_scipy(self, *, held_out: bool = False) -> Any:
        """All rows as one scipy.sparse.csr_matrix (rows, columns) of float32, of the held-out ratings where held_out is True:
        what EASE, SLIM and ALS take. Items that repeat in a row (`duplicates` keep) are entries of their own, which SciPy adds
        up: sum_duplicates(). Raises Error "usage" where the pack has no held-out ratings."""
        indptr, indices, values, times = self._core.read(np.arange(len(self), dtype=np.uint64), held_out)
        return CsrRows(indptr, indices, values, (len(self), self.column_count), times).to_scipy()

    def _summary(self) -> str:
        return f"{counted(len(self), 'row')} of {counted(self.column_count, 'column')}"

    def _matrix(self, numbers: NDArray[Any], held_out: bool, is_one: bool) -> Any:
        indptr, indices, values, times = self._core.read(numbers, held_out)
        rows = CsrRows(indptr, indices, values, (len(numbers), self.column_count), times)
        if self._as == "csr":
            return rows
        return rows.to_dense()[0] if is_one else rows.to_dense()

    def _read_one(self, number: int) -> Any:
        return self._read(np.array([number], np.uint64), True)

    def _read(self, numbers: NDArray[Any], is_one: bool = False) -> Any:
        found = [self._matrix(numbers, False, is_one)]
        if self.has_held_out:
            found.append(self._matrix(numbers, True, is_one))
        labels: Optional[NDArray[Any]] = self._core.labels(numbers)
        if labels is not None:
            found.append(labels[0] if is_one else labels)
        return found[0] if len(found) == 1 else tuple(found)

    def _split(self, read: Any) -> List[Any]:
        if not isinstance(read, tuple) or isinstance(read, CsrRows):
            return self._rows_of(read)
        return list(zip(*(self._rows_of(each) for each in read)))

    @staticmethod
    def _rows_of(matrix: Any) -> List[Any]:
        if not isinstance(matrix, CsrRows):
            return list(matrix)
        ends = matrix.indptr.tolist()
        return [CsrRows(np.array([0, end - begin]), matrix.indices[begin:end], matrix.values[begin:end],
                        (1, matrix.shape[1]), None if matrix.times is None else matrix.times[begin:end])
                for begin, end in zip(ends, ends[1:])]

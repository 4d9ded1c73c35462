"""What loaders have in common."""
from __future__ import annotations

import json
import logging
import reprlib
from typing import Any, Dict, Generic, Iterator, Optional, TypeVar

from . import _chunkhit
from ._epoch_log import EpochLog, Target
from ._error import ArgumentError, Error, counted, whole_number

LOGGER = logging.getLogger("chunkhit.loader")

Batch = TypeVar("Batch")
Self = TypeVar("Self", bound="Loader[Any, Any]")
Core = TypeVar("Core", _chunkhit.ImageLoader, _chunkhit.SparseLoader)


class Epoch(Generic[Batch]):
    """The batches that are left of an epoch; to be iterated once, until another is begun."""

    def __init__(self, loader: "Loader[Any, Batch]", number: int, turn: int) -> None:
        self._loader = loader
        self._number = number
        self._turn = turn

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        try:
            found = self._loader._next_of(self)
        except StopIteration as error:  # of a transform, say: a `for` loop would end as if the epoch were over
            raise RuntimeError("a function that the loader calls raised StopIteration") from error
        if found is None:
            raise StopIteration
        return found


class Loader(Generic[Core, Batch]):
    """What ImageLoader and SparseLoader have in common. One thread at a time may take batches, and any look at the
    statistics and the state meanwhile; a forked child must make its own."""

    _opened: Optional[Core] = None  # the binding's loader

    def __init__(self, core: Core, options: Dict[str, Any]) -> None:
        self._opened = core
        self._options = options
        # Of the epoch that was begun last. Not that epoch itself, which refers to this: dropping both frees threads and
        # memory at once, without Python's search for cycles.
        self._turn = 0
        self._next_epoch = 0
        self._is_named = False
        self._log: Optional[EpochLog] = None
        for notice in core.stats().notices:  # that samples are not compared with a hash, for example
            LOGGER.warning("%s", notice, stacklevel=3)

    @property
    def _core(self) -> Core:
        if self._opened is None:
            raise Error("this loader is closed", "usage")
        return self._opened

    def close(self) -> None:
        """Ends the loader's threads and releases its files and memory, except batches that are still referenced. `with
        loader:` closes it at its end, and so does its destructor."""
        self._end_record(complete=False)
        self._opened = None
        self._turn += 1

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._opened is None:
            return f"<{name}: closed>"
        return f"<{name}: {self._summary()}, {counted(len(self), 'batch')} an epoch>"

    def _summary(self) -> str:
        raise NotImplementedError

    def _count(self, thing: str) -> str:
        """The samples of an epoch, and of how many, where a subset or a sampler draws them."""
        return ("" if self.epoch_samples == self.size else f"{self.epoch_samples:,} of ") + counted(self.size, thing)

    def __getitem__(self, key: Any) -> Any:
        name = type(self).__name__
        raise ArgumentError(f"{name} gives whole batches: iterate over it, without a DataLoader; samples by their numbers are "
                        f"chunkhit.{name.replace('Loader', 'Dataset')}'s")

    def epoch(self, epoch: int) -> Epoch[Batch]:
        """The batches of an epoch, from its first, or from where `load_state_dict` left it. Asked for again, it begins again."""
        epoch = whole_number("epoch", epoch)
        self._end_record(complete=False)
        before = self.stats() if self._log else None
        self._core.begin(epoch)
        if self._log and before:
            self._log.begin(epoch, before)
        self._turn += 1
        self._next_epoch = epoch
        self._is_named = False
        return Epoch(self, epoch, self._turn)

    def __iter__(self) -> Iterator[Batch]:
        """The batches of the epoch that `set_epoch` named, or else of the one after the last that was finished: after a
        `break` that epoch begins again, from its first batch."""
        return iter(self.epoch(self._next_epoch))

    def __len__(self) -> int:
        """Batches of a whole epoch of this rank."""
        return self._core.batch_count

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next `for batch in loader`, as DistributedSampler.set_epoch does; also while an epoch runs.
        A state does not hold it: name the epoch again after `load_state_dict`."""
        self._next_epoch = whole_number("epoch", epoch)
        self._is_named = True

    def state_dict(self) -> Dict[str, Any]:
        """Returns the position after the current batch, as torchdata's StatefulDataLoader and Lightning ask for it."""
        return {"chunkhit": self._state()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Resumes from a `state_dict()`: its epoch gives exactly the remaining batches. With another world_size or
        batch_size it gives all remaining samples, divided among the new ranks, provided that all ranks stopped after the
        same batch; rank_remainder="pad" uses fewer than world_size of them twice. Raises Error "usage" if the state is
        invalid or belongs to another source, seed, order, sampler or augmentation, or for another epoch while batches remain."""
        if not isinstance(state, dict) or not isinstance(state.get("chunkhit"), str):
            raise Error(f"state: expected the dict that state_dict() gives, found {reprlib.repr(state)}", "usage")
        self._core.restore(state["chunkhit"])
        self._turn += 1
        self._next_epoch = json.loads(state["chunkhit"])["epoch"]
        self._is_named = False

    def _state(self) -> str:
        return self._core.state()

    def stats(self) -> _chunkhit.LoaderStats:
        """Who waited for whom since the loader was made or `reset_stats` was called; print it. Its `verdict()` alone says
        whether training waits for data, and what to change: the loader, or the transform of chunkhit.torch. Of two of
        them `now.since(before)` are the statistics between. Times are seconds, those of threads are sums over them:

        seconds             wait_seconds + step_seconds, without pauses between epochs; wait_fraction is the share of waiting
        wait_seconds        training waited for a batch, and for the transform of it
        step_seconds        training used batches
        fetch_seconds, decode_seconds, assemble_seconds
                            threads read stored bytes, decompressed them, copied samples into batches
        idle_seconds        threads had nothing to do: all batches that they may prepare were ready
        transform_seconds, transform_wait_seconds
                            the transform took, and waited for the loader's batches
        batches, samples, batch_bytes
                            were handed out
        stored_bytes, remote_bytes, disk_chunks
                            were fetched, of these from servers, and chunks of remote packs from cache_dir
        chunk_hits, chunk_misses, chunk_fetches
                            a batch found its chunk loaded, or had to wait for it; chunks that were loaded
        shared_chunks       were loaded by other processes, into memory that all share
        corrupt_chunks, corrupt_samples
                            were left out (on_corrupt="skip")
        retained_batches    the caller kept, so that later ones took other memory
        decoded_images      images of their own sizes that are kept decoded
        cache, threads, prefetch, transform_ahead
                            are in use now
        tuning, notices     texts: what "auto" tried, and what may be wrong with the data as it is asked for
        has_settled         "auto" has nothing left to try
        """
        return self._core.stats()

    def reset_stats(self) -> None:
        self._core.reset_stats()

    def log_epochs(self, target: Target) -> None:
        """Writes a record of each epoch from the next one on, when it ends, or when it was left and another begins or the
        loader is closed. None: no more.

        "stderr"            a line
        path                appends a line of JSON to this file
        function            is called with a dict
        object with add_scalar(tag, value, step), or that method
                            such as a SummaryWriter of TensorBoard: chunkhit/seconds, wait_seconds, wait_fraction,
                            transform_seconds and samples_per_second by epoch

        A record has epoch, rank, complete (False: it was left), batches, samples, seconds (without what came between
        epochs), wait_seconds, wait_fraction, transform_seconds, samples_per_second and verdict, of this epoch alone, as
        stats() counts them. A batch that was taken ahead (device=, transform_ahead=) is counted also where it was not handed out."""
        self._end_record(complete=False)
        self._log = None if target is None else EpochLog(target)

    def _end_record(self, complete: bool) -> None:
        if self._log and self._opened is not None:
            self._log.end(self.stats(), self._options.get("rank") or 0, complete)

    def mixing(self) -> _chunkhit.MixingInfo:
        """How well the order mixes samples, and what a sampler costs:

        chunks              chunks of the source
        chunks_in_window    chunks of each window but the last
        samples_in_window   samples of each window but the last
        same_chunk_neighbors
                            expected share of neighbors from the same chunk
        epoch_samples       samples of an epoch, of all ranks
        distinct_samples    expected number of different samples among them
        chunk_visits        visits of chunks in epoch 0; shuffle "none" and "window" read a chunk once a visit, "global"
                            needs it once a sample
        samples_per_visit   samples that are used of a visited chunk, on average
        """
        return self._core.mixing()

    @property
    def batch_size(self) -> int:
        """Samples (rows) a batch, as it was asked for; this and the next two are what libraries ask of a loader."""
        return int(self._options["batch_size"])

    @property
    def drop_last(self) -> bool:
        return bool(self._options["drop_last"])

    @property
    def seed(self) -> int:
        return int(self._options["seed"])

    @property
    def size(self) -> int:
        """Samples (rows) of the source, of all ranks."""
        return self._core.size

    @property
    def epoch_samples(self) -> int:
        """Samples (rows) of an epoch, of all ranks: `size`, where no sampler says otherwise."""
        return self._core.epoch_samples

    def _next_of(self, epoch: Epoch[Batch]) -> Optional[Batch]:
        if epoch._turn != self._turn:
            raise Error("this epoch is over: another one was begun, or a state restored", "usage")
        found = self._take()
        if found is None:
            if not self._is_named:  # by set_epoch, while this epoch ran
                self._next_epoch = epoch._number + 1
            self._end_record(complete=True)
        return found

    def _take(self) -> Optional[Batch]:
        """The next batch, or None at the end."""
        raise NotImplementedError

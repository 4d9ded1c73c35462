"""A caller's transform of whole batches: when they are asked for, or ahead of that on a thread."""
from __future__ import annotations

import concurrent.futures
import contextlib
import inspect
import sys
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, Optional, Sequence, Tuple

import torch

from ._batches import ImageBatch
from ._chunkhit import LoaderStats
from ._error import ArgumentError, Error
from ._torch_cuda import cuda, hand_over
from ._torch_feed import Feed


def signature_of(function: Callable[..., Any]) -> Tuple[int, bool]:
    """How many tensors a transform takes, 1 or 2 (images, labels), and whether it has a keyword `batch`."""
    called = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):  # written in C
        return 1, False
    takes_batch = any(each.kind is each.KEYWORD_ONLY and each.name == "batch" for each in parameters)
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return 2, takes_batch
    tensors = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = sum(each.default is each.empty for each in tensors)
    if not tensors or required > 2:
        raise Error(f"transform: expected a function of (images) or (images, labels), found one of {required} arguments",
                    "usage")
    return max(required, 1), takes_batch


class Transform:
    """Makes new batches of batches by a function of (images), which returns images, or of (images, labels), which returns both,
    or either a dict of fields; a keyword-only parameter `batch` of it is the batch itself."""

    def __init__(self, function: Any) -> None:
        if not callable(function):
            raise ArgumentError(f"transform: expected a function, found {function!r}")
        self._function = function
        self._tensors, self._takes_batch = signature_of(function)

    def __call__(self, batch: ImageBatch) -> ImageBatch:
        try:
            made = self._apply(batch)
        except Exception as error:
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"transform: batch {batch.index} of epoch {batch.epoch}")
            raise
        fields = {**batch.fields, **made}
        images, labels = fields.pop("image", batch.images), fields.pop("label", batch.labels)
        return ImageBatch.of(batch.core, images, labels, batch.samples, batch.epoch, batch.index, fields, batch.uses)

    def _apply(self, batch: ImageBatch) -> Dict[str, Any]:
        """The fields that are new."""
        keywords = {"batch": batch} if self._takes_batch else {}
        made = self._function(*batch[: self._tensors], **keywords)
        if isinstance(made, dict):
            for field in made:
                if field not in ("image", "label", *batch.fields):
                    raise Error(f"transform: returns the field {field}; the batch has {', '.join(('image', 'label', *batch.fields))}", "usage")
        elif self._tensors == 1:
            made = {"image": made}
        elif isinstance(made, (tuple, list)) and len(made) == 2:
            made = dict(zip(("image", "label"), made))
        else:
            raise Error(f"transform: expected (images, labels) or a dict, found {type(made).__name__}", "usage")
        if not isinstance(made.get("image", batch.images), torch.Tensor):
            raise Error(f"transform: expected a tensor of images, found {type(made['image']).__name__}", "usage")
        fields: Dict[str, Any] = made
        return fields


Change = Callable[[ImageBatch], ImageBatch]


class Steps:
    """Takes and transforms batches, one after the other. Not the loader's own part, so that a thread which is in a step
    does not keep the loader."""

    def __init__(self, feed: Feed, changes: Sequence[Change], device: Optional[torch.device]) -> None:
        self._feed = feed
        self._changes = changes
        # What the thread's kernels run on.
        self._stream = None if device is None else cuda.Stream(device)
        self._device = device
        # Taken but not transformed, because that failed; with the state after it.
        self._left: Optional[Tuple[ImageBatch, str]] = None
        # After an error and at the end the thread does nothing before the caller has seen it.
        self.is_stopped = False
        self.reset_times()

    def reset_times(self) -> None:
        self.wait_seconds = self.transform_seconds = 0.0

    def forget(self) -> None:
        self._left = None
        self.is_stopped = False
        self._feed.forget()

    def state(self, core: Any) -> str:
        return self._feed.state_before(core.state)

    def run(self, core: Any) -> Optional[Tuple[ImageBatch, str]]:
        """The next batch and the state after it, or None at the end. A batch whose transform failed is given again."""
        begin = time.perf_counter()
        if self._left is None:
            batch = self._feed.take(core)
            self._left = None if batch is None else (batch, self.state(core))
        taken = time.perf_counter()
        self.wait_seconds += taken - begin
        if self._left is None:
            return None
        batch, state = self._left
        try:
            made = batch
            for change in self._changes:
                made = change(made)
        finally:
            self.transform_seconds += time.perf_counter() - taken
        self._left = None
        return made, state

    def run_ahead(self, core: Any) -> Optional[Tuple[ImageBatch, str, Any]]:
        """As `run`, on a thread, with an event after which the batch is ready, of a device."""
        if self.is_stopped:
            return None
        self.is_stopped = True
        with self._on_own_stream():
            found = self.run(core)
            event = None if self._stream is None else cuda.Event()
            if event:
                event.record(self._stream)
        if found is None:
            return None
        self.is_stopped = False
        return (*found, event)

    @contextlib.contextmanager
    def _on_own_stream(self) -> Iterator[None]:
        if self._stream is None:
            yield
            return
        with cuda.device(self._device), cuda.stream(self._stream):
            yield


class TransformFeed:
    """Changes the batches of another feed, by one function after the other: each when it is asked for, or on a thread that is
    up to `ahead` batches ahead of their user."""

    def __init__(self, feed: Feed, changes: Sequence[Change], ahead: int, device: Optional[torch.device]) -> None:
        self._thread: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._steps = Steps(feed, changes, device if ahead else None)
        self._device = device
        self._ahead = ahead
        self._under_way: Deque["concurrent.futures.Future[Any]"] = deque()
        # The state after the batch that was handed out last; None: as the feed says itself.
        self._state: Optional[str] = None
        self._turn = threading.Lock()
        # What training waited, the transform included, and used batches: the loader counts what the steps do.
        self._wait_seconds = self._step_seconds = 0.0
        self._handed_out: Optional[float] = None  # when the batch was that training has now

    # At the interpreter's end modules may be gone: those that `shutdown` uses, and `sys`.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._thread and not is_finalizing():
            self._thread.shutdown(wait=False, cancel_futures=True)

    def forget(self) -> None:
        """Ends the thread and drops its batches, because another epoch or position begins."""
        self._end_thread()
        self._steps.forget()
        self._state = self._handed_out = None

    def reset_times(self) -> None:
        self._wait_seconds = self._step_seconds = 0.0
        self._steps.reset_times()

    def add_to(self, stats: LoaderStats) -> None:
        """Puts the times of training in the place of those of the loader, whose batches the transform waits for."""
        stats.wait_seconds, stats.step_seconds = self._wait_seconds, self._step_seconds
        stats.seconds = stats.wait_seconds + stats.step_seconds
        stats.transform_seconds, stats.transform_wait_seconds = self._steps.transform_seconds, self._steps.wait_seconds
        stats.transform_ahead = self._ahead

    def state_before(self, state: Callable[[], str]) -> str:
        """The loader's state before the batches that are ahead."""
        return state() if self._state is None else self._state

    def take(self, core: Any) -> Optional[ImageBatch]:
        if not self._turn.acquire(blocking=False):
            raise Error("another thread is using this loader; make one for each", "usage")
        begin = time.perf_counter()
        if self._handed_out is not None:
            self._step_seconds += begin - self._handed_out
        try:
            if self._state is None:
                self._state = self._steps.state(core)
            found = self._run_ahead(core) if self._ahead else self._steps.run(core)
            batch, self._state = found or (None, None)
            return batch
        finally:
            end = time.perf_counter()
            self._wait_seconds += end - begin
            self._handed_out = None if self._state is None else end
            self._turn.release()

    def _run_ahead(self, core: Any) -> Optional[Tuple[ImageBatch, str]]:
        self._fill(core)
        future = self._under_way[0]
        try:
            found = future.result()
        except BaseException as error:
            # Not for Ctrl-C while waiting: the batch is asked for again.
            if future.done() and future.exception() is error:
                self._end_thread()
            raise
        if found is None:
            self._end_thread()
            return None
        self._under_way.popleft()
        self._fill(core)
        batch, state, event = found
        if event:
            hand_over((batch.images, batch.labels, batch.samples, *batch.fields.values()), event, self._device)
        return batch, state

    def _fill(self, core: Any) -> None:
        if self._thread is None:
            self._thread = concurrent.futures.ThreadPoolExecutor(1, "chunkhit-transform")
        while len(self._under_way) < self._ahead:
            self._under_way.append(self._thread.submit(self._steps.run_ahead, core))

    def _end_thread(self) -> None:
        if self._thread:
            self._thread.shutdown(wait=True, cancel_futures=True)
        self._thread = None
        self._under_way.clear()
        self._steps.is_stopped = False

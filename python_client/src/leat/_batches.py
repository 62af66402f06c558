# SPDX-License-Identifier: Apache-2.0
"""Batches: an iterator over dicts of NumPy arrays that borrow the library's buffers.

A buffer goes back to the library's pool when nothing can see it any more: each
array's base is a `_Memory`, which holds the `_Buffer` of the whole batch, and
views, slices, memoryviews, DLPack capsules, torch tensors and aliasing JAX
arrays all hold the array. The last reference frees the batch, in any thread.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from leat import _dlpack, _finish, _native, _progress
from leat.errors import Cancelled, DeadlineExceeded, Error, InvalidArgument

_TOKEN_CAPACITY = 1024
# How long a wait in the main thread may keep Python from running a signal handler (Ctrl-C).
_SIGNAL_SLICE_S = 0.25


@functools.cache
def _dtype(name: bytes) -> np.dtype:
    return np.dtype(name.decode())


class _Buffer:
    """One batch of the library; freed once, with the last array that looks into it.

    It holds the job, so that the job outlives the batch in the library too: ending a connection takes time, and
    must not happen in leat_batch_free, which keeps the GIL.
    """

    __slots__ = ("_free", "_getpid", "_job", "_pid", "_pointer")

    def __init__(self, pointer: int, job: Any) -> None:
        self._pointer = pointer
        self._job = job
        self._free = _native.quick.leat_batch_free
        self._getpid = os.getpid  # kept here: modules are gone when the interpreter ends
        self._pid = os.getpid()

    def __del__(self) -> None:
        if self._pid == self._getpid():
            self._free(self._pointer)

    def dlpack(self, index: int, versioned: bool, stream: int) -> Any:
        """A capsule of tensor `index`, which owns a share of the batch."""
        return _dlpack.capsule(self._pointer, index, versioned, stream)


class _Memory:
    """What a NumPy array has as its base: address and shape for NumPy, and the buffer kept alive."""

    __slots__ = ("__array_interface__", "_buffer")

    def __init__(self, buffer: _Buffer, tensor: _native.Tensor) -> None:
        self._buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(tensor.shape[: tensor.rank]),
            "typestr": _dtype(tensor.dtype).str,
            "data": (tensor.data, False),
        }


def arrays(pointer: int, job: Any) -> dict[str, np.ndarray]:
    """The arrays of a batch of `job`, by name; they own it from here on."""
    buffer = _Buffer(pointer, job)
    result = {}
    for i in range(_native.quick.leat_batch_num_tensors(pointer)):
        tensor = _native.quick.leat_batch_tensor(pointer, i)
        name = tensor.name.decode()
        if tensor.bytes == 0:
            result[name] = np.empty(tuple(tensor.shape[: tensor.rank]), _dtype(tensor.dtype))
        else:
            result[name] = np.asarray(_Memory(buffer, tensor))
    return result


def tensors(pointer: int, job: Any) -> dict[str, _dlpack.Tensor]:
    """The tensors of a batch of `job`, wherever its memory is; they own it from here on."""
    buffer = _Buffer(pointer, job)
    count = _native.quick.leat_batch_num_tensors(pointer)
    views = [_native.quick.leat_batch_tensor(pointer, i) for i in range(count)]
    return {view.name.decode(): _dlpack.Tensor(buffer, i, view) for i, view in enumerate(views)}


def row_numbers(rows: Any, batch: int) -> np.ndarray | None:
    """`rows` (range, slice, array or list of whole numbers) as uint32; None: all rows."""
    if rows is None:
        return None
    if isinstance(rows, slice):
        rows = range(*rows.indices(batch))
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "iu":
        raise InvalidArgument(
            f"rows = {rows!r:.120}; expected a range, a slice or a list of row numbers, at least one, below {batch}"
        )
    outside = numbers[(numbers < 0) | (numbers >= batch)]
    if outside.size:
        raise InvalidArgument(f"rows has {outside[0]}; expected 0 … {batch - 1}: a batch has {batch} rows")
    if np.unique(numbers).size != numbers.size:
        raise InvalidArgument(f"rows = {rows!r:.120} has a row twice; expected each at most once")
    return np.ascontiguousarray(numbers, dtype=np.uint32)


class Opened(NamedTuple):
    """An iterator of the library.

    Attributes:
        epochs: how many, counted from the job's first; 0: without end; None: the rest of the token's.
        feeder: of a job whose samples come from here.
    """

    pointer: int
    epochs: int | None
    feeder: Any


class Batches(Iterator[dict[str, np.ndarray]]):
    """Batches in order, each a dict of NumPy arrays; made by `Job.batches`.

    The arrays may be written to and kept for any time; memory is used again
    when no array, view, memoryview or DLPack capsule of a batch is left. Pickling copies.
    Iterate from one thread at a time; all else may be called from any.

    Attributes:
        epoch, step: of the last batch handed out; None before the first.
    """

    def __init__(
        self, job: Any, open_at: Callable[[bytes | None], Opened], token: bytes | None, rows: int, *, device: int = -1
    ) -> None:
        self.job = job
        self.epoch: int | None = None
        self.step: int | None = None
        self._open_at = open_at
        self._rows = rows
        # Batches in a GPU's memory, for the frameworks, are dicts of _dlpack.Tensor.
        self._of_pointer: Any = arrays if device < 0 else tensors
        # Held during calls into the library, to take batches and to ask for anything else, which may be another
        # thread's; re-entrant, since a signal handler may close while we wait.
        self._taking = threading.RLock()
        self._asking = threading.RLock()
        self._closing = threading.Lock()
        self._text = ctypes.create_string_buffer(_TOKEN_CAPACITY)
        self._bar: _progress.Bar | None = None
        self._shows_progress = False
        self._begin(open_at(token))
        # What is left to do to arrays that are bytes, by name.
        self._finish = _finish.of_batches(self._handle.get(), job.schema)

    def _begin(self, opened: Opened) -> None:
        self._handle = _native.Handle(opened.pointer, "leat_batches_free", "batches iterator")
        self._epochs = opened.epochs
        self._feeder = opened.feeder
        self._ended = False
        self._last_stats = ""

    def show_progress(self) -> None:
        """Shows a tqdm bar."""
        self._shows_progress = True
        self._bar = _progress.Bar(self, self._epochs)

    def __iter__(self) -> Batches:
        return self

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        place = "not started" if self.epoch is None else f"epoch {self.epoch} step {self.step}"
        return f"<leat batches of job {self.job.name!r}: {'closed' if self._handle.closed else place}>"

    def __next__(self) -> dict[str, np.ndarray]:
        batch = self.next(timeout=None)
        if batch is None:
            if self._bar:
                self._bar.close()
            raise StopIteration
        return batch

    def next(self, timeout: float | None = None) -> dict[str, np.ndarray] | None:
        """The next batch; None at the end, or once closed.

        Args:
            timeout: seconds to wait; None: without limit. 0 asks only whether it is there.

        Raises:
            leat.DeadlineExceeded: none within the timeout; call again, nothing is lost.
            leat.Error: the iterator failed (a bad sample, no worker): final, with the service's text.
        """
        with self._taking:
            if self._ended:
                return None
            try:
                pointer = self._wait(timeout)
            except Cancelled:
                if self._ended:
                    return None
                raise
            except DeadlineExceeded:
                raise
            except Error as error:
                raise error from (self._feeder.error if self._feeder else None)
            if not pointer:
                self._ended = True
                return None
            quick = _native.quick
            self.epoch, self.step = quick.leat_batch_epoch(pointer), quick.leat_batch_step(pointer)
            batch = self._of_pointer(pointer, self.job)
            # The library alone can read in which epoch a token lies.
            if self._epochs is None and self.step == len(self.job) - 1:
                self._ended = True
        if self._bar:
            self._bar.update()
        return batch

    def _wait(self, timeout: float | None) -> int | None:
        """leat_batches_next, in slices in the main thread so that Ctrl-C works."""
        out = ctypes.c_void_p()
        in_slices = timeout is None and threading.current_thread() is threading.main_thread()
        slice_s = _SIGNAL_SLICE_S if in_slices else -1.0 if timeout is None else max(float(timeout), 0.0)
        while not self._ended:
            status = _native.lib.leat_batches_next(self._handle.get(), slice_s, ctypes.byref(out))
            if not status:
                return out.value
            try:
                _native.check(status)
            except DeadlineExceeded:
                if not in_slices:
                    raise
        return None

    def token(self) -> bytes:
        """Where the consumer is: after the last batch handed out. For the trainer's checkpoint; under 1 KiB."""
        with self._asking:
            size = _native.quick.leat_batches_token(self._handle.get(), self._text, _TOKEN_CAPACITY)
            return ctypes.string_at(self._text, size)

    def get_state(self) -> bytes:
        """As `token`; the name that Grain and checkpoint handlers know."""
        return self.token()

    def set_state(self, state: bytes) -> None:
        """Goes on after the batch at which `get_state` or `token` gave `state`, here or in another process.

        Raises:
            leat.InvalidArgument: it is of another job. The iterator stays where it was.
        """
        self.prepared(state)()

    def prepared(self, state: bytes) -> Callable[[], None]:
        """Opens at `state`, or raises as `set_state`; what it returns goes on there."""
        opened = self._open_at(state)

        def go_on() -> None:
            self.close()
            with self._taking, self._asking:
                self.epoch = self.step = None
                self._begin(opened)
                if self._shows_progress:
                    self.show_progress()

        return go_on

    def samples(self, epoch: int, step: int) -> np.ndarray:
        """The plan's sample numbers of a step, in the order of the rows; 2**64-1 marks a row without a sample."""
        result = np.empty(self._rows, np.uint64)
        pointer = result.ctypes.data_as(ctypes.POINTER(ctypes.c_uint64))
        with self._asking:
            _native.check(_native.lib.leat_batches_samples(self._handle.get(), epoch, step, pointer))
        return result

    def stats(self) -> dict[str, Any]:
        """Rates, waits and traffic so far, or until it was closed.

        steps, rows, bytes (received), rows_per_s, stall_fraction, wait, plane ("grpc", "shm" or "cuda": how rows come),
        payload_copies, workers, …
        """
        with self._asking:
            if self._handle.closed and self._last_stats:
                return json.loads(self._last_stats)
            return json.loads(_native.take_text(_native.lib.leat_batches_stats_json(self._handle.get())) or "{}")

    def begin_wait(self) -> None:
        """Opened with ahead=True: the trainer waits from now on."""
        with self._asking:
            if not self._handle.closed:
                _native.quick.leat_batches_begin_wait(self._handle.get())

    def end_wait(self, delivered: bool) -> None:
        """Opened with ahead=True: the trainer waits no longer, since it has a batch, or gave up."""
        with self._asking:
            if not self._handle.closed:
                _native.quick.leat_batches_end_wait(self._handle.get(), delivered)

    def close(self) -> None:
        """Ends the iterator, also while another thread waits in it. Idempotent; batches handed out stay valid."""
        # Not blocking: whoever has it is closing already, and may be waiting for our thread to leave the library.
        if not self._closing.acquire(blocking=False):
            return
        try:
            if self._handle.closed:
                return
            self._ended = True  # before the waiting thread is woken: it is the end, not an error
            _native.lib.leat_batches_cancel(self._handle.get())
            with self._taking, self._asking:
                if self._bar:
                    self._bar.close()
                self._last_stats = _native.take_text(_native.lib.leat_batches_stats_json(self._handle.get()))
                self._handle.close()
        finally:
            self._closing.release()


def row_pointer(rows: np.ndarray | None) -> tuple[Any, int]:
    """(const uint32_t*, count) for leat_batches_open."""
    if rows is None:
        return None, 0
    return rows.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32)), rows.size


def stack_one(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A batch of one row without its row axis."""
    return {name: array[0] for name, array in batch.items()}

# SPDX-License-Identifier: Apache-2.0
"""Batches: iterators whose batches borrow the library's buffers.

A batch is either handed out or still the next one, wherever Ctrl-C falls. CPython runs signal handlers at calls and at
jumps backward, and nowhere else. The lines that hand a batch out (`next`, `__next__`) are stores between the last call
and the return, so no handler can run when a batch has left the iterator and has not reached the caller.
"""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from leat._graphs.options import seconds
from leat._iterators import epilogue, progress
from leat._library import native, threads
from leat._library.buffer import Buffer, arrays, tensors
from leat.errors import Cancelled, DeadlineExceeded, Error, FailedPrecondition, InvalidArgument

_POSITION_CAPACITY = 1024

_T = TypeVar("_T")
_Self = TypeVar("_Self", bound="BatchIterator[Any]")


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
    """An open iterator of the library.

    Attributes:
        cell: holds the pointer to it.
        begin: epoch and step of the first batch.
        end: the first epoch that is not delivered; None: there is no end.
        feeder: supplies the samples, for a job whose samples come from this process; otherwise None.
    """

    cell: native.Cell
    begin: tuple[int, int]
    end: int | None
    feeder: Any


class Taken(NamedTuple):
    """A batch that the library has given and that has not been handed out yet."""

    batch: Any
    at: tuple[int, int]  # epoch and step


def samples_of(
    job: Any, at: tuple[int, int] | None, rows: np.ndarray | None, epoch: int | None, step: int | None
) -> np.ndarray:
    """Implements `samples` of the iterators; `at`: epoch and step of the last batch handed out."""
    if (epoch is None) != (step is None):
        raise InvalidArgument(f"epoch = {epoch!r}, step = {step!r}; expected both, or none for the last batch")
    if epoch is None or step is None:
        if at is None:
            raise FailedPrecondition("no batch has been handed out yet; expected epoch and step")
        epoch, step = at
    numbers = job.samples(epoch, step, rows)
    return numbers[numbers >= 0] if job.last_batch == "partial" else numbers


class BatchIterator(Iterator[_T], Generic[_T]):
    """Batches in order, each converted by `_convert`.

    Iterate from one thread at a time; everything else may be called from any thread.
    """

    def __init__(
        self,
        job: Any,
        open_at: Callable[[bytes | None], Opened | None],
        position: bytes | None,
        rows: np.ndarray | None,
        *,
        device: int = -1,
    ) -> None:
        self.job = job
        self._open_at = open_at
        self._rows = rows
        self._device = device
        # _taking is held while batches are taken from the library, _asking during all other calls into it, which may
        # come from other threads. Both are re-entrant, since a signal handler may call close while this thread waits.
        self._taking = threading.RLock()
        self._asking = threading.RLock()
        self._closing = threading.Lock()
        self._text = ctypes.create_string_buffer(_POSITION_CAPACITY)
        self._bar: progress.Bar | None = None
        self._shows_progress = False
        opened = open_at(position)
        assert opened is not None  # no range is empty
        self._begin(opened)
        # The operators still to be applied to arrays of bytes, by field name.
        self._epilogues = self._handle.call(epilogue.of_batches, job.schema)

    def _begin(self, opened: Opened) -> None:
        self._handle = native.Handle(opened.cell, "batches iterator")
        self._begun_at, self._end = opened.begin, opened.end
        self._feeder = opened.feeder
        self._ended = False
        self._last_stats = ""
        self._at: tuple[int, int] | None = None  # position of the last batch handed out
        self._first = self._position_at(None)
        # The next batch, from the moment when the library gives it until it is handed out.
        self._buffer: Buffer | None = None
        self._taken: Taken | None = None

    @property
    def epoch(self) -> int | None:
        """Epoch of the last batch handed out; None before the first."""
        at = self._at
        return None if at is None else at[0]

    @property
    def step(self) -> int | None:
        """Step of the last batch handed out; None before the first."""
        at = self._at
        return None if at is None else at[1]

    def show_progress(self) -> None:
        """Shows a tqdm bar."""
        self._shows_progress = True
        self._bar = progress.Bar(self, self._end)

    def __iter__(self: _Self) -> _Self:
        return self

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Returns the number of batches from where it was opened, or moved by `set_state`, to its end.

        Raises:
            TypeError: the iterator has no end.
        """
        if self._end is None:
            raise TypeError(f"{self!r} has no length: it was opened with epochs=0")
        epoch, step = self._begun_at
        return (self._end - epoch) * self.job._steps - step

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        shown = "not started" if self._at is None else f"epoch {self.epoch} step {self.step}"
        return f"<leat batches of job {self.job.name!r}: {'closed' if self._handle.closed else shown}>"

    def _convert(self, buffer: Buffer) -> _T:
        """Converts a buffer to the batch that the iterator hands out."""
        raise NotImplementedError

    def __next__(self) -> _T:
        taken = self._take(None)
        if taken is None:
            if self._bar:
                self._bar.close()
            raise StopIteration
        # No calls from here on: see the top of the file.
        self._buffer = self._taken = None
        self._at = taken.at
        return taken.batch

    def next(self, timeout: float | None = None) -> _T | None:
        """Returns the next batch; None at the end, or once closed.

        Args:
            timeout: seconds to wait; None: without limit; 0: does not wait.

        Raises:
            leat.DeadlineExceeded: there was none within the timeout; call again, nothing is lost.
            leat.Error: the iterator failed (a bad sample, no worker). This is final; the text is the service's.
        """
        if timeout is not None and timeout != 0:
            timeout = seconds("timeout", timeout)
        taken = self._take(timeout)
        if taken is None:
            return None
        # No calls from here on: see the top of the file.
        self._buffer = self._taken = None
        self._at = taken.at
        return taken.batch

    def _take(self, timeout: float | None) -> Taken | None:
        """Returns the batch to hand out next, which stays the next one until it is handed out; None: the end."""
        with self._taking:
            if self._taken is not None:
                return self._taken
            if self._buffer is None:
                self._buffer = Buffer(self.job)
            buffer = self._buffer
            try:
                there = self._wait(buffer, timeout)
            except Cancelled:
                if self._ended:
                    return None
                raise
            except DeadlineExceeded:
                raise
            except Error as error:
                raise error from (self._feeder.error if self._feeder else None)
            if not there:
                self._ended = True
                return None
            at = buffer.epoch_and_step()
            taken = Taken(self._convert(buffer), at)
            self._taken = taken
        if self._bar:
            self._bar.update(*at)
        return taken

    def _wait(self, buffer: Buffer, timeout: float | None) -> bool:
        """Calls leat_batches_next, in slices in the main thread so that Ctrl-C works. False: the end."""
        in_slices = timeout is None and threading.current_thread() is threading.main_thread()
        slice_s = threads.SLICE_S if in_slices else -1.0 if timeout is None else float(timeout)
        while not (self._ended or buffer.out):
            status = self._handle.call(native.lib.leat_batches_next, slice_s, ctypes.byref(buffer.out))
            if not status:
                break
            try:
                native.check(status)
            except DeadlineExceeded:
                if not in_slices:
                    raise
        return bool(buffer.out)

    def _position_at(self, at: tuple[int, int] | None) -> bytes:
        """Returns the position after a batch; None: before the first one."""
        with self._asking:
            if at is None:
                size = self._handle.call(native.quick.leat_batches_position, self._text, _POSITION_CAPACITY)
            else:
                epoch, step = at
                epoch, step = (epoch, step + 1) if step + 1 < self.job._steps else (epoch + 1, 0)
                size = self._handle.call(
                    native.quick.leat_batches_position_at, epoch, step, self._text, _POSITION_CAPACITY
                )
            return ctypes.string_at(self._text, size)

    def position(self) -> bytes:
        """Returns the consumer's position, after the last batch handed out, for the trainer's checkpoint; under 1 KiB.

        A batch whose `next` was interrupted has not been handed out: the position continues with it.
        """
        with self._asking:
            at = self._at
            return self._first if at is None or self._handle.closed else self._position_at(at)

    def get_state(self) -> bytes:
        """Same as `position`; Grain and checkpoint handlers call it by this name."""
        return self.position()

    def set_state(self, state: bytes) -> None:
        """Continues after the batch at which `get_state` or `position` returned `state`, here or in another process.

        The last epoch stays the one given when the iterator was opened. If it was opened without `epochs`, the last
        epoch becomes the one that the state lies in.

        Raises:
            leat.InvalidArgument: the state is of another job, or after the last epoch. The iterator's position is
                unchanged.
        """
        threads.to_its_end(self.prepared(state))

    def prepared(self, state: bytes) -> Callable[[], None]:
        """Opens at `state`, or raises as `set_state`; returns a function that moves the iterator there."""
        opened = self._open_at(state)

        def go_on() -> None:
            self.close()
            with self._taking, self._asking:
                if opened is None:  # the state is at the end: nothing follows
                    self._first, self._at = bytes(state), None
                    self._begun_at = self.job.step_of(state)
                    return
                self._begin(opened)
                if self._shows_progress:
                    self.show_progress()

        return go_on

    def samples(self, epoch: int | None = None, step: int | None = None) -> np.ndarray:
        """Returns the sample in each row, as int64: of the last batch handed out, or of any step.

        -1 is padding (last_batch="mask"). The rows are those of the batch's arrays; a partial batch has fewer.

        Raises:
            leat.FailedPrecondition: no batch has been handed out, and no step is given.
            leat.OutOfRange: no such step.
        """
        return samples_of(self.job, self._at, self._rows, epoch, step)

    def stats(self) -> dict[str, Any]:
        """Returns rates, waits and traffic so far, or until it was closed.

        steps, rows, bytes: what was received. rows_per_s: counted since the first batch was requested.
        stall_fraction: the fraction of that time that the trainer waited. wait: its waits per step, in ms.
        transport: how rows come, "grpc", "shm" or "cuda".
        hedged_rows, failed_over_rows: rows that were requested again because a worker was late, or was lost.
        duplicate_rows: rows that came twice.
        unproven_streams: connections that were dropped because the peer did not prove to be the worker.
        payload_copies: copies of rows in this process. workers: rows, bytes and failures (lost connections) of each.
        """
        with self._asking:
            if self._handle.closed and self._last_stats:
                return json.loads(self._last_stats)
            return json.loads(native.take_text(self._handle.call(native.lib.leat_batches_stats_json)) or "{}")

    def begin_wait(self) -> None:
        """For iterators opened with ahead=True: the trainer waits from now on."""
        with self._asking:
            if not self._handle.closed:
                self._handle.call(native.quick.leat_batches_begin_wait)

    def end_wait(self, delivered: bool) -> None:
        """For iterators opened with ahead=True: the trainer stops waiting, since it has a batch or gave up."""
        with self._asking:
            if not self._handle.closed:
                self._handle.call(native.quick.leat_batches_end_wait, delivered)

    def close(self) -> None:
        """Ends the iterator, even while another thread waits in it. Idempotent; batches handed out stay valid."""
        # Does not block: the thread that holds it is closing already, and may wait for this one to leave the library.
        if not self._closing.acquire(blocking=False):
            return
        try:
            if self._handle.closed:
                return
            self._ended = True  # before the waiting thread is woken: it is the end, not an error
            self._handle.call(native.lib.leat_batches_cancel)
            with self._taking, self._asking:
                if self._bar:
                    self._bar.close()
                self._last_stats = native.take_text(self._handle.call(native.lib.leat_batches_stats_json))
                self._first = self.position()  # position() returns this from now on
                self._buffer = self._taken = None
                self._handle.close()
        finally:
            self._closing.release()


def row_pointer(rows: np.ndarray | None) -> tuple[Any, int]:
    """Returns (const uint32_t*, count) for leat_batches_open."""
    if rows is None:
        return None, 0
    return rows.ctypes.data_as(ctypes.POINTER(ctypes.c_uint32)), rows.size


class Batches(BatchIterator[dict[str, npt.NDArray[Any]]]):
    """Batches in order, each a dict of NumPy arrays; made by `Job.batches`.

    The arrays may be written to and kept for any time; their memory is reused when no array, view, memoryview or DLPack
    capsule of a batch is left. Pickling copies.
    """

    def _convert(self, buffer: Buffer) -> dict[str, Any]:
        # Batches in a GPU's memory, for the frameworks, are dicts of dlpack.Tensor.
        return arrays(buffer) if self._device < 0 else tensors(buffer)

# SPDX-License-Identifier: Apache-2.0
"""The base of the iterators for all frameworks: epochs, resets, checkpoints, and pulling batches."""

from __future__ import annotations

import contextlib
import copy
import logging
import warnings
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from leat._iterators.peekable import Found
from leat.dali.plugin import _checkpoints, _pulling
from leat.dali.plugin._counting import Counting, LastBatchPolicy, Reader
from leat.dali.types import PipelineAPIType
from leat.errors import DeadlineExceeded, FailedPrecondition

__all__ = ["BaseIterator", "LastBatchPolicy"]

_logger = logging.getLogger("leat.dali")
_Batch = TypeVar("_Batch")
_Self = TypeVar("_Self", bound="BaseIterator[Any]")


def _require(condition: Any, text: str) -> None:
    """Works as Python's `assert`, also under -O."""
    if not condition:
        raise AssertionError(text)


def _checked_reset(auto_reset: Any) -> bool:
    if auto_reset is None or auto_reset is False or auto_reset == "no":
        return False
    if auto_reset is True or auto_reset == "yes":
        return True
    raise ValueError(f"Unsupported value for `auto_reset` {auto_reset!r}; expected True, False, None, 'yes' or 'no'")


def _checked_policy(policy: Any, fill_last_batch: bool | None) -> LastBatchPolicy:
    if fill_last_batch is not None:
        warnings.warn("`fill_last_batch` is deprecated; use `last_batch_policy`", Warning, stacklevel=4)
        return LastBatchPolicy.FILL if fill_last_batch else LastBatchPolicy.PARTIAL
    if type(policy) is not LastBatchPolicy:
        raise ValueError(f"Wrong type for `last_batch_policy`. Expected {LastBatchPolicy}, got {type(policy)}")
    return policy


def check_names(output_map: list[str], policy: Any) -> None:
    """Raises AssertionError if outputs share a name, or one has the name that LastBatchPolicy.MASK gives its array."""
    _require(len(set(output_map)) == len(output_map), f"output_map names should be distinct; got {output_map}")
    taken = policy is LastBatchPolicy.MASK and "valid" in output_map
    why = "with LastBatchPolicy.MASK the name 'valid' is that of the marks; expected another"
    _require(not taken, f"output_map = {output_map}: {why}")


class Last(NamedTuple):
    """A batch that was handed out: where it began, and the rows of each pipeline that count, if known."""

    positions: _pulling.Positions
    rows: list[int] | None


class Standing(NamedTuple):
    """An immutable position between two batches: of each pipeline, and of the iterator within its epoch."""

    positions: _pulling.Positions
    counting: Counting
    last: Last | None = None


class Pulled(NamedTuple):
    """A batch on the devices, with the positions before and after it; or the error that occurred."""

    before: _pulling.Positions
    batch: Any
    after: _pulling.Positions
    error: Exception | None = None


class BaseIterator(Iterator[_Batch], Generic[_Batch]):
    """Iterates over the batches of pipelines, epoch after epoch; the base of each framework's iterator.

    While a batch is used, the next one, if it has arrived and the pipelines
    allow it, is already on its way to the devices. Use from one thread at a time.

    A batch is handed out by storing the iterator's position after it, and no call follows; see
    leat._iterators.batches. If anything raises before that, Ctrl-C too, the iterator stays where it was.

    Attributes:
        batch_size: rows of one pipeline's batch.
    """

    def __init__(
        self,
        pipelines: Any,
        size: int,
        reader_name: str | None,
        auto_reset: Any,
        fill_last_batch: bool | None,
        last_batch_padded: bool,
        last_batch_policy: Any,
        prepare_first_batch: bool,
    ) -> None:
        _require(pipelines is not None and pipelines != [], "Number of provided pipelines has to be at least 1")
        self._pipes = list(pipelines) if isinstance(pipelines, (list, tuple)) else [pipelines]
        self.batch_size: int = self._pipes[0].max_batch_size
        sizes = [pipe.max_batch_size for pipe in self._pipes]
        _require(len(set(sizes)) == 1, f"All pipelines should have the same batch size set; got {sizes}")
        self._auto_reset = _checked_reset(auto_reset)
        policy = _checked_policy(last_batch_policy, fill_last_batch)
        size = int(size)
        _require(size != 0, "Size cannot be 0")
        _require(
            size > 0 or len(self._pipes) == 1 or reader_name,
            "Negative size is supported only for a single pipeline",
        )
        _require(not reader_name or size < 0, "When reader_name is provided, size should not be set")
        _require(
            not reader_name or not last_batch_padded,
            "When reader_name is provided, last_batch_padded should not be set",
        )
        if size > 0:
            warnings.warn(
                "set `reader_name` rather than `size` and `last_batch_padded` where there is a reader: a size that is "
                "not the shard's leaves samples out or repeats them",
                Warning,
                stacklevel=3,
            )
        for pipe in self._pipes:
            pipe.build()
            pipe._ways.use(PipelineAPIType.ITERATOR)
        self._reader_name = reader_name
        self._marks = policy is LastBatchPolicy.MASK
        if self._marks:
            self._check_marks()
            policy = LastBatchPolicy.FILL
        reader = Reader.common([pipe.reader_meta(reader_name) for pipe in self._pipes]) if reader_name else None
        counting = Counting(
            self.batch_size, len(self._pipes), policy, size=size, padded=bool(last_batch_padded), reader=reader
        )
        self._ever_consumed = False
        self._pulling = _pulling.of(self._pipes)
        self._standing = Standing(tuple(pipe._position() for pipe in self._pipes), counting)
        self._found: Found | None = None  # the next batch, once it was looked at
        self._pulled: Pulled | None = None  # the next batch
        self._ahead: Pulled | None = None  # the batch after that
        self._open_checkpoints()
        if prepare_first_batch:
            self._prepare()

    def _check_marks(self) -> None:
        _require(
            self._reader_name,
            "LastBatchPolicy.MASK needs reader_name: the rows that fill a batch up are known only from a reader",
        )
        _require(
            all(pipe.reader_meta(self._reader_name)["pad_last_batch"] for pipe in self._pipes),
            f"LastBatchPolicy.MASK needs pad_last_batch=True of the reader {self._reader_name!r}: otherwise batches "
            "are filled with the samples of the next epoch, which DALI then leaves out there",
        )

    @property
    def _counting(self) -> Counting:
        return self._standing.counting

    # Methods that a framework implements.

    def _convert(self, outputs: list[list[Any]]) -> _Batch:
        """Converts the outputs of each pipeline to the framework's batch."""
        raise NotImplementedError

    def _mark(self, batch: _Batch, valid: list[Any]) -> _Batch:
        """Adds the bool arrays of the pipelines to the batch as "valid"."""
        raise NotImplementedError

    def _trim(self, batch: _Batch, rows: list[int]) -> _Batch:
        """Returns the first rows of the first pipelines' batches."""
        raise NotImplementedError

    # Pulling.

    def _prepare(self) -> None:
        try:
            self._find()
        except StopIteration:
            # The checkpoint was taken at the end of an epoch, so the iterator continues there.
            if not all(pipe.is_restored_from_checkpoint for pipe in self._pipes):
                raise RuntimeError(
                    "It seems that there is no data in the pipeline. This may happen if `last_batch_policy` is set to "
                    "PARTIAL or DROP and the requested batch size is greater than the shard size."
                ) from None
            self._ever_consumed = True

    # True if `_convert` takes lists of samples where their shapes differ.
    _takes_lists = False

    def _check_rows(self, outputs: list[list[Any]]) -> None:
        for arrays in outputs if not self._takes_lists else ():
            for i, array in enumerate(arrays):
                if isinstance(array, list):
                    shapes = sorted({tuple(each.shape) for each in array})
                    raise ValueError(
                        f"output {i} of the pipeline has samples of several shapes, {shapes[0]} and {shapes[-1]} among "
                        "them, and the iterator gives whole arrays; resize, crop or pad them, or use "
                        "plugin.pytorch.DALIRaggedIterator"
                    )
        if self._reader_name is None and self._counting.size < 0:
            return
        for arrays in outputs:
            for array in arrays:
                _require(
                    len(array) == self.batch_size,
                    "Variable batch size is not supported by the iterator when reader_name is provided or iterator "
                    f"size is set explicitly: got {len(array)} rows, expected {self.batch_size}",
                )

    def _pull(self, positions: _pulling.Positions, timeout: float | None) -> Pulled:
        outputs, after = self._pulling.at(positions, timeout)
        self._check_rows(outputs)
        return Pulled(positions, self._convert(outputs), after)

    def _take(self) -> Pulled:
        """Returns the batch that comes next; the one after it starts on its way."""
        positions, pulled = self._standing.positions, self._pulled
        if pulled is None or pulled.before != positions:
            ahead = self._ahead
            pulled = ahead if ahead is not None and ahead.before == positions else self._pull(positions, timeout=None)
            self._pulled, self._ahead = pulled, None
        if pulled.error is not None:
            self._pulled = None
            raise pulled.error
        if self._pulling.looks_ahead and self._ahead is None:
            try:
                self._ahead = self._pull(pulled.after, timeout=0)
            except DeadlineExceeded:
                pass
            except Exception as error:  # waits for its turn
                self._ahead = Pulled(pulled.after, None, (), error)
        return pulled

    def _find(self) -> Found:
        """Returns the batch to hand out next, the same until it is handed out; StopIteration at the end of an epoch."""
        known, standing = self._known(), self._standing
        if known is not None:
            return known
        if standing.counting.ended:
            self._end_epoch()
        try:
            pulled = self._take()
        except StopIteration:
            if standing.counting.size < 0 and self._auto_reset:
                self.reset()
            raise
        counting = copy.copy(standing.counting)
        dropped = counting.advance()
        if dropped:  # it is not handed out
            self._standing = Standing(pulled.after, counting, standing.last)
            self._end_epoch()
        rows, batch = counting.rows_kept(), pulled.batch
        if rows is not None:
            batch = self._trim(batch, rows)
        elif self._marks:
            rows = counting.rows_of_shards()
            batch = self._mark(batch, [np.arange(self.batch_size) < count for count in rows])
        after = Standing(pulled.after, counting, Last(standing.positions, rows))
        self._found = found = Found(standing, batch, after)
        return found

    _find_next = _find

    def _known(self) -> Found | None:
        """Returns the batch to hand out next, if it was found already."""
        found = self._found
        return found if found is not None and found.before is self._standing else None

    def _hand_out(self, found: Found) -> None:
        self._standing = found.after

    def _end_epoch(self) -> None:
        if self._auto_reset:
            self.reset()
        raise StopIteration

    # For users.

    def __next__(self) -> _Batch:
        self._ever_consumed = True
        found = self._find_next()
        # No calls from here on: see the class.
        self._standing = found.after
        self._found = self._pulled = None
        return found.batch

    def next(self) -> _Batch:
        """Returns the next batch, as `next(iterator)`."""
        self._ever_consumed = True
        found = self._find_next()
        # No calls from here on: see the class.
        self._standing = found.after
        self._found = self._pulled = None
        return found.batch

    def __iter__(self: _Self) -> _Self:
        """Begins the next epoch if the last one is finished; continues in it otherwise."""
        if self._counting.counter != 0 and self._ever_consumed:
            self.reset()
        return self

    def __len__(self) -> int:
        """Returns the number of batches of this epoch; the next may have one more or less."""
        return len(self._counting)

    @property
    def size(self) -> int:
        """Samples of this epoch: of a shard with `reader_name`; -1 if only the source knows its end."""
        return self._counting.size

    def reset(self) -> None:
        """Begins the next epoch. Before the end of an epoch it does nothing, and logs that."""
        counting, positions = copy.copy(self._standing.counting), self._standing.positions
        if counting.overflows() and not counting.ended:
            with contextlib.suppress(StopIteration):
                positions = self._take().after  # skips the incomplete batch
            counting.advance()
        if not counting.may_restart:
            _logger.warning(
                "the iterator does not support resetting while epoch is not finished (%d of %d samples). Ignoring...",
                counting.counter,
                counting.size,
            )
            return
        counting.restart()
        begun = tuple(pipe._begun_again(position) for pipe, position in zip(self._pipes, positions))
        self._standing = Standing(begun, counting, self._standing.last)

    def samples(self) -> np.ndarray:
        """Returns the sample in each row of the last batch handed out, as int64: pipeline after pipeline.

        -1: the row only fills the batch (LastBatchPolicy.MASK). With PARTIAL there are as many as rows.

        Raises:
            leat.FailedPrecondition: no batch has been handed out.
            leat.Unimplemented: a pipeline has no reader, so its samples have no numbers.
        """
        last = self._standing.last
        if last is None:
            raise FailedPrecondition("no batch has been handed out; expected samples() after next()")
        kept = [self.batch_size] * len(self._pipes) if last.rows is None else last.rows
        numbers = []
        for pipe, position, count in zip(self._pipes, last.positions, kept):
            found = pipe._samples_at(position)
            if self._marks:
                found[count:] = -1
            numbers.append(found if self._marks else found[:count])
        return np.concatenate(numbers)

    def __repr__(self) -> str:
        counting = self._counting
        of = "" if counting.size < 0 else f" of {counting.size:,}"
        return (
            f"<leat.dali {type(self).__name__}: {len(self._pipes)} pipelines with batches of {self.batch_size}, "
            f"{counting.counter:,}{of} samples into its epoch>"
        )

    # Checkpoints.

    def _open_checkpoints(self) -> None:
        flags = [bool(pipe.enable_checkpointing) for pipe in self._pipes]
        if any(flag != flags[0] for flag in flags):
            raise ValueError(f"All wrapped pipelines must have the same value for `enable_checkpointing`. Got {flags}.")
        self._checkpointing = flags[0]
        if not self._checkpointing:
            return
        if any(pipe.is_restored_from_checkpoint for pipe in self._pipes):
            for pipe in self._pipes:
                if pipe.is_restored_from_checkpoint:
                    _checkpoints.check_same(pipe._checkpoint, pipe._state())
            counted = [_checkpoints.counted(pipe._checkpoint) for pipe in self._pipes]
            if any(data != counted[0] for data in counted):
                _logger.warning("the pipelines are restored from checkpoints of different steps; the first one counts")
            if counted[0] is None:
                _logger.warning("the checkpoint was not taken by an iterator; the epoch begins where the data is")
            else:
                self._counting.restore(counted[0])

    def checkpoints(self) -> list[str]:
        """Returns the position: one text for each pipeline, for `checkpoints=` of a decorated function.

        Raises:
            ValueError: the pipelines were made without `enable_checkpointing`.
        """
        if not self._checkpointing:
            raise ValueError(
                "Cannot access checkpoints with checkpointing disabled; expected pipelines with "
                "enable_checkpointing=True"
            )
        positions, counting, _ = self._standing
        state = counting.state()
        return [_checkpoints.pack(pipe._state(position), state) for pipe, position in zip(self._pipes, positions)]

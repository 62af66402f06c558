# SPDX-License-Identifier: Apache-2.0
"""What the iterators of all frameworks do in the same way: epochs, resets, checkpoints, and pulling batches."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any

from leat.dali.plugin import _checkpoints, _pulling
from leat.dali.plugin._counting import Counting, LastBatchPolicy, Reader
from leat.errors import DeadlineExceeded

__all__ = ["BaseIterator", "LastBatchPolicy"]

_logger = logging.getLogger("leat.dali")


def _require(condition: Any, text: str) -> None:
    """Python's `assert`, also under -O."""
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


class BaseIterator(Iterator[Any]):
    """Over the batches of pipelines, epoch after epoch; the base of each framework's iterator.

    While a batch is used, the next one, if it has arrived and the pipelines
    allow it, is already on its way to the devices. Use from one thread at a time.

    Attributes:
        batch_size: of one pipeline.
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
        self._reader_name = reader_name
        reader = Reader.common([pipe.reader_meta(reader_name) for pipe in self._pipes]) if reader_name else None
        self._counting = Counting(
            self.batch_size, len(self._pipes), policy, size=size, padded=bool(last_batch_padded), reader=reader
        )
        self._ever_consumed = False
        self._first_batch: Any = None
        self._pulling = _pulling.of(self._pipes)
        # A batch on its way to the devices, with the pipelines' states after it; what went wrong on the way.
        self._ahead: tuple[Any, list[bytes]] | None = None
        self._failure: Exception | None = None
        self._states: list[bytes] = []
        self._open_checkpoints()
        if prepare_first_batch:
            self._prepare()

    # What a framework brings.

    def _convert(self, outputs: list[list[Any]]) -> Any:
        """The framework's batch of each pipeline's outputs."""
        raise NotImplementedError

    def _trim(self, batch: Any, rows: list[int]) -> Any:
        """The first rows of each of the first pipelines' batches."""
        raise NotImplementedError

    # Pulling.

    def _prepare(self) -> None:
        try:
            self._first_batch = self._produce()
        except StopIteration:
            # Where a checkpoint was taken at the end of an epoch, that is where it goes on.
            if not all(pipe.is_restored_from_checkpoint for pipe in self._pipes):
                raise RuntimeError(
                    "It seems that there is no data in the pipeline. This may happen if `last_batch_policy` is set to "
                    "PARTIAL or DROP and the requested batch size is greater than the shard size."
                ) from None
        else:
            self._ever_consumed = False

    def _check_rows(self, outputs: list[list[Any]]) -> None:
        if self._reader_name is None and self._counting.size < 0:
            return
        for arrays in outputs:
            for array in arrays:
                _require(
                    len(array) == self.batch_size,
                    "Variable batch size is not supported by the iterator when reader_name is provided or iterator "
                    f"size is set explicitly: got {len(array)} rows, expected {self.batch_size}",
                )

    def _pull(self, timeout: float | None) -> tuple[Any, list[bytes]]:
        outputs = self._pulling.next(timeout)
        self._check_rows(outputs)
        states = [pipe._state() for pipe in self._pipes] if self._checkpointing else []
        return self._convert(outputs), states

    def _take(self) -> Any:
        """The next batch; what comes after it starts on its way."""
        taken, self._ahead = self._ahead, None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        if taken is None:
            taken = self._pull(timeout=None)
        if self._pulling.looks_ahead:
            try:
                self._ahead = self._pull(timeout=0)
            except DeadlineExceeded:
                pass
            except Exception as error:  # waits for its turn
                self._failure = error
        batch, self._states = taken
        return batch

    def _produce(self) -> Any:
        self._ever_consumed = True
        if self._first_batch is not None:
            batch, self._first_batch = self._first_batch, None
            return batch
        if self._counting.ended:
            self._end_epoch()
        try:
            batch = self._take()
        except StopIteration:
            if self._counting.size < 0 and self._auto_reset:
                self.reset()
            raise
        if self._counting.advance():
            self._end_epoch()
        rows = self._counting.rows_kept()
        return batch if rows is None else self._trim(batch, rows)

    def _end_epoch(self) -> None:
        if self._auto_reset:
            self.reset()
        raise StopIteration

    # For users.

    def __next__(self) -> Any:
        return self._produce()

    def next(self) -> Any:
        """The next batch, as `next(iterator)`."""
        return self.__next__()

    def __iter__(self) -> Any:
        """Begins the next epoch, if the last one has been gone through; goes on in it otherwise."""
        if self._counting.counter != 0 and self._ever_consumed:
            self.reset()
        return self

    def __len__(self) -> int:
        """Batches of this epoch; the next may have one more or less."""
        return len(self._counting)

    @property
    def size(self) -> int:
        """Samples of this epoch: of a shard with `reader_name`; -1 if only the source knows its end."""
        return self._counting.size

    def reset(self) -> None:
        """Begins the next epoch. Before the end of an epoch it does nothing, and logs so."""
        counting = self._counting
        if counting.overflows() and not counting.ended:
            with contextlib.suppress(StopIteration):
                self._take()  # the incomplete batch, which nobody asked for
            counting.advance()
        if not counting.may_restart:
            _logger.warning(
                "the iterator does not support resetting while epoch is not finished (%d of %d samples). Ignoring...",
                counting.counter,
                counting.size,
            )
            return
        counting.restart()
        for pipe in self._pipes:
            pipe.reset()

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
                _logger.warning("the pipelines are restored from checkpoints of different places; the first one counts")
            if counted[0] is None:
                _logger.warning("the checkpoint was not taken by an iterator; the epoch begins where the data is")
            else:
                self._counting.restore(counted[0])
        self._states = [pipe._state() for pipe in self._pipes]
        self._initial = self._packed()

    def _packed(self) -> list[str]:
        state = self._counting.state()
        return [_checkpoints.pack(pipeline, state) for pipeline in self._states]

    def checkpoints(self) -> list[str]:
        """Where the consumer is: one text for each pipeline, for `checkpoints=` of a decorated function.

        Raises:
            ValueError: the pipelines were made without `enable_checkpointing`.
        """
        if not self._checkpointing:
            raise ValueError(
                "Cannot access checkpoints with checkpointing disabled; expected pipelines with "
                "enable_checkpointing=True"
            )
        return self._packed() if self._ever_consumed else list(self._initial)

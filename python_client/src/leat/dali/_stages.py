# SPDX-License-Identifier: Apache-2.0
"""The jobs of a pipeline's stages: the reader's, and those over values that this process computed.

A job over values of this process is fed step by step: sample s * G + r is row r of step s, for a batch of G rows over
all shards. So random draws of workers differ between shards, and after a restart at a step the draws are the same.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import itertools
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from leat._graphs.graph import Node
from leat._iterators.numbered import Numbered
from leat._service import shared
from leat.dali import _varying
from leat.dali._plan import Key, WorkerStage, key_of
from leat.errors import Cancelled, InvalidArgument

# The values of one step: arrays with a batch axis, or lists with one array per sample where sizes differ.
Values = dict[Key, Any]
_OURS = ("bool", "uint8", "int32", "int64", "float16", "float32")
_WIDER = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "float64": "float32"}


class Settings:
    """Settings that all jobs of a pipeline share.

    Attributes:
        rows: this pipeline's rows in a step.
        shard, shards: the index of its block in the batch of all shards, and the number of blocks.
        name: the pipeline's name, for messages.
        ahead: how many steps this process computes before they are due.
    """

    def __init__(self, *, rows: int, shard: int, shards: int, seed: int, name: str, ahead: int) -> None:
        self.rows, self.shard, self.shards = rows, shard, shards
        self.seed, self.name, self.ahead = seed, name, ahead

    def of_reader(self, place: int, reader: Any) -> Settings:
        """Returns the settings for the job of one of several readers: with its shards, and random numbers of its
        own."""
        return Settings(
            rows=self.rows,
            shard=reader.shard_id,
            shards=reader.num_shards,
            seed=self._another_seed(f"reader {place}") if place > 0 else self.seed,
            name=self.name,
            ahead=self.ahead,
        )

    def seed_at(self, time: int) -> int:
        """Returns the seed of the job over values of this process at a time. Its samples and operators may have the
        numbers of another job's: with one seed for both they would draw the same."""
        return self._another_seed(f"stage {time}") if time > 0 else self.seed

    def _another_seed(self, of: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{of} of {self.seed}".encode()).digest()[:8], "little")

    @property
    def block(self) -> range:
        """Its rows of the batch of all shards."""
        return range(self.shard * self.rows, (self.shard + 1) * self.rows)


class ReaderStage:
    """A job that reads."""

    def __init__(self, stage: WorkerStage, settings: Settings) -> None:
        self._stage, self._settings = stage, settings
        reader = stage.reader
        self._outputs, self._closed = _varying.Outputs(), False
        try:
            # The first job: it determines the bytes, also when a job with more room gives them.
            self.job = self._outputs.made(self._job)
        except InvalidArgument as error:
            few = re.search(r"num_parts \d+: want at most (\d+)", str(error))
            if few is None:
                raise
            raise _too_few(reader, int(few[1])) from None
        if self.job.num_samples < settings.shards:
            raise _too_few(reader, self.job.num_samples)
        self._steps = Numbered(self.job, rows=settings.block)

    def _job(self, forms: Mapping[str, _varying.Form]) -> Any:
        settings, reader = self._settings, self._stage.reader
        return shared.job(
            self._stage.pipeline(settings.name, forms=forms),
            batch=settings.rows * settings.shards,
            seed=settings.seed,
            shuffle="global" if reader.random_shuffle else "sequential",
            last_batch="pad" if reader.pad_last_batch else "stream",
            num_parts=settings.shards,
            rotate_parts=not (reader.stick_to_shard or reader.shuffle_after_epoch),
            mix_parts=reader.across and reader.random_shuffle and not reader.stick_to_shard,
        )

    @property
    def block(self) -> range:
        """The pipeline's rows of the job's batch."""
        return self._settings.block

    @property
    def gives_arrays(self) -> bool:
        """True if `at` gives the stage's outputs unchanged: each is an array, whatever the samples are."""
        return not self._outputs.vary

    def at(self, step: int, timeout: float | None = None) -> Any:
        """As `Numbered.at`. REQUIRES: gives_arrays."""
        return self._steps.at(step, timeout)

    def run(self, first: int) -> Iterator[Values]:
        """Yields step after step, from `first` on, until it is closed."""
        for step in itertools.count(first):
            values = self._values(step)
            if values is None:
                return
            yield {key_of(node): values[name] for name, node in self._stage.exports.items()}

    def _values(self, step: int) -> dict[str, Any] | None:
        while not self._closed:
            batch = self._steps.at(step)
            if batch is None:
                break
            values = self._outputs.values(batch, self._stage.exports)
            if values is not None:
                return values
            # An interrupted `close` must not leave a closed iterator here: that would report the end of the batches.
            before, self._steps = self._steps, Numbered(self._outputs.made(self._job), rows=self._settings.block)
            before.close()
        return None

    def close(self) -> None:
        """Ends the job's iterator. Idempotent."""
        self._closed = True
        self._steps.close()


def _too_few(reader: Any, samples: int) -> InvalidArgument:
    return InvalidArgument(
        f"fn.{reader.op}: The number of input samples: {samples}, needs to be at least equal to the requested number "
        f"of shards: {reader.num_shards}."
    )


class FedStage:
    """A job over values that this process computed."""

    def __init__(self, stage: WorkerStage, settings: Settings, source: str) -> None:
        self._stage, self._settings, self._source = stage, settings, source
        self._types: list[str] | None = None
        self._outputs = _varying.Outputs()
        self._batches: Numbered | None = None
        # An interrupt while entering a lock never leaves it held outside a `with`; while entering a condition it may.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        # Guarded by the lock: the values of steps that are not handed out; how often they were dropped; whether callers
        # may still ask.
        self._steps: dict[int, list[Any]] = {}
        self._rewinds = 0
        self._closed = False

    def run(self, first: int, upstream: Iterator[Values]) -> Iterator[Values]:
        """Feeds the steps of `upstream`, which begins at step `first`; adds the job's values to each."""
        pending: collections.deque[tuple[int, Values]] = collections.deque()
        step, ended = first, False
        while True:
            while not ended and len(pending) < self._settings.ahead:
                values = next(upstream, None)
                if values is None:
                    ended = True
                    break
                pending.append((step, values))
                self._feed(step, values)
                step += 1
            if not pending:
                return
            due, values = pending.popleft()
            given = self._given(due)
            if given is None:
                return
            values.update({key_of(node): given[name] for name, node in self._stage.exports.items()})
            with self._lock:
                self._steps.pop(due, None)
            yield values

    def _given(self, step: int) -> dict[str, Any] | None:
        """Returns the job's values for a step that was fed."""
        while not self._closed:
            assert self._batches is not None and self._types is not None
            batch = self._batches.at(step)
            if batch is None:
                break
            given = self._outputs.values(batch, self._stage.exports)
            if given is not None:
                return given
            self._open(self._types)
        return None

    def _feed(self, step: int, values: Values) -> None:
        arrays = [_brought(node, values[key_of(node)]) for node in self._stage.imports]
        if not arrays:
            arrays = [np.zeros(self._settings.rows, np.uint8)]
        types = self._types_of(arrays)
        with self._lock:
            self._steps[step] = arrays
            self._changed.notify_all()
        if types != self._types:
            self._open(types)

    def _types_of(self, arrays: list[Any]) -> list[str]:
        """Returns types that hold these arrays and the earlier ones."""
        encoded = [key_of(node) in self._stage.encoded for node in self._stage.imports] or [False]
        types = []
        for i, array in enumerate(arrays):
            if encoded[i]:
                types.append("encoded")
                continue
            dtype, sizes = _sizes(array)
            if 0 in sizes:
                node = self._stage.imports[i]
                raise InvalidArgument(
                    f"fn.{node.op} ({node.where}) gave samples of shape {tuple(sizes)}; Leat's workers compute no "
                    "values with an axis of size 0: give such samples as an output, or leave them out"
                )
            if self._types is not None:
                before, old = _parsed(self._types[i])
                if before != dtype or len(old) != len(sizes):
                    node = self._stage.imports[i]
                    raise InvalidArgument(
                        f"fn.{node.op} ({node.where}) gave {dtype} with {len(sizes)} axes a sample, before that "
                        f"{self._types[i]}; expected one type and number of axes"
                    )
                sizes = [a if a == b else None for a, b in zip(sizes, old)]
            texts = ",".join("?" if each is None else str(each) for each in sizes)
            types.append(f"{dtype}[{texts}]" if sizes else dtype)
        return types

    def _open(self, types: list[str]) -> None:
        """Switches to the job of these types."""
        if self._batches is not None:
            with self._lock:  # its feeding thread may wait for a much later step
                self._rewinds += 1
                self._changed.notify_all()
            self._batches.rewind()
        settings = self._settings
        job = self._outputs.made(
            lambda forms: shared.job(
                self._stage.pipeline(settings.name, types, self._source, forms),
                batch=settings.rows * settings.shards,
                seed=settings.seed_at(self._stage.time),
                shuffle="sequential",
                last_batch="drop",
            )
        )
        source = functools.partial(self._sample, self._rewinds)
        self._batches = Numbered(job, rows=settings.block, source=source, window=min(64, settings.ahead))
        self._types = types

    def _sample(self, rewinds: int, sample: int) -> Any:
        """Returns one sample, for the thread that feeds the job; waits until its step is there."""
        rows = self._settings.rows
        step, row = divmod(sample, rows * self._settings.shards)
        with self._lock:
            while step not in self._steps and not self._closed and rewinds == self._rewinds:
                self._changed.wait()
            if self._closed or rewinds != self._rewinds:
                raise Cancelled("the pipeline has ended, or has begun again")
            arrays = self._steps[step]
        return tuple(array[row - self._settings.shard * rows] for array in arrays)

    def rewind(self, step: int) -> None:
        """Makes the next `run` begin at `step`; drops what was fed beyond it."""
        with self._lock:
            waits = not self._steps
        if waits and (self._batches is None or self._batches.next == step):
            return  # the job's iterator is at that step already
        with self._lock:
            self._rewinds += 1
            self._changed.notify_all()
        if self._batches is not None:
            self._batches.rewind()
        self._batches, self._types = None, None
        with self._lock:  # last: after an interrupt the steps are left, so the next call begins again
            self._steps.clear()

    def close(self) -> None:
        """Ends the job's iterator and the thread that feeds it. Idempotent."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
        if self._batches is not None:
            self._batches.close()


def _brought(node: Node, value: Any) -> Any:
    """Returns an array, or a list of one per sample, of a type that workers compute with."""
    if isinstance(value, list):
        return [_brought(node, each) for each in value]
    array = np.asarray(value)
    name = array.dtype.name
    operator, right = getattr(node._operation, "exact", {}).get(node._output, ("", ()))
    if operator and name not in right:
        raise InvalidArgument(
            f"fn.{node.op} ({node.where}) gave {name} without saying so, and the values of {operator} depend on the "
            f"type; expected dtype of fn.external_source, or fn.cast to one of {', '.join(sorted(right))}"
        )
    if name not in _OURS:
        if name not in _WIDER:
            raise InvalidArgument(
                f"fn.{node.op} ({node.where}) gave {name}; Leat's workers compute with {', '.join(_OURS)}"
            )
        array = array.astype(_WIDER[name])
    return array


def _sizes(array: Any) -> tuple[str, list[int | None]]:
    if not isinstance(array, list):
        return array.dtype.name, list(array.shape[1:])
    shapes = [each.shape for each in array]
    if any(len(each) != len(shapes[0]) for each in shapes) or any(each.dtype != array[0].dtype for each in array):
        raise InvalidArgument("the samples of a batch have several types or numbers of axes; expected one")
    return array[0].dtype.name, [each[0] if len(set(each)) == 1 else None for each in zip(*shapes)]


def _parsed(text: str) -> tuple[str, list[int | None]]:
    name, _, sizes = text.rstrip("]").partition("[")
    return name, [None if each == "?" else int(each) for each in sizes.split(",")] if sizes else []

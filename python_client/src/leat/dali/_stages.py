# SPDX-License-Identifier: Apache-2.0
"""Runs a pipeline's stages: jobs of workers, and in between calls and sources of this process.

A job over what this process computed is fed step by step: sample s * G + r is row r of step s of a batch of G rows over
all shards, so that what workers draw at random differs between shards, and a restart at a step draws the same again.
"""

from __future__ import annotations

import collections
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from leat import _shared
from leat._graph import Node
from leat.dali import _plan
from leat.dali._operations import ConsumerOperation
from leat.dali._plan import ConsumerStage, Key, WorkerStage, key_of
from leat.errors import Cancelled, InvalidArgument

# Of one step: arrays with a batch axis, or lists of one array a sample where sizes differ.
Values = dict[Key, Any]
_OURS = ("bool", "uint8", "int32", "int64", "float16", "float32")
_WIDER = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "float64": "float32"}


class Settings:
    """What all jobs of a pipeline have in common.

    Attributes:
        rows: of this pipeline in a step.
        shard, shards: which block of the batch of all shards is its own.
        name: of the pipeline, for messages.
        ahead: how many steps this process computes before they are due.
    """

    def __init__(self, *, rows: int, shard: int, shards: int, seed: int, name: str, ahead: int) -> None:
        self.rows, self.shard, self.shards = rows, shard, shards
        self.seed, self.name, self.ahead = seed, name, ahead

    @property
    def block(self) -> range:
        """Its rows of the batch of all shards."""
        return range(self.shard * self.rows, (self.shard + 1) * self.rows)


class ReaderStage:
    """The job that reads."""

    def __init__(self, stage: WorkerStage, settings: Settings) -> None:
        self._stage, self._settings = stage, settings
        reader = stage.reader
        # A permutation of all samples, of which each shard takes its rows, unless shards have to keep theirs.
        whole = reader.across and reader.random_shuffle and not (reader.pad_last_batch or reader.stick_to_shard)
        parts = {} if whole else {"num_parts": settings.shards, "rotate_parts": not reader.stick_to_shard}
        try:
            self.job = _shared.job(
                stage.pipeline(settings.name),
                batch=settings.rows * settings.shards,
                seed=settings.seed,
                shuffle="global" if reader.random_shuffle else "sequential",
                last_batch="pad" if reader.pad_last_batch else "stream",
                **parts,
            )
        except InvalidArgument as error:
            few = re.search(r"num_parts \d+: want at most (\d+)", str(error))
            if few is None:
                raise
            raise _too_few(reader, int(few[1])) from None
        if self.job.num_samples < settings.shards:
            raise _too_few(reader, self.job.num_samples)
        self._batches: Any = None

    def batches(self, first: int) -> Any:
        """The job's iterator, which begins at step `first` if it does not exist yet."""
        if self._batches is None:
            start = divmod(first, len(self.job))
            self._batches = self.job.batches(epochs=0, rows=self._settings.block, start=start)
        return self._batches

    def run(self, first: int) -> Iterator[Values]:
        """Step after step, from `first` on, without end."""
        for batch in self.batches(first):
            yield {key_of(node): batch[name] for name, node in self._stage.exports.items()}

    def rewind(self) -> None:
        """The next `run` begins where it says."""
        self.close()
        self._batches = None

    def close(self) -> None:
        """Idempotent."""
        if self._batches is not None:
            self._batches.close()


def _too_few(reader: Any, samples: int) -> InvalidArgument:
    return InvalidArgument(
        f"fn.{reader.op}: The number of input samples: {samples}, needs to be at least equal to the requested number "
        f"of shards: {reader.num_shards}."
    )


class FedStage:
    """A job over what this process computed."""

    def __init__(self, stage: WorkerStage, settings: Settings, source: str) -> None:
        self._stage, self._settings, self._source = stage, settings, source
        self._types: list[str] | None = None
        self._batches: Any = None
        self._changed = threading.Condition()
        # Guarded by the condition: what steps that are not handed out have; whether somebody may still ask.
        self._steps: dict[int, list[Any]] = {}
        self._closed = False

    def run(self, first: int, upstream: Iterator[Values]) -> Iterator[Values]:
        """Feeds what comes from `upstream`, which is step `first` and those behind it; adds what the job gives."""
        pending: collections.deque[tuple[int, Values]] = collections.deque()
        step, ended = first, False
        while True:
            while not ended and len(pending) < self._settings.ahead:
                values = next(upstream, None)
                if values is None:
                    ended = True
                    break
                pending.append((step, values))
                self._feed(step, values, pending[0][0])
                step += 1
            if not pending:
                return
            due, values = pending.popleft()
            batch = next(self._batches)
            values.update({key_of(node): batch[name] for name, node in self._stage.exports.items()})
            with self._changed:
                self._steps.pop(due, None)
            yield values

    def _feed(self, step: int, values: Values, oldest: int) -> None:
        arrays = [_brought(node, values[key_of(node)]) for node in self._stage.imports]
        if not arrays:
            arrays = [np.zeros(self._settings.rows, np.uint8)]
        types = self._types_of(arrays)
        with self._changed:
            self._steps[step] = arrays
            self._changed.notify_all()
        if types != self._types:
            self._open(types, oldest)

    def _types_of(self, arrays: list[Any]) -> list[str]:
        """Types that hold these arrays and those before."""
        encoded = [key_of(node) in self._stage.encoded for node in self._stage.imports] or [False]
        types = []
        for i, array in enumerate(arrays):
            if encoded[i]:
                types.append("encoded")
                continue
            dtype, sizes = _sizes(array)
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

    def _open(self, types: list[str], first: int) -> None:
        """Begins at step `first`, with other types."""
        if self._batches is not None:
            self._batches.close()
        self._types = types
        settings = self._settings
        job = _shared.job(
            self._stage.pipeline(settings.name, types, self._source),
            batch=settings.rows * settings.shards,
            seed=settings.seed,
            shuffle="sequential",
            last_batch="drop",
        )
        self._batches = job.batches(
            epochs=0, rows=settings.block, start=(0, first), source=self._sample, window=min(64, settings.ahead)
        )

    def _sample(self, sample: int) -> Any:
        """One sample, for the thread that feeds the job; waits until its step is there."""
        rows = self._settings.rows
        step, row = divmod(sample, rows * self._settings.shards)
        with self._changed:
            while step not in self._steps and not self._closed:
                self._changed.wait()
            if self._closed:
                raise Cancelled("the pipeline has ended")
            arrays = self._steps[step]
        return tuple(array[row - self._settings.shard * rows] for array in arrays)

    def rewind(self) -> None:
        """The next `run` begins where it says; what was fed beyond is forgotten."""
        if self._batches is not None:
            self._batches.close()
        self._batches, self._types = None, None
        with self._changed:
            self._steps.clear()

    def close(self) -> None:
        """Idempotent; also ends the thread that feeds."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._batches is not None:
            self._batches.close()


def _brought(node: Node, value: Any) -> Any:
    """An array, or a list of one a sample, of a type that workers compute with."""
    if isinstance(value, list):
        return [_brought(node, each) for each in value]
    array = np.asarray(value)
    name = array.dtype.name
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


class Runner:
    """A built pipeline: hands out steps.

    Use from one thread at a time.

    Attributes:
        reader: the reader's job; None: the pipeline has no reader.
        steps: how many were handed out, or skipped before the first.
        places: of the external sources, behind the last step handed out.
        direct: the names of the outputs in the reader's job, if there is no other stage.
        block: its rows of the batch of all shards.
    """

    def __init__(self, plan: _plan.Plan, settings: Settings, first: int = 0) -> None:
        self._plan, self._settings = plan, settings
        self.block = settings.block
        self.steps = first
        self.reader: ReaderStage | None = None
        self._fed: dict[int, FedStage] = {}
        digest = hashlib.sha256()
        for stage in plan.stages:
            if isinstance(stage, ConsumerStage):
                digest.update(f"consumer {len(stage.operations)}".encode())
            elif stage.reader is not None:
                self.reader = ReaderStage(stage, settings)
                digest.update(json.dumps(self.reader.job.plan_hash).encode())
            else:
                self._fed[stage.time] = FedStage(stage, settings, f"leat.dali {stage.time} {digest.hexdigest()[:16]}")
        self._values: Iterator[Values] | None = None
        self._ended = False
        self.places = [each.source.place for each in plan.sources]
        self.direct: list[str] | None = None
        if self.reader is not None and len(plan.stages) == 1:
            names = {key_of(node): name for name, node in plan.stages[0].exports.items()}  # type: ignore[union-attr]
            self.direct = [names[key_of(node)] for node in plan.outputs]

    def next(self, timeout: float | None = None) -> list[Any]:
        """The outputs of the next step; raises StopIteration at the end of an external source, and then until
        `begin_again`.

        Args:
            timeout: seconds to wait, if the reader's job gives all outputs; None: without limit.

        Raises:
            leat.DeadlineExceeded: the step was not there in time; nothing is lost.
        """
        if self.direct is not None and self.reader is not None:
            batch = self.reader.batches(self.steps).next(timeout)
            if batch is None:
                raise StopIteration
            self.steps += 1
            return [batch[name] for name in self.direct]
        if self._ended:
            raise StopIteration
        if self._values is None:
            self._values = self._chain()
        try:
            values = next(self._values, None)
        except BaseException:  # the chain is over; the step that failed is the next one again
            self.begin_again()
            raise
        if values is None:
            self._ended = True
            raise StopIteration
        self.steps += 1
        self.places = [values[_place_of(each)] for each in self._plan.sources]
        return [values[key_of(node)] for node in self._plan.outputs]

    def begin_again(self) -> None:
        """After the end of a source, or before: the next step is that behind the last one handed out."""
        # At the end of a source all that was fed has been handed out, but the reader is a step further.
        if self._values is not None and (not self._ended or self.reader is not None):
            if self.reader is not None:
                self.reader.rewind()
            for stage in self._fed.values():
                stage.rewind()
        self._ended, self._values = False, None
        self.places = [each.source.place for each in self._plan.sources]

    def _chain(self) -> Iterator[Values]:
        values: Iterator[Values] | None = None
        for stage in self._plan.stages:
            if isinstance(stage, ConsumerStage):
                values = _consumed(stage, values, self._settings.rows)
            elif stage.reader is not None:
                assert self.reader is not None
                values = self.reader.run(self.steps)
            else:
                values = self._fed[stage.time].run(self.steps, _nothing() if values is None else values)
        assert values is not None
        return values

    def close(self) -> None:
        """Ends all jobs' iterators. Idempotent."""
        self._values, self._ended = None, True
        if self.reader is not None:
            self.reader.close()
        for stage in self._fed.values():
            stage.close()


def _place_of(operation: ConsumerOperation) -> Key:
    """Where a step's values have the place of a source behind the step."""
    return operation.number, -1


def _nothing() -> Iterator[Values]:
    while True:
        yield {}


def _consumed(stage: ConsumerStage, upstream: Iterator[Values] | None, rows: int) -> Iterator[Values]:
    """Runs the stage's sources and calls for each step."""
    for values in _nothing() if upstream is None else upstream:
        for operation in stage.operations:
            if operation.source is not None:
                results = operation.source.next_batch(rows)
                if results is None:
                    return
                values[_place_of(operation)] = operation.source.place
            else:
                assert operation.call is not None
                results = operation.call([values[key_of(each)] for each in operation.inputs])
            values.update({(operation.number, i): result for i, result in enumerate(results or ())})
        yield values

# SPDX-License-Identifier: Apache-2.0
"""Runs a pipeline's stages: jobs of workers, and in between calls and sources of this process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from leat._graphs.graph import Node
from leat.dali import _plan
from leat.dali._operations import ConsumerOperation
from leat.dali._plan import ConsumerStage, Key, key_of
from leat.dali._sources import Place
from leat.dali._stages import FedStage, ReaderStage, Settings, Values


class Position(NamedTuple):
    """A position between two steps of a pipeline.

    Attributes:
        steps: how many steps come before it.
        sources: the position of each external source.
    """

    steps: int
    sources: tuple[Place, ...]


class Taken(NamedTuple):
    """The outputs of a step, and the position after it."""

    outputs: list[Any]
    after: Position


class Runner:
    """A built pipeline: computes steps.

    The caller that hands a step out stores the position after it, and makes no call after that: an interrupt then finds
    the step either handed out or still the next one. Everything below moves to the position that it is asked for.

    Use from one thread at a time.

    Attributes:
        readers: the readers' jobs.
        position: the position after the last step handed out.
        direct: the names of the outputs in the job of the only reader, if there is no other stage.
        block: its rows in the batch of all shards.
    """

    def __init__(self, plan: _plan.Plan, settings: Settings, first: int = 0) -> None:
        self._plan, self._settings = plan, settings
        self.block = settings.block
        self.readers: list[ReaderStage] = []
        self._fed: dict[int, FedStage] = {}
        digest = hashlib.sha256()
        for stage in plan.stages:
            if isinstance(stage, ConsumerStage):
                digest.update(f"consumer {len(stage.operations)}".encode())
            elif stage.reader is not None:
                self.readers.append(ReaderStage(stage, settings.of_reader(len(self.readers), stage.reader)))
                digest.update(json.dumps(self.readers[-1].job.plan_hash).encode())
            else:
                self._fed[stage.time] = FedStage(stage, settings, f"leat.dali {stage.time} {digest.hexdigest()[:16]}")
        self.position = Position(first, tuple(each.source.position for each in plan.sources))
        self._values: Iterator[Values] | None = None
        self._next: Position | None = None  # the position at which `_values` continues
        self._ended: Position | None = None  # the position at which a source has ended
        self._closed = False
        self.direct: list[str] | None = None
        if self.readers and len(plan.stages) == 1 and self.readers[0].gives_arrays:
            names = {key_of(node): name for name, node in plan.stages[0].exports.items()}  # type: ignore[union-attr]
            self.direct = [names[key_of(node)] for node in plan.outputs]

    @property
    def plan_hash(self) -> str:
        """A hash that determines the bytes of the readers' batches; empty: there is no reader."""
        hashes = [reader.job.plan_hash for reader in self.readers]
        return " ".join(hashes) if len(hashes) < 2 else hashlib.sha256(" ".join(hashes).encode()).hexdigest()

    def at(self, position: Position, timeout: float | None = None) -> Taken:
        """Returns the step at a position; may be called again for the same. Steps before it count as handed out.

        Args:
            position: `self.position`, or a position that an earlier call returned.
            timeout: seconds to wait, if the reader's job gives all outputs; None: without limit.

        Raises:
            StopIteration: an external source has ended, or the pipeline was closed.
            leat.DeadlineExceeded: the step was not there in time; nothing is lost.
        """
        if self.direct is not None:
            batch = self.readers[0].at(position.steps, timeout)
            if batch is None:
                raise StopIteration
            return Taken([batch[name] for name in self.direct], position._replace(steps=position.steps + 1))
        if self._closed or self._ended == position:
            raise StopIteration
        chain, self._values = self._values, None  # any exception ends it
        if chain is None or self._next != position:
            chain = self._chain(position)
        for operation in self._plan.sources:
            operation.source.forget(position.steps)
        values = next(chain, None)
        if values is None:
            self._ended = position
            raise StopIteration
        taken = Taken(
            [values[key_of(node)] for node in self._plan.outputs],
            Position(position.steps + 1, tuple(values[_position_of(each)] for each in self._plan.sources)),
        )
        self._next, self._values = taken.after, chain
        return taken

    def begun_again(self, position: Position) -> Position:
        """Returns the position if the sources begin again at `position`; a reader's stream continues."""
        pairs = zip(self._plan.sources, position.sources)
        return position._replace(sources=tuple(each.source.begun_again(at) for each, at in pairs))

    def _chain(self, position: Position) -> Iterator[Values]:
        """Yields step after step, from `position` on."""
        for operation, at in zip(self._plan.sources, position.sources):
            operation.source.go_on(position.steps, at)
        values: Iterator[Values] | None = None
        readers = iter(self.readers)
        for stage in self._plan.stages:
            if isinstance(stage, ConsumerStage):
                values = _consumed(stage, values, position.steps, self._settings.rows)
            elif stage.reader is not None:
                read = next(readers).run(position.steps)
                values = read if values is None else _together(values, read)
            else:
                fed = self._fed[stage.time]
                fed.rewind(position.steps)
                values = fed.run(position.steps, _nothing() if values is None else values)
        assert values is not None
        return values

    def close(self) -> None:
        """Ends all jobs' iterators. Idempotent."""
        self._values, self._closed = None, True
        for reader in self.readers:
            reader.close()
        for stage in self._fed.values():
            stage.close()


def _position_of(operation: ConsumerOperation) -> Key:
    """Returns the key under which a step's values hold the position of a source after the step."""
    return operation.number, -1


def _taken_by(node: Node, values: Values, rows: int) -> Any:
    """Returns the value that a call of this process gets. A constant is repeated for every row; no job computes it."""
    if node._operation.op != "constant":
        return values[key_of(node)]
    args = node._operation.args
    sample = np.array(args["values"]).astype(args["dtype"]).reshape(args.get("shape", ()))
    return np.repeat(sample[None], rows, axis=0)


def _together(first: Iterator[Values], second: Iterator[Values]) -> Iterator[Values]:
    """Merges the values of both for each step, until one ends."""
    for one, other in zip(first, second):
        yield {**one, **other}


def _nothing() -> Iterator[Values]:
    while True:
        yield {}


def _consumed(stage: ConsumerStage, upstream: Iterator[Values] | None, first: int, rows: int) -> Iterator[Values]:
    """Runs the stage's sources and calls for each step; the first step has the number `first`."""
    for step, values in enumerate(_nothing() if upstream is None else upstream, first):
        for operation in stage.operations:
            if operation.source is not None:
                given = operation.source.batch(step, rows)
                if given is None:
                    return
                results: Any = given.outputs
                values[_position_of(operation)] = given.after
            else:
                assert operation.call is not None
                results = operation.call([_taken_by(each, values, rows) for each in operation.inputs])
            values.update({(operation.number, i): result for i, result in enumerate(results or ())})
        yield values

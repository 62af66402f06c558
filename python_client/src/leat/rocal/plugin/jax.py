# SPDX-License-Identifier: Apache-2.0
"""Iterators of `jax.Array`s, as in `amd.rocal.plugin.jax`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from leat._arrays import pipeline_placing as _pipeline_placing
from leat._iterators.array_spec import ArraySpec
from leat._iterators.peekable import Found, Peekable
from leat.errors import InvalidArgument
from leat.rocal import types
from leat.rocal._feed import Feed, OverFeed, Taken
from leat.rocal.pipeline import Pipeline

_Self = TypeVar("_Self", bound="ROCALJaxIterator")
_Peekable = TypeVar("_Peekable", bound="ROCALPeekableIterator")

__all__ = ["ArraySpec", "ROCALJaxIterator", "ROCALPeekableIterator"]


def _rows_alone(sharding: Any) -> Any:
    """Returns the same sharding of rows only; a spec's entries after the batch axis have no meaning here."""
    if isinstance(sharding, NamedSharding):
        return NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec[:1]))
    if type(sharding).__name__ != "PositionalSharding":
        raise InvalidArgument(f"sharding = {sharding!r:.80}; expected a NamedSharding, of any mesh")
    shape = tuple(sharding.shape)
    if any(size != 1 for size in shape[1:]):
        raise InvalidArgument(f"sharding has the shape {shape}; expected ({shape[0]}, 1): rows alone are cut")
    return sharding


def _placing(pipelines: Sequence[Pipeline], sharding: Any) -> Any:
    """Returns a function that makes arrays from those of the pipelines."""
    ids = [pipeline._device_id for pipeline in pipelines]
    if sharding is not None:
        return _pipeline_placing.Global(_rows_alone(sharding), ids)
    devices = [_pipeline_placing.local_device(number) for number in ids]
    if len(pipelines) == 1:
        return _pipeline_placing.Single(devices[0])
    if len(set(devices)) not in (1, len(pipelines)):
        raise InvalidArgument(f"the pipelines' device_id are {ids}; expected all different or all the same")
    return _pipeline_placing.Stacked(devices)


class ROCALJaxIterator(OverFeed):
    """Batches as lists of `jax.Array`: the pipeline's outputs, and the labels of fn.readers.file and cifar10.

    Under LAST_BATCH_MASK a bool array follows: False for the rows that fill the last batch of an epoch.

    An epoch ends with StopIteration, at every further call too; `reset` begins the next one, also in the middle of one.
    Iterating again with `for` does not. Use from one thread at a time.
    """

    def __init__(self, pipelines: Any, sharding: Any = None) -> None:
        """Builds the pipelines that are not built.

        Args:
            pipelines: one, or a list with one for each part of the batch that this process's devices hold.
            sharding: a NamedSharding of any mesh, over any number of processes: arrays are global, made from the
                pipelines' batches in the order of the mesh. None: the array of the only pipeline, or arrays with an
                axis of pipelines in front, as pmap takes them.

        Raises:
            leat.InvalidArgument: the pipelines do not fit each other or the sharding, or use LAST_BATCH_PARTIAL.
        """
        self.pipelines: list[Pipeline] = list(pipelines) if isinstance(pipelines, (list, tuple)) else [pipelines]
        if not self.pipelines or not all(isinstance(pipeline, Pipeline) for pipeline in self.pipelines):
            raise InvalidArgument(f"pipelines = {pipelines!r:.80}; expected a Pipeline, or a list of them")
        for pipeline in self.pipelines:
            if pipeline._last_batch_policy is types.LAST_BATCH_PARTIAL:
                raise InvalidArgument(
                    f"{pipeline!r} has LAST_BATCH_PARTIAL; JAX's arrays have the same rows at every step: expected "
                    "LAST_BATCH_MASK, LAST_BATCH_FILL or LAST_BATCH_DROP"
                )
        self.batch_size: int = self.pipelines[0]._batch_size
        self.num_devices: int = len(self.pipelines)
        self.sharding = sharding
        self._place = _placing(self.pipelines, sharding)
        self._feed = Feed([pipeline._member() for pipeline in self.pipelines])
        self._found: Found | None = None
        _check_schemas(self.pipelines)
        for i, pipeline in enumerate(self.pipelines):
            pipeline._run_by(self._feed, i)
        self.iterator_length: int = self._feed.length

    def __iter__(self: _Self) -> _Self:
        return self

    def __next__(self) -> list[jax.Array]:
        found = self._find_next()
        # No calls from here on: see Feed.
        self._feed.standing = found.after
        self._found = None
        return found.batch

    def next(self) -> list[jax.Array]:
        """Returns the next batch, as `next(iterator)`."""
        found = self._find_next()
        # No calls from here on: see Feed.
        self._feed.standing = found.after
        self._found = None
        return found.batch

    def _find(self) -> Found:
        """Returns the batch to hand out next, the same until it is handed out; StopIteration at the end of an epoch."""
        standing, found = self._feed.standing, self._feed.find()
        if found is None:
            raise StopIteration
        fields = [self._arrays(pipeline, each) for pipeline, each in zip(self.pipelines, found.parts)]
        self._found = result = Found(standing, [self._place(shards) for shards in zip(*fields)], found.after)
        return result

    _find_next = _find

    def _known(self) -> Found | None:
        """Returns the batch to hand out next, if it was found already."""
        found = self._found
        return found if found is not None and found.before is self._feed.standing else None

    def _hand_out(self, found: Found) -> None:
        self._feed.standing = found.after

    @staticmethod
    def _arrays(pipeline: Pipeline, taken: Taken) -> list[np.ndarray]:
        arrays = list(taken.outputs)
        if pipeline._reader == "labelReader" and taken.labels is not None:
            arrays.append(taken.labels)
        if taken.valid is not None:
            arrays.append(taken.valid)
        return arrays


def _check_schemas(pipelines: Sequence[Pipeline]) -> None:
    """Raises InvalidArgument unless all pipelines hand out the same arrays."""
    first, *others = (
        {name: (str(field.dtype), field.shape) for name, field in p._job.schema.items()}
        for p in pipelines
        if p._job is not None
    )
    for i, other in enumerate(others, start=1):
        if other != first or pipelines[i]._batch_size != pipelines[0]._batch_size:
            raise InvalidArgument(
                f"pipeline {i} has batches of {pipelines[i]._batch_size} {other}, pipeline 0 of "
                f"{pipelines[0]._batch_size} {first}; expected the same shapes and types from all"
            )


class ROCALPeekableIterator(Peekable, ROCALJaxIterator):
    """A `ROCALJaxIterator` that shows the next batch without taking it; from any thread.

    `for` begins the next epoch if batches were taken since the last reset and none was peeked at.
    """

    def __init__(self, pipelines: Any, sharding: Any = None) -> None:
        """As `ROCALJaxIterator`."""
        self._begin_peeking()
        super().__init__(pipelines, sharding)

    def __iter__(self: _Peekable) -> _Peekable:
        with self._lock:
            if self._feed.taken and self._known() is None:
                self.reset()
        return self

    def reset(self) -> None:
        """As in `ROCALJaxIterator`. A batch that was only peeked at is not taken, so it does not begin an epoch."""
        self._settle()
        with self._lock:
            self._found = None
            super().reset()

    def close(self) -> None:
        """As in `ROCALJaxIterator`."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        super().close()  # wakes a peek that waits
        if self._pool is not None:
            self._pool.shutdown()

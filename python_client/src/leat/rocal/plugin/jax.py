# SPDX-License-Identifier: Apache-2.0
"""Iterators of `jax.Array`s, as `amd.rocal.plugin.jax` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from leat._array_spec import ArraySpec
from leat._peekable import Found, Peekable
from leat.errors import InvalidArgument
from leat.rocal import types
from leat.rocal._feed import Feed, Taken
from leat.rocal.pipeline import Pipeline

__all__ = ["ArraySpec", "ROCALJaxIterator", "ROCALPeekableIterator"]


def _device(pipeline: Pipeline) -> jax.Device:
    local = jax.local_devices()
    if pipeline._device_id >= len(local):
        raise InvalidArgument(
            f"{pipeline!r}: device_id = {pipeline._device_id}, but this process has {len(local)} devices: it counts in "
            "jax.local_devices(), not among those of other processes"
        )
    return local[pipeline._device_id]


def _named(sharding: Any) -> NamedSharding:
    """The same layout of rows as a NamedSharding; old JAX's PositionalSharding has one."""
    if isinstance(sharding, NamedSharding):
        return sharding
    if type(sharding).__name__ != "PositionalSharding":
        raise InvalidArgument(f"sharding = {sharding!r:.80}; expected a NamedSharding, of any mesh")
    shape = tuple(sharding.shape)
    if any(size != 1 for size in shape[1:]):
        raise InvalidArgument(f"sharding has the shape {shape}; expected ({shape[0]}, 1): rows alone are cut")
    places = {index[0].indices(shape[0])[0]: device for device, index in sharding.devices_indices_map(shape).items()}
    mesh = Mesh(np.array([places[place] for place in sorted(places)]), ("batch",))
    return NamedSharding(mesh, PartitionSpec("batch"))


class _Sharded:
    """Makes global arrays: the rows of the pipelines of all processes, in the order of the mesh.

    Only the first entry of the sharding's spec counts: the batch axis'.
    """

    def __init__(self, pipelines: Sequence[Pipeline], sharding: Any) -> None:
        named = _named(sharding)
        entry = named.spec[0] if len(named.spec) else None
        axes = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        self._sharding = NamedSharding(named.mesh, PartitionSpec(entry))
        self._parts = int(np.prod([named.mesh.shape[axis] for axis in axes], dtype=np.int64))
        held: dict[int, list[jax.Device]] = {}  # by part, the devices of this process
        for device, index in self._sharding.addressable_devices_indices_map((self._parts,)).items():
            assert index is not None
            held.setdefault(index[0].indices(self._parts)[0], []).append(device)
        if len(pipelines) != len(held):
            raise InvalidArgument(
                f"{len(pipelines)} pipelines, but the devices of this process hold {len(held)} of the {self._parts} "
                f"parts that {named.spec} makes of a batch on the mesh {dict(named.mesh.shape)}; expected one for each"
            )
        # A pipeline's rows lie where its device is; if the devices do not tell the parts apart, the list's order does.
        part_of = {device: part for part, devices in held.items() for device in devices}
        local = jax.local_devices()
        named_parts = [part_of.get(local[p._device_id]) if p._device_id < len(local) else None for p in pipelines]
        parts = named_parts if set(named_parts) == set(held) else sorted(held)
        self._devices = [held[part] for part in parts if part is not None]

    def __call__(self, shards: Sequence[np.ndarray]) -> jax.Array:
        arrays = [shard for shard, devices in zip(shards, self._devices) for _ in devices]
        devices = [device for devices in self._devices for device in devices]
        rows, *rest = shards[0].shape
        return jax.make_array_from_single_device_arrays(
            (self._parts * rows, *rest), self._sharding, jax.device_put(arrays, devices)
        )


class _OnOne:
    """One pipeline's arrays on its device."""

    def __init__(self, pipelines: Sequence[Pipeline]) -> None:
        self._device = _device(pipelines[0])

    def __call__(self, shards: Sequence[np.ndarray]) -> jax.Array:
        return jax.device_put(shards[0], self._device)


class _Stacked:
    """What pmap takes: an axis of pipelines in front, each on its device or all on one."""

    def __init__(self, pipelines: Sequence[Pipeline]) -> None:
        self._devices = [_device(pipeline) for pipeline in pipelines]
        different = len(set(self._devices))
        if different not in (1, len(pipelines)):
            ids = [pipeline._device_id for pipeline in pipelines]
            raise InvalidArgument(f"the pipelines' device_id are {ids}; expected all different or all the same")
        self._sharding = None
        if different > 1:
            mesh = Mesh(np.array(self._devices), ("device",))
            self._sharding = NamedSharding(mesh, PartitionSpec("device"))

    def __call__(self, shards: Sequence[np.ndarray]) -> jax.Array:
        if self._sharding is None:
            return jax.device_put(np.stack(shards), self._devices[0])
        placed = jax.device_put([shard[None] for shard in shards], self._devices)
        return jax.make_array_from_single_device_arrays((len(shards), *shards[0].shape), self._sharding, placed)


class ROCALJaxIterator:
    """Batches as lists of `jax.Array`: the pipeline's outputs, and the labels of fn.readers.file and cifar10.

    An epoch ends with StopIteration, as often as it is asked; `reset` begins the
    next one, also in the middle of one. Going through it again with `for` does
    not. Use from one thread at a time.
    """

    def __init__(self, pipelines: Any, sharding: Any = None) -> None:
        """Builds the pipelines that are not built.

        Args:
            pipelines: one, or a list: one for each part of the batch that this process's devices hold.
            sharding: a NamedSharding of any mesh, over any number of processes: arrays are global, of the pipelines'
                batches in the order of the mesh. None: the array of the only pipeline, or with an axis of pipelines in
                front, as pmap takes it.

        Raises:
            leat.InvalidArgument: pipelines that do not fit each other or the sharding, or LAST_BATCH_PARTIAL.
        """
        self.pipelines = list(pipelines) if isinstance(pipelines, (list, tuple)) else [pipelines]
        if not self.pipelines or not all(isinstance(pipeline, Pipeline) for pipeline in self.pipelines):
            raise InvalidArgument(f"pipelines = {pipelines!r:.80}; expected a Pipeline, or a list of them")
        for pipeline in self.pipelines:
            if pipeline._last_batch_policy is types.LAST_BATCH_PARTIAL:
                raise InvalidArgument(
                    f"{pipeline!r} has LAST_BATCH_PARTIAL; JAX's arrays have the same rows at every step: expected "
                    "LAST_BATCH_FILL or LAST_BATCH_DROP"
                )
        self.batch_size = self.pipelines[0]._batch_size
        self.num_devices = len(self.pipelines)
        self.sharding = sharding
        self._place: Any
        if sharding is not None:
            self._place = _Sharded(self.pipelines, sharding)
        else:
            self._place = _OnOne(self.pipelines) if self.num_devices == 1 else _Stacked(self.pipelines)
        self._feed = Feed([pipeline._member() for pipeline in self.pipelines])
        self._found: Found | None = None
        _check_schemas(self.pipelines)
        for i, pipeline in enumerate(self.pipelines):
            pipeline._run_by(self._feed, i)
        self.iterator_length = self._feed.length

    def __iter__(self) -> Any:
        return self

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self.iterator_length

    def __next__(self) -> list[jax.Array]:
        found = self._find_next()
        # No calls from here on: see Feed.
        self._feed.standing = found.after
        self._found = None
        return found.batch

    def next(self) -> list[jax.Array]:
        """As `next(iterator)`."""
        found = self._find_next()
        # No calls from here on: see Feed.
        self._feed.standing = found.after
        self._found = None
        return found.batch

    def _find(self) -> Found:
        """The batch to hand out next; StopIteration at the end of an epoch. The same until it is handed out."""
        standing, found = self._feed.standing, self._feed.find()
        if found is None:
            raise StopIteration
        fields = [self._arrays(pipeline, each) for pipeline, each in zip(self.pipelines, found.parts)]
        self._found = result = Found(standing, [self._place(shards) for shards in zip(*fields)], found.after)
        return result

    _find_next = _find

    def _known(self) -> Found | None:
        """The batch to hand out next, if it was looked at."""
        found = self._found
        return found if found is not None and found.before is self._feed.standing else None

    def _hand_out(self, found: Found) -> None:
        self._feed.standing = found.after

    @staticmethod
    def _arrays(pipeline: Pipeline, taken: Taken) -> list[np.ndarray]:
        if pipeline._reader == "labelReader" and taken.labels is not None:
            return [*taken.outputs, taken.labels]
        return taken.outputs

    def samples(self) -> np.ndarray:
        """Which sample stands in each row of the last batch, as int64: pipeline after pipeline.

        Raises:
            leat.FailedPrecondition: no batch has been handed out.
        """
        return self._feed.samples()

    def __repr__(self) -> str:
        return self._feed.text(f"leat.rocal {type(self).__name__}")

    def reset(self) -> None:
        """Begins the next epoch, wherever this one is; before the first batch of one it stays there."""
        self._feed.reset()

    def close(self) -> None:
        """Ends the streams of batches. Idempotent; arrays handed out stay valid."""
        self._feed.close()


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
    """`ROCALJaxIterator` that shows the next batch without taking it; from any thread.

    `for` begins the next epoch if batches were taken since the last reset and
    none was peeked at.
    """

    def __init__(self, pipelines: Any, sharding: Any = None) -> None:
        """As `ROCALJaxIterator`."""
        self._begin_peeking()
        super().__init__(pipelines, sharding)

    def __iter__(self) -> ROCALPeekableIterator:
        with self._lock:
            if self._feed.taken and self._known() is None:
                self.reset()
        return self

    def reset(self) -> None:
        """As of `ROCALJaxIterator`. A batch that was only peeked at is not taken, so it does not begin an epoch."""
        self._settle()
        with self._lock:
            self._found = None
            super().reset()

    def close(self) -> None:
        """As of `ROCALJaxIterator`."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        super().close()  # wakes a peek that waits
        if self._pool is not None:
            self._pool.shutdown()

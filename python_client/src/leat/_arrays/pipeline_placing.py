# SPDX-License-Identifier: Apache-2.0
"""Decides which pipeline's rows each device holds, and makes the global arrays: for leat.dali and leat.rocal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from leat._arrays import assembling
from leat._iterators import placement
from leat.errors import InvalidArgument

_UNSHARDED_DEVICES = "JAX iterator requires shards to be placed on different devices or all on the same device."


def local_device(number: int | None) -> jax.Device:
    """Returns the device of a pipeline's `device_id`; without one, the CPU.

    Raises:
        leat.InvalidArgument: this process has no such device.
    """
    if number is None or number < 0:
        return jax.local_devices(backend="cpu")[0]
    devices = jax.local_devices()
    if number >= len(devices):
        raise InvalidArgument(
            f"device_id = {number}, but this process has {len(devices)} devices: it counts in jax.local_devices(), not "
            f"among those of other processes: {devices}"
        )
    return devices[number]


def local_number(device: jax.Device) -> int | None:
    """The inverse of `local_device`; None for a CPU beside accelerators."""
    devices = jax.local_devices()
    return devices.index(device) if device in devices else None


def fitted(sharding: Any, rank: int) -> Any:
    """Returns the sharding for arrays of `rank` axes: the entries of its first axes."""
    if type(sharding).__name__ != "PositionalSharding":  # JAX has none from 0.7 on
        return placement._fit(sharding, rank)
    while len(sharding.shape) > rank:
        sharding = sharding.replicate(len(sharding.shape) - 1, keepdims=False)
    return sharding.reshape(*sharding.shape, *[1] * (rank - len(sharding.shape)))


class Parts(NamedTuple):
    """How a sharding cuts rows.

    Attributes:
        total: the number of equal, consecutive parts.
        held: the part that each device of this process holds.
    """

    total: int
    held: dict[jax.Device, int]

    @property
    def local(self) -> list[int]:
        """Returns the parts that this process holds, ascending."""
        return sorted(set(self.held.values()))

    def first_device(self, part: int) -> jax.Device:
        """Returns the first of this process's devices that hold `part`."""
        order = {device: i for i, device in enumerate(jax.local_devices())}
        return min((d for d, held in self.held.items() if held == part), key=lambda d: order.get(d, len(order)))


def parts_of(sharding: Any) -> Parts:
    """Returns how `sharding` cuts the rows of a batch.

    Raises:
        ValueError: it has no device of this process.
    """
    size = len(sharding.device_set)
    rows = fitted(sharding, 1)
    block = rows.shard_shape((size,))[0]
    held = {
        device: index[0].indices(size)[0] // block
        for device, index in rows.addressable_devices_indices_map((size,)).items()
    }
    if not held:
        raise ValueError(f"sharding {sharding} has no device of this process; expected at least one")
    return Parts(size // block, held)


class _Piece(NamedTuple):
    """The part that one device holds of a pipeline's array: all of it, or the part at `cut`."""

    device: jax.Device
    pipeline: int
    cut: tuple[slice | None, ...] = ()

    def of(self, arrays: Sequence[Any]) -> Any:
        array = arrays[self.pipeline]
        return array[self.cut] if self.cut else array


class _Plan:
    """The placement of arrays of one shape and dtype: the pieces, and the array that they make."""

    def __init__(self, shape: tuple[int, ...], sharding: Any, pieces: Sequence[_Piece]) -> None:
        self._shape, self._sharding, self._pieces = shape, sharding, list(pieces)
        self._devices = [piece.device for piece in pieces]
        self._one_call: assembling.OneCall | None = None
        self._first = True

    def _by_public_calls(self, parts: list[Any]) -> jax.Array:
        placed = jax.device_put(parts, self._devices)
        return jax.make_array_from_single_device_arrays(self._shape, self._sharding, placed)

    def __call__(self, arrays: Sequence[Any]) -> jax.Array:
        if self._one_call is not None:
            return self._one_call([piece.of(arrays) for piece in self._pieces])
        made = self._by_public_calls([piece.of(arrays) for piece in self._pieces])
        if self._first:
            self._first = False
            self._try_one_call(arrays, made)
        return made

    def _try_one_call(self, arrays: Sequence[Any], expected: jax.Array) -> None:
        on = {piece.device: piece for piece in self._pieces}
        call = assembling.OneCall.giving(expected, {device: piece.of(arrays) for device, piece in on.items()})
        if call is not None:
            self._pieces, self._one_call = [on[device] for device in call.devices], call


def _same_shape(arrays: Sequence[Any]) -> tuple[int, ...]:
    shapes = {tuple(array.shape) for array in arrays}
    if len(shapes) > 1:
        raise AssertionError(f"Shards shapes have to be the same. Got {[tuple(array.shape) for array in arrays]}.")
    return shapes.pop()


class _Arrays:
    """Makes arrays from those of the pipelines, for one output or several; each shape and dtype is planned once."""

    def __init__(self) -> None:
        self._plans: dict[tuple[Any, ...], _Plan] = {}

    def _plan(self, shape: tuple[int, ...]) -> _Plan:
        """Returns the plan for pipelines' arrays of this shape."""
        raise NotImplementedError

    def __call__(self, arrays: Sequence[Any]) -> jax.Array:
        key = _same_shape(arrays), arrays[0].dtype, isinstance(arrays[0], np.ndarray)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(key[0])
        return plan(arrays)


class Single(_Arrays):
    """Places one pipeline's arrays on its device."""

    def __init__(self, device: jax.Device) -> None:
        super().__init__()
        self._device = device

    def _plan(self, shape: tuple[int, ...]) -> _Plan:
        return _Plan(shape, SingleDeviceSharding(self._device), [_Piece(self._device, 0)])


class Global(_Arrays):
    """Makes global arrays of a sharding, whose row blocks are the pipelines' rows.

    Args:
        sharding: any sharding.
        numbers: the `device_id` of each pipeline.

    Raises:
        leat.InvalidArgument: the pipelines are not one for each part of the rows that this process holds.
    """

    def __init__(self, sharding: Any, numbers: Sequence[int | None]) -> None:
        super().__init__()
        self._sharding = sharding
        self._parts = parts_of(sharding)
        local = self._parts.local
        if len(numbers) != len(local):
            raise InvalidArgument(
                f"{len(numbers)} pipelines, but sharding {sharding} cuts rows into {self._parts.total} parts, and "
                f"this process holds {len(local)} of them; expected a pipeline for each"
            )
        self._pipeline_of = self._by_device(numbers) or {part: i for i, part in enumerate(local)}

    def _by_device(self, numbers: Sequence[int | None]) -> dict[int, int] | None:
        """Returns the pipeline of each part if the pipelines' devices hold different parts; None otherwise."""
        devices = jax.local_devices()
        held = [
            self._parts.held.get(devices[number]) if number is not None and 0 <= number < len(devices) else None
            for number in numbers
        ]
        found = {part: i for i, part in enumerate(held) if part is not None}
        return found if len(found) == len(numbers) else None

    def _plan(self, shape: tuple[int, ...]) -> _Plan:
        rows, *rest = shape
        whole = (rows * self._parts.total, *rest)
        sharding = fitted(self._sharding, len(whole))
        try:
            sharding.shard_shape(whole)
            indices = sharding.addressable_devices_indices_map(whole)
        except (ValueError, IndexError, TypeError) as error:
            raise ValueError(
                f"an output of shape {whole} cannot be cut as sharding {self._sharding} says: {error}"
            ) from None
        pieces = []
        for device, index in indices.items():
            ranges = [part.indices(size)[:2] for part, size in zip(index[1:], rest)]
            uncut = all(cut == (0, size) for cut, size in zip(ranges, rest))
            part = () if uncut else (slice(None), *(slice(*cut) for cut in ranges))
            pieces.append(_Piece(device, self._pipeline_of[(index[0].start or 0) // rows], part))
        return _Plan(whole, sharding, pieces)


class Stacked(_Arrays):
    """Stacks arrays of several pipelines along a new first axis, each on its pipeline's device, as for `jax.pmap`.

    Raises:
        AssertionError: some, but not all pipelines share a device.
    """

    def __init__(self, devices: Sequence[jax.Device]) -> None:
        super().__init__()
        self._devices = list(devices)
        self._sharding: Any = None
        if len(set(devices)) == len(devices):
            self._sharding = NamedSharding(Mesh(np.array(self._devices), ("device",)), PartitionSpec("device"))
        elif len(set(devices)) > 1:
            raise AssertionError(f"{_UNSHARDED_DEVICES} Got {self._devices}.")

    def _plan(self, shape: tuple[int, ...]) -> _Plan:
        pieces = [_Piece(device, i, (None,)) for i, device in enumerate(self._devices)]
        return _Plan((len(pieces), *shape), self._sharding, pieces)

    def __call__(self, arrays: Sequence[Any]) -> jax.Array:
        if self._sharding is not None:
            return super().__call__(arrays)
        _same_shape(arrays)
        return jax.numpy.stack([jax.device_put(array, self._devices[0]) for array in arrays])

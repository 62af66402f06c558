# SPDX-License-Identifier: Apache-2.0
"""Global arrays of what a process has of them: JAX's public calls, and one call of its own for batch after batch.

A batch costs the training thread a `device_put` for each device and array. JAX
itself has one call for all devices of an array, a tenth of the time; it is not
public, so it is tried once, beside the public ones, and used only if it is
there and gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from leat._placement import Placement

try:
    from jax._src.interpreters.pxla import batched_device_put as _batched_device_put
except ImportError:
    _batched_device_put = None

# An array of this process, and the parts of it with what they are on the devices, for whoever wants to look.
Count = Callable[[np.ndarray, Callable[[], Sequence[tuple[np.ndarray, jax.Array]]]], None]


def _kind(array: jax.Array) -> tuple[Any, ...]:
    return array.aval, array.sharding, getattr(array, "committed", True)


def assemble(array: np.ndarray, placement: Placement) -> jax.Array:
    """The global array of which `array` has the rows of this process's devices."""
    # On CPU a jax.Array may alias aligned NumPy memory. JAX then holds the NumPy array until the last
    # jax.Array on it is gone, and that array holds the batch's buffer (see _batches): no reuse too early.
    parts = [placement.shaped(piece.cut(array)) for piece in placement.pieces]
    placed = jax.device_put(parts, [piece.device for piece in placement.pieces])
    return jax.make_array_from_single_device_arrays(placement.shape, placement.sharding, placed)


class Assembling:
    """As `assemble`, for the batches of an iterator.

    Args:
        placement: of the field.
        count: is told of each batch.
    """

    def __init__(self, placement: Placement, count: Count | None = None) -> None:
        self._placement = placement
        self._pieces = placement.pieces
        self._devices: list[Any] = []
        self._count = count
        self._aval: Any = None  # of the global array: may be made by JAX's one call
        self._first = True

    def __call__(self, array: np.ndarray) -> jax.Array:
        placement = self._placement
        if self._aval is None:
            result = assemble(array, placement)
            if self._first:
                self._first = False
                self._try_one_call(array, result)
        else:
            parts = [placement.shaped(piece.cut(array)) for piece in self._pieces]
            result = _batched_device_put(self._aval, placement.sharding, parts, self._devices)
        if self._count:
            self._count(array, lambda: self._pairs(array, result))
        return result

    def _pairs(self, array: np.ndarray, placed: jax.Array) -> list[tuple[np.ndarray, jax.Array]]:
        on = {shard.device: shard.data for shard in placed.addressable_shards}
        return [(piece.cut(array), on[piece.device]) for piece in self._pieces]

    def _try_one_call(self, array: np.ndarray, expected: jax.Array) -> None:
        if _batched_device_put is None or expected.dtype != array.dtype:  # JAX has narrowed 64 bits
            return
        on = {piece.device: piece for piece in self._pieces}
        devices = [shard.device for shard in expected.addressable_shards]  # in JAX's own order
        pieces = tuple(on[device] for device in devices)
        parts = [self._placement.shaped(piece.cut(array)) for piece in pieces]
        try:
            got = _batched_device_put(expected.aval, expected.sharding, parts, devices)
            same = _kind(got) == _kind(expected)
            shards = zip(got.addressable_shards, expected.addressable_shards)
            if same and all((a.device, a.index) == (b.device, b.index) for a, b in shards):
                self._aval, self._pieces, self._devices = expected.aval, pieces, devices
        except Exception:  # another JAX, whose call is another
            return

# SPDX-License-Identifier: Apache-2.0
"""Global arrays of what a process has of them: JAX's public calls, and one call of its own for batch after batch.

A batch costs the training thread a `device_put` for each device and array. JAX
itself has one call for all devices of an array, a tenth of the time; it is not
public, so it is tried once, beside the public ones, and used only if it is
there and gives the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from leat._placement import Placement

try:
    from jax._src.interpreters import pxla

    _batched_device_put: Any = pxla.xc.batched_device_put
except (ImportError, AttributeError):
    _batched_device_put = None


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
    """As `assemble`, for a field of an iterator's batches.

    Attributes:
        aliased_bytes: of a batch: which CPU devices read in our buffer.
        copied_bytes: of a batch: which JAX copied for CPU devices.
    """

    def __init__(self, placement: Placement) -> None:
        self.aliased_bytes = 0
        self.copied_bytes = 0
        self._placement = placement
        self._pieces = placement.pieces
        self._devices: list[Any] = []
        self._indices: list[Any] = []  # of their parts, with the axis that placement.shaped adds
        self._aval: Any = None  # of the global array: may be made by JAX's one call
        self._first = True

    def __call__(self, array: np.ndarray) -> jax.Array:
        if self._aval is not None:
            parts = [array[index] for index in self._indices]
            return _batched_device_put(self._aval, self._placement.sharding, parts, self._devices, True)
        result = assemble(array, self._placement)
        if self._first:
            self._first = False
            self._look_at(array, result)
            self._try_one_call(array, result)
        return result

    def _look_at(self, array: np.ndarray, placed: jax.Array) -> None:
        """What JAX copies. Once is enough: it decides by the address, and each batch lies as the one before."""
        on = {shard.device: shard.data for shard in placed.addressable_shards}
        pairs = [(piece.cut(array), on[piece.device]) for piece in self._pieces]
        self.aliased_bytes, self.copied_bytes = aliased_and_copied(pairs)

    def _try_one_call(self, array: np.ndarray, expected: jax.Array) -> None:
        if _batched_device_put is None or expected.dtype != array.dtype:  # JAX has narrowed 64 bits
            return
        on = {piece.device: piece for piece in self._pieces}
        devices = [shard.device for shard in expected.addressable_shards]  # in JAX's own order
        indices: list[Any] = [on[device].index for device in devices]
        if self._placement.by_device:
            indices = [(None, *index) for index in indices]
        parts = [array[index] for index in indices]
        try:
            got = _batched_device_put(expected.aval, expected.sharding, parts, devices, True)
            shards = zip(got.addressable_shards, expected.addressable_shards)
            if _kind(got) == _kind(expected) and all((a.device, a.index) == (b.device, b.index) for a, b in shards):
                self._aval, self._indices, self._devices = expected.aval, indices, devices
        except Exception:  # another JAX, whose call is another
            return


def aliased_and_copied(pairs: Iterable[tuple[np.ndarray, jax.Array]]) -> tuple[int, int]:
    """Of arrays, each with what it is on a device: bytes that CPU devices read in place, and bytes that JAX copied."""
    aliased = copied = 0
    for array, placed in pairs:
        (device,) = placed.devices()
        if device.platform != "cpu":
            continue
        if placed.unsafe_buffer_pointer() == array.__array_interface__["data"][0]:
            aliased += array.nbytes
        else:
            copied += array.nbytes
    return aliased, copied

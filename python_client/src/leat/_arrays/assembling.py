# SPDX-License-Identifier: Apache-2.0
"""Makes global arrays from a process's share: by JAX's public calls, and for repeated batches by one private call.

A batch costs the training thread a `device_put` for each device and array. JAX itself has one call for all devices of
an array, which takes a tenth of the time. That call is not public, so it is tried once, beside the public ones, and
used only if it exists and gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np

from leat._iterators.placement import Placement

try:
    from jax._src.interpreters import pxla

    _batched_device_put: Any = pxla.xc.batched_device_put
except (ImportError, AttributeError):
    _batched_device_put = None


def _kind(array: jax.Array) -> tuple[Any, ...]:
    return array.aval, array.sharding, getattr(array, "committed", True)


class OneCall:
    """JAX's own call for all devices of an array at once.

    Attributes:
        devices: the devices, in the order of the parts that the call takes.
    """

    def __init__(self, like: jax.Array) -> None:
        self._aval, self._sharding = like.aval, like.sharding
        self.devices = [shard.device for shard in like.addressable_shards]

    def __call__(self, parts: list[Any]) -> jax.Array:
        return _batched_device_put(self._aval, self._sharding, parts, self.devices, True)

    @classmethod
    def giving(cls, expected: jax.Array, parts: Mapping[jax.Device, Any]) -> OneCall | None:
        """Returns the call if it makes `expected` from the devices' parts; None otherwise."""
        # Output of a jax_function is on a device already, and JAX narrows 64 bits.
        if _batched_device_put is None or any(
            not isinstance(part, np.ndarray) or part.dtype != expected.dtype for part in parts.values()
        ):
            return None
        call = cls(expected)
        try:
            got = call([parts[device] for device in call.devices])
            shards = zip(got.addressable_shards, expected.addressable_shards)
            same = _kind(got) == _kind(expected) and all((a.device, a.index) == (b.device, b.index) for a, b in shards)
        except Exception:  # another version of JAX, with another call
            return None
        return call if same else None


def assemble(array: np.ndarray, placement: Placement) -> jax.Array:
    """Returns the global array; `array` has the rows of this process's devices."""
    # On CPU a jax.Array may alias aligned NumPy memory. JAX then holds the NumPy array until the last
    # jax.Array on it is gone, and that array holds the batch's buffer (see _iterators/batches.py): no reuse too early.
    parts = [placement.shaped(piece.cut(array)) for piece in placement.pieces]
    placed = jax.device_put(parts, [piece.device for piece in placement.pieces])
    return jax.make_array_from_single_device_arrays(placement.shape, placement.sharding, placed)


class Assembling:
    """Same as `assemble`, for one field of an iterator's batches.

    Attributes:
        aliased_bytes: bytes per batch that CPU devices read in the library's buffer.
        copied_bytes: bytes per batch that JAX copied for CPU devices.
    """

    def __init__(self, placement: Placement) -> None:
        self.aliased_bytes = 0
        self.copied_bytes = 0
        self._placement = placement
        self._pieces = placement.pieces
        self._indices: list[Any] = []  # index of each device's part, with the axis that placement.shaped adds
        self._one_call: OneCall | None = None
        self._first = True

    def __call__(self, array: np.ndarray) -> jax.Array:
        if self._one_call is not None:
            return self._one_call([array[index] for index in self._indices])
        result = assemble(array, self._placement)
        if self._first:
            self._first = False
            self._look_at(array, result)
            self._try_one_call(array, result)
        return result

    def _look_at(self, array: np.ndarray, placed: jax.Array) -> None:
        """Counts what JAX copies. Once is enough: JAX decides by alignment, and every batch has the same layout."""
        on = {shard.device: shard.data for shard in placed.addressable_shards}
        pairs = [(piece.cut(array), on[piece.device]) for piece in self._pieces]
        self.aliased_bytes, self.copied_bytes = aliased_and_copied(pairs)

    def _try_one_call(self, array: np.ndarray, expected: jax.Array) -> None:
        front = (None,) if self._placement.by_device else ()
        indices = {piece.device: (*front, *piece.index) for piece in self._pieces}
        call = OneCall.giving(expected, {device: array[index] for device, index in indices.items()})
        if call is not None:
            self._indices, self._one_call = [indices[device] for device in call.devices], call


def aliased_and_copied(pairs: Iterable[tuple[np.ndarray, jax.Array]]) -> tuple[int, int]:
    """Returns the bytes that CPU devices read in place and the bytes that JAX copied, for (host, device) array
    pairs."""
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

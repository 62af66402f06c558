# SPDX-License-Identifier: Apache-2.0
"""Whether CPU devices read batches where they are: JAX aliases memory that is aligned to its liking, else it copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

_Pairs = Sequence[tuple[np.ndarray, jax.Array]]
_ALIGNMENT = 64  # of the library's buffers, and the most that any JAX wants


class Copies:
    """Counts what becomes of parts of batches on CPU devices.

    Attributes:
        aliased_bytes: which devices read in our buffer; it stays taken until their arrays are gone.
        copied_bytes: which JAX copied.
    """

    def __init__(self) -> None:
        self.aliased_bytes = 0
        self.copied_bytes = 0
        # By field and alignment: looked at once, for JAX decides by the address, and a batch lies as the one before.
        self._found: dict[tuple[str, int], tuple[int, int]] = {}

    def count(self, name: str, array: np.ndarray, pairs: Callable[[], _Pairs]) -> None:
        """A field's array; the parts of it, each with what it is on a device."""
        key = name, _address(array) % _ALIGNMENT
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = _looked_at(pairs())
        self.aliased_bytes += found[0]
        self.copied_bytes += found[1]


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _looked_at(pairs: _Pairs) -> tuple[int, int]:
    aliased = copied = 0
    for part, array in pairs:
        if _device(array).platform != "cpu":
            continue
        if array.unsafe_buffer_pointer() == _address(part):
            aliased += part.nbytes
        else:
            copied += part.nbytes
    return aliased, copied


def _device(array: jax.Array) -> Any:
    (device,) = array.devices()
    return device

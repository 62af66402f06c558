# SPDX-License-Identifier: Apache-2.0
"""Batches that are already in GPUs' memory, for `leat.jax`: without a copy in host memory.

Each GPU of the process has an iterator of its own, with the rows that it holds. A computation of this module reads an
imported buffer, and finishes the bytes or copies them within the GPU's memory; then the buffer is given back. So no
array that a trainer holds keeps a buffer of the window, and no buffer is reused while XLA may still read it.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from leat._arrays import jax_epilogue
from leat._iterators.epilogue import Epilogue
from leat._iterators.placement import Piece, Placement
from leat._library.dlpack import OnStream, Tensor

# How many batches' computations may run at the same time; each keeps a buffer of the window.
_MAX_PENDING = 2


def _imported(tensor: Tensor) -> jax.Array:
    return jax.dlpack.from_dlpack(OnStream(tensor, -1))


def cuda_number(device: Any) -> int | None:
    """Returns a CUDA device's number in this process; None: it is not a CUDA device."""
    version = str(getattr(device.client, "platform_version", "")).lower()
    if device.platform not in ("gpu", "cuda") or "cuda" not in version:
        return None
    number = device.local_hardware_id
    return device.id if number is None else number


@dataclasses.dataclass(frozen=True)
class Share:
    """One device's share of the global batch.

    Attributes:
        number: the CUDA device's number.
        rows: its rows of the global batch.
        placements: the fields' placements with only this device's piece, relative to these rows.
    """

    number: int
    rows: np.ndarray
    placements: dict[str, Placement]


def shares(placements: Mapping[str, Placement], rows: np.ndarray) -> list[Share]:
    """Returns the share of every device of this process; none, if one is no CUDA device or two hold the same rows.

    A row that several devices hold is computed once and copied from host memory.

    Args:
        placements: the placement of each field.
        rows: the rows that this process needs, ascending.
    """
    pieces: dict[Any, dict[str, Piece]] = {}
    for name, placement in placements.items():
        for piece in placement.pieces:
            pieces.setdefault(piece.device, {})[name] = piece
    result, total = [], 0
    for device, of_fields in pieces.items():
        number = cuda_number(device)
        if number is None or len(of_fields) != len(placements):
            return []
        wanted = np.zeros(rows.size, bool)
        for piece in of_fields.values():
            wanted[piece.rows] = True
        places = np.cumsum(wanted) - 1  # index among this device's rows
        total += int(wanted.sum())
        own = {}
        for name, piece in of_fields.items():
            first = int(places[piece.rows.start])
            moved = dataclasses.replace(piece, rows=slice(first, first + piece.rows.stop - piece.rows.start))
            own[name] = dataclasses.replace(placements[name], pieces=(moved,))
        result.append(Share(number, rows[wanted], own))
    return result if total == rows.size else []


class DevicesPlacing:
    """Makes global arrays from lists of batches, one batch for each share."""

    def __init__(
        self, shares_: Sequence[Share], epilogues: Mapping[str, Epilogue], dtypes: Mapping[str, np.dtype]
    ) -> None:
        self._placements = shares_[0].placements
        self._placing = [DevicePlacing(share.placements, epilogues, dtypes) for share in shares_]

    def __call__(self, batches: Sequence[Mapping[str, Tensor]]) -> dict[str, jax.Array]:
        parts = [placing(batch) for placing, batch in zip(self._placing, batches)]
        return {
            name: jax.make_array_from_single_device_arrays(
                placement.shape, placement.sharding, [part[name] for part in parts]
            )
            for name, placement in self._placements.items()
        }


class DevicePlacing:
    """Makes a device's part of global arrays. It is compiled once, by the constructor."""

    def __init__(
        self, placements: Mapping[str, Placement], epilogues: Mapping[str, Epilogue], dtypes: Mapping[str, np.dtype]
    ) -> None:
        self._placements = dict(placements)
        self._epilogues = {name: epilogues[name] for name in placements if name in epilogues}
        self._pieces = {
            name: self._epilogues[name].piece_of(placement.pieces[0])
            if name in self._epilogues
            else placement.pieces[0]
            for name, placement in placements.items()
        }
        device = next(iter(placements.values())).pieces[0].device
        self._tables = {
            name: jax.device_put(epilogue.table_of(self._pieces[name]), device)
            for name, epilogue in self._epilogues.items()
            if epilogue.table is not None
        }
        self._compiled = jax_epilogue.apart(lambda: self._compile(dtypes, device))
        # (imported, computed), oldest first.
        self._pending: collections.deque[tuple[Any, dict[str, Any]]] = collections.deque()

    def _compile(self, dtypes: Mapping[str, np.dtype], device: jax.Device) -> Any:
        def place_all(heads: dict[str, Any], tables: dict[str, jax.Array]) -> dict[str, jax.Array]:
            placed = {}
            for name, head in heads.items():
                part: Any = self._pieces[name].cut(head)
                epilogue = self._epilogues.get(name)
                placed[name] = self._placements[name].shaped(
                    jnp.copy(part) if epilogue is None else jax_epilogue.finished(part, epilogue, tables.get(name))
                )
            return placed

        heads = {}
        for name, placement in self._placements.items():
            epilogue = self._epilogues.get(name)
            row = placement.row_shape if epilogue is None else epilogue.row_of(placement.row_shape)
            rows = self._pieces[name].rows
            heads[name] = jax.ShapeDtypeStruct(
                (rows.stop - rows.start, *row),
                dtypes[name] if epilogue is None else np.uint8,
                sharding=SingleDeviceSharding(device),
            )
        return jax.jit(place_all).lower(heads, self._tables).compile()

    def __call__(self, batch: Mapping[str, Tensor]) -> dict[str, jax.Array]:
        """Returns the device's part of each array of a batch."""
        while self._pending and all(array.is_ready() for array in self._pending[0][1].values()):
            self._pending.popleft()
        while len(self._pending) >= _MAX_PENDING:
            jax.block_until_ready(self._pending.popleft()[1])
        heads = {name: _imported(batch[name]) for name in self._placements}
        computed = self._compiled(heads, self._tables)
        self._pending.append((heads, computed))
        return computed

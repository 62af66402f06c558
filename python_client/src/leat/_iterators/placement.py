# SPDX-License-Identifier: Apache-2.0
"""Which rows a process needs for its devices, and the index of these among the rows that it pulls.

This is pure index arithmetic: it sees a sharding only through `addressable_devices_indices_map`, so any mesh,
replication and device order work, and tests need no second process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from leat.errors import InvalidArgument


@dataclasses.dataclass(frozen=True)
class Piece:
    """The part of a field that one device holds.

    Attributes:
        device: the device.
        rows: a slice of the pulled rows; it is consecutive, because pulled rows are ascending and a device's rows have
            no gaps.
        rest: slices of the other axes; empty if the device holds them whole.
    """

    device: Any
    rows: slice
    rest: tuple[slice, ...]

    @property
    def index(self) -> tuple[slice, ...]:
        """The index of the device's part in a pulled array."""
        return (self.rows, *self.rest)

    def cut(self, array: np.ndarray) -> np.ndarray:
        """Returns the device's part of a pulled array."""
        return array[self.index]


@dataclasses.dataclass(frozen=True)
class Placement:
    """A field's global shape and sharding, and the pieces of this process's devices.

    Attributes:
        by_device: the arrays have one more axis in front of a piece's, the axis of devices, as pmap takes them.
    """

    shape: tuple[int, ...]
    sharding: Any
    pieces: tuple[Piece, ...]
    by_device: bool = False

    def shaped(self, part: Any) -> Any:
        """Returns a device's part as its shard of the global array."""
        return part[None] if self.by_device else part

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of one row."""
        return self.shape[2:] if self.by_device else self.shape[1:]

    def stacked(self, devices: int) -> Placement:
        """Returns the same pieces, for global arrays with an axis of `devices` in front."""
        rows, *rest = self.shape
        return dataclasses.replace(self, shape=(devices, rows // devices, *rest), by_device=True)


def check_equal_batches(job: Any) -> None:
    """Raises if the last batch of an epoch of `job` may be smaller, so that not every host has the same rows in it."""
    if job.last_batch == "partial" and len(job) * job.batch != job.num_samples:
        raise InvalidArgument(
            f"job {job.name!r} has last_batch='partial' and {job.num_samples} samples, no multiple of its batch of "
            f"{job.batch}; hosts and devices have the same rows at every step: "
            "expected 'mask', 'drop', 'fill' or 'pad'"
        )


def _fit(sharding: Any, rank: int) -> Any:
    """Returns the sharding for an array with fewer axes than its spec: that of its first axes."""
    spec = getattr(sharding, "spec", None)
    mesh = getattr(sharding, "mesh", None)
    if spec is None or mesh is None or len(spec) <= rank:
        return sharding
    partition = type(spec)(*tuple(spec)[:rank])
    return type(sharding)(mesh, partition)


def _indices(name: str, sharding: Any, shape: tuple[int, ...]) -> Mapping[Any, tuple[slice, ...]]:
    try:
        sharding.shard_shape(shape)  # raises where sizes do not divide
        return sharding.addressable_devices_indices_map(shape)
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        raise InvalidArgument(
            f"field {name!r} of shape {shape} cannot be cut as sharding {sharding!r} says: {error}; "
            f"expected a sharding whose number of parts divides the {shape[0]} rows of a batch"
        ) from None


def _range(index: slice, size: int) -> tuple[int, int]:
    start, stop, _ = index.indices(size)
    return start, stop


def rows_needed(maps: Iterable[Mapping[Any, tuple[slice, ...]]], batch: int) -> np.ndarray:
    """Returns the rows of the global batch that any of these devices holds, ascending, each once."""
    wanted = np.zeros(batch, bool)
    for indices in maps:
        for index in indices.values():
            wanted[index[0]] = True
    return np.flatnonzero(wanted).astype(np.uint32)


def _pieces(indices: Mapping[Any, tuple[slice, ...]], shape: tuple[int, ...], rows: np.ndarray) -> tuple[Piece, ...]:
    pieces = []
    for device, index in indices.items():
        start, stop = _range(index[0], shape[0])
        first = int(np.searchsorted(rows, start))
        where = slice(first, first + stop - start)
        ranges = [_range(part, size) for part, size in zip(index[1:], shape[1:])]
        whole = all(cut == (0, size) for cut, size in zip(ranges, shape[1:]))
        pieces.append(Piece(device, where, () if whole else tuple(slice(*cut) for cut in ranges)))
    return tuple(pieces)


def place(
    shapes: Mapping[str, tuple[int, ...]], sharding: Any, batch: int
) -> tuple[np.ndarray, dict[str, Placement]]:
    """Plans the fields of a global batch.

    Args:
        shapes: the shape of one row, by field.
        sharding: one for all fields, or a dict with one for each field. If a NamedSharding's spec has more entries than
            a field has axes, the first ones are used.
        batch: rows of the global batch.

    Returns:
        The rows that this process needs, and each field's placement.

    Raises:
        InvalidArgument: the rows do not divide, or a field has no sharding.
    """
    if isinstance(sharding, Mapping):
        missing, unknown = set(shapes) - set(sharding), set(sharding) - set(shapes)
        if missing or unknown:
            raise InvalidArgument(
                f"sharding has {sorted(sharding)}; expected one for each of the fields {sorted(shapes)}"
            )
    shardings = {
        name: _fit(sharding[name] if isinstance(sharding, Mapping) else sharding, 1 + len(shape))
        for name, shape in shapes.items()
    }
    full = {name: (batch, *shape) for name, shape in shapes.items()}
    maps = {name: _indices(name, shardings[name], full[name]) for name in shapes}
    rows = rows_needed(maps.values(), batch)
    if rows.size == 0:
        raise InvalidArgument(f"sharding {sharding!r} has no device of this process; expected at least one")
    return rows, {
        name: Placement(full[name], shardings[name], _pieces(maps[name], full[name], rows)) for name in shapes
    }

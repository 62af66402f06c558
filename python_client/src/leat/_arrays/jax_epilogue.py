# SPDX-License-Identifier: Apache-2.0
"""epilogue="device" for `leat.jax`: one compiled function for all local devices of a set of fields.

Each device looks its own rows' bytes up in its own table and transposes the axes. Nothing goes from device to device,
so no other process has to run the same function at the same time, and every sharding works.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from leat._arrays import assembling
from leat._iterators.epilogue import Epilogue
from leat._iterators.placement import Placement
from leat._library import threads

_shard_map: Any
if hasattr(jax, "shard_map"):
    _shard_map = jax.shard_map
else:  # before 0.6.1
    from jax.experimental.shard_map import shard_map as _shard_map

_AXIS = "leat"


def apart(function: Any) -> Any:
    """Calls `function` in a thread of its own, where no mesh is set that tracing would use."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    threads.wait(threads.start(run))
    if errors:
        raise errors[0]
    return results[0]


def finished(array: jax.Array, epilogue: Epilogue, table: jax.Array | None) -> jax.Array:
    """Applies `epilogue` to rows of bytes; traceable."""
    if table is not None:
        columns = table.shape[1]
        entry = array.astype(np.int32)
        if columns > 1:
            entry = entry * columns + jnp.arange(columns, dtype=np.int32)
        array = table.reshape(-1).at[entry].get(mode="promise_in_bounds")
    if epilogue.perm is not None:
        array = jnp.transpose(array, (0, *(1 + axis for axis in epilogue.perm)))
    return array


class DeviceEpilogue:
    """Places the bytes of some fields, all on the same devices, and finishes them there.

    It is compiled once, by the constructor.

    Attributes:
        aliased_bytes, copied_bytes: as in `assembling.Assembling`.
    """

    def __init__(self, placements: Mapping[str, Placement], epilogues: Mapping[str, Epilogue]) -> None:
        self.aliased_bytes = 0
        self.copied_bytes = 0
        self._first = True
        self._placements = dict(placements)
        self._epilogues = {name: epilogues[name] for name in placements}
        self._pieces = {
            name: [epilogues[name].piece_of(piece) for piece in placement.pieces]
            for name, placement in placements.items()
        }
        self._devices = [piece.device for piece in next(iter(placements.values())).pieces]
        # Each of these devices has a block of the first axis, whatever the mesh of the fields' shardings is.
        self._sharding = NamedSharding(Mesh(np.array(self._devices), (_AXIS,)), PartitionSpec(_AXIS))
        self._tables = {
            name: self._stacked([epilogue.table_of(piece) for piece in self._pieces[name]])
            for name, epilogue in self._epilogues.items()
            if epilogue.table is not None
        }
        self._compiled = apart(self._compile)

    def _stacked(self, parts: list[Any]) -> jax.Array:
        return self._joined(jax.device_put(parts, self._devices))

    def _joined(self, arrays: list[jax.Array]) -> jax.Array:
        shape = (sum(array.shape[0] for array in arrays), *arrays[0].shape[1:])
        return jax.make_array_from_single_device_arrays(shape, self._sharding, arrays)

    def _compile(self) -> Any:
        def finish_all(heads: dict[str, jax.Array], tables: dict[str, jax.Array]) -> dict[str, jax.Array]:
            return {
                name: self._placements[name].shaped(finished(head, self._epilogues[name], tables.get(name)))
                for name, head in heads.items()
            }

        specs = PartitionSpec(_AXIS)
        function = jax.jit(
            _shard_map(finish_all, mesh=self._sharding.mesh, in_specs=(specs, specs), out_specs=specs)
        )
        heads = {}
        for name, placement in self._placements.items():
            pieces = self._pieces[name]
            row = self._epilogues[name].row_of(placement.row_shape)
            cut = [len(range(*part.indices(size))) for part, size in zip(pieces[0].rest or (), row)] or row
            rows = sum(piece.rows.stop - piece.rows.start for piece in pieces)
            heads[name] = jax.ShapeDtypeStruct((rows, *cut), np.uint8, sharding=self._sharding)
        return function.lower(heads, self._tables).compile()

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, jax.Array]:
        """Returns the finished global arrays of a batch."""
        heads = {}
        for name, pieces in self._pieces.items():
            parts = [piece.cut(batch[name]) for piece in pieces]
            arrays = jax.device_put(parts, self._devices)
            if self._first:
                aliased, copied = assembling.aliased_and_copied(zip(parts, arrays))
                self.aliased_bytes += aliased
                self.copied_bytes += copied
            heads[name] = self._joined(arrays)
        self._first = False
        result: dict[str, jax.Array] = {}
        for name, array in self._compiled(heads, self._tables).items():
            placement = self._placements[name]
            on = {shard.device: shard.data for shard in array.addressable_shards}
            result[name] = jax.make_array_from_single_device_arrays(
                placement.shape, placement.sharding, [on[device] for device in self._devices]
            )
        return result


def plan(placements: Mapping[str, Placement], epilogues: Mapping[str, Epilogue]) -> list[DeviceEpilogue]:
    """Returns one function for each set of devices that fields with an epilogue are on."""
    groups: dict[tuple[Any, ...], dict[str, Placement]] = {}
    for name, placement in placements.items():
        if name in epilogues:
            groups.setdefault(tuple(piece.device for piece in placement.pieces), {})[name] = placement
    return [DeviceEpilogue(fields, epilogues) for fields in groups.values()]

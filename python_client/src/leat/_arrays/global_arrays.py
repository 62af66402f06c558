# SPDX-License-Identifier: Apache-2.0
"""Converts between arrays of this process and global `jax.Array`s: the functions of Loadax's placement page, for any
mesh.

Row r of a process's array is the r-th, in ascending order, of the rows of the global array that the process's devices
hold. With `DataPartitionType.FULL` that is Loadax's order: the k-th chunk is on the k-th of the mesh's local devices.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from leat._arrays import assembling
from leat._iterators import placement
from leat.errors import InvalidArgument


class DataPartitionType(enum.Enum):
    """How a batch lies over the devices of a mesh.

    FULL: its rows are divided among all devices.
    REPLICATED: every device holds all of it.
    """

    FULL = "full"
    REPLICATED = "replicated"


Partition: TypeAlias = "DataPartitionType | PartitionSpec"


def data_partition_type_to_spec(partition: Partition, *, mesh: Mesh | None = None) -> PartitionSpec:
    """Returns the spec of a partition on a mesh; a PartitionSpec is returned unchanged.

    Args:
        partition: the partition to express.
        mesh: the array's mesh; None: the mesh of the context (`jax.set_mesh`, `with mesh:`).

    Raises:
        NotImplementedError: another kind of partition.
        leat.InvalidArgument: there is no mesh.
    """
    if partition is DataPartitionType.FULL:
        return PartitionSpec(tuple(_mesh(mesh).axis_names))
    if partition is DataPartitionType.REPLICATED:
        return PartitionSpec()
    if isinstance(partition, PartitionSpec):
        return partition
    raise NotImplementedError(
        f"partition {partition!r}: expected DataPartitionType.FULL, DataPartitionType.REPLICATED or a PartitionSpec"
    )


def _of_set_mesh() -> Any:
    """Returns the mesh of `jax.set_mesh`, or None; inside jit, where devices are not known, an abstract one."""
    sources: list[Callable[[], Any] | None] = [
        getattr(jax.sharding, "get_mesh", None),  # from JAX 0.8.1, outside jit only
        getattr(jax.sharding, "get_abstract_mesh", None),
    ]
    for source in sources:
        if source is None:
            continue
        try:
            mesh = source()
        except ValueError:
            continue
        if mesh is not None and not mesh.empty:
            return mesh
    return None


def _of_with_mesh() -> Any:
    """Returns the mesh of `with mesh:`, for which JAX has no public function, or None."""
    try:
        from jax._src.mesh import thread_resources
    except ImportError:
        return None
    mesh = thread_resources.env.physical_mesh
    return None if mesh.empty else mesh


def _of_concrete_mesh() -> Any:
    """Returns the mesh of `jax.sharding.use_mesh` and `set_mesh` of JAX 0.5 to 0.8.0, or None."""
    try:
        from jax._src.mesh import get_concrete_mesh
    except ImportError:
        return None
    return get_concrete_mesh()


def _mesh(mesh: Mesh | None) -> Mesh:
    for candidate in (lambda: mesh, _of_set_mesh, _of_with_mesh, _of_concrete_mesh):
        found = candidate()
        if isinstance(found, Mesh) and not found.empty:
            return found
    raise InvalidArgument("no mesh: expected mesh=, or a call within jax.set_mesh(mesh) or `with mesh:`")


def _sharding(mesh: Mesh, spec: PartitionSpec) -> NamedSharding:
    try:
        return NamedSharding(mesh, spec)
    except ValueError as error:
        raise InvalidArgument(f"partition {spec} does not fit a mesh with axes {dict(mesh.shape)}: {error}") from None


def _rows_of(sharding: NamedSharding) -> tuple[int, int]:
    """Returns into how many parts rows are cut, and how many of them this process holds."""
    entry = sharding.spec[0] if len(sharding.spec) else None
    names = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
    parts = int(np.prod([sharding.mesh.shape[name] for name in names], dtype=np.int64))
    indices = NamedSharding(sharding.mesh, PartitionSpec(entry)).addressable_devices_indices_map((parts,))
    return parts, placement.rows_needed([indices], parts).size


def _to_global(name: str, leaf: Any, sharding: NamedSharding) -> jax.Array:
    array = np.asarray(leaf)
    if array.ndim == 0:
        raise InvalidArgument(f"host_arrays{name} is a scalar; expected an array whose first axis is the batch")
    parts, held = _rows_of(sharding)
    if held == 0:
        raise InvalidArgument(f"host_arrays{name}: mesh {sharding.mesh} has no device of this process")
    if array.shape[0] % held:
        raise InvalidArgument(
            f"host_arrays{name} has {array.shape[0]} rows, which cannot be cut into the {held} parts that the devices "
            f"of this process hold ({sharding.spec} on mesh {dict(sharding.mesh.shape)})"
        )
    batch = array.shape[0] // held * parts
    _, placements = placement.place({f"host_arrays{name}": array.shape[1:]}, sharding, batch)
    return assembling.assemble(array, placements[f"host_arrays{name}"])


def host_to_global_device_array(
    host_arrays: Any, *, partition: Any = DataPartitionType.FULL, mesh: Mesh | None = None
) -> Any:
    """Makes global arrays from each process's share. Nothing is sent between processes.

    Args:
        host_arrays: a pytree of arrays. The first axis of each leaf holds the rows of this process's devices; the
            other axes are complete. Processes whose devices hold the same rows must pass the same values; all pass the
            same number of rows for each part that they hold. CPU devices may alias NumPy memory: do not write to it.
        partition: DataPartitionType, or a PartitionSpec for other layouts (its first entry is the batch axis'); or a
            pytree of these, a prefix of `host_arrays`.
        mesh: the mesh of the result; None: the mesh of the context (`jax.set_mesh`, `with mesh:`).

    Returns:
        A pytree of `jax.Array` of the same structure and dtypes.

    Raises:
        NotImplementedError: another kind of partition.
        leat.InvalidArgument: there is no mesh; rows do not divide, or a leaf is a scalar (the text names the leaf).
    """
    mesh = _mesh(mesh)

    def place(partition: Any, tree: Any, above: str) -> Any:
        sharding = _sharding(mesh, data_partition_type_to_spec(partition, mesh=mesh))
        return jax.tree_util.tree_map_with_path(
            lambda path, leaf: _to_global(above + jax.tree_util.keystr(path), leaf, sharding), tree
        )

    return jax.tree_util.tree_map_with_path(
        lambda path, part, tree: place(part, tree, jax.tree_util.keystr(path)),
        partition,
        host_arrays,
        is_leaf=lambda node: isinstance(node, (DataPartitionType, PartitionSpec)),
    )


def _ranges(index: Sequence[slice], shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple(part.indices(size)[:2] for part, size in zip(index, shape))


def _to_host(name: str, array: Any) -> np.ndarray:
    if not isinstance(array, jax.Array) or array.ndim == 0:
        raise InvalidArgument(f"global_arrays{name}: expected a jax.Array whose first axis is the batch")
    shards = {_ranges(shard.index, array.shape): shard.data for shard in array.addressable_shards}
    if not shards:
        raise InvalidArgument(f"global_arrays{name} has no shard on a device of this process")
    if len(shards) == 1:
        return np.asarray(next(iter(shards.values())))
    axes = [sorted({ranges[axis] for ranges in shards}) for axis in range(array.ndim)]
    if np.prod([len(axis) for axis in axes]) != len(shards):
        raise InvalidArgument(
            f"global_arrays{name}: what this process holds of sharding {array.sharding} is no block of the array"
        )
    starts = [dict(zip(axis, np.cumsum([0, *(b - a for a, b in axis)]).tolist())) for axis in axes]
    whole = np.empty([sum(b - a for a, b in axis) for axis in axes], array.dtype)
    for ranges, data in shards.items():
        where = tuple(slice(start[r], start[r] + r[1] - r[0]) for start, r in zip(starts, ranges))
        whole[where] = data
    return whole


def global_to_host_array(global_arrays: Any, *, partition: DataPartitionType = DataPartitionType.FULL) -> Any:
    """The inverse of `host_to_global_device_array`: returns what this process holds, each row once.

    Args:
        global_arrays: a pytree of `jax.Array`, all with the same number of rows. The sharding is any in which this
            process holds one block, along all axes. Replicas are taken once.
        partition: REPLICATED demands that every device holds everything.

    Returns:
        A pytree of NumPy arrays, in the global order. On CPU, arrays that one device holds are read-only views of it.

    Raises:
        leat.InvalidArgument: leaves have different batch sizes, or are no `jax.Array` (the text names the leaf).
    """
    leaves = jax.tree_util.tree_leaves_with_path(global_arrays)
    first: tuple[str, int] | None = None
    for path, leaf in leaves:
        name = jax.tree_util.keystr(path)
        if not isinstance(leaf, jax.Array) or leaf.ndim == 0:
            raise InvalidArgument(f"global_arrays{name}: expected a jax.Array whose first axis is the batch")
        if partition is DataPartitionType.REPLICATED and not leaf.sharding.is_fully_replicated:
            raise InvalidArgument(f"global_arrays{name} is not replicated: its sharding is {leaf.sharding}")
        first = first or (name, leaf.shape[0])
        if leaf.shape[0] != first[1]:
            raise InvalidArgument(
                f"global_arrays{name} has {leaf.shape[0]} rows and global_arrays{first[0]} has {first[1]}; "
                "expected the same batch size"
            )
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: _to_host(jax.tree_util.keystr(path), leaf), global_arrays
    )


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Calls `jax.lax.with_sharding_constraint` in the context of a mesh of several devices; otherwise returns `x`."""
    mesh = _of_set_mesh() or _of_with_mesh()
    if mesh is None or mesh.empty or mesh.size == 1:
        return x
    return jax.lax.with_sharding_constraint(x, shardings)

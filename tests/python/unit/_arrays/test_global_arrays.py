# SPDX-License-Identifier: Apache-2.0
import collections
import warnings

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat  # noqa: E402
from leat.jax import (  # noqa: E402
    DataPartitionType,
    data_partition_type_to_spec,
    global_to_host_array,
    host_to_global_device_array,
    with_sharding_constraint,
)

FULL, REPLICATED = DataPartitionType.FULL, DataPartitionType.REPLICATED


def mesh_of(*shape, order=None):
    devices = np.array(jax.devices())[order or list(range(8))]
    return Mesh(devices.reshape(shape), ("data", "model", "extra")[: len(shape)])


MESHES = [
    mesh_of(8),
    mesh_of(4, 2),
    mesh_of(2, 2, 2),
    mesh_of(8, order=[5, 2, 7, 0, 1, 6, 3, 4]),
    mesh_of(4, 2, order=[7, 0, 6, 1, 5, 2, 4, 3]),
]


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("partition", [FULL, REPLICATED, P("data"), P(None), P(None, "data"), P("data", None)])
def test_what_goes_there_comes_back(mesh, partition):
    array = np.arange(16 * 8 * 3, dtype=np.float32).reshape(16, 8, 3)
    parts = {"x": partition, "y": FULL}
    placed = host_to_global_device_array({"x": array, "y": [array[:, 0]]}, partition=parts, mesh=mesh)
    want = jax.make_array_from_callback(array.shape, placed["x"].sharding, lambda index: array[index])
    for got, expected in zip(placed["x"].addressable_shards, want.addressable_shards):
        assert got.device == expected.device and got.index == expected.index
        np.testing.assert_array_equal(np.asarray(got.data), np.asarray(expected.data))
    back = global_to_host_array(placed)
    np.testing.assert_array_equal(back["x"], array)
    np.testing.assert_array_equal(back["y"][0], array[:, 0])
    doubled = jax.jit(lambda x: 2 * x)(placed["x"])
    np.testing.assert_array_equal(global_to_host_array(doubled), 2 * array)


def test_full_divides_rows_among_all_devices_in_the_meshs_order():
    mesh = mesh_of(4, 2, order=[7, 0, 6, 1, 5, 2, 4, 3])
    placed = host_to_global_device_array(np.arange(16), mesh=mesh)
    assert placed.sharding == NamedSharding(mesh, P(("data", "model")))
    for k, device in enumerate(mesh.devices.flat):
        (shard,) = [shard for shard in placed.addressable_shards if shard.device == device]
        assert np.asarray(shard.data).tolist() == [2 * k, 2 * k + 1]


def test_replicas_are_taken_once():
    placed = host_to_global_device_array(np.arange(4), partition=P("data"), mesh=mesh_of(4, 2))
    assert global_to_host_array(placed).tolist() == [0, 1, 2, 3]
    placed = host_to_global_device_array(np.arange(3), partition=REPLICATED, mesh=mesh_of(8))
    assert global_to_host_array(placed, partition=REPLICATED).tolist() == [0, 1, 2]
    assert len(placed.sharding.device_set) == 8


def test_trees_keep_their_structure_and_dtypes():
    Pair = collections.namedtuple("Pair", "image label")
    tree = {"a": Pair(np.zeros((8, 2), np.uint8), np.ones(8, np.int32)), "b": [(np.full((8,), 2, np.float16),)]}
    placed = host_to_global_device_array(tree, mesh=mesh_of(8))
    assert jax.tree_util.tree_structure(placed) == jax.tree_util.tree_structure(tree)
    back = global_to_host_array(placed)
    jax.tree_util.tree_map(np.testing.assert_array_equal, back, tree)
    assert [leaf.dtype for leaf in jax.tree_util.tree_leaves(placed)] == [np.uint8, np.int32, np.float16]
    assert host_to_global_device_array({}, mesh=mesh_of(8)) == {} and global_to_host_array([]) == []


def test_the_mesh_may_be_the_contexts():
    mesh = mesh_of(4, 2)
    if hasattr(jax, "set_mesh"):
        with jax.set_mesh(mesh):
            assert host_to_global_device_array(np.arange(8)).sharding.mesh == mesh
            assert data_partition_type_to_spec(FULL) == P(("data", "model"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # JAX's, of `with mesh:`
        with mesh:
            assert host_to_global_device_array(np.arange(8)).sharding.mesh == mesh
    with pytest.raises(leat.InvalidArgument, match="no mesh"):
        host_to_global_device_array(np.arange(8))


def test_a_constraint_needs_a_mesh_of_several_devices():
    mesh = mesh_of(8)
    x = np.arange(8.0)
    assert with_sharding_constraint(x, P("data")) is x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with Mesh(np.array(jax.devices()[:1]), ("data",)):
            assert with_sharding_constraint(x, P("data")) is x
        with mesh:
            got = jax.jit(lambda x: with_sharding_constraint(2 * x, P("data")))(x)
    assert got.sharding.is_equivalent_to(NamedSharding(mesh, P("data")), 1)
    if hasattr(jax, "set_mesh"):
        with jax.set_mesh(mesh):
            got = jax.jit(lambda x: with_sharding_constraint(3 * x, P("data")))(x)
        assert got.sharding.is_equivalent_to(NamedSharding(mesh, P("data")), 1)


def test_wrong_use_names_the_leaf():
    mesh = mesh_of(8)
    nine = r"host_arrays\['x'\] has 9 rows, which cannot be cut into the 8 parts"
    with pytest.raises(leat.InvalidArgument, match=nine):
        host_to_global_device_array({"x": np.zeros(9)}, mesh=mesh)
    with pytest.raises(leat.InvalidArgument, match=r"host_arrays\['x'\]\[0\] is a scalar"):
        host_to_global_device_array({"x": [np.float32(1)]}, mesh=mesh, partition={"x": REPLICATED})
    with pytest.raises(NotImplementedError, match="'full'"):
        host_to_global_device_array(np.zeros(8), mesh=mesh, partition="full")
    with pytest.raises(leat.InvalidArgument, match="cannot be cut as sharding"):
        host_to_global_device_array(np.zeros((8, 3)), mesh=mesh, partition=P(None, "data"))
    with pytest.raises(leat.InvalidArgument, match=r"partition .*'data'.* does not fit a mesh with axes .*'model': 8"):
        host_to_global_device_array(
            np.zeros(8), mesh=Mesh(np.array(jax.devices()), ("model",)), partition=P("data")
        )
    with pytest.raises(leat.InvalidArgument, match=r"global_arrays\[1\] has 16 rows and global_arrays\[0\] has 8"):
        global_to_host_array([host_to_global_device_array(np.zeros(n), mesh=mesh) for n in (8, 16)])
    with pytest.raises(leat.InvalidArgument, match="expected a jax.Array"):
        global_to_host_array(np.zeros(8))
    with pytest.raises(leat.InvalidArgument, match="is not replicated"):
        global_to_host_array(host_to_global_device_array(np.zeros(8), mesh=mesh), partition=REPLICATED)

# SPDX-License-Identifier: Apache-2.0
"""One of several JAX processes with eight devices together: `processes.py ID COUNT PORT`.

Checks its parts of global arrays, and prints the rows of the job that it pulled.
"""

import os
import sys

ID, COUNT = int(sys.argv[1]), int(sys.argv[2])

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={8 // COUNT}"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat  # noqa: E402
import leat.jax  # noqa: E402
from leat import fn  # noqa: E402


@leat.pipeline
def photos():
    encoded, label = fn.readers.image_folder("/photos")
    return {"image": fn.random_resized_crop(fn.decode(encoded), size=8), "label": label}


def check(job, sharding):
    everything = job.batches()
    it = leat.jax.batches(job, sharding=sharding)
    for batch in it:
        expected = next(everything)
        assert batch["image"].shape == expected["image"].shape
        assert not batch["image"].is_fully_addressable
        for shard in batch["image"].addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), expected["image"][shard.index])
    return it.rows.tolist()


def check_placement(mesh, partition):
    """The parts of an array in each process make the array, and convert back."""
    whole = np.arange(16 * 8 * 2, dtype=np.int32).reshape(16, 8, 2)
    sharding = NamedSharding(mesh, leat.jax.data_partition_type_to_spec(partition, mesh=mesh))
    want = jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])
    held = np.zeros(16, bool)
    for shard in want.addressable_shards:
        held[shard.index[0]] = True
    mine = {"x": whole[held]}
    placed = leat.jax.host_to_global_device_array(mine, partition=partition, mesh=mesh)
    assert placed["x"].shape == whole.shape and placed["x"].sharding == sharding
    for got, expected in zip(placed["x"].addressable_shards, want.addressable_shards):
        assert got.device == expected.device and got.index == expected.index
        np.testing.assert_array_equal(np.asarray(got.data), np.asarray(expected.data))
    back = leat.jax.global_to_host_array(placed)
    if len(sharding.spec) < 2:  # otherwise other processes may hold the rest of the second axis
        np.testing.assert_array_equal(back["x"], mine["x"])


def check_placements(devices):
    order = [5, 2, 7, 0, 1, 6, 3, 4]
    names = ("data", "model", "more")
    full, replicated = leat.jax.DataPartitionType.FULL, leat.jax.DataPartitionType.REPLICATED
    for shape in ((8,), (4, 2), (2, 2, 2)):
        for chosen in (devices, devices[order]):
            mesh = Mesh(chosen.reshape(shape), names[: len(shape)])
            for partition in (full, replicated, P("data")):
                check_placement(mesh, partition)
    check_placement(Mesh(devices.reshape(4, 2), names[:2]), P("data", "model"))


def refused(job, says, **arguments):
    try:
        leat.jax.batches(job, **arguments)
    except leat.InvalidArgument as error:
        assert says in str(error), error
    else:
        raise AssertionError(f"{arguments} were taken")


def check_refusals(job, devices):
    refused(job, f"devices is for one process, and there are {COUNT}", devices=jax.local_devices())
    others = np.array([device for device in devices if device.process_index != ID])
    elsewhere = NamedSharding(Mesh(others[: 8 // COUNT], ("data",)), P("data"))
    refused(job, "has no device of this process; expected at least one", sharding=elsewhere)


def check_dali(devices):
    """leat.dali's iterators: a pipeline for each local block of rows; its shard is the block's number."""
    from dali_fake import FakePipeline

    import leat.dali
    from leat.dali.plugin.jax import data_iterator

    made = []

    def pipeline_def(function):
        def make(checkpoint, batch_size, num_threads, device_id, **kwargs):
            made.append(kwargs["shard_id"])
            return FakePipeline(64, batch_size, device_id=device_id, **kwargs)

        return make

    leat.dali.pipeline_def = pipeline_def
    for shape, order, spec in (((8,), range(8), P("data")), ((4, 2), [5, 2, 7, 0, 1, 6, 3, 4], P("data"))):
        mesh = Mesh(devices[list(order)].reshape(shape), ("data", "model")[: len(shape)])
        sharding, parts = NamedSharding(mesh, spec), shape[0]
        held = sharding.addressable_devices_indices_map((parts,)).values()
        made.clear()

        def function(shard_id, num_shards):
            raise AssertionError("pipeline_def calls it")

        it = data_iterator(function, output_map=["x"], reader_name="reader", sharding=sharding)(batch_size=16)
        assert made == sorted({index[0].start or 0 for index in held}), made
        for step, batch in enumerate(it):
            first = np.arange(parts)[:, None] * 64 // parts + step * 16 // parts
            whole = (first + np.arange(16 // parts)).reshape(16, 1)
            assert batch["x"].shape == whole.shape and batch["x"].sharding == sharding
            for shard in batch["x"].addressable_shards:
                np.testing.assert_array_equal(np.asarray(shard.data), whole[shard.index])
        assert step == 3


def main():
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[3]}", num_processes=COUNT, process_id=ID)
    assert len(jax.devices()) == 8 and len(jax.local_devices()) == 8 // COUNT
    job = leat.connect().job("several", photos, batch=16)
    devices = np.array(sorted(jax.devices(), key=lambda device: device.id))
    check_placements(devices)
    check_refusals(job, devices)
    grid = devices.reshape(COUNT, 8 // COUNT).T
    in_order = NamedSharding(Mesh(devices, ("data",)), P("data"))
    interleaved = NamedSharding(Mesh(grid.reshape(8 // COUNT, COUNT), ("data", "model")), P("data"))
    alternate = NamedSharding(Mesh(grid.reshape(8), ("data",)), P("data"))
    print([check(job, sharding) for sharding in (in_order, interleaved, alternate)], flush=True)
    jax.distributed.shutdown()


main()

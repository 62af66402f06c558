# SPDX-License-Identifier: Apache-2.0
"""One of two JAX processes of four devices each: `two_processes.py ID PORT`. Prints the rows that it pulled."""

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

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


def main():
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", num_processes=2, process_id=int(sys.argv[1]))
    assert len(jax.devices()) == 8 and len(jax.local_devices()) == 4
    job = leat.connect().job("two", photos, batch=16)
    devices = np.array(sorted(jax.devices(), key=lambda device: device.id))
    in_order = NamedSharding(Mesh(devices, ("data",)), P("data"))
    interleaved = NamedSharding(Mesh(devices.reshape(2, 4).T.reshape(4, 2), ("data", "model")), P("data"))
    alternate = NamedSharding(Mesh(devices.reshape(2, 4).T.reshape(8), ("data",)), P("data"))
    print([check(job, sharding) for sharding in (in_order, interleaved, alternate)], flush=True)
    jax.distributed.shutdown()


main()

# SPDX-License-Identifier: Apache-2.0
"""One of two JAX processes with eight devices together: `rocal_processes.py ID PORT`. Checks its arrays."""

import os
import sys

ID, COUNT = int(sys.argv[1]), 2

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={8 // COUNT}"

import jax  # noqa: E402
import leat  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from leat.rocal.plugin.jax import ROCALJaxIterator  # noqa: E402
from rocal_fakes import SAMPLES, fake_jobs, make  # noqa: E402


def check(devices, names, spec, parts, shards):
    """The pipelines of `shards`, of as many as there are parts, give this process's rows of a global array."""
    rows = 3
    sharding = NamedSharding(Mesh(devices, names), spec)
    pipelines = [make(batch_size=rows, shard_id=shard, num_shards=parts, device_id=i) for i, shard in enumerate(shards)]
    it = ROCALJaxIterator(pipelines, sharding)
    for step in range(len(it)):
        images, labels = next(it)
        assert images.shape == (parts * rows, 2) and labels.shape == (parts * rows,)
        assert not images.is_fully_addressable
        for shard in labels.addressable_shards:
            part = shard.index[0].start // rows
            begin, end = (SAMPLES * k // parts for k in (part, part + 1))
            expected = [begin + min(rows * step + i, end - begin - 1) for i in range(rows)]
            assert np.asarray(shard.data).tolist() == expected
    it.reset()
    assert np.asarray(next(it)[0].addressable_shards[0].data)[0, 1] == 1


def main():
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", num_processes=COUNT, process_id=ID)
    fake_jobs()
    devices = np.array(sorted(jax.devices(), key=lambda device: device.id))
    mine = list(range(4 * ID, 4 * ID + 4))
    check(devices, ("batch",), P("batch"), 8, mine)
    # Each part on two devices.
    check(devices.reshape(4, 2), ("data", "model"), P("data"), 4, [2 * ID, 2 * ID + 1])
    try:
        ROCALJaxIterator(make(device_id=4 + ID), None)
    except leat.InvalidArgument as error:
        assert "this process has 4 devices" in str(error)
    jax.distributed.shutdown()


main()

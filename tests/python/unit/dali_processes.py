# SPDX-License-Identifier: Apache-2.0
"""One of two JAX processes with one device each: `dali_processes.py ID PORT`. Prints the rows that it holds.

Each reads a shard of its own, and a jax_function exchanges every odd row with the other.
"""

import os
import sys

ID = int(sys.argv[1])

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=1"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from dali_fake import FakePipeline, labels  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat.dali  # noqa: E402
from leat.dali import _node  # noqa: E402
from leat.dali.plugin.jax import data_iterator, fn  # noqa: E402

shard_map = getattr(jax, "shard_map", None)
if shard_map is None:
    from jax.experimental.shard_map import shard_map


def pipeline_def(function):
    def make(checkpoint, batch_size, num_threads, device_id, **kwargs):
        samples, outputs = function(**kwargs)
        return FakePipeline(samples, batch_size, device_id=device_id, outputs=outputs, source=True, **kwargs)

    return make


leat.dali.pipeline_def = pipeline_def
_node.consumer_call = lambda call, inputs, *_: [lambda samples: call(labels(samples))]


def main():
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", num_processes=2, process_id=ID)
    assert len(jax.devices()) == 2 and len(jax.local_devices()) == 1
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("batch",)), P("batch"))

    def exchange(rows):
        other = jax.lax.pshuffle(rows, "batch", [1, 0])
        return jax.numpy.where(jax.numpy.arange(len(rows))[:, None] % 2, other, rows)

    mixed = fn.jax_function(
        jax.jit(shard_map(exchange, mesh=sharding.mesh, in_specs=P("batch"), out_specs=P("batch"))), sharding=sharding
    )
    seen = []

    def function(shard_id, num_shards):
        seen.append((shard_id, num_shards))
        return 12, mixed("node")

    it = data_iterator(function, output_map=["data"], sharding=sharding, size=12)(batch_size=8)
    assert seen == [(ID, 2)] and it.batch_size == 4
    rows = []
    for batch in it:
        assert batch["data"].shape == (8, 1) and len(batch["data"].sharding.device_set) == 2
        (shard,) = batch["data"].addressable_shards
        rows.append(np.asarray(shard.data).ravel().tolist())
    print(rows, flush=True)
    jax.distributed.shutdown()


main()

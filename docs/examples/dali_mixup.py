# SPDX-License-Identifier: Apache-2.0
"""Mixup across two processes inside a DALI pipeline, on Leat: one reads dogs, the other cats, and each image is blended
with the one of its row in the other process.

    python dali_mixup.py DOGS CATS 0 &
    python dali_mixup.py DOGS CATS 1

The blend is a JAX function with a `shard_map` over both processes' devices. Workers read, decode and resize before it,
and could go on after it. Each process needs exactly one device.
"""

import argparse
import functools
import pathlib

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import leat.dali.fn as fn
from leat.dali.plugin.jax import data_iterator
from leat.dali.plugin.jax.fn import jax_function

PROCESSES = 2


def pictures(folder):
    return sorted(str(path) for path in folder.iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))


def make_iterator(dogs, cats, sharding):
    @jax_function(sharding=sharding)
    @jax.jit
    @functools.partial(
        jax.shard_map, mesh=sharding.mesh, in_specs=PartitionSpec("batch"), out_specs=PartitionSpec("batch")
    )
    @jax.vmap
    def mixup(image):
        other = jax.lax.pshuffle(image, "batch", [1, 0])
        return jax.numpy.clip(0.5 * image + 0.5 * other, 0, 255).astype(jax.numpy.uint8)

    @data_iterator(output_map=["mixed", "images"], sharding=sharding)
    def iterator(shard_id, num_shards):
        assert num_shards == PROCESSES
        jpegs, _ = fn.readers.file(files=dogs if shard_id == 0 else cats, name="image_reader")
        images = fn.decoders.image(jpegs, device="mixed")
        images = fn.resize(images, size=(244, 244))
        return mixup(images), images

    return iterator


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dogs", type=pathlib.Path, help="folder of JPEG files that process 0 reads")
    parser.add_argument("cats", type=pathlib.Path, help="folder of JPEG files that process 1 reads")
    parser.add_argument("process", type=int, choices=range(PROCESSES))
    parser.add_argument("--address", default="localhost:12321", help="of process 0")
    parser.add_argument("--batch", type=int, default=8, help="rows of each process")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--save", type=pathlib.Path, help="file that gets this process's rows")
    args = parser.parse_args()
    jax.distributed.initialize(args.address, num_processes=PROCESSES, process_id=args.process)

    sharding = NamedSharding(Mesh(jax.devices(), ("batch",)), PartitionSpec("batch"))
    make = make_iterator(pictures(args.dogs), pictures(args.cats), sharding)
    iterator = make(batch_size=PROCESSES * args.batch, num_threads=4)
    rows = {"mixed": [], "images": []}
    for _ in range(args.steps):
        batch = next(iterator)
        for name, kept in rows.items():
            (local,) = batch[name].addressable_shards
            kept.append(np.asarray(local.data))
    print(f"process {args.process}: {args.steps} batches of {batch['mixed'].shape}, of which {local.data.shape} here")
    if args.save:
        np.savez(args.save, **{name: np.concatenate(kept) for name, kept in rows.items()})
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()

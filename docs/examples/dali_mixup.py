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
from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import leat.dali.fn as fn
from leat.dali import DataNode
from leat.dali.plugin.jax import DALIGenericIterator, data_iterator
from leat.dali.plugin.jax.fn import jax_function

PROCESSES = 2


def pictures(folder: pathlib.Path) -> list[str]:
    return sorted(str(path) for path in folder.iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))


def make_iterator(
    dogs: list[str], cats: list[str], sharding: NamedSharding
) -> Callable[..., DALIGenericIterator]:
    @jax_function(sharding=sharding)
    @jax.jit
    @functools.partial(
        jax.shard_map, mesh=sharding.mesh, in_specs=PartitionSpec("batch"), out_specs=PartitionSpec("batch")
    )
    @jax.vmap
    def mixup(image: jax.Array) -> jax.Array:
        other = jax.lax.pshuffle(image, "batch", [1, 0])
        return jax.numpy.clip(0.5 * image + 0.5 * other, 0, 255).astype(jax.numpy.uint8)

    @data_iterator(output_map=["mixed", "images"], sharding=sharding)
    def iterator(shard_id: int, num_shards: int) -> tuple[DataNode, DataNode]:
        assert num_shards == PROCESSES
        jpegs, _ = fn.readers.file(files=dogs if shard_id == 0 else cats, name="image_reader")
        images = fn.decoders.image(jpegs, device="mixed")
        images = fn.resize(images, size=(244, 244))
        return mixup(images), images

    return iterator


def here(array: jax.Array) -> np.ndarray:
    """The rows of this process, which has one device."""
    (local,) = array.addressable_shards
    return np.asarray(local.data)


def main() -> None:
    parser = argparse.ArgumentParser(description="Mixup across two processes inside a DALI pipeline")
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
    shape: tuple[int, ...] = ()
    mixed: list[np.ndarray] = []
    images: list[np.ndarray] = []
    for _ in range(args.steps):
        batch = next(iterator)
        shape = batch["mixed"].shape
        mixed.append(here(batch["mixed"]))
        images.append(here(batch["images"]))
    print(f"process {args.process}: {args.steps} batches of {shape}, {mixed[-1].shape} here")
    if args.save:
        np.savez(args.save, mixed=np.concatenate(mixed), images=np.concatenate(images))
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 by a rocAL script: a pipeline a device for training, one for validation.

    python docs/examples/rocal_cifar10.py FOLDER [--epochs 5] [--batch 16] [--steps N]

FOLDER has data_batch_1.bin and so on, and test_batch.bin. --batch counts rows of one device. Without GPUs, two devices
are emulated; XLA_FLAGS=--xla_force_host_platform_device_count=8 makes it eight. Several processes: each with
--processes N, --process 0 … N-1 and --coordinator HOST:PORT, a free port on the first one's host.
"""

import argparse
import itertools
import os
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

import leat.rocal.fn as fn  # noqa: E402
import leat.rocal.types as types  # noqa: E402
from leat.rocal.pipeline import Pipeline  # noqa: E402
from leat.rocal.plugin.jax import ROCALJaxIterator, ROCALPeekableIterator  # noqa: E402

SIZES = (3 * 32 * 32, 512, 256, 10)

Parameters = list[tuple[jax.Array, jax.Array]]  # weights and biases of each layer


def cifar10(folder: str, batch: int, prefix: str, device: int = 0, **reading: Any) -> Pipeline:
    """The pipeline of one device: float images in [-1, 1], channels first."""
    pipeline = Pipeline(batch_size=batch, num_threads=8, device_id=device, seed=42, rocal_cpu=False)
    with pipeline:
        images = fn.readers.cifar10(
            file_root=folder,
            filename_prefix=prefix,
            last_batch_policy=types.LAST_BATCH_DROP,
            **reading,
        )
        images = fn.crop_mirror_normalize(
            images,
            crop=(32, 32),
            mirror=0,
            mean=[127.5, 127.5, 127.5],
            std=[127.5, 127.5, 127.5],
            output_layout=types.NCHW,
            output_dtype=types.FLOAT,
        )
        pipeline.set_outputs(images)
    return pipeline.build()


def parameters(key: jax.Array) -> Parameters:
    keys = jax.random.split(key, len(SIZES) - 1)
    return [
        (jax.random.normal(key, (inputs, outputs)) * np.sqrt(2 / inputs).astype(np.float32), jnp.zeros(outputs))
        for key, inputs, outputs in zip(keys, SIZES, SIZES[1:])
    ]


def logits(params: Parameters, images: jax.Array) -> jax.Array:
    x = images.reshape(len(images), -1)
    for weights, bias in params[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    return x @ params[-1][0] + params[-1][1]


def loss_of(params: Parameters, images: jax.Array, labels: jax.Array) -> jax.Array:
    return -(jax.nn.log_softmax(logits(params, images)) * jax.nn.one_hot(labels, 10)).sum(-1).mean()


def stepped(value: jax.Array, slope: jax.Array) -> jax.Array:
    return value - 0.02 * slope


@jax.jit
def update(params: Parameters, images: jax.Array, labels: jax.Array) -> tuple[Parameters, jax.Array]:
    loss, slopes = jax.value_and_grad(loss_of)(params, images, labels)
    return jax.tree.map(stepped, params, slopes), loss


@jax.jit
def right(params: Parameters, images: jax.Array, labels: jax.Array) -> jax.Array:
    return (logits(params, images).argmax(-1) == labels).sum()


def main() -> None:
    parser = argparse.ArgumentParser(description="CIFAR-10 by a rocAL script")
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, help="of an epoch, at most")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0)
    parser.add_argument("--coordinator")
    args = parser.parse_args()
    if args.processes > 1:
        jax.distributed.initialize(args.coordinator, args.processes, args.process)

    count = jax.device_count()
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("batch",)), PartitionSpec("batch"))
    # A pipeline for each device of this process; the batch of a device is a shard of the data.
    pipelines = [
        cifar10(
            args.folder,
            args.batch,
            "data_batch_",
            device=i,
            shard_id=jax.devices().index(device),
            num_shards=count,
            random_shuffle=True,
        )
        for i, device in enumerate(jax.local_devices())
    ]
    train = ROCALPeekableIterator(pipelines, sharding)
    validation = ROCALJaxIterator(cifar10(args.folder, args.batch, "test_batch"))
    print(f"{count} devices, {len(train)} and {len(validation)} batches of {args.batch} rows a device")

    images, labels = train.peek()  # the first batch, which stays the first
    print(f"a batch: {images.shape} {images.dtype}, labels {labels.shape} {labels.dtype}")
    params = jax.device_put(parameters(jax.random.key(0)), NamedSharding(sharding.mesh, PartitionSpec()))
    for epoch in range(args.epochs):
        losses: list[float] = []
        for images, labels in itertools.islice(train, args.steps):
            params, loss = update(params, images, labels)
            losses.append(float(loss))
        train.reset()  # the next epoch, also from the middle of this one
        local = jax.device_get(params)  # validation has one device
        correct = sum(int(right(local, images, labels)) for images, labels in validation)
        validation.reset()
        accuracy = correct / (len(validation) * args.batch)
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()

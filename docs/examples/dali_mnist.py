# SPDX-License-Identifier: Apache-2.0
"""A DALI training on several devices, on Leat: MNIST from Caffe2's LMDB, a small network, accuracy after each epoch.

    leat convert MNIST DATA --to caffe2 --encoding jpeg    # MNIST: the folder of its four files
    python dali_mnist.py DATA
    python dali_mnist.py DATA --by devices --devices 2 --checkpoint place.npz

Only the imports tell that this is not nvidia.dali. With `--checkpoint` the training may be killed at any time, and goes
on where it was when it is started again: the losses are the same bits as without.
"""

import argparse
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import leat.dali.fn as fn
import leat.dali.types as types
from leat.dali import DataNode
from leat.dali.plugin.jax import DALIGenericIterator, data_iterator

SIZES = (784, 1024, 1024, 10)
LEARNING_RATE = 0.001

Model = list[tuple[Any, Any]]  # weights and biases of each layer, in the memory of NumPy or of devices
Batch = Mapping[str, jax.Array]


class Place(NamedTuple):
    """Where a training goes on."""

    epoch: int = 0
    step: int = 0
    iterator: list[str] | None = None  # its checkpoints


def read(path: str, shuffle: bool, **shard: int) -> tuple[DataNode, DataNode]:
    """Gray images as rows of floats from 0 to 1, and labels."""
    jpegs, labels = fn.readers.caffe2(path=path, random_shuffle=shuffle, name="mnist_reader", **shard)
    images = fn.decoders.image(jpegs, device="mixed", output_type=types.GRAY)
    images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, std=[255.0], output_layout="CHW")
    return fn.reshape(images, shape=[SIZES[0]]), labels.gpu()


def training_iterator(
    batch: int,
    path: str,
    checkpoints: list[str] | None,
    enable_checkpointing: bool,
    *,
    sharding: NamedSharding | None,
    devices: list[Any] | None,
) -> DALIGenericIterator:
    """With `sharding` for jit, or with `devices` for pmap."""

    @data_iterator(output_map=["images", "labels"], reader_name="mnist_reader", sharding=sharding, devices=devices)
    def training(path: str, num_shards: int, shard_id: int) -> tuple[DataNode, DataNode]:
        images, labels = read(path, True, num_shards=num_shards, shard_id=shard_id)
        return images, fn.one_hot(labels, num_classes=SIZES[-1])

    return training(
        path=path, batch_size=batch, checkpoints=checkpoints, enable_checkpointing=enable_checkpointing, seed=7
    )


@data_iterator(output_map=["images", "labels"], reader_name="mnist_reader")
def validation_iterator(path: str) -> tuple[DataNode, DataNode]:
    return read(path, False)


def new_model() -> Model:
    draw = np.random.RandomState(0)
    shapes = zip(SIZES[:-1], SIZES[1:])
    return [((0.1 * draw.randn(m, n)).astype(np.float32), (0.1 * draw.randn(n)).astype(np.float32)) for m, n in shapes]


def predict(model: Model, images: jax.Array) -> jax.Array:
    for weights, biases in model[:-1]:
        images = jnp.tanh(images @ weights + biases)
    weights, biases = model[-1]
    return jax.nn.log_softmax(images @ weights + biases)


def loss_of(model: Model, batch: Batch) -> jax.Array:
    return -jnp.mean(jnp.sum(predict(model, batch["images"]) * batch["labels"], axis=1))


def stepped(model: Model, gradients: Model) -> Model:
    def moved(value: jax.Array, gradient: jax.Array) -> jax.Array:
        return value - LEARNING_RATE * gradient

    return jax.tree.map(moved, model, gradients)


@jax.jit
def update(model: Model, batch: Batch) -> tuple[Model, jax.Array]:
    """One step; jit divides it among the devices as the batch is."""
    loss, gradients = jax.value_and_grad(loss_of)(model, batch)
    return stepped(model, gradients), loss


def update_each(model: Model, batch: Batch) -> tuple[Model, jax.Array]:
    """One step, on each device of pmap with its own rows."""
    loss, gradients = jax.lax.pmean(jax.value_and_grad(loss_of)(model, batch), "device")
    return stepped(model, gradients), loss


@jax.jit
def right(model: Model, batch: Batch) -> jax.Array:
    return jnp.sum(jnp.argmax(predict(model, batch["images"]), axis=1) == batch["labels"].ravel())


def accuracy(model: Model, validation: DALIGenericIterator) -> float:
    return sum(int(right(model, batch)) for batch in validation) / validation.size


def save(file: pathlib.Path, model: Model, place: Place) -> None:
    """Writes the file in one step: a process that is killed meanwhile leaves the previous file."""
    arrays: dict[str, Any] = {f"array{i}": np.asarray(value) for i, value in enumerate(jax.tree.leaves(model))}
    with open(f"{file}.new", "wb") as new:
        np.savez(new, place=json.dumps(place._asdict()), **arrays)
    os.replace(f"{file}.new", file)


def load(file: pathlib.Path, model: Model) -> tuple[Model, Place]:
    with np.load(file) as saved:
        leaves = [saved[f"array{i}"] for i in range(len(jax.tree.leaves(model)))]
        return jax.tree.unflatten(jax.tree.structure(model), leaves), Place(**json.loads(str(saved["place"])))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A DALI training on several devices, on Leat")
    parser.add_argument("data", type=pathlib.Path, help="folder with the databases training and testing")
    parser.add_argument("--by", choices=("sharding", "devices"), default="sharding")
    parser.add_argument("--devices", type=int, default=jax.device_count(), help="how many")
    parser.add_argument("--batch", type=int, default=200, help="rows of the global batch")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, help="stop after so many in all")
    parser.add_argument("--checkpoint", type=pathlib.Path, help="file to keep the place in, and to go on from")
    parser.add_argument("--every", type=int, default=100, help="steps between two checkpoints")
    parser.add_argument("--losses", type=pathlib.Path, help="file that gets a line of each step")
    return parser.parse_args()


def main() -> None:
    args = parsed()
    model, place = new_model(), Place()
    if args.checkpoint and args.checkpoint.exists():
        model, place = load(args.checkpoint, model)

    devices = jax.devices()[: args.devices]
    sharding = None
    if args.by == "sharding":
        mesh = Mesh(np.array(devices), ("batch",))
        sharding = NamedSharding(mesh, PartitionSpec("batch"))
        model = jax.device_put(model, NamedSharding(mesh, PartitionSpec()))
        step_of = update
    else:

        def on_each(value: np.ndarray) -> jax.Array:
            return jnp.array([value] * len(devices))

        model = jax.tree.map(on_each, model)
        step_of = jax.pmap(update_each, "device", devices=devices)

    def one_of(value: jax.Array) -> jax.Array:
        """On one device, which validates."""
        return jax.device_put(value if args.by == "sharding" else value[0], devices[0])

    training = training_iterator(
        args.batch,
        str(args.data / "training"),
        place.iterator,
        args.checkpoint is not None,
        sharding=sharding,
        devices=None if sharding else devices,
    )
    validation = validation_iterator(batch_size=args.batch, path=str(args.data / "testing"))
    print(f"{len(training)} batches of training, {len(validation)} of validation")

    done = place.epoch * len(training) + place.step
    loss = float("nan")
    for epoch in range(place.epoch, args.epochs):
        for step, batch in enumerate(training, place.step if epoch == place.epoch else 0):
            model, losses = step_of(model, batch)
            # Waits for the step: emulated devices that run ahead may wait for each other for ever.
            loss = float(np.ravel(losses)[0])
            done += 1
            if args.losses:
                with args.losses.open("a") as file:
                    file.write(f"{epoch} {step} {loss.hex()}\n")
            if args.checkpoint and done % args.every == 0:
                ahead = step + 1 < len(training)
                after = (epoch, step + 1) if ahead else (epoch + 1, 0)
                save(args.checkpoint, jax.tree.map(one_of, model), Place(*after, training.checkpoints()))
            if done == args.steps:
                return
        right_part = accuracy(jax.tree.map(one_of, model), validation)
        print(f"epoch {epoch}: loss {loss:.3f}, accuracy {right_part:.4f}", flush=True)


if __name__ == "__main__":
    main()

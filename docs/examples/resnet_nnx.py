# SPDX-License-Identifier: Apache-2.0
"""A small ResNet in Flax NNX, trained from a folder of photos, one folder a class.

    pip install flax optax
    python docs/examples/resnet_nnx.py FOLDER [--epochs 10]

The batch is divided among all devices, of all processes. Photos are decoded, cropped and mirrored by Leat's workers,
travel as bytes, and become floats on the devices.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import leat
import leat.jax
from leat import fn


@leat.pipeline
def photos(folder: str, size: int) -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(folder)
    image = fn.random_resized_crop(fn.decode(encoded), size=size, area=(0.35, 1.0))
    image = fn.flip(image, horizontal=fn.coin_flip(0.5))
    image = fn.normalize(image, mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))
    return {"image": image, "label": label}


def convolution(inputs: int, outputs: int, size: int, stride: int, rngs: nnx.Rngs) -> nnx.Conv:
    return nnx.Conv(inputs, outputs, (size, size), strides=(stride, stride), use_bias=False, rngs=rngs)


class Block(nnx.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, rngs: nnx.Rngs) -> None:
        self.conv1 = convolution(inputs, outputs, 3, stride, rngs)
        self.norm1 = nnx.BatchNorm(outputs, rngs=rngs)
        self.conv2 = convolution(outputs, outputs, 3, 1, rngs)
        self.norm2 = nnx.BatchNorm(outputs, rngs=rngs)
        self.shortcut = convolution(inputs, outputs, 1, stride, rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        y = jax.nn.relu(self.norm1(self.conv1(x)))
        return jax.nn.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet(nnx.Module):
    def __init__(self, classes: int, width: int, rngs: nnx.Rngs) -> None:
        self.stem = convolution(3, width, 3, 2, rngs)
        self.norm = nnx.BatchNorm(width, rngs=rngs)
        self.block1 = Block(width, width, 1, rngs)
        self.block2 = Block(width, 2 * width, 2, rngs)
        self.block3 = Block(2 * width, 4 * width, 2, rngs)
        self.head = nnx.Linear(4 * width, classes, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = jax.nn.relu(self.norm(self.stem(x)))
        x = self.block3(self.block2(self.block1(x)))
        return self.head(x.mean((1, 2)))


@nnx.jit
def train_step(
    model: ResNet, optimizer: nnx.Optimizer[ResNet], batch: dict[str, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    def loss_of(model: ResNet) -> tuple[jax.Array, jax.Array]:
        scores = model(batch["image"])
        loss = optax.softmax_cross_entropy_with_integer_labels(scores, batch["label"]).mean()
        return loss, (scores.argmax(-1) == batch["label"]).mean()

    (loss, accuracy), grads = nnx.value_and_grad(loss_of, has_aux=True)(model)
    optimizer.update(model, grads)
    return loss, accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", type=int, default=64, help="of the photos, in pixels")
    parser.add_argument("--width", type=int, default=32, help="channels of the first layer")
    args = parser.parse_args()
    mesh = Mesh(np.array(jax.devices()), ("data",))
    with leat.connect() as service:
        job = service.job("resnet", photos(args.folder, args.size), batch=args.batch, seed=7)
        print(f"{job.num_samples} photos of {len(job.classes)} classes, {len(job)} steps, {mesh.size} devices")
        model = ResNet(len(job.classes), args.width, nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adamw(2e-3), wrt=nnx.Param)
        # Model and optimiser on every device.
        for module in (model, optimizer):
            nnx.update(module, jax.device_put(nnx.state(module), NamedSharding(mesh, P())))
        sharding = NamedSharding(mesh, P("data"))
        with leat.jax.batches(job, sharding=sharding, epochs=args.epochs, epilogue="device") as batches:
            for epoch in range(args.epochs):
                # Not read at once, so that the devices need not wait for Python.
                results = [train_step(model, optimizer, batch) for _, batch in zip(range(len(job)), batches)]
                loss, accuracy = jnp.array(results).mean(0)
                print(f"epoch {epoch + 1}: loss {loss:.4f}, accuracy {accuracy:.1%}", flush=True)


if __name__ == "__main__":
    main()

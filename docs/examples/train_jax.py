# SPDX-License-Identifier: Apache-2.0
"""A linear classifier of photos in JAX: each device gets its rows of every batch.

    python docs/examples/train_jax.py FOLDER
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import leat
import leat.jax
from leat import fn

SIZE, EPOCHS, RATE = 16, 4, 0.003


@leat.pipeline
def photos(folder: str) -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(folder)
    image = fn.random_resized_crop(fn.decode(encoded), size=SIZE, area=(0.35, 1.0))
    image = fn.normalize(image, mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))
    return {"image": image, "label": label}


def loss_of(weights: jax.Array, batch: dict[str, jax.Array]) -> jax.Array:
    inputs = batch["image"].reshape(batch["image"].shape[0], -1)
    chances = jax.nn.log_softmax(inputs @ weights)
    return -jnp.take_along_axis(chances, batch["label"][:, None], 1).mean()


def stepped(weight: jax.Array, slope: jax.Array) -> jax.Array:
    return weight - RATE * slope


@jax.jit
def train_step(weights: jax.Array, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
    loss, gradient = jax.value_and_grad(loss_of)(weights, batch)
    return jax.tree.map(stepped, weights, gradient), loss


def main(folder: str) -> None:
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    with leat.connect() as service:
        job = service.job("jax", photos(folder), batch=32, seed=7)
        weights = jax.device_put(jnp.zeros((SIZE * SIZE * 3, len(job.classes))), everywhere)
        losses: list[jax.Array] = []
        with leat.jax.batches(job, sharding=rows, epochs=EPOCHS, epilogue="device") as batches:
            for batch in batches:
                weights, loss = train_step(weights, batch)
                losses.append(loss)
                if len(losses) == len(job):
                    print(f"epoch {batches.epoch}: loss {np.mean(losses):.4f}, {mesh.size} devices", flush=True)
                    losses.clear()


if __name__ == "__main__":
    main(sys.argv[1])

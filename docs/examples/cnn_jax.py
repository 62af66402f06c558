# SPDX-License-Identifier: Apache-2.0
"""A small CNN from a folder of photos: a part of them held out, validated after each epoch, and checkpoints.

    python cnn_jax.py PHOTOS CHECKPOINTS

Killed at any step and started again, it continues after its last checkpoint.
"""

import pathlib
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import leat
import leat.jax
import leat.orbax
from leat import fn

SIZE, EPOCHS, RATE, EVERY = 64, 2, 0.01, 5
WIDTHS = (3, 16, 32, 64)
Model = dict[str, jax.Array]


def scaled(image: leat.Node) -> leat.Node:
    return fn.normalize(image, mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))


@leat.pipeline
def training(files: list[str], labels: list[int]) -> dict[str, leat.Node]:
    encoded, label = fn.readers.files(files, labels=labels)
    image = fn.random_resized_crop(fn.decode(encoded), size=SIZE, area=(0.35, 1.0))
    return {"image": scaled(fn.flip(image, horizontal=fn.coin_flip(0.5))), "label": label}


@leat.pipeline
def validation(files: list[str], labels: list[int]) -> dict[str, leat.Node]:
    encoded, label = fn.readers.files(files, labels=labels)
    image = fn.crop(fn.resize(fn.decode(encoded), shorter=SIZE + 8), size=SIZE)
    return {"image": scaled(image), "label": label}


def initial(classes: int) -> Model:
    keys = jax.random.split(jax.random.PRNGKey(0), len(WIDTHS) - 1)
    model = {"out": jnp.zeros((WIDTHS[-1], classes))}
    for layer, (key, inputs, outputs) in enumerate(zip(keys, WIDTHS, WIDTHS[1:])):
        model[f"conv{layer}"] = jax.random.normal(key, (3, 3, inputs, outputs)) * (2 / (9 * inputs)) ** 0.5
    return model


def scores_of(model: Model, image: jax.Array) -> jax.Array:
    for layer in range(len(WIDTHS) - 1):
        kernel, order = model[f"conv{layer}"], ("NHWC", "HWIO", "NHWC")
        image = jax.nn.relu(jax.lax.conv_general_dilated(image, kernel, (2, 2), "SAME", dimension_numbers=order))
    return image.mean((1, 2)) @ model["out"]


def loss_of(model: Model, batch: dict[str, jax.Array]) -> jax.Array:
    chances = jax.nn.log_softmax(scores_of(model, batch["image"]))
    return -jnp.take_along_axis(chances, batch["label"][:, None], 1).mean()


def stepped(weight: jax.Array, slope: jax.Array) -> jax.Array:
    return weight - RATE * slope


@jax.jit
def train_step(model: Model, batch: dict[str, jax.Array]) -> tuple[Model, jax.Array]:
    loss, gradient = jax.value_and_grad(loss_of)(model, batch)
    return jax.tree.map(stepped, model, gradient), loss


@jax.jit
def count(model: Model, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
    right = (scores_of(model, batch["image"]).argmax(1) == batch["label"]) & batch["valid"]
    return right.sum(), batch["valid"].sum()


def main(folder: str, checkpoints: str) -> None:
    photos = sorted(file for file in pathlib.Path(folder).glob("*/*") if file.suffix.lower() in {".jpg", ".jpeg"})
    classes = sorted({photo.parent.name for photo in photos})
    held_out = photos[::5]
    train = sorted(set(photos) - set(held_out))

    def lists(files: list[pathlib.Path]) -> tuple[list[str], list[int]]:
        return [str(file) for file in files], [classes.index(file.parent.name) for file in files]

    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    manager: Any = ocp.CheckpointManager(pathlib.Path(checkpoints).absolute(), options=options)
    with leat.connect() as service, manager:
        job = service.job("cnn", training(*lists(train)), batch=4, seed=7)
        test = service.job("cnn-test", validation(*lists(held_out)), batch=32, shuffle=False, last_batch="mask")
        model = jax.device_put(initial(len(classes)), everywhere)
        with leat.jax.batches(job, sharding=rows, epochs=EPOCHS, epilogue="device") as batches:
            last = manager.latest_step()
            if last is not None:
                items = ocp.args.Composite(
                    model=ocp.args.StandardRestore(model), data=leat.orbax.CheckpointRestore(batches)
                )
                model = manager.restore(last, args=items)["model"]
                print(f"continues after step {last}", flush=True)
            for batch in batches:
                model, loss = train_step(model, batch)
                assert batches.epoch is not None and batches.step is not None
                done = batches.epoch * len(job) + batches.step + 1
                print(f"step {done}: loss {loss:.6f}", flush=True)
                if done % EVERY == 0:
                    items = ocp.args.Composite(
                        model=ocp.args.StandardSave(model), data=leat.orbax.CheckpointSave(batches)
                    )
                    manager.save(done, args=items)
                if batches.step + 1 == len(job):  # the epoch's last step
                    right = total = 0
                    for held in leat.jax.batches(test, sharding=rows, epilogue="device"):
                        counts = count(model, held)
                        right, total = right + int(counts[0]), total + int(counts[1])
                    print(f"epoch {batches.epoch}: {right} of {total} held-out photos are right", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

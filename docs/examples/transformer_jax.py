# SPDX-License-Identifier: Apache-2.0
"""A small transformer in JAX on a mixture of three packed corpora, on one or several processes.

    python transformer_jax.py FOLDER [--stop STEPS]                 # packed_corpora.py is beside it
    python transformer_jax.py FOLDER --hosts 127.0.0.1:9000 2 0 &   # address of process 0, processes, process
    python transformer_jax.py FOLDER --hosts 127.0.0.1:9000 2 1

It makes the corpora in FOLDER, and saves model and position there when it stops. Started again on any number of
processes, it continues with the very next batch. It prints the hash of each batch, and the loss to its last bit.
"""

import argparse
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from numpy.typing import NDArray
from packed_corpora import BATCH, LENGTH, VOCABULARY, digest, make, mixture

import leat
import leat.jax

LAYERS, HEADS, WIDTH, EPOCHS, RATE = 2, 2, 32, 2, 0.01
Model = dict[str, jax.Array]
State = tuple[Model, Model, Model]  # the weights, and Adam's two means of their slopes
Batch = dict[str, jax.Array]


def initial() -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(0)
    shapes = {"tokens": (VOCABULARY, WIDTH), "positions": (LENGTH, WIDTH)}
    for layer in range(LAYERS):
        shapes[f"{layer}/attention"], shapes[f"{layer}/mixed"] = (WIDTH, 3 * WIDTH), (WIDTH, WIDTH)
        shapes[f"{layer}/up"], shapes[f"{layer}/down"] = (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)
    return {name: rng.normal(0, shape[0] ** -0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def scaled(x: jax.Array) -> jax.Array:
    return x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)


def attend(x: jax.Array, visible: jax.Array) -> jax.Array:
    """Attends to the tokens that `visible` (rows, queries, keys) allows."""
    rows, length, _ = x.shape
    queries, keys, values = x.reshape(rows, length, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)  # rows, heads, length, width
    scores = queries @ keys.swapaxes(2, 3) * queries.shape[-1] ** -0.5
    chances = jax.nn.softmax(jnp.where(visible[:, None], scores, -1e9))
    return (chances @ values).swapaxes(1, 2).reshape(rows, length, -1)


def scores_of(model: Model, batch: Batch) -> jax.Array:
    segments = batch["segment_ids"]
    visible = (segments[:, :, None] == segments[:, None, :]) & jnp.tri(LENGTH, dtype=bool)
    x = model["tokens"][batch["tokens"]] + model["positions"][batch["positions"]]
    for layer in range(LAYERS):
        x += attend(scaled(x) @ model[f"{layer}/attention"], visible) @ model[f"{layer}/mixed"]
        x += jax.nn.relu(scaled(x) @ model[f"{layer}/up"]) @ model[f"{layer}/down"]
    return scaled(x) @ model["tokens"].T


def loss_of(model: Model, batch: Batch) -> jax.Array:
    """Returns the mean over tokens that have a next one in their document."""
    segments = batch["segment_ids"]
    counts = (segments[:, :-1] == segments[:, 1:]) & (segments[:, 1:] > 0)
    if "mask" in batch:  # 1 for tokens that are to be learned
        counts &= batch["mask"][:, 1:] > 0
    chances = jax.nn.log_softmax(scores_of(model, batch)[:, :-1])
    wanted = jnp.take_along_axis(chances, batch["tokens"][:, 1:, None], 2)[..., 0]
    return -(wanted * counts).sum() / counts.sum()


@jax.jit
def train_step(state: State, batch: Batch) -> tuple[State, jax.Array]:
    """Makes a step of Adam, without its correction of the first steps."""
    model, mean, square = state
    loss, slopes = jax.value_and_grad(loss_of)(model, batch)
    mean = {name: 0.9 * mean[name] + 0.1 * slope for name, slope in slopes.items()}
    square = {name: 0.99 * square[name] + 0.01 * slope**2 for name, slope in slopes.items()}
    steps = {name: RATE * mean[name] / (jnp.sqrt(square[name]) + 1e-3) for name in slopes}
    return ({name: model[name] - step for name, step in steps.items()}, mean, square), loss


def as_given(batch: Batch) -> Batch:
    return batch


def save(checkpoint: pathlib.Path, state: State, position: bytes) -> None:
    """Writes the file in one step, so that a process that is killed meanwhile leaves the previous one."""
    arrays = [np.asarray(array) for array in jax.tree.leaves(state)]
    np.savez(checkpoint.with_suffix(".new.npz"), *arrays, position=np.frombuffer(position, np.uint8))
    os.replace(checkpoint.with_suffix(".new.npz"), checkpoint)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--stop", type=int, metavar="STEPS", help="stop after so many")
    parser.add_argument("--hosts", nargs=3, metavar=("ADDRESS", "PROCESSES", "PROCESS"))
    args = parser.parse_args()
    address, processes, process = args.hosts or ("", 1, 0)
    first = int(process) == 0
    if first:
        make(args.folder)  # before the others come here
    if int(processes) > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")  # for processes without GPUs
        jax.distributed.initialize(address, num_processes=int(processes), process_id=int(process))
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    gathered = jax.jit(as_given, out_shardings=everywhere)
    checkpoint, position = args.folder / "checkpoint.npz", None
    model = initial()
    zeros = {name: np.zeros_like(weight) for name, weight in model.items()}
    leaves, structure = jax.tree.flatten((model, zeros, zeros))
    if checkpoint.exists():
        with np.load(checkpoint) as saved:
            leaves = [saved[f"arr_{number}"] for number in range(len(leaves))]
            position = saved["position"].tobytes()
    leaves = leat.jax.host_to_global_device_array(leaves, partition=leat.jax.DataPartitionType.REPLICATED, mesh=mesh)
    state: State = jax.tree.unflatten(structure, leaves)
    with leat.connect() as service:  # on several machines: leat.connect("HOST:7411")
        job = service.job("transformer", mixture(args.folder), batch=BATCH, seed=7)
        with leat.jax.batches(job, sharding=rows, epochs=EPOCHS) as batches:
            if position is not None:
                batches.set_state(position)
            for batch in batches:
                state, loss = train_step(state, batch)
                hashed = digest({name: np.asarray(whole) for name, whole in gathered(batch).items()})
                assert batches.epoch is not None and batches.step is not None
                if first:
                    print(f"epoch {batches.epoch} step {batches.step}: {hashed}, loss {float(loss):.9g}", flush=True)
                if batches.epoch * len(job) + batches.step + 1 == args.stop:
                    break
            if first:
                save(checkpoint, state, batches.position())


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""One of several JAX processes: several_processes.py train|pull|evaluate ID COUNT PORT ADDRESS DIR

They have eight devices together, or six if there are three of them.

train: trains on DIR/images and DIR/labels, keeps checkpoints in DIR/run, begins at the last one.
pull: pulls the rows of its devices from the position in DIR/position to the end of the epoch.
evaluate: counts the pictures whose class a linear model, DIR/weights.npy, finds.
The output lines are JSON; each step's has the checksums of the rows that this process pulled.
"""

import json
import os
import sys
import zlib

MODE, ID, COUNT, PORT, ADDRESS, DIR = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]
EPOCHS, SAVE_EVERY = 2, 4

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={8 // COUNT}"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat  # noqa: E402
import leat.jax  # noqa: E402
from leat import fn  # noqa: E402


@leat.pipeline
def pictures():
    image, label = fn.readers.idx(f"{DIR}/images", labels=f"{DIR}/labels")
    return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}


@leat.pipeline
def plain():
    image, label = fn.readers.idx(f"{DIR}/images", labels=f"{DIR}/labels")
    return {"image": image, "label": label}


def say(**values):
    print(json.dumps(values), flush=True)


def checksums(batch, rows):
    """Returns the checksum of each row that this process has, by its number in the global batch."""
    host = leat.jax.global_to_host_array(batch)
    return {str(row): zlib.crc32(host["image"][i].tobytes() + host["label"][i].tobytes()) for i, row in enumerate(rows)}


def pull(job, sharding):
    with open(f"{DIR}/position", "rb") as file:
        position = file.read()
    with leat.jax.batches(job, sharding=sharding, position=position) as batches:
        for batch in batches:
            say(epoch=batches.epoch, step=batches.step, rows=checksums(batch, batches.rows.tolist()))
        say(bytes=batches.stats()["bytes"])


def evaluate(_, sharding):
    """Rows that only fill the last batch do not count: the results are those of the whole dataset."""
    weights = jnp.asarray(np.load(f"{DIR}/weights.npy"))

    @jax.jit
    def count(batch):
        scores = batch["image"].reshape(len(batch["image"]), -1).astype(jnp.int32) @ weights
        right = (scores.argmax(-1) == batch["label"]) & batch["valid"]
        return right.sum(), batch["valid"].sum()

    right = of = steps = 0
    with leat.connect(ADDRESS) as service:
        job = service.job("evaluation", plain(), batch=72, shuffle=False, last_batch="mask")
        for batch in leat.jax.batches(job, sharding=sharding):
            one, valid = (int(each.addressable_shards[0].data) for each in count(batch))
            right, of, steps = right + one, of + valid, steps + 1
    say(right=right, of=of, steps=steps)


def loss_of(params, batch):
    x = batch["image"].reshape(len(batch["image"]), -1) / 255
    scores = jnp.tanh(x @ params["hidden"]) @ params["out"]
    return -(jax.nn.log_softmax(scores) * jax.nn.one_hot(batch["label"], 10)).sum(-1).mean()


@jax.jit
def update(params, batch):
    loss, grads = jax.value_and_grad(loss_of)(params, batch)
    return jax.tree_util.tree_map(lambda p, g: p - 0.5 * g, params, grads), loss


def train(job, sharding):
    import orbax.checkpoint as ocp

    import leat.orbax

    random = np.random.default_rng(1)
    params = {
        name: random.normal(size=shape).astype(np.float32) * 0.1
        for name, shape in (("hidden", (64, 32)), ("out", (32, 10)))
    }
    params = leat.jax.host_to_global_device_array(
        params, partition=leat.jax.DataPartitionType.REPLICATED, mesh=sharding.mesh
    )
    manager = ocp.CheckpointManager(f"{DIR}/run")
    batches = leat.jax.batches(job, sharding=sharding, epochs=EPOCHS)
    last = manager.latest_step()
    if last is not None:
        args = ocp.args.Composite(model=ocp.args.StandardRestore(params), data=leat.orbax.CheckpointRestore(batches))
        params = manager.restore(last, args=args)["model"]
    for batch in batches:
        params, loss = update(params, batch)
        loss = float(loss.addressable_shards[0].data).hex()
        say(epoch=batches.epoch, step=batches.step, loss=loss, rows=checksums(batch, batches.rows.tolist()))
        done = batches.epoch * len(job) + batches.step + 1
        if done % SAVE_EVERY == 0:
            args = ocp.args.Composite(model=ocp.args.StandardSave(params), data=leat.orbax.CheckpointSave(batches))
            manager.save(done, args=args)
            manager.wait_until_finished()
            say(saved=done)
    manager.close()


def main():
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{PORT}", num_processes=COUNT, process_id=ID)
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
    with leat.connect(ADDRESS) as service:
        job = service.job("pictures", pictures(), batch=64, seed=5)
        {"train": train, "pull": pull, "evaluate": evaluate}[MODE](job, sharding)
    jax.distributed.shutdown()


main()

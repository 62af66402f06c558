# SPDX-License-Identifier: Apache-2.0
"""A linear classifier of photos on several JAX processes, each with the rows of its own devices.

    python docs/examples/hosts_jax.py FOLDER 127.0.0.1:9000 2 0 &    # FOLDER, address of process 0, processes, process
    python docs/examples/hosts_jax.py FOLDER 127.0.0.1:9000 2 1

The processes train, and then evaluate: sums over all of them count each photo once. train_jax.py is beside it.
"""

import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from train_jax import EPOCHS, SIZE, photos, train_step

import leat
import leat.jax
from leat import fn


@leat.pipeline
def validation(folder: str) -> dict[str, leat.Node]:
    """Has no random operator: each epoch has the same pixels."""
    encoded, label = fn.readers.image_folder(folder)
    image = fn.resize(fn.decode(encoded), size=SIZE)
    image = fn.normalize(image, mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))
    return {"image": image, "label": label}


@jax.jit
def count(weights: jax.Array, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
    scores = batch["image"].reshape(batch["image"].shape[0], -1) @ weights
    right = (scores.argmax(1) == batch["label"]) & batch["valid"]
    return right.sum(), batch["valid"].sum()


def main(folder: str, address: str, processes: int, process: int) -> None:
    if processes > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")  # for processes without GPUs
        jax.distributed.initialize(address, num_processes=processes, process_id=process)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows = NamedSharding(mesh, P("data"))
    with leat.connect() as service:  # on several machines: leat.connect("HOST:7411")
        job = service.job("hosts", photos(folder), batch=32, seed=7)
        zeros = {"weights": np.zeros((SIZE * SIZE * 3, len(job.classes)), np.float32)}
        everywhere = leat.jax.DataPartitionType.REPLICATED
        weights = leat.jax.host_to_global_device_array(zeros, partition=everywhere, mesh=mesh)["weights"]
        with leat.jax.batches(job, sharding=rows, epochs=EPOCHS, epilogue="device") as batches:
            print(f"process {process} pulls {len(batches.rows)} of {job.batch} rows", flush=True)
            for batch in batches:
                weights, loss = train_step(weights, batch)
                if batches.step == len(job) - 1 and process == 0:
                    print(f"epoch {batches.epoch}: loss {float(loss):.4f} in its last step", flush=True)
        test = service.job("hosts-test", validation(folder), batch=32, shuffle=False, last_batch="mask")
        right = total = 0
        for batch in leat.jax.batches(test, sharding=rows):
            counts = count(weights, batch)
            right, total = right + int(counts[0]), total + int(counts[1])
        print(f"process {process}: {right} of {total} photos are right", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

# SPDX-License-Identifier: Apache-2.0
"""The training of train_jax.py with Orbax checkpoints of the weights and of the position in the data.

    pip install './python_client[orbax]'
    python docs/examples/resume_orbax.py FOLDER CHECKPOINTS    # train_jax.py is beside it

Stop it at any time and start it again, also on another number of devices or processes.
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
from train_jax import EPOCHS, SIZE, photos, train_step

import leat
import leat.jax
import leat.orbax


def main(folder: str, checkpoints: str) -> None:
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, everywhere = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    manager: Any = ocp.CheckpointManager(pathlib.Path(checkpoints).absolute(), options=options)
    with leat.connect() as service, manager:
        job = service.job("orbax", photos(folder), batch=32, seed=7)
        weights = jax.device_put(jnp.zeros((SIZE * SIZE * 3, len(job.classes))), everywhere)
        with leat.jax.batches(job, sharding=rows, epochs=EPOCHS, epilogue="device") as batches:
            if manager.latest_step() is not None:
                items = ocp.args.Composite(
                    model=ocp.args.StandardRestore({"weights": weights}), data=leat.orbax.CheckpointRestore(batches)
                )
                weights = manager.restore(manager.latest_step(), args=items)["model"]["weights"]
                print(f"continues after step {manager.latest_step()}", flush=True)
            for batch in batches:
                weights, loss = train_step(weights, batch)
                assert batches.epoch is not None and batches.step is not None
                done = batches.epoch * len(job) + batches.step + 1
                if done % 5 == 0:
                    items = ocp.args.Composite(
                        model=ocp.args.StandardSave({"weights": weights}), data=leat.orbax.CheckpointSave(batches)
                    )
                    manager.save(done, args=items)
                print(f"step {done}: loss {loss:.6f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

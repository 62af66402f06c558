# SPDX-License-Identifier: Apache-2.0
"""A Grain program on Leat: photos named by a list in the script, as jax.Arrays, resumed in the middle of an epoch.

    python docs/examples/from_grain.py FOLDER
"""

import pathlib
import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import leat
import leat.jax
from leat import fn


@leat.pipeline
def photos(names: list[str], labels: list[int]) -> dict[str, leat.Node]:
    encoded, label = fn.readers.files(names, labels=labels)
    image = fn.random_resized_crop(fn.decode(encoded), size=(224, 224))
    return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}


def main(folder: str) -> None:
    files = sorted(pathlib.Path(folder).resolve().glob("*/*"))
    classes = sorted({file.parent.name for file in files})
    labels = [classes.index(file.parent.name) for file in files]
    rows = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
    with leat.connect() as service:
        job = service.job("photos", photos([str(file) for file in files], labels), batch=16, seed=7)
        with leat.jax.batches(job, sharding=rows) as batches:
            next(batches)
            state = batches.get_state()
            expected = next(batches)
        with leat.jax.batches(job, sharding=rows) as batches:  # after a restart, on any number of devices
            batches.set_state(state)
            batch = next(batches)
        assert (batch["image"] == expected["image"]).all()
        print(batch["image"].shape, batch["image"].dtype, "resumed at step", batches.step)


if __name__ == "__main__":
    main(sys.argv[1])

# SPDX-License-Identifier: Apache-2.0
"""A batch depends on its position alone: it is the same at the end of a walk and after a jump, whole and by rows.

    python docs/examples/same_batch.py
"""

import pathlib
import tempfile

import numpy as np

import leat
from leat import fn


@leat.pipeline
def crops(path: str) -> dict[str, leat.Node]:
    image = fn.random_resized_crop(fn.readers.numpy(array=path), size=(32, 32))
    return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5))}


def main() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (1000, 48, 48, 3), np.uint8)
    with tempfile.TemporaryDirectory() as folder, leat.connect() as service:
        path = pathlib.Path(folder) / "noise.npy"
        np.save(path, noise)
        job = service.job("same", crops(str(path)), batch=64, seed=7)

        walked = [batch["image"] for batch in job.batches(epochs=2)][len(job) + 3]
        jumped = next(job.batches(start=(1, 3)))["image"]  # epoch 1, step 3
        part = next(job.batches(start=(1, 3), rows=range(16, 24)))["image"]  # what one of eight hosts receives
        assert (walked == jumped).all() and (walked[16:24] == part).all()

        print("samples in the rows:", job.samples(1, 3)[:6], "…")
        row = job.why(step=3, row=16, epoch=1)
        print("row 16 has", *[(draw.op, draw.value) for draw in row.draws])


if __name__ == "__main__":
    main()

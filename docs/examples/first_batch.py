# SPDX-License-Identifier: Apache-2.0
"""A first batch: stores pictures of noise in the working folder, and reads them in shuffled, cropped batches.

    python docs/examples/first_batch.py
"""

import pathlib

import numpy as np

import leat
from leat import fn

FILE = pathlib.Path("pictures.npy").absolute()


@leat.pipeline
def crops() -> dict[str, leat.Node]:
    picture = fn.readers.numpy(array=str(FILE))
    picture = fn.random_resized_crop(picture, size=(32, 32))
    return {"picture": fn.flip(picture, horizontal=fn.coin_flip(0.5))}


def main() -> None:
    np.save(FILE, np.random.default_rng(0).integers(0, 256, (1000, 48, 48, 3), np.uint8))
    with leat.connect() as service:
        job = service.job("first", crops, batch=64, seed=7)
        print(job)
        for step, batch in enumerate(job.batches(epochs=1)):
            picture = batch["picture"]
            print(f"step {step}: {picture.dtype} {picture.shape}, mean {picture.mean():.1f}")


if __name__ == "__main__":
    main()

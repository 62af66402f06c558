# SPDX-License-Identifier: Apache-2.0
"""A training in plain NumPy that holds out every fifth photo, and counts each of these once after each epoch.

    python docs/examples/evaluate.py FOLDER               # train_numpy.py is beside it
"""

import pathlib
import sys

import numpy as np
from train_numpy import EPOCHS, SIZE, Floats, train_step

import leat
from leat import fn


def scaled(image: leat.Node) -> leat.Node:
    return fn.normalize(image, mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))


@leat.pipeline
def training(files: list[str], labels: list[int]) -> dict[str, leat.Node]:
    encoded, label = fn.readers.files(files, labels=labels)
    image = fn.random_resized_crop(fn.decode(encoded), size=SIZE, area=(0.35, 1.0))
    return {"image": scaled(image), "label": label}


@leat.pipeline
def validation(files: list[str], labels: list[int]) -> dict[str, leat.Node]:
    """Has no random operator: each epoch has the same pixels."""
    encoded, label = fn.readers.files(files, labels=labels)
    image = fn.crop(fn.resize(fn.decode(encoded), shorter=SIZE + 2), size=SIZE)
    return {"image": scaled(image), "label": label}


def accuracy(weights: Floats, test: leat.Job) -> tuple[float, int]:
    right = total = 0
    for batch in test.batches():
        inputs: Floats = np.reshape(batch["image"], (len(batch["label"]), -1))
        scores = inputs @ weights
        right += int(((scores.argmax(1) == batch["label"]) & batch["valid"]).sum())
        total += int(batch["valid"].sum())
    return right / total, total


def main(folder: str) -> None:
    photos = sorted(file for file in pathlib.Path(folder).glob("*/*") if file.suffix.lower() in {".jpg", ".jpeg"})
    classes = sorted({photo.parent.name for photo in photos})
    held_out = photos[::5]
    train = sorted(set(photos) - set(held_out))

    def lists(files: list[pathlib.Path]) -> tuple[list[str], list[int]]:
        return [str(file) for file in files], [classes.index(file.parent.name) for file in files]

    with leat.connect() as service:
        job = service.job("train", training(*lists(train)), batch=32, seed=7)
        test = service.job("test", validation(*lists(held_out)), batch=64, shuffle=False, last_batch="mask")
        weights = np.zeros((SIZE * SIZE * 3, len(classes)), np.float32)
        batches = job.batches(epochs=EPOCHS)
        for batch in batches:
            train_step(weights, batch["image"], batch["label"])
            assert batches.step is not None
            if batches.step + 1 == len(job):
                share, total = accuracy(weights, test)
                print(f"epoch {batches.epoch}: {share:.1%} of {total} photos are right", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

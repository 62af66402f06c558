# SPDX-License-Identifier: Apache-2.0
"""A linear classifier of photos in plain NumPy, which continues where it was stopped.

    python docs/examples/train_numpy.py FOLDER CHECKPOINT.npz
"""

import os
import sys

import numpy as np
import numpy.typing as npt

import leat
from leat import fn

SIZE, EPOCHS, RATE = 16, 4, 0.003
Floats = npt.NDArray[np.float32]


@leat.pipeline
def photos(folder: str) -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(folder)
    image = fn.random_resized_crop(fn.decode(encoded), size=SIZE, area=(0.35, 1.0))
    image = fn.normalize(image, mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))
    return {"image": image, "label": label}


def train_step(weights: Floats, image: Floats, label: npt.NDArray[np.int32]) -> float:
    """Changes `weights` in place, and returns the loss."""
    rows = np.arange(len(label))
    inputs: Floats = np.reshape(image, (len(label), -1))
    scores = inputs @ weights
    scores -= scores.max(1, keepdims=True)
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    loss = -float(np.log(chances[rows, label]).mean())
    chances[rows, label] -= 1
    weights -= RATE / len(label) * np.matmul(np.transpose(inputs), chances)
    return loss


def main(folder: str, checkpoint: str) -> None:
    with leat.connect() as service:
        job = service.job("numpy", photos(folder), batch=32, seed=7)
        weights = np.zeros((SIZE * SIZE * 3, len(job.classes)), np.float32)
        batches = job.batches(epochs=EPOCHS)
        if os.path.exists(checkpoint):
            with np.load(checkpoint) as saved:
                weights[:] = saved["weights"]
                batches.set_state(saved["position"].tobytes())
        losses: list[float] = []
        for batch in batches:
            losses.append(train_step(weights, batch["image"], batch["label"]))
            assert batches.step is not None
            if batches.step + 1 == len(job):  # the epoch's last step
                position = np.frombuffer(batches.position(), np.uint8)
                np.savez(checkpoint + ".new.npz", weights=weights, position=position)
                os.replace(checkpoint + ".new.npz", checkpoint)
                print(f"epoch {batches.epoch}: loss {np.mean(losses):.4f}", flush=True)
                losses.clear()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

# SPDX-License-Identifier: Apache-2.0
"""A linear classifier of photos in Keras 3, on any of its backends, with validation after each epoch.

    pip install keras
    KERAS_BACKEND=jax python docs/examples/train_keras.py FOLDER
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras  # noqa: E402

import leat  # noqa: E402
from leat import fn  # noqa: E402

SIZE, EPOCHS = 16, 4


@leat.pipeline
def photos(folder: str) -> dict[str, leat.Node]:
    encoded, label = fn.readers.image_folder(folder)
    image = fn.random_resized_crop(fn.decode(encoded), size=SIZE, area=(0.35, 1.0))
    image = fn.normalize(image, mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))
    return {"image": image, "label": label}


@leat.pipeline
def validation(folder: str) -> dict[str, leat.Node]:
    """Has no random operator: each epoch has the same pixels."""
    encoded, label = fn.readers.image_folder(folder)
    image = fn.resize(fn.decode(encoded), size=SIZE)
    image = fn.normalize(image, mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4))
    return {"image": image, "label": label}


def pairs(batches: leat.Batches) -> Iterator[tuple[Any, Any]]:
    for batch in batches:
        yield batch["image"], batch["label"]


def weighted(batches: leat.Batches) -> Iterator[tuple[Any, Any, Any]]:
    """Gives the padding of a last batch the weight 0."""
    for batch in batches:
        yield batch["image"], batch["label"], batch["valid"].astype("float32")


class Validation(keras.callbacks.Callback):
    """Evaluates by a new iterator after each epoch. Given as validation_data, Keras would read one generator twice."""

    def __init__(self, test: leat.Job) -> None:
        super().__init__()
        self.test = test

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        batches = weighted(self.test.batches())
        result: Any = self.model.evaluate(batches, steps=len(self.test), verbose=0, return_dict=True)
        print(f"epoch {epoch}: loss {logs['loss']:.4f}, validation accuracy {result['accuracy']:.1%}", flush=True)


def main(folder: str) -> None:
    keras.utils.set_random_seed(0)
    with leat.connect() as service:
        job = service.job("keras", photos(folder), batch=32, seed=7)
        test = service.job("keras-test", validation(folder), batch=32, shuffle=False, last_batch="mask")
        layers = [keras.layers.Input((SIZE, SIZE, 3)), keras.layers.Flatten(), keras.layers.Dense(len(job.classes))]
        model = keras.Sequential(layers)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.AdamW(1e-3), loss, weighted_metrics=["accuracy"])
        batches = pairs(job.batches(epochs=EPOCHS))
        model.fit(batches, epochs=EPOCHS, steps_per_epoch=len(job), callbacks=[Validation(test)], verbose=0)


if __name__ == "__main__":
    main(sys.argv[1])

# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on nodes, computed by a worker and by NumPy."""

import numpy as np
import pytest

import leat
from leat import fn


def test_arithmetic_on_nodes_is_that_of_numpy(service, folder):
    @leat.pipeline
    def values():
        encoded, label = fn.readers.image_folder(str(folder))
        image = fn.decode(encoded)
        image = fn.crop(image, size=(24, 32))
        chance = fn.uniform()
        return {
            "image": image,
            "label": label,
            "chance": chance,
            "linear": image * 2 + 1,
            "ratio": (image + 1) / (label + 1),
            "channels": 255 - image * [1.0, 0.5, 2.0],
            "bright": (image > 99) & (image <= 200),
            "chosen": fn.where(chance > 0.5, image, 0.25),
            "hot": fn.one_hot(label, num_classes=4),
            "varied": fn.brightness(image, brightness=chance),
        }

    batch = next(iter(service.job("values", values, batch=16, seed=3).batches()))
    image, label, chance = batch["image"], batch["label"], batch["chance"]
    column = np.array(label).reshape(-1, 1, 1, 1)
    draws = np.array(chance).reshape(-1, 1, 1, 1)
    expected = {
        "linear": image.astype(np.int32) * 2 + 1,
        "ratio": (image.astype(np.int32) + 1).astype(np.float32) / (column + 1).astype(np.float32),
        "channels": 255 - image * np.array([1, 0.5, 2], np.float32),
        "bright": (image > 99) & (image <= 200),
        "chosen": np.where(draws > 0.5, image.astype(np.float32), np.float32(0.25)),
        "hot": np.eye(4, dtype=np.float32)[label],
        "varied": np.rint(image * draws).astype(np.uint8),
    }
    for name, array in expected.items():
        assert batch[name].dtype == array.dtype and np.array_equal(batch[name], array), name


def test_a_class_out_of_range_is_a_bad_sample_that_names_it(service, folder):
    @leat.pipeline
    def hot():
        return fn.one_hot(fn.readers.image_folder(str(folder))[1], num_classes=2)

    with pytest.raises(leat.Error, match="class [23], want 0 to 1"):
        for _ in service.job("hot", hot, batch=100, seed=3).batches():
            pass

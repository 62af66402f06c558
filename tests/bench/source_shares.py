# SPDX-License-Identifier: Apache-2.0
"""By how many rows a source is off its share after a batch of 64, at worst, as tf.data and Grain mix three of them.

Prints a line "RESULT {json}"; a library that is not installed has the reason instead of a number."""

import json

import numpy as np

BATCH = 64
SHARES = (0.7, 0.2, 0.1)
STEPS = 400


def tf_data():
    import tensorflow as tf

    sources = [tf.data.Dataset.from_tensors(number).repeat() for number in range(len(SHARES))]
    mixed = tf.data.Dataset.sample_from_datasets(sources, weights=SHARES, seed=7)
    return mixed.take(BATCH * STEPS).as_numpy_iterator()


def grain():
    import grain.python as grain

    sources = [grain.MapDataset.source([number]).repeat() for number in range(len(SHARES))]
    mixed = grain.MapDataset.mix(sources, weights=SHARES)
    return (mixed[row] for row in range(BATCH * STEPS))


def worst(rows):
    taken = np.fromiter(rows, np.int64, BATCH * STEPS).reshape(STEPS, BATCH)
    counts = np.cumsum([np.bincount(batch, minlength=len(SHARES)) for batch in taken], axis=0)
    wanted = BATCH * np.arange(1, STEPS + 1)[:, None] * np.array(SHARES)
    return float(np.abs(counts - wanted).max())


def main():
    errors = {}
    for name, make in {"tf.data": tf_data, "Grain": grain}.items():
        try:
            errors[name] = worst(make())
        except ImportError as error:
            errors[name] = f"not installed: {error}"
    print("RESULT", json.dumps(errors), flush=True)


if __name__ == "__main__":
    main()

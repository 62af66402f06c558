# SPDX-License-Identifier: Apache-2.0
"""Trains on a list of photos in shares: of a column's values, and by a weight of each photo.

    python weigh.py [--hosts N]

For each of the two it prints how many rows each class had, and a hash of all batches, which does not depend on the
number of hosts. Each host here is an iterator over its part of the rows.
"""

import argparse
import hashlib
import pathlib
import random
import tempfile

import numpy as np

import leat
from balance import BATCH, CLASSES, STEPS, make_photos
from leat import fn


@leat.pipeline
def listed(files: list[str], labels: list[int]) -> dict[str, leat.Node]:
    encoded, label = fn.readers.files(files, labels=labels)
    image = fn.random_resized_crop(fn.decode(encoded), size=(8, 8))
    return {"image": image, "label": label}


def selections(train: leat.Pipeline, labels: list[int]) -> dict[str, leat.Pipeline]:
    emu = list(CLASSES).index("emu")
    weight_of = 1 / np.sqrt(np.bincount(labels))  # between equal samples and equal classes
    return {
        "column": train.select(by="label", weights={emu: 0.5, "*": 0.5}),
        "samples": train.select(weights=[float(weight_of[label]) for label in labels]),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=1)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as made, leat.connect() as service:
        make_photos(pathlib.Path(made))
        files = sorted(map(str, pathlib.Path(made).rglob("*.bmp")))
        random.Random(7).shuffle(files)  # so that the classes are not runs of the list
        labels = [list(CLASSES).index(pathlib.Path(file).parent.name) for file in files]
        for name, pipeline in selections(listed(files, labels), labels).items():
            job = service.job(name, pipeline, batch=BATCH, seed=7, last_batch="stream", replace=True)
            part = BATCH // args.hosts
            hosts = [job.batches(rows=range(host * part, (host + 1) * part)) for host in range(args.hosts)]
            rows = np.zeros(len(CLASSES), int)
            digest = hashlib.sha256()
            for _ in range(STEPS):
                parts = [next(host) for host in hosts]
                batch = {field: np.concatenate([part[field] for part in parts]) for field in parts[0]}
                digest.update(batch["image"].tobytes())
                rows += np.bincount(batch["label"], minlength=len(CLASSES))
            print(f"{name}: rows {' '.join(map(str, rows))}, {digest.hexdigest()[:16]}")


if __name__ == "__main__":
    main()

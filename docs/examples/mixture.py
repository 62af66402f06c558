# SPDX-License-Identifier: Apache-2.0
"""Mixes three folders of photos in shares, changes a share at step 200, and resumes on any number of hosts.

    python mixture.py FOLDER FOLDER FOLDER [--hosts N] [--from-step STEP]

It prints a hash for each batch. The hashes do not depend on the number of hosts or on where the run began. Each host
here is an iterator over its part of the rows.
"""

import argparse
import hashlib

import numpy as np

import leat
from leat import fn

STEPS = 240
BATCH = 256


@leat.pipeline
def photos(folder: str):
    encoded, label = fn.readers.image_folder(folder)
    image = fn.random_resized_crop(fn.decode(encoded), size=(32, 32))
    return {"image": image, "label": label}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs=3)
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--from-step", type=int, default=0)
    args = parser.parse_args()

    names = ["web", "books", "code"]
    mixed = leat.mix(
        {name: photos(folder) for name, folder in zip(names, args.folders)},
        [
            (0, {"web": 0.7, "books": 0.2, "code": 0.1}),
            (200, {"web": 0.4, "books": 0.2, "code": 0.4}),
        ],
        source_field="source",
    )
    with leat.connect() as service:
        job = service.job("mixture", mixed, batch=BATCH, seed=7)
        part = BATCH // args.hosts
        hosts = [
            job.batches(rows=range(host * part, (host + 1) * part), start=(0, args.from_step))
            for host in range(args.hosts)
        ]
        for step in range(args.from_step, STEPS):
            parts = [next(host) for host in hosts]
            batch = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            digest = hashlib.sha256(b"".join(batch[name].tobytes() for name in sorted(batch)))
            rows = np.bincount(batch["source"], minlength=3)
            print(f"step {step}: {digest.hexdigest()[:16]} rows {' '.join(map(str, rows))}")
        for name, where in job.passes(epoch=0, step=STEPS).items():
            print(f"{name}: pass {where.number}, {where.done:.0%} of it done")


if __name__ == "__main__":
    main()

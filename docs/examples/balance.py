# SPDX-License-Identifier: Apache-2.0
"""Trains on classes in balance, and resumes on any number of hosts.

    python balance.py [--hosts N] [--from-step STEP]

It prints a hash for each batch. The hashes do not depend on the number of hosts or on where the run began. Each host
here is an iterator over its part of the rows.
"""

import argparse
import hashlib
import pathlib
import tempfile

import numpy as np

import leat
from leat import fn

CLASSES = {"cat": 90, "dog": 20, "emu": 5}
STEPS = 10
BATCH = 24


def make_photos(folder: pathlib.Path) -> None:
    """Writes small BMP files, each of one colour."""
    for label, (name, count) in enumerate(CLASSES.items()):
        (folder / name).mkdir()
        for number in range(count):
            header = b"BM" + np.array([54 + 3 * 256, 0, 54, 40, 16, 16], "<u4").tobytes()
            header += np.array([1, 24], "<u2").tobytes() + np.array([0, 3 * 256, 0, 0, 0, 0], "<u4").tobytes()
            colour = bytes([80 * label, 2 * number, 128])
            (folder / name / f"{number:03}.bmp").write_bytes(header + colour * 256)


@leat.pipeline
def photos(folder: str):
    encoded, label = fn.readers.image_folder(folder)
    image = fn.random_resized_crop(fn.decode(encoded), size=(8, 8))
    return {"image": image, "label": label}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--from-step", type=int, default=0)
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as made, leat.connect() as service:
        make_photos(pathlib.Path(made))
        balanced = photos(made).select(weights="balanced")
        job = service.job("balance", balanced, batch=BATCH, seed=7, last_batch="stream", replace=True)
        part = BATCH // args.hosts
        hosts = [
            job.batches(rows=range(host * part, (host + 1) * part), start=(0, args.from_step))
            for host in range(args.hosts)
        ]
        for step in range(args.from_step, STEPS):
            parts = [next(host) for host in hosts]
            batch = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            digest = hashlib.sha256(b"".join(batch[name].tobytes() for name in sorted(batch)))
            rows = np.bincount(batch["label"], minlength=len(CLASSES))
            print(f"step {step}: {digest.hexdigest()[:16]} rows {' '.join(map(str, rows))}")
        for name, where in job.passes(epoch=0, step=STEPS).items():
            print(f"{name}: pass {where.number}, {where.done:.0%} of it done")


if __name__ == "__main__":
    main()

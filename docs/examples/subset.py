# SPDX-License-Identifier: Apache-2.0
"""Takes a part of a folder of photos: by numbers, or by a condition on columns.

    python subset.py FOLDER [--where CONDITION] [--hosts N]

It holds out every fifth photo, and trains on the others that the condition chooses. It prints the number of batches,
which is equal on all hosts, and a hash of all rows, which does not depend on the number of hosts. Each host here is an
iterator over its part of the rows.
"""

import argparse
import hashlib

import numpy as np

import leat
from leat import fn

BATCH = 8


@leat.pipeline
def photos(folder: str):
    encoded, label = fn.readers.image_folder(folder)
    image = fn.random_resized_crop(fn.decode(encoded), size=(32, 32))
    return {"image": image, "label": label}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--where", default="width >= 64 and height >= 64")
    parser.add_argument("--hosts", type=int, default=1)
    args = parser.parse_args()

    with leat.connect() as service:
        everything = service.job("all", photos(args.folder), batch=1)
        numbers = range(everything.num_samples)
        held_out = numbers[::5]
        rest = [number for number in numbers if number not in held_out]

        train = photos(args.folder).select(samples=rest, where=args.where)
        test = photos(args.folder).select(samples=held_out)
        for name, pipeline in {"train": train, "test": test}.items():
            job = service.job(name, pipeline, batch=BATCH, seed=7)
            part = BATCH // args.hosts
            hosts = [job.batches(rows=range(host * part, (host + 1) * part), epochs=1) for host in range(args.hosts)]
            digest = hashlib.sha256()
            steps = 0
            for parts in zip(*hosts, strict=True):
                digest.update(np.concatenate([part["image"] for part in parts]).tobytes())
                steps += 1
            print(f"{name}: {job.num_samples} of {len(numbers)} photos, {steps} batches, {digest.hexdigest()[:16]}")


if __name__ == "__main__":
    main()

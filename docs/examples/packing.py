# SPDX-License-Identifier: Apache-2.0
"""Packs two small corpora of tokens into rows, mixes them, and resumes on any number of hosts.

    python packing.py FOLDER [--hosts N] [--from-step STEP]

It makes the corpora in FOLDER if they are not there, and prints a hash for each step.
"""

import argparse
import hashlib
import pathlib

import numpy as np
from numpy.typing import NDArray

import leat
from leat import fn

LENGTH = 128  # tokens in a row
BATCH = 16
STEPS = 40
END = 0  # the token that ends a document


def make(path: pathlib.Path, seed: int) -> None:
    """Makes a file of documents that have 8 to 200 tokens."""
    if path.exists():
        return
    rng = np.random.default_rng(seed)
    documents: list[NDArray[np.int64]] = []
    for length in rng.integers(8, 200, 800):
        documents += [rng.integers(1, 50_000, length), np.array([END])]
    path.write_bytes(np.concatenate(documents).astype(np.uint16).tobytes())


@leat.pipeline
def rows(file: str):
    tokens = fn.readers.tokens([file], dtype="uint16", end=END)
    tokens, segments, positions = fn.pack(tokens, length=LENGTH, how="fit")
    return {"tokens": fn.cast(tokens, dtype="int32"), "segment_ids": segments, "positions": positions}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--from-step", type=int, default=0)
    args = parser.parse_args()

    args.folder.mkdir(parents=True, exist_ok=True)
    corpora = {"web": 0.75, "code": 0.25}
    for seed, name in enumerate(corpora):
        make(args.folder / f"{name}.bin", seed)
    mixed = leat.mix({name: rows(str(args.folder / f"{name}.bin")) for name in corpora}, corpora)
    with leat.connect() as service:
        job = service.job("packing", mixed, batch=BATCH, seed=7)
        part = BATCH // args.hosts
        hosts = [
            job.batches(rows=range(host * part, (host + 1) * part), start=(0, args.from_step))
            for host in range(args.hosts)
        ]
        for step in range(args.from_step, STEPS):
            parts = [next(host) for host in hosts]
            batch = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
            digest = hashlib.sha256(b"".join(batch[name].tobytes() for name in sorted(batch)))
            full = np.count_nonzero(batch["segment_ids"]) / batch["segment_ids"].size
            documents = batch["segment_ids"].max(axis=1).sum()
            print(f"step {step}: {digest.hexdigest()[:16]}, {documents} documents, {full:.1%} full")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Makes a small token file as Megatron-LM writes them, and trains a table of next tokens on its documents.

    python tokens.py FOLDER [--hosts N]

It prints the loss of each epoch, which does not depend on the number of hosts.
"""

import argparse
import pathlib
import struct

import numpy as np
from numpy.typing import NDArray

import leat
from leat import fn

LENGTH = 64  # tokens in a row
BATCH = 32
VOCABULARY = 50


def make(path: pathlib.Path) -> None:
    """Makes PATH.bin and PATH.idx, if they are not there: walks through the vocabulary in steps of 1 to 3."""
    if path.with_suffix(".idx").exists():
        return
    rng = np.random.default_rng(1)
    lengths = rng.integers(8, 100, 640, np.int32)
    walks: list[NDArray[np.int64]] = [np.cumsum(rng.integers(1, 4, int(length))) % VOCABULARY for length in lengths]
    path.with_suffix(".bin").write_bytes(np.concatenate(walks).astype(np.uint16).tobytes())
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, len(walks), len(walks) + 1)
    positions = 2 * (np.cumsum(lengths, dtype=np.int64) - lengths)
    documents = np.arange(len(walks) + 1, dtype=np.int64)
    path.with_suffix(".idx").write_bytes(head + lengths.tobytes() + positions.tobytes() + documents.tobytes())


@leat.pipeline
def rows(file: str):
    tokens = fn.readers.tokens([file])
    row = fn.slice(tokens, start=[0], shape=[LENGTH], out_of_bounds_policy="pad")
    return {"tokens": fn.cast(row, dtype="int32"), "length": fn.length(tokens)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--hosts", type=int, default=1)
    args = parser.parse_args()

    args.folder.mkdir(parents=True, exist_ok=True)
    make(args.folder / "walks")
    with leat.connect() as service:
        job = service.job("tokens", rows(str(args.folder / "walks.bin")), batch=BATCH, seed=7)
        part = BATCH // args.hosts
        hosts = [job.batches(epochs=3, rows=range(host * part, (host + 1) * part)) for host in range(args.hosts)]
        counts = np.ones((VOCABULARY, VOCABULARY))
        for epoch in range(3):
            loss = seen = 0.0
            for _ in range(len(job)):
                parts = [next(host) for host in hosts]
                batch = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
                here, following = batch["tokens"][:, :-1], batch["tokens"][:, 1:]
                real = np.arange(1, LENGTH) < batch["length"][:, None]  # not padding
                chances = counts / counts.sum(1, keepdims=True)
                loss -= float(np.log(chances[here, following])[real].sum())
                seen += int(real.sum())
                np.add.at(counts, (here[real], following[real]), 1)
            print(f"epoch {epoch}: loss {loss / seen:.4f}")


if __name__ == "__main__":
    main()

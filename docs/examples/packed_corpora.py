# SPDX-License-Identifier: Apache-2.0
"""Three small corpora of tokens, and a mixture of their packed rows, for the transformers beside this file.

In a corpus each token of a document is a fixed distance after the one before. A model has to look at two tokens to
know the distance.
"""

import hashlib
import pathlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

import leat
from leat import fn

LENGTH, BATCH, VOCABULARY = 64, 16, 64
END = 0  # the token that ends a document
SHARES = {"web": 0.5, "books": 0.3, "code": 0.2}
DISTANCES = {"web": 1, "books": 5, "code": 11}


def make(folder: pathlib.Path) -> None:
    """Makes the files that are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, distance) in enumerate(DISTANCES.items()):
        if (folder / f"{name}.bin").exists():
            continue
        rng = np.random.default_rng(seed)
        documents: list[NDArray[np.int64]] = []
        for length in rng.integers(6, 40, round(800 * SHARES[name])):
            walk = int(rng.integers(VOCABULARY)) + distance * np.arange(int(length), dtype=np.int64)
            documents += [walk % (VOCABULARY - 1) + 1, np.array([END])]
        (folder / f"{name}.bin").write_bytes(np.concatenate(documents).astype(np.uint16).tobytes())


@leat.pipeline
def rows(file: str):
    tokens = fn.readers.tokens([file], dtype="uint16", end=END)
    tokens, segments, positions = fn.pack(tokens, length=LENGTH, how="fit")
    return {"tokens": fn.cast(tokens, dtype="int32"), "segment_ids": segments, "positions": positions}


def mixture(folder: pathlib.Path) -> leat.Mixture:
    """An epoch ends before a corpus would begin its second pass."""
    return leat.mix({name: rows(str(folder / f"{name}.bin")) for name in SHARES}, SHARES, ends="first")


def digest(batch: Mapping[str, NDArray[np.int32]]) -> str:
    """Returns the hash of all rows of a batch."""
    return hashlib.sha256(b"".join(batch[name].tobytes() for name in sorted(batch))).hexdigest()[:16]

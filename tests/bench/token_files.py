# SPDX-License-Identifier: Apache-2.0
"""Makes the token files of the section `packing`, as Megatron-LM writes them."""

import struct

import numpy as np

LENGTH = 2048  # tokens in a row
MEDIAN, SPREAD, LEAST, MOST = 420, 1.1, 16, 60_000  # of the lengths of texts of the web


def web_lengths(documents):
    """Returns lengths that are log-normal, as those of web pages nearly are."""
    rng = np.random.default_rng(0)
    return np.clip(np.exp(rng.normal(np.log(MEDIAN), SPREAD, documents)), LEAST, MOST).astype(np.int64)


def write(path, lengths):
    """Writes PATH.bin and PATH.idx: uint16 of a vocabulary of 50,000."""
    rng = np.random.default_rng(1)
    rng.integers(0, 50_000, int(lengths.sum()), np.uint16).tofile(path.with_suffix(".bin"))
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1)
    positions = 2 * (np.cumsum(lengths, dtype=np.int64) - lengths)
    documents = np.arange(len(lengths) + 1, dtype=np.int64)
    path.with_suffix(".idx").write_bytes(
        head + lengths.astype(np.int32).tobytes() + positions.tobytes() + documents.tobytes())


def make(folder, rows, documents):
    """Makes rows.bin, of documents of one length, and web.bin."""
    write(folder / "rows", np.full(rows, LENGTH, np.int64))
    write(folder / "web", web_lengths(documents))

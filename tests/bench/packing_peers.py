# SPDX-License-Identifier: Apache-2.0
"""Other libraries' rows of the token files that token_files.py left in FOLDER, one thread.

    packing_peers.py numpy|grain FOLDER

measured_cases.h describes the protocol. numpy slices an np.memmap row by row, in the orders of packing_bench. grain
packs the pieces that packing_bench packs: those of documents longer than a row are cut. It prints how full its rows
are.
"""

import pathlib
import sys

import numpy as np

from asking import measure_cases
from token_files import LENGTH, web_lengths

BATCH = 64
BINS = (64, 256)  # that Grain keeps open


def numpy(folder):
    tokens = np.memmap(folder / "rows.bin", np.uint16, "r")
    count = len(tokens) // LENGTH

    def case(order):
        order = order.tolist()

        def once():
            for first in range(0, count, BATCH):
                rows = order[first : first + BATCH]
                batch = np.empty((len(rows), LENGTH), np.uint16)
                for number, row in enumerate(rows):
                    batch[number] = tokens[row * LENGTH : (row + 1) * LENGTH]
            return count

        return once

    return {
        "token rows": case(np.arange(count)),
        "token rows, shuffled": case(np.fromfile(folder / "order", np.uint64)),
    }


class Pieces:
    """A source for Grain: documents, cut where they are longer than a row."""

    def __init__(self, folder, documents):
        self._tokens = np.memmap(folder / "web.bin", np.uint16, "r")
        places = []
        begin = 0
        for length in web_lengths(documents).tolist():
            places += [(at, min(at + LENGTH, begin + length)) for at in range(begin, begin + length, LENGTH)]
            begin += length
        self._places = places

    def __len__(self):
        return len(self._places)

    def __getitem__(self, number):
        begin, end = self._places[number]
        return {"tokens": np.array(self._tokens[begin:end])}


def grain(folder):
    from absl import flags
    from grain import python as library

    flags.FLAGS(["packing_peers"])  # Grain reads flags that a program of absl would have parsed
    documents = (folder / "web.idx").stat().st_size
    pieces = Pieces(folder, (documents - 42) // 20)  # 34 bytes, 4 + 8 + 8 for each document, 8

    def case(shuffled, bins):
        def once():
            data = library.MapDataset.source(pieces)
            data = (data.shuffle(seed=1) if shuffled else data).to_iter_dataset(
                library.ReadOptions(num_threads=0, prefetch_buffer_size=0))
            rows = real = 0
            for row in library.experimental.BestFitPackIterDataset(
                    data, length_struct={"tokens": LENGTH}, num_packing_bins=bins):
                rows += 1
                real += np.count_nonzero(row["tokens_segment_ids"])
            once.fill = real / (rows * LENGTH)
            return rows

        return once

    cases = {}
    for bins in BINS:
        once = case(True, bins)
        rows = once()
        print(f"fill Grain, best fit among {bins} {once.fill:.5f} of {rows} rows", flush=True)
        for shuffled in (False, True):
            cases[f"packed rows, fit{', shuffled' if shuffled else ''}, {bins}"] = case(shuffled, bins)
    return cases


if __name__ == "__main__":
    measure_cases({"numpy": numpy, "grain": grain}[sys.argv[1]](pathlib.Path(sys.argv[2])))

# SPDX-License-Identifier: Apache-2.0
"""LitData: chunks of the files' bytes, decoded by torchvision in one process per core, as in its ImageNet example."""

import pathlib

import torch
from litdata import StreamingDataLoader, StreamingDataset, optimize

from peers import BATCH
from peers.torchvision_change import changed_bytes


def _record(path):
    return {"image": pathlib.Path(path).read_bytes(), "label": 0}


def prepare(files, folder, threads):
    optimize(fn=_record, inputs=list(files), output_dir=str(folder), chunk_bytes="64MB", num_workers=threads)


class _Photos(StreamingDataset):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self._change = None

    def __getitem__(self, index):
        if self._change is None:  # once in each worker
            torch.set_num_threads(1)
            self._change = changed_bytes()
        return self._change(super().__getitem__(index)["image"])


def batches(files, seconds, threads, prepared):
    photos = _Photos(str(prepared), shuffle=True, drop_last=False)
    loader = StreamingDataLoader(photos, batch_size=BATCH, num_workers=threads, drop_last=False,
                                 persistent_workers=True)
    while True:
        yield from loader

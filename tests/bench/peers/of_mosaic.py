# SPDX-License-Identifier: Apache-2.0
"""MosaicML Streaming: MDS shards of the files' bytes, decoded by torchvision in one process per core."""

import pathlib

from streaming import MDSWriter, StreamingDataset
from streaming.base.util import clean_stale_shared_memory
from torch.utils.data import DataLoader

from peers import BATCH
from peers.torchvision_change import changed_bytes


def prepare(files, folder, threads):
    # "bytes" keeps a file as it is; "jpeg" would decode it into a PIL image.
    with MDSWriter(out=str(folder), columns={"image": "bytes", "label": "int"}) as out:
        for path in files:
            out.write({"image": pathlib.Path(path).read_bytes(), "label": 0})


class _Photos(StreamingDataset):
    def __init__(self, **more):
        super().__init__(**more)
        self._change = None

    def __getitem__(self, index):
        self._change = self._change or changed_bytes()  # once in each worker
        return self._change(super().__getitem__(index)["image"])


def batches(files, seconds, threads, prepared):
    clean_stale_shared_memory()  # left by a run that was killed
    photos = _Photos(local=str(prepared), shuffle=True, batch_size=BATCH)
    loader = DataLoader(photos, batch_size=BATCH, num_workers=threads, persistent_workers=True)
    while True:
        yield from loader

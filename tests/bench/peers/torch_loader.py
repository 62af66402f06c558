# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader, one process per core, for the peers that differ only in the decoder."""

from torch.utils.data import DataLoader, Dataset

from peers import BATCH


class _Images(Dataset):
    """Repeats the files in order, without end."""

    def __init__(self, files, image_of):
        self._files, self._image_of = files, image_of

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        return self._image_of(self._files[index % len(self._files)])


def batches_of(files, threads, image_of):
    # In a worker torch computes with one thread, by itself.
    images = _Images(files, image_of)
    return DataLoader(images, batch_size=BATCH, num_workers=threads, multiprocessing_context="fork")

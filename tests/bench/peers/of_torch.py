# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader, a process a core, over Pillow, or over torchvision's transforms (v2) behind torchvision's decoder
or TorchCodec's, which takes its place."""

from torch.utils.data import DataLoader, Dataset

from peers import AREA, ASPECT, BATCH, SIDE


class _Images(Dataset):
    """The files in order, again and again."""

    def __init__(self, files, image_of):
        self._files, self._image_of = files, image_of

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        return self._image_of(self._files[index % len(self._files)])


def _batches(files, threads, image_of):
    # In a worker torch computes with one thread, by itself.
    images = _Images(files, image_of)
    return DataLoader(images, batch_size=BATCH, num_workers=threads, multiprocessing_context="fork")


def pillow(files, seconds, threads):
    from peers.pillow_image import image_of

    return _batches(files, threads, image_of)


def _changed():
    from torchvision.transforms import v2

    return v2.Compose([
        v2.RandomResizedCrop(SIDE, scale=AREA, ratio=ASPECT, antialias=True),
        v2.RandomHorizontalFlip(),
    ])


def changed_bytes():
    """A function of a JPEG file's bytes, for the loaders that have them in memory."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg

    change = _changed()
    return lambda data: change(decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8),
                                           mode=ImageReadMode.RGB))


def torchvision(files, seconds, threads):
    from torchvision.io import ImageReadMode, decode_jpeg, read_file

    change = _changed()
    return _batches(files, threads, lambda path: change(decode_jpeg(read_file(path), mode=ImageReadMode.RGB)))


def torchcodec(files, seconds, threads):
    from torchcodec.decoders import decode_jpeg

    change = _changed()
    return _batches(files, threads, lambda path: change(decode_jpeg(path, mode="RGB")))

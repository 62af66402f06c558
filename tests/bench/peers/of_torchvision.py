# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over torchvision's decoder and transforms (v2)."""

from torchvision.io import ImageReadMode, decode_jpeg, read_file

from peers.torch_loader import batches_of
from peers.torchvision_change import change


def batches(files, seconds, threads):
    changed = change()
    return batches_of(files, threads, lambda path: changed(decode_jpeg(read_file(path), mode=ImageReadMode.RGB)))

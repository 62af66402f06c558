# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over TorchCodec's decoder and torchvision's transforms (v2)."""

from torchcodec.decoders import decode_jpeg

from peers.torch_loader import batches_of
from peers.torchvision_change import change


def batches(files, seconds, threads):
    changed = change()
    return batches_of(files, threads, lambda path: changed(decode_jpeg(path, mode="RGB")))

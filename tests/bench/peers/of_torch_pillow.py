# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader over Pillow."""

from peers.pillow_image import image_of
from peers.torch_loader import batches_of


def batches(files, seconds, threads):
    return batches_of(files, threads, image_of)

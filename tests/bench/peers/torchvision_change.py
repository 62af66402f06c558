# SPDX-License-Identifier: Apache-2.0
"""The work on one image by torchvision's transforms (v2), after its own decoder or another one."""

import torch
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import v2

from peers import AREA, ASPECT, SIDE


def change():
    return v2.Compose([
        v2.RandomResizedCrop(SIDE, scale=AREA, ratio=ASPECT, antialias=True),
        v2.RandomHorizontalFlip(),
    ])


def changed_bytes():
    """Returns a function of a JPEG file's bytes, for the loaders that have them in memory."""
    changed = change()
    return lambda data: changed(decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8),
                                            mode=ImageReadMode.RGB))

# SPDX-License-Identifier: Apache-2.0
"""The work on one image by Pillow(-SIMD) and NumPy, for the loaders without a decoder of their own."""

import random

import numpy as np
from PIL import Image

from peers import SIDE
from peers.crop import random_part


def image_of(path):
    """Returns uint8 HWC, in memory of its own."""
    with Image.open(path) as file:
        image = file.convert("RGB")
    image = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=random_part(*image.size))
    pixels = np.asarray(image)
    return np.ascontiguousarray(pixels[:, ::-1] if random.random() < 0.5 else pixels)

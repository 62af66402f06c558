# SPDX-License-Identifier: Apache-2.0
"""The work on one image by Pillow(-SIMD) and NumPy, for the loaders that bring no decoder of their own."""

import math
import random

import numpy as np
from PIL import Image

from peers import AREA, ASPECT, SIDE


def random_part(width, height):
    """left, top, right, bottom: the first of ten random shapes that fits, else the whole image."""
    for _ in range(10):
        area, aspect = width * height * random.uniform(*AREA), random.uniform(*ASPECT)
        part = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if part[0] <= width and part[1] <= height:
            break
    else:
        part = width, height
    left, top = random.randint(0, width - part[0]), random.randint(0, height - part[1])
    return left, top, left + part[0], top + part[1]


def image_of(path):
    """uint8 HWC, in memory of its own."""
    with Image.open(path) as file:
        image = file.convert("RGB")
    image = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=random_part(*image.size))
    pixels = np.asarray(image)
    return np.ascontiguousarray(pixels[:, ::-1] if random.random() < 0.5 else pixels)

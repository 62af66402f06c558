# SPDX-License-Identifier: Apache-2.0
"""The random part of an image, for the loaders that need the window as an argument."""

import math
import random

from peers import AREA, ASPECT


def random_part(width, height):
    """Returns left, top, right, bottom: the first of ten random shapes that fits, else the whole image."""
    for _ in range(10):
        area, aspect = width * height * random.uniform(*AREA), random.uniform(*ASPECT)
        part = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if part[0] <= width and part[1] <= height:
            break
    else:
        part = width, height
    left, top = random.randint(0, width - part[0]), random.randint(0, height - part[1])
    return left, top, left + part[0], top + part[1]

# SPDX-License-Identifier: Apache-2.0
"""The operators of `nvidia.dali.fn` that Leat has, with DALI's arguments and defaults."""

from __future__ import annotations

from typing import Any

from leat.dali import _refused
from leat.dali._external_source import external_source
from leat.dali._legacy import LEGACY, warn_of_legacy
from leat.dali.fn import decoders, noise, random, readers
from leat.dali.fn._filled import constant, full, full_like, ones, ones_like, zeros, zeros_like
from leat.dali.fn.colors import (
    brightness,
    brightness_contrast,
    color_space_conversion,
    color_twist,
    contrast,
    equalize,
    erase,
    gaussian_blur,
    hsv,
    hue,
    jpeg_compression_distortion,
    normalize,
    saturation,
)
from leat.dali.fn.decoders import peek_image_shape
from leat.dali.fn.geometry import crop, crop_mirror_normalize, flip, rotate, slice, warp_affine
from leat.dali.fn.python import python_function
from leat.dali.fn.resizing import random_resized_crop, resize, resize_crop_mirror
from leat.dali.fn.shapes import (
    cat,
    expand_dims,
    pad,
    reinterpret,
    reshape,
    shapes,
    squeeze,
    stack,
    transpose,
)
from leat.dali.fn.values import cast, cast_like, copy, lookup_table, one_hot, permute_batch

__all__ = [
    "brightness",
    "brightness_contrast",
    "cast",
    "cast_like",
    "cat",
    "color_space_conversion",
    "color_twist",
    "constant",
    "contrast",
    "copy",
    "crop",
    "crop_mirror_normalize",
    "decoders",
    "equalize",
    "erase",
    "expand_dims",
    "external_source",
    "flip",
    "full",
    "full_like",
    "gaussian_blur",
    "hsv",
    "hue",
    "jpeg_compression_distortion",
    "lookup_table",
    "noise",
    "normalize",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "peek_image_shape",
    "permute_batch",
    "python_function",
    "random",
    "random_resized_crop",
    "readers",
    "reinterpret",
    "reshape",
    "resize",
    "resize_crop_mirror",
    "rotate",
    "saturation",
    "shapes",
    "slice",
    "squeeze",
    "stack",
    "transpose",
    "warp_affine",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> Any:
    if name in LEGACY:
        group, _, function = LEGACY[name].rpartition(".")
        warn_of_legacy(f"fn.{name}", f"fn.{LEGACY[name]}")
        return getattr(globals()[group], function)
    raise _refused.missing("fn", name, __all__)

# SPDX-License-Identifier: Apache-2.0
"""TrivialAugment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leat.dali import fn, types
from leat.dali._node import DataNode
from leat.dali.auto_aug import augmentations as a
from leat.dali.auto_aug._common import automatic
from leat.dali.auto_aug._suites import translations
from leat.dali.auto_aug.core import Augmentation, check_arguments, refused, select, signed_bin, whole


def trivial_augment_wide(
    data: DataNode,
    num_magnitude_bins: int = 31,
    shape: Any = None,
    fill_value: int | None = 128,
    interp_type: Any = None,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
    seed: int | None = None,
    excluded: list[str] | None = None,
) -> DataNode:
    """Applies one operation, with a magnitude, both drawn for each sample.

    Args:
        data: uint8 images, HWC.
        shape: the images' shape: if given, translations are fractions of the images' own sizes, which workers see. A
            node is taken to be that shape; numbers are checked where the sizes are known.
        fill_value: fills the area outside the image; None: the nearest pixel of its edge.
    """
    place = (shape, fill_value, interp_type, max_translate_abs, max_translate_rel, seed)
    own = {"num_magnitude_bins": num_magnitude_bins, "excluded": list(excluded) if excluded else None}
    return automatic("trivial_augment_wide", data, 1.0, *place, **own)


def apply_trivial_augment(
    augmentations: Sequence[Augmentation],
    data: DataNode,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: Any,
) -> DataNode:
    """Applies one augmentation of a list, with a magnitude, both drawn for each sample.

    A worker computes the whole list for each image.

    Args:
        augmentations: those of `augmentations`, or made by `core.augmentation`.
        data: the images.
        num_magnitude_bins: how many magnitudes an augmentation's range is divided into.
        kwargs: passed to each augmentation that takes them, such as fill_value and shape.
    """
    where = "apply_trivial_augment"
    whole(f"{where}: num_magnitude_bins", num_magnitude_bins, 1)
    if not augmentations:
        raise refused(f"{where}: augmentations is empty; expected one or more")
    check_arguments(where, augmentations, kwargs)
    place: Any = fn.random.uniform(values=list(range(num_magnitude_bins)), dtype=types.INT32, seed=seed)
    if any(each.randomly_negate for each in augmentations):
        place = signed_bin(place, seed=seed)
    drawn = fn.random.uniform(values=list(range(len(augmentations))), dtype=types.INT32, seed=seed)
    return select(augmentations, drawn, data, magnitude_bin=place, num_magnitude_bins=num_magnitude_bins, **kwargs)


def get_trivial_augment_wide_suite(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> list[Augmentation]:
    """Returns the 14 augmentations of trivial_augment_wide (https://arxiv.org/abs/2103.10158).

    Args:
        use_shape: translations are fractions of the images' size, which the augmentations then take as `shape`.
        max_translate_abs: the greatest translation in pixels, or height and width; by default 32.
        max_translate_rel: the greatest translation as a fraction, or height and width; by default 1.
    """
    return [
        *translations(use_shape, max_translate_abs, max_translate_rel, 32, 1.0),
        a.shear_x.augmentation((0, 0.99), True),
        a.shear_y.augmentation((0, 0.99), True),
        a.rotate.augmentation((0, 135), True),
        *(each.augmentation((0.01, 0.99), True, a.shift_enhance_range) for each in (a.brightness, a.contrast, a.color)),
        a.sharpness.augmentation((0.01, 0.99), True, a.sharpness_kernel),
        a.posterize.augmentation((8, 2), False, a.poster_mask_uint8),
        a.solarize.augmentation((256, 0)),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]

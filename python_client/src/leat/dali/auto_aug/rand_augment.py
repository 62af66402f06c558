# SPDX-License-Identifier: Apache-2.0
"""RandAugment."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from leat.dali import fn, types
from leat.dali._node import DataNode
from leat.dali.auto_aug import augmentations as a
from leat.dali.auto_aug._common import automatic
from leat.dali.auto_aug._suites import translations
from leat.dali.auto_aug.core import Augmentation, check_arguments, refused, select, signed_bin, whole


def rand_augment(
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    shape: Any = None,
    fill_value: int | None = 128,
    interp_type: Any = None,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
    seed: int | None = None,
    monotonic_mag: bool = True,
    excluded: list[str] | None = None,
) -> DataNode:
    """Applies n operations drawn for each sample, all of magnitude m.

    Args:
        data: uint8 images, HWC.
        shape: the images' shape: if given, translations are fractions of the images' own sizes, which workers see. A
            node is taken to be that shape; numbers are checked where the sizes are known.
        fill_value: fills the area outside the image; None: the nearest pixel of its edge.
    """
    place = (shape, fill_value, interp_type, max_translate_abs, max_translate_rel, seed)
    own = {"n": n, "m": m, "num_magnitude_bins": num_magnitude_bins, "monotonic_mag": monotonic_mag}
    return automatic("rand_augment", data, 100 / 224, *place, **own, excluded=list(excluded) if excluded else None)


def apply_rand_augment(
    augmentations: Sequence[Augmentation],
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: Any,
) -> DataNode:
    """Applies n augmentations of a list drawn for each sample, all of magnitude m.

    A worker computes the whole list n times for each image.

    Args:
        augmentations: those of `augmentations`, or made by `core.augmentation`.
        data: the images.
        n: how many are drawn; one may be drawn again.
        m: the index of the magnitude, from 0 to num_magnitude_bins - 1.
        num_magnitude_bins: how many magnitudes an augmentation's range is divided into.
        kwargs: passed to each augmentation that takes them, such as fill_value and shape.
    """
    where = "apply_rand_augment"
    whole(f"{where}: n", n, 0)
    whole(f"{where}: num_magnitude_bins", num_magnitude_bins, 1)
    whole(f"{where}: m", m, 0, num_magnitude_bins - 1)
    if n == 0:
        warnings.warn(f"{where}: n is 0, so nothing is augmented", stacklevel=2)
        return data
    if not augmentations:
        raise refused(f"{where}: augmentations is empty; expected one or more")
    check_arguments(where, augmentations, kwargs)
    for _ in range(n):
        drawn = fn.random.uniform(values=list(range(len(augmentations))), dtype=types.INT32, seed=seed)
        place = signed_bin(m, seed=seed) if any(each.randomly_negate for each in augmentations) else m
        data = select(augmentations, drawn, data, magnitude_bin=place, num_magnitude_bins=num_magnitude_bins, **kwargs)
    return data


def get_rand_augment_suite(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> list[Augmentation]:
    """Returns the 14 augmentations of rand_augment (https://arxiv.org/abs/1909.13719), stronger with each bin.

    Args:
        use_shape: translations are fractions of the images' size, which the augmentations then take as `shape`.
        max_translate_abs: the greatest translation in pixels, or height and width; by default 100.
        max_translate_rel: the greatest translation as a fraction, or height and width; by default 100/224.
    """
    return [
        *_moved(use_shape, max_translate_abs, max_translate_rel),
        *(each.augmentation((0, 0.9), True, a.shift_enhance_range) for each in (a.brightness, a.contrast, a.color)),
        a.sharpness.augmentation((0, 0.9), True, a.sharpness_kernel),
        a.posterize.augmentation((8, 4), False, a.poster_mask_uint8),
        a.solarize.augmentation((256, 0)),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]


def get_rand_augment_non_monotonic_suite(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> list[Augmentation]:
    """Returns the same with AutoAugment's ranges, whose middle keeps the image; takes the same arguments."""
    return [
        *_moved(use_shape, max_translate_abs, max_translate_rel),
        *(each.augmentation((0.1, 1.9), False, None) for each in (a.brightness, a.contrast, a.color)),
        a.sharpness.augmentation((0.1, 1.9), False, a.sharpness_kernel_shifted),
        a.posterize.augmentation((0, 4), False, a.poster_mask_uint8),
        a.solarize.augmentation((0, 256), False),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]


def _moved(use_shape: bool, max_translate_abs: Any, max_translate_rel: Any) -> list[Augmentation]:
    return [
        *translations(use_shape, max_translate_abs, max_translate_rel, 100, 100 / 224),
        a.shear_x.augmentation((0, 0.3), True),
        a.shear_y.augmentation((0, 0.3), True),
        a.rotate.augmentation((0, 30), True),
    ]

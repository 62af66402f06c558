# SPDX-License-Identifier: Apache-2.0
"""Code that the lists of augmentations and the policies share."""

from __future__ import annotations

from typing import Any

from leat.dali.auto_aug import augmentations as a
from leat.dali.auto_aug.core import Augmentation, refused


def translations(
    use_shape: bool, max_abs: Any, max_rel: Any, default_abs: float, default_rel: float
) -> tuple[Augmentation, Augmentation]:
    """Returns translate_x and translate_y: by fractions of the images' size if `use_shape`, else by pixels."""
    if not isinstance(use_shape, bool):
        raise refused(f"use_shape = {use_shape!r:.60}; expected True or False")
    wrong = "max_translate_abs" if use_shape else "max_translate_rel"
    if (max_abs if use_shape else max_rel) is not None:
        raise refused(f"{wrong} is given with use_shape = {use_shape}; expected the other one")
    given, default = (max_rel, default_rel) if use_shape else (max_abs, default_abs)
    most = default if given is None else given
    height, width = most if isinstance(most, (tuple, list)) else (most, most)
    x, y = (a.translate_x, a.translate_y) if use_shape else (a.translate_x_no_shape, a.translate_y_no_shape)
    return x.augmentation((0, width), True), y.augmentation((0, height), True)

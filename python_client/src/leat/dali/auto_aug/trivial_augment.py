# SPDX-License-Identifier: Apache-2.0
"""TrivialAugment."""

from __future__ import annotations

from typing import Any

from leat.dali._node import DataNode
from leat.dali.auto_aug._common import augmented


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
    """One operation drawn for each sample, of a magnitude drawn.

    Args:
        data: uint8 images, HWC.
        shape: of the images: with it translations are shares of it. Any value does, since workers see the image.
        fill_value: outside the image; None: the nearest pixel of its edge.
    """
    if shape is not None and max_translate_abs is None and max_translate_rel is None:
        max_translate_rel = 1.0
    return augmented(
        "trivial_augment_wide",
        "trivial_augment_wide",
        data,
        num_magnitude_bins=num_magnitude_bins,
        excluded=list(excluded) if excluded else None,
        fill_value=fill_value,
        interp_type=interp_type,
        max_translate_abs=max_translate_abs,
        max_translate_rel=max_translate_rel,
        seed=seed,
    )

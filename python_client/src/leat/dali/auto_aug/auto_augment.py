# SPDX-License-Identifier: Apache-2.0
"""AutoAugment."""

from __future__ import annotations

from typing import Any

from leat.dali._node import DataNode
from leat.dali.auto_aug._common import augmented


def auto_augment(
    data: DataNode,
    policy_name: str = "image_net",
    shape: Any = None,
    fill_value: int | None = 128,
    interp_type: Any = None,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
    seed: int | None = None,
) -> DataNode:
    """AutoAugment with the policy found for a data set: "image_net", "reduced_image_net", "reduced_cifar10", "svhn".

    Args:
        data: uint8 images, HWC.
        shape: of the images: with it translations are shares of it. Any value does, since workers see the image.
        fill_value: outside the image; None: the nearest pixel of its edge.
    """
    if shape is not None and max_translate_abs is None and max_translate_rel is None:
        max_translate_rel = 1.0
    return augmented(
        "auto_augment",
        "auto_augment",
        data,
        policy=policy_name,
        fill_value=fill_value,
        interp_type=interp_type,
        max_translate_abs=max_translate_abs,
        max_translate_rel=max_translate_rel,
        seed=seed,
    )


def auto_augment_image_net(
    data: DataNode,
    shape: Any = None,
    fill_value: int | None = 128,
    interp_type: Any = None,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
    seed: int | None = None,
) -> DataNode:
    """AutoAugment with the policy found for ImageNet."""
    return auto_augment(data, "image_net", shape, fill_value, interp_type, max_translate_abs, max_translate_rel, seed)

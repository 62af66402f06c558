# SPDX-License-Identifier: Apache-2.0
"""AutoAugment."""

from __future__ import annotations

from typing import Any

from leat.dali import _conditionals, fn, types
from leat.dali._node import DataNode
from leat.dali.auto_aug import augmentations as a
from leat.dali.auto_aug._common import automatic
from leat.dali.auto_aug._policies import policy as policy_of
from leat.dali.auto_aug._suites import translations
from leat.dali.auto_aug.core import Augmentation, Policy, check_arguments, refused, select, signed_bin


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
    """Applies AutoAugment with a data set's policy: "image_net", "reduced_image_net", "reduced_cifar10" or "svhn".

    Args:
        data: uint8 images, HWC.
        shape: the images' shape: if given, translations are fractions of the images' own sizes, which workers see. A
            node is taken to be that shape; numbers are checked where the sizes are known.
        fill_value: fills the area outside the image; None: the nearest pixel of its edge.
    """
    place = (shape, fill_value, interp_type, max_translate_abs, max_translate_rel, seed)
    return automatic("auto_augment", data, 1.0, *place, policy=policy_name)


def auto_augment_image_net(
    data: DataNode,
    shape: Any = None,
    fill_value: int | None = 128,
    interp_type: Any = None,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
    seed: int | None = None,
) -> DataNode:
    """Applies AutoAugment with the policy found for ImageNet."""
    return auto_augment(data, "image_net", shape, fill_value, interp_type, max_translate_abs, max_translate_rel, seed)


def apply_auto_augment(policy: Policy, data: DataNode, seed: int | None = None, **kwargs: Any) -> DataNode:
    """Draws one of a policy's sequences for each sample; each of its steps is applied with the step's probability.

    A worker computes the augmentations of all sequences for each image.

    Args:
        policy: a `core.Policy`, or the result of a get_…_policy function.
        data: the images.
        kwargs: passed to each augmentation that takes them, such as fill_value and shape.
    """
    where = "apply_auto_augment"
    if not policy.sub_policies:
        raise refused(f"{where}: the policy {policy.name} is empty; expected one sequence or more")
    named = list(policy.augmentations.values())
    check_arguments(where, named, kwargs)
    sequence = fn.random.uniform(values=list(range(len(policy.sub_policies))), dtype=types.INT32, seed=seed)
    for step in range(max(len(each) for each in policy.sub_policies)):
        steps = [each[step] if step < len(each) else None for each in policy.sub_policies]
        used = list(dict.fromkeys(each[0] for each in steps if each is not None))

        def table(values: list[float], dtype: Any) -> DataNode:
            return fn.lookup_table(sequence, keys=list(range(len(values))), values=values, dtype=dtype)

        drawn = table([used.index(each[0]) if each else 0 for each in steps], types.INT32)
        place: Any = table([(each[2] or 0) if each else 0 for each in steps], types.INT32)
        if any(each.randomly_negate for each in named):
            place = signed_bin(place, seed=seed)
        probability = table([each[1] if each else 0.0 for each in steps], types.FLOAT)
        done = fn.random.uniform(range=[0.0, 1.0], seed=seed) < probability
        changed = select(used, drawn, data, magnitude_bin=place, num_magnitude_bins=policy.num_magnitude_bins, **kwargs)
        data = _conditionals.chosen(done, changed, data, where)
    return data


def get_image_net_policy(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> Policy:
    """Returns the policy found for ImageNet.

    Args:
        use_shape: translations are fractions of the images' size, which the augmentations then take as `shape`.
        max_translate_abs: the greatest translation in pixels, or height and width; by default 250.
        max_translate_rel: the greatest translation as a fraction, or height and width; by default 1.
    """
    return _found("image_net", "ImageNetPolicy", use_shape, max_translate_abs, max_translate_rel)


def get_reduced_image_net_policy() -> Policy:
    """Returns the policy found for 6,000 images of ImageNet. It moves no image."""
    return _found("reduced_image_net", "ReducedImageNetPolicy", False, None, None)


def get_reduced_cifar10_policy(
    use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None
) -> Policy:
    """Returns the policy found for 4,000 images of CIFAR-10. Arguments as in `get_image_net_policy`."""
    return _found("reduced_cifar10", "ReducedCifar10Policy", use_shape, max_translate_abs, max_translate_rel)


def get_svhn_policy(use_shape: bool = False, max_translate_abs: Any = None, max_translate_rel: Any = None) -> Policy:
    """Returns the policy found for SVHN. Arguments as in `get_image_net_policy`."""
    return _found("svhn", "SvhnPolicy", use_shape, max_translate_abs, max_translate_rel)


def _found(name: str, title: str, use_shape: bool, max_translate_abs: Any, max_translate_rel: Any) -> Policy:
    moved = translations(use_shape, max_translate_abs, max_translate_rel, 250, 1.0)
    augmentations: dict[str, Augmentation] = {
        "translate_x": moved[0],
        "translate_y": moved[1],
        "shear_x": a.shear_x.augmentation((0, 0.3), True),
        "shear_y": a.shear_y.augmentation((0, 0.3), True),
        "rotate": a.rotate.augmentation((0, 30), True),
        "brightness": a.brightness.augmentation((0.1, 1.9), False, None),
        "color": a.color.augmentation((0.1, 1.9), False, None),
        "contrast": a.contrast.augmentation((0.1, 1.9), False, None),
        "sharpness": a.sharpness.augmentation((0.1, 1.9), False, a.sharpness_kernel_shifted),
        "posterize": a.posterize.augmentation((0, 4), False, a.poster_mask_uint8),
        "solarize": a.solarize.augmentation((0, 256), False),
        "solarize_add": a.solarize_add.augmentation((0, 110), False),
        "invert": a.invert,
        "equalize": a.equalize,
        "auto_contrast": a.auto_contrast,
    }
    return policy_of(name, title, augmentations)

# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation: `auto_augment`, `rand_augment`, `trivial_augment`."""

from leat.dali.auto_aug import auto_augment, rand_augment, trivial_augment

__all__ = ["auto_augment", "rand_augment", "trivial_augment"]

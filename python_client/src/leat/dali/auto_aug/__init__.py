# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation. `core` and `augmentations` are for lists and policies of a script's own."""

from leat.dali.auto_aug import augmentations, auto_augment, core, rand_augment, trivial_augment

__all__ = ["augmentations", "auto_augment", "core", "rand_augment", "trivial_augment"]

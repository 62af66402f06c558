# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.auto_aug.augmentations`: single augmentations, which are refused by name."""

from __future__ import annotations

from typing import NoReturn

from leat.errors import Unimplemented


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise Unimplemented(
        f"auto_aug.augmentations.{name}: Leat's workers compute the policies that have names (auto_augment, "
        "rand_augment, trivial_augment), not single augmentations"
    )

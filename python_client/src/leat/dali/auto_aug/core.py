# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.auto_aug.core`: policies and augmentations of a script's own, which are refused by name."""

from __future__ import annotations

from typing import NoReturn

from leat.dali import _refused
from leat.errors import Unimplemented


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise Unimplemented(_refused.NAMES["auto_aug.core"].of(f"auto_aug.core.{name}"))

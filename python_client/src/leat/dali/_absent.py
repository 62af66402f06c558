# SPDX-License-Identifier: Apache-2.0
"""Modules of DALI that Leat refuses: importing one raises an error that says why, and what to write instead."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence
from types import ModuleType

from leat.dali import _refused

_PREFIX = "leat.dali."


class _Finder(importlib.abc.MetaPathFinder):
    """An import finder that is asked last, when no other finder knows the module."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if not fullname.startswith(_PREFIX):
            return
        name = fullname[len(_PREFIX) :]
        refusal = _refused.found(name)
        if refusal is not None:
            raise ModuleNotFoundError(refusal.of(name), name=fullname)


def install() -> None:
    """Installs the finder. Idempotent."""
    if not any(isinstance(each, _Finder) for each in sys.meta_path):
        sys.meta_path.append(_Finder())

# SPDX-License-Identifier: Apache-2.0
"""Whether batches may be asked for in a GPU's memory: LEAT_PLANE, and what this machine has."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from leat.errors import FailedPrecondition

if TYPE_CHECKING:
    from leat._batches import Batches


def forced() -> bool:
    """LEAT_PLANE says that it has to be a GPU's memory."""
    return os.environ.get("LEAT_PLANE") == "cuda"


def allows_device() -> bool:
    """LEAT_PLANE does not say that batches come another way."""
    return os.environ.get("LEAT_PLANE", "auto") in ("", "auto", "cuda")


def open_on(device: int | None, opener: Callable[[int], Batches]) -> tuple[Batches, bool]:
    """An iterator of batches in the memory of CUDA device `device`, or else in host memory; and whether it is the first.

    Args:
        device: None: host memory.
        opener: opens one for a device's number, or -1.

    Raises:
        leat.FailedPrecondition: LEAT_PLANE=cuda, and it cannot be had.
    """
    if device is None or not allows_device():
        return opener(-1), False
    try:
        return opener(device), True
    except FailedPrecondition:
        # No driver, or no such device in this process: the framework copies from host memory.
        if forced():
            raise
        return opener(-1), False

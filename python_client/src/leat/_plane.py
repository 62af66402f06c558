# SPDX-License-Identifier: Apache-2.0
"""Whether batches may be asked for in a GPU's memory: LEAT_TRANSPORT, and what this machine has."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from leat._batches import BatchIterator
from leat.errors import FailedPrecondition

_logger = logging.getLogger("leat")
_Iterator = TypeVar("_Iterator", bound=BatchIterator[Any])


def forced() -> bool:
    """LEAT_TRANSPORT says that it has to be a GPU's memory."""
    return os.environ.get("LEAT_TRANSPORT") == "cuda"


def allows_device() -> bool:
    """LEAT_TRANSPORT does not say that batches come another way."""
    return os.environ.get("LEAT_TRANSPORT", "auto") in ("", "auto", "cuda")


def open_on(devices: Sequence[int], opener: Callable[[int, int], _Iterator]) -> list[_Iterator] | None:
    """An iterator of batches in the memory of each of these CUDA devices; None: use host memory.

    Args:
        devices: their numbers.
        opener: opens one, given its place in `devices` and its number.

    Raises:
        leat.FailedPrecondition: LEAT_TRANSPORT=cuda, and it cannot be had.
    """
    if not devices or not allows_device():
        return None
    opened: list[_Iterator] = []
    try:
        for i, device in enumerate(devices):
            opened.append(opener(i, device))
    except BaseException as error:
        for each in opened:
            each.close()
        # No driver, or no such device in this process: the framework copies from host memory.
        if isinstance(error, FailedPrecondition) and not forced():
            _logger.info("batches for CUDA devices %s come through host memory: %s", list(devices), error)
            return None
        raise
    return opened

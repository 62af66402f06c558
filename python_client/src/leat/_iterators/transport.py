# SPDX-License-Identifier: Apache-2.0
"""Decides whether batches can be delivered into a GPU's memory: by LEAT_TRANSPORT, and by what this machine has."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from leat._iterators.batches import BatchIterator
from leat.errors import FailedPrecondition

_logger = logging.getLogger("leat")
_Iterator = TypeVar("_Iterator", bound=BatchIterator[Any])


def forced() -> bool:
    """True if LEAT_TRANSPORT demands a GPU's memory."""
    return os.environ.get("LEAT_TRANSPORT") == "cuda"


def allows_device() -> bool:
    """True unless LEAT_TRANSPORT demands another way for the batches."""
    return os.environ.get("LEAT_TRANSPORT", "auto") in ("", "auto", "cuda")


def open_on(devices: Sequence[int], opener: Callable[[int, int], _Iterator]) -> list[_Iterator] | None:
    """Opens an iterator of batches in the memory of each of these CUDA devices; None: use host memory.

    Args:
        devices: the CUDA device numbers.
        opener: opens one iterator, given its index in `devices` and its device number.

    Raises:
        leat.FailedPrecondition: LEAT_TRANSPORT=cuda, and a GPU's memory is not available.
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

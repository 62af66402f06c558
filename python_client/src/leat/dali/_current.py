# SPDX-License-Identifier: Apache-2.0
"""The pipeline that is being defined, for each thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_state = threading.local()


def stack() -> list[Any]:
    """Returns the entered pipelines, the innermost last."""
    if not hasattr(_state, "pipelines"):
        _state.pipelines = []
    return _state.pipelines


def pipeline() -> Any:
    """Returns the innermost pipeline; None: there is none."""
    return stack()[-1] if stack() else None


def add_sink(operation: Any) -> None:
    """Keeps an operation that must run though no output needs it."""
    if stack():
        stack()[-1]._sinks.append(operation)


def add_seed(seed: Any) -> None:
    """Records the seed that an operator of the pipeline was given."""
    if stack():
        stack()[-1]._operator_seeds.append(seed)


def in_branch() -> bool:
    """True while a branch of an `if` on a node is traced."""
    return getattr(_state, "branches", 0) > 0


@contextlib.contextmanager
def branch() -> Iterator[None]:
    """Marks what is traced inside as a branch of an `if` on a node."""
    _state.branches = getattr(_state, "branches", 0) + 1
    try:
        yield
    finally:
        _state.branches -= 1

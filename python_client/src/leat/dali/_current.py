# SPDX-License-Identifier: Apache-2.0
"""The pipeline that is being defined, for each thread."""

from __future__ import annotations

import threading
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

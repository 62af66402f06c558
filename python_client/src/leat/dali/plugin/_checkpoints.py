# SPDX-License-Identifier: Apache-2.0
"""The text of a checkpoint: a pipeline's state as JSON, and under one more key the state of its iterator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_KEY = "iterator"
_PLACE = "steps"


def pack(pipeline: bytes, iterator: Mapping[str, Any]) -> str:
    """Makes the text. REQUIRES: `iterator` can be written as JSON."""
    return json.dumps({**json.loads(pipeline), _KEY: iterator})


def counted(checkpoint: str | bytes | None) -> dict[str, Any] | None:
    """Returns the iterator's state; None if there was no iterator.

    REQUIRES: a pipeline has accepted the checkpoint as its own.
    """
    return None if checkpoint is None else json.loads(checkpoint).get(_KEY)


def check_same(checkpoint: str | bytes, now: bytes) -> None:
    """Raises ValueError if the checkpoint is from another pipeline than the one with the state `now`."""
    then = {key: value for key, value in json.loads(checkpoint).items() if key not in (_KEY, _PLACE)}
    here = {key: value for key, value in json.loads(now).items() if key != _PLACE}
    if then != here:
        raise ValueError(
            f"the checkpoint is of another pipeline, or of another batch size or number of shards: it has {then}, and "
            f"this pipeline {here}"
        )

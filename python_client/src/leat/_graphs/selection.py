# SPDX-License-Identifier: Apache-2.0
"""Selections: what a job takes of a pipeline's dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leat._graphs.options import positive_number
from leat.errors import InvalidArgument

_MOST_GROUPS = 65536


def _name(key: Any) -> str:
    """Returns the name of a group; a list of files calls its groups by their labels."""
    if isinstance(key, str):
        return key
    try:
        number = key.__index__()
    except (AttributeError, TypeError):
        number = None
    if number is None or isinstance(key, bool):
        raise InvalidArgument(f"weights has {key!r:.80}; expected the name of a class, or a label")
    return str(number)


def of_weights(weights: Any) -> dict[str, Any]:
    """Returns the JSON form of a leat.v1.Selection with these weights."""
    if isinstance(weights, str) and weights == "balanced":
        return {"balanced": True}
    if not isinstance(weights, Mapping):
        raise InvalidArgument(
            f"weights = {weights!r:.80}; expected 'balanced', or a dict from names of classes to their shares"
        )
    if not 1 <= len(weights) <= _MOST_GROUPS:
        raise InvalidArgument(f"weights has {len(weights)} classes; expected 1 to {_MOST_GROUPS}")
    shares: dict[str, float] = {}
    for key, value in weights.items():
        name = _name(key)
        if name in shares:
            raise InvalidArgument(f"weights has {name!r:.80} twice")
        shares[name] = positive_number(f"weights[{key!r:.80}]", value)
    if not any(shares.values()):
        raise InvalidArgument("weights are all 0; expected one over 0")
    return {"shares": [{"name": name, "share": share} for name, share in shares.items()]}

# SPDX-License-Identifier: Apache-2.0
"""Noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from leat.dali import _args
from leat.dali._node import DataNode
from leat.dali._operator import operator
from leat.dali.fn import colors
from leat.errors import InvalidArgument

_RIGHT = frozenset(("uint8", "int32", "int64", "float16", "float32", "float64"))


def _need_type(where: str, x: DataNode) -> None:
    """Requires a known type if workers would widen it, since the bounds of the type decide the result."""
    if x.dtype is None:
        _args.need_type(x, where, _RIGHT)


@operator("noise.gaussian", random=True)
def gaussian(input: DataNode, *, mean: Any = 0.0, stddev: Any = 1.0) -> DataNode:
    """Adds normally distributed noise."""
    where = "fn.noise.gaussian"
    _need_type(where, input)
    result = input.like(
        "noise_gaussian",
        mean=_args.scalar(f"{where}: mean", mean, "float"),
        stddev=_args.scalar(f"{where}: stddev", stddev, "float"),
    )
    return colors.cut(result, input.dtype)


@operator("noise.salt_and_pepper", random=True)
def salt_and_pepper(
    input: DataNode,
    *,
    pepper_val: Any = None,
    per_channel: bool = False,
    prob: Any = 0.05,
    salt_val: Any = None,
    salt_vs_pepper: Any = 0.5,
) -> DataNode:
    """Replaces values by the largest or the least."""
    where = "fn.noise.salt_and_pepper"
    _need_type(where, input)
    if input.dtype in colors.NARROW:
        _, low, high = colors.NARROW[input.dtype]
        salt_val, pepper_val = (high if salt_val is None else salt_val), (low if pepper_val is None else pepper_val)
    return input.like(
        "noise_salt_and_pepper",
        prob=_args.scalar(f"{where}: prob", prob, "float"),
        salt_vs_pepper=_args.scalar(f"{where}: salt_vs_pepper", salt_vs_pepper, "float"),
        salt_val=None if salt_val is None else _args.numbers(f"{where}: salt_val", salt_val),
        pepper_val=None if pepper_val is None else _args.numbers(f"{where}: pepper_val", pepper_val),
        per_channel=bool(per_channel),
    )


@operator("noise.shot", random=True)
def shot(input: DataNode, *, factor: Any = 20.0) -> DataNode:
    """Applies shot noise."""
    where = "fn.noise.shot"
    if not isinstance(factor, DataNode) and np.size(factor) == 1 and not np.ravel(factor)[0]:
        raise InvalidArgument(f"{where}: factor = {factor!r:.40}; expected more than 0; a small one gives little noise")
    _need_type(where, input)
    result = input.like("noise_shot", factor=_args.scalar(f"{where}: factor", factor, "float"))
    return colors.cut(result, input.dtype)

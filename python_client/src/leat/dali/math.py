# SPDX-License-Identifier: Apache-2.0
"""The functions of `nvidia.dali.math` that Leat's workers compute."""

from __future__ import annotations

from typing import Any, NoReturn

from leat.dali import _node, _refused
from leat.dali._node import DataNode

def abs(input: Any) -> DataNode:
    """Without the sign."""
    return _node.node_of(input).like("abs")


def fabs(input: Any) -> DataNode:
    """Without the sign, as float."""
    return _node.cast(_node.node_of(input), "float32").like("abs")


def min(left: Any, right: Any) -> DataNode:
    """The lesser, value by value."""
    return _node.binary("min", left, right)


def max(left: Any, right: Any) -> DataNode:
    """The greater, value by value."""
    return _node.binary("max", left, right)


def pow(base: Any, exponent: Any) -> DataNode:
    """base ** exponent, for whole exponents from 1 to 16."""
    return _node.node_of(base) ** exponent


def clamp(value: Any, lo: Any, hi: Any) -> DataNode:
    """lo where the value is less, hi where it is greater."""
    return min(max(value, lo), hi)


def __getattr__(name: str) -> NoReturn:
    if f"math.{name}" in _refused.NAMES:
        raise _refused.unimplemented(f"math.{name}")
    raise AttributeError(f"leat.dali.math has no {name!r}")

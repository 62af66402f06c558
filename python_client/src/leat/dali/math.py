# SPDX-License-Identifier: Apache-2.0
"""The functions of `nvidia.dali.math` that Leat's workers compute."""

from __future__ import annotations

from typing import Any, NoReturn

from leat.dali import _node, _refused
from leat.dali._node import DataNode
from leat.errors import InvalidArgument


def abs(input: Any) -> DataNode:
    """Without the sign."""
    return _node.node_of(input).like("abs")


def fabs(input: Any) -> DataNode:
    """Without the sign, as float."""
    return _node.cast(_node.node_of(input), "float32").like("abs")


def floor(input: Any) -> DataNode:
    """The greatest whole number that is not above it, as float."""
    return _whole("floor", input)


def ceil(input: Any) -> DataNode:
    """The least whole number that is not below it, as float."""
    return _whole("ceil", input)


# From here on float32 has whole numbers only.
_WHOLE_FROM = 2.0**23


def _whole(name: str, input: Any) -> DataNode:
    """The nearest whole number, and one less or more where it is on the wrong side."""
    x = _node.node_of(input)
    if x.dtype == "bool":
        raise InvalidArgument(
            f"Input to arithmetic operator `{name}` cannot be a boolean. Consider using bitwise operator."
        )
    value = x if x.dtype == "float16" else _node.cast(x, "float32")
    nearest = _node.apply("cast", _node.apply("cast", value, dtype="int64"), dtype=value.dtype)
    wrong = _node.apply("cast", _node.apply("gt" if name == "floor" else "lt", nearest, value), dtype=value.dtype)
    whole = _node.apply("sub" if name == "floor" else "add", nearest, wrong)
    # What is larger, infinite or no number stays what it is.
    small = _node.apply("lt", _node.apply("abs", value), _WHOLE_FROM)
    node = _node.apply("where", small, whole, value)
    return DataNode(node, layout=x.layout, sizes=x.sizes, dtype=value.dtype, device=x.device)


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

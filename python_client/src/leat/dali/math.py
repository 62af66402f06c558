# SPDX-License-Identifier: Apache-2.0
"""The functions of `nvidia.dali.math` that Leat's workers compute."""

from __future__ import annotations

from typing import Any, NoReturn

from leat.dali import _node, _refused
from leat.dali._node import DataNode
from leat.errors import InvalidArgument


def abs(input: Any) -> DataNode:
    """Returns the absolute value."""
    return _node.node_of(input).like("abs")


def fabs(input: Any) -> DataNode:
    """Returns the absolute value; whole numbers become float."""
    x = _node.node_of(input)
    return (x if x.dtype == "float16" else _node.cast(x, "float32")).like("abs")


def floor(input: Any) -> DataNode:
    """Returns the greatest whole number that is not above the value, as float."""
    return _whole("floor", input)


def ceil(input: Any) -> DataNode:
    """Returns the least whole number that is not below the value, as float."""
    return _whole("ceil", input)


# From this value on all float32 values are whole numbers.
_WHOLE_FROM = 2.0**23


def _whole(name: str, input: Any) -> DataNode:
    """Rounds to the nearest whole number, and corrects it by one where it is on the wrong side."""
    x = _node.node_of(input)
    if x.dtype == "bool":
        raise InvalidArgument(
            f"Input to arithmetic operator `{name}` cannot be a boolean. Consider using bitwise operator."
        )
    value = x if x.dtype == "float16" else _node.cast(x, "float32")
    nearest = _node.apply("cast", _node.apply("cast", value, dtype="int64"), dtype=value.dtype)
    wrong = _node.apply("cast", _node.apply("gt" if name == "floor" else "lt", nearest, value), dtype=value.dtype)
    whole = _node.apply("sub" if name == "floor" else "add", nearest, wrong)
    # Larger values, infinities and NaN stay unchanged.
    small = _node.apply("lt", _node.apply("abs", value), _WHOLE_FROM)
    node = _node.apply("where", small, whole, value)
    return DataNode(node, layout=x.layout, sizes=x.sizes, dtype=value.dtype, device=x.device)


def min(left: Any, right: Any) -> DataNode:
    """Returns the lesser, element by element."""
    return _node.binary("min", left, right)


def max(left: Any, right: Any) -> DataNode:
    """Returns the greater, element by element."""
    return _node.binary("max", left, right)


def pow(base: Any, exponent: Any) -> DataNode:
    """Returns base ** exponent, for whole exponents from 1 to 16."""
    return _node.node_of(base) ** exponent


def clamp(value: Any, lo: Any, hi: Any) -> DataNode:
    """Returns the value limited to lo … hi."""
    return min(max(value, lo), hi)


def __getattr__(name: str) -> NoReturn:
    if f"math.{name}" in _refused.NAMES:
        raise _refused.unimplemented(f"math.{name}")
    raise AttributeError(f"leat.dali.math has no {name!r}")

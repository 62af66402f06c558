# SPDX-License-Identifier: Apache-2.0
"""Operators on values, whatever they mean: types, mappings, and the order in a batch."""

from __future__ import annotations

import math
from typing import Any

from leat.dali import _args, _axes, _node, _refused, types
from leat.dali._node import DataNode
from leat.dali._operator import operator
from leat.errors import InvalidArgument


@operator("cast")
def cast(input: DataNode, *, dtype: Any) -> DataNode:
    """Converts to another type; for integers, values are rounded and saturated. Operators do not compute with int8,
    int16, uint16 and uint32."""
    return _node.cast(input, types.name_of("fn.cast: dtype", dtype, types.computed_by("fn.cast")))


@operator("cast_like")
def cast_like(input_0: DataNode, input_1: DataNode) -> DataNode:
    """Converts the first to the type of the second."""
    if input_1.dtype is None:
        raise InvalidArgument(f"fn.cast_like: the type of {input_1!r} is not known when the pipeline is defined")
    return _node.cast(input_0, input_1.dtype)


@operator("copy")
def copy(input: DataNode) -> DataNode:
    """Returns the input."""
    return input


@operator("permute_batch")
def permute_batch(input: DataNode, *, indices: Any) -> DataNode:
    """Refused: workers do not see the batch."""
    raise _refused.unimplemented("fn.permute_batch")


def _away_from_zero(value: Any) -> float:
    """Rounds to the nearest whole number; halves away from zero."""
    return math.copysign(math.floor(abs(float(value)) + 0.5), value)


@operator("lookup_table")
def lookup_table(
    input: DataNode, *, default_value: float = 0.0, dtype: Any = types.FLOAT, keys: Any = (), values: Any = ()
) -> DataNode:
    """Returns values[i] where x is keys[i]."""
    where = "fn.lookup_table"
    name = types.name_of(f"{where}: dtype", dtype)
    names, results = _args.numbers(f"{where}: keys", keys), _args.numbers(f"{where}: values", values)
    if len(names) != len(results):
        raise InvalidArgument(f"{where}: {len(names)} keys and {len(results)} values; expected as many")
    if not name.startswith("float"):
        *results, default_value = (_away_from_zero(each) for each in (*results, default_value))
    node = _node.apply(
        "lookup_table", input, keys=names, values=results, default_value=float(default_value), dtype=name
    )
    return DataNode(node, layout=input.layout, sizes=input.sizes, dtype=name)


@operator("one_hot", more={"axis": -1})
def one_hot(
    input: DataNode,
    *,
    axis_name: str | None = None,
    dtype: Any = types.FLOAT,
    num_classes: int = 0,
    off_value: float = 0.0,
    on_value: float = 1.0,
    **given: Any,
) -> DataNode:
    """Returns classes as one-hot vectors; a sample of one element is a scalar, unless axis is given, even as -1."""
    where = "fn.one_hot"
    name = types.name_of(f"{where}: dtype", dtype)
    if axis_name is not None and len(axis_name) != 1:
        raise InvalidArgument(
            f"{where}: axis_name = {axis_name!r}; Unsupported axis_name value: it must be a single character"
        )
    made = {"num_classes": num_classes, "on_value": float(on_value), "off_value": float(off_value), "dtype": name}
    if "axis" in given:
        return _one_hot_along(where, input, given["axis"], axis_name, made)
    known = input.sizes
    one = known is not None and all(each == 1 for each in known)
    if axis_name and (known is None or None in known) and all(each in (1, None) for each in known or ()):
        raise InvalidArgument(
            f"{where}: axis_name = {axis_name!r} of a value whose sizes are not known when the pipeline is defined: a "
            "sample of one element loses its axes; expected axis, or a value of known sizes (fn.reshape)"
        )
    sizes = (num_classes,) if one else None if known is None else (*known, num_classes)
    layout = (axis_name or "") if one else _with_name(where, input, len(known or ()), len(known or ()), axis_name)
    return DataNode(_node.apply("one_hot", input, **made), sizes=sizes, dtype=name, layout=layout)


def _one_hot_along(where: str, x: DataNode, axis: int, axis_name: str | None, made: dict[str, Any]) -> DataNode:
    """Returns the vectors along an axis of the result, -1: the last; a sample of one element keeps its axes."""
    known = _axes.sizes_of(x)
    if known is None or not -1 <= axis <= len(known):
        axes = "that is not known" if known is None else f"with {len(known) + 1} axes"
        raise InvalidArgument(f"{where}: axis = {axis} of a result {axes}; expected -1, the last, or one of them")
    rank, classes = len(known), made["num_classes"]
    place = rank if axis == -1 else axis
    if all(each == 1 for each in known):
        node = _node.apply("reshape", _node.apply("one_hot", x, **made), shape=[1] * rank + [classes])
    elif all(each in (1, None) for each in known):
        # For a single element the library makes a vector, so a second one keeps the axes, and is cut off.
        two = _node.apply("pad", _axes.regrouped(x, [*range(rank), -1]), axes=[rank], shape=[2])
        hot = _node.apply("slice", _node.apply("one_hot", two, **made), axes=(rank,), start=(0,), shape=(1,))
        node = _axes.regrouped(DataNode(hot, sizes=(*known, 1, classes)), [*range(rank), rank + 1]).node
    else:
        node = _node.apply("one_hot", x, **made)
    order, sizes = list(range(rank)), list(known)
    order.insert(place, rank)
    sizes.insert(place, classes)
    if place != rank:
        node = _node.apply("transpose", node, perm=order)
    return DataNode(node, sizes=sizes, dtype=made["dtype"], layout=_with_name(where, x, rank, place, axis_name))


def _with_name(where: str, x: DataNode, rank: int, axis: int, name: str | None) -> str:
    """Returns the layout of so many axes with a further one; empty without a name for it."""
    if name is None:
        return ""
    if len(x.layout) != rank:
        raise InvalidArgument(
            f"{where}: axis_name = {name!r} of a value without a layout (Input layout mismatch); expected one "
            "that has one"
        )
    return x.layout[:axis] + name + x.layout[axis:]

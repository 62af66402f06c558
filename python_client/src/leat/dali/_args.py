# SPDX-License-Identifier: Apache-2.0
"""Arguments of DALI's operators, as numbers or nodes that Leat's workers take."""

from __future__ import annotations

from typing import Any

import numpy as np

from leat.dali import _node
from leat.dali._node import ConsumerOperation, DataNode
from leat.errors import InvalidArgument


def scalar(where: str, value: Any, kind: str) -> Any:
    """Returns an argument that may vary from sample to sample, as Leat's operators take it.

    Args:
        where: operator and argument, for messages.
        value: a number, a list of one number, or a node; None stays None.
        kind: "bool" or "float".
    """
    if value is None:
        return None
    if isinstance(value, DataNode):
        if value.ndim and value.sizes is not None and all(size == 1 for size in value.sizes):
            value = DataNode(_node.apply("reshape", value, shape=()), sizes=(), dtype=value.dtype)
        elif value.ndim:
            raise InvalidArgument(f"{where} is a node of {value.ndim} axes; expected one number a sample")
        if kind == "bool":
            if value.dtype == "bool":
                return value.node
            return value.flag if value.flag is not None else _node.apply("ne", value, 0)
        return _node.cast(value, "float32").node
    if isinstance(value, (list, tuple, np.ndarray)) and np.size(value) == 1:
        value = np.ravel(value)[0]
    if not isinstance(value, (bool, int, float, np.number, np.bool_)):
        raise InvalidArgument(f"{where} = {value!r:.80}; expected a number, or a node with one for each sample")
    # DALI's numbers are float32: 0.9 times 275 pixels is less than 247.5.
    return bool(value) if kind == "bool" else float(np.float32(value))


def numbers(where: str, value: Any) -> list[Any]:
    """Returns a list of constants from one number, a list, a tuple or an array."""
    if isinstance(value, DataNode):
        raise InvalidArgument(f"{where} is a node; Leat's workers take constants there, the same for every sample")
    if any(isinstance(each, DataNode) for each in value) if isinstance(value, (list, tuple)) else False:
        raise InvalidArgument(f"{where} has a node in it; Leat's workers take constants there")
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(f"{where} = {value!r:.80}; expected numbers")
    return array.ravel().tolist()


def number(where: str, value: Any) -> Any:
    """Returns the one number that `value` holds; raises InvalidArgument if it holds more."""
    found = numbers(where, value)
    if len(found) != 1:
        raise InvalidArgument(f"{where} = {value!r:.80}; expected a number")
    return found[0]


def constant_values(where: str, value: DataNode) -> list[Any]:
    """Returns the numbers of a constant's node; raises InvalidArgument if it varies."""
    operation = value.node._operation
    if operation.op != "constant":
        raise InvalidArgument(f"{where} is {value!r}; Leat's workers take constants there, the same for every sample")
    return list(operation.args["values"])


def need_type(x: DataNode, where: str, right: frozenset[str]) -> None:
    """Makes the source refuse batches of `x` whose type would give `where` other values than DALI's.

    Args:
        x: a node whose type is not known when the pipeline is defined.
        where: the operator, for messages.
        right: the names of NumPy's types with which its values are right.
    """
    pending, seen = [x.node], set()
    while pending:
        node = pending.pop()
        operation = node._operation
        if isinstance(operation, ConsumerOperation):
            known = operation.source is not None and operation.source.has_type(node._output)
            if not known:
                operation.exact[node._output] = (where, operation.exact.get(node._output, (where, right))[1] & right)
        elif operation.number not in seen:
            seen.add(operation.number)
            pending += operation.inputs


def element(value: DataNode, i: int) -> DataNode:
    """Returns element `i` of a node with several elements."""
    part = _node.apply("slice", value, axes=(0,), start=(i,), shape=(1,))
    return DataNode(_node.apply("reshape", part, shape=()), sizes=(), dtype=value.dtype)

# SPDX-License-Identifier: Apache-2.0
"""The arguments that the three automatic augmentations share."""

from __future__ import annotations

from typing import Any

from leat.dali import _args, _current, _node, types
from leat.dali._node import DataNode
from leat.errors import InvalidArgument


def automatic(
    op: str,
    data: DataNode,
    share: float,
    shape: Any,
    fill_value: Any,
    interp_type: Any,
    max_translate_abs: Any,
    max_translate_rel: Any,
    seed: Any,
    **args: Any,
) -> DataNode:
    """Applies the operator of `leat.fn` with DALI's arguments; `share`: max_translate_rel if only `shape` is given."""
    if shape is not None:
        _check_shape(op, data, shape)
    if shape is not None and max_translate_abs is None and max_translate_rel is None:
        max_translate_rel = share
    return augmented(op, op, data, fill_value, interp_type, max_translate_abs, max_translate_rel, seed, **args)


def _check_shape(where: str, data: Any, shape: Any) -> None:
    """Raises InvalidArgument if a constant `shape` is not that of the images: workers take fractions of the latter."""
    sizes = data.sizes if isinstance(data, DataNode) else None
    if isinstance(shape, DataNode):
        node = shape.node
        while node.op == "cast":
            node = node._operation.inputs[0]
        given = node._operation.args["values"] if node.op == "constant" else []
    else:
        given = [] if _node.holds_nodes(shape) else _args.numbers(f"{where}: shape", shape)
    known = zip(("height", "width"), given, sizes or ())
    wrong = [f"{name} {size}" for name, number, size in known if size is not None and number != size]
    if wrong:
        raise InvalidArgument(
            f"{where}: shape = {shape!r:.60}, and its input has {' and '.join(wrong)}; expected the input's shape: "
            "workers move images by fractions of their own sizes"
        )


def augmented(
    where: str,
    op: str,
    data: DataNode,
    fill_value: Any,
    interp_type: Any,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
    seed: Any = None,
    **args: Any,
) -> DataNode:
    """Applies the operator of `leat.fn` to images."""
    if not isinstance(data, DataNode):
        raise InvalidArgument(f"{where}: its input is {type(data).__name__} {data!r:.60}; expected a node")
    if data.layout not in ("", "HWC") or data.dtype not in (None, "uint8"):
        raise InvalidArgument(f"{where}: its input is {data!r}; expected uint8 images, HWC")
    if max_translate_abs is not None and max_translate_rel is not None:
        raise InvalidArgument(f"{where}: max_translate_abs and max_translate_rel are given; expected one of them")
    if seed is not None and seed != -1:
        _current.add_seed(int(seed))
    for name, value in (("max_translate_abs", max_translate_abs), ("max_translate_rel", max_translate_rel)):
        if value is not None:
            args[name] = _args.numbers(f"{where}: {name}", value)
    if interp_type is not None:
        args["interpolation"] = types.filter_of(f"{where}: interp_type", interp_type)
    if fill_value is None:
        args["border"] = "edge"
    else:
        args["fill_value"] = float(_args.number(f"{where}: fill_value", fill_value))
    if _node.has_argument(op, "rule"):
        args["rule"] = "dali"
    return data.like(op, **args)

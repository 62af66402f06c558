# SPDX-License-Identifier: Apache-2.0
"""node[…] and node.shape(), built from the operators that Leat has."""

from __future__ import annotations

from typing import Any

from leat.dali import _args, _axes, _node, types
from leat.dali._node import DataNode
from leat.errors import InvalidArgument


def shape_of(x: DataNode, dtype: Any) -> DataNode:
    """Returns a vector of the sizes of each sample's axes."""
    if x.encoded:
        raise InvalidArgument(f"shape() of {x!r}: of image files, fn.peek_image_shape gives it")
    sizes = _axes.sizes_of(x)
    if sizes is None:
        raise InvalidArgument(f"shape() of {x!r}: its number of axes is not known when the pipeline is defined")
    name = "int64" if dtype is None else types.name_of("shape: dtype", dtype)
    rank = len(sizes)
    if x.sizes is not None and None not in x.sizes:
        return _node.cast(_node.constant(list(x.sizes)), name)
    total: DataNode | None = None
    for axis in range(rank):
        length = _length(x, axis)
        part = length if rank == 1 else length * [int(axis == i) for i in range(rank)]
        total = part if total is None else total + part
    assert total is not None
    result = DataNode(_node.apply("reshape", total, shape=(rank,)), sizes=(rank,), dtype="int32")
    return _node.cast(result, name)


def _expanded(x: DataNode, key: Any) -> list[Any]:
    """Returns one entry for each axis that is named, without an ellipsis."""
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, each in enumerate(parts) if each is Ellipsis]
    if len(dots) > 1:
        raise IndexError(f"{x!r} is indexed with several '...'; expected one")
    if dots:
        if x.ndim is None:
            raise InvalidArgument(f"{x!r} is indexed with '...', and its number of axes is not known")
        at = dots[0]
        parts[at : at + 1] = [slice(None)] * (x.ndim - len(parts) + 1)
    if x.ndim is not None and len(parts) > x.ndim:
        raise IndexError(f"{x!r} has {x.ndim} axes and is indexed with {len(parts)}")
    return parts


def _length(x: DataNode, axis: int) -> DataNode:
    """Returns the size of an axis of each sample."""
    return DataNode(_node.apply("length", x, axis=axis), sizes=(), dtype="int32")


def _from_end(x: DataNode, axis: int, place: int) -> Any:
    """Returns the index that a negative number stands for, on an axis whose size may differ between samples."""
    return _args.scalar("an index", _length(x, axis) + place, "float")


def _one(x: DataNode, axis: int, part: Any) -> tuple[DataNode, bool]:
    """Returns the indexed part of an axis, and True if the axis is dropped."""
    size = x.sizes[axis] if x.sizes is not None else None
    if isinstance(part, slice):
        if part.step not in (None, 1):
            raise InvalidArgument(f"{x!r} is indexed with step {part.step}; expected 1")
        if part.start is None and part.stop is None:
            return x, False
        return _range(x, axis, part, size), False
    if isinstance(part, DataNode):
        if part.dtype is not None and not part.dtype.startswith(("int", "uint")):
            raise InvalidArgument(f"{x!r} is indexed with {part!r} of {part.dtype}; expected whole numbers")
        start = _args.scalar("an index", part, "float")
        node = _node.apply("slice", x, axes=(axis,), shape=(1,), start=(0,), offset_0=start)
    elif isinstance(part, bool) or not hasattr(part, "__index__"):
        raise TypeError(f"{x!r} is indexed with {part!r:.60}; expected whole numbers, slices, '...' or nodes")
    else:
        place = part.__index__()
        if size is not None and not -size <= place < size:
            raise IndexError(f"index {place} of an axis of {size}")
        if place < 0 and size is None:
            node = _node.apply("slice", x, axes=(axis,), start=(0,), shape=(1,), offset_0=_from_end(x, axis, place))
        else:
            node = _node.apply("slice", x, axes=(axis,), start=(place % size if size else place,), shape=(1,))
    sizes = None if x.sizes is None else [1 if i == axis else each for i, each in enumerate(x.sizes)]
    return DataNode(node, layout=x.layout, sizes=sizes, dtype=x.dtype, device=x.device), True


def _range(x: DataNode, axis: int, part: slice, size: int | None) -> DataNode:
    for bound in (part.start, part.stop):
        if isinstance(bound, DataNode):
            raise InvalidArgument(f"{x!r} is indexed with a range of nodes; fn.slice takes them")
    if size is None and part.stop is None and part.start < 0:
        node = _node.apply("slice", x, axes=(axis,), start=(0,), offset_0=_from_end(x, axis, part.start))
        return DataNode(node, layout=x.layout, sizes=x.sizes, dtype=x.dtype, device=x.device)
    if size is None and any(bound is not None and bound < 0 for bound in (part.start, part.stop)):
        raise InvalidArgument(f"{x!r} is indexed from the end, and the size of axis {axis} is not known")
    low, high, _ = part.indices(size) if size is not None else (part.start or 0, part.stop, 1)
    args: dict[str, Any] = {"start": (low,)}
    if high is not None:
        if high <= low:
            raise IndexError(f"the range {part.start}:{part.stop} is empty")
        args["shape"] = (high - low,)
    node = _node.apply("slice", x, axes=(axis,), **args)
    length = None if high is None else high - low
    sizes = None if x.sizes is None else [length if i == axis else each for i, each in enumerate(x.sizes)]
    return DataNode(node, layout=x.layout, sizes=sizes, dtype=x.dtype, device=x.device)


class NewAxis:
    """The type of `leat.dali.newaxis`: among indices, an axis of size 1; called with a letter, an axis of that name."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __call__(self, name: str = "") -> NewAxis:
        return NewAxis(name)


def subscript(x: DataNode, key: Any) -> DataNode:
    """Implements node[key]."""
    given = list(key) if isinstance(key, tuple) else [key]
    dots = any(each is Ellipsis for each in given)
    if x.sizes is None:
        x = DataNode(x.node, layout=x.layout, sizes=_axes.sizes_of(x), dtype=x.dtype, device=x.device)
    if dots and any(isinstance(each, NewAxis) for each in given):
        raise InvalidArgument(f"{x!r} is indexed with '...' and newaxis; expected one of them")
    parts = _expanded(x, tuple(each for each in given if not isinstance(each, NewAxis)))
    left: list[int] = []
    names: list[str] = []
    reshaped = len(parts) < sum(each is not Ellipsis for each in given)
    axis = 0
    for part in parts if dots else given:
        if isinstance(part, NewAxis):
            left.append(-1)
            names.append(part.name)
            continue
        x, vanishes = _one(x, axis, part)
        if not vanishes:
            left.append(axis)
            names.append(x.layout[axis] if axis < len(x.layout) else "")
        reshaped = reshaped or vanishes
        axis += 1
    if not reshaped:
        return x
    if x.sizes is None:
        raise InvalidArgument(f"an index changes the axes of {x!r}, and their number is not known; use fn.slice")
    left += range(axis, len(x.sizes))
    names += x.layout[axis:]
    return _axes.regrouped(x, left, "".join(names) if all(names) and len(names) == len(left) else "")


_node.subscript, _node.shape_of = subscript, shape_of

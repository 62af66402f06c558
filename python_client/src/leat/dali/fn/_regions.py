# SPDX-License-Identifier: Apache-2.0
"""Regions, as arguments of slice, decoders.image_slice and readers.numpy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from leat.dali import _args, _axes, _node
from leat.dali._node import ConsumerOperation, DataNode
from leat.errors import InvalidArgument


@dataclasses.dataclass
class Region:
    """The region that is kept of some axes; a value is a number, or a node with one for each sample.

    Attributes:
        start: the first element; empty: 0.
        extent: sizes, or the index after the last element; empty: to the end.
        is_end: True if extent is that index.
        rel_start, rel_extent: they are fractions of the axis.
    """

    axes: list[int]
    start: list[Any]
    extent: list[Any]
    is_end: bool
    rel_start: bool
    rel_extent: bool


# The default of `axes`. A script's own `axes` replaces it, and replaces the default of `axis_names` too.
ROWS_LAST = (1, 0)
_PARTS = ("start", "end", "shape", "rel_start", "rel_end", "rel_shape")
# DALI's arguments of a region of a plane, and their defaults.
SLICE: dict[str, Any] = {
    "axes": ROWS_LAST,
    "axis_names": "WH",
    "normalized_anchor": True,
    "normalized_shape": True,
    **dict.fromkeys(_PARTS),
}
_FLOATS = frozenset(("float16", "float32", "float64"))
_POLICIES = {"error": "error", "pad": "pad", "trim_to_shape": "trim"}


def policy_of(where: str, policy: Any) -> str:
    """Returns Leat's name of a policy for elements outside the value."""
    if not isinstance(policy, str) or policy not in _POLICIES:
        raise InvalidArgument(f'{where}: out_of_bounds_policy = {policy!r}; expected "error", "pad" or "trim_to_shape"')
    return _POLICIES[policy]


def plane_of(where: str, x: DataNode, axes: Any, axis_names: Any, default: str) -> list[int]:
    """Returns the axes of an operator whose default is a plane by name; if the input's axes have no names, uses `axes`.

    Args:
        default: the default of `axis_names`.
    """
    if axis_names == default and (axes is not ROWS_LAST or not x.layout):
        return axes_of(where, x, axes, None)
    return axes_of(where, x, None if axes is ROWS_LAST else axes, axis_names)


def axes_of(where: str, x: DataNode, axes: Any, axis_names: Any) -> list[int]:
    """Returns the axes: by name if names are given, else by number."""
    if axis_names:
        if axes is not None:
            raise InvalidArgument(
                f"{where}: axes = {axes!r:.60} and axis_names = {axis_names!r:.60}; expected one of them"
            )
        if isinstance(axis_names, DataNode) or not x.layout:
            raise InvalidArgument(
                f"{where}: axis_names = {axis_names!r:.60} of {x!r}, whose axes have no names when the pipeline is "
                "defined; expected axes, or a layout of its source"
            )
        missing = [name for name in axis_names if name not in x.layout]
        if missing:
            raise InvalidArgument(f"{where}: axis_names = {axis_names!r}; the input has the layout {x.layout!r}")
        return [x.layout.index(name) for name in axis_names]
    result = [int(each) for each in _args.numbers(f"{where}: axes", () if axes is None else axes)]
    if any(each < 0 for each in result):
        if x.ndim is None:
            raise InvalidArgument(f"{where}: axes = {axes!r} of a value whose number of axes is not known here")
        result = [each + x.ndim if each < 0 else each for each in result]
    return result


def _values(where: str, value: Any, count: int) -> list[Any]:
    if isinstance(value, DataNode):
        if value.node._operation.op == "constant":
            values = _args.constant_values(where, value)
        elif value.sizes is not None and len(value.sizes) == 1 and value.sizes[0] not in (None, 1, count):
            raise InvalidArgument(f"{where} has {value.sizes[0]} numbers; expected {count}, one for each axis")
        elif value.ndim == 0 or count == 1 and value.ndim is None:
            values = [value]
        else:
            values = [_args.element(value, i) for i in range(count)]
    elif isinstance(value, (list, tuple)):
        values = list(value)
    else:
        values = np.ravel(value).tolist()
    if len(values) == 1 and count > 1:
        values = values * count
    if len(values) != count:
        raise InvalidArgument(f"{where} has {len(values)} numbers; expected {count}, one for each axis")
    return values


def _is_whole(where: str, value: DataNode) -> bool:
    """True if the numbers are whole. A source without dtype is asked for its first batch, or has to give floats."""
    name = _axes.type_of(value)
    if name is None and isinstance(value.node._operation, ConsumerOperation):
        _args.need_type(value, where, _FLOATS)
    return name is not None and not name.startswith("float")


def slice_arguments(
    where: str,
    x: DataNode,
    anchor: DataNode | None,
    shape_input: DataNode | None,
    named: dict[str, Any],
) -> Region:
    """Returns the region that DALI's positional inputs or those of its arguments SLICE describe that are given."""
    named = {**SLICE, **named}
    chosen = plane_of(where, x, named["axes"], named["axis_names"], SLICE["axis_names"])
    given = [name for name in _PARTS if named[name] is not None]
    if (anchor is None) != (shape_input is None):
        raise InvalidArgument(f"{where}: an anchor is given without a shape; expected both inputs or neither")
    if anchor is not None and given:
        raise InvalidArgument(f"{where}: the anchor is an input and {given[0]} is given; expected one way of the two")
    if anchor is not None and shape_input is not None:
        count = len(chosen)
        return Region(
            chosen,
            _values(f"{where}: the anchor", anchor, count),
            _values(f"{where}: the shape", shape_input, count),
            False,
            bool(named["normalized_anchor"]) and not _is_whole(f"{where}: the anchor", anchor),
            bool(named["normalized_shape"]) and not _is_whole(f"{where}: the shape", shape_input),
        )
    if not given:
        raise InvalidArgument(f"{where}: nothing says what is kept; expected start, end, shape or their rel_ forms")
    return _named(where, chosen, named)


def _one_of(where: str, named: dict[str, Any], names: Sequence[str]) -> str | None:
    found = [name for name in names if named.get(name) is not None]
    if len(found) > 1:
        raise InvalidArgument(f"{where}: {' and '.join(found)} are given; expected one of {', '.join(names)}")
    return found[0] if found else None


def _named(where: str, axes: list[int], named: dict[str, Any]) -> Region:
    start = _one_of(where, named, ("start", "rel_start"))
    extent = _one_of(where, named, ("shape", "end", "rel_shape", "rel_end"))
    count = len(axes)

    def values(name: str | None) -> list[Any]:
        if name is None:
            return []
        found = _values(f"{where}: {name}", named[name], count)
        # Indices in elements are whole numbers; DALI drops a fraction.
        if name.startswith("rel_"):
            return found
        return [each if isinstance(each, DataNode) else int(each) for each in found]

    return Region(
        axes,
        values(start),
        values(extent),
        extent in ("end", "rel_end"),
        start == "rel_start",
        extent in ("rel_shape", "rel_end"),
    )


def region(where: str, x: DataNode, axes: Any, named: dict[str, Any], policy: str, fill: Sequence[float]) -> DataNode:
    """Returns the region that named arguments give; on all axes in their order if none are named."""
    count = max(len(np.ravel(each)) for each in named.values() if each is not None)
    chosen = axes_of(where, x, axes, None) if axes else list(range(count))
    return sliced(where, x, _named(where, chosen, named), policy_of(where, policy), fill)


def sliced(where: str, x: DataNode, part: Region, policy: str, fill: Sequence[float]) -> DataNode:
    """Returns the part of a value."""
    sizes = list(x.sizes) if x.sizes is not None else None
    if sizes is not None:
        for i, axis in enumerate(part.axes):
            whole = not part.rel_extent and part.extent and not isinstance(part.extent[i], DataNode)
            known = whole and not part.is_end and policy != "trim"
            sizes[axis] = rounded([part.extent[i]])[0] if known else None
    if any(isinstance(each, DataNode) for each in [*part.start, *part.extent]):
        node = _varying(where, x, part, policy, fill)
    else:
        node = _constant(x, part, policy, fill)
    return DataNode(node, layout=x.layout, sizes=sizes, dtype=x.dtype, device=x.device)


def rounded(values: list[Any]) -> list[int]:
    """Returns whole numbers; halves are rounded up."""
    return [int(np.floor(each + 0.5)) for each in values]


def _constant(x: DataNode, part: Region, policy: str, fill: Sequence[float]) -> Any:
    kind = "end" if part.is_end else "shape"
    args: dict[str, Any] = {}
    if part.start:
        args["rel_start" if part.rel_start else "start"] = part.start if part.rel_start else rounded(part.start)
    if part.extent:
        args[f"rel_{kind}" if part.rel_extent else kind] = part.extent if part.rel_extent else rounded(part.extent)
    return _node.apply("slice", x, axes=part.axes, out_of_bounds_policy=policy, fill_values=list(fill), **args)


def _varying(where: str, x: DataNode, part: Region, policy: str, fill: Sequence[float]) -> Any:
    """Applies a position or size that varies: a window of an image, or an offset of a part of constant size."""
    constant_size = part.extent and not part.is_end and not any(isinstance(each, DataNode) for each in part.extent)
    if constant_size and not part.rel_start and not part.rel_extent and len(part.axes) <= 2:
        offsets = {f"offset_{i}": _args.scalar(f"{where}: start", each, "float") for i, each in enumerate(part.start)}
        return _node.apply(
            "slice",
            x,
            axes=part.axes,
            shape=rounded(part.extent),
            out_of_bounds_policy=policy,
            fill_values=list(fill),
            **offsets,
        )
    if x.layout != "HWC" or not set(part.axes) <= {0, 1} or policy != "error":
        raise InvalidArgument(
            f"{where}: a region that varies from sample to sample is of height and width of an HWC image, with "
            "out_of_bounds_policy 'error'; or its sizes are constant and its start is in elements"
        )
    rel = part.rel_start if part.start else part.rel_extent
    place: dict[int, Any] = dict(zip(part.axes, part.start or [0.0] * len(part.axes)))
    extent: dict[int, Any] = dict(zip(part.axes, part.extent))
    if part.is_end or not extent:
        if rel != part.rel_extent and extent:
            raise InvalidArgument(f"{where}: start and end are of two kinds; expected both relative, or neither")
        if not extent and not rel:
            raise InvalidArgument(f"{where}: an end must be given where the start is in elements")
        extent = {axis: (extent[axis] if extent else 1.0) - place[axis] for axis in part.axes}
    rel_extent = rel if part.is_end or not part.extent else part.rel_extent
    if len(part.axes) < 2:
        if not (rel and rel_extent):
            raise InvalidArgument(f"{where}: of one axis only, a region that varies has to be relative")
        other = 1 - part.axes[0]
        place[other], extent[other] = 0.0, 1.0
    as_float = {
        name: _args.scalar(f"{where}: {name}", each, "float")
        for name, each in (("y", place[0]), ("x", place[1]), ("height", extent[0]), ("width", extent[1]))
    }
    return _node.apply("window", x, normalized_anchor=rel, normalized_shape=rel_extent, **as_float)

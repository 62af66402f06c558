# SPDX-License-Identifier: Apache-2.0
"""Operators on axes: reshape, transpose, pad, stack, and constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leat.dali import _args, _axes, _node, types
from leat.dali._node import DataNode
from leat.dali._operator import operator
from leat.dali.fn.geometry import axes_of
from leat.errors import InvalidArgument, Unimplemented

__all__ = [
    "cat", "expand_dims", "joined", "pad", "reinterpret", "reshape", "reshaped", "shapes", "squeeze", "stack",
    "transpose",
]  # fmt: skip


def _whole_numbers(where: str, value: Any) -> list[int]:
    numbers = _args.constant_values(where, value) if isinstance(value, DataNode) else _args.numbers(where, value)
    if any(each != int(each) for each in numbers):
        raise InvalidArgument(f"{where} = {value!r:.80}; expected whole numbers")
    return [int(each) for each in numbers]


def _sizes(where: str, x: DataNode) -> tuple[int | None, ...]:
    found = _axes.sizes_of(x)
    if found is None:
        raise InvalidArgument(
            f"{where}: the number of axes of {x!r} is not known when the pipeline is defined; give shape, or ndim or "
            "layout of fn.external_source"
        )
    return found


def _target(where: str, x: DataNode, shape: Any, rel_shape: Any, src_dims: Any) -> tuple[list[int], list[int] | None]:
    """Returns sizes, one of them possibly -1; and for each the axis of the input that gives the size instead, or -1."""
    if shape is not None and rel_shape is not None:
        raise InvalidArgument(f"{where}: shape and rel_shape are given; expected one of them")
    if shape is not None:
        sizes = _whole_numbers(f"{where}: shape", shape)
        if src_dims is None:
            return sizes, None
    found = _sizes(where, x)
    order = list(range(len(found))) if src_dims is None else _whole_numbers(f"{where}: src_dims", src_dims)
    for axis in order:
        if not -1 <= axis < len(found):
            raise InvalidArgument(
                f"{where}: the src_dims argument contains {axis}; expected -1, or an axis of {len(found)}"
            )
    if shape is not None:
        factors: list[Any] = [1 if size <= 0 else None for size in sizes]
    elif rel_shape is None:
        sizes, factors = [-1] * len(order), [1] * len(order)
    else:
        factors = _args.numbers(f"{where}: rel_shape", rel_shape)
        if len(factors) > len(order):
            raise InvalidArgument(f"{where}: rel_shape has {len(factors)} numbers for {len(order)} axes")
        sizes = [-1] * len(factors)
    kept = [-1] * len(sizes)
    for i, (factor, axis) in enumerate(zip(factors, order)):
        size = 1 if axis < 0 else found[axis]
        if factor is None or factor < 0:
            continue
        if size is None and factor != 1:
            raise InvalidArgument(f"{where}: the size of axis {axis} is not known when the pipeline is defined")
        sizes[i] = -1 if size is None else round(size * factor)
        kept[i] = axis if size is None else -1
    return sizes, kept if sum(axis >= 0 for axis in kept) > 0 else None


def reshaped(x: DataNode, sizes: Sequence[int], layout: str | None = "", axes: Sequence[int] | None = None) -> DataNode:
    """Returns the same elements in other axes; one size may be -1, besides those that are sizes of the value's axes."""
    known: list[int | None] = [None if each < 0 else each for each in sizes]
    if x.sizes is not None and None not in x.sizes and known.count(None) == 1:
        rest = math.prod(each for each in known if each is not None)
        if rest:
            known[known.index(None)] = math.prod(each for each in x.sizes if each is not None) // rest
    node = _node.apply("reshape", x, shape=list(sizes), axes=None if axes is None else list(axes))
    return DataNode(node, layout=layout, sizes=known, dtype=x.dtype, device=x.device)


def _check_layout(where: str, layout: Any, sizes: Sequence[int | None] | None) -> None:
    """Raises InvalidArgument for a layout that does not name all axes; nothing is known if `sizes` is None."""
    if layout and sizes is not None and len(layout) != len(sizes):
        raise InvalidArgument(f"{where}: layout = {layout!r:.40} of {len(sizes)} axes; expected a letter for each")


@operator("reshape", optional_inputs=1)
def reshape(
    data: DataNode,
    shape_input: DataNode | None = None,
    *,
    layout: str | None = None,
    rel_shape: Any = None,
    shape: Any = None,
    src_dims: Any = None,
) -> DataNode:
    """Returns the same elements in other axes."""
    where = "fn.reshape"
    if shape_input is not None:
        if shape is not None:
            raise InvalidArgument(f"{where}: shape is given twice, as an input and as an argument")
        shape = shape_input
    if shape is None and rel_shape is None and src_dims is None:
        if layout is None:
            raise InvalidArgument(f"{where}: none of shape, rel_shape, src_dims and layout is given")
        _check_layout(where, layout, data.sizes)
        return DataNode(data.node, layout=layout, sizes=data.sizes, dtype=data.dtype, encoded=data.encoded)
    sizes, axes = _target(where, data, shape, rel_shape, src_dims)
    _check_layout(where, layout, sizes)
    if layout is None and len(sizes) == len(data.layout):
        layout = data.layout
    return reshaped(data, sizes, layout, axes)


@operator("reinterpret", optional_inputs=1)
def reinterpret(
    data: DataNode,
    shape_input: DataNode | None = None,
    *,
    dtype: Any = None,
    layout: str | None = None,
    rel_shape: Any = None,
    shape: Any = None,
    src_dims: Any = None,
) -> DataNode:
    """Same as reshape; the type must stay."""
    if dtype is not None and types.name_of("fn.reinterpret: dtype", dtype) != data.dtype:
        raise Unimplemented(f"fn.reinterpret: dtype = {dtype!r}; Leat does not read elements as another type")
    inputs = [data] if shape_input is None else [data, shape_input]
    return reshape(*inputs, layout=layout, rel_shape=rel_shape, shape=shape, src_dims=src_dims)


@operator("squeeze")
def squeeze(data: DataNode, *, axes: Any = None, axis_names: Any = None) -> DataNode:
    """Removes the given axes, whose size is 1."""
    where = "fn.squeeze"
    if axes is None and axis_names is None:
        raise InvalidArgument(f"{where}: Missing argument ``axes`` or ``axis_names``.")
    chosen = axes_of(where, data, axes, axis_names)
    if len(set(chosen)) < len(chosen):
        raise InvalidArgument(f"{where}: axes = {chosen}; Specified at least twice same dimension to remove.")
    sizes = _sizes(where, data)
    for axis in chosen:
        if not 0 <= axis < len(sizes) or sizes[axis] not in (1, None):
            raise InvalidArgument(f"{where}: axis {axis} of a value of shape {sizes}; expected size 1")
    layout = "".join(name for i, name in enumerate(data.layout) if i not in chosen)
    return _axes.regrouped(data, [axis for axis in range(len(sizes)) if axis not in chosen], layout)


@operator("expand_dims")
def expand_dims(data: DataNode, *, axes: Any, new_axis_names: str = "") -> DataNode:
    """Adds axes of size 1 at the given indices of the result."""
    where = "fn.expand_dims"
    chosen = _whole_numbers(f"{where}: axes", axes)
    if not chosen:
        return data
    if len(set(chosen)) < len(chosen):
        raise InvalidArgument(f"{where}: axes = {chosen}; Duplicate axis index found")
    kept, names = list(range(len(_sizes(where, data)))), list(data.layout)
    if new_axis_names and len(new_axis_names) != len(chosen):
        raise InvalidArgument(f"{where}: new_axis_names = {new_axis_names!r}; expected {len(chosen)} letters")
    if new_axis_names and len(names) != len(kept):
        raise InvalidArgument(
            f"{where}: new_axis_names = {new_axis_names!r} of a value whose layout is {data.layout!r}; Specifying "
            "``new_axis_names`` requires an input with a proper layout."
        )
    for axis, name in sorted(zip(chosen, new_axis_names or " " * len(chosen))):
        if not 0 <= axis <= len(kept):
            raise InvalidArgument(f"{where}: axis {axis} of a result of {len(kept) + 1} axes")
        kept.insert(axis, -1)
        names.insert(axis, name)
    return _axes.regrouped(data, kept, "".join(names) if new_axis_names else "")


@operator("transpose")
def transpose(
    input: DataNode, *, output_layout: str | None = None, perm: Any = None, transpose_layout: bool = True
) -> DataNode:
    """Reorders the axes; without `perm`, reverses them. `output_layout` names the result's axes and orders nothing."""
    where = "fn.transpose"
    if perm is not None:
        order = _whole_numbers(f"{where}: perm", perm)
    else:
        order = list(reversed(range(len(_sizes(where, input)))))
    if output_layout and len(output_layout) != len(order):
        raise InvalidArgument(
            f"{where}: output_layout = {output_layout!r} of {len(order)} axes; expected a letter for each"
        )
    layout = input.layout
    if transpose_layout and len(layout) == len(order):
        layout = "".join(layout[i] for i in order)
    sizes = None if input.sizes is None else [input.sizes[i] for i in order]
    return DataNode(
        _node.apply("transpose", input, perm=order), layout=output_layout or layout, sizes=sizes, dtype=input.dtype
    )


@operator("pad")
def pad(
    input: DataNode,
    *,
    align: Any = None,
    axes: Any = None,
    axis_names: Any = None,
    fill_value: Any = 0.0,
    shape: Any = None,
) -> DataNode:
    """Extends the value at the ends of its axes to at least `shape`, and to a multiple of `align`."""
    where = "fn.pad"
    chosen = axes_of(where, input, axes, axis_names)
    rank = input.ndim
    touched = chosen or (list(range(rank)) if rank is not None else [])
    least = [] if shape is None else [max(0, each) for each in _whole_numbers(f"{where}: shape", shape)]
    multiple = [] if align is None else _whole_numbers(f"{where}: align", align)
    if rank is None and not chosen and not (least and min(least) > 0):
        raise InvalidArgument(
            f"{where}: the number of axes of {input!r} is not known when the pipeline is defined, and workers do not "
            "see the whole batch; expected shape, the sizes that it gets"
        )
    if len(least) not in (0, len(touched)) and touched:
        raise InvalidArgument(f"{where}: shape has {len(least)} numbers for {len(touched)} axes")
    sizes = None if input.sizes is None else list(input.sizes)
    for i, axis in enumerate(touched):
        size = sizes[axis] if sizes is not None else None
        if size is None and not (least and least[i] > 0):
            raise InvalidArgument(
                f"{where}: axis {axis} differs from sample to sample, and workers do not see the whole batch; expected "
                "shape, the size that it gets"
            )
        if sizes is not None:
            whole = max(size or 0, least[i] if least else 0)
            step = multiple[i % len(multiple)] if multiple else 1
            sizes[axis] = -(-whole // max(1, step)) * max(1, step)
    node = _node.apply(
        "pad",
        input,
        fill_value=_args.number(f"{where}: fill_value", fill_value),
        axes=chosen or None,
        align=multiple or None,
        shape=least or None,
    )
    return DataNode(node, layout=input.layout, sizes=sizes, dtype=input.dtype)


def joined(where: str, parts: Sequence[DataNode], axis: int) -> DataNode:
    """Concatenates values of known sizes: each is placed at its offset among zeros, and these are added up."""
    first = parts[0]
    for each in parts:
        if each.sizes is None or first.sizes is None or len(each.sizes) != len(first.sizes) or each.sizes[axis] is None:
            raise InvalidArgument(f"{where}: the sizes of its inputs have to be known when the pipeline is defined")
        pairs = [pair for i, pair in enumerate(zip(first.sizes, each.sizes)) if i != axis and None not in pair]
        if any(a != b for a, b in pairs) or None not in (each.dtype, first.dtype) and each.dtype != first.dtype:
            raise InvalidArgument(
                f"{where}: inputs are {first.dtype} of shape {first.sizes} and {each.dtype} of {each.sizes}; expected "
                "one type, and the same sizes on all other axes"
            )
    lengths = [int(each.sizes[axis] or 0) for each in parts]  # type: ignore[index]
    total, before = sum(lengths), 0
    result: Any = None
    for each, length in zip(parts, lengths):
        part = _node.apply("slice", each, axes=(axis,), start=(-before,), shape=(total,), out_of_bounds_policy="pad")
        result = part if result is None else _node.apply("add", result, part)
        before += length
    assert first.sizes is not None
    sizes = [total if i == axis else each for i, each in enumerate(first.sizes)]
    dtypes = {each.dtype for each in parts}
    return DataNode(result, layout=first.layout, sizes=sizes, dtype=dtypes.pop() if len(dtypes) == 1 else None)


@operator("cat")
def cat(*inputs: DataNode, axis: int = 0, axis_name: str | None = None) -> DataNode:
    """Concatenates values along an axis."""
    number = _args.number("fn.cat: axis", axis)
    place = axes_of("fn.cat", inputs[0], None if axis_name else [number], axis_name)[0]
    return joined("fn.cat", inputs, place)


@operator("stack")
def stack(*inputs: DataNode, axis: int = 0, axis_name: str | None = None) -> DataNode:
    """Stacks values of one shape along a new axis."""
    where = "fn.stack"
    parts = []
    for each in inputs:
        kept = list(range(len(_sizes(where, each))))
        place = axis + len(kept) + 1 if axis < 0 else axis
        kept.insert(place, -1)
        parts.append(_axes.regrouped(each, kept))
    result = joined(where, parts, place)
    names = inputs[0].layout
    if axis_name and len(names) == len(result.sizes or ()) - 1:
        result.layout = names[:place] + axis_name + names[place:]
    return result


@operator("shapes")
def shapes(input: DataNode, *, dtype: Any = types.INT64) -> DataNode:
    """Returns the sizes of each sample's axes as a vector."""
    return input.shape(dtype=dtype)

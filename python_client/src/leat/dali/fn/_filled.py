# SPDX-License-Identifier: Apache-2.0
"""Constants: one value at every index of a shape, which is given or taken from another value."""

from __future__ import annotations

from typing import Any

import numpy as np

from leat.dali import _args, _axes, _node, types
from leat.dali._node import DataNode
from leat.dali._operator import operator
from leat.errors import InvalidArgument


def sizes_of(where: str, shape: Any) -> tuple[int, ...]:
    """Returns the sizes in an argument `shape`; None: those of a scalar."""
    if shape is None:
        return ()
    found = _args.constant_values(where, shape) if isinstance(shape, DataNode) else _args.numbers(where, shape)
    if any(each != int(each) or each < 0 for each in found):
        raise InvalidArgument(f"{where} = {shape!r:.80}; expected whole numbers, 0 or more")
    return tuple(int(each) for each in found)


def _filled(where: str, value: Any, dtype: Any, shape: Any, layout: str | None) -> DataNode:
    array = np.full(sizes_of(f"{where}: shape", shape), value, types.name_of(f"{where}: dtype", dtype))
    return _node.constant(array, layout=layout)


@operator("full")
def full(fill_value: DataNode, *, layout: str | None = None, shape: Any = None) -> DataNode:
    """Fills a shape with a value."""
    sizes = sizes_of("fn.full: shape", shape)
    if not sizes:
        return fill_value
    # Where the type is not known here: a bool changes no other type.
    zeros = _node.constant(np.zeros(sizes, fill_value.dtype or "bool"))
    result = _node.binary("add", zeros, fill_value)
    return DataNode(result.node, layout=layout, sizes=sizes, dtype=result.dtype)


@operator("constant")
def constant(
    *, dtype: Any = None, fdata: Any = None, idata: Any = None, layout: str | None = None, shape: Any = None
) -> DataNode:
    """Returns numbers: float32 from `fdata`, or int32 from `idata`, unless `dtype` is given; one number fills the
    shape."""
    where = "fn.constant"
    if (fdata is None) == (idata is None):
        raise InvalidArgument(f"{where}: fdata = {fdata!r:.60} and idata = {idata!r:.60}; expected one of them")
    argument, data, default = ("fdata", fdata, types.FLOAT) if idata is None else ("idata", idata, types.INT32)
    name = types.name_of(f"{where}: dtype", default if dtype is None else dtype)
    given = np.array(_args.numbers(f"{where}: {argument}", data))
    if fdata is not None:
        given = given.astype(np.float32)
    if not name.startswith("float") and name != "bool" and np.isnan(given).any():
        raise InvalidArgument(f"{where}: {argument} = {data!r:.60}; expected numbers, since {name} has no NaN")
    given = types.saturated(given, name)
    sizes = (given.size,) if shape is None else sizes_of(f"{where}: shape", shape)
    if given.size not in (1, int(np.prod(sizes))):
        raise InvalidArgument(f"{where}: {given.size} numbers for shape {sizes}; expected as many, or one")
    array = np.full(sizes, given[0]) if given.size == 1 else given.reshape(sizes)
    return _node.constant(array, layout=layout)


@operator("zeros")
def zeros(*, dtype: Any = types.INT32, layout: str | None = None, shape: Any = None) -> DataNode:
    """Fills a shape with zeros."""
    return _filled("fn.zeros", 0, dtype, shape, layout)


@operator("ones")
def ones(*, dtype: Any = types.INT32, layout: str | None = None, shape: Any = None) -> DataNode:
    """Fills a shape with ones."""
    return _filled("fn.ones", 1, dtype, shape, layout)


# Types of sources that workers compute as the next wider type.
_COMPUTED = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "float64": "float32"}


def _bits_like(x: DataNode, value: bool) -> DataNode:
    """Returns the same bool at every index of `x`, whatever its values."""
    found = _node.binary("eq", x, x)
    return _node.binary("bitwise_or" if value else "bitwise_and", found, value)


def _typed_like(where: str, x: DataNode, result: DataNode, dtype: Any = None) -> DataNode:
    """Returns a result in the shape of `x`: of its type unless `dtype` is given."""
    name = _axes.type_of(x) if dtype is None else types.name_of(f"{where}: dtype", dtype)
    if name is None:
        raise InvalidArgument(
            f"{where}: the type of {x!r} is not known when the pipeline is defined; expected dtype of its source, or "
            "fn.cast before"
        )
    node = _node.cast(result, _COMPUTED.get(name, name)).node
    return DataNode(node, layout=x.layout, sizes=x.sizes, dtype=name, device=x.device)


@operator("zeros_like")
def zeros_like(like: DataNode, *, dtype: Any = None) -> DataNode:
    """Fills the shape of a value with zeros, of its type unless `dtype` is given."""
    return _typed_like("fn.zeros_like", like, _bits_like(like, False), dtype)


@operator("ones_like")
def ones_like(like: DataNode, *, dtype: Any = None) -> DataNode:
    """Fills the shape of a value with ones, of its type unless `dtype` is given."""
    return _typed_like("fn.ones_like", like, _bits_like(like, True), dtype)


@operator("full_like")
def full_like(like: DataNode, fill_value: DataNode) -> DataNode:
    """Fills the shape of one value with another, in the type of the first."""
    zeros = _node.cast(_bits_like(like, False), "int32")
    return _typed_like("fn.full_like", like, _node.binary("add", zeros, fill_value))

# SPDX-License-Identifier: Apache-2.0
"""Tensors that the functions of `leat.rocal.fn` pass to each other."""

from __future__ import annotations

import enum
from typing import Any, TypeVar

from leat import fn
from leat._graphs.graph import Node
from leat._graphs.pipeline import Pipeline
from leat._graphs.options import whole
from leat.errors import Error, InvalidArgument, Unimplemented
from leat.rocal import types

_Kind = TypeVar("_Kind", bound=enum.IntEnum)
_DTYPES = {types.FLOAT: "float32", types.FLOAT16: "float16", types.UINT8: "uint8"}


class Tensor:
    """An output of an operator, while a pipeline is made.

    Attributes:
        node: height, width and channels of an image, whatever its layout.
        dtype: the values' type as in a batch; None: it depends on the data.
        layout: the layout of an image as an output of the pipeline.
    """

    __slots__ = ("_planar", "dtype", "layout", "node")

    def __init__(
        self, node: Node, dtype: str | None = None, layout: types.Layout | None = None, planar: Node | None = None
    ) -> None:
        self.node: Node = node
        self.dtype: str | None = dtype
        self.layout: types.Layout | None = layout
        self._planar = planar  # the same with channels first, if that is available without transposing

    def __repr__(self) -> str:
        return f"<leat.rocal tensor, of fn.{self.node.op} at {self.node.where}>"

    def output(self) -> Node:
        """Returns the node that the pipeline hands out."""
        if self.layout is not types.NCHW:
            return self.node
        return self._planar if self._planar is not None else fn.transpose(self.node, perm=(2, 0, 1))

    def cast(self, dtype: Any) -> Tensor:
        """Converts the values to another type."""
        if dtype == self.dtype:
            return self
        planar = None if self._planar is None else fn.cast(self._planar, dtype=dtype)
        return Tensor(fn.cast(self.node, dtype=dtype), dtype, self.layout, planar)

    def size(self) -> tuple[int, ...] | None:
        """Returns the sizes of all axes, if they are the same for every sample and known before the data are seen."""
        try:
            (field,) = Pipeline(lambda: {"x": self.node}, (), {})._schema or [{}]
        except Error:
            return None
        sizes = tuple(int(size) for size in field.get("shape", ()))
        return sizes if len(sizes) == 3 and min(sizes) > 0 else None


def image_of(where: str, value: Any) -> Tensor:
    """Returns `value`, if it may be an image."""
    if isinstance(value, Tensor):
        return value
    hint = ""
    if hasattr(value, "decoded"):
        hint = ": it is encoded; fn.decoders.image decodes it"
    elif isinstance(value, (tuple, list)):
        hint = ": readers return several values (jpegs, labels = fn.readers.file(...))"
    raise InvalidArgument(f"{where}: {type(value).__name__} {value!r:.60} in the place of an image{hint}")


def per_sample(where: str, value: Any) -> Any:
    """Returns a number, or the node of a tensor with one number per sample."""
    if isinstance(value, Tensor):
        return value.node
    if value is None:
        raise InvalidArgument(
            f"{where} = None: rocAL then draws from a range of its own; expected a number, or what fn.uniform gives"
        )
    return value


def flag(where: str, value: Any) -> Any:
    """Returns a switch: 0, another number, or the node of a tensor such as that of fn.random.coin_flip."""
    if isinstance(value, Tensor):
        return value.node
    if isinstance(value, (bool, int)):
        return value != 0
    raise InvalidArgument(f"{where} = {value!r:.60}; expected 0, 1, or what fn.random.coin_flip gives")


def constant_of(where: str, value: Any, kind: type[_Kind]) -> _Kind:
    """Returns the constant of `leat.rocal.types`; plain integers have rocAL's meaning."""
    if isinstance(value, kind):
        return value
    if type(value) is int and value in set(kind):
        return kind(value)
    raise InvalidArgument(f"{where} = {value!r}; expected one of types.{', types.'.join(each.name for each in kind)}")


def dtype_of(where: str, value: Any) -> str:
    """Returns the type's name in a batch."""
    chosen = constant_of(where, value, types.TensorType)
    if chosen not in _DTYPES:
        raise Unimplemented(f"{where} = types.{chosen.name}; Leat has types.FLOAT, types.FLOAT16 and types.UINT8")
    return _DTYPES[chosen]


def layout_of(where: str, value: Any) -> types.Layout:
    """Returns NHWC or NCHW."""
    chosen = constant_of(where, value, types.Layout)
    if chosen not in (types.NHWC, types.NCHW):
        raise Unimplemented(f"{where} = types.{chosen.name}; Leat has types.NHWC and types.NCHW")
    return chosen


def pixels(where: str, value: Any) -> int:
    """Returns a side's length; 0: not given."""
    return whole(where, value, 0, 65500)

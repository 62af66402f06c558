# SPDX-License-Identifier: Apache-2.0
"""Python's operators on nodes: each is an operator of the graph, by its name there."""

from __future__ import annotations

from typing import Any, TypeVar

_Node = TypeVar("_Node", bound="Arithmetic")


class Arithmetic:
    """Arithmetic and comparisons with nodes and numbers on either side. A subclass says how it makes its nodes."""

    __slots__ = ()

    def _unary(self: _Node, op: str) -> _Node:
        raise NotImplementedError

    def _binary(self: _Node, op: str, a: Any, b: Any) -> _Node:
        raise NotImplementedError

    def __hash__(self) -> int:
        return object.__hash__(self)

    __array_ufunc__ = None  # NumPy leaves `array * node` to the node

    def __add__(self: _Node, other: Any) -> _Node:
        return self._binary("add", self, other)

    def __radd__(self: _Node, other: Any) -> _Node:
        return self._binary("add", other, self)

    def __sub__(self: _Node, other: Any) -> _Node:
        return self._binary("sub", self, other)

    def __rsub__(self: _Node, other: Any) -> _Node:
        return self._binary("sub", other, self)

    def __mul__(self: _Node, other: Any) -> _Node:
        return self._binary("mul", self, other)

    def __rmul__(self: _Node, other: Any) -> _Node:
        return self._binary("mul", other, self)

    def __truediv__(self: _Node, other: Any) -> _Node:
        return self._binary("div", self, other)

    def __rtruediv__(self: _Node, other: Any) -> _Node:
        return self._binary("div", other, self)

    def __floordiv__(self: _Node, other: Any) -> _Node:
        return self._binary("floordiv", self, other)

    def __rfloordiv__(self: _Node, other: Any) -> _Node:
        return self._binary("floordiv", other, self)

    def __and__(self: _Node, other: Any) -> _Node:
        return self._binary("bitwise_and", self, other)

    def __or__(self: _Node, other: Any) -> _Node:
        return self._binary("bitwise_or", self, other)

    def __xor__(self: _Node, other: Any) -> _Node:
        return self._binary("bitwise_xor", self, other)

    # The order of the operands does not matter to these.
    def __rand__(self: _Node, other: Any) -> _Node:
        return self.__and__(other)

    def __ror__(self: _Node, other: Any) -> _Node:
        return self.__or__(other)

    def __rxor__(self: _Node, other: Any) -> _Node:
        return self.__xor__(other)

    def __lt__(self: _Node, other: Any) -> _Node:
        return self._binary("lt", self, other)

    def __le__(self: _Node, other: Any) -> _Node:
        return self._binary("le", self, other)

    def __gt__(self: _Node, other: Any) -> _Node:
        return self._binary("gt", self, other)

    def __ge__(self: _Node, other: Any) -> _Node:
        return self._binary("ge", self, other)

    def __eq__(self: _Node, other: Any) -> _Node:  # type: ignore[override]
        return self._binary("eq", self, other)

    def __ne__(self: _Node, other: Any) -> _Node:  # type: ignore[override]
        return self._binary("ne", self, other)

    def __neg__(self: _Node) -> _Node:
        return self._unary("neg")

    def __pos__(self: _Node) -> _Node:
        return self

    def __abs__(self: _Node) -> _Node:
        return self._unary("abs")

    def __invert__(self: _Node) -> _Node:
        return self._unary("invert")

# SPDX-License-Identifier: Apache-2.0
"""Nodes: what operators give while a function is traced, with arithmetic."""

from __future__ import annotations

import itertools
import math
import numbers
import os
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, ClassVar, NoReturn, ParamSpec, TypeAlias, overload

from leat._graphs import unpack
from leat._graphs.arithmetic import Arithmetic
from leat._library import native
from leat.errors import Error, InvalidArgument, PipelineError

_PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_ORDER_OF_MAKING = itertools.count()
_P = ParamSpec("_P")


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Returns the nearest frame outside this package, from `frame` outward; None: there is none."""
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE_FOLDER):
        frame = frame.f_back
    return frame


def user_line() -> str:
    """"file:line" of the nearest caller outside this package."""
    frame = user_frame(sys._getframe(1))
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"


def mark() -> int:
    """Returns a number between those of the operations that were made before the call and of those made after it."""
    return next(_ORDER_OF_MAKING)


_Forbidden: TypeAlias = Callable[..., NoReturn]


def _forbidden(what: str) -> Callable[..., NoReturn]:
    def method(self: Node, *_: Any) -> NoReturn:
        raise PipelineError(
            f"{what} on the output of fn.{self.op} ({self.where}): a pipeline is traced once, before there is "
            "any data, and its graph holds operators only. Use what is in leat.fn (an argument that varies from "
            "sample to sample takes a node: fn.flip(image, horizontal=fn.coin_flip(0.5)); fn.where(node > 0, a, b) "
            "chooses), or do it to the batches"
        )

    return method


class Operation:
    """One operator of a graph."""

    __slots__ = ("args", "inputs", "number", "op", "source", "where")

    op: str
    inputs: tuple[Node, ...]
    args: dict[str, Any]
    where: str
    source: Any  # the source given to leat.external_source
    number: int

    def __init__(self, op: str, inputs: tuple[Node, ...], args: dict[str, Any]) -> None:
        self.op = op
        self.inputs = inputs
        self.args = args
        self.where = user_line()
        self.source = None
        self.number = next(_ORDER_OF_MAKING)


class Node(Arithmetic):
    """One output of an operator, while a pipeline is traced.

    It has no value. Operators take nodes, and + - * / // & | ^ ~ abs() and comparisons with numbers, lists of numbers
    or other nodes make operators. All of them work element by element, with NumPy's broadcasting.
    """

    __slots__ = ("_operation", "_output")

    def __init__(self, operation: Operation, output: int) -> None:
        self._operation = operation
        self._output = output

    @property
    def op(self) -> str:
        """The operator's name, as in leat.fn."""
        return self._operation.op

    @property
    def where(self) -> str:
        """The line of the script that made it."""
        return self._operation.where

    def __repr__(self) -> str:
        return f"<output {self._output} of fn.{self.op} at {self.where}>"

    __bool__: ClassVar[_Forbidden] = _forbidden("a test of the truth (if, while, and, or, not)")
    __iter__: ClassVar[_Forbidden] = _forbidden("iteration or unpacking")
    __len__: ClassVar[_Forbidden] = _forbidden("len()")
    __getitem__: ClassVar[_Forbidden] = _forbidden("indexing")
    __contains__: ClassVar[_Forbidden] = _forbidden("'in'")
    __int__: ClassVar[_Forbidden] = _forbidden("int()")
    __index__: ClassVar[_Forbidden] = __int__
    __float__: ClassVar[_Forbidden] = _forbidden("float()")
    __array__: ClassVar[_Forbidden] = _forbidden("NumPy's array()")
    __pow__: ClassVar[_Forbidden] = _forbidden("this arithmetic")
    __mod__: ClassVar[_Forbidden] = __pow__
    __matmul__: ClassVar[_Forbidden] = __pow__
    __lshift__: ClassVar[_Forbidden] = __pow__
    __rshift__: ClassVar[_Forbidden] = __pow__

    def _unary(self, op: str) -> Node:
        return Node(Operation(op, (self,), {}), 0)

    def _binary(self, op: str, a: Any, b: Any) -> Node:
        return Node(Operation(op, (constant(a), constant(b)), {}), 0)


_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_EXACT = range(-(2**53), 2**53 + 1)  # integers that a double holds exactly
_CONSTANT_TYPES = ("bool", "uint8", "int32", "int64", "float16", "float32")


def _flat(value: Any) -> tuple[list[Any], list[int]]:
    """Returns the numbers of nested lists or of an array, in row-major order, and their shape."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        return [value], []
    if not value:
        raise InvalidArgument("an empty list in arithmetic on a node; expected numbers")
    parts = [_flat(item) for item in value]
    if any(shape != parts[0][1] for _, shape in parts):
        raise InvalidArgument(f"{value!r:.80} in arithmetic on a node; expected rows of one length")
    return [number for numbers_of, _ in parts for number in numbers_of], [len(parts), *parts[0][1]]


def is_finite(number: Any) -> bool:
    """True if a float holds the real number or the nearest one to it: not for a whole number beyond the greatest."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def constant(value: Any) -> Node:
    """Returns a node of a number, or of numbers in lists or an array.

    Whole numbers become int32 (int64 if they do not fit), other numbers float32, True and False bool. An array keeps
    its dtype if operators compute with it.
    """
    if isinstance(value, Node):
        return value
    given = str(getattr(value, "dtype", "")).rpartition(".")[2]  # torch says "torch.int64"
    values, shape = _flat(value)
    for number in values:
        if not isinstance(number, numbers.Real) or not is_finite(number):
            raise InvalidArgument(
                f"{value!r:.80} ({type(value).__name__}) in arithmetic on a node; expected a node or finite numbers"
                f"{unpack.hint(value)}"
            )
    if given in _CONSTANT_TYPES:
        dtype = given
    elif all(isinstance(number, bool) for number in values):
        dtype = "bool"
    elif all(isinstance(number, numbers.Integral) for number in values):
        dtype = "int32" if all(number in _INT32 for number in values) else "int64"
    else:
        dtype = "float32"
    if dtype == "int64":
        values = [int(number) for number in values]
        for number in values:
            if number not in _INT64:
                raise InvalidArgument(
                    f"{number} in arithmetic on a node; expected whole numbers of 64 bits, -2**63 … 2**63-1"
                )
        if not all(number in _EXACT for number in values):
            # The service's constants are doubles, exact to 53 bits, so an int64 is combined from two of them.
            high = _constant([number >> 32 for number in values], dtype, shape)
            low = _constant([number & 0xFFFFFFFF for number in values], dtype, shape)
            return high * _constant([2**32], dtype, []) + low
    return _constant(values, dtype, shape)


def _constant(values: list[Any], dtype: str, shape: list[int]) -> Node:
    args: dict[str, Any] = {"values": [float(number) for number in values], "dtype": dtype}
    if shape:
        args["shape"] = shape
    return Node(Operation("constant", (), args), 0)

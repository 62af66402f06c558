# SPDX-License-Identifier: Apache-2.0
"""Pipelines: a function is called once with nodes in place of data, and becomes a graph."""

from __future__ import annotations

import ctypes
import functools
import inspect
import itertools
import json
import math
import numbers
import os
import re
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, ClassVar, NoReturn, ParamSpec, TypeAlias, overload

from leat._graphs import unpack
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


class Node:
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

    def __hash__(self) -> int:
        return object.__hash__(self)

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
    __array_ufunc__: ClassVar[None] = None  # NumPy leaves `array * node` to the node

    def __add__(self, other: Any) -> Node:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Node:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Node:
        return _binary("sub", self, other)

    def __rsub__(self, other: Any) -> Node:
        return _binary("sub", other, self)

    def __mul__(self, other: Any) -> Node:
        return _binary("mul", self, other)

    def __rmul__(self, other: Any) -> Node:
        return _binary("mul", other, self)

    def __truediv__(self, other: Any) -> Node:
        return _binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Node:
        return _binary("div", other, self)

    def __floordiv__(self, other: Any) -> Node:
        return _binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Node:
        return _binary("floordiv", other, self)

    def __and__(self, other: Any) -> Node:
        return _binary("bitwise_and", self, other)

    def __or__(self, other: Any) -> Node:
        return _binary("bitwise_or", self, other)

    def __xor__(self, other: Any) -> Node:
        return _binary("bitwise_xor", self, other)

    def __rand__(self, other: Any) -> Node:
        return _binary("bitwise_and", self, other)

    def __ror__(self, other: Any) -> Node:
        return _binary("bitwise_or", self, other)

    def __rxor__(self, other: Any) -> Node:
        return _binary("bitwise_xor", self, other)

    def __lt__(self, other: Any) -> Node:
        return _binary("lt", self, other)

    def __le__(self, other: Any) -> Node:
        return _binary("le", self, other)

    def __gt__(self, other: Any) -> Node:
        return _binary("gt", self, other)

    def __ge__(self, other: Any) -> Node:
        return _binary("ge", self, other)

    def __eq__(self, other: Any) -> Node:  # type: ignore[override]
        return _binary("eq", self, other)

    def __ne__(self, other: Any) -> Node:  # type: ignore[override]
        return _binary("ne", self, other)

    def __neg__(self) -> Node:
        return Node(Operation("neg", (self,), {}), 0)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Node:
        return Node(Operation("abs", (self,), {}), 0)

    def __invert__(self) -> Node:
        return Node(Operation("invert", (self,), {}), 0)


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


def constant(value: Any) -> Node:
    """Returns a node of a number, or of numbers in lists or an array.

    Whole numbers become int32 (int64 if they do not fit), other numbers float32, True and False bool. An array whose
    dtype is a type of a batch keeps its dtype.
    """
    if isinstance(value, Node):
        return value
    given = str(getattr(value, "dtype", ""))
    values, shape = _flat(value)
    for number in values:
        if not isinstance(number, numbers.Real) or not math.isfinite(number):
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


def _binary(op: str, a: Any, b: Any) -> Node:
    return Node(Operation(op, (constant(a), constant(b)), {}), 0)


def _named_outputs(result: Any, function: str) -> dict[str, Node]:
    if isinstance(result, Node):
        outputs: dict[Any, Any] = {"output": result}
    elif isinstance(result, Mapping):
        outputs = dict(result)
    elif isinstance(result, (tuple, list)):
        outputs = {f"output{i}": node for i, node in enumerate(result)}
    else:
        raise PipelineError(
            f"pipeline {function} returned {type(result).__name__}; expected a dict of names to nodes, a tuple of "
            "nodes, or one node"
        )
    if not outputs:
        raise PipelineError(f"pipeline {function} returned no outputs; expected at least one node")
    for name, node in outputs.items():
        if not isinstance(name, str) or not name:
            raise PipelineError(f"pipeline {function}: output name {name!r}; expected a non-empty text")
        if not isinstance(node, Node):
            raise PipelineError(
                f"pipeline {function}: output {name!r} is {type(node).__name__} {node!r:.80}; expected a node, "
                f"as the functions of leat.fn return{unpack.hint(node)}"
            )
    return outputs


class _JsonWriter:
    """Numbers the operations that outputs need, in the order in which they were made, and writes leat.v1.Graph."""

    def __init__(self, outputs: dict[str, Node]) -> None:
        self.outputs = outputs
        needed: dict[int, Operation] = {}
        pending = [node._operation for node in outputs.values()]
        while pending:
            operation = pending.pop()
            if operation.number in needed:
                continue
            needed[operation.number] = operation
            pending += [node._operation for node in operation.inputs]
            pending += [value._operation for value in operation.args.values() if isinstance(value, Node)]
        self.operations = [needed[number] for number in sorted(needed)]
        self.index = {operation.number: i for i, operation in enumerate(self.operations)}

    def ref(self, node: Node) -> dict[str, int]:
        return {"node": self.index[node._operation.number], "output": node._output}

    def value(self, value: Any) -> dict[str, Any]:
        # bool before int, since bool is a subclass of int.
        if isinstance(value, Node):
            return {"ref": self.ref(value)}
        if isinstance(value, bool):
            return {"bool_value": value}
        if isinstance(value, int):
            return {"int_value": str(value)}
        if isinstance(value, float):
            return {"float_value": value}
        if isinstance(value, str):
            return {"string_value": value}
        if any(isinstance(item, str) for item in value):
            return {"strings_value": {"values": list(value)}}
        if all(isinstance(item, int) for item in value):
            return {"ints_value": {"values": [str(item) for item in value]}}
        return {"floats_value": {"values": list(value)}}

    def graph(self) -> dict[str, Any]:
        nodes = [
            {
                "op": operation.op,
                "inputs": [self.ref(node) for node in operation.inputs],
                "args": {name: self.value(value) for name, value in operation.args.items()},
            }
            for operation in self.operations
        ]
        return {
            "nodes": nodes,
            "outputs": [{"name": name, "ref": self.ref(node)} for name, node in self.outputs.items()],
        }


class Pipeline:
    """An operator graph: data that is sent, never code.

    `leat.pipeline` makes it. If the function has parameters, call the pipeline to get one with other values:
    `train(size=128)`.

    It pickles as its graph: the unpickled pipeline cannot be called with other values, and does not have the source of
    `leat.external_source`, which is then passed to `Job.batches(source=...)`.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._function: Callable[..., Any] | None = function
        name = getattr(function, "__qualname__", repr(function))
        writer = _JsonWriter(_named_outputs(function(*args, **kwargs), name))
        self._source = next((each.source for each in writer.operations if each.source is not None), None)
        lines = [f"fn.{operation.op} at {operation.where}" for operation in writer.operations]
        self._become(name, writer.graph(), lines)

    def _become(self, name: str, graph: dict[str, Any], lines: list[str]) -> None:
        self._name = name
        self._graph = graph
        self._lines = lines
        self._schema = self._check()

    def __call__(self, *args: Any, **kwargs: Any) -> Pipeline:
        """Returns the pipeline of the same function traced with other arguments."""
        if self._function is None:
            raise PipelineError(f"{self!r} is a graph without its function; expected one that leat.pipeline made here")
        return Pipeline(self._function, args, kwargs)

    def __reduce__(self) -> Any:
        return Pipeline._restored, (self._name, self.to_dict(), self._lines)

    def __copy__(self) -> Pipeline:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Pipeline:
        return self

    @classmethod
    def from_dict(cls, graph: Mapping[str, Any]) -> Pipeline:
        """Makes a pipeline from a result of `to_dict`, or from a graph that was written in another way.

        Raises:
            leat.InvalidArgument: it is not a graph, or its operators do not fit together; the text names the node.
        """
        try:
            graph = json.loads(json.dumps(graph))
            lines = [f"fn.{node['op']} of a graph" for node in graph["nodes"]]
            names = [output["name"] for output in graph["outputs"]]
        except (TypeError, ValueError, KeyError) as error:
            raise InvalidArgument(
                f"graph = {graph!r:.80}: {type(error).__name__}: {error}; expected what Pipeline.to_dict returned"
            ) from None
        return cls._restored(f"of {len(names)} outputs", graph, lines)

    @classmethod
    def _restored(cls, name: str, graph: dict[str, Any], lines: list[str]) -> Pipeline:
        """Returns a pipeline whose function is in another process."""
        made = Pipeline.__new__(Pipeline)
        made._function = made._source = None
        made._become(name, graph, lines)
        return made

    def __repr__(self) -> str:
        return f"<leat.pipeline {self._name}: {len(self._lines)} operators -> {', '.join(self.outputs)}>"

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the arrays of a batch."""
        return tuple(output["name"] for output in self._graph["outputs"])

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form of leat.v1.Graph, as on the wire and in `leat inspect`."""
        return json.loads(json.dumps(self._graph))

    def explain(self, error: Error) -> Error:
        """Returns the same error, with the script's lines of the nodes and outputs that its text names."""
        message = str(error)
        named = {f"node {number}": int(number) for number in re.findall(r"\bnode (\d+)", message)}
        for output in self._graph["outputs"]:
            if f'output "{output["name"]}"' in message:
                named[f"output {output['name']!r}"] = output["ref"]["node"]
        lines = [f"  {name} is {self._lines[i]}" for name, i in sorted(named.items()) if i < len(self._lines)]
        explained = type(error)(*error.args)
        explained.lines = tuple(lines)
        return explained

    def _check(self) -> Any:
        out = ctypes.c_void_p()
        try:
            native.check(native.lib.leat_pipeline_check(native.text(json.dumps(self._graph)), ctypes.byref(out)))
        except Error as error:
            raise self.explain(error) from None
        return json.loads(native.take_text(out.value) or "[]")


class _Factory:
    """A pipeline function that needs arguments before it can be traced."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Pipeline:
        return Pipeline(self._function, args, kwargs)


def _needs_arguments(function: Callable[..., Any]) -> bool:
    return any(
        parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        for parameter in inspect.signature(function).parameters.values()
    )


@overload
def pipeline(function: Callable[[], Any], /) -> Pipeline: ...
@overload
def pipeline(function: Callable[_P, Any], /) -> Callable[_P, Pipeline]: ...
@overload
def pipeline() -> Callable[[Callable[[], Any]], Pipeline]: ...
def pipeline(function: Callable[..., Any] | None = None, /) -> Any:
    """Makes a pipeline from a function, with or without parentheses: `@leat.pipeline`.

    The function is called once, here, with nodes in place of data. It returns a dict (names of the batch's arrays to
    nodes), a tuple of nodes (named output0, output1, …) or one node (named output). A function with parameters that
    have no default is traced when it is called with them.

    Args:
        function: builds the graph by calling functions of `leat.fn`.

    Returns:
        A `leat.Pipeline` for `Service.job`.

    Raises:
        leat.PipelineError: the function uses Python control flow or arithmetic on a node, or returns no node.
        leat.InvalidArgument: operators do not fit together; the text names the line.
    """
    if function is None:
        return pipeline
    if not callable(function):
        raise InvalidArgument(f"leat.pipeline takes a function, not {type(function).__name__} {function!r:.80}")
    return _Factory(function) if _needs_arguments(function) else Pipeline(function, (), {})

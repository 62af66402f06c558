# SPDX-License-Identifier: Apache-2.0
"""Nodes of a pipeline as DALI's scripts use them, over the operators of `leat.fn`.

Besides a node of Leat's graph, a DataNode holds what DALI's operators need to know about their inputs: the layout and,
if known, the shape and the type. Operations of this process are nodes of the same graph; _stages.py cuts it.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leat._graphs import operators
from leat._graphs.arithmetic import Arithmetic
from leat._graphs.graph import Node
from leat._graphs.graph import constant as _constant
from leat._graphs.graph import user_line
from leat.dali import _current, _truth
from leat.dali._operations import ConsumerOperation, ReaderOperation
from leat.errors import InvalidArgument, PipelineError

__all__ = ["ConsumerOperation", "DataNode", "ReaderOperation", "consumer_call"]

Sizes = tuple[int | None, ...]
# Functions of nodes that need modules above this one; _indexing sets them.
subscript: Callable[[DataNode, Any], DataNode]
shape_of: Callable[[DataNode, Any], DataNode]


class DataNode(Arithmetic):
    """One output of an operator, while a pipeline is defined.

    Attributes:
        node: the node of Leat's graph.
        layout: the names of a sample's axes, "HWC"; "" if they have none.
        sizes: the sizes of a sample's axes, None for each unknown size; None: even their number is unknown.
        dtype: the name of the elements' type; None: not known.
        device: "cpu" or "gpu", as in the script; it has no effect.
        flag: for an integer that is 0 or 1, the same value as bool.
        encoded: True for an image file.
    """

    __slots__ = ("device", "dtype", "encoded", "flag", "layout", "node", "sizes")

    def __init__(
        self,
        node: Node,
        *,
        layout: str | None = "",
        sizes: Sequence[int | None] | None = None,
        dtype: str | None = None,
        device: str = "cpu",
        flag: Node | None = None,
        encoded: bool = False,
    ) -> None:
        self.node: Node = node
        self.layout: str = layout or ""
        self.sizes: Sizes | None = tuple(sizes) if sizes is not None else None
        self.dtype: str | None = dtype
        self.device: str = device
        self.flag: Node | None = flag
        self.encoded: bool = encoded

    @property
    def ndim(self) -> int | None:
        """The number of axes of a sample; None: not known."""
        if self.sizes is not None:
            return len(self.sizes)
        return len(self.layout) or None

    @property
    def name(self) -> str:
        """The operator that made it."""
        return self.node.op

    def __repr__(self) -> str:
        return f"DataNode({self.node!r}, layout={self.layout!r})"

    def on(self, device: str) -> DataNode:
        """Returns the same value, labelled with a device."""
        labelled = copy.copy(self)
        labelled.device = device
        return labelled

    def gpu(self) -> DataNode:
        """Returns the same value: the worker decides where it is computed."""
        return self.on("gpu")

    def cpu(self) -> DataNode:
        """Returns the same value: the worker decides where it is computed."""
        return self.on("cpu")

    def __bool__(self) -> bool:
        raise TypeError(
            f"the truth of {self!r} is asked for (if, while, and, or, not): a pipeline is traced once, before there is "
            f"any data. {_truth.way_out()}; an argument that varies from sample to sample takes the node"
        )

    # Scripts use isinstance(result, Iterable) to tell an operator's one output from several.
    __iter__ = None

    def __len__(self) -> int:
        raise TypeError(f"{self!r} has no length while the pipeline is defined; .shape() gives a node")

    def _unary(self, op: str) -> DataNode:
        return self.like(op)

    def _binary(self, op: str, a: Any, b: Any) -> DataNode:
        return quotient(a, b) if op == "floordiv" else binary(op, a, b)

    def __pow__(self, other: Any) -> DataNode:
        if not isinstance(other, int) or isinstance(other, bool) or not 1 <= other <= 16:
            raise InvalidArgument(f"{self!r} ** {other!r:.40}; Leat's workers compute whole powers from 1 to 16")
        # Bytes become int32, as with any other number: it holds more of the powers.
        base = self if self.dtype in ("int32", "int64", "float16", "float32") else binary("mul", self, 1)
        return functools.reduce(lambda a, b: binary("mul", a, b), [base] * other)

    def __rpow__(self, other: Any) -> DataNode:
        raise InvalidArgument(f"{other!r:.40} ** {self!r}: Leat's workers do not compute it")

    def __mod__(self, other: Any) -> DataNode:
        return self - binary("floordiv", self, other) * other

    def __getitem__(self, key: Any) -> DataNode:
        return subscript(self, key)

    def shape(self, *, dtype: Any = None, device: str = "cpu") -> DataNode:
        """Returns the sizes of each sample's axes as a vector; int64 unless `dtype` is given."""
        return shape_of(self, dtype)

    def property(self, key: str, *, device: str = "cpu") -> DataNode:
        """Refused: workers give no metadata."""
        raise InvalidArgument(
            f"property({key!r}) of {self!r}: Leat's workers give no metadata as values; batches.samples() of a "
            "leat.Job says which samples a step has"
        )

    def source_info(self, *, device: str = "cpu") -> DataNode:
        """Refused, as `property`."""
        return self.property("source_info", device=device)

    def like(self, op: str, **args: Any) -> DataNode:
        """Applies an operator that keeps shape, type and layout."""
        return DataNode(
            apply(op, self, **args), layout=self.layout, sizes=self.sizes, dtype=self.dtype, device=self.device
        )


@functools.cache
def _function(op: str) -> Callable[..., Any]:
    info = next((info for info in operators.table() if info.name == op), None)
    if info is None:
        raise InvalidArgument(f"this version of the library has no operator {op!r}")
    return operators.make_function(info)


@functools.cache
def has_argument(op: str, name: str) -> bool:
    """True if the library's operator has the argument."""
    return any(arg.name == name for info in operators.table() if info.name == op for arg in info.args)


def apply(op: str, *inputs: Any, **args: Any) -> Any:
    """Applies an operator of `leat.fn`: takes DataNodes and numbers, returns nodes of Leat's graph; omits arguments
    that are None."""
    given = {name: value for name, value in args.items() if value is not None}
    nodes = [each.node if isinstance(each, DataNode) else each for each in inputs]
    return _function(op)(*nodes, **given)


_RANKS = ("bool", "uint8", "int32", "int64", "float16", "float32")
# Where a number is rounded before it is saturated: 255.5 is 256 before it is the greatest byte.
_WHOLE = {"int64": "int64", "uint32": "int64"} | dict.fromkeys("uint8 int8 int16 uint16 int32".split(), "int32")
_COMPARISONS = frozenset("lt le gt ge eq ne".split())
# The library takes at most so many numbers for an argument.
_MOST_NUMBERS = 4096


def constant(value: Any, *, layout: str | None = "") -> DataNode:
    """Returns a node of numbers; an array larger than the library takes is supplied by this process for each step."""
    if isinstance(value, np.ndarray) and value.size > _MOST_NUMBERS:
        return _brought(value, layout)
    node = _constant(value)
    # Whole numbers beyond 53 bits are combined from two constants.
    args = node._operation.args or {"shape": np.shape(value), "dtype": "int64"}
    return DataNode(node, layout=layout, sizes=tuple(args.get("shape", ())), dtype=args["dtype"])


def _brought(value: np.ndarray, layout: str | None) -> DataNode:
    pipeline = _current.pipeline()
    if pipeline is None:
        raise PipelineError(
            f"a constant of shape {value.shape} outside of a pipeline; expected it in the function or the `with` block "
            "that defines one"
        )
    kept = np.ascontiguousarray(value, np.float32 if value.dtype == np.float64 else None)
    batch = np.broadcast_to(kept, (pipeline.max_batch_size, *kept.shape))

    # It does not refer to the pipeline: the thread that feeds a pipeline would keep it alive.
    def call(_: list[Any]) -> list[Any]:
        return [batch]

    (node,) = consumer_call(call, (), 1, layout, preserve=False)
    node.sizes, node.dtype = kept.shape, kept.dtype.name
    return node


def node_of(value: Any) -> DataNode:
    """Returns `value` if it is a node, else a constant. An array of int64 becomes int32 if its numbers allow it, as in
    DALI."""
    if isinstance(value, DataNode):
        return value
    if isinstance(value, np.ndarray) and value.ndim and value.dtype == np.int64:
        narrow = value.astype(np.int32)
        value = narrow if np.array_equal(narrow, value) else value
    return constant(value)


def _broadcast(a: DataNode, b: DataNode) -> Sizes | None:
    if a.sizes is None or b.sizes is None:
        return None
    longer, shorter = (a.sizes, b.sizes) if len(a.sizes) >= len(b.sizes) else (b.sizes, a.sizes)
    padded = (1,) * (len(longer) - len(shorter)) + shorter
    return tuple(y if x == 1 else (x if x is not None else (y if y != 1 else None)) for x, y in zip(longer, padded))


def holds_nodes(value: Any) -> bool:
    """True if the value is a node, or a list with one at any depth."""
    if isinstance(value, (list, tuple)):
        return any(holds_nodes(each) for each in value)
    return isinstance(value, DataNode)


def binary(op: str, a: Any, b: Any) -> DataNode:
    """Applies arithmetic or a comparison, element by element."""
    a, b = node_of(a), node_of(b)
    dtype = None
    if op in _COMPARISONS:
        dtype = "bool"
    elif a.dtype in _RANKS and b.dtype in _RANKS:  # for other types the service reports the error
        dtype = max(a.dtype, b.dtype, key=_RANKS.index)
        if op == "div" and not dtype.startswith("float"):
            dtype = "float32"
    first, other = (a, b) if len(a.layout) >= len(b.layout) else (b, a)
    if not first.layout.endswith(other.layout):
        raise InvalidArgument(
            f"{op} of values with the layouts {a.layout!r} and {b.layout!r}; expected the same, or none ({user_line()})"
        )
    device = "gpu" if "gpu" in (a.device, b.device) else "cpu"
    return DataNode(apply(op, a, b), layout=first.layout, sizes=_broadcast(a, b), dtype=dtype, device=device)


def quotient(a: Any, b: Any) -> DataNode:
    """Returns a // b as in DALI: whole numbers round towards zero; if either has a fraction, it is a / b."""
    a, b = node_of(a), node_of(b)
    if any(each.dtype in ("float16", "float32", "float64") for each in (a, b)):
        return binary("div", a, b)
    down = binary("floordiv", a, b)
    if down.dtype in ("bool", "uint8"):
        return down
    rest = apply("sub", a, apply("mul", down, b))
    negative = apply("bitwise_xor", apply("lt", a, 0), apply("lt", b, 0))
    # A bool takes the other side's type, which may be that of bytes if it is not known here.
    correction = "bool" if down.dtype is None else "int32"
    up = apply("cast", apply("bitwise_and", apply("ne", rest, 0), negative), dtype=correction)
    return DataNode(
        apply("add", down, up), layout=down.layout, sizes=down.sizes, dtype=down.dtype, device=down.device
    )


def cast(x: DataNode, dtype: str) -> DataNode:
    """Converts to another type; returns `x` if it has that type. One half is rounded away from zero, as in DALI."""
    if x.dtype == dtype:
        return x
    rounds = dtype in _WHOLE and x.dtype in (None, "float16", "float32", "float64")
    node = _rounded(x, dtype) if rounds else apply("cast", x, dtype=dtype)
    return DataNode(node, layout=x.layout, sizes=x.sizes, dtype=dtype, device=x.device)


def _rounded(x: DataNode, dtype: str) -> Node:
    """Returns the nearest whole numbers, halves away from zero: corrects the library, which rounds them to even.

    The library makes 2 of 2.5; the rest, 0.5, has the sign of 2.5, so the result is 2 + 1. It makes 2 of 1.5; the rest,
    -0.5, does not have the sign of 1.5, so 2 stays. The difference is exact wherever there are fractions.
    """
    wide = _WHOLE[dtype]
    whole = apply("cast", x, dtype=wide)
    rest = apply("sub", x, whole)
    up = apply("bitwise_and", apply("eq", rest, 0.5), apply("gt", x, 0))
    down = apply("bitwise_and", apply("eq", rest, -0.5), apply("lt", x, 0))
    more, less = (apply("cast", each, dtype=wide) for each in (up, down))
    whole = apply("sub", apply("add", whole, more), less)
    return whole if wide == dtype else apply("cast", whole, dtype=dtype)


def consumer_call(
    call: Callable[[list[Any]], Sequence[Any]],
    inputs: Sequence[DataNode],
    num_outputs: int,
    layouts: Sequence[str | None] | str | None = None,
    preserve: bool = True,
) -> tuple[DataNode, ...]:
    """Returns the outputs of a function of this process on whole batches, as nodes between those that workers compute.

    Args:
        call: takes a list of arrays with a batch axis, returns as many as `num_outputs`, each with a batch axis.
        inputs: nodes; each has one shape for all samples.
        num_outputs: may be 0.
        layouts: the layouts of the outputs' samples; None: those of the inputs at the same index.
        preserve: it runs even if the pipeline does not need its outputs.
    """
    for i, each in enumerate(inputs):
        if not isinstance(each, DataNode):
            raise PipelineError(f"input {i} is {type(each).__name__} {each!r:.60}; expected a node of a pipeline")
    if _current.in_branch():
        warnings.warn(
            f"a function of this process in a branch of an `if` on a node ({user_line()}) gets all samples of the "
            "batch, where DALI gives it those of the branch; what it gives for the others is not used",
            Warning,
            stacklevel=2,
        )
    operation = ConsumerOperation("jax_function", [each.node for each in inputs], num_outputs)
    operation.call = call
    operation.preserve = preserve
    if preserve:
        _current.add_sink(operation)
    if layouts is None:
        layouts = [inputs[i].layout if i < len(inputs) else "" for i in range(num_outputs)]
    elif isinstance(layouts, str):
        layouts = [layouts]
    device = "gpu" if any(each.device == "gpu" for each in inputs) else "cpu"
    return tuple(
        DataNode(Node(operation, i), layout=layouts[i] if i < len(layouts) else "", device=device)
        for i in range(num_outputs)
    )

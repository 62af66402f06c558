# SPDX-License-Identifier: Apache-2.0
"""Random numbers: a pure function of the job's seed, the pass over the data and the sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from leat._graphs.graph import Node
from leat.dali import _args, _node, types
from leat.dali._node import DataNode
from leat.dali._operator import operator
from leat.errors import InvalidArgument

# At most so many numbers are drawn one by one; for some distributions more are drawn, as noise on zeros.
_MOST_DRAWN = 64
_MOST_NOISE = 1 << 24
_MOST_CHOICES = 256
_MOST_DRAWN_FROM = 4096
_UNIFORM_BITS = 24
_range = range  # hidden below by arguments of DALI's


def _shape(where: str, shape: Any, like: DataNode | None) -> tuple[int, ...]:
    if like is not None:
        if shape is not None:
            raise InvalidArgument(f"{where}: shape is given twice, as an input and as an argument")
        if like.sizes is None or None in like.sizes:
            raise InvalidArgument(f"{where}: the shape of {like!r} is not known when the pipeline is defined")
        return like.sizes  # type: ignore[return-value]
    if shape is None:
        return ()
    return tuple(int(each) for each in _args.numbers(f"{where}: shape", shape))


def _drawn(where: str, op: str, shape: tuple[int, ...], **args: Any) -> Node:
    """Draws one number per sample; or several, each by an operator of its own, put at its index."""
    count = math.prod(shape)
    if not shape:
        return _node.apply(op, **args)
    if op in _NOISE and (_MOST_DRAWN < count or op == "choice") and 1 <= count <= _MOST_NOISE:
        zeros = _node.apply("pad", _node.constant(np.zeros(1, np.float32)), axes=(0,), shape=(count,))
        return _node.apply("reshape", _NOISE[op](zeros, **args), shape=shape)
    if not 1 <= count <= _MOST_DRAWN:
        raise InvalidArgument(
            f"{where}: shape = {shape} has {count} numbers; Leat draws at most {_MOST_DRAWN} a sample"
        )
    total: Node | None = None
    for i in range(count):
        value = _node.apply("cast", _node.apply(op, **args), dtype="float32")
        if count > 1:
            unit = [1.0 if i == j else 0.0 for j in range(count)]
            value = _node.apply("mul", value, unit)
        total = value if total is None else _node.apply("add", total, value)
    return _node.apply("reshape", total, shape=shape)


def _coins(zeros: Node, probability: float) -> Node:
    """Draws 1 with the given probability, else 0."""
    return _node.apply(
        "noise_salt_and_pepper", zeros, prob=probability, salt_vs_pepper=1.0, salt_val=(1.0,), per_channel=True
    )


def _uniform_noise(zeros: Node, low: float = 0.0, high: float = 1.0) -> Node:
    """Draws fractions of 24 bits, bit by bit, between two bounds."""
    total = zeros
    for bit in _range(1, _UNIFORM_BITS + 1):
        part = _node.apply(
            "noise_salt_and_pepper", zeros, prob=0.5, salt_vs_pepper=1.0, salt_val=(2.0**-bit,), per_channel=True
        )
        total = _node.apply("add", total, part)
    return total if (low, high) == (0.0, 1.0) else _node.apply("add", _node.apply("mul", total, high - low), low)


def _normal_noise(zeros: Node, mean: Any, stddev: Any) -> Node:
    return _node.apply("noise_gaussian", zeros, mean=mean, stddev=stddev)


def _chosen(zeros: Node, values: list[Any], probabilities: list[float] | None = None, dtype: str = "float32") -> Node:
    """Draws one of the values at each index, exactly as given."""
    unit = _uniform_noise(zeros)
    if probabilities is None and values == list(_range(len(values))):
        drawn = _node.apply("cast", _node.apply("mul", unit, 2.0**_UNIFORM_BITS), dtype="int64")
        place = _node.apply("floordiv", _node.apply("mul", drawn, len(values)), 1 << _UNIFORM_BITS)
        return _node.apply("cast", place, dtype=dtype)
    if len(values) > _MOST_CHOICES:
        raise InvalidArgument(
            f"fn.random: one of {len(values)} values in each place of a shape; expected {_MOST_CHOICES} at most"
        )
    shares = probabilities or [1.0 / len(values)] * len(values)
    numbers = [_node.constant(np.asarray(each, dtype)) for each in values]
    result = _node.apply("where", _node.apply("ge", unit, 0.0), numbers[0], numbers[0])
    bound = 0.0
    for number, share in zip(numbers[1:], shares):
        bound += share
        result = _node.apply("where", _node.apply("ge", unit, bound), number, result)
    return result


_NOISE = {"coin_flip": _coins, "uniform": _uniform_noise, "normal": _normal_noise, "choice": _chosen}


def _typed(where: str, node: Node, shape: tuple[int, ...], made: str, dtype: Any, default: str) -> DataNode:
    name = default if dtype is None else types.name_of(f"{where}: dtype", dtype)
    return _node.cast(DataNode(node, sizes=shape, dtype="float32" if shape else made), name)


@operator("random.coin_flip", random=True, optional_inputs=1)
def coin_flip(
    shape_like: DataNode | None = None, *, dtype: Any = None, probability: Any = 0.5, shape: Any = None
) -> DataNode:
    """Draws 1 with the given probability, else 0."""
    where = "fn.random.coin_flip"
    sizes = _shape(where, shape, shape_like)
    if isinstance(probability, DataNode):
        number = _args.scalar(f"{where}: probability", probability, "float")
        if sizes:
            raise InvalidArgument(f"{where}: probability is a node and shape is given; expected one of them")
        flag = _node.apply("lt", _node.apply("uniform"), number)
    else:
        flag = _drawn(where, "coin_flip", sizes, probability=float(probability))
    result = _typed(where, flag, sizes, "bool", dtype, "int32")
    if not sizes:
        result.flag = flag
    return result


@operator("random.uniform", random=True, optional_inputs=1)
def uniform(
    shape_like: DataNode | None = None,
    *,
    dtype: Any = None,
    range: Any = (-1.0, 1.0),
    shape: Any = None,
    values: Any = None,
) -> DataNode:
    """Draws numbers between two bounds, the upper one excluded, or from a list."""
    where = "fn.random.uniform"
    sizes = _shape(where, shape, shape_like)
    if values is not None:
        drawn = _drawn(where, "choice", sizes, values=_args.numbers(f"{where}: values", values), dtype="float32")
        return _typed(where, drawn, sizes, "float32", dtype, "float32")
    bounds = range
    if isinstance(bounds, DataNode) or any(isinstance(each, DataNode) for each in bounds):
        low, high = [_args.element(bounds, i) for i in (0, 1)] if isinstance(bounds, DataNode) else list(bounds)
        unit = DataNode(_drawn(where, "uniform", sizes), sizes=sizes, dtype="float32")
        return _typed(where, (low + unit * (high - low)).node, sizes, "float32", dtype, "float32")
    numbers = [float(each) for each in _args.numbers(f"{where}: range", bounds)]
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        raise InvalidArgument(f"{where}: range = {bounds!r}; expected two numbers, the lesser first")
    drawn = _drawn(where, "uniform", sizes, low=numbers[0], high=numbers[1])
    return _typed(where, drawn, sizes, "float32", dtype, "float32")


@operator("random.normal", random=True, optional_inputs=1)
def normal(
    shape_like: DataNode | None = None, *, dtype: Any = None, mean: Any = 0.0, shape: Any = None, stddev: Any = 1.0
) -> DataNode:
    """Draws normally distributed numbers."""
    where = "fn.random.normal"
    sizes = _shape(where, shape, shape_like)
    args = {"mean": mean, "stddev": stddev}
    scalars = {name: _args.scalar(f"{where}: {name}", value, "float") for name, value in args.items()}
    return _typed(where, _drawn(where, "normal", sizes, **scalars), sizes, "float32", dtype, "float32")


@operator("random.choice", random=True, optional_inputs=1)
def choice(a: DataNode, shape_like: DataNode | None = None, *, p: Any = None, shape: Any = None) -> DataNode:
    """Draws one of the given numbers; for a whole number n, one of 0 … n-1."""
    where = "fn.random.choice"
    sizes = _shape(where, shape, shape_like)
    values = _args.constant_values(f"{where}: a", a)
    if a.sizes == ():
        if a.dtype in ("float16", "float32"):
            raise InvalidArgument(
                f"{where}: Data type {a.dtype} is not supported for 0D inputs; expected whole numbers"
            )
        if values[0] < 1:
            raise InvalidArgument(
                f"{where}: Expected positive number of elements for sampling, got: {values[0]} for sample: 0."
            )
        if values[0] > _MOST_DRAWN_FROM:
            raise InvalidArgument(f"{where}: a = {values[0]}; expected at most {_MOST_DRAWN_FROM}")
        values = [float(each) for each in _range(int(values[0]))]
    elif a.ndim != 1:
        raise InvalidArgument(f"{where}: a has {a.ndim} axes; Leat chooses among numbers")
    shares = None if p is None else _shares(where, p, len(values))
    dtype = a.dtype or "float32"
    drawn = _drawn(where, "choice", sizes, values=values, probabilities=shares, dtype=dtype)
    return DataNode(drawn, sizes=sizes, dtype=dtype)


def _shares(where: str, p: Any, count: int) -> list[float]:
    found = [float(each) for each in _args.numbers(f"{where}: p", p)]
    if len(found) != count:
        raise InvalidArgument(
            f'{where}: Unexpected shape for argument "p". Expected {{{count}}}, but got {{{len(found)}}}'
        )
    for i, each in enumerate(found):
        if not 0 <= each <= 1:
            raise InvalidArgument(
                f"{where}: Probabilities must be in range [0.0, 1.0], but got: {each:g} for sample: 0 at index {i}."
            )
    if abs(sum(found) - 1) > 1e-3:
        raise InvalidArgument(f"{where}: Sum of probabilities must be 1.0, but got {sum(found):g} for sample: 0.")
    return found


@operator("random.beta", random=True, optional_inputs=1)
def beta(
    shape_like: DataNode | None = None, *, alpha: Any = 1.0, beta: Any = 1.0, dtype: Any = None, shape: Any = None
) -> DataNode:
    """Draws numbers of the beta distribution."""
    where = "fn.random.beta"
    sizes = _shape(where, shape, shape_like)
    args = {
        name: _args.scalar(f"{where}: {name}", value, "float") for name, value in (("alpha", alpha), ("beta", beta))
    }
    return _typed(where, _drawn(where, "beta", sizes, **args), sizes, "float32", dtype, "float32")

# SPDX-License-Identifier: Apache-2.0
"""Python's operators on nodes: the library's operators that they become."""

import types

import numpy as np
import pytest

import leat
from leat import fn


def traced(node):
    """Returns the operators after the reader, as "op(inputs)" and the constants' values."""
    graph = leat.pipeline(lambda: node).to_dict()
    texts = []
    for entry in graph["nodes"]:
        if entry["op"] == "constant":
            args = entry["args"]
            shape = args.get("shape", {}).get("ints_value", {}).get("values", [])
            kind = args["dtype"]["string_value"]
            texts.append(f"{kind}{[int(size) for size in shape]} {args['values']['floats_value']['values']}")
        else:
            texts.append(f"{entry['op']}({', '.join(str(ref['node']) for ref in entry['inputs'])})")
    return texts[1:]


def label():
    return fn.readers.image_folder("/photos")[1]


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda x: x + 1, ["int32[] [1.0]", "add(0, 1)"]),
        (lambda x: 1 + x, ["int32[] [1.0]", "add(1, 0)"]),
        (lambda x: x - 1.5, ["float32[] [1.5]", "sub(0, 1)"]),
        (lambda x: 1 - x, ["int32[] [1.0]", "sub(1, 0)"]),
        (lambda x: x * 2**31, [f"int64[] [{2.0**31}]", "mul(0, 1)"]),
        (lambda x: x / 2, ["int32[] [2.0]", "div(0, 1)"]),
        (lambda x: 2 / x, ["int32[] [2.0]", "div(1, 0)"]),
        (lambda x: x // 2, ["int32[] [2.0]", "floordiv(0, 1)"]),
        (lambda x: 7 // x, ["int32[] [7.0]", "floordiv(1, 0)"]),
        (lambda x: x & 3, ["int32[] [3.0]", "bitwise_and(0, 1)"]),
        (lambda x: 3 | x, ["int32[] [3.0]", "bitwise_or(0, 1)"]),
        (lambda x: True ^ x, ["bool[] [1.0]", "bitwise_xor(0, 1)"]),
        (lambda x: x < 1, ["int32[] [1.0]", "lt(0, 1)"]),
        (lambda x: 1 < x, ["int32[] [1.0]", "gt(0, 1)"]),
        (lambda x: x <= 1, ["int32[] [1.0]", "le(0, 1)"]),
        (lambda x: x >= 1, ["int32[] [1.0]", "ge(0, 1)"]),
        (lambda x: x == 1, ["int32[] [1.0]", "eq(0, 1)"]),
        (lambda x: x != 1, ["int32[] [1.0]", "ne(0, 1)"]),
        (lambda x: -x, ["neg(0)"]),
        (lambda x: +x + x, ["add(0, 0)"]),
        (lambda x: abs(x), ["abs(0)"]),
        (lambda x: ~x, ["invert(0)"]),
        (lambda x: x * [1, 2.5], ["float32[2] [1.0, 2.5]", "mul(0, 1)"]),
        (lambda x: x + ((1, 2), (3, 4)), ["int32[2, 2] [1.0, 2.0, 3.0, 4.0]", "add(0, 1)"]),
        (lambda x: np.array([[1], [2]], np.uint8) + x, ["uint8[2, 1] [1.0, 2.0]", "add(1, 0)"]),
        (lambda x: np.float16(2) * x, ["float16[] [2.0]", "mul(1, 0)"]),
        (lambda x: x * np.float64(2), ["float32[] [2.0]", "mul(0, 1)"]),
        (lambda x: fn.add(x, 3), ["int32[] [3.0]", "add(0, 1)"]),
        (lambda x: fn.add(3, x), ["int32[] [3.0]", "add(1, 0)"]),
        (lambda x: x * 2 + 1, ["int32[] [2.0]", "mul(0, 1)", "int32[] [1.0]", "add(2, 3)"]),
    ],
)
def test_operators_of_python_become_operators_of_the_graph(use, expected):
    assert traced(use(label())) == expected


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**60 + 1, 2**63 - 1, -(2**63), np.int64(2**62 + 3)])
def test_whole_numbers_keep_64_bits(number):
    """Constants are doubles in a graph: a large one is combined from two that are exact."""
    high, low, *rest = traced(label() + number)
    assert rest == ["int64[] [4294967296.0]", "mul(1, 3)", "add(4, 2)", "add(0, 5)"]
    values = [int(float(text.removeprefix("int64[] [")[:-1])) for text in (high, low)]
    assert values[0] * 2**32 + values[1] == number


def test_arrays_of_whole_numbers_keep_64_bits():
    high, low, *_ = traced(label() * [1, -(2**60) - 7])
    assert (high, low) == ("int64[2] [0.0, -268435457.0]", f"int64[2] [1.0, {float(2**32 - 7)}]")
    assert traced(label() + 2**53) == [f"int64[] [{2.0**53}]", "add(0, 1)"]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70])
def test_whole_numbers_of_more_than_64_bits_are_refused(number):
    with pytest.raises(leat.InvalidArgument, match=f"{number} in arithmetic on a node; .* whole numbers of 64 bits"):
        label() + number


@pytest.mark.parametrize(
    "value",
    ["1", None, float("nan"), float("inf"), 10**400, [1.5, 10**400], [], [[1, 2], [3]], {"a": 1}, 1j, np.array("x")],
)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(leat.InvalidArgument, match="in arithmetic on a node"):
        label() + value


@pytest.mark.parametrize(
    ("dtype", "expected"), [("torch.int64", "int64"), ("torch.uint8", "uint8"), ("int16", "int32")]
)
def test_an_array_of_any_package_keeps_a_type_of_batches(dtype, expected):
    array = types.SimpleNamespace(dtype=dtype, tolist=lambda: [1, 2])
    assert traced(label() + array)[0] == f"{expected}[2] [1.0, 2.0]"


def test_a_node_has_an_identity_and_no_truth():
    node = label()
    assert {node: 1}[node] == 1
    with pytest.raises(leat.PipelineError, match="test of the truth"):
        node in [label()]

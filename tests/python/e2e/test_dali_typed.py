# SPDX-License-Identifier: Apache-2.0
"""Types and values of constants, as DALI documents them."""

import leat
import numpy as np
import pytest
from leat.dali import fn, math, pipeline_def, types
from leat.dali.types import Constant


def outputs_of(function):
    return [np.array(each) for each in pipeline_def(batch_size=2)(function)().run()]


def given(array, **arguments):
    return fn.external_source(lambda: array, **arguments)


def test_constants_of_whole_numbers_are_rounded_and_cut_to_their_type():
    def constants():
        halves = [0.5, 1.5, 2.5, -0.5, -2.5]
        return (
            fn.constant(fdata=halves, dtype=types.INT32),
            fn.constant(fdata=[1e30, -1e30, float("inf")], dtype=types.INT64),
            Constant(halves, dtype=types.INT32),
            Constant([300, -5, 7], dtype=types.UINT8),
            Constant(np.float64([254.5, 0.3]), dtype=types.UINT8),
            Constant(2.7, dtype=types.INT32, shape=(2,)),
        )

    most = np.iinfo(np.int64)
    assert [each[0].tolist() for each in outputs_of(constants)] == [
        [1, 2, 3, -1, -3],
        [most.max, most.min, most.max],
        [1, 2, 3, -1, -3],
        [255, 0, 7],
        [255, 0],
        [3, 3],
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Constant(2**31),
        lambda: Constant([1, 2**40]),
        lambda: Constant(2**40, dtype=types.UINT8),
        lambda: Constant(float("inf"), dtype=types.INT32),
        lambda: Constant([float("nan")], dtype=types.INT32),
        lambda: Constant(["a"]),
    ],
)
def test_numbers_that_do_not_fit_are_no_constants(make):
    with pytest.raises(leat.InvalidArgument, match="expected"):
        pipeline_def(batch_size=2)(make)()


def test_a_number_of_numpy_keeps_its_type_and_one_element_is_a_number():
    assert Constant(np.int64(5)).dtype == "int64" and Constant(np.int32(5)).dtype == Constant(5).dtype == "int32"
    assert Constant(np.float64(5)).dtype == "float32" and Constant(np.float16(5)).dtype == "float16"
    assert Constant(2**40, dtype=types.INT64).value == 2**40
    for shape in ((), [], 1, [1], (1,)):
        assert isinstance(Constant(5, shape=shape), types.ScalarConstant)
    assert outputs_of(lambda: fn.zeros(dtype=types.INT64) + 2**60)[0].tolist() == [2**60] * 2
    assert outputs_of(lambda: Constant(5, shape=2))[0].tolist() == [[5, 5]] * 2


def test_absolute_values_keep_a_type_that_has_fractions():
    def absolute():
        x = given(np.int32([[-3], [3]]), dtype=types.INT32)
        return math.fabs(x), math.fabs(fn.cast(x, dtype=types.FLOAT16))

    whole, half = outputs_of(absolute)
    assert (whole.dtype, half.dtype, half.ravel().tolist()) == (np.float32, np.float16, [3.0, 3.0])


def test_a_value_of_a_type_that_is_not_known_fills_a_shape_in_its_type():
    full = outputs_of(lambda: fn.full(given(np.int32([[1, 2], [3, 4]])), shape=(2, 2)))[0]
    assert (full.dtype, full.tolist()) == (np.int32, [[[1, 2]] * 2, [[3, 4]] * 2])

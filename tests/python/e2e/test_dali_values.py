# SPDX-License-Identifier: Apache-2.0
"""Values of leat.dali's operators; the expected ones are DALI 2.4's results on the CPU."""

import leat
import numpy as np
import pytest
from leat.dali import fn, math, pipeline_def, types


def values_of(function, batch_size=2):
    """Returns the arrays of one step."""
    return [np.array(each) for each in pipeline_def(batch_size=batch_size)(function)()._next()]


def image(value, dtype):
    return np.full((2, 2, 2, 3), value, dtype)


@pytest.mark.parametrize("dtype", [None, types.UINT8])
def test_powers_of_bytes_do_not_wrap(dtype):
    def powers():
        x = fn.external_source(lambda: np.uint8([[8], [9]]), dtype=dtype)
        return x**3, x**1, math.pow(x, 2), fn.cast(x, dtype=types.FLOAT16) ** 2

    cubes, same, squares, halves = values_of(powers)
    assert (cubes.ravel().tolist(), cubes.dtype) == ([512, 729], np.int32)
    assert (same.ravel().tolist(), same.dtype) == ([8, 9], np.int32)
    assert squares.ravel().tolist() == [64, 81]
    assert (halves.ravel().tolist(), halves.dtype) == ([64.0, 81.0], np.float16)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_whole_numbers_are_divided_towards_zero(dtype):
    given = [-7, -6, -1, 0, 1, 6, 7]

    def quotients():
        x = fn.external_source(lambda: np.array([given] * 2, dtype))
        return x // 3, x // -3, 20 // (x + 8) * 0 + x // np.int32(2), fn.cast(x, dtype=types.UINT8) // 3

    by_3, by_less, by_2, bytes_ = (each[0] for each in values_of(quotients))
    assert (by_3.tolist(), by_3.dtype) == ([-2, -2, 0, 0, 0, 2, 2], dtype)
    assert by_less.tolist() == [2, 2, 0, 0, 0, -2, -2] and by_2.tolist() == [-3, -3, 0, 0, 0, 3, 3]
    assert bytes_.tolist() == [0, 0, 0, 0, 0, 2, 2]


def test_a_quotient_with_a_fraction_on_either_side_has_one():
    def quotients():
        x = fn.external_source(lambda: np.int32([[7], [-7]]), dtype=types.INT32)
        return x // 2.0, fn.cast(x, dtype=types.FLOAT16) // 2

    for each, dtype in zip(values_of(quotients), (np.float32, np.float16)):
        assert (each.ravel().tolist(), each.dtype) == ([3.5, -3.5], dtype)


@pytest.mark.parametrize("dtype", [None, types.UINT8])
def test_a_quotient_of_bytes_is_a_byte_whether_their_type_is_said_or_not(dtype):
    def quotients():
        x = fn.external_source(lambda: np.uint8([[7], [200]]), dtype=dtype)
        return x // fn.external_source(lambda: np.uint8([[2], [3]]), dtype=dtype), x // 2

    both, by_2 = values_of(quotients)
    assert (both.ravel().tolist(), both.dtype) == ([3, 66], np.uint8)
    assert (by_2.ravel().tolist(), by_2.dtype) == ([3, 100], np.int32)


def test_a_quotient_of_doubles_has_a_fraction():
    (half,) = values_of(lambda: fn.external_source(lambda: np.float64([[7], [-7]]), dtype=types.FLOAT64) // 2)
    assert (half.ravel().tolist(), half.dtype) == ([3.5, -3.5], np.float32)


def test_arrays_of_64_bits_are_constants_of_32():
    def sums():
        x = fn.external_source(lambda: np.int32([[1], [2]]), dtype=types.INT32, ndim=1)
        return x + np.array([1, 2]), x + np.arange(5000), x + np.full(5000, 0.5), x + np.array([2**40]), x + np.int64(1)

    found = values_of(sums)
    assert [each.dtype for each in found] == [np.int32, np.int32, np.float32, np.int64, np.int64]
    assert [each[1, -1] for each in found] == [4, 5001, 2.5, 2**40 + 2, 3]


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [
        (types.INT8, -128, 127),
        (types.INT16, -32768, 32767),
        (types.UINT16, 0, 65535),
        (types.UINT32, 0, 4294967295),
    ],
)
def test_casts_to_types_that_workers_carry_are_dalis(dtype, least, most):
    given = [0.5, 1.5, -0.5, -2.5, 99.5, 1e6, -1e6, 1e10]

    def casts():
        x = fn.external_source(lambda: np.array([given] * 2, np.float32), dtype=types.FLOAT)
        return fn.cast(x, dtype=dtype), fn.cast(fn.cast(x, dtype=types.INT32), dtype=dtype)

    got, whole = (each[0] for each in values_of(casts))
    assert got.dtype == whole.dtype == types.to_numpy_type(dtype)
    assert got.tolist() == [min(max(each, least), most) for each in (1, 2, -1, -3, 100, 10**6, -(10**6), 10**10)]
    assert whole.tolist()[:-1] == got.tolist()[:-1]


@pytest.mark.parametrize("dtype", [None, types.FLOAT, types.FLOAT16])
def test_casts_round_a_half_away_from_zero(dtype):
    given = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 254.5, 255.5, 0.25, -7.75, 2049.0, -300.0]
    kind = np.float16 if dtype is types.FLOAT16 else np.float32

    def casts():
        x = fn.external_source(lambda: np.array([given] * 2, kind), dtype=dtype)
        return tuple(fn.cast(x, dtype=each) for each in (types.INT32, types.INT64, types.UINT8))

    whole = [1, 2, 3, -1, -2, -3, 255, 256, 0, -8, 2049 if kind is np.float32 else 2048, -300]
    bytes_ = [1, 2, 3, 0, 0, 0, 255, 255, 0, 0, 255, 0]
    assert [each[0].tolist() for each in values_of(casts)] == [whole, whole, bytes_]


def test_casts_of_what_is_out_of_range_or_nearly_a_half_stay_what_they_are():
    given = [0.49999997, 8388607.5, 3e9, -3e9, 16777217.0]

    def casts():
        x = fn.external_source(lambda: np.float32([given] * 2), dtype=types.FLOAT)
        return fn.cast(x, dtype=types.INT32), fn.cast(x, dtype=types.INT64)

    narrow, wide = (each[0].tolist() for each in values_of(casts))
    assert narrow == [0, 8388608, 2**31 - 1, -(2**31), 16777216]
    assert wide == [0, 8388608, 3_000_000_000, -3_000_000_000, 16777216]


@pytest.mark.parametrize(
    ("dtype", "twist", "about", "shifted"),
    [
        (types.UINT8, 114, 114, 114),
        (types.INT8, 114, 82, 82),
        (types.INT16, 114, 8242, 8242),
        (types.UINT16, 114, 16434, 16434),
        (types.INT32, 114, 536870976, 536870976),
        (types.UINT32, 114, 1073741874, 1073741874),
        (types.FLOAT, 50.25, 50.25, 50.25),
    ],
)
def test_contrast_is_about_the_middle_of_the_type(dtype, twist, about, shifted):
    def changed():
        x = fn.external_source(lambda: image(100, types.to_numpy_type(dtype)), dtype=dtype, layout="HWC")
        return (
            fn.color_twist(x, contrast=0.5),
            fn.brightness_contrast(x, contrast=0.5),
            fn.contrast(x, contrast=0.5),
            fn.brightness(x, brightness=0.5, brightness_shift=0.25),
        )

    tolerance = 1e-7 * max(about, shifted)  # DALI computes in float32, too
    found = [float(each.flat[0]) for each in values_of(changed)]
    assert found[0] == twist
    assert found[1:] == pytest.approx([about, about, shifted], abs=tolerance)


def test_a_twist_by_nodes_is_about_128_for_integers():
    def twisted():
        x = fn.external_source(lambda: image(100, np.int32), dtype=types.INT32, layout="HWC")
        half = fn.external_source(lambda: np.float32([0.5, 0.25]), dtype=types.FLOAT, ndim=0)
        return fn.color_twist(x, contrast=half, brightness=2.0)

    (result,) = values_of(twisted)
    assert (result[0].flat[0], result[1].flat[0], result.dtype) == (228, 242, np.int32)


def test_colours_of_integers_that_workers_widen_are_cut_to_their_own_range():
    def bright():
        x = fn.external_source(lambda: image(30000, np.int16), dtype=types.INT16, layout="HWC")
        return fn.brightness(x, brightness=2.0), fn.brightness(x, brightness=-2.0)

    assert [each.flat[0] for each in values_of(bright)] == [32767, -32768]


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (types.INT8, -128, 127),
        (types.INT16, -(2**15), 2**15 - 1),
        (types.UINT16, 0, 2**16 - 1),
        (types.UINT32, 0, 2**32 - 1),
        (types.UINT8, 0, 255),
        (types.FLOAT, -1.0, 1.0),
    ],
)
def test_salt_and_pepper_are_the_bounds_of_the_type_and_noise_stays_within(dtype, low, high):
    def noisy():
        x = fn.external_source(lambda: image(100, types.to_numpy_type(dtype)), dtype=dtype, layout="HWC")
        salted = fn.noise.salt_and_pepper(x, prob=1.0, salt_vs_pepper=0.5)
        return salted, fn.noise.gaussian(x, mean=1e12), fn.noise.shot(x)

    values, most, shot = values_of(noisy)
    assert set(values.ravel().tolist()) == {low, high}
    if dtype is not types.FLOAT:
        assert set(most.ravel().tolist()) == {high} and shot.max() <= high


@pytest.mark.parametrize(
    ("kind", "operator", "args"),
    [
        (np.int16, fn.contrast, {"contrast": 0.5}),
        (np.int32, fn.color_twist, {"contrast": 0.5}),
        (np.int16, fn.noise.salt_and_pepper, {}),
        (np.uint16, fn.noise.gaussian, {}),
        (np.int8, fn.noise.shot, {}),
    ],
)
def test_a_type_that_decides_and_that_nobody_says_is_refused(kind, operator, args):
    def changed():
        x = fn.crop(fn.external_source(lambda: image(100, kind), layout="HWC"), crop=(1, 1))
        return operator(x, **args)

    name = operator.__qualname__
    with pytest.raises(leat.InvalidArgument, match=rf"gave {np.dtype(kind)} without saying so.*fn\.{name} depend"):
        values_of(changed)


def test_a_function_may_take_constants_alone():
    def called():
        constant = types.Constant(np.int32([1, 2]))
        ones, number = fn.ones(shape=[2], dtype=types.FLOAT), fn.external_source(lambda: np.int32([[3, 4], [5, 6]]))
        return (
            fn.python_function(constant, function=lambda x: x * 2),
            fn.python_function(ones, number, function=lambda a, b: a + b),
            fn.python_function(types.Constant(7), function=lambda x: x + 1),
        )

    assert [each.tolist() for each in values_of(called)] == [[[2, 4], [2, 4]], [[4, 5], [6, 7]], [8, 8]]
    (alone,) = values_of(lambda: fn.python_function(types.Constant(np.float32([0.5])), function=lambda x: -x))
    assert alone.tolist() == [[-0.5], [-0.5]]


@pytest.mark.parametrize(
    ("function", "batch_processing", "words"),
    [
        (lambda samples: samples[:1], True, "output 0 has 1 samples; expected 2, as the batch has"),
        (lambda samples: [np.int32(1), np.float32(2)], True, "output 0: a batch has .*float32 .* and of int32"),
        (lambda x: x if x[0] else x.astype(np.int64), False, "output 0: a batch has .*int32 .* and of int64"),
    ],
)
def test_a_function_gives_as_many_samples_as_the_batch_has_and_all_of_one_type(function, batch_processing, words):
    def called():
        x = fn.external_source(lambda: np.int32([[0], [1]]))
        return fn.python_function(x, function=function, batch_processing=batch_processing)

    with pytest.raises(leat.InvalidArgument, match=words):
        values_of(called)


def test_a_value_without_elements_is_refused_by_name_where_a_worker_needs_it():
    def empty():
        return fn.external_source(lambda: np.zeros((2, 0, 4), np.uint8)) + 1

    with pytest.raises(leat.InvalidArgument, match=r"fn.external_source \(.*\) gave samples of shape \(0, 4\)"):
        values_of(empty)
    (given,) = values_of(lambda: fn.external_source(lambda: np.zeros((2, 0, 4), np.uint8)))
    assert given.shape == (2, 0, 4)


@pytest.mark.parametrize(
    ("angle", "size"), [(15.0, (28, 36)), (90.0, (30, 20)), (-60.0, (36, 34)), (0.0, (20, 30)), (180.0, (20, 30))]
)
def test_an_image_of_one_size_turned_by_a_constant_has_one_size(angle, size):
    def turned():
        x = fn.external_source(lambda: np.arange(2 * 24 * 36 * 3).astype(np.uint8).reshape(2, 24, 36, 3), layout="HWC")
        x = fn.resize(x, size=(20, 30))
        # A node whose number is always the same: the worker finds the size for each sample.
        varying = fn.external_source(lambda: np.float32([angle] * 2), dtype=types.FLOAT, ndim=0)
        return fn.rotate(x, angle=angle), fn.pad(fn.rotate(x, angle=varying), axes=(0, 1), shape=size)

    constant, found = values_of(turned)
    assert constant.shape[1:] == (*size, 3)
    np.testing.assert_array_equal(constant, found)


def test_an_array_of_more_axes_than_workers_have_is_an_error(tmp_path):
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.zeros((1,) * 12, np.uint8))
    with pytest.raises(leat.InvalidArgument, match="output of 12 axes, at most 8"):
        values_of(lambda: fn.readers.numpy(file_root=tmp_path))


def test_an_array_of_a_type_that_workers_do_not_compute_is_an_error_that_names_it(tmp_path):
    np.save(tmp_path / "0.npy", np.zeros(3, np.complex64))
    with pytest.raises(leat.Unimplemented, match=r"0\.npy.*c8") as error:
        values_of(lambda: fn.readers.numpy(file_root=tmp_path))
    assert "coordinator" not in str(error.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_whole_numbers_below_and_above(dtype):
    given = np.array([2.5, -2.5, 3.0, -0.25, 0.75, 1e4 + 0.5, -np.inf, np.inf, np.nan, 2.4999], dtype)

    def whole():
        x = fn.external_source(lambda: np.stack([given] * 2), dtype=types.from_numpy_type(dtype))
        return math.floor(x), math.ceil(x), math.floor(fn.external_source(lambda: np.int32([3, -4])))

    floor, ceil, integers = values_of(whole)
    np.testing.assert_array_equal(floor[0], np.floor(given))
    np.testing.assert_array_equal(ceil[1], np.ceil(given))
    assert floor.dtype == ceil.dtype == dtype
    assert (integers.tolist(), integers.dtype) == ([3.0, -4.0], np.float32)
    large = np.float32([2**31 + 256, 2.0**23 + 1, 1e30])
    (kept,) = values_of(lambda: math.floor(fn.external_source(lambda: large[None]) * 1.0), batch_size=1)
    np.testing.assert_array_equal(kept[0], large)
    with pytest.raises(leat.InvalidArgument, match="`floor` cannot be a boolean"):
        values_of(lambda: math.floor(types.Constant(True)))


def test_choices_of_a_shape_are_the_values_and_as_likely_as_said():
    large = [2**40 + 1, 7, 2**40 + 3]

    def chosen():
        some = fn.random.choice(types.Constant(np.int64(large), dtype=types.INT64), shape=(4000,), p=[0.5, 0.0, 0.5])
        return some, fn.random.choice(5, shape=4000), fn.random.uniform(values=[0.5, -2.0], shape=(40, 100))

    some, five, halves = (each.reshape(2, -1) for each in values_of(chosen))
    assert some.dtype == np.int64 and five.dtype == np.int32
    for row in range(2):
        assert set(some[row]) == {2**40 + 1, 2**40 + 3} and 1800 < np.sum(some[row] == 2**40 + 1) < 2200
        assert all(650 < each < 950 for each in np.bincount(five[row], minlength=5)) and five[row].max() == 4
        assert set(halves[row]) == {0.5, -2.0} and 1800 < np.sum(halves[row] < 0) < 2200
    assert not np.array_equal(five[0], five[1])


def test_constants_are_of_fdata_or_idata():
    def constants():
        bytes_of = fn.constant(idata=(-1, 1, 300), dtype=types.UINT8)
        return fn.constant(fdata=(1.25, 3)), fn.constant(idata=-4, shape=(2, 2), layout="AB"), bytes_of

    floats, filled, cut = (each[0] for each in values_of(constants))
    assert (floats.tolist(), floats.dtype) == ([1.25, 3.0], np.float32)
    assert (filled.tolist(), filled.dtype) == ([[-4, -4]] * 2, np.int32)
    assert cut.tolist() == [0, 1, 255]
    for wrong in ({}, {"idata": 1, "fdata": 1.0}, {"idata": [1, 2], "shape": 3}):
        with pytest.raises(leat.InvalidArgument, match="fn.constant: .*expected"):
            values_of(lambda: fn.constant(**wrong))  # noqa: B023


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fn.random.choice(2, p=0.25), "Unexpected shape"),
        (lambda: fn.random.choice([1, 2], p=[1.5, 0.5]), "in range .* got: 1.5 for sample: 0 at index 0"),
        (lambda: fn.random.choice([1, 2], p=[0.25, 0.25]), "must be 1.0, but got 0.5"),
        (lambda: fn.random.choice(-5), "positive number of elements for sampling, got: -5"),
        (lambda: fn.random.choice(5.0), "not supported for 0D"),
        (lambda: fn.random.choice([*range(1, 300)], shape=3), "299 values.*expected 256"),
    ],
)
def test_choices_that_there_are_not_are_refused(call, words):
    with pytest.raises(leat.InvalidArgument, match=words):
        values_of(call)

# SPDX-License-Identifier: Apache-2.0
"""Constants, draws and axes of leat.dali; the expected numbers are DALI 2.4's results on the CPU."""

import leat
import numpy as np
import pytest
import threads
from leat.dali import Pipeline, fn, ops, pipeline_def, types
from leat.dali.pipeline import do_not_convert


def outputs_of(function, batch_size=2, **arguments):
    return [np.array(each) for each in pipeline_def(batch_size=batch_size, **arguments)(function)().run()]


def pixels():
    """Returns 4 × 4 pixels of one channel."""
    given = (np.arange(2 * 4 * 4) * 7 % 29).astype(np.uint8).reshape(2, 4, 4, 1)
    return fn.external_source(lambda: list(given), layout="HWC", dtype=types.UINT8)


def test_axes_by_number_take_the_place_of_the_default_names():
    def parts():
        by_number = fn.slice(pixels(), start=(1, 2), shape=(2, 1), axes=(0, 1))
        erased = fn.erase(pixels(), anchor=(1, 2), shape=(2, 1), axes=(0, 1), fill_value=99.0)
        return by_number, fn.slice(pixels(), start=(1, 2), shape=(2, 1)), erased

    by_number, by_name, erased = (each[0].ravel().tolist() for each in outputs_of(parts))
    assert (by_number, by_name) == ([13, 12], [5, 12])
    assert erased == [0, 7, 14, 21, 28, 6, 99, 20, 27, 5, 99, 19, 26, 4, 11, 18]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: fn.slice(x, start=(0, 0), shape=(1, 1), axis_names="HW"),
        lambda x: fn.erase(x, anchor=(0, 0), shape=(1, 1), axis_names="WH"),
        lambda x: fn.normalize(x, axis_names="HW"),
        lambda x: fn.pad(x, axis_names="HW", shape=(9, 9)),
    ],
)
def test_names_of_axes_that_have_none_are_refused(use):
    def named():
        return use(fn.external_source(lambda: np.zeros((2, 4, 4, 1), np.uint8)))

    with pytest.raises(leat.InvalidArgument, match=r"fn\.\w+: axis_names = '..' of .*have no names.*expected axes"):
        pipeline_def(batch_size=2)(named)()


def test_axes_by_number_and_by_name_exclude_each_other():
    with pytest.raises(leat.InvalidArgument, match=r"fn.pad: axes = \(0, 1\) and axis_names = 'HW'; expected one"):
        outputs_of(lambda: fn.pad(pixels(), axes=(0, 1), axis_names="HW", shape=(9, 9)))


def test_floats_between_pixels_are_not_rounded_to_bytes():
    def between():
        matrix = [0.9, 0.1, 0.5, -0.1, 0.9, 0.5]
        return (
            fn.rotate(pixels(), angle=30.0, size=(2, 2), dtype=types.FLOAT),
            fn.warp_affine(pixels(), matrix=matrix, size=(2, 2), dtype=types.FLOAT),
            fn.gaussian_blur(pixels(), window_size=3, dtype=types.FLOAT),
        )

    turned, warped, blurred = (each[0].ravel()[:4].tolist() for each in outputs_of(between))
    assert turned == pytest.approx([8.401923, 13.964102, 9.343267, 9.598076], abs=1e-5)
    assert warped == pytest.approx([8.9, 9.5, 14.499999, 9.3], abs=1e-5)
    assert blurred == pytest.approx([10.10388, 9.83487, 13.52201, 17.176092], abs=1e-5)


def test_fractions_of_sizes_and_places_in_elements_are_left_out():
    def parts():
        part = fn.slice(pixels(), start=(1.9, 2.6), shape=(1.7, 2.2), axes=(0, 1))
        return part, fn.crop(pixels(), crop=(2.9, 1.6)), fn.slice(pixels(), start=(1,), end=(2.9,), axes=(0,))

    part, window, rows = outputs_of(parts)
    assert part[0].ravel().tolist() == [13, 20]
    assert (window.shape[1:3], rows.shape[1:3]) == ((2, 1), (1, 4))


@pytest.mark.parametrize(("mask", "first"), [(0, 0), (1, 21), (2, 26), (3, 18)])
def test_a_mirror_of_a_resized_window_is_a_mask_of_directions(mask, first):
    def mirrored():
        node = fn.external_source(lambda: np.int32([mask] * 2), dtype=types.INT32, ndim=0)
        window = {"size": (4, 4), "crop": (4, 4)}
        constant = fn.resize_crop_mirror(pixels(), mirror=mask, **window)
        return constant, fn.resize_crop_mirror(pixels(), mirror=node, **window)

    constant, varying = outputs_of(mirrored)
    assert constant[0].flat[0] == first
    np.testing.assert_array_equal(constant, varying)


def test_a_layout_goes_with_the_number_of_axes():
    def shaped():
        same, other = fn.reshape(pixels(), shape=(2, 8, 1)), fn.reshape(pixels(), shape=(4, 4))
        return same, other, fn.python_function(pixels(), function=lambda x: x)

    pipeline = pipeline_def(batch_size=2)(shaped)()
    assert [each.layout() for each in pipeline.run()] == ["HWC", "", ""]


def test_a_layout_of_a_transposition_names_its_axes_and_orders_nothing():
    def turned():
        x = fn.external_source(lambda: np.arange(48, dtype=np.uint8).reshape(2, 2, 3, 4), layout="HWC", ndim=3)
        return (
            fn.transpose(x, output_layout="CHW"),
            fn.transpose(x, perm=(2, 0, 1), transpose_layout=False),
            fn.transpose(x, perm=(2, 0, 1)),
        )

    pipeline = pipeline_def(batch_size=2)(turned)()
    reverse, kept, named = pipeline.run()
    assert (reverse.shape()[0], reverse.layout()) == ((4, 3, 2), "CHW")
    assert reverse.at(0).ravel()[:4].tolist() == [0, 12, 4, 16]
    assert (kept.shape()[0], kept.layout(), kept.at(0).ravel()[:4].tolist()) == ((4, 2, 3), "HWC", [0, 4, 8, 12])
    assert named.layout() == "CHW"
    with pytest.raises(leat.InvalidArgument, match="output_layout = 'AB' of 3 axes"):
        outputs_of(lambda: fn.transpose(pixels(), output_layout="AB"))


def test_a_table_of_whole_numbers_rounds_one_half_away_from_zero():
    def looked_up():
        x = fn.external_source(lambda: np.uint8([[0, 1, 2]] * 2), dtype=types.UINT8)
        table = {"keys": [1, 2], "values": [5.4, 6.5], "default_value": -1.5}
        return tuple(fn.lookup_table(x, **table, dtype=each) for each in (types.INT32, types.FLOAT))

    whole, floats = (each[0].tolist() for each in outputs_of(looked_up))
    assert whole == [-2, 5, 7]
    assert floats == pytest.approx([-1.5, 5.4, 6.5])


def test_shot_noise_without_a_factor_is_refused():
    with pytest.raises(leat.InvalidArgument, match="fn.noise.shot: factor = 0.0; expected more than 0"):
        outputs_of(lambda: fn.noise.shot(pixels(), factor=0.0))


def test_a_constant_may_be_larger_than_an_argument_of_the_service():
    large = np.arange(80 * 70 * 3).astype(np.uint8).reshape(80, 70, 3)

    def flipped():
        node = types.Constant(large, layout="HWC", name="large")
        return fn.flip(node), types.Constant(5.5, shape=(100, 100))

    turned, filled = outputs_of(flipped)
    np.testing.assert_array_equal(turned, np.stack([large[:, ::-1]] * 2))
    assert (filled.shape, filled.dtype, set(filled.ravel().tolist())) == ((2, 100, 100), np.float32, {5.5})
    threads.wait_until_ended("leat._iterators.external")  # nothing refers to the pipeline any more


def test_a_function_of_constants_runs_beside_a_reader(tmp_path):
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", np.int32([i, 10 * i]))

    def beside():
        doubled = fn.python_function(types.Constant(np.int32([1, 2])), function=lambda x: 2 * x)
        return doubled, fn.readers.numpy(file_root=tmp_path), doubled + 1

    doubled, read, more = outputs_of(beside)
    assert doubled.tolist() == [[2, 4], [2, 4]]
    assert read.tolist() == [[0, 0], [1, 10]]
    assert more.tolist() == [[3, 5], [3, 5]]


def test_constants_in_the_shape_of_another_value():
    def like():
        x = fn.external_source(lambda: [np.float32([[1, np.nan, 3]])] * 2, dtype=types.FLOAT)
        ones = fn.ones_like(x, dtype=types.UINT8)
        return fn.zeros_like(x), ones, fn.full_like(ones, 7.0), fn.shapes(fn.ones(shape=(3, 4)))

    zeros, ones, sevens, shape = outputs_of(like)
    assert (zeros[0].tolist(), zeros.dtype) == ([[0, 0, 0]], np.float32)
    assert (ones[0].tolist(), ones.dtype) == ([[1, 1, 1]], np.uint8)
    assert (sevens[0].tolist(), sevens.dtype) == ([[7, 7, 7]], np.uint8)
    assert (shape[0].tolist(), shape.dtype) == ([3, 4], np.int64)
    with pytest.raises(leat.InvalidArgument, match="fn.zeros_like: the type of .* is not known"):
        outputs_of(lambda: fn.zeros_like(fn.external_source(lambda: [np.float32([1])] * 2) + 1))


def test_a_layout_that_does_not_name_the_axes_of_a_constant_is_refused():
    pipeline = pipeline_def(batch_size=1)(lambda: fn.zeros(shape=(2, 3), layout="HWC"))()
    with pytest.raises(leat.InvalidArgument, match="Layout 'HWC' has 3 dimensions but output shape has 2"):
        pipeline.run()


def test_many_numbers_are_drawn_of_their_distributions():
    def drawn():
        return (
            fn.random.uniform(range=(2.0, 6.0), shape=(50, 60, 3)),
            fn.random.normal(mean=5.0, stddev=2.0, shape=(9000,)),
            fn.random.coin_flip(probability=0.25, shape=(9000,)),
        )

    uniform, normal, coins = outputs_of(drawn, seed=5)
    assert (uniform.shape, normal.shape, coins.shape) == ((2, 50, 60, 3), (2, 9000), (2, 9000))
    assert 2 <= uniform.min() < 2.01 and 5.99 < uniform.max() < 6
    # Each is a mean of 18,000 draws: the tolerances are five of its standard deviations.
    assert uniform.mean() == pytest.approx(4.0, abs=0.043) and uniform.std() == pytest.approx(1.1547, abs=0.02)
    assert normal.mean() == pytest.approx(5.0, abs=0.075) and normal.std() == pytest.approx(2.0, abs=0.053)
    assert coins.mean() == pytest.approx(0.25, abs=0.0162) and set(coins.ravel().tolist()) == {0, 1}
    assert np.mean(uniform[0] == uniform[1]) < 0.01  # each sample has its own draws
    assert len(np.unique(uniform)) > 17000  # and each element
    again = outputs_of(drawn, seed=5)
    np.testing.assert_array_equal(uniform, again[0])
    assert not np.array_equal(uniform, outputs_of(drawn, seed=6)[0])


def test_a_class_feeds_its_sources_before_each_step():
    class Counting(Pipeline):
        def __init__(self):
            super().__init__(2, 1, None)
            self.source, self.steps = ops.ExternalSource(), 0

        def define_graph(self):
            self.numbers = self.source()
            return self.numbers * 2

        def iter_setup(self):
            if self.steps == 2:
                raise StopIteration
            self.feed_input(self.numbers, np.int32([[self.steps], [10]]))
            self.steps += 1

    pipeline = Counting()
    assert [pipeline.run()[0].as_array().ravel().tolist() for _ in range(2)] == [[0, 20], [2, 20]]
    with pytest.raises(StopIteration):
        pipeline.run()


def test_one_output_is_not_taken_for_several():
    from collections.abc import Iterable

    with Pipeline(batch_size=1):
        node = fn.zeros(shape=(2,))
    assert not isinstance(node, Iterable)
    with pytest.raises(TypeError, match="DataNode"):
        first, second = node  # noqa: F841


def test_conditionals_of_a_lambda_without_a_choice():
    @do_not_convert
    def helper(x):
        return x + 1

    assert do_not_convert()(helper) is helper
    make = lambda: helper(fn.zeros(shape=(2,)))  # noqa: E731
    assert outputs_of(make, enable_conditionals=True)[0].tolist() == [[1, 1], [1, 1]]
    choose = lambda: fn.ones() if fn.random.coin_flip() else fn.zeros()  # noqa: E731
    with pytest.raises(leat.PipelineError, match="no function that `def` defines"):
        pipeline_def(choose, batch_size=1, enable_conditionals=True)


def test_a_constant_of_one_number_is_cast_as_the_script_says():
    def parts():
        x = fn.zeros(shape=(1,), dtype=types.UINT8) + types.Constant(50).uint8()
        return x - types.Constant(48).uint8(), x / types.Constant(4.0).float32(), x + types.Constant(2.7).int32()

    found = outputs_of(parts, batch_size=1)
    assert [(each.dtype.name, each.ravel().tolist()) for each in found] == [
        ("uint8", [2]),
        ("float32", [12.5]),
        ("int32", [52]),
    ]
    assert isinstance(types.Constant(True), types.ScalarConstant) and types.Constant(2.7).uint8().float32().value == 2.0
    for method in ("int8", "int16", "uint16", "uint32", "uint64", "float64"):
        with pytest.raises(leat.InvalidArgument, match=f"{method.upper()}; Leat's workers compute"):
            getattr(types.Constant(1), method)()


def test_no_window_is_the_whole_image():
    def windows():
        return fn.crop(pixels()), fn.resize_crop_mirror(pixels(), size=(4, 4)), pixels()

    cropped, resized, whole = outputs_of(windows)
    assert (cropped == whole).all() and resized.shape == whole.shape


class Halves:
    def __call__(self, x):
        return x / 2 if fn.random.coin_flip() else x


def test_where_the_truth_of_a_node_is_asked_decides_what_is_advised():
    def helper(x):
        return x + 1 if fn.random.coin_flip() else x

    def helped():
        return helper(fn.ones())

    def called():
        return Halves()(fn.ones())

    def returns():
        if fn.random.coin_flip():
            return fn.ones()
        return fn.zeros()

    def chained():
        x = fn.ones()
        if fn.random.coin_flip():
            x = x + 1 if 0 < fn.random.uniform() < 1 else x
        return x

    own = "An `if` that returns.*chained comparison"
    for function, conditional, words in [
        (helped, True, "which is helped, and this `if` is in helper: let helper return both values.*in helped"),
        (called, True, r"this `if` is in (Halves\.)?__call__: let"),
        (returns, True, own),
        (chained, True, own),
        (helped, False, r"With pipeline_def\(enable_conditionals=True\)"),
    ]:
        with pytest.raises(TypeError, match=words):
            pipeline_def(function, batch_size=1, enable_conditionals=conditional)()


def test_a_constant_is_on_the_device_that_the_script_says():
    with Pipeline(batch_size=1):
        assert [types.Constant(1, device=each).device for each in ("gpu", "cpu", None)] == ["gpu", "cpu", "cpu"]
        assert types.ScalarConstant(2.5).dtype == "float32" and types.ScalarConstant(True).sizes == ()
        with pytest.raises(TypeError, match=r"ScalarConstant: value = \[1\] \(list\); expected a number"):
            types.ScalarConstant([1])

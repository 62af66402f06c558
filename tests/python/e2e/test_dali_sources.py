# SPDX-License-Identifier: Apache-2.0
"""leat.dali's external sources and calls in this process, over a private service."""


import leat
import numpy as np
import pytest
import threads
from conftest import TINY_JPEG
from interrupts import Interrupts
from leat.dali import Pipeline, fn, pipeline_def, types
from leat.dali._node import consumer_call
from leat.dali.tensors import TensorListCPU

FEEDS = "leat._iterators.external"


def test_a_source_is_asked_for_batches_until_it_stops():
    asked = []

    def batch(info):
        asked.append((info.iteration, info.epoch_idx))
        if info.iteration == 3:
            raise StopIteration
        return np.full((2, 3), info.iteration, np.int32), [np.uint8([1]), np.uint8([2])]

    @pipeline_def(batch_size=2)
    def given():
        a, b = fn.external_source(batch, num_outputs=2, batch_info=True)
        return a, a + 1, b

    pipeline = given()
    for epoch in range(2):
        values = []
        while True:
            try:
                a, b, c = pipeline._next()
            except StopIteration:
                break
            values.append(a[0, 0])
            np.testing.assert_array_equal(b, a + 1)
            assert c.tolist() == [[1], [2]]
        assert values == [0, 1, 2]
        with pytest.raises(StopIteration):
            pipeline._next()
        pipeline.reset()
    assert asked == [(i, epoch) for epoch in range(2) for i in range(4)]


@pytest.mark.parametrize(
    "given, wanted",
    [
        (types.INT8, np.int32),
        (types.INT16, np.int32),
        (types.UINT16, np.int32),
        (types.INT64, np.int64),
        (types.FLOAT64, np.float32),
    ],
)
def test_arithmetic_on_a_source_of_any_type_of_numbers(given, wanted):
    batch = np.arange(6).reshape(2, 3).astype(types.to_numpy_type(given))

    @pipeline_def(batch_size=2)
    def doubled():
        return fn.external_source(lambda: batch, dtype=given) * 2

    (result,) = doubled()._next()
    np.testing.assert_array_equal(result, 2 * np.arange(6).reshape(2, 3))
    assert result.dtype == wanted


def test_a_source_may_be_beside_a_reader_and_begin_again_at_any_time(ten):
    def batch(i):
        if i == 3:
            raise StopIteration
        return np.full((2, 1), 100 * i, np.int32)

    @pipeline_def(batch_size=2)
    def both():
        label = fn.readers.file(file_root=ten)[1]
        return label + fn.external_source(batch), label

    def values(pipeline, most):
        found = []
        try:
            while len(found) < most:
                found.append(pipeline._next()[0].ravel().tolist())
        except StopIteration:
            found.append("end")
        return found

    pipeline = both()
    assert values(pipeline, 9) == [[0, 1], [102, 103], [204, 205], "end"]
    assert values(pipeline, 9) == ["end"]
    pipeline.reset()
    # The next batch follows the last one handed out, though more had been requested ahead.
    assert values(pipeline, 1) == [[6, 7]]
    pipeline.reset()
    assert values(pipeline, 9) == [[8, 9], [100, 101], [202, 203], "end"]


def test_a_source_is_asked_for_samples_of_encoded_images():
    def sample(info):
        assert info.idx_in_epoch == info.iteration * 2 + info.idx_in_batch
        return np.frombuffer(TINY_JPEG, np.uint8), np.int32(info.idx_in_epoch)

    @pipeline_def(batch_size=2)
    def given():
        jpegs, number = fn.external_source(sample, num_outputs=2, batch=False)
        return fn.decoders.image(jpegs)[:4, :4], number

    pipeline = given()
    for step in range(3):
        image, number = pipeline._next()
        assert image.shape == (2, 4, 4, 3)
        assert number.tolist() == [2 * step, 2 * step + 1]


def test_sizes_of_a_source_may_change_between_batches():
    def batch(i):
        return [np.full((2 + i, 3, 1), i, np.uint8), np.full((2, 3 + i, 1), i, np.uint8)]

    @pipeline_def(batch_size=2, prefetch_queue_depth=2)
    def given():
        return fn.resize(fn.external_source(batch, layout="HWC"), size=(2, 2))

    pipeline = given()
    for step in range(5):
        np.testing.assert_array_equal(pipeline._next()[0], np.full((2, 2, 2, 1), step, np.uint8))


def test_generators_and_cycles():
    def generator():
        for i in range(2):
            yield np.full((2, 1), i, np.int32)

    def epoch(pipeline, most=5):
        values = []
        try:
            while len(values) < most:
                values.append(int(pipeline._next()[0][0, 0]))
        except StopIteration:
            pipeline.reset()
        return values

    @pipeline_def(batch_size=2)
    def given(cycle):
        return fn.external_source(generator, cycle=cycle)

    once, quiet, again = given(None), given("quiet"), given("raise")
    assert [epoch(once), epoch(once)] == [[0, 1], []]
    assert epoch(quiet) == [0, 1, 0, 1, 0]
    assert [epoch(again), epoch(again)] == [[0, 1], [0, 1]]


def test_a_checkpoint_says_where_sources_are():
    def batch(info):
        if info.iteration == 3:
            raise StopIteration
        return np.full((2, 1), 10 * info.epoch_idx + info.iteration, np.int32)

    def generator():
        for i in range(4):
            yield np.full((2, 1), i, np.int32)

    @pipeline_def(batch_size=2)
    def given():
        x = fn.external_source(batch, batch_info=True)
        return x + 0, fn.external_source(generator, cycle="raise")

    def value(pipeline):
        return [int(each[0, 0]) for each in pipeline._next()]

    pipeline = given()
    assert [value(pipeline) for _ in range(3)] == [[0, 0], [1, 1], [2, 2]]
    with pytest.raises(StopIteration):
        pipeline._next()
    pipeline.reset()
    assert value(pipeline) == [10, 0]
    resumed = given(checkpoint=pipeline._state())
    assert resumed._state() == pipeline._state()
    assert [value(each) for each in (pipeline, resumed)] == [[11, 1], [11, 1]]


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (np.zeros((3, 1), np.uint8), "batch of 3 samples"),
        (np.zeros((2, 1), np.uint64), "uint64"),
        ("text", "expected arrays of numbers"),
    ],
)
def test_a_wrong_batch_of_a_source_is_an_error(batch, words):
    @pipeline_def(batch_size=2)
    def given():
        return fn.cast(fn.external_source(lambda: batch), dtype=types.FLOAT)

    with pytest.raises(leat.InvalidArgument, match=words):
        given()._next()


def test_a_pipeline_that_nobody_holds_leaves_no_threads():
    threads.wait_until_ended(FEEDS)

    @pipeline_def(batch_size=2)
    def given():
        return fn.cast(fn.external_source(lambda: np.zeros((2, 1), np.uint8)), dtype=types.FLOAT)

    pipeline = given()
    pipeline._next()
    assert len(threads.running(FEEDS)) == 1
    del pipeline
    threads.wait_until_ended(FEEDS)


def test_an_exception_in_a_source_or_a_call_is_the_callers():
    def broken(_=None):
        raise KeyError("mine")

    with Pipeline(batch_size=2) as first:
        first.set_outputs(fn.external_source(broken))
    with Pipeline(batch_size=2) as second:
        (value,) = consumer_call(broken, [fn.random.uniform()], 1, None, True)
        second.set_outputs(value)
    for pipeline in (first, second):
        with pytest.raises(KeyError, match="mine"):
            pipeline._next()


def test_steps_that_workers_compute_of_a_source_are_whole_wherever_an_interrupt_falls():
    @pipeline_def(batch_size=2, prefetch_queue_depth=3)
    def given():
        x = fn.external_source(lambda i: np.full((2, 1), i, np.int32))
        y = fn.external_source([np.full((2, 1), 100 * i, np.int32) for i in range(20_000)])
        return x + y, consumer_call(lambda arrays: arrays, [x * 2], 1)[0]

    pipeline, got = given(), []
    done = False
    with Interrupts(5, (1e-3, 3e-3, 10e-3)) as interrupts:
        while not done:
            try:
                while interrupts.raised < 50 or len(got) < 60:
                    if interrupts.raised < 50 and not interrupts.armed:
                        interrupts.arm()
                    for values in map(Pipeline._next, [pipeline] * 5):
                        got.append(values)
                done = True
            except KeyboardInterrupt:
                pass
    assert [[each.ravel().tolist() for each in values] for values in got] == [
        [[101 * i] * 2, [2 * i] * 2] for i in range(len(got))
    ]
    pipeline.close()
    threads.wait_until_ended(FEEDS)


@pytest.mark.parametrize("batch", [True, False])
def test_the_rows_of_an_array_are_the_values_of_several_outputs(batch):
    given = np.arange(12, dtype=np.int32).reshape((2, 2, 3) if batch else (3, 4))

    @pipeline_def(batch_size=2)
    def parts():
        return tuple(fn.external_source(lambda: given, num_outputs=2, batch=batch))

    first, second = (np.asarray(each) for each in parts()._next())
    np.testing.assert_array_equal(first, given[0] if batch else [given[0]] * 2)
    np.testing.assert_array_equal(second, given[1] if batch else [given[1]] * 2)


def test_an_array_of_too_few_rows_is_not_several_outputs():
    @pipeline_def(batch_size=2)
    def parts():
        return tuple(fn.external_source(lambda: np.zeros((1, 2, 3), np.int32), num_outputs=2))

    with pytest.raises(leat.InvalidArgument, match="num_outputs says a tuple of 2"):
        parts()._next()


def given(source, batch_size=2, **arguments):
    @pipeline_def(batch_size=batch_size)
    def pipeline():
        return fn.external_source(source, **arguments)

    return pipeline()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda *many: 0, r"var-positional argument `\*many`"),
        (lambda one, **more: 0, r"var-keyword argument `\*\*more`"),
        (lambda *, only=1: 0, "keyword-only argument `only`"),
        (lambda one, two: 0, "more than one positional argument"),
    ],
)
def test_a_function_of_other_arguments_is_no_source(function, words):
    with pytest.raises(TypeError, match=words):
        given(function)


def test_batches_stay_of_one_type_and_number_of_axes():
    ones = [np.ones((2, 3), np.int32), np.ones((2, 3), np.float32), np.ones((2, 3, 1), np.int32)]
    for source, words in (
        (ones[:2], "Type in the previous iteration was int32 and the current type is float"),
        (ones[::2], "in the previous iteration was 1 and the current is 2"),
    ):
        pipeline = given(source)
        pipeline.run()
        with pytest.raises(RuntimeError, match=words):
            pipeline.run()
    for arguments, words in (
        ({"dtype": types.UINT8}, "expected data of type uint8 and got: int32"),
        ({"ndim": 3}, "expected data with 3 dimensions and got 1 dimensions"),
    ):
        with pytest.raises(RuntimeError, match=words):
            given(ones, **arguments).run()
    with pytest.raises(RuntimeError, match="does not match the ndim"):
        given(ones, ndim=2, layout="HWC")


def test_the_layout_of_a_batch_is_that_of_the_output():
    batches = [TensorListCPU(np.zeros((2, 3), np.int32), layout) for layout in ("A", "A", "B")]
    pipeline = given(batches)
    assert [pipeline.run()[0].layout() for _ in range(2)] == ["A", "A"]
    with pytest.raises(RuntimeError, match='previous iteration was "A" and the current is "B"'):
        pipeline.run()
    named = given(batches, layout="X")
    assert [named.run()[0].layout() for _ in range(3)] == ["X", "X", "X"]


def test_outputs_that_nobody_needs_are_a_warning():
    @pipeline_def(batch_size=2)
    def two():
        return fn.external_source(lambda: [np.zeros((2, 1), np.int32)] * 3, num_outputs=3)[1]

    with pytest.warns(Warning, match="produces 3 outputs, but the outputs at the indices 0, 2 are not used"):
        two().build()


def test_a_source_is_asked_for_its_axes_and_gives_the_batch_all_the_same():
    asked = []

    def batch(i):
        asked.append(i)
        return [np.full((1, 2 + row, 3 + i), 10 * i + row, np.int32) for row in range(2)]

    @pipeline_def(batch_size=2, enable_checkpointing=True)
    def axes():
        x = fn.external_source(batch)
        ends = x[:, -1:], x[:, -1]
        return fn.squeeze(x, axes=0), fn.expand_dims(x, axes=[0, 3]), x[0, 1], fn.stack(x, x), x.shape(), *ends

    pipeline = axes()
    assert asked == [0]
    for step in range(2):
        squeezed, expanded, part, stacked, shape, last, at_last = pipeline.run()
        assert squeezed.shape() == [(2, 3 + step), (3, 3 + step)]
        assert expanded.shape() == [(1, 1, 2, 1, 3 + step), (1, 1, 3, 1, 3 + step)]
        assert np.array(part).tolist() == [[10 * step] * (3 + step), [10 * step + 1] * (3 + step)]
        assert stacked.shape() == [(2, 1, 2, 3 + step), (2, 1, 3, 3 + step)]
        assert np.array(shape).tolist() == [[1, 2, 3 + step], [1, 3, 3 + step]]
        assert last.shape() == [(1, 1, 3 + step)] * 2
        assert at_last.shape() == [(1, 3 + step)] * 2
    assert asked[:3] == [0, 1, 2]
    restored = axes(checkpoint=pipeline.checkpoint())
    assert np.array(restored.run()[2]).tolist() == [[20] * 5, [21] * 5]


def test_a_negative_index_counts_from_each_samples_own_end():
    @pipeline_def(batch_size=2)
    def ends():
        x = fn.external_source(lambda: [np.arange(2 + row, dtype=np.int32) for row in range(2)])
        return x[-1], x[-2:]

    last, two = ends().run()
    assert last.as_array().ravel().tolist() == [1, 2]
    assert two.as_array().tolist() == [[0, 1], [1, 2]]


def test_a_source_is_asked_for_its_type():
    def like(source):
        x = fn.external_source(source)
        return fn.zeros_like(x), fn.full_like(x, 7)

    zeros, sevens = pipeline_def(like, batch_size=2)(lambda: np.ones((2, 3), np.float32)).run()
    assert (zeros.dtype, sevens.dtype, sevens.shape()) == (types.FLOAT, types.FLOAT, [(3,)] * 2)
    assert not np.any(zeros.as_array()) and np.all(sevens.as_array() == 7)


def test_an_axis_that_is_left_out_has_one_element():
    @pipeline_def(batch_size=1)
    def squeezed():
        return fn.squeeze(fn.external_source(lambda: np.zeros((1, 3, 4), np.int32), ndim=2), axes=0)

    with pytest.raises(leat.Error, match="12 elements do not fill the shape"):
        squeezed().run()

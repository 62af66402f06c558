# SPDX-License-Identifier: Apache-2.0
"""Batches that external sources and functions give: whole, alike, and each once."""

import leat
import numpy as np
import pytest
from leat.dali import fn, pipeline_def
from leat.dali.tensors import TensorListCPU


def pipeline_of(source, batch_size=2, **arguments):
    return pipeline_def(lambda: fn.external_source(source, **arguments), batch_size=batch_size)()


def epochs_of(pipeline, count):
    found = []
    for _ in range(count):
        found.append([])
        try:
            while len(found[-1]) < 9:
                found[-1].append(pipeline._next()[0].ravel().tolist())
        except StopIteration:
            pipeline.reset()
    return found


class Numbers:
    """Gives 0, 1 … below `count`, ends, and begins again."""

    def __init__(self, count):
        self._count, self._next = count, 0

    def __call__(self):
        if self._next == self._count:
            self._next = 0
            raise StopIteration
        self._next += 1
        return np.int32([self._next - 1])


class Iterated(Numbers):
    """The same, over which one iterates; it can also be called, for something else."""

    def __iter__(self):
        return self

    def __next__(self):
        return Numbers.__call__(self)

    def __call__(self):
        raise AssertionError("called")


@pytest.mark.parametrize("source", [Numbers, Iterated])
def test_samples_before_the_end_that_fill_no_batch_are_dropped(source):
    assert epochs_of(pipeline_of(source(5), batch=False), 3) == [[[0, 1], [2, 3]]] * 3


def test_what_can_be_iterated_over_is_not_called():
    assert epochs_of(pipeline_of(Iterated(2), batch_size=1), 2) == [[[0], [1]]] * 2


def test_an_object_whose_call_is_a_generator_makes_iterators():
    class Generating:
        def __call__(self):
            yield from (np.int32([[i]]) for i in range(2))

    assert epochs_of(pipeline_of(Generating(), batch_size=1, cycle="raise"), 2) == [[[0], [1]]] * 2


@pytest.mark.parametrize("source", [lambda: np.int32([[1]]), (np.int32([[i]]) for i in range(2)), Numbers(3)])
@pytest.mark.parametrize("cycle", [True, "quiet", "raise"])
def test_what_cannot_begin_again_does_not_cycle(source, cycle):
    with pytest.raises(leat.InvalidArgument, match="cycle = .* of source .*expected an iterable"):
        pipeline_of(source, cycle=cycle)


MIXED = [np.float32([1]), np.float64([2])]
SKEWED = [np.zeros((2, 3), np.int32), np.zeros(2, np.int32)]


@pytest.mark.parametrize(("samples", "words"), [(MIXED, "float32 with 1 .*float64"), (SKEWED, "1 axes .*2 axes")])
def test_samples_of_a_batch_have_one_type_and_number_of_axes(samples, words):
    for source in (lambda: samples, lambda: TensorListCPU(samples)):
        with pytest.raises(leat.InvalidArgument, match=f"fn.external_source: output 0: a batch has .*{words}"):
            pipeline_of(source).run()

    @pipeline_def(batch_size=2)
    def called():
        row = fn.external_source(lambda: np.int32([0, 1]))
        return fn.python_function(row, function=lambda i: samples[int(i)])

    with pytest.raises(leat.InvalidArgument, match=f"fn.python_function: output 0: a batch has .*{words}"):
        called().run()


def test_a_checkpoint_behind_the_end_of_its_source_is_refused():
    def batches(count):
        @pipeline_def(batch_size=1, enable_checkpointing=True)
        def given():
            return fn.external_source([np.int32([[i]]) for i in range(count)])

        return given

    pipeline = batches(3)()
    for _ in range(3):
        pipeline.run()
    with pytest.raises(leat.InvalidArgument, match="behind 3 batches of the source, which ended after 2"):
        batches(2)(checkpoint=pipeline.checkpoint()).build()


def checkpointed(source, batch_size=1, **arguments):
    @pipeline_def(batch_size=batch_size, enable_checkpointing=True)
    def given():
        return fn.external_source(source(), **arguments)

    return given


def value(pipeline):
    return int(pipeline.run()[0].at(0)[0])


def test_a_checkpoint_counts_what_came_before_its_epoch():
    """A source that cycles quietly continues after a reset where it was."""
    given = checkpointed(lambda: [np.int32([[i]]) for i in range(3)], cycle="quiet")
    pipeline = given()
    assert [value(pipeline) for _ in range(2)] == [0, 1]
    pipeline.reset()
    assert [value(pipeline) for _ in range(2)] == [2, 0]
    restored = given(checkpoint=pipeline.checkpoint())
    assert [value(each) for each in (pipeline, restored)] == [1, 1]
    assert restored.checkpoint() == pipeline.checkpoint()


@pytest.mark.parametrize("more", [0, 1])
def test_a_checkpoint_is_behind_the_ends_that_a_source_reported(more):
    asked = []

    class Batches(Numbers):
        def __call__(self):
            asked.append(1)
            return super().__call__()[None]

    given = checkpointed(lambda: Batches(3))
    pipeline = given()
    assert [value(pipeline) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(StopIteration):
        pipeline.run()
    pipeline.reset()
    assert [value(pipeline) for _ in range(more)] == list(range(more))
    checkpoint = pipeline.checkpoint()
    asked.clear()
    restored = given(checkpoint=checkpoint)
    restored.build()
    assert len(asked) == (1 if more else 3), "only the batches since it began again are asked for"
    assert [value(each) for each in (pipeline, restored)] == [more, more]

# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and exceptions in leat.dali: no step of a reader, a source or a sibling of it is skipped or repeated."""

import itertools
import threading
import types

import numpy as np
import pytest
from dali_fake import FakePipeline
from interrupts import INTERRUPTS, Interrupts, gone_through

import leat
from leat._iterators.numbered import Numbered
from leat.dali import Pipeline, fn
from leat.dali._node import consumer_call
from leat.dali.plugin.base_iterator import BaseIterator, LastBatchPolicy


class Plain(BaseIterator):
    """Makes batches that are lists of the first output of each pipeline, as lists."""

    def __init__(self, pipelines, reader_name="reader", **options):
        super().__init__(
            pipelines, -1, reader_name, **{"auto_reset": True, **options}, fill_last_batch=None, last_batch_padded=False
        )

    def _convert(self, outputs):
        return [arrays[0].ravel().tolist() for arrays in outputs]

    def _mark(self, batch, valid):
        return [*batch, *(flags.tolist() for flags in valid)]

    def _trim(self, batch, rows):
        return [samples[:count] for samples, count in zip(batch, rows)]


def undisturbed(iterator, count):
    got = []
    while len(got) < count:
        got.extend(itertools.islice(iterator, count - len(got)))
    return got


def interrupted(seed, make, count):
    """Compares the batches of interrupted iterators with those of an undisturbed one, until enough interrupts came."""
    expected = undisturbed(make(), count)
    with Interrupts(seed) as interrupts:
        while interrupts.raised < INTERRUPTS:
            assert gone_through(interrupts, make(), count) == expected


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("policy", list(LastBatchPolicy))
def test_epochs_of_several_pipelines_are_whole(ahead, policy):
    pads = policy is LastBatchPolicy.MASK

    def make():
        pipelines = [FakePipeline(11, 2, shard, 2, ahead=ahead, pad=pads) for shard in range(2)]
        return Plain(pipelines, last_batch_policy=policy, prepare_first_batch=True)

    interrupted(1, make, 60)


def test_checkpoints_say_what_was_handed_out():
    def make(checkpoint=None):
        pipeline = FakePipeline(11, 2, ahead=True, enable_checkpointing=True, checkpoint=checkpoint)
        return Plain(pipeline, last_batch_policy=LastBatchPolicy.FILL, prepare_first_batch=False)

    got, it = [], make()
    with Interrupts(2) as interrupts:
        while interrupts.raised < INTERRUPTS:
            try:
                interrupts.arm()
                for batch in it:
                    got.append(batch)
                    interrupts.arm()
                interrupts.armed = False
            except KeyboardInterrupt:
                it = make(it.checkpoints()[0])
    assert got == undisturbed(make(), len(got))


def numbers():
    for i in range(9):
        yield np.full((2, 1), i, np.int32)


KINDS = {
    "a function of the number": lambda: fn.external_source(lambda i: np.full((2, 1), i, np.int32)),
    "an iterator": lambda: fn.external_source(iter([np.full((2, 1), i, np.int32) for i in range(2000)])),
    "a list again and again": lambda: fn.external_source([np.full((2, 1), i, np.int32) for i in range(7)], cycle=True),
    "samples": lambda: fn.external_source(lambda info: np.int32([info.idx_in_epoch]), batch=False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_steps_of_sources_are_whole(kind):
    def make():
        with Pipeline(batch_size=2, prefetch_queue_depth=2) as pipeline:
            given, other = KINDS[kind](), fn.external_source(lambda i: np.full((2, 1), 1000 + i, np.int32))
            (both,) = consumer_call(lambda arrays: [np.hstack(arrays)], [given, other], 1)
            pipeline.set_outputs(both, other)
        return pipeline

    def taken(pipeline, interrupts=None):
        got = []
        while len(got) < 40:
            try:
                if interrupts is not None:
                    interrupts.arm()
                for outputs in map(Pipeline.run, [pipeline] * (40 - len(got))):
                    got.append(outputs)
                    if interrupts is not None:
                        interrupts.arm()
            except KeyboardInterrupt:
                pass
        if interrupts is not None:
            interrupts.armed = False
        return [[each.as_array().tolist() for each in outputs] for outputs in got]

    expected = taken(make())
    with Interrupts(3) as interrupts:
        while interrupts.raised < INTERRUPTS:
            assert taken(make(), interrupts) == expected


def raising_once(at):
    """Returns a function of batches that raises in call number `at`."""
    calls = iter(range(10**6))

    def function(arrays):
        if next(calls) == at:
            raise ArithmeticError("transient")
        return arrays

    return function


@pytest.mark.parametrize("source", [lambda i: np.full((2, 1), i, np.int32), numbers, list(numbers())])
def test_an_exception_of_a_call_skips_no_step(source):
    with Pipeline(batch_size=2) as pipeline:
        pipeline.set_outputs(consumer_call(raising_once(2), [fn.external_source(source)], 1)[0])
    values = []
    while len(values) < 6:
        try:
            values.append(int(pipeline._next()[0][0, 0]))
        except ArithmeticError:
            values.append("transient")
    assert values == [0, 1, "transient", 2, 3, 4]


def test_an_exception_of_one_source_skips_no_step_of_its_siblings():
    broken = raising_once(1)

    def second(i):
        broken(None)
        return np.full((2, 1), 10 + i, np.int32)

    with Pipeline(batch_size=2) as pipeline:
        pipeline.set_outputs(fn.external_source(iter(list(numbers()))), fn.external_source(second))
    values = []
    while len(values) < 4:
        try:
            values.append([int(each[0, 0]) for each in pipeline._next()])
        except ArithmeticError:
            values.append("transient")
    assert values == [[0, 10], "transient", [1, 11], [2, 12]]


def test_a_generator_function_goes_on_where_an_exception_ended_its_generator():
    broken = raising_once(2)

    def generator():
        for i in range(5):
            broken(None)
            yield np.full((2, 1), i, np.int32)

    def values(source):
        with Pipeline(batch_size=2) as pipeline:
            pipeline.set_outputs(fn.external_source(source))
        found = []
        while True:
            try:
                found.append(int(pipeline._next()[0][0, 0]))
            except ArithmeticError:
                found.append("transient")
            except StopIteration:
                return found

    assert values(generator) == [0, 1, "transient", 2, 3, 4]
    broken = raising_once(2)
    with pytest.raises(leat.FailedPrecondition, match="a generator, which an exception ended after 2"):
        values(generator())


def test_a_run_that_fails_gives_back_what_it_was_fed():
    with Pipeline(batch_size=2) as pipeline:
        x = fn.external_source(name="x")
        pipeline.set_outputs(consumer_call(raising_once(1), [x], 1)[0])
    batches = list(numbers())
    assert pipeline.run(x=batches[0])[0].as_array()[0, 0] == 0
    with pytest.raises(ArithmeticError, match="transient"):
        pipeline.run(x=batches[1])
    assert pipeline.run(x=batches[2])[0].as_array()[0, 0] == 2
    pipeline.feed_input("x", batches[3])
    assert pipeline.run()[0].as_array()[0, 0] == 3


class ReaderPipeline(FakePipeline):
    """Labels of a job of the library."""

    def __init__(self, job, rows):
        super().__init__(100, len(rows), ahead=True)
        self._batches = Numbered(job, rows=rows)

    def _take(self, step, timeout=None):
        labels = self._batches.at(step, timeout)["label"]
        return types.SimpleNamespace(outputs=[labels], after=step + 1)


def test_steps_of_readers_are_whole(job, fake):
    """The library's iterators are opened again where an interrupt left them at another position."""
    live, threads = fake.live(), threading.active_count()

    def make():
        pipelines = [ReaderPipeline(job, range(first, first + 5)) for first in (0, 5)]
        return Plain(pipelines, last_batch_policy=LastBatchPolicy.FILL, prepare_first_batch=False)

    interrupted(4, make, 40)
    assert fake.live() == live and threading.active_count() == threads


def test_any_step_may_be_asked_for_again(job):
    batches = Numbered(job)
    steps = [0, 1, 1, 2, 9, 10, 3, 4]
    assert [int(batches.at(step)["label"][0]) for step in steps] == [step % 10 * 10 for step in steps]
    assert batches.next == 5
    batches.rewind()
    assert batches.next is None and int(batches.at(5)["label"][0]) == 50
    batches.close()
    assert batches.at(6) is None

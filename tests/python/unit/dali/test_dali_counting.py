# SPDX-License-Identifier: Apache-2.0
import json
import pathlib

import pytest
from dali_fake import FakePipeline

from leat.dali.plugin.base_iterator import BaseIterator, LastBatchPolicy

TABLE = json.loads(pathlib.Path(__file__).with_name("dali_epochs.json").read_text())


class Plain(BaseIterator):
    """Makes batches that are lists of the samples of each pipeline."""

    def __init__(self, pipelines, **options):
        names = ("size", "reader_name", "auto_reset", "fill_last_batch", "last_batch_padded", "last_batch_policy")
        defaults = dict(zip(names, (-1, None, False, None, False, LastBatchPolicy.FILL)), prepare_first_batch=True)
        super().__init__(pipelines, **{**defaults, **options})

    def _convert(self, outputs):
        return [arrays[0].ravel().tolist() for arrays in outputs]

    def _trim(self, batch, rows):
        return [samples[:count] for samples, count in zip(batch, rows)]


def epochs(iterator, count):
    """Returns the batches of a training that goes through the iterator again and again."""
    return [list(iterator) for _ in range(count)]


def one(policy="FILL", samples=7, batch=2, **options):
    pipeline = FakePipeline(samples, batch, pad=options.pop("pad", False))
    return Plain(pipeline, reader_name="reader", last_batch_policy=LastBatchPolicy[policy], **options)


@pytest.mark.parametrize("first", range(0, len(TABLE), 40))
def test_epochs_have_the_batches_that_dali_counts(first):
    """dali_epochs.json has the results of DALI's own class for made-up readers (tests/parity/dali_api.py)."""
    for samples, shards, batch, policy, pad, stick, local, reset, expected in TABLE[first : first + 40]:
        pipelines = [FakePipeline(samples, batch, shard, shards, pad=pad, stick=stick) for shard in local]
        it = Plain(
            pipelines,
            reader_name="reader",
            auto_reset=reset,
            last_batch_policy=LastBatchPolicy[policy],
            prepare_first_batch=False,
        )
        for i, (length, size, batches, rows) in enumerate(expected):
            got = iter(it)
            assert (len(got), got.size) == (length, size), (samples, shards, batch, policy, pad, stick, i)
            seen = list(got)
            assert len(seen) == batches
            if rows is not None:
                assert [len(samples) for samples in seen[-1]] == rows


def test_what_does_not_fill_a_batch_carries_over_into_the_next_epoch():
    it = one()
    first, second, third, fourth = epochs(it, 4)
    assert [len(epoch) for epoch in (first, second, third, fourth)] == [4, 3, 4, 3]
    assert first[-1] == [[6, 0]] and second[0] == [[1, 2]]
    assert sorted(sum((batch[0] for batch in first + second), [])) == sorted(2 * [*range(7)])
    assert third == first


@pytest.mark.parametrize(
    ("policy", "pad", "last", "first"),
    [
        ("FILL", True, [6, 6], [0, 1]),
        ("FILL", False, [6, 0], [1, 2]),
        ("DROP", True, [4, 5], [0, 1]),
        ("DROP", False, [4, 5], [1, 2]),
        ("PARTIAL", True, [6], [0, 1]),
        ("PARTIAL", False, [6], [1, 2]),
    ],
)
def test_the_last_batch_and_the_one_after_it_follow_the_policy(policy, pad, last, first):
    it = one(policy, pad=pad)
    assert list(it)[-1] == [last]
    assert next(iter(it)) == [first]


def test_len_and_size_are_those_of_the_epoch_that_begins():
    it = one()
    assert (len(it), it.size) == (4, 8)
    seen = []
    for _ in range(4):
        for _ in it:
            pass
        it.reset()
        seen.append((len(it), it.size))
    assert seen == [(3, 6), (4, 8), (3, 6), (4, 8)]


def test_a_loop_over_the_same_iterator_needs_no_reset_and_auto_reset_does_it_before():
    it = one(samples=6)
    assert epochs(it, 3) == [[[[0, 1]], [[2, 3]], [[4, 5]]]] * 3
    it = one(samples=6)
    assert len(list(it)) == 3
    with pytest.raises(StopIteration):
        it.next()
    it.reset()
    assert it.next() == [[0, 1]]
    automatic = one(samples=6, auto_reset=True)
    for _ in range(2):
        for expected in ([0, 1], [2, 3], [4, 5]):
            assert next(automatic) == [expected]
        with pytest.raises(StopIteration):
            next(automatic)


def test_after_a_break_the_epoch_goes_on_and_the_log_says_so(caplog):
    it = one(samples=8)
    for batch in it:
        break
    assert batch == [[0, 1]]
    assert [batch[0] for batch in it] == [[2, 3], [4, 5], [6, 7]]
    assert "does not support resetting while epoch is not finished" in caplog.text


def test_a_reset_after_len_batches_leaves_the_incomplete_one_out():
    it = one("DROP")
    for _ in range(2):
        assert len([next(it) for _ in range(len(it))]) == 3
        it.reset()
    assert next(it)[0][0] == 16 % 7


def test_shards_rotate_unless_they_stick():
    def shards(stick):
        pipelines = [FakePipeline(8, 2, shard, 2, stick=stick) for shard in range(2)]
        return epochs(Plain(pipelines, reader_name="reader"), 2)

    first, second = [[0, 1], [4, 5]], [[2, 3], [6, 7]]
    assert shards(True) == [[first, second]] * 2
    assert shards(False) == [[first, second], [first[::-1], second[::-1]]]


def test_a_source_ends_the_epoch_and_a_reset_begins_it_again():
    it = Plain(FakePipeline(6, 2, source=True))
    assert len(list(it)) == 3 and it.size == -1
    assert len(list(it)) == 3
    with pytest.raises(StopIteration):
        next(it)
    automatic = Plain(FakePipeline(6, 2, source=True), auto_reset="yes")
    assert len(list(automatic)) == 3
    assert next(automatic) == [[0, 1]]


def test_a_size_without_reader_is_of_all_pipelines():
    with pytest.warns(Warning, match="reader_name"):
        it = Plain([FakePipeline(100, 3), FakePipeline(100, 3)], size=10, last_batch_policy=LastBatchPolicy.PARTIAL)
    assert len(it) == 2
    assert [[len(samples) for samples in batch] for batch in it] == [[3, 3], [3, 1]]
    with pytest.warns(Warning, match="reader_name"):
        it = Plain([FakePipeline(100, 3), FakePipeline(100, 3)], size=10, last_batch_policy=LastBatchPolicy.DROP)
    assert len(it) == len(list(it)) == 1


def test_the_first_batch_is_prepared_unless_told_otherwise():
    prepared, lazy = FakePipeline(), FakePipeline()
    Plain(prepared, reader_name="reader")
    Plain(lazy, reader_name="reader", prepare_first_batch=False)
    assert (prepared.pulled, lazy.pulled) == (1, 0) and lazy.built == 1


def test_the_next_batch_is_taken_if_it_is_there_and_nobody_waits_for_it():
    pipelines = [FakePipeline(8, 2, ahead=True), FakePipeline(8, 2, ahead=True)]
    it = Plain(pipelines, reader_name="reader", prepare_first_batch=False)
    pipelines[1].hold = True
    assert next(it) == [[0, 1], [0, 1]]
    assert [pipeline.pulled for pipeline in pipelines] == [2, 1]
    pipelines[1].hold = False
    assert next(it) == [[2, 3], [2, 3]]
    assert [pipeline.pulled for pipeline in pipelines] == [3, 3]
    assert [batch[0] for batch in it] == [[4, 5], [6, 7]]


def test_what_fails_ahead_fails_in_its_turn():
    class Broken(FakePipeline):
        def _take(self, step, timeout=None):
            if self.pulled == 2:
                raise ValueError("a bad sample")
            return super()._take(step, timeout)

    it = Plain(Broken(8, 2, ahead=True), reader_name="reader")
    assert next(it) == [[0, 1]] and next(it) == [[2, 3]]
    with pytest.raises(ValueError, match="a bad sample"):
        next(it)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("stop", [0, 1, 4, 5, 9])
def test_a_checkpoint_goes_on_at_the_next_batch(stop, ahead):
    def opened(checkpoints=(None, None)):
        pipelines = [
            FakePipeline(11, 2, shard, 2, ahead=ahead, enable_checkpointing=True, checkpoint=checkpoint)
            for shard, checkpoint in enumerate(checkpoints)
        ]
        return Plain(pipelines, reader_name="reader", auto_reset=True)

    def taken(it, count):
        found = []
        while len(found) < count:
            for batch in it:
                found.append(batch)
                if len(found) == count:
                    break
        return found

    expected = taken(opened(), 20)
    it = opened()
    taken(it, stop)
    assert taken(opened(it.checkpoints()), 20 - stop) == expected[stop:]
    assert taken(opened(opened(it.checkpoints()).checkpoints()), 20 - stop) == expected[stop:]


def test_a_checkpoint_at_the_end_of_an_epoch_is_the_end_of_an_epoch():
    it = Plain(FakePipeline(6, 2, enable_checkpointing=True), reader_name="reader")
    list(it)
    again = Plain(FakePipeline(6, 2, enable_checkpointing=True, checkpoint=it.checkpoints()[0]), reader_name="reader")
    with pytest.raises(StopIteration):
        next(again)
    assert len(list(again)) == 3


def test_checkpoints_of_others_are_refused():
    with pytest.raises(ValueError, match="Cannot access checkpoints with checkpointing disabled"):
        one().checkpoints()
    two = [FakePipeline(8, 2, shard, 2, enable_checkpointing=True) for shard in range(2)]
    checkpoint = Plain(two, reader_name="reader").checkpoints()[0]
    with pytest.raises(ValueError, match="another pipeline.*8 in 2.*8 in 1"):
        Plain(FakePipeline(8, 2, enable_checkpointing=True, checkpoint=checkpoint), reader_name="reader")
    first = FakePipeline(8, 2, 0, 2, enable_checkpointing=True, checkpoint=checkpoint)
    with pytest.raises(ValueError, match="another iterator"):
        Plain(first, reader_name="reader")
    with pytest.raises(ValueError, match="same value for `enable_checkpointing`"):
        Plain([FakePipeline(enable_checkpointing=True), FakePipeline()], reader_name="reader")


@pytest.mark.parametrize(
    ("pipelines", "options", "error", "text"),
    [
        (None, {}, AssertionError, "Number of provided pipelines has to be at least 1"),
        ([], {}, AssertionError, "Number of provided pipelines has to be at least 1"),
        ([(7, 2), (7, 3)], {}, AssertionError, "All pipelines should have the same batch size set"),
        ([(7, 2)], {"size": 0}, AssertionError, "Size cannot be 0"),
        ([(7, 2)] * 2, {}, AssertionError, "Negative size is supported only for a single pipeline"),
        ([(7, 2)], {"reader_name": "reader", "size": 7}, AssertionError, "size should not be set"),
        (
            [(7, 2)],
            {"reader_name": "reader", "last_batch_padded": True},
            AssertionError,
            "last_batch_padded should not be set",
        ),
        ([(7, 2)], {"auto_reset": "maybe"}, ValueError, "Unsupported value for `auto_reset`"),
        ([(7, 2)], {"last_batch_policy": "FILL"}, ValueError, "Wrong type for `last_batch_policy`. Expected"),
        ([(7, 2)], {"reader_name": "reeder"}, KeyError, "reeder"),
        ([(7, 2), (8, 2)], {"reader_name": "reader"}, AssertionError, "the same size value in all the pipelines"),
        (
            [(3, 10)],
            {"reader_name": "reader", "last_batch_policy": LastBatchPolicy.DROP},
            RuntimeError,
            "It seems that there is no data in the pipeline",
        ),
    ],
)
def test_wrong_arguments_are_told(pipelines, options, error, text):
    made = pipelines and [FakePipeline(*sizes) for sizes in pipelines]
    with pytest.raises(error, match=text):
        Plain(made, **options)


def test_batches_of_several_sizes_are_refused_where_samples_are_counted():
    def shrinking(samples):
        return [FakePipeline()._outputs(samples)[0][: 2 - samples[0] // 4]]

    with pytest.raises(AssertionError, match="Variable batch size is not supported"):
        list(Plain(FakePipeline(8, 2, outputs=shrinking), reader_name="reader"))


def test_the_deprecated_argument_is_the_policy():
    with pytest.warns(Warning, match="last_batch_policy"):
        it = one(fill_last_batch=False)
    assert list(it)[-1] == [[6]]

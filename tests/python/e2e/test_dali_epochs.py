# SPDX-License-Identifier: Apache-2.0
"""External sources over epochs of leat.dali's iterators, and the order of readers; expected are DALI 2.4's results."""

import importlib

import numpy as np
import pytest
from conftest import TINY_JPEG
from leat.dali import fn, pipeline_def, types


class Restarting:
    """Counts to `count`, ends, and counts again from the beginning."""

    def __init__(self, count):
        self._count, self._given = count, 0

    def __call__(self):
        if self._given == self._count:
            self._given = 0
            raise StopIteration
        self._given += 1
        return np.full((2, 1), self._given, np.int32)


class Counting:
    """The same as an iterator, which also begins again when it is iterated over."""

    def __init__(self, count):
        self._count, self._given = count, 0

    def __iter__(self):
        self._given = 0
        return self

    def __next__(self):
        return Restarting.__call__(self)


def epochs_of(plugin, source, size, cycle=None, ahead=False):
    """Returns the first numbers of the batches of three epochs."""
    iterators = importlib.import_module(f"leat.dali.plugin.{plugin}")

    @pipeline_def(batch_size=2, device_id=None)
    def given():
        numbers = fn.external_source(source, cycle=cycle)
        return fn.cast(numbers, dtype=types.INT64) if ahead else numbers

    iterator = iterators.DALIGenericIterator(given(), ["x"], size=size)
    epochs = []
    for _ in range(3):
        batches = [batch[0] if plugin == "pytorch" else batch for batch in iterator]
        epochs.append([int(batch["x"][0, 0]) for batch in batches])
        iterator.reset()
    return epochs


@pytest.mark.parametrize("plugin", ["jax", "pytorch"])
@pytest.mark.parametrize("kind", [Restarting, Counting])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_source_that_begins_again_by_itself_gives_every_epoch(plugin, kind, ahead):
    pytest.importorskip("torch" if plugin == "pytorch" else "jax")
    assert epochs_of(plugin, kind(4), size=8, ahead=ahead) == [[1, 2, 3, 4]] * 3


def test_a_source_that_ends_for_good_gives_one_epoch():
    pytest.importorskip("jax")
    batches = [np.full((2, 1), i, np.int32) for i in range(4)]
    assert epochs_of("jax", batches, size=8) == [[0, 1, 2, 3], [], []]


def test_an_iterator_is_asked_for_what_follows_and_not_to_begin_again():
    @pipeline_def(batch_size=2)
    def given():
        return fn.external_source(Counting(3))

    pipeline = given()
    assert [int(pipeline._next()[0][0, 0]) for _ in range(3)] == [1, 2, 3]
    with pytest.raises(StopIteration):
        pipeline._next()


@pytest.mark.parametrize("end", [3, 99])
def test_a_numbered_source_begins_again_without_having_ended(end):
    """A script that counts its batches itself never sees the end, which DALI would have met by computing ahead."""

    def batch(info):
        if info.iteration == end:
            raise StopIteration
        return np.full((2, 1), 10 * info.epoch_idx + info.iteration, np.int32)

    @pipeline_def(batch_size=2)
    def given():
        return fn.external_source(batch, batch_info=True)

    pipeline, epochs = given(), []
    for _ in range(2):
        epochs.append([int(pipeline._next()[0][0, 0]) for _ in range(3)])
        pipeline.reset()
    assert epochs == [[0, 1, 2], [10, 11, 12]]


def test_samples_that_the_last_epoch_left_over_are_not_in_the_next_one():
    pytest.importorskip("jax")
    one = Restarting(5)
    from leat.dali.plugin.jax import DALIGenericIterator

    @pipeline_def(batch_size=2, device_id=None)
    def given():
        return fn.external_source(lambda: one()[0], batch=False)

    iterator = DALIGenericIterator(given(), ["x"], size=4)
    epochs = []
    for _ in range(2):
        epochs.append([batch["x"].ravel().tolist() for batch in iterator])
        iterator.reset()
    assert epochs == [[[1, 2], [3, 4]]] * 2


def first_pass(define, samples, **shards):
    """Returns the numbers of one pass over a shard."""
    pipeline = pipeline_def(lambda: define(name="reader", **shards), batch_size=1)()
    pipeline.build()
    assert pipeline.epoch_size("reader") == samples
    count = samples // shards.get("num_shards", 1)
    return [[int(np.ravel(each.at(0))[0]) for each in pipeline.run()] for _ in range(count)]


def test_arrays_are_those_of_the_root_and_of_its_folders_by_name_one_level_deep(tmp_path):
    names = [".h.npy", "a.npy", "b.npy", ".d/x.npy", "a/10.npy", "a/2.npy", "a-b/3.npy", "c/x.npy", "a/b/deep.npy"]
    for number, name in enumerate(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        np.save(tmp_path / name, np.int32([number]))

    def arrays(**shards):
        return fn.readers.numpy(file_root=str(tmp_path), file_filter="*.npy", **shards)

    assert first_pass(arrays, 8) == [[each] for each in range(8)]
    assert first_pass(arrays, 8, num_shards=2, shard_id=1) == [[each] for each in range(4, 8)]


def test_folders_whose_names_begin_with_a_dot_are_classes(tmp_path):
    for name in ("a/x.jpg", "b/notes.txt", ".h/z.jpg", "c/.y.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(TINY_JPEG)

    def labels(**more):
        return fn.readers.file(file_root=str(tmp_path), **more)[1]

    assert first_pass(labels, 3) == first_pass(labels, 3, file_filters="*.jpg") == [[0], [1], [3]]

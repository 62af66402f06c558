# SPDX-License-Identifier: Apache-2.0
"""leat.dali over a private service: outputs whose samples have several shapes, files unchanged, several readers."""

import numpy as np
import pytest
from leat.dali import fn, pipeline_def, types
from leat.dali.plugin import base_iterator

# The last ones exceed the room of the first job.
SHAPES = [(2, 3), (3, 3), (1, 5), (4, 1), (2, 2), (90, 60), (7, 7), (130, 300)]


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrays")
    for i, shape in enumerate(SHAPES):
        np.save(folder / f"{i}.npy", np.full(shape, i, np.float32))
    return folder


@pipeline_def(seed=5, enable_checkpointing=True)
def noisy(folder):
    values = fn.readers.numpy(file_root=str(folder), name="reader")
    return values, values + fn.random.uniform(range=(0.0, 0.5)), fn.random.normal()


def samples_of(pipeline, steps):
    """Returns the outputs of each sample."""
    found = []
    for _ in range(steps):
        found += zip(*([np.array(each) for each in output] for output in pipeline.run()))
    return found


def test_samples_of_several_shapes_are_the_same_in_every_batch_and_after_a_restart(arrays):
    whole = samples_of(noisy(arrays, batch_size=8), 2)
    assert [each[0].shape for each in whole] == SHAPES * 2
    assert all((each[0] == i % 8).all() for i, each in enumerate(whole))
    drawn = [each[1].ravel()[0] - i % 8 for i, each in enumerate(whole)]
    assert len(set(drawn)) == 16 and all(0 <= each < 0.5 for each in drawn)

    small = noisy(arrays, batch_size=2)
    parts = samples_of(small, 5)  # the third has no room at first
    restored = noisy(arrays, batch_size=2, checkpoint=small.checkpoint())
    parts += samples_of(restored, 3)
    for one, other in zip(whole, parts, strict=True):
        for a, b in zip(one, other):
            np.testing.assert_array_equal(a, b)


def test_a_batch_is_a_list_only_where_its_samples_differ(arrays):
    @pipeline_def(batch_size=1)
    def one():
        return fn.readers.numpy(file_root=str(arrays), files=["7.npy", "0.npy"])

    pipeline = one()
    first, second = pipeline.run()[0], pipeline.run()[0]
    assert first.is_dense_tensor() and first.as_array().shape == (1, 130, 300)
    assert second.as_array().shape == (1, 2, 3) and second.dtype == types.FLOAT


def test_files_are_given_as_they_are(ten):
    @pipeline_def(batch_size=10)
    def files():
        encoded, label = fn.readers.file(file_root=ten)
        return encoded, label, fn.decoders.image(encoded)

    encoded, labels, images = files().run()
    names = sorted(path for path in ten.rglob("*.jpg"))
    for file, path, label in zip(encoded, names, labels, strict=True):
        assert np.asarray(file).tobytes() == path.read_bytes() and file.dtype == types.UINT8
        assert int(np.asarray(label)[0]) == names.index(path)
    assert len(images) == 10 and images.layout() == "HWC"


def test_calls_of_this_process_take_and_give_lists(ten):
    given = [[np.full((2 + i + step, 3), i, np.int32) for i in range(3)] for step in range(3)]
    asked = []

    def longer(sample):
        asked.append(sample.shape)
        return np.concatenate([sample, sample[:1]])

    @pipeline_def(batch_size=3)
    def calls():
        values = fn.external_source(given)
        return fn.python_function(values * 2, function=longer) + 1, values * 2

    pipeline = calls()
    for step in range(3):
        result, doubled = pipeline.run()
        for i in range(3):
            assert np.asarray(result[i]).tolist() == [[2 * i + 1] * 3] * (3 + i + step)
            assert np.asarray(doubled[i]).tolist() == [[2 * i] * 3] * (2 + i + step)
    assert asked[:9] == [(2 + i + step, 3) for step in range(3) for i in range(3)]

    @pipeline_def(batch_size=3)
    def lengths():
        sizes = fn.python_function(fn.readers.file(file_root=ten)[0], function=lambda file: np.int64(len(file)))
        return sizes, fn.python_function(function=lambda: np.float32(2), num_outputs=1)

    sizes, twos = lengths().run()
    assert min(np.asarray(sizes).ravel()) > 100 and np.asarray(twos).tolist() == [2, 2, 2]


def test_an_iterator_of_whole_arrays_says_which_output_has_several_shapes(arrays):
    class Arrays(base_iterator.BaseIterator):
        def _convert(self, outputs):
            return [each.shape for each in outputs[0]]

    policy = base_iterator.LastBatchPolicy.FILL
    with pytest.raises(ValueError, match=r"output 0 of the pipeline has samples of several shapes, \(2, 3\) and"):
        Arrays(noisy(arrays, batch_size=2), -1, "reader", False, None, False, policy, True)
    ones = Arrays(noisy(arrays, batch_size=1), -1, "reader", False, None, False, policy, True)
    assert [shapes[0] for shapes in ones] == [(1, *shape) for shape in SHAPES]
    (pipeline,) = ones._pipes
    for method in (pipeline.run, pipeline.schedule_run, pipeline.share_outputs, pipeline.release_outputs):
        with pytest.raises(RuntimeError, match="Currently used: PipelineAPIType.ITERATOR"):
            method()
    pipeline.enable_api_check(False)
    assert len(pipeline.run()[0]) == 1


@pipeline_def(batch_size=3, seed=1, enable_checkpointing=True)
def two_readers(ten, arrays, **shards):
    a = fn.readers.file(file_root=ten, name="a", random_shuffle=True, **shards)[1]
    b = fn.readers.file(file_root=ten, name="b", random_shuffle=True)[1]
    values = fn.readers.numpy(file_root=str(arrays), name="values")
    return a, b, a * 100 + b, values * fn.random.coin_flip(probability=1.0)


def test_readers_go_on_each_by_itself(ten, arrays):
    pipeline = two_readers(ten, arrays)
    meta = pipeline.reader_meta()
    assert [(name, meta[name]["epoch_size"]) for name in meta] == [("a", 10), ("b", 10), ("values", 8)]
    found = samples_of(pipeline, 10)
    a, b, both, values = zip(*found)
    a, b, both = (np.ravel(each).tolist() for each in (a, b, both))
    for order in (a, b):
        assert all(sorted(order[at : at + 10]) == list(range(10)) for at in (0, 10, 20))
    assert a != b and both == [100 * x + y for x, y in zip(a, b)]
    assert [each.shape for each in values] == [SHAPES[i % 8] for i in range(30)]

    restored = two_readers(ten, arrays, checkpoint=pipeline.checkpoint())
    for one, other in zip(samples_of(pipeline, 4), samples_of(restored, 4), strict=True):
        assert [each.tolist() for each in one] == [each.tolist() for each in other]
    with pytest.raises(Exception, match="another pipeline"):
        two_readers(ten, arrays, checkpoint=pipeline.checkpoint(), num_shards=2).build()


def test_outputs_say_which_files_they_are_made_of(ten, arrays):
    names = [str(path) for path in sorted(ten.rglob("*.jpg"))]

    @pipeline_def(batch_size=3)
    def three():
        label = fn.readers.file(file_root=ten, name="a", shard_id=1, num_shards=2)[1]
        other = fn.readers.numpy(file_root=str(arrays), name="b")
        called = fn.python_function(label, other, function=lambda x, y: x + y.size, num_outputs=1)
        return label, other, called, fn.external_source(lambda: np.zeros((3, 1)))

    pipeline = three()
    for _ in range(3):
        label, other, called, source = pipeline.run()
        files = label.get_property("source_info")
        assert files == [names[int(np.asarray(each)[0])] for each in label]
        values = [each.source_info() for each in other]
        assert values == [str(arrays / f"{int(np.asarray(each).flat[0])}.npy") for each in other]
        assert called[-1].source_info() == f"{files[2]};{values[2]}"
        assert source[0].source_info() == "" and label[1:][0].get_property("source_info") == files[1]

# SPDX-License-Identifier: Apache-2.0
"""leat.dali over a private service: shards, passes and values as in DALI."""

import os
import subprocess

import leat
import numpy as np
import pytest
from leat.dali import Pipeline, fn, pipeline_def, tfrecord, types
from leat.dali._node import consumer_call


@pipeline_def(seed=3)
def labels_of(folder, **reader):
    return fn.readers.file(file_root=folder, name="reader", **reader)[1]


def steps(pipeline, count):
    return [pipeline._next()[0].ravel().tolist() for _ in range(count)]


def test_a_shard_runs_on_into_the_next_and_batches_across_passes(ten):
    first = labels_of(ten, num_shards=3, shard_id=0, batch_size=4)
    last = labels_of(ten, num_shards=3, shard_id=2, batch_size=4)
    # Shards are 0-2, 3-5 and 6-9.
    assert steps(first, 4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1], [2, 3, 4, 5]]
    assert steps(last, 4) == [[6, 7, 8, 9], [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
    assert first.reader_meta("reader") == {
        "epoch_size": 10,
        "epoch_size_padded": 10,
        "number_of_shards": 3,
        "shard_id": 0,
        "pad_last_batch": 0,
        "stick_to_shard": 0,
    }
    assert last.epoch_size("reader") == 10
    assert last.epoch_size() == {"reader": 10}
    with pytest.raises(leat.NotFound, match="no reader 'other'; the pipeline has 'reader'"):
        last.reader_meta("other")


def test_a_pipeline_may_stick_to_its_shard(ten):
    pipeline = labels_of(ten, num_shards=3, shard_id=1, stick_to_shard=True, batch_size=4)
    assert steps(pipeline, 3) == [[3, 4, 5, 3], [4, 5, 3, 4], [5, 3, 4, 5]]


def test_padding_repeats_the_last_sample_until_all_shards_have_given_as_many(ten):
    pipelines = [labels_of(ten, num_shards=3, shard_id=k, pad_last_batch=True, batch_size=3) for k in range(3)]
    assert steps(pipelines[0], 3) == [[0, 1, 2], [2, 2, 2], [3, 4, 5]]
    assert steps(pipelines[2], 3) == [[6, 7, 8], [9, 9, 9], [0, 1, 2]]


def test_only_a_reader_that_pads_has_more_samples_with_those_that_pad(ten):
    pipeline = labels_of(ten, num_shards=3, shard_id=1, pad_last_batch=True, batch_size=4)
    assert [pipeline.reader_meta("reader")[key] for key in ("epoch_size", "epoch_size_padded")] == [10, 12]
    assert pipeline.epoch_size("reader") == 12


def test_the_seed_of_a_shuffle_after_each_epoch_decides_its_order(ten):
    orders = [
        steps(labels_of(ten, shuffle_after_epoch=True, shuffle_after_epoch_seed=seed, batch_size=10), 2)
        for seed in (1, 2, 1)
    ]
    assert orders[0] == orders[2] != orders[1]


def test_shuffled_files_are_permuted_before_they_are_cut_into_shards(ten):
    pipelines = [labels_of(ten, num_shards=2, shard_id=k, random_shuffle=True, batch_size=5) for k in range(2)]
    passes = [[pipeline._next()[0].ravel().tolist() for pipeline in pipelines] for _ in range(4)]
    for parts in passes:
        assert sorted(parts[0] + parts[1]) == list(range(10))
    assert len({tuple(parts[0] + parts[1]) for parts in passes}) == 4
    assert any(sorted(parts[0]) != list(range(5)) for parts in passes)


@pytest.mark.parametrize(
    ("reader", "sizes"),
    [
        ({"random_shuffle": True}, [(3, 3, 4), (3, 4, 3), (4, 3, 3)]),
        ({"shuffle_after_epoch": True}, [(3, 3, 4)] * 3),
    ],
)
def test_shards_of_one_pass_hold_each_sample_once(ten, reader, sizes):
    pipelines = [labels_of(ten, num_shards=3, shard_id=k, batch_size=1, **reader) for k in range(3)]
    assert pipelines[0].reader_meta("reader")["stick_to_shard"] == int("shuffle_after_epoch" in reader)
    passes = [[sum(steps(each, n), []) for each, n in zip(pipelines, of)] for of in sizes]
    for parts in passes:
        assert sorted(sum(parts, [])) == list(range(10))
    assert len({tuple(sum(parts, [])) for parts in passes}) == len(passes)


def test_padded_shards_of_a_shuffled_pass_hold_each_sample(ten):
    padded = {"num_shards": 3, "pad_last_batch": True, "random_shuffle": True, "batch_size": 2}
    pipelines = [labels_of(ten, shard_id=k, **padded) for k in range(3)]
    passes = [[sum(steps(each, 2), []) for each in pipelines] for _ in range(4)]
    for parts in passes:
        assert set(sum(parts, [])) == set(range(10))
        assert all(len(part) == 4 for part in parts)
    assert len({tuple(sorted(set(parts[0]))) for parts in passes}) > 1


def test_fewer_samples_than_shards_is_an_error(ten):
    with pytest.raises(
        leat.InvalidArgument, match="The number of input samples: 10, needs to be at least equal to .*11"
    ):
        labels_of(ten, num_shards=11, shard_id=3, batch_size=2).build()


def test_a_pipeline_may_define_its_graph_in_a_method(ten):
    class Labels(Pipeline):
        def define_graph(self):
            return fn.reshape(fn.readers.file(file_root=ten)[1], shape=[])

    assert steps(Labels(batch_size=3), 2) == [[0, 1, 2], [3, 4, 5]]


def test_pipelines_over_one_file_of_records_have_features_of_their_own(ten, tmp_path):
    """A worker that has read a record for one of them must not give its fields to another."""
    records = tmp_path / "records"
    program = os.path.join(os.environ["LEAT_NATIVE_DIR"], "leat")
    subprocess.run([program, "convert", ten, records, "--to", "tfrecord"], check=True, capture_output=True)
    (file,) = records.glob("*.tfrecord")
    known = {
        "image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "image/class/label": tfrecord.FixedLenFeature([], tfrecord.int64, -1),
    }

    @pipeline_def(batch_size=5)
    def features(*names):
        read = fn.readers.tfrecord(path=file, features={name: known[name] for name in names})
        return tuple(fn.peek_image_shape(read[name]) if "encoded" in name else read[name] for name in names)

    image, label = known
    pipelines = [features(*names) for names in ((image, label), (label, image), (label,))]
    for step in range(2):
        values = {image: [[24, 32, 3]] * 5, label: list(range(5 * step, 5 * step + 5))}
        for pipeline, names in zip(pipelines, ((image, label), (label, image), (label,))):
            assert [part.tolist() for part in pipeline._next()] == [values[name] for name in names]


def test_run_gives_lists_of_tensors(ten):
    @pipeline_def(batch_size=2)
    def images():
        jpegs, labels = fn.readers.file(file_root=ten)
        return fn.decoders.image(jpegs, output_type=types.GRAY)[:8, :9], fn.cast(labels, dtype=types.FLOAT16)

    image, label = images().run()
    assert (len(image), image.layout(), image.dtype, image.shape()) == (2, "HWC", types.UINT8, [(8, 9, 1)] * 2)
    assert image.as_array().shape == (2, 8, 9, 1) and image.as_tensor().shape() == [2, 8, 9, 1]
    assert image.is_dense_tensor() and image.as_cpu() is image
    np.testing.assert_array_equal(image.at(1), image[1])
    assert (label.dtype, label.as_array().tolist()) == (types.FLOAT16, [[0.0], [1.0]])


# 8 pixels in a row, resized as DALI does.
@pytest.mark.parametrize(
    ("width", "antialias", "expected"),
    [
        (4, True, [6, 25, 45, 64]),  # 6.25, 25, 45, 63.75
        (4, False, [5, 25, 45, 65]),
        (3, True, [10, 35, 60]),  # 9.767, 35, 60.233
        (12, True, [0, 5, 12, 18, 25, 32, 38, 45, 52, 58, 65, 70]),  # 0, 5, 11.667, 18.333, …
    ],
)
def test_resizing_is_dalis(width, antialias, expected):
    row = np.arange(0, 80, 10, dtype=np.uint8).reshape(1, 1, 8, 1)

    @pipeline_def(batch_size=1)
    def resized():
        return fn.resize(fn.external_source(lambda i: row, layout="HWC"), size=(1, width), antialias=antialias)

    assert resized()._next()[0].ravel().tolist() == expected


def test_a_crop_in_the_middle_of_a_half_pixel_is_rounded_away_from_zero():
    places = np.broadcast_to(np.arange(33, dtype=np.uint8)[None, :, None, None], (1, 33, 33, 1))

    @pipeline_def(batch_size=1)
    def cropped():
        x = fn.external_source(lambda i: places, layout="HWC")
        rounded = fn.crop_mirror_normalize(x, crop=(32, 32))
        return rounded, fn.crop_mirror_normalize(x, crop=(32, 32), rounding="truncate"), fn.crop(x, crop=(32, 32))

    rounded, truncated, plain = cropped()._next()
    assert (rounded[0, 0, 0, 0], truncated[0, 0, 0, 0], plain[0, 0, 0, 0]) == (1, 0, 1)


def test_one_hot_of_a_label_of_one_element_is_a_vector(ten):
    @pipeline_def(batch_size=3)
    def hot():
        label = fn.readers.file(file_root=ten)[1]
        return fn.one_hot(label, num_classes=10), fn.one_hot(label, num_classes=10, axis=1, on_value=2.0)

    vector, row = hot()._next()
    np.testing.assert_array_equal(vector, np.eye(10, dtype=np.float32)[:3])
    np.testing.assert_array_equal(row, 2 * np.eye(10, dtype=np.float32)[:3, None])


def test_stacked_and_joined_values_are_in_their_places():
    @pipeline_def(batch_size=2)
    def joined():
        x = fn.external_source(lambda i: np.float32([[1, 2], [3, 4]]), ndim=1, dtype=types.FLOAT)
        x = fn.reshape(x, shape=[2])
        a = x[0]
        return fn.stack(a, x[1], a * 10), fn.cat(x, x + 4), fn.stack(x, -x, axis=1), x.shape()

    stacked, cat, columns, shape = joined()._next()
    assert stacked.tolist() == [[1, 2, 10], [3, 4, 30]]
    assert cat.tolist() == [[1, 2, 5, 6], [3, 4, 7, 8]]
    assert columns.tolist() == [[[1, -1], [2, -2]], [[3, -3], [4, -4]]]
    assert shape.tolist() == [[2], [2]]


def test_conditions_choose_for_each_sample(ten):
    @pipeline_def(batch_size=10, enable_conditionals=True, seed=1)
    def chosen():
        label = fn.reshape(fn.readers.file(file_root=ten)[1], shape=[])
        if label > 6 or label == 2:
            result = label * 100
        else:
            result = label
        return label, result

    label, result = chosen()._next()
    assert result.tolist() == [x * 100 if x > 6 or x == 2 else x for x in label.tolist()]


def test_a_call_between_two_jobs_gets_whole_batches_and_later_jobs_get_what_it_gives(ten):
    calls = []

    def call(arrays):
        calls.append([array.shape for array in arrays])
        return [arrays[0].astype(np.float32) * 2 + arrays[1][..., None, None]]

    @pipeline_def(batch_size=4, seed=5, prefetch_queue_depth=3)
    def cut(shard_id=0, num_shards=2):
        jpegs, label = fn.readers.file(file_root=ten, shard_id=shard_id, num_shards=num_shards)
        image = fn.crop(fn.decoders.image(jpegs), crop=(8, 10))
        coin = fn.random.coin_flip()
        (mixed,) = consumer_call(call, [image, label], 1, None, True)
        return fn.flip(mixed, horizontal=coin), mixed, coin, fn.noise.gaussian(mixed), label, image

    pipeline = cut()
    noises = []
    for step in range(6):
        flipped, mixed, coin, noisy, label, image = pipeline._next()
        assert label.ravel().tolist() == [(4 * step + i) % 10 for i in range(4)]
        np.testing.assert_array_equal(mixed, image.astype(np.float32) * 2 + label[:, :, None, None])
        for i in range(4):
            np.testing.assert_array_equal(flipped[i], mixed[i, :, ::-1] if coin[i] else mixed[i])
        noises.append(noisy - mixed)
    assert calls[0] == [(4, 8, 10, 3), (4, 1)]
    assert len(calls) == 6 + 2  # two steps are ahead
    # Another shard, or another step, has other noise.
    other = cut(shard_id=1)
    first = other._next()
    assert not np.allclose(noises[0], first[3] - first[1])
    assert not np.allclose(noises[0], noises[1])
    # The noise is the same at the same position, after a restart too.
    again = cut(checkpoint=None)
    again._next()
    state = again._state()
    resumed = cut(checkpoint=state)
    for expected, value in zip(again._next(), resumed._next()):
        np.testing.assert_array_equal(expected, value)
    assert resumed.is_restored_from_checkpoint and not again.is_restored_from_checkpoint


def test_python_functions_see_samples_or_batches_as_arrays(ten):
    @pipeline_def(batch_size=3)
    def computed():
        label = fn.readers.file(file_root=ten)[1]
        double = fn.python_function(label, function=lambda x: x * 2)
        both = fn.python_function(
            label, double, function=lambda a, b: (a, [x + 1 for x in b]), num_outputs=2, batch_processing=True
        )
        return (fn.cast(double, dtype=types.FLOAT), *fn.cast(list(both), dtype=types.INT64))

    double, same, odd = computed()._next()
    assert (double.ravel().tolist(), same.ravel().tolist(), odd.ravel().tolist()) == ([0, 2, 4], [0, 1, 2], [1, 3, 5])
    assert (double.dtype, odd.dtype) == (np.float32, np.int64)


def test_a_step_whose_call_failed_is_the_next_one_again(ten):
    failures = [None, None, RuntimeError("not today"), None]

    def call(arrays):
        failure = failures.pop(0) if failures else None
        if failure:
            raise failure
        return [arrays[0] * 2]

    @pipeline_def(batch_size=3)
    def failing():
        label = fn.readers.file(file_root=ten)[1]
        (double,) = consumer_call(call, [label], 1, None, True)
        return label, double + 1

    pipeline = failing(prefetch_queue_depth=1)
    assert steps(pipeline, 2) == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(RuntimeError, match="not today"):
        pipeline._next()
    label, odd = pipeline._next()
    assert (label.ravel().tolist(), odd.ravel().tolist()) == ([6, 7, 8], [13, 15, 17])


def test_a_checkpoint_that_is_none_is_refused(ten):
    with pytest.raises(leat.InvalidArgument, match="checkpoint"):
        labels_of(ten, batch_size=2, checkpoint=b"nonsense").build()
    other = labels_of(ten, batch_size=3)._state()
    with pytest.raises(leat.InvalidArgument, match="the checkpoint is of another pipeline, batch size"):
        labels_of(ten, batch_size=2, checkpoint=other).build()


def test_random_numbers_do_not_depend_on_the_batch(ten):
    @pipeline_def(seed=9)
    def drawn():
        return fn.readers.file(file_root=ten)[1], fn.random.uniform(range=(2.0, 3.0)), fn.random.normal(shape=(2,))

    small, large = drawn(batch_size=2), drawn(batch_size=6)
    parts = [small._next() for _ in range(3)]
    whole = large._next()
    for i, expected in enumerate(whole):
        np.testing.assert_array_equal(np.concatenate([part[i] for part in parts]), expected)
    assert ((whole[1] >= 2) & (whole[1] < 3)).all() and np.unique(whole[1]).size == 6


def test_the_types_of_outputs_are_checked(ten):
    good = labels_of(ten, batch_size=2, output_dtype=types.INT32, output_ndim=1)
    assert steps(good, 1) == [[0, 1]]
    with pytest.raises(leat.InvalidArgument, match="output 0 is int32; expected DALIDataType.FLOAT"):
        labels_of(ten, batch_size=2, output_dtype=types.FLOAT)._next()


def test_jobs_over_values_of_this_process_draw_numbers_of_their_own():
    @pipeline_def(batch_size=4, seed=3)
    def noises():
        first = fn.noise.gaussian(fn.external_source(lambda: np.zeros((4, 500), np.float32), dtype=types.FLOAT, ndim=1))
        between = fn.python_function(first, function=np.zeros_like)
        return first, fn.noise.gaussian(between)

    first, second = (np.array(each) for each in noises()._next())
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.1
    assert abs(np.std(second) - 1) < 0.1

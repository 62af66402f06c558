# SPDX-License-Identifier: Apache-2.0
"""leat.dali without a service: the translation of DALI's arguments, and the errors."""


import leat
import numpy as np
import pytest
from leat.dali import Pipeline, _plan, fn, math, newaxis, pipeline_def, tfrecord, types
from leat.dali._node import consumer_call
from leat.dali.auto_aug import auto_augment, rand_augment, trivial_augment


def plan_of(pipeline):
    plan = _plan.make([each.node for each in pipeline._outputs], pipeline._sinks)
    _plan.settle_types(plan)
    return plan


def nodes_of(function, **kwargs):
    """Returns the nodes of the first job's graph, as on the wire."""
    pipeline = pipeline_def(function, batch_size=4, **kwargs)()
    stage = next(each for each in plan_of(pipeline).stages if isinstance(each, _plan.WorkerStage))
    return stage.pipeline("test").to_dict()["nodes"]


def args_of(function, op):
    args = next(each["args"] for each in nodes_of(function) if each["op"] == op)

    def plain(value):
        ((kind, content),) = value.items()
        if kind == "ref":
            return "node"
        values = content["values"] if isinstance(content, dict) else content
        if kind in ("int_value", "ints_value"):
            return [int(each) for each in values] if isinstance(values, list) else int(values)
        return values

    return {name: plain(value) for name, value in args.items()}


def photos():
    return fn.decoders.image(fn.readers.file(file_root="/photos")[0])


def schema_of(function):
    pipeline = pipeline_def(function, batch_size=4)()
    return plan_of(pipeline).stages[0].pipeline("test")._schema


def test_crop_mirror_normalize_has_dalis_defaults():
    args = args_of(lambda: fn.crop_mirror_normalize(photos(), crop=(32, 48)), "crop_mirror_normalize")
    assert args["crop"] == [32, 48]
    assert (args["mean"], args["std"], args["mirror"]) == ([0], [1], False)
    assert (args["dtype"], args["output_layout"], args["rounding"]) == ("float32", "CHW", "round")


def test_shapes_and_types_are_those_of_the_mnist_script():
    def mnist():
        jpegs, labels = fn.readers.caffe2(path="/mnist", random_shuffle=True, name="reader", num_shards=2, shard_id=1)
        images = fn.decoders.image(jpegs, device="mixed", output_type=types.GRAY)
        images = fn.crop_mirror_normalize(images, crop=(28, 28), dtype=types.FLOAT, std=[255.0], output_layout="CHW")
        return fn.reshape(images, shape=[28 * 28]), fn.one_hot(labels.gpu(), num_classes=10)

    pipeline = pipeline_def(batch_size=100)(mnist)()
    images, labels = pipeline._outputs
    assert (images.sizes, images.dtype) == ((784,), "float32")
    assert (labels.sizes, labels.dtype, labels.device) == ((10,), "float32", "gpu")


def test_a_label_has_one_element_and_an_empty_shape_makes_it_a_scalar():
    def labels():
        label = fn.readers.file(file_root="/photos")[1]
        return label, fn.reshape(label, shape=[]), fn.random.coin_flip()

    assert [each["shape"] for each in schema_of(labels)] == [[1], [], []]
    assert [each["dtype"] for each in schema_of(labels)] == ["int32", "int32", "int32"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"size": (3, 4)}, {"size": [3, 4], "mode": "default"}),
        ({"size": 5}, {"size": [5, 5], "mode": "default"}),
        ({"resize_x": 7}, {"size": [0, 7], "mode": "default"}),
        ({"resize_y": 7, "mode": "stretch"}, {"size": [7, 0], "mode": "stretch"}),
        ({"resize_shorter": 7.5}, {"shorter": 7.5}),
        ({"resize_longer": 9, "max_size": 20}, {"longer": 9.0, "max_size": [20, 20]}),
    ],
)
def test_resize_takes_dalis_ways_to_say_a_size(given, expected):
    args = args_of(lambda: fn.crop(fn.resize(photos(), **given), crop=(2, 2)), "resize")
    assert {name: args[name] for name in expected} == expected
    assert args["subpixel_scale"] is True
    assert args["interpolation"] == "linear"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"size": (3, 4), "resize_x": 3},
        {"resize_shorter": 3, "resize_longer": 4},
        {"resize_shorter": 3, "mode": "stretch"},
        {"size": (3, 4), "mode": "larger"},
        {"size": (3, 4), "roi_start": (0, 0)},
        {"size": (0, 0)},
        {"size": (3, 4, 5)},
        {"resize_z": 3},
    ],
)
def test_two_methods_of_resize_or_none_are_an_error_that_names_it(given):
    with pytest.raises(leat.Error, match=r"fn\.resize"):
        fn.resize(photos(), **given)


def test_a_negative_size_mirrors():
    ops = [each["op"] for each in nodes_of(lambda: fn.resize(photos(), size=(-8, 8)))]
    assert ops[-2:] == ["resize", "flip"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: fn.readers.file(file_root="/x", num_shards=2, shard_id=2),
            "num_shards needs to be greater than shard",
        ),
        (lambda: fn.readers.file(), "file_root argument is required"),
        (lambda: fn.readers.file(files=[]), "`files` specified an empty list"),
        (lambda: fn.readers.file(files=["a", "b"], labels=[1]), "Provided 1 labels for 2 files"),
        (lambda: fn.readers.file(files=["a"], file_list="b"), "not both"),
        (lambda: fn.readers.file(file_root="/x", shuffle_after_epoch=True, stick_to_shard=True), "excludes stick"),
        (lambda: fn.readers.caffe2(path="/x", label_type=1), "label_type = 1"),
        (lambda: fn.readers.mxnet(path="x"), "RecordIO"),
        (lambda: fn.permute_batch(fn.random.uniform(), indices=[0]), "permute_batch"),
        (lambda: fn.normalize(photos(), batch=True), "whole batch"),
        (lambda: fn.crop_mirror_normalize(photos(), crop_h=3), "crop_w and crop_h"),
        (lambda: fn.crop_mirror_normalize(photos(), crop=(3, 3), crop_h=3, crop_w=3), "crop is given, and crop_h"),
        (lambda: fn.crop_mirror_normalize(photos(), dtype=types.INT8), "dtype"),
        (lambda: fn.cast(photos(), dtype=types.FLOAT64), "FLOAT64"),
        (lambda: fn.pad(photos()), "differs from sample to sample"),
        (lambda: fn.rotate(photos(), angle=fn.readers.coco(annotations_file="x")[1]), "angle is a node of 2 axes"),
        (lambda: fn.slice(photos(), start=[1, 1], rel_start=[0.5, 0.5]), "start and rel_start"),
        (lambda: fn.random.uniform(range=(2.0, 1.0)), "range"),
    ],
)
def test_a_wrong_argument_is_an_error_that_names_it(call, words):
    with pytest.raises(leat.Error, match=words):
        call()


def test_an_unknown_argument_is_a_type_error_with_the_nearest_one():
    with pytest.raises(TypeError, match=r"fn\.resize has no argument 'resize_short'; did you mean 'resize_shorter'\?"):
        fn.resize(photos(), resize_short=3)
    with pytest.raises(TypeError, match="did you mean 'num_threads'"):
        pipeline_def(lambda: photos(), batch_size=2)(num_thread=2)
    with pytest.raises(AttributeError, match="did you mean 'random_resized_crop'"):
        fn.random_resize_crop
    with pytest.raises(AttributeError, match="there are no videos"):
        fn.optical_flow


def test_hints_are_accepted_and_checked_for_their_type():
    data = fn.readers.file(
        file_root="/photos", initial_fill=16, read_ahead=True, name="r", seed=3, prefetch_queue_depth=2
    )
    assert fn.decoders.image(data[0], device="mixed", hw_decoder_load=0.9, hybrid_huffman_threshold=10).device == "gpu"
    with pytest.raises(TypeError, match="initial_fill = '16'"):
        fn.readers.file(file_root="/photos", initial_fill="16")
    with pytest.raises(ValueError, match="device = 'tpu'"):
        fn.decoders.image(data[0], device="tpu")
    with pytest.raises(TypeError, match="num_threads|set_affinity"):
        Pipeline(set_affinity="yes")


def test_each_reader_has_a_job_with_what_meets_its_values():
    def two():
        a, b = (fn.crop(fn.decoders.image(fn.readers.file(file_root=each)[0]), crop=(8, 8)) for each in ("/a", "/b"))
        coin = fn.random.coin_flip()
        b = fn.flip(b, horizontal=coin)
        return a, b + 1, (a + b) * 2, fn.random.uniform()

    plan = plan_of(pipeline_def(two, batch_size=4)())
    assert [(each.time, each.reader is not None) for each in plan.stages] == [(0, True), (0, True), (2, False)]
    ops = [[each.op for each in stage.operations if each.op not in ("decode", "reshape")] for stage in plan.stages]
    assert ops[0] == ["readers.image_folder", "crop", "uniform"]
    assert sorted(ops[1]) == ["add", "coin_flip", "crop", "flip", "readers.image_folder"]
    assert ops[2] == ["add", "mul"] and len(plan.stages[2].imports) == 2


def test_an_error_of_the_graph_names_the_scripts_line():
    def wrong():
        image = fn.crop(photos(), crop=(8, 8), dtype=types.FLOAT16)
        return fn.rotate(image, angle=10.0, keep_size=True)

    with pytest.raises(leat.InvalidArgument, match=r"(?s)rotate.*float16.*test_dali_graph\.py"):
        nodes_of(wrong)


def test_a_condition_on_a_node_needs_enable_conditionals():
    with pytest.raises(TypeError, match="enable_conditionals=True"):
        if fn.random.coin_flip():
            pass


def test_with_enable_conditionals_an_if_chooses_for_each_sample():
    mirrored = "yes"

    @pipeline_def(batch_size=4, enable_conditionals=True)
    def chosen(way=1):
        image = fn.crop(photos(), crop=(8, 8))
        flag = fn.random.coin_flip(dtype=types.BOOL)
        if way == 1:
            image = fn.flip(image)
        if flag and not fn.random.coin_flip():
            image, label = fn.brightness(image, brightness=0.5), 1
        elif mirrored == "yes":
            label = 2
        else:
            raise AssertionError
        return image, label, 3 if flag else 4

    def ops(pipeline):
        return [each["op"] for each in plan_of(pipeline).stages[0].pipeline("test").to_dict()["nodes"]]

    assert ops(chosen()).count("where") == 3
    assert ops(chosen()).count("flip") == 1
    assert ops(chosen(way=2)).count("flip") == 0
    assert chosen.__name__ == "chosen"


def test_a_name_that_one_branch_only_assigns_is_unbound_after_it():
    @pipeline_def(batch_size=4, enable_conditionals=True)
    def half():
        if fn.random.coin_flip():
            label = fn.random.uniform()
        return label + 1

    with pytest.raises((UnboundLocalError, TypeError, leat.Error), match="label is assigned in one branch only"):
        half()


def test_a_name_that_a_branch_within_a_branch_assigns_is_unbound_after_both():
    @pipeline_def(batch_size=4, enable_conditionals=True)
    def quarter():
        if fn.random.coin_flip():
            if fn.random.coin_flip():
                label = fn.random.uniform()
        return label + 1

    with pytest.raises(UnboundLocalError, match="label is assigned in one branch only"):
        quarter()


def test_branches_may_give_the_same_array():
    @pipeline_def(batch_size=4, enable_conditionals=True)
    def same():
        if fn.random.coin_flip():
            mean, name = np.array([1.0, 2.0, 3.0]), "a"
        else:
            mean, name = np.array([1.0, 2.0, 3.0]), "a"
        return fn.random.uniform() + float(mean[2]) + len(name)

    same()


def test_calls_of_the_consumer_cut_the_graph():
    def cut():
        image = fn.crop(photos(), crop=(8, 8))
        flag = fn.random.coin_flip()
        (doubled,) = consumer_call(lambda arrays: arrays, [image], 1, None, True)
        return fn.flip(doubled, horizontal=flag), image, fn.random.uniform()

    plan = plan_of(pipeline_def(cut, batch_size=4)())
    assert [type(each).__name__ for each in plan.stages] == ["WorkerStage", "ConsumerStage", "WorkerStage"]
    first, _, last = plan.stages
    # The first job draws random numbers without inputs: they depend on the sample.
    assert "coin_flip" in [each.op for each in first.operations]
    assert [each.op for each in last.operations] == ["flip"]
    assert len(last.imports) == 2
    assert sorted(first.exports) == ["input1_of_flip_2_0", "output1", "output2"]


def test_a_call_that_has_to_run_is_kept_though_nothing_needs_it():
    def kept():
        image = fn.crop(photos(), crop=(8, 8))
        consumer_call(lambda arrays: [], [image], 0, None, True)
        consumer_call(lambda arrays: [], [image], 0, None, False)
        return image

    plan = plan_of(pipeline_def(kept, batch_size=4)())
    assert [len(each.operations) for each in plan.stages if isinstance(each, _plan.ConsumerStage)] == [1]


def test_indices_and_ranges():
    def parts():
        image = fn.crop(photos(), crop=(8, 10))
        return image[0], image[..., 1], image[2:4, -3:], image[-1, :, 0], image.shape(), fn.random.uniform(shape=(2,))

    assert [each["shape"] for each in schema_of(parts)] == [[10, 3], [8, 10], [2, 3, 3], [10], [3], [2]]
    with pytest.raises(IndexError):
        fn.crop(photos(), crop=(8, 10))[8]
    assert fn.crop(photos(), crop=(8, 10))[0, fn.random.coin_flip()].sizes == (3,)
    image = fn.crop(photos(), crop=(8, 10))[newaxis("F"), :, 2:, newaxis]
    assert (image.sizes, image.layout) == ((1, 8, 8, 1, 3), "")
    assert fn.crop(photos(), crop=(8, 10))[newaxis("F")].layout == "FHWC"
    assert (photos()[:, :, 0].sizes, photos()[:, :, 0].layout) == ((None, None), "HW")


def test_stack_and_cat():
    def joined():
        a, b = fn.random.uniform(shape=(2,)), fn.random.uniform(shape=(3,))
        return fn.cat(a, b), fn.stack(a, a), fn.stack(fn.random.uniform(), fn.random.uniform())

    pipeline = pipeline_def(joined, batch_size=4)()
    assert [each.sizes for each in pipeline._outputs] == [(5,), (2, 2), (2,)]


def test_channels_first_images_are_turned_for_operators_that_want_them_last():
    def turned():
        return fn.flip(fn.crop_mirror_normalize(photos(), crop=(8, 10)))

    assert [each["op"] for each in nodes_of(turned)][-3:] == ["transpose", "flip", "transpose"]
    assert schema_of(turned)[0]["shape"] == [3, 8, 10]


def test_arithmetic_promotes_as_dali_does():
    def sums():
        x = fn.crop(photos(), crop=(8, 10))
        return x + 1, x * 0.5, x / 2, x + x, x > 3, math.clamp(x, 3, 5), x**2

    assert [each["dtype"] for each in schema_of(sums)] == [
        "int32", "float32", "float32", "uint8", "bool", "int32", "int32",
    ]  # fmt: skip
    with pytest.raises(leat.Unimplemented, match=r"math\.sqrt"):
        math.sqrt(photos())


def test_automatic_augmentation_takes_dalis_arguments():
    image = fn.crop(photos(), crop=(64, 64))
    args = args_of(lambda: rand_augment.rand_augment(image, n=2, m=17, shape=image.shape(), seed=4), "rand_augment")
    assert (args["n"], args["m"], args["num_magnitude_bins"], args["fill_value"]) == (2, 17, 31, 128.0)
    assert args["max_translate_rel"] == [pytest.approx(100 / 224)]
    args = args_of(lambda: trivial_augment.trivial_augment_wide(image, fill_value=None), "trivial_augment_wide")
    assert args["border"] == "edge" and "max_translate_abs" not in args
    args = args_of(lambda: auto_augment.auto_augment(image, "svhn", max_translate_abs=(5, 6)), "auto_augment")
    assert (args["policy"], args["max_translate_abs"]) == ("svhn", [5.0, 6.0])
    with pytest.raises(leat.InvalidArgument, match="policy"):
        auto_augment.auto_augment(image, "mnist")


def test_a_feature_is_an_image_file_if_something_decodes_it():
    def records():
        features = {
            "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
            "text": tfrecord.FixedLenFeature([], tfrecord.string, ""),
            "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
            "box": tfrecord.VarLenFeature([4], tfrecord.float32, 0.0),
        }
        read = fn.readers.tfrecord(path="a.tfrecord", index_path="a.idx", features=features)
        return fn.decoders.image(read["image"]), read["text"], read["label"], read["box"]

    assert args_of_records(records) == ["encoded", "bytes", "int64[1]", "float32[?]"]


def args_of_records(function):
    plan = plan_of(pipeline_def(function, batch_size=4)())
    return plan.reader.args["types"]


def test_files_that_filters_choose_are_listed_as_dali_does(tmp_path):
    for name in ("b/2.png", "b/1.PNG", "a/3.jpg", "c/4.png", "B/5.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    args = args_of(lambda: fn.readers.file(file_root=tmp_path, file_filters="*.png")[1], "readers.files")
    # Folders in byte order are the classes, even one that the filter leaves empty.
    assert args["files"] == ["B/5.png", "b/1.PNG", "b/2.png", "c/4.png"]
    assert args["labels"] == [0, 2, 2, 3]
    with pytest.raises(leat.NotFound, match="No files found"):
        fn.readers.file(file_root=tmp_path, file_filters=["*.gif"])


def test_seeds_of_operators_change_the_jobs_seed():
    def drawn(seed):
        return pipeline_def(lambda: fn.random.uniform(seed=seed), batch_size=2, seed=5)()._job_seed()

    assert drawn(-1) == 5
    assert len({drawn(-1), drawn(1), drawn(2)}) == 3
    assert drawn(1) == drawn(1)
    assert pipeline_def(lambda: fn.random.uniform(), batch_size=2, seed=-1)()._job_seed() == 0


def test_a_pipeline_function_may_be_decorated_bare_with_arguments_or_called():
    def one(size, batch=3):
        return fn.crop(photos(), crop=(size, size))

    bare = pipeline_def(one)(8, batch_size=4)
    named = pipeline_def(batch_size=4, num_threads=2, device_id=0)(one)(size=8)
    called = pipeline_def(one, batch_size=3)(8, batch_size=4, batch=2)
    for each in (bare, named, called):
        assert each.max_batch_size == each.batch_size == 4
        assert each._outputs[0].sizes == (8, 8, 3)
    with pytest.raises(leat.InvalidArgument, match="batch_size must be given"):
        pipeline_def(one)(8).build()


def test_outputs_may_be_set_in_a_with_block():
    with Pipeline(batch_size=4, device_id=0, num_threads=3) as pipeline:
        assert Pipeline.current() is pipeline
        pipeline.set_outputs(fn.crop(photos(), crop=(8, 8)), fn.random.coin_flip())
    assert Pipeline.current() is None
    assert pipeline.num_outputs == 2
    with pytest.raises(leat.PipelineError, match="output 1 is NoneType"), pipeline:
        pipeline.set_outputs(fn.random.coin_flip(), None)


@pytest.mark.parametrize("source", [np.arange(3), lambda a, b: 1, 7])
def test_a_source_that_is_none_is_refused(source):
    if isinstance(source, np.ndarray):
        assert fn.external_source(source) is not None
        return
    with pytest.raises((leat.InvalidArgument, TypeError), match=r"fn\.external_source"):
        fn.external_source(source)

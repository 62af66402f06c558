# SPDX-License-Identifier: Apache-2.0
"""The arguments of every function of leat.dali.fn, without a service."""

import inspect
import types as python_types

import leat
import numpy as np
import pytest
from leat.dali import Pipeline, _plan, fn, ops, pipeline_def, tfrecord, types


def encoded():
    return fn.readers.file(file_root="/photos")[0]


def image():
    return fn.crop(fn.decoders.image(encoded()), crop=(8, 10))


def label():
    return fn.readers.file(file_root="/photos")[1]


FEATURES = {"label": tfrecord.FixedLenFeature([], tfrecord.int64, -1)}
WINDOW = {"crop": (4, 4)}
IMAGE, ENCODED, NOTHING = (lambda: (image(),)), (lambda: (encoded(),)), tuple
# The inputs of each operator, the arguments that this call of it needs, and which part of its result is an output.
CALLS = {
    "brightness": (IMAGE, {}),
    "brightness_contrast": (IMAGE, {}),
    "cast": (IMAGE, {"dtype": types.FLOAT}),
    "cast_like": (lambda: (image(), fn.random.uniform()), {}),
    "cat": (lambda: (image(),) * 2, {}),
    "color_space_conversion": (IMAGE, {"image_type": types.RGB, "output_type": types.GRAY}),
    "color_twist": (IMAGE, {}),
    "constant": (NOTHING, {"idata": [1, 2]}),
    "contrast": (IMAGE, {}),
    "copy": (IMAGE, {}),
    "crop": (IMAGE, WINDOW),
    "crop_mirror_normalize": (IMAGE, {}),
    "decoders.image": (ENCODED, {}, lambda x: fn.crop(x, crop=(4, 4))),
    "decoders.image_crop": (ENCODED, WINDOW),
    "decoders.image_random_crop": (ENCODED, {}, lambda x: fn.resize(x, size=4)),
    "decoders.image_slice": (ENCODED, {"start": (1, 1), "shape": (4, 4)}),
    "equalize": (IMAGE, {}),
    "erase": (IMAGE, {"anchor": (1, 1), "shape": (2, 2)}),
    "expand_dims": (IMAGE, {"axes": 0}),
    "external_source": (NOTHING, {"source": len}),
    "flip": (IMAGE, {}),
    "full": (lambda: (7,), {}),
    "full_like": (lambda: (image(), 7), {}),
    "gaussian_blur": (IMAGE, {"sigma": 1.0}),
    "hsv": (IMAGE, {}),
    "hue": (IMAGE, {}),
    "jpeg_compression_distortion": (IMAGE, {}),
    "lookup_table": (IMAGE, {"keys": [1], "values": [2]}),
    "noise.gaussian": (IMAGE, {}),
    "noise.salt_and_pepper": (IMAGE, {}),
    "noise.shot": (IMAGE, {}),
    "normalize": (IMAGE, {}),
    "one_hot": (lambda: (label(),), {"num_classes": 3}),
    "ones": (NOTHING, {}),
    "ones_like": (IMAGE, {}),
    "pad": (IMAGE, {}),
    "peek_image_shape": (ENCODED, {}),
    "python_function": (IMAGE, {"function": len}),
    "random.beta": (NOTHING, {}),
    "random.choice": (lambda: ([1, 2],), {}),
    "random.coin_flip": (NOTHING, {}),
    "random.normal": (NOTHING, {}),
    "random.uniform": (NOTHING, {}),
    "random_resized_crop": (IMAGE, {"size": 4}),
    "readers.caffe": (NOTHING, {"path": "/lmdb"}, lambda both: both[1]),
    "readers.caffe2": (NOTHING, {"path": "/lmdb"}, lambda both: both[1]),
    "readers.coco": (NOTHING, {"annotations_file": "/a.json"}, lambda all: fn.pad(all[2], axes=0, shape=9)),
    "readers.file": (NOTHING, {"file_root": "/photos"}, lambda both: both[1]),
    "readers.numpy": (NOTHING, {"file_root": "/arrays"}),
    "readers.tfrecord": (NOTHING, {"path": "/records", "features": FEATURES}, lambda all: all["label"]),
    "readers.webdataset": (NOTHING, {"paths": "/tar", "ext": "cls", "dtypes": types.INT32}),
    "reinterpret": (IMAGE, {"shape": (80, 3)}),
    "reshape": (IMAGE, {"shape": (80, 3)}),
    "resize": (IMAGE, {"size": (4, 4)}),
    "resize_crop_mirror": (IMAGE, {"size": (6, 6), **WINDOW}),
    "rotate": (IMAGE, {"angle": 30.0}),
    "saturation": (IMAGE, {}),
    "shapes": (lambda: (fn.zeros(shape=(2, 3)),), {}),
    "slice": (IMAGE, {"start": (1, 1), "shape": (4, 4)}),
    "squeeze": (lambda: (image()[:1],), {"axes": 0}),
    "stack": (lambda: (image(),) * 2, {}),
    "transpose": (IMAGE, {"perm": (2, 0, 1)}),
    "warp_affine": (IMAGE, {"matrix": (1, 0, 0, 0, 1, 0)}),
    "zeros": (NOTHING, {}),
    "zeros_like": (IMAGE, {}),
}
# These are refused with any arguments.
REFUSED = {"permute_batch", "readers.mxnet"}


def operators(module=fn):
    """Returns the functions of fn and its groups, by DALI's names."""
    found = {}
    for name, value in vars(module).items():
        if isinstance(value, python_types.ModuleType) and name in ("readers", "decoders", "random", "noise"):
            found |= operators(value)
        elif not name.startswith("_") and getattr(value, "__module__", "") == "leat.dali.fn":
            found[value.__qualname__] = value
    return {**found, "external_source": fn.external_source}


def graph_of(function):
    """Returns the parts of the pipeline's graph, without the numbers that differ between pipelines."""
    pipeline = pipeline_def(function, batch_size=4)()
    plan = _plan.make([each.node for each in pipeline._outputs], pipeline._sinks)
    operations = [
        (each.op, {name: str(value).partition(" at ")[0] for name, value in each.args.items()})
        for stage in plan.stages
        for each in stage.operations
    ]
    sources = [{**vars(each.source), "name": None} for each in plan.sources]
    outputs = [(each.layout, each.sizes, each.dtype, each.device) for each in pipeline._outputs]
    return operations, sources, outputs, plan.reader and plan.reader.reader, pipeline._operator_seeds


def called(operator, /, **more):
    """Returns the graph of the call in CALLS, with more arguments."""
    inputs, needed, *picked = CALLS[operator]

    def result():
        value = operators()[operator](*inputs(), **needed, **more)
        return picked[0](value) if picked else value

    return graph_of(result)


def test_every_operator_is_called_here():
    assert set(operators()) == {*CALLS, *REFUSED}


@pytest.mark.parametrize("name", CALLS)
def test_none_is_the_default_of_every_optional_argument(name):
    plain = called(name)
    parameters = inspect.signature(operators()[name]).parameters.values()
    optional = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is not each.empty]
    optional = [each for each in optional if each not in CALLS[name][1]]
    assert optional
    for argument in optional:
        assert called(name, **{argument: None}) == plain, argument
    assert called(name, **dict.fromkeys(optional)) == plain


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: fn.cast(image(), dtype=None), "dtype"),
        (lambda: fn.rotate(image(), angle=None), "angle"),
        (lambda: fn.random_resized_crop(image(), size=None), "size"),
        (lambda: fn.python_function(image(), function=None), "function"),
    ],
)
def test_none_is_no_value_of_an_argument_that_is_needed(call, argument):
    with pytest.raises(TypeError, match=f"{argument} = None; expected a value"):
        graph_of(call)


@pytest.mark.parametrize(
    "use",
    [
        lambda: fn.cast(image(), dtype=types.UINT64),
        lambda: fn.resize(image(), sise=3),
        lambda: fn.crop(image(), crop_h=3),
        lambda: fn.external_source(7),
        lambda: ops.Resize(sise=3),
    ],
)
def test_an_error_names_the_line_of_the_script_once(use):
    with pytest.raises((TypeError, ValueError)) as error:
        use()
    assert str(error.value).endswith(f" ({__file__}:{use.__code__.co_firstlineno})")
    assert str(error.value).count(__file__) == 1


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("readers.tfrecord", "index_path"),
        ("readers.webdataset", "index_paths"),
        ("readers.numpy", "roi_axes"),
        ("normalize", "axes"),
        ("pad", "axes"),
    ],
)
def test_an_empty_list_of_what_may_be_left_out_is_none(name, argument):
    assert called(name, **{argument: []}) == called(name, **{argument: ()}) == called(name)


def test_no_types_of_a_webdatasets_components_are_bytes():
    def reader(**more):
        return graph_of(lambda: fn.cast(fn.readers.webdataset(paths="/tar", ext="jpg", **more), dtype=types.INT32))

    assert reader(dtypes=[]) == reader(dtypes=[types.UINT8]) == reader()


@pytest.mark.parametrize(
    ("name", "given", "plain"),
    [
        ("resize", {"size": [types.Constant(4), 5]}, {"size": [4, 5]}),
        ("rotate", {"angle": types.Constant(30.0)}, {"angle": 30.0}),
        ("decoders.image_crop", {"crop_h": types.Constant(4).int32(), "crop_w": 4}, {"crop_h": 4, "crop_w": 4}),
        ("flip", {"vertical": types.Constant(1).bool()}, {"vertical": True}),
    ],
)
def test_a_constant_of_one_number_is_that_number(name, given, plain):
    def call(args):
        return graph_of(lambda: operators()[name](*CALLS[name][0](), **args))

    assert call(given) == call(plain)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fn.decoders.image(encoded(), output_type=[]), r"output_type = \[\]"),
        (lambda: fn.resize(image(), size=3, interp_type=[]), r"interp_type = \[\]"),
        (lambda: fn.crop(image(), crop=(2, 2), out_of_bounds_policy=[]), r"out_of_bounds_policy = \[\]"),
        (lambda: fn.pad(image(), fill_value=[]), r"fill_value = \[\]; expected a number"),
        (lambda: fn.resize_crop_mirror(image(), size=4, mirror=[0, 1]), r"mirror = \[0, 1\]; expected a number"),
        (lambda: fn.readers.webdataset(paths=["a", "b"], ext="x", index_paths="i"), "1 files and paths 2"),
    ],
)
def test_an_argument_of_another_kind_is_an_error_that_shows_it(call, words):
    with pytest.raises(leat.InvalidArgument, match=words):
        graph_of(call)


def test_the_defaults_that_none_stands_for_are_those_of_dali():
    operations = called("crop_mirror_normalize", output_layout=None, dtype=None, std=None, mean=None)[0]
    args = operations[-1][1]
    assert (args["output_layout"], args["dtype"], args["mean"], args["std"]) == ("CHW", "float32", "[0.0]", "[1.0]")


def test_none_is_the_default_of_the_pipelines_arguments():
    arguments = [name for name in inspect.signature(Pipeline.__init__).parameters if name not in ("self", "batch_size")]
    with Pipeline(batch_size=2, **dict.fromkeys(arguments)) as pipeline:
        pipeline.set_outputs(fn.external_source(lambda: np.int32([[1], [2]])))
    assert pipeline.run()[0].as_array().tolist() == [[1], [2]]


@pytest.mark.parametrize("name", [name for name in CALLS if name != "external_source"])
def test_an_odd_value_is_taken_or_is_an_error_that_says_the_operator(name):
    inputs, needed, *picked = CALLS[name]
    for argument in inspect.signature(operators()[name]).parameters.values():
        for value in ([], [[]], np.zeros(0), {}, float("nan"), "a\nb"):

            def result(argument=argument, value=value):
                made = operators()[name](*inputs(), **{**needed, argument.name: value})
                return picked[0](made) if picked else made

            if argument.kind is not argument.KEYWORD_ONLY:
                continue
            try:
                graph_of(result)
            except (leat.Error, TypeError, ValueError) as error:
                assert isinstance(error, leat.Error) or "fn." in str(error), (argument.name, value)
                assert len(str(error).split("\n  ", 1)[0].splitlines()) == 1, (argument.name, value)


def test_a_function_of_the_script_keeps_its_error():
    def source():
        return [][1]

    with pytest.raises(IndexError, match="list index out of range"):
        graph_of(lambda: fn.expand_dims(fn.external_source(source, batch=True), axes=0))


def test_a_whole_number_that_is_none_is_named():
    with pytest.raises(leat.InvalidArgument, match=r"fn.constant: idata = .*nan.*; expected numbers"):
        graph_of(lambda: fn.constant(idata=[1, float("nan")]))


def test_an_empty_axis_of_cat_is_named():
    with pytest.raises(leat.InvalidArgument, match=r"fn.cat: axis = \[\]; expected a number"):
        called("cat", axis=[])


def test_a_list_of_arrays_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9.npy\n")
    for name, kind, words in ("none", leat.NotFound, "No such file"), ("latin.txt", leat.InvalidArgument, "UTF-8"):
        with pytest.raises(kind, match=f"fn.readers.numpy: file_list = '{tmp_path / name}': .*{words}"):
            graph_of(lambda name=name: fn.readers.numpy(file_list=str(tmp_path / name)))


def test_a_list_of_numbers_beside_a_list_of_nodes_is_an_input_of_every_call():
    def windows(anchor=(2, 3), shape=(4, 5)):
        images = [fn.external_source(lambda: np.zeros((1, 9, 9, 3), np.uint8), layout="HWC") for _ in range(2)]
        return tuple(fn.slice(images, list(anchor), list(shape), normalized_anchor=False, normalized_shape=False))

    shapes = [each.shape for each in pipeline_def(windows, batch_size=1)()._next()]
    assert shapes == [(1, 5, 4, 3)] * 2


def test_lists_of_inputs_have_one_length():
    x = fn.external_source(lambda: 1)
    with pytest.raises(leat.InvalidArgument, match=r"fn\.cast_like: lists of 2 and 3 inputs; .*arguments\.py"):
        fn.cast_like([x, x], [x, x, x])


def test_an_input_that_is_given_by_name_does_not_take_the_place_of_another():
    x = fn.external_source(lambda: 1, layout="HWC")
    with pytest.raises(TypeError, match=r"fn\.slice: the input shape_input is given without anchor"):
        fn.slice(x, shape_input=np.array([1, 2]))
    with pytest.raises(TypeError, match=r"fn\.slice: the input shape_input is given without anchor"):
        fn.slice(x, anchor=None, shape_input=x)
    fn.slice(x, shape_input=[4, 4], anchor=[0, 0])

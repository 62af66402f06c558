# SPDX-License-Identifier: Apache-2.0
"""leat.dali: the layouts and outputs that a pipeline may have, without a service."""

import leat
import numpy as np
import pytest
from leat.dali import Pipeline, fn, pipeline_def, types


def source(layout, shape=(8, 8, 3)):
    return fn.external_source(lambda: [np.zeros(shape, np.uint8)] * 2, layout=layout, dtype=types.UINT8)


@pytest.mark.parametrize(
    "of",
    [
        lambda x: fn.crop(x, crop=(4, 4)),
        lambda x: fn.crop_mirror_normalize(x, crop=(4, 4)),
        lambda x: fn.flip(x),
        lambda x: fn.resize(x, size=4),
    ],
)
def test_an_image_has_height_and_width(of):
    with Pipeline(batch_size=2) as pipeline:
        with pytest.raises(leat.InvalidArgument, match=r"layout 'ABC'; expected one with H and W.*test_dali_layouts"):
            of(source("ABC"))
        pipeline.set_outputs(of(source("HWC")), of(source("CHW", (3, 8, 8))))


def test_values_of_two_layouts_are_not_added():
    with Pipeline(batch_size=2):
        a, b, none = source("HWC"), source("CHW"), source(None)
        with pytest.raises(leat.InvalidArgument, match=r"'HWC' and 'CHW'; expected the same.*test_dali_layouts"):
            a + b
        assert (a + none).layout == (none * a).layout == (a + 1).layout == "HWC"


def test_a_list_of_nodes_is_no_output():
    @pipeline_def(batch_size=2)
    def listed():
        return [source("HWC"), source("HWC")]

    with pytest.raises(TypeError, match=r"output 0 is a list that holds nodes; expected each node"):
        listed()
    with Pipeline(batch_size=2) as pipeline:
        with pytest.raises(TypeError, match=r"output 1 is a tuple that holds nodes"):
            pipeline.set_outputs(source("HWC"), ([source("HWC")],))
        pipeline.set_outputs([1, 2, 3], source("HWC"))
    assert pipeline.num_outputs == 2
    assert pipeline._outputs[0].sizes == (3,)


def test_define_graph_may_return_a_list():
    class Defined(Pipeline):
        def define_graph(self):
            return [source("HWC"), source("HWC")]

    pipeline = Defined(batch_size=2)
    pipeline._define(None)
    assert pipeline.num_outputs == 2


def test_what_only_volumes_have_decides_nothing_of_an_image():
    with Pipeline(batch_size=2) as pipeline:
        x = source("HWC")
        flipped = fn.flip(x, depthwise=1), fn.flip(x, depthwise=fn.random.coin_flip())
        given = (fn.crop(x, crop=(4, 4), crop_pos_z=0.1), *flipped)
        pipeline.set_outputs(*given)
        assert [each.sizes[:2] for each in given] == [(4, 4), (None, None), (None, None)]
        with pytest.raises(leat.InvalidArgument, match="crop_pos_z = 'middle'"):
            fn.crop(x, crop=(4, 4), crop_pos_z="middle")
        with pytest.raises(leat.Unimplemented, match="crop_d = 2"):
            fn.crop(x, crop=(4, 4), crop_d=2)


def numbers(shape, layout=None):
    """Returns zeros of a shape that the script does not declare."""
    return fn.external_source(lambda: [np.zeros(shape, np.int32)] * 2, layout=layout)


@pytest.mark.parametrize(
    ("made", "layout", "shape"),
    [
        (lambda: fn.expand_dims(numbers((3, 4), "AB"), axes=[0, 2], new_axis_names="XY"), "XAYB", [1, 3, 1, 4]),
        (lambda: fn.expand_dims(numbers((3, 4), "AB"), axes=[2, 0], new_axis_names="XY"), "YAXB", [1, 3, 1, 4]),
        (lambda: fn.expand_dims(numbers((3, 4), "AB"), axes=[2, 0]), "", [1, 3, 1, 4]),
        (lambda: fn.expand_dims(numbers((3, 4), "AB"), axes=[]), "AB", [3, 4]),
        (lambda: fn.expand_dims(numbers(()), axes=[0, 1], new_axis_names="XY"), "XY", [1, 1]),
        (lambda: fn.one_hot(numbers((3, 4), "AB"), num_classes=5), "", [3, 4, 5]),
        (lambda: fn.one_hot(numbers((1, 1), "AB"), num_classes=5), "", [5]),
        (lambda: fn.one_hot(numbers((1, 1), "AB"), num_classes=5, axis=-1, axis_name="X"), "ABX", [1, 1, 5]),
        (lambda: fn.one_hot(numbers((1, 1), "AB"), num_classes=5, axis=0, axis_name="X"), "XAB", [5, 1, 1]),
        (lambda: fn.one_hot(numbers((3, 4), "AB"), num_classes=5, axis=1, axis_name="X"), "AXB", [3, 5, 4]),
        (lambda: fn.one_hot(numbers(()), num_classes=5, axis=0, axis_name="X"), "X", [5]),
        (lambda: fn.one_hot(fn.reshape(numbers(()), shape=[1]), num_classes=5, axis_name="X"), "X", [5]),
        (lambda: fn.one_hot(fn.reshape(numbers((2,), "A"), shape=[2]), num_classes=5, axis_name="X"), "AX", [2, 5]),
    ],
)
def test_new_axes_have_the_names_and_places_of_dali(made, layout, shape):
    @pipeline_def(batch_size=2)
    def of():
        return made()

    (out,) = of().run()
    assert (out.layout(), list(out[0].shape())) == (layout, shape)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda x: fn.squeeze(x), r"fn.squeeze: Missing argument ``axes`` or ``axis_names``"),
        (lambda x: fn.squeeze(x, axes=[0, 0]), r"axes = \[0, 0\]; Specified at least twice same dimension"),
        (lambda x: fn.expand_dims(x, axes=[1, 1]), r"axes = \[1, 1\]; Duplicate axis index found"),
        (lambda x: fn.expand_dims(x, axes=[0], new_axis_names="X"), r"layout is ''; Specifying ``new_axis_names``"),
        (
            lambda x: fn.one_hot(x, num_classes=5, axis_name="XY"),
            r"axis_name = 'XY'; Unsupported axis_name value: it must",
        ),
        (lambda x: fn.one_hot(x, num_classes=5, axis=2), r"axis = 2 of a result with 2 axes"),
        (lambda x: fn.one_hot(x, num_classes=5, axis=0, axis_name="X"), r"axis_name = 'X' of a value without a layout"),
        (lambda x: fn.one_hot(x, num_classes=5, axis_name="X"), r"sizes are not known.*expected axis, or a value of"),
    ],
)
def test_names_of_axes_that_dali_refuses_or_a_worker_cannot_know(made, why):
    with Pipeline(batch_size=2):
        with pytest.raises(leat.InvalidArgument, match=why):
            made(numbers((3,)))


@pytest.mark.parametrize("key", [0, -1, fn.random.coin_flip, slice(1, 2), slice(-1, None), (Ellipsis, 0)])
def test_a_part_is_on_the_device_of_the_whole(key):
    def part(of):
        x = of(fn.external_source(lambda: np.zeros((2, 2)), dtype=types.FLOAT64, ndim=1))
        return x[key() if callable(key) else key]

    for of, gpu in ((lambda x: x.gpu(), True), (lambda x: x, False)):
        assert pipeline_def(part, batch_size=2)(of)._on_gpu() == [gpu]


def test_an_input_of_a_wrong_type_is_not_an_index():
    def indexed(by):
        return fn.external_source(lambda: np.zeros((2, 2)), dtype=types.FLOAT64, ndim=1)[by()]

    for by in (lambda: fn.random.uniform(), lambda: fn.random.coin_flip(dtype=types.BOOL)):
        with pytest.raises(leat.InvalidArgument, match="is indexed with .*; expected whole numbers"):
            pipeline_def(indexed, batch_size=2)(by)

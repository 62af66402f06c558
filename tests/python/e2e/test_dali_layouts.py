# SPDX-License-Identifier: Apache-2.0
"""leat.dali: what layouts and outputs a pipeline may have, without a service."""

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

# SPDX-License-Identifier: Apache-2.0
"""leat.dali's Pipeline.feed_input, over a private service."""

import leat
import numpy as np
import pytest
from leat.dali import Pipeline, fn, pipeline_def, types
from leat.dali.tensors import TensorListCPU


def test_batches_may_be_fed():
    @pipeline_def(batch_size=2)
    def given():
        x = fn.external_source(name="x")
        return x, fn.cast(x, dtype=types.FLOAT)

    pipeline = given()
    pipeline.feed_input("x", np.int32([[1], [2]]))
    assert pipeline._next()[1].tolist() == [[1.0], [2.0]]
    assert pipeline.run(x=np.int32([[3], [4]]))[1].as_array().tolist() == [[3.0], [4.0]]
    with pytest.raises(leat.FailedPrecondition, match="call feed_input"):
        pipeline._next()
    with pytest.raises(leat.NotFound, match="no external source 'y'"):
        pipeline.feed_input("y", np.int32([[1], [2]]))


def fed():
    @pipeline_def(batch_size=2)
    def given():
        return fn.external_source(name="x")

    return given()


def test_the_layout_of_what_is_fed_is_that_of_the_output():
    pipeline = fed()
    pipeline.feed_input("x", np.zeros((2, 3, 4, 1), np.uint8), layout="HWC")
    (images,) = pipeline.run()
    assert images.layout() == "HWC"
    pipeline.feed_input("x", images)  # a pipeline's output may be fed again, with its layout
    (again,) = pipeline.run()
    assert (again.layout(), again.shape()) == ("HWC", [(3, 4, 1)] * 2)
    with pytest.raises(leat.InvalidArgument, match='previous iteration was "HWC" and the current is "CHW"'):
        pipeline.feed_input("x", np.zeros((2, 1, 3, 4), np.uint8), layout="CHW")


def test_a_layout_that_does_not_fit_what_is_fed_is_refused():
    pipeline = fed()
    pipeline.feed_input("x", np.zeros((2, 3), np.uint8), layout="HWC")
    with pytest.raises(leat.InvalidArgument, match="has 1 axes a sample; its layout 'HWC' names 3"):
        pipeline.run()


def test_a_layout_that_is_fed_first_is_what_operators_know():
    @pipeline_def(batch_size=2)
    def given():
        number = fn.external_source(name="n")
        return fn.crop(fn.external_source(name="x"), crop=(2, 1), crop_pos_y=0.0, crop_pos_x=1.0), number

    pixels = np.arange(24, dtype=np.uint8).reshape(2, 1, 3, 4)
    pipeline = given()
    pipeline.feed_input("n", np.int32([5, 6]))  # earlier batches are fed to the graph that is defined again
    pipeline.feed_input("x", pixels, layout="CHW")
    for _ in range(2):
        image, number = pipeline.run()
        assert (image.layout(), image.shape()) == ("CHW", [(1, 2, 1)] * 2)
        np.testing.assert_array_equal(image.as_array(), pixels[:, :, :2, 3:])
        assert number.as_array().tolist() == [5, 6]
        pipeline.feed_input("n", np.int32([5, 6]))
        pipeline.feed_input("x", TensorListCPU(pixels, "CHW"))
    assert given().run(n=np.int32([5, 6]), x=TensorListCPU(pixels, "CHW"))[0].layout() == "CHW"


def test_a_class_may_feed_a_layout_in_its_iter_setup():
    class Fed(Pipeline):
        def define_graph(self):
            self.pixels = fn.external_source()
            return fn.transpose(self.pixels, perm=(2, 0, 1))

        def iter_setup(self):
            self.feed_input(self.pixels, np.zeros((2, 3, 4, 1), np.uint8), layout="HWC")

    pipeline = Fed(batch_size=2)
    assert [pipeline.run()[0].layout() for _ in range(3)] == ["CHW"] * 3


def test_a_layout_comes_too_late_for_operators():
    with Pipeline(batch_size=2) as block:
        block.set_outputs(fn.external_source(name="x") + 1)

    @pipeline_def(batch_size=2)
    def given():
        return fn.external_source(name="x") + 1

    pipeline = given()
    pipeline.feed_input("x", np.zeros((2, 3, 4, 1), np.uint8))
    pipeline.run()
    for late in (block, pipeline):
        with pytest.raises(leat.InvalidArgument, match=r"expected fn.external_source\(layout='HWC'\)"):
            late.feed_input("x", np.zeros((2, 3, 4, 1), np.uint8), layout="HWC")
    with pytest.raises(TypeError, match="colour"):
        pipeline.feed_input("x", np.zeros((2, 3), np.uint8), colour="RGB")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, [1, 1, 1, 2, 2, 3, 4, 4, 5]),
        ({"prefetch_queue_depth": 1}, [1, 1, 2, 2, 3, 4, 4, 5, 5]),
        ({"prefetch_queue_depth": {"cpu_size": 3, "gpu_size": 2}}, [1, 1, 1, 1, 2, 2, 3, 4, 4]),
        ({"exec_pipelined": False}, [1, 1, 2, 2, 3, 4, 4, 5, 5]),
    ],
)
def test_a_batch_that_is_repeated_is_seen_as_late_as_by_dali(options, wanted):
    @pipeline_def(batch_size=2, **options)
    def repeated():
        return fn.external_source(name="source", repeat_last=True)

    pipeline = repeated()
    pipeline.build()
    found = []
    for fed in ([1], [], [2], [], [3, 4], [], [], [5], []):  # before each run
        for value in fed:
            pipeline.feed_input("source", np.full((2, 1), value, np.int32))
        found.append(int(np.asarray(pipeline.run()[0].as_array())[0, 0]))
    assert found == wanted

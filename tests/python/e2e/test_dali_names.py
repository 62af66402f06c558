# SPDX-License-Identifier: Apache-2.0
"""The names that scripts for DALI import, and their counterparts here."""

import importlib
import warnings

import leat
import numpy as np
import pytest
from leat.dali import DataNode, Pipeline, TensorList, fn, ops, pipeline_def, types
from leat.dali.tensors import TensorCPU, TensorListCPU


def test_modules_have_the_names_that_scripts_import():
    for module, names in {
        "pipeline": {"Pipeline": Pipeline, "pipeline_def": pipeline_def, "DataNode": DataNode},
        "pipeline.experimental": {"pipeline_def": pipeline_def},
        "data_node": {"DataNode": DataNode},
        "tensors": {"TensorListCPU": TensorList},
        "ops": {"readers": ops.readers, "Resize": ops.Resize},
        "ops.readers": {"File": ops.readers.File, "COCO": ops.readers.COCO},
        "ops.random": {"CoinFlip": ops.random.CoinFlip},
    }.items():
        found = importlib.import_module(f"leat.dali.{module}")
        assert {name: getattr(found, name) for name in names} == names


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: importlib.import_module("leat.dali.tensors").TensorListGPU, "TensorListGPU.*host's memory"),
        (lambda: Pipeline(batch_size=2).serialize(), r"Pipeline\.serialize"),
        (lambda: Pipeline.deserialize(b""), r"Pipeline\.deserialize"),
    ],
)
def test_names_without_meaning_here_are_refused(use, words):
    with pytest.raises(leat.Unimplemented, match=words):
        use()


def nodes_of(function):
    """Returns the operators of a pipeline, as texts."""
    pipeline = pipeline_def(function, batch_size=2)()
    found, pending = [], [each.node._operation for each in pipeline._outputs]
    while pending:
        operation = pending.pop()
        found.append((operation.op, sorted((name, repr(value)) for name, value in operation.args.items())))
        pending += [each._operation for each in operation.inputs]
    return found


def test_operators_as_classes_are_the_functions():
    def classes():
        jpegs, _ = ops.readers.File(file_root="/photos", name="reader")()
        resize = ops.Resize(device="gpu", size=(4, 5), interp_type=types.INTERP_CUBIC)
        return ops.CropMirrorNormalize(mean=[1.0], std=[2.0])(resize(ops.decoders.Image()(jpegs)), mirror=1)

    def functions():
        jpegs, _ = fn.readers.file(file_root="/photos", name="reader")
        image = fn.resize(fn.decoders.image(jpegs), device="gpu", size=(4, 5), interp_type=types.INTERP_CUBIC)
        return fn.crop_mirror_normalize(image, mean=[1.0], std=[2.0], mirror=1)

    assert nodes_of(classes) == nodes_of(functions)
    assert repr(ops.Resize(size=3)) == "ops.Resize(size=3)"
    assert (ops.Resize(size=3, device="gpu").device, ops.Resize(size=3).device) == ("gpu", "cpu")


def test_every_function_has_a_class():
    names = [name for name in fn.__all__ if callable(getattr(fn, name))]
    assert sorted(ops._CLASSES) == sorted(map(ops._classes.class_name, names))
    for name in ("readers", "decoders", "random", "noise"):
        functions = [each for each in vars(getattr(fn, name)).values() if hasattr(each, "__qualname__")]
        count = sum(each.__qualname__.startswith(f"{name}.") for each in functions)
        assert len(getattr(ops, name).__all__) == count > 2


def test_sources_and_functions_as_classes():
    @pipeline_def(batch_size=2)
    def given():
        number = ops.ExternalSource(lambda: np.int32([[1], [2]]))()
        fed = ops.ExternalSource(name="x")()
        return ops.PythonFunction(lambda a, b: a + b)(number, fed)

    assert given().run(x=np.int32([[10], [20]]))[0].as_array().tolist() == [[11], [22]]


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: ops.Resize(sise=3), r"ops\.Resize has no argument 'sise'; did you mean 'size'"),
        (lambda: ops.Resize(3), r"ops\.Resize: 1 values by position"),
        (lambda: ops.ExternalSource(len, source=len), r"ops\.ExternalSource: source is given by position and by name"),
    ],
)
def test_a_wrong_argument_of_a_class_is_an_error_that_names_it(use, words):
    with pytest.raises(TypeError, match=words):
        use()


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (fn, "image_decoder", fn.decoders.image),
        (fn, "file_reader", fn.readers.file),
        (fn, "coin_flip", fn.random.coin_flip),
        (fn, "normal_distribution", fn.random.normal),
        (ops, "ImageDecoder", ops.decoders.Image),
        (ops, "COCOReader", ops.readers.COCO),
        (ops, "TFRecordReader", ops.readers.TFRecord),
    ],
)
def test_old_names_are_the_new_ones_with_a_warning_at_the_scripts_line(module, old, new):
    with pytest.warns(DeprecationWarning, match=rf"\.{old} is deprecated; use ") as found:
        assert getattr(module, old) is new
    assert [each.filename for each in found] == [__file__]


def test_a_seed_of_an_operator_without_random_numbers_decides_nothing():
    def drawn(seed):
        image = fn.decoders.image(fn.readers.file(file_root="/photos")[0], seed=seed, memory_stats=True)
        return pipeline_def(lambda: fn.resize(image, size=4, seed=seed), batch_size=2)()._job_seed()

    assert drawn(1) == drawn(2) == 0
    with pytest.raises(TypeError, match="seed = 'one'"):
        fn.reshape(fn.random.uniform(), shape=[1], seed="one")


def test_a_pipeline_says_what_it_was_given():
    pipeline = Pipeline(batch_size=2, num_threads=3, exec_async=False, py_num_workers=1, max_streams=4)
    assert (pipeline.num_threads, pipeline.exec_async, pipeline.exec_pipelined) == (3, False, True)
    assert (pipeline.py_num_workers, pipeline.py_start_method, pipeline.max_streams) == (1, "fork", 4)
    assert (pipeline.exec_separated, pipeline.cpu_queue_size, pipeline.gpu_queue_size) == (False, 2, 2)
    pipeline.start_py_workers()
    apart = Pipeline(batch_size=2, prefetch_queue_depth={"cpu_size": 3, "gpu_size": 5})
    assert (apart.exec_separated, apart.cpu_queue_size, apart.gpu_queue_size) == (True, 3, 5)


def test_outputs_are_tensors():
    batch = np.arange(2 * 3 * 4 * 1, dtype=np.uint8).reshape(2, 3, 4, 1)

    @pipeline_def(batch_size=2)
    def given():
        return fn.external_source(lambda: batch, layout="HWC")

    (output,) = given().run()
    sample = output[1]
    assert isinstance(output, TensorListCPU) and isinstance(sample, TensorCPU)
    assert (sample.shape(), sample.layout(), sample.dtype, sample.ndim) == ([3, 4, 1], "HWC", types.UINT8, 3)
    assert sample.as_cpu() is sample and sample.source_info() == ""
    np.testing.assert_array_equal(np.asarray(sample), batch[1])
    np.testing.assert_array_equal(np.from_dlpack(sample), batch[1])
    assert np.asarray(sample).ctypes.data == sample.data_ptr() == output.at(1).ctypes.data
    assert [each.shape() for each in output[:1]] == [[3, 4, 1]] and output[-1].layout() == "HWC"
    assert sum(1 for _ in output) == len(output) == 2
    whole = output.as_tensor()
    assert (whole.shape(), whole.layout()) == ([2, 3, 4, 1], "NHWC")
    assert output.as_reshaped_tensor([6, 4]).shape() == [6, 4]
    with pytest.raises(IndexError, match="sample 2 of a batch of 2"):
        output[2]


def test_a_sample_is_copied_to_an_address():
    target = np.zeros((2, 3), np.int64)
    TensorCPU(np.arange(6).reshape(3, 2).T).copy_to_external(target.ctypes.data)
    assert target.tolist() == [[0, 2, 4], [1, 3, 5]]
    for wrong in (0, None, True, "x"):
        with pytest.raises(leat.InvalidArgument, match="expected an address"):
            TensorCPU([1]).copy_to_external(wrong)


def test_tensors_are_made_of_arrays():
    one = TensorCPU(np.zeros((1, 4, 1), np.float32), "HWC")
    assert TensorCPU(one).layout() == "HWC" and one.get_property("layout") == "HWC"
    assert one.squeeze(0) and (one.shape(), one.layout()) == ([4, 1], "WC")
    assert one.squeeze() and one.shape() == [4] and not one.squeeze()
    last = TensorCPU(np.zeros((1, 4, 1), np.float32), "HWC")
    assert last.squeeze(-1) and (last.shape(), last.layout()) == ([1, 4], "HW") and not last.squeeze(1)
    for axis in (2, -3):
        with pytest.raises(IndexError, match=f"axis {axis} of a tensor of 2 axes"):
            last.squeeze(axis)
    several = TensorListCPU([np.zeros((2, 1)), np.zeros((3, 1))], "AB")
    assert (several.shape(), several.is_dense_tensor()) == ([(2, 1), (3, 1)], False)
    with pytest.raises(leat.InvalidArgument, match="several shapes"):
        several.as_tensor()
    dense = TensorListCPU([TensorCPU(np.zeros((2, 1)), "AB")] * 2)
    assert (dense.layout(), dense.is_dense_tensor(), dense.as_array().shape) == ("AB", True, (2, 2, 1))
    assert TensorListCPU(dense.as_tensor()).layout() == "AB"
    assert (len(TensorListCPU([])), TensorListCPU([]).dtype) == (0, types.NO_TYPE)
    for wrong in (lambda: TensorCPU(np.zeros(3), "HWC"), lambda: TensorListCPU(np.zeros((2, 3)), "HWC")):
        with pytest.raises(leat.InvalidArgument, match="layout = 'HWC'"):
            wrong()


def test_tensors_are_what_a_source_may_give():
    @pipeline_def(batch_size=2)
    def given():
        a = fn.external_source(lambda: [TensorCPU(np.int32([1])), TensorCPU(np.int32([2]))])
        b = fn.external_source(lambda: TensorListCPU(np.int32([[3], [4]])))
        return a + b, fn.external_source(lambda: TensorCPU(np.int32([[5], [6]])))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        added, plain = given().run()
    assert (added.as_array().tolist(), plain.as_array().tolist()) == ([[4], [6]], [[5], [6]])

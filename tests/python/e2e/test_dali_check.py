# SPDX-License-Identifier: Apache-2.0
"""The names that leat.dali refuses, and the check of scripts that reports them, without a service."""

import importlib
import inspect
import pathlib
import re
import subprocess
import sys

import leat
import pytest
import test_dali_arguments as arguments
from leat.dali import _refused, check, fn, math, types

ROOT = pathlib.Path(__file__).parents[3]
HEADER = """\
import nvidia.dali as dali
import nvidia.dali.types as types
from nvidia.dali import fn, ops, pipeline_def
"""


def said(line):
    """Returns the findings for a line after HEADER."""
    return [text for at, text in check.findings(HEADER + line + "\n") if at == 4]


@pytest.mark.parametrize("name", [name for name in _refused.NAMES if name.split(".")[0] in ("fn", "math")])
def test_a_refused_name_says_why_where_it_is_used_and_in_the_check(name):
    refusal = _refused.NAMES[name].of(name)
    assert said(f"dali.{name}(x)") == [refusal]
    target = {"fn": fn, "math": math}[name.split(".")[0]]
    with pytest.raises((AttributeError, leat.Unimplemented)) as error:
        for part in name.split(".")[1:]:
            target = getattr(target, part)
        target(arguments.image(), indices=[0]) if "permute" in name else target(path="/x", index_path="/y")
    assert str(error.value).removesuffix(f" ({__file__}:{error.traceback[0].lineno + 1})") == refusal


@pytest.mark.parametrize(
    "name", ["experimental", "experimental.dynamic", "plugin.tf", "plugin.mxnet", "plugin.numba.fn", "fn.transforms"]
)
def test_importing_a_refused_module_says_why(name):
    refusal = _refused.found(name)
    with pytest.raises(ModuleNotFoundError) as error:
        importlib.import_module(f"leat.dali.{name}")
    assert refusal is not None and str(error.value).endswith(f": {refusal.why}; {refusal.instead}")
    with pytest.raises(ModuleNotFoundError, match="No module named 'leat.dali.nothing'"):
        importlib.import_module("leat.dali.nothing")


# The meaning of these constants depends on the input, so the check does not report them.
BY_INPUT = {("reinterpret", "dtype")}
WORDS = {
    **dict.fromkeys(("dtype", "dtypes"), types.DALIDataType),
    **dict.fromkeys(("image_type", "output_type"), types.DALIImageType),
    **dict.fromkeys(("interp_type", "min_filter", "mag_filter"), types.DALIInterpType),
}
ASKED = [
    (operator, argument)
    for operator, function in arguments.operators().items()
    for argument in inspect.signature(function).parameters
    if argument in WORDS and operator in arguments.CALLS and operator != "external_source"
]


@pytest.mark.parametrize(("operator", "argument"), [each for each in ASKED if each not in BY_INPUT])
def test_the_check_judges_every_word_as_a_run_does(operator, argument):
    inputs, needed, *picked = arguments.CALLS[operator]
    for word in WORDS[argument]:

        def result(word=word):
            value = arguments.operators()[operator](*inputs(), **{**needed, argument: word})
            return picked[0](value) if picked else value

        try:
            arguments.graph_of(result)
            runs = True
        except leat.Error:
            runs = False
        found = said(f"fn.{operator}(x, {argument}=types.{type(word).__name__}.{word.name})")
        assert runs == (not found), (word, found)


def test_the_check_knows_the_one_filter_of_a_random_crop():
    assert said("fn.random_resized_crop(x, interp_type=types.INTERP_CUBIC, min_filter=types.INTERP_CUBIC)") == []
    assert said("fn.random_resized_crop(x, interp_type=f(), min_filter=types.INTERP_CUBIC)") == []
    assert len(said("fn.random_resized_crop(x, interp_type=types.INTERP_CUBIC, mag_filter=types.INTERP_NN)")) == 1


@pytest.mark.parametrize(("operator", "argument"), _refused.ARGUMENTS)
def test_a_refused_argument_says_its_value_and_why(operator, argument):
    refusal = _refused.ARGUMENTS[operator, argument]
    with pytest.raises(leat.Unimplemented) as error:
        arguments.called(operator.removeprefix("fn."), **{argument: True})
    text = refusal.of(f"{operator}: {argument} = True")
    assert str(error.value).startswith(f"{text} ({arguments.__file__}:")
    assert said(f"{operator}(x, {argument}=True)") == [refusal.of(f"{operator}: {argument} = True")]
    assert said(f"{operator}(x, {argument}=None)") == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fn.resize(x, sise=3)", "fn.resize has no argument 'sise'; did you mean 'size'?"),
        ("ops.Resize(save_attrs=True)", "ops.Resize: save_attrs = True"),
        ("ops.decoders.Image(sise=3)", "ops.decoders.Image has no argument 'sise'"),
        ("fn.cast(x, dtype=types.UINT64)", "fn.cast: dtype = DALIDataType.UINT64"),
        ("fn.cast(x, dtype=types.DALIDataType.FLOAT64)", "fn.cast: dtype = DALIDataType.FLOAT64"),
        ("fn.cast(x, dtype=types.DALIDataType.FLOAT32)", "types.DALIDataType has no 'FLOAT32'; did you mean 'FLOAT'?"),
        ("fn.decoders.image(x, dtype=types.INT32)", "fn.decoders.image: dtype = DALIDataType.INT32"),
        ("ops.CropMirrorNormalize(dtype=types.INT32)", "ops.CropMirrorNormalize: dtype = DALIDataType.INT32"),
        ("fn.decoders.image(x, output_type=types.ANY_DATA)", "fn.decoders.image: output_type = ANY_DATA"),
        ("fn.readers.webdataset(dtypes=[types.UINT8, types.UINT64])", "dtypes = DALIDataType.UINT64"),
        ("types.Constant(4).int8()", "types.Constant().int8() = DALIDataType.INT8"),
        ("types.Constant(4).int31()", "types.Constant() has no 'int31'"),
        ("types.Constant(4, types.INT16)", "types.Constant: dtype = DALIDataType.INT16"),
        ("dali.Pipeline(4, sead=3)", "Pipeline has no argument 'sead'; did you mean 'seed'?"),
        ("dali.pipeline_def(f, batch_size=4, debug=True)", "pipeline_def has no argument 'debug'"),
        ("from nvidia.dali.auto_aug import core; core.select([], x, y); core.signed_bin(3, sead=1)", "'sead'"),
        ("types.Constant(4, sise=3)", "types.Constant has no argument 'sise'"),
        ("fn.normalise(x)", "no operator 'normalise'; did you mean 'normalize'?"),
        ("fn.reductions.mean(x)", "fn.reductions.mean: workers do not compute it"),
        ("from nvidia.dali.backend import TensorGPU", "leat.dali has no 'backend'"),
        ("from nvidia.dali.plugin.pytorch import TorchPythonFunction", "plugin.pytorch has no 'TorchPythonFunction'"),
        ("import nvidia.dali.plugin.tf as dali_tf", "plugin.tf: there is no such plugin"),
        ("import nvidia.dali.experimental.dynamic as ndd", "experimental.dynamic: .*pipeline_def"),
        ("from nvidia.dali.tensors import TensorListGPU", r"tensors\.TensorListGPU"),
    ],
)
def test_a_line_that_will_not_work_is_found(line, words):
    (text,) = said(line)
    assert re.search(words if "\\" in words or ".*" in words else re.escape(words), text)


@pytest.mark.parametrize(
    "line",
    [
        "fn.external_source(f, dtype=types.INT16)",
        "fn.cast(x, dtype=types.INT16)",
        "fn.readers.webdataset(dtypes=[types.UINT8, types.UINT32])",
        "fn.external_source(f, dtype=[types.INT16, types.DALIDataType.UINT16], num_outputs=2)",
        "fn.flip(x, horizontal=fn.random.coin_flip(dtype=types.DALIDataType.BOOL))",
        "fn.resize(x, size=3, interp_type=types.DALIInterpType.INTERP_NN, mag_filter=types.INTERP_LANCZOS3)",
        "fn.color_space_conversion(x, image_type=types.RGB, output_type=types.DALIImageType.YCbCr)",
        "fn.decoders.image(x, dtype=types.FLOAT), types.DALIImageType.RGB.value, types.FLOAT.name",
        "x - types.Constant(48).uint8(), types.ScalarConstant(3).float32().value",
        "fn.image_decoder(x), ops.ImageDecoder(device='mixed')",
        "fn.crop(x, crop_d=0.0, crop=(3, 3), **more)",
        "dali.pipeline_def(f, batch_size=4, enable_conditionals=True), dali.Pipeline(4, num_threads=2, device_id=0)",
        "from nvidia.dali.auto_aug import rand_augment as r; r.apply_rand_augment(a, x, 1, 2, fill_value=3)",
        "types.Constant(3).shape, dali.Pipeline.current().epoch_size",
        "from nvidia.dali.plugin.jax.clu import peekable_data_iterator",
        "from nvidia.dali.plugin.pytorch import DALIGenericIterator, feed_ndarray",
        "from nvidia.dali.plugin.base_iterator import LastBatchPolicy",
        "from nvidia.dali.pipeline.experimental import pipeline_def",
        "from nvidia.dali.auto_aug import auto_augment; auto_augment.auto_augment_image_net(x)",
        "from nvidia.dali.auto_aug.core import augmentation; from nvidia.dali.auto_aug.augmentations import shear_x",
        "from nvidia.dalinar import fn2; fn2.what(1)",
        "import nvidia.dali.plugin.jax as dax; dax.DALIGenericIterator; dax.fn.jax_function",
    ],
)
def test_a_line_that_works_is_passed_over(line):
    assert said(line) == []


@pytest.mark.parametrize("script", sorted((ROOT / "docs" / "examples").glob("*dali*.py")), ids=lambda path: path.name)
def test_our_examples_pass(script):
    assert check.findings(script.read_text(encoding="utf-8")) == []


def test_the_command_names_file_and_line_and_has_a_status(tmp_path):
    bad, good, none = (tmp_path / name for name in ("bad.py", "good.py", "none.py"))
    bad.write_text(HEADER + "fn.spectrogram(x)\nraise SystemExit('it ran')\n")
    good.write_text(HEADER)

    def run(*paths):
        command = [sys.executable, "-W", "error", "-m", "leat.dali.check", *map(str, paths)]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    refusal = _refused.NAMES["fn.spectrogram"].of("fn.spectrogram")
    assert run(bad, good) == (1, f"{bad}:4: {refusal}\n{good}: nothing was found that will not work\n", "")
    code, out, err = run(none, good)
    assert (code, out) == (2, f"{good}: nothing was found that will not work\n")
    assert err.startswith(f"{none}: cannot be read: ")
    assert run("--refused") == (0, _refused.table(), "")


@pytest.mark.parametrize(
    "content",
    [
        b"def f(:\n",
        b"\0",
        b"\xff\xfe",
        b"#" * ((4 << 20) + 1),
        b"x = " + b"(" * 100_000,
        b"x = " + b"-" * 100_000 + b"1",
    ],
    ids=["syntax", "zero", "encoding", "size", "brackets", "depth"],
)
def test_what_is_no_script_is_an_error(content, tmp_path, capsys):
    path = tmp_path / "script.py"
    path.write_bytes(content)
    assert check.main([str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"{path}: cannot be read: ")

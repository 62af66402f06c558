# SPDX-License-Identifier: Apache-2.0
import copy
import functools
import inspect
import json
import pathlib
import pickle

import numpy as np
import pytest

import leat
from leat import fn
from leat._graphs import operators


def reader():
    return fn.readers.image_folder("/photos")


def args_of(pipeline, op):
    return next(node["args"] for node in pipeline.to_dict()["nodes"] if node["op"] == op)


def test_a_dict_names_the_arrays(graph):
    assert graph.images.outputs == ("image", "label")
    assert [node["op"] for node in graph.images.to_dict()["nodes"]] == [
        "readers.image_folder",
        "decode",
        "random_resized_crop",
        "coin_flip",
        "flip",
    ]


def test_a_tuple_and_one_node_get_names_and_unused_nodes_are_dropped():
    @leat.pipeline()
    def two():
        encoded, label = reader()
        fn.decode(encoded)
        return label, fn.coin_flip()

    @leat.pipeline
    def one():
        return reader()[1]

    assert two.outputs == ("output0", "output1")
    assert one.outputs == ("output",)
    assert [node["op"] for node in two.to_dict()["nodes"]] == ["readers.image_folder", "coin_flip"]


def test_tracing_twice_gives_the_same_graph(graph):
    assert graph.images().to_dict() == graph.images.to_dict()


def test_a_function_with_parameters_is_traced_when_called():
    @leat.pipeline
    def sized(size, *, gray=False):
        encoded, _ = reader()
        return fn.crop(fn.decode(encoded, output="gray" if gray else "rgb"), size=size)

    assert args_of(sized(3, gray=True), "decode") == {"output": {"string_value": "gray"}}
    assert args_of(sized(3), "crop")["size"] == {"ints_value": {"values": ["3"]}}


@pytest.mark.parametrize(
    "use",
    [
        lambda node: 1 if node else 2,
        lambda node: list(node),
        lambda node: 1 if node == 1 else 2,
        lambda node: node % 2,
        lambda node: node**2,
        lambda node: node @ node,
        lambda node: node[0],
        lambda node: len(node),
        lambda node: int(node),
        lambda node: float(node),
        lambda node: np.asarray(node),
        lambda node: 3 in node,
        lambda node: [1, 2][node],
    ],
)
def test_control_flow_on_a_node_is_refused_with_its_line(use):
    node = fn.coin_flip()
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(leat.PipelineError, match=rf"fn\.(coin_flip \({__file__}:{line}\)|eq \().*traced once"):
        use(node)


@pytest.mark.parametrize("result", [None, 3, {}, (), {"image": 3}, {1: "x"}, {"": None}])
def test_a_result_that_is_no_node_is_refused(result):
    with pytest.raises(leat.PipelineError, match="pipeline|node"):
        leat.pipeline(lambda: result)


def test_an_unknown_argument_names_the_nearest():
    encoded, _ = reader()
    with pytest.raises(leat.InvalidArgument, match=r"fn\.crop has no argument 'sise'; did you mean 'size'\?"):
        fn.crop(encoded, sise=3)


def test_an_unknown_operator_names_the_nearest():
    with pytest.raises(AttributeError, match="no operator 'random_resize_crop'; did you mean 'random_resized_crop'"):
        fn.random_resize_crop
    with pytest.raises(AttributeError, match="did you mean 'image_folder'"):
        fn.readers.image_folders


@pytest.mark.parametrize(
    ("size", "expected"),
    [(3, ["3"]), ((3, 4), ["3", "4"]), ([3.0], ["3"]), (np.array([3, 4]), ["3", "4"]), (np.int64(5), ["5"])],
)
def test_whole_numbers_are_taken_in_any_form(size, expected):
    pipeline = leat.pipeline(lambda: fn.crop(fn.decode(reader()[0]), size=size))
    assert args_of(pipeline, "crop")["size"] == {"ints_value": {"values": expected}}


@pytest.mark.parametrize(
    "size", [0, -1, (3, 0), 1.5, "3", True, None, float("nan"), 10**30, [[1]], {"h": 1}, 65501]
)
def test_a_wrong_size_is_refused_where_it_is_given(size):
    node = fn.decode(reader()[0])
    with pytest.raises(leat.InvalidArgument, match=r"fn\.crop: size.*expected"):
        fn.crop(node, size=size)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, 1.1, -0.1, "x", True])
def test_a_wrong_probability_is_refused(value):
    with pytest.raises(ValueError, match=r"fn\.coin_flip: probability"):
        fn.coin_flip(value)


def test_numbers_become_the_arguments_type():
    pipeline = leat.pipeline(lambda: fn.crop(fn.decode(reader()[0]), size=4, pos_y=1))
    assert args_of(pipeline, "crop")["pos_y"] == {"float_value": 1.0}
    pipeline = leat.pipeline(lambda: fn.random_resized_crop(fn.decode(reader()[0]), 4, area=(1, 1)))
    assert args_of(pipeline, "random_resized_crop")["area"] == {"floats_value": {"values": [1.0, 1.0]}}


def test_a_path_object_is_a_text():
    pipeline = leat.pipeline(lambda: fn.readers.image_folder(pathlib.Path("/photos"))[1])
    assert args_of(pipeline, "readers.image_folder")["path"] == {"string_value": "/photos"}


@pytest.mark.parametrize(
    "given, meant",
    {
        "photos": "{}/photos", "./photos": "{}/photos", ".": "{}/", "../photos": "{}/../photos", "a/*": "{}/a/*",
        "/photos": "/photos", "s3://bucket/a": "s3://bucket/a", "file:///a": "file:///a", "": "",
    }.items(),
)
def test_a_relative_path_is_that_of_the_script(given, meant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pipeline = leat.pipeline(lambda: fn.readers.image_folder(given)[1])
    pipeline.to_dict()
    monkeypatch.chdir("/")
    assert args_of(pipeline, "readers.image_folder")["path"] == {"string_value": meant.format(tmp_path)}


def test_an_empty_list_is_an_argument_that_was_left_out_or_an_error(monkeypatch):
    arg = functools.partial(operators.Arg, per_sample=False, range=None, choices=(), doc="")
    assert operators._is_none("x", arg("index", "strings", ()), [])
    assert operators._is_none("x", arg("labels", "ints", ()), [])
    assert not operators._is_none("x", arg("index", "strings", ()), ["a"])
    assert not operators._is_none("x", arg("size", "ints", operators._REQUIRED), [])
    with pytest.raises(leat.InvalidArgument, match=r"fn.readers.files: files = \[\].*at least one"):
        operators._is_none("readers.files", arg("files", "strings", operators._REQUIRED), [])


def test_a_tilde_is_a_home_as_in_a_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    home = str(tmp_path / "home")
    monkeypatch.setenv("HOME", home)
    values = {"paths": ["~", "~/web/0.tar", "./~/0.tar", "a~", "~nobody-of-this-name/x", "s3://bucket/~/0.tar"]}
    operators._make_absolute("readers.webdataset", values)
    here = str(tmp_path)
    assert values["paths"] == [home, f"{home}/web/0.tar", f"{here}/~/0.tar", f"{here}/a~",
                               f"{here}/~nobody-of-this-name/x", "s3://bucket/~/0.tar"]


def test_paths_of_all_readers_are_made_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = {"paths": ["a.tar", "/b.tar"], "index": ["a.idx"], "labels": [1, 2], "images": ["x.jpg"]}
    operators._make_absolute("readers.webdataset", values)
    here = str(tmp_path)
    expected = {"paths": [f"{here}/a.tar", "/b.tar"], "index": [f"{here}/a.idx"], "labels": [1, 2], "images": ["x.jpg"]}
    assert values == expected
    for reader, values, expected in [
        ("readers.files", {"files": ["x"], "root": "d"}, {"files": ["x"], "root": f"{here}/d"}),
        ("readers.files", {"files": ["x"], "root": ""}, {"files": [f"{here}/x"], "root": ""}),
        ("readers.idx", {"images": "i", "labels": "l"}, {"images": f"{here}/i", "labels": f"{here}/l"}),
        ("readers.numpy", {"array": "x.npy", "pattern": "*.npy"}, {"array": f"{here}/x.npy", "pattern": "*.npy"}),
    ]:
        operators._make_absolute(reader, values)
        assert values == expected


def test_nodes_are_taken_by_per_sample_arguments_only():
    image = fn.decode(reader()[0])
    fn.flip(image, horizontal=fn.coin_flip())
    with pytest.raises(leat.InvalidArgument, match="the same for every sample"):
        fn.crop(image, size=fn.coin_flip())


@pytest.mark.parametrize(
    "use",
    [
        lambda ids: fn.decode(ids),
        lambda ids: fn.coin_flip() + ids,
        lambda ids: fn.flip(fn.decode(reader()[0]), horizontal=ids),
        lambda ids: leat.pipeline(lambda: {"ids": ids}),
    ],
)
def test_a_tuple_of_one_output_says_how_it_is_unpacked(use):
    ids = fn.readers.fields(fields=["id"])
    with pytest.raises((leat.InvalidArgument, leat.PipelineError)) as caught:
        use(ids)
    assert str(caught.value).endswith("; it is a tuple of 1: write `(x,) = fn.readers.fields(…)`")
    with pytest.raises(leat.InvalidArgument) as caught:
        fn.decode((fn.coin_flip(), fn.coin_flip()))
    assert "write" not in str(caught.value)


def test_inputs_are_checked():
    with pytest.raises(leat.InvalidArgument, match=r"a tuple of 2: write `x, y = fn.readers.image_folder\(…\)`"):
        fn.decode(reader())
    with pytest.raises(leat.InvalidArgument, match="0 inputs given; expected 1"):
        fn.decode()
    with pytest.raises(leat.InvalidArgument, match="size must be given"):
        fn.crop(fn.decode(reader()[0]))
    with pytest.raises(leat.InvalidArgument, match="twice"):
        fn.coin_flip(0.5, probability=0.5)
    with pytest.raises(leat.InvalidArgument, match="expected one of|expected at most"):
        fn.coin_flip(0.5, 0.5)
    with pytest.raises(leat.InvalidArgument, match="one of 'rgb', 'gray'; did you mean 'gray'"):
        fn.decode(reader()[0], output="grey")


def test_what_the_library_refuses_is_told_with_the_users_line():
    with pytest.raises(leat.InvalidArgument, match=rf"node 1 is fn\.cast at {__file__}:\d+"):
        leat.pipeline(lambda: fn.cast(reader()[1], dtype="int8"))


def test_operators_have_signatures_and_documentation():
    assert str(inspect.signature(fn.flip)) == "(input, /, horizontal: 'bool | Node' = True) -> 'Node'"
    assert "pos_y: where (float, or a node: one value a sample; 0 … 1; default 0.5)" in fn.crop.__doc__
    assert "crop" in fn.__all__ and "readers" in fn.__all__


@pytest.mark.parametrize("path", ["a\0b", b"bytes", 3, None, "not utf-8: \udcff"])
def test_a_path_that_is_no_text_is_refused(path):
    with pytest.raises(leat.InvalidArgument, match="path.*expected a text"):
        fn.readers.image_folder(path)


def test_a_wrong_value_is_told_without_the_secrets_of_an_address():
    with pytest.raises(leat.InvalidArgument, match="http://.*expected a text") as raised:
        fn.readers.image_folder(b"http://u:secret-1@h/x?sig=secret-2")
    assert "secret-" not in str(raised.value)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [("a", ["a"]), (["a", "b"], ["a", "b"]), (("a",), ["a"]), (pathlib.Path("a/b"), ["a/b"])],
)
def test_a_list_of_texts_is_taken_in_any_form_and_counts_the_outputs(fields, expected):
    outputs = fn.readers.fields(fields)
    assert isinstance(outputs, tuple) and len(outputs) == len(expected)
    pipeline = leat.pipeline(lambda: fn.readers.fields(fields, kinds=["text"] * len(expected))[-1])
    assert args_of(pipeline, "readers.fields")["fields"] == {"strings_value": {"values": expected}}
    assert pipeline.to_dict()["outputs"][0]["ref"]["output"] == len(expected) - 1


@pytest.mark.parametrize("fields", [3, [3], ["a", None], b"a", ["a\0b"], [["a"]], {"a": 1}, None])
def test_a_wrong_list_of_texts_is_refused(fields):
    with pytest.raises(leat.InvalidArgument, match=r"fn\.readers\.fields: fields.*expected a text"):
        fn.readers.fields(fields)


def test_the_texts_of_a_list_are_among_the_choices():
    with pytest.raises(leat.InvalidArgument, match=r"kinds\[1\] = 'imag'.*did you mean 'image'"):
        fn.readers.fields(["a", "b"], kinds=["text", "imag"])


def test_an_operator_with_as_many_outputs_as_values_says_so():
    assert str(inspect.signature(fn.readers.fields)) == (
        "(fields: 'str | Sequence[str]', "
        "kinds: \"Literal['image', 'text'] | Sequence[Literal['image', 'text']]\" = ()) -> 'tuple[Node, ...]'"
    )
    assert "one for each of fields; of one, too: (x,) = fn.readers.fields(…)." in fn.readers.fields.__doc__


@leat.pipeline
def _with_arguments(size):
    encoded, label = fn.readers.image_folder("/photos")
    return {"image": fn.resize(fn.decode(encoded), size=[size, size])}


def test_a_pipeline_that_needs_arguments_pickles_by_its_name_as_functions_do():
    assert pickle.loads(pickle.dumps(_with_arguments)) is _with_arguments
    assert copy.deepcopy(_with_arguments) is _with_arguments

    @leat.pipeline
    def local(size):
        return _with_arguments(size)

    with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
        pickle.dumps(local)


def test_a_pipeline_pickles_as_its_graph(graph):
    there = pickle.loads(pickle.dumps(graph.images))
    assert there.to_dict() == graph.images.to_dict() and repr(there) == repr(graph.images)
    assert there.outputs == ("image", "label")
    with pytest.raises(leat.PipelineError, match="a graph without its function"):
        there()
    error = there.explain(leat.InvalidArgument("node 1 is wrong"))
    assert "fn.decode at " in str(error)
    assert copy.deepcopy(graph.images) is graph.images  # nothing of it changes


def test_a_pipeline_of_a_dict(graph):
    text = json.dumps(graph.images.to_dict())
    made = leat.Pipeline.from_dict(json.loads(text))
    assert made.to_dict() == graph.images.to_dict()
    assert pickle.loads(pickle.dumps(made)).to_dict() == made.to_dict()
    assert "node 1 is fn.decode of a graph" in str(made.explain(leat.InvalidArgument("node 1 is wrong")))


@pytest.mark.parametrize("ref", [{}, {"output": 0}, None, 5, {"node": "0"}])
def test_an_error_about_an_output_is_told_whatever_its_reference_is(graph, ref):
    """JSON that protobuf writes has no zeros."""
    made = leat.Pipeline.from_dict(graph.images.to_dict())
    made._graph["outputs"][0]["ref"] = ref
    told = made.explain(leat.InvalidArgument('output "image" is wrong'))
    assert ("output 'image' is fn.readers.image_folder of a graph" in str(told)) == (ref in ({}, {"output": 0}))


def test_no_error_shows_the_address_in_a_graph():
    with pytest.raises(leat.InvalidArgument, match="expected what Pipeline.to_dict returned") as caught:
        leat.Pipeline.from_dict({"path": "https://me:word@host/a"})
    assert "word" not in str(caught.value)


@pytest.mark.parametrize("size", [{8, 16}, frozenset({8})])
def test_a_set_is_no_list(size):
    with pytest.raises(leat.InvalidArgument, match="fn.random_resized_crop: size = .*a set has no order"):
        fn.random_resized_crop(fn.decode(reader()[0]), size=size)


def test_a_number_beyond_all_doubles_is_refused():
    with pytest.raises(leat.InvalidArgument, match="fn.coin_flip: .* = 10+.*; expected a finite number"):
        fn.coin_flip(10**400)


@pytest.mark.parametrize("wrong", [None, {}, {"nodes": 3, "outputs": []}, {"nodes": [{}], "outputs": []}, {1}])
def test_what_is_no_graph_is_refused(wrong):
    with pytest.raises(leat.InvalidArgument, match="expected what Pipeline.to_dict returned"):
        leat.Pipeline.from_dict(wrong)

# SPDX-License-Identifier: Apache-2.0
"""Pipelines: a function is called once with nodes in place of data, and becomes a graph."""

from __future__ import annotations

import ctypes
import functools
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, ParamSpec, overload

from leat._graphs import selection as _selections
from leat._graphs import unpack
from leat._graphs.graph import Node, Operation
from leat._graphs.operators import shown
from leat._library import native
from leat.errors import Error, InvalidArgument, PipelineError

_P = ParamSpec("_P")


def _named_outputs(result: Any, function: str) -> dict[str, Node]:
    if isinstance(result, Node):
        outputs: dict[Any, Any] = {"output": result}
    elif isinstance(result, Mapping):
        outputs = dict(result)
    elif isinstance(result, (tuple, list)):
        outputs = {f"output{i}": node for i, node in enumerate(result)}
    else:
        raise PipelineError(
            f"pipeline {function} returned {type(result).__name__}; expected a dict of names to nodes, a tuple of "
            "nodes, or one node"
        )
    if not outputs:
        raise PipelineError(f"pipeline {function} returned no outputs; expected at least one node")
    for name, node in outputs.items():
        if not isinstance(name, str) or not name:
            raise PipelineError(f"pipeline {function}: output name {name!r}; expected a non-empty text")
        if not isinstance(node, Node):
            raise PipelineError(
                f"pipeline {function}: output {name!r} is {type(node).__name__} {node!r:.80}; expected a node, "
                f"as the functions of leat.fn return{unpack.hint(node)}"
            )
    return outputs


class _JsonWriter:
    """Numbers the operations that outputs need, in the order in which they were made, and writes leat.v1.Graph."""

    def __init__(self, outputs: dict[str, Node]) -> None:
        self.outputs = outputs
        needed: dict[int, Operation] = {}
        pending = [node._operation for node in outputs.values()]
        while pending:
            operation = pending.pop()
            if operation.number in needed:
                continue
            needed[operation.number] = operation
            pending += [node._operation for node in operation.inputs]
            pending += [value._operation for value in operation.args.values() if isinstance(value, Node)]
        self.operations = [needed[number] for number in sorted(needed)]
        self.index = {operation.number: i for i, operation in enumerate(self.operations)}

    def ref(self, node: Node) -> dict[str, int]:
        return {"node": self.index[node._operation.number], "output": node._output}

    def value(self, value: Any) -> dict[str, Any]:
        # bool before int, since bool is a subclass of int.
        if isinstance(value, Node):
            return {"ref": self.ref(value)}
        if isinstance(value, bool):
            return {"bool_value": value}
        if isinstance(value, int):
            return {"int_value": str(value)}
        if isinstance(value, float):
            return {"float_value": value}
        if isinstance(value, str):
            return {"string_value": value}
        if any(isinstance(item, str) for item in value):
            return {"strings_value": {"values": list(value)}}
        if all(isinstance(item, int) for item in value):
            return {"ints_value": {"values": [str(item) for item in value]}}
        return {"floats_value": {"values": list(value)}}

    def graph(self) -> dict[str, Any]:
        nodes = [
            {
                "op": operation.op,
                "inputs": [self.ref(node) for node in operation.inputs],
                "args": {name: self.value(value) for name, value in operation.args.items()},
            }
            for operation in self.operations
        ]
        return {
            "nodes": nodes,
            "outputs": [{"name": name, "ref": self.ref(node)} for name, node in self.outputs.items()],
        }


class Pipeline:
    """An operator graph: data that is sent, never code.

    `leat.pipeline` makes it. If the function has parameters, call the pipeline to get one with other values:
    `train(size=128)`.

    It pickles as its graph: the unpickled pipeline cannot be called with other values, and does not have the source of
    `leat.external_source`, which is then passed to `Job.batches(source=...)`.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._function: Callable[..., Any] | None = function
        name = getattr(function, "__qualname__", repr(function))
        writer = _JsonWriter(_named_outputs(function(*args, **kwargs), name))
        self._source = next((each.source for each in writer.operations if each.source is not None), None)
        lines = [f"fn.{operation.op} at {operation.where}" for operation in writer.operations]
        self._become(name, writer.graph(), lines)

    def _become(self, name: str, graph: dict[str, Any], lines: list[str]) -> None:
        self._name = name
        self._graph = graph
        self._lines = lines
        self._selection: dict[str, Any] = {}  # the JSON form of leat.v1.Selection
        self._schema = self._check()

    def __call__(self, *args: Any, **kwargs: Any) -> Pipeline:
        """Returns the pipeline of the same function traced with other arguments, over the same selection."""
        if self._function is None:
            raise PipelineError(f"{self!r} is a graph without its function; expected one that leat.pipeline made here")
        made = Pipeline(self._function, args, kwargs)
        made._selection = self._selection
        return made

    def __reduce__(self) -> Any:
        return Pipeline._restored, (self._name, self.to_dict(), self._lines, self._selection)

    def __copy__(self) -> Pipeline:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Pipeline:
        return self

    @classmethod
    def from_dict(cls, graph: Mapping[str, Any]) -> Pipeline:
        """Makes a pipeline from a result of `to_dict`, or from a graph that was written in another way.

        Raises:
            leat.InvalidArgument: it is not a graph, or its operators do not fit together; the text names the node.
        """
        try:
            graph = json.loads(json.dumps(graph))
            lines = [f"fn.{node['op']} of a graph" for node in graph["nodes"]]
            names = [output["name"] for output in graph["outputs"]]
        except (TypeError, ValueError, KeyError) as error:
            raise InvalidArgument(
                f"graph = {shown(graph):.80}: {type(error).__name__}: {error}; expected what Pipeline.to_dict returned"
            ) from None
        return cls._restored(f"of {len(names)} outputs", graph, lines)

    @classmethod
    def _restored(
        cls, name: str, graph: dict[str, Any], lines: list[str], selection: dict[str, Any] | None = None
    ) -> Pipeline:
        """Returns a pipeline whose function is in another process."""
        made = Pipeline.__new__(Pipeline)
        made._function = made._source = None
        made._become(name, graph, lines)
        made._selection = selection or {}
        return made

    def __repr__(self) -> str:
        selected = f", selected by {', '.join(self._selection)}" if self._selection else ""
        return f"<leat.pipeline {self._name}: {len(self._lines)} operators -> {', '.join(self.outputs)}{selected}>"

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the arrays of a batch."""
        return tuple(output["name"] for output in self._graph["outputs"])

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form of leat.v1.Graph, as on the wire and in `leat inspect`."""
        return json.loads(json.dumps(self._graph))

    def select(
        self,
        *,
        samples: range | Iterable[int] | str | os.PathLike[str] | None = None,
        where: str | None = None,
        by: str | None = None,
        weights: Literal["balanced"]
        | Mapping[str, float]
        | Mapping[int, float]
        | Mapping[int | str, float]
        | Iterable[float]
        | str
        | os.PathLike[str]
        | None = None,
    ) -> Pipeline:
        """Returns the same pipeline over a selection of its dataset's samples, for `Service.job` and `leat.mix`.

            train.select(samples=range(0, 40_000))  # these samples, numbered from 0 on
            train.select(samples="s3://bucket/train.npy")
            train.select(where='width >= 256 and label in [3, 7] and not name like "*_dup*"')

        The samples that are chosen are a dataset of their own: each comes once in an epoch, and steps, shards and
        positions count them alone. A worker lists it once, over the listing of the whole. What workers cache of the
        whole serves every selection of it.

            train.select(weights="balanced")  # each class has the same share of the rows
            train.select(weights={"cat": 0.5, "dog": 0.3, "*": 0.2})  # "*": the other classes, evenly

        Rows are dealt out to the classes at every step: after any step each class is within two rows of its share. In
        a class, no sample comes by twice more often than another. A class that ends begins its next pass, so a small
        class is seen more often. An epoch has as many rows as the dataset, and the next one goes on where it ended.

        The classes are those of `fn.readers.image_folder`, and the labels of `fn.readers.files` if its files are in
        the order of their labels. With `by` they are the values of a column. Weights go with samples and where.

            train.select(by="label", weights="balanced")
            train.select(where="width >= 256", by="language", weights={"en": 0.7, "*": 0.3})

        Weights may be of single samples. A sample of weight 2 comes twice as often as one of weight 1, evenly, as no
        row is drawn at random:

            train.select(weights=[1.0, 0.5, 0.0, 2.0])  # one for each sample of the dataset, shape (4,)
            train.select(weights="s3://bucket/weights.npy")  # of shape (num_samples,), of any type of numbers

        Args:
            samples: the numbers of the samples to take, in this order, each once: a range, up to 100,000 numbers, or
                the place of a .npy file with any count of whole numbers, which the workers read. None: all samples.
            where: a condition on columns, which chooses among the samples: comparisons, `in [...]`, `like "a*b"`,
                `and`, `or`, `not`, parentheses. The columns are `name`, `bytes`, `label`, `width` and `height` of
                images, the reader's outputs of one number or of bytes, and `length(output)`. A value that a sample
                does not have compares to false. Columns that the listing does not know are read from the records, once.
            by: a column of whole numbers or texts, as in `where`, whose values are the classes: `label`, or an output
                of the reader of one number. A sample without a value is left out.
            weights: "balanced", or the share of each class, of any sum, by its name. The classes of a list of files are
                its labels: {0: 0.5, 1: 0.5}. Every class with samples is named, unless "*" stands for the others. Or a
                weight of 0 or more for each sample of the dataset, also of those that `samples` and `where` leave out:
                up to 100,000 numbers, or the place of a .npy file with any count of them. 0 leaves a sample out.

        Raises:
            leat.InvalidArgument: a value is wrong, `by` has no weights of classes with it, or the pipeline has a
                selection already. What needs the dataset, as the name of a class or the number of samples, is checked
                by `Service.job`.
        """
        if self._selection:
            raise InvalidArgument(f"select: {self!r} already is a selection; expected one select with all arguments")
        if samples is None and where is None and by is None and weights is None:
            raise InvalidArgument("select: nothing is selected; expected samples, where or weights")
        made = Pipeline.__new__(Pipeline)
        made.__dict__.update(self.__dict__)
        made._selection = {} if weights is None else _selections.of_weights(weights)
        if by is not None:
            if weights is None or "weights" in made._selection:
                raise InvalidArgument(f"by = {by!r:.80}; expected weights with it: 'balanced', or shares by value")
            made._selection["by"] = _selections.of_by(by)
        if samples is not None:
            made._selection["samples"] = _selections.of_samples(samples)
        if where is not None:
            made._selection["where"] = _selections.of_where(where)
        return made

    def explain(self, error: Error) -> Error:
        """Returns the same error, with the script's lines of the nodes and outputs that its text names."""
        message = str(error)
        named = {f"node {number}": int(number) for number in re.findall(r"\bnode (\d+)", message)}
        for output in self._graph["outputs"]:
            if f'output "{output["name"]}"' in message:
                # JSON of protobuf leaves zeros out, and a wrong graph may have anything there.
                ref = output.get("ref")
                number = ref.get("node", 0) if isinstance(ref, dict) else None
                named |= {f"output {output['name']!r}": number} if isinstance(number, int) else {}
        lines = [f"  {name} is {self._lines[i]}" for name, i in sorted(named.items()) if 0 <= i < len(self._lines)]
        explained = type(error)(*error.args)
        explained.lines = tuple(lines)
        return explained

    def _check(self) -> Any:
        out = ctypes.c_void_p()
        try:
            native.check(native.lib.leat_pipeline_check(native.json_text(self._graph), ctypes.byref(out)))
        except Error as error:
            raise self.explain(error) from None
        return json.loads(native.take_text(out.value) or "[]")


def spec_of(pipeline: Pipeline) -> dict[str, Any]:
    """Returns the fields of a leat.v1.JobSpec or leat.v1.MixedSource that a pipeline gives."""
    spec: dict[str, Any] = {"pipeline": pipeline._graph}
    if pipeline._selection:
        spec["selection"] = pipeline._selection
    return spec


class _Factory:
    """A pipeline function that needs arguments before it can be traced."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Pipeline:
        return Pipeline(self._function, args, kwargs)

    def __reduce__(self) -> str:
        # As of functions: the other process imports it by its name.
        return getattr(self._function, "__qualname__", repr(self._function))


def _needs_arguments(function: Callable[..., Any]) -> bool:
    return any(
        parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        for parameter in inspect.signature(function).parameters.values()
    )


@overload
def pipeline(function: Callable[[], Any], /) -> Pipeline: ...
@overload
def pipeline(function: Callable[_P, Any], /) -> Callable[_P, Pipeline]: ...
@overload
def pipeline() -> Callable[[Callable[[], Any]], Pipeline]: ...
def pipeline(function: Callable[..., Any] | None = None, /) -> Any:
    """Makes a pipeline from a function, with or without parentheses: `@leat.pipeline`.

    The function is called once, here, with nodes in place of data. It returns a dict (names of the batch's arrays to
    nodes), a tuple of nodes (named output0, output1, …) or one node (named output). A function with parameters that
    have no default is traced when it is called with them.

    Args:
        function: builds the graph by calling functions of `leat.fn`.

    Returns:
        A `leat.Pipeline` for `Service.job`.

    Raises:
        leat.PipelineError: the function uses Python control flow or arithmetic on a node, or returns no node.
        leat.InvalidArgument: operators do not fit together; the text names the line.
    """
    if function is None:
        return pipeline
    if not callable(function):
        raise InvalidArgument(f"leat.pipeline takes a function, not {type(function).__name__} {function!r:.80}")
    return _Factory(function) if _needs_arguments(function) else Pipeline(function, (), {})

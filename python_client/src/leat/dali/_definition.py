# SPDX-License-Identifier: Apache-2.0
"""pipeline_def: turns functions that define a graph into functions that return a pipeline."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from leat.dali import _branches, _conditionals, _current
from leat.dali._node import DataNode
from leat.dali._operator import refuse_unknown
from leat.dali._pipeline import Pipeline

PIPELINE_ARGUMENTS = [name for name in inspect.signature(Pipeline.__init__).parameters if name != "self"]


def pipeline_def(
    fn: Callable[..., Any] | None = None, *, enable_conditionals: bool = False, **pipeline_kwargs: Any
) -> Any:
    """Turns a function that defines a graph into one that returns a pipeline.

    Use it as `@pipeline_def`, `@pipeline_def(batch_size=…)` or `pipeline_def(function)`. Calls take the function's own
    arguments and, by name, those of Pipeline, and enable_conditionals.

    Args:
        fn: returns a node, or a tuple of nodes.
        enable_conditionals: `if` on a node chooses for each sample.
        pipeline_kwargs: defaults for the arguments of Pipeline.
    """
    refuse_unknown("pipeline_def", pipeline_kwargs, PIPELINE_ARGUMENTS)

    def decorate(function: Callable[..., Any]) -> Callable[..., Pipeline]:
        converted = functools.cache(lambda: _conditionals.converted(function))
        if enable_conditionals:
            converted()  # raises errors where the function is decorated

        @functools.wraps(function)
        def create(*args: Any, **kwargs: Any) -> Pipeline:
            own, others = split_arguments(function, kwargs, "enable_conditionals")
            conditional = others.pop("enable_conditionals", enable_conditionals)
            traced = converted() if conditional else function
            pipeline = Pipeline(**{**pipeline_kwargs, **others})
            pipeline._rewritten = traced.__code__ if conditional else None
            define(pipeline, traced, args, own)
            return pipeline

        create._is_pipeline_def = True  # type: ignore[attr-defined]
        return create

    return decorate if fn is None else decorate(fn)


def split_arguments(
    function: Callable[..., Any], kwargs: dict[str, Any], *more: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits arguments by name into those of the function itself and those of Pipeline; TypeError for others.

    Args:
        more: names that belong to neither, and are allowed among the second.
    """
    parameters = inspect.signature(function).parameters.values()
    takes = {each.name for each in parameters if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)}
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        takes |= set(kwargs).difference(PIPELINE_ARGUMENTS, more)
    own = {name: value for name, value in kwargs.items() if name in takes}
    others = {name: value for name, value in kwargs.items() if name not in takes}
    name = getattr(function, "__name__", repr(function))
    refuse_unknown(f"{name}()", others, [*sorted(takes), *PIPELINE_ARGUMENTS, *more])
    return own, others


def define(pipeline: Pipeline, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Calls a function that defines a graph; its results become the pipeline's outputs."""
    pipeline._name = getattr(function, "__qualname__", "pipeline")

    # It does not refer to the pipeline, which keeps it: the pipeline ends when the script no longer refers to it.
    def graph() -> Any:
        with _branches.traced() as found:
            result = function(*args, **kwargs)
        outputs = result if isinstance(result, tuple) else (result,)
        nodes = [each.node for each in outputs if isinstance(each, DataNode)]
        _branches.check(found, nodes, _current.pipeline()._sinks)
        return result

    pipeline._define(graph)

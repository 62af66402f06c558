# SPDX-License-Identifier: Apache-2.0
"""Functions of `leat.dali.fn`: arguments by name, hints without effect, and errors that name what is wrong."""

from __future__ import annotations

import functools
import inspect
import logging
import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from leat._graphs.graph import user_line
from leat._graphs.odd_values import says_values
from leat._graphs.operators import nearest
from leat.dali import _current, _node
from leat.dali._node import DataNode
from leat.errors import Error, InvalidArgument, PipelineError

_logger = logging.getLogger("leat.dali")


class Hint(NamedTuple):
    """An argument that is accepted and has no effect.

    Attributes:
        kind: the kind of its value: "bool", "int", "number", "text", "any".
        default: DALI's default.
        why: the reason, for the list of docs/guide/move-from-dali-refused.md.
    """

    kind: str
    default: Any
    why: str


_MEMORY = "a worker sizes its memory by itself"
_DECODER = "which decoder a job has is the job's"
_READING = "workers read ahead, and cache, by themselves"
HINTS: dict[str, Hint] = {
    "device": Hint(
        "text", None, "workers decide where they compute; torch's iterators leave outputs of the CPU in host memory"
    ),
    "bytes_per_sample_hint": Hint("any", [0], _MEMORY),
    "seed": Hint("int", -1, "of an operator that draws no random numbers: nothing depends on it"),
    "preserve": Hint("bool", False, "an operator whose result is not needed has no effect that could be seen"),
    # Readers.
    "dont_use_mmap": Hint("bool", False, _READING),
    "initial_fill": Hint("int", 1024, "random_shuffle draws from the whole shard, not from a window"),
    "lazy_init": Hint("bool", False, _READING),
    "prefetch_queue_depth": Hint("any", 1, _READING),
    "read_ahead": Hint("bool", False, _READING),
    "skip_cached_images": Hint("bool", False, "decoders have no cache of images here"),
    "tensor_init_bytes": Hint("int", 1048576, _MEMORY),
    "cache_header_information": Hint("bool", False, _READING),
    "register_buffers": Hint("bool", True, _MEMORY),
    "use_o_direct": Hint("bool", False, _READING),
    # Decoders.
    "affine": Hint("bool", True, "workers own their threads"),
    "cache_batch_copy": Hint("bool", True, "decoders have no cache of images here"),
    "cache_debug": Hint("bool", False, "decoders have no cache of images here"),
    "cache_size": Hint("int", 0, "decoders have no cache of images here"),
    "cache_threshold": Hint("int", 0, "decoders have no cache of images here"),
    "cache_type": Hint("text", "", "decoders have no cache of images here"),
    "device_memory_padding": Hint("int", 16777216, _MEMORY),
    "device_memory_padding_jpeg2k": Hint("int", 0, _MEMORY),
    "host_memory_padding": Hint("int", 8388608, _MEMORY),
    "host_memory_padding_jpeg2k": Hint("int", 0, _MEMORY),
    "hw_decoder_load": Hint("number", 0.65, _DECODER),
    "hybrid_huffman_threshold": Hint("int", 1000000, _DECODER),
    "jpeg_fancy_upsampling": Hint("bool", False, "chroma is always upsampled smoothly, as DALI's CPU does"),
    "preallocate_height_hint": Hint("int", 0, _MEMORY),
    "preallocate_width_hint": Hint("int", 0, _MEMORY),
    "memory_stats": Hint("bool", False, "`leat get workers` shows what workers use"),
    "use_fast_idct": Hint("bool", False, "the accurate transform is always used"),
    # Resampling.
    "minibatch_size": Hint("int", 32, _MEMORY),
    "temp_buffer_hint": Hint("int", 0, _MEMORY),
    # External sources.
    "cuda_stream": Hint("any", None, "samples are in the host's memory"),
    "use_copy_kernel": Hint("any", None, "samples are in the host's memory"),
    "blocking": Hint("any", None, "a source is asked when its batch is due"),
    "no_copy": Hint("any", None, "what a source gives is not changed, and kept no longer than needed"),
    "parallel": Hint("any", None, "a source is asked in this process"),
    # Pipelines.
    "num_threads": Hint(
        "any",
        None,
        "workers own their threads: `leat-worker --threads` of a service; a private one takes the machine's cores",
    ),
    "exec_pipelined": Hint("any", True, "workers are always ahead of the training"),
    "exec_async": Hint("any", True, "workers are always ahead of the training"),
    "exec_dynamic": Hint("any", None, "there is one executor"),
    "experimental_exec_dynamic": Hint("any", None, "there is one executor"),
    "bytes_per_sample": Hint("int", 0, _MEMORY),
    "set_affinity": Hint("bool", False, "workers own their threads"),
    "max_streams": Hint("any", None, "there are no streams here"),
    "default_cuda_stream_priority": Hint("any", None, "there are no streams here"),
    "enable_memory_stats": Hint("bool", False, "`leat get workers` shows what workers use"),
    "py_num_workers": Hint("int", 1, "sources are asked in this process"),
    "py_start_method": Hint("text", "fork", "sources are asked in this process"),
    "py_callback_pickler": Hint("any", None, "sources are asked in this process"),
    "stream_policy": Hint("any", None, "there are no streams here"),
    "concurrency": Hint("any", None, "workers own their threads"),
}
# The consequence: one thread asks the source, where the script relies on several processes.
_SLOWER = "sources are asked by one thread of this process: a slow source then slows the training"
_warned: set[str] = set()
COMMON = "device bytes_per_sample_hint preserve"
_KINDS: dict[str, tuple[Any, str]] = {
    "bool": ((bool, np.bool_, int), "True or False"),
    "int": (numbers.Integral, "a whole number"),
    "number": (numbers.Real, "a number"),
    "text": (str, "a text"),
}


def check_hint(where: str, name: str, value: Any) -> None:
    """Raises TypeError if the hint is of another kind."""
    kind = HINTS[name].kind
    if value is None or kind == "any":
        return
    types, expected = _KINDS[kind]
    if not isinstance(value, types):
        raise TypeError(f"{where}: {name} = {value!r:.80} ({type(value).__name__}); expected {expected}")
    if name == "device" and value not in ("cpu", "gpu", "mixed"):
        raise ValueError(f'{where}: device = {value!r}; expected "cpu", "gpu" or "mixed"')


def warn_of_slower(where: str, name: str) -> None:
    """Logs once what the script loses with a hint that it needs for its speed."""
    if name not in _warned:
        _warned.add(name)
        _logger.warning(
            "%s: %s is accepted, but %s; do the work in operators, which workers compute, or read from storage",
            where,
            name,
            _SLOWER,
        )


def refuse_unknown(where: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises TypeError for the first unknown name, with the nearest known one."""
    known = list(known)
    for name in given:
        if name not in known:
            raise TypeError(f"{where} has no argument {name!r}{nearest(name, known)}")


def says_line(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function, with the script's line added to errors about its arguments."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (Error, TypeError, ValueError) as error:
            line = user_line()
            if line not in str(error):
                error.args = (f"{error} ({line})",)
            raise

    return call


def operator(
    name: str,
    *,
    hints: str = "",
    random: bool = False,
    optional_inputs: int = 0,
    more: dict[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function of `fn` from a function that takes its inputs, which are nodes, and then DALI's arguments.

    Args:
        name: the name as in DALI, after "fn.".
        hints: names of HINTS that it also takes, besides those that all functions take.
        random: it also takes a seed.
        optional_inputs: how many of its inputs may be left out.
        more: further arguments and their defaults, which it takes as **arguments when they are given.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        where = f"fn.{name}"
        parameters = list(inspect.signature(function).parameters.values())
        variadic = any(each.kind is each.VAR_POSITIONAL for each in parameters)
        inputs = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        arguments = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
        arguments += [
            inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY, default=d) for each, d in (more or {}).items()
        ]
        accepted = [*COMMON.split(), *hints.split(), *([] if random else ["seed"])]
        known = [*(each.name for each in arguments), *accepted, "name", *(["seed"] if random else [])]
        named = any(each.name == "name" for each in arguments)
        defaults = {each.name: each.default for each in arguments}

        @says_line
        @functools.wraps(function)
        def call(*given: Any, **kwargs: Any) -> Any:
            if any(_has_node(each) for each in given):
                return [call(*each, **kwargs) for each in _input_sets(where, given)]
            refuse_unknown(where, kwargs, [*known, *inputs])
            given = _with_named(where, given, kwargs, inputs)
            kwargs = {key: _plain(value) for key, value in _without_none(where, kwargs, defaults).items()}
            if not variadic and not len(inputs) - optional_inputs <= len(given) <= len(inputs):
                raise TypeError(f"{where} takes {len(inputs)} inputs, not {len(given)}")
            nodes = [_input(where, i, each) for i, each in enumerate(given)]
            device = _device(where, kwargs, nodes, accepted)
            if random:
                seed = kwargs.pop("seed", None)
                if seed is not None and (whole := seed_of(f"{where}: seed", seed)) != -1:
                    _current.add_seed(whole)
            operator_name = kwargs.pop("name", None)
            if operator_name is not None and not isinstance(operator_name, str):
                raise TypeError(f"{where}: name = {operator_name!r:.80}; expected a text")
            if named:
                kwargs["name"] = operator_name
            with says_values(where, kwargs):
                result = function(*nodes, **kwargs)
            return _placed(result, device)

        call.__signature__ = _signature(parameters, known, arguments)  # type: ignore[attr-defined]
        call.__module__ = "leat.dali.fn"
        call.__name__ = name.rpartition(".")[2]
        call.__qualname__ = name
        return call

    return decorate


def _input_sets(where: str, given: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """Returns the inputs of each call, from lists of nodes; any other input, such as a list of numbers, is that of all
    calls."""
    lengths = {len(each) for each in given if _has_node(each)}
    if len(lengths) > 1:
        raise InvalidArgument(
            f"{where}: lists of {' and '.join(map(str, sorted(lengths)))} inputs; expected lists of one length, since "
            "the operator is applied to the first of each, then to the second, and so on"
        )
    (count,) = lengths
    return zip(*(each if _has_node(each) else [each] * count for each in given))


def _with_named(where: str, given: Sequence[Any], kwargs: dict[str, Any], inputs: Sequence[str]) -> Sequence[Any]:
    """Returns the inputs with those that are given by name, which are taken out of `kwargs`."""
    further = [kwargs.pop(each, None) for each in inputs[len(given) :]]
    while further and further[-1] is None:
        further.pop()
    left_out = next((name for name, each in zip(inputs[len(given) :], further) if each is None), None)
    if left_out is not None:
        raise TypeError(f"{where}: the input {inputs[len(given) + len(further) - 1]} is given without {left_out}")
    return (*given, *further)


def _without_none(where: str, kwargs: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments without those that are None, which stands for the default of an optional argument."""
    for name, value in kwargs.items():
        if value is None and defaults.get(name) is inspect.Parameter.empty:
            raise TypeError(f"{where}: {name} = None; expected a value, since it has no default")
    return {name: value for name, value in kwargs.items() if value is not None}


def _plain(value: Any) -> Any:
    """Returns an argument in which constants of one number are replaced by the number."""
    if isinstance(value, DataNode):
        return getattr(value, "value", value)
    if isinstance(value, (list, tuple)) and any(isinstance(each, DataNode) for each in value):
        return [_plain(each) for each in value]
    return value


def _has_node(value: Any) -> bool:
    """True for a list with a node in it."""
    return isinstance(value, (list, tuple)) and any(isinstance(each, DataNode) for each in value)


def _input(where: str, i: int, value: Any) -> DataNode:
    if isinstance(value, DataNode):
        return value
    if isinstance(value, (bool, int, float, np.ndarray, np.generic)) or isinstance(value, (list, tuple)) and value:
        return _node.node_of(value)
    hint = ": a reader returns several outputs" if isinstance(value, (tuple, list)) else ""
    raise PipelineError(f"{where}: input {i} is {type(value).__name__} {value!r:.60}; expected a node{hint}")


def seed_of(where: str, seed: Any) -> int:
    """Returns a seed; raises InvalidArgument if it is none."""
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
        raise InvalidArgument(f"{where} = {seed!r:.40}; expected a whole number")
    return int(seed)


def _device(where: str, kwargs: dict[str, Any], nodes: list[DataNode], accepted: list[str]) -> str | None:
    """Takes the hints out of `kwargs`; returns the device that the script gives."""
    for hint in accepted:
        if hint in kwargs:
            check_hint(where, hint, kwargs[hint])
    device = kwargs.get("device")
    for hint in accepted:
        kwargs.pop(hint, None)
    if device is None:
        return "gpu" if any(each.device == "gpu" for each in nodes) else None
    return "cpu" if device == "cpu" else "gpu"


def _placed(result: Any, device: str | None) -> Any:
    if device is None:
        return result
    if isinstance(result, DataNode):
        return result.on(device)
    if isinstance(result, dict):
        return {key: _placed(value, device) for key, value in result.items()}
    if isinstance(result, (list, tuple)):
        return type(result)(_placed(each, device) for each in result)
    return result


def _signature(
    parameters: list[inspect.Parameter], known: list[str], arguments: list[inspect.Parameter]
) -> inspect.Signature:
    """Lists inputs by position, then device and name, then all other arguments in alphabetical order, as DALI does."""
    inputs = [each for each in parameters if each.kind not in (each.KEYWORD_ONLY, each.VAR_KEYWORD)]
    own = {each.name: each.default for each in arguments}
    defaults = {name: own.get(name, HINTS[name].default if name in HINTS else None) for name in known}
    if "seed" in defaults and "seed" not in own:
        defaults["seed"] = -1
    order = ["device", "name", *sorted(name for name in defaults if name not in ("device", "name"))]
    keywords = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name]) for name in order]
    return inspect.Signature([*inputs, *keywords])

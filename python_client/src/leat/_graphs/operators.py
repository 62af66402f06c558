# SPDX-License-Identifier: Apache-2.0
"""The library's operator table, and the Python functions made from it."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import json
import numbers
import operator
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from leat._graphs import unpack
from leat._graphs.graph import Node, Operation, constant, is_finite
from leat._library import native
from leat.errors import InvalidArgument

_REQUIRED = inspect.Parameter.empty

# Operators whose inputs may all be numbers or lists of numbers, as constants.
_TAKE_NUMBERS = frozenset(
    "add sub mul div floordiv min max lt le gt ge eq ne bitwise_and bitwise_or bitwise_xor where".split()
)


@dataclasses.dataclass(frozen=True, slots=True)
class Arg:
    """One argument of an operator; the names are those of leat_operators_json."""

    name: str
    type: str
    default: Any
    per_sample: bool
    range: tuple[float, float] | None
    choices: tuple[str, ...]
    doc: str

    @property
    def annotation(self) -> str:
        """Returns the type for signatures and stubs."""
        words = {
            "ints": "int | Sequence[int]",
            "floats": "float | Sequence[float]",
            "string": "str",
            "strings": "str | Sequence[str]",
        }
        kind = words.get(self.type, self.type)
        if self.choices:
            kind = f"Literal[{', '.join(map(repr, self.choices))}]"
            if self.type == "strings":
                kind = f"{kind} | Sequence[{kind}]"
        return f"{kind} | Node" if self.per_sample else kind

    def describe(self) -> str:
        """Returns the entry under "Args:" of a docstring."""
        facts = [self.type + (", or a node: one value a sample" if self.per_sample else "")]
        if self.choices:
            facts.append("one of " + ", ".join(map(repr, self.choices)))
        if self.range:
            facts.append(_span(self.range))
        facts.append("required" if self.default is _REQUIRED else f"default {self.default!r}")
        return f"{self.name}: {self.doc} ({'; '.join(facts)})"


@dataclasses.dataclass(frozen=True, slots=True)
class OperatorInfo:
    """One operator; `inputs` and `outputs` are counts.

    If `outputs_of` is not empty, it names a list argument: the operator has one output for each of its values, and a
    call returns a tuple of them. A variadic one takes more inputs than `inputs`, and has an output more for each.
    """

    name: str
    doc: str
    inputs: int
    outputs: int
    random: bool
    args: tuple[Arg, ...]
    outputs_of: str = ""
    variadic: bool = False

    @property
    def input_names(self) -> tuple[str, ...]:
        if self.variadic:
            return ("inputs",)
        return ("input",) if self.inputs == 1 else tuple(f"input{i}" for i in range(self.inputs))

    @property
    def input_annotation(self) -> str:
        """Returns the type of an input for signatures and stubs."""
        return "Node | float | Sequence[float]" if self.name in _TAKE_NUMBERS else "Node"

    def docstring(self) -> str:
        """Returns the docstring for help() and the stubs."""
        lines = [self.doc + (". Draws anew for each sample and epoch." if self.random else "."), ""]
        kind = "a node, or numbers" if self.name in _TAKE_NUMBERS else "a node"
        kind = "nodes, one or more" if self.variadic else kind
        entries = [f"{name}: {kind} (positional)" for name in self.input_names]
        entries += [arg.describe() for arg in self.args]
        if entries:
            lines += ["Args:", *("    " + entry for entry in entries), ""]
        if self.outputs_of:
            returns = f"A tuple of nodes, one for each of {self.outputs_of}; of one, too: (x,) = fn.{self.name}(…)."
        elif self.variadic:
            returns = f"A tuple of nodes: one for each input, and {self.outputs} more."
        else:
            returns = "A node." if self.outputs == 1 else f"A tuple of {self.outputs} nodes."
        lines += ["Returns:", "    " + returns, ""]
        lines += ["Raises:", "    leat.InvalidArgument: an unknown argument, or a value of the wrong type or range."]
        return "\n".join(lines)


def _number_range(entry: dict[str, Any]) -> tuple[float, float] | None:
    low, high = entry.get("min"), entry.get("max")
    if low is None or high is None or low > high:
        return None
    return float(low), float(high)


def _arg(entry: dict[str, Any]) -> Arg:
    default = entry.get("default")
    if default is None:
        default = _REQUIRED
    elif isinstance(default, list):
        default = tuple(default)
    elif entry["type"] == "float":
        default = float(default)
    numeric = entry["type"] in ("int", "float", "ints", "floats")
    return Arg(
        name=entry["name"],
        type=entry["type"],
        default=default,
        per_sample=bool(entry.get("per_sample")),
        range=_number_range(entry) if numeric else None,
        choices=tuple(entry.get("choices") or ()),
        doc=entry.get("doc", ""),
    )


@functools.cache
def table() -> tuple[OperatorInfo, ...]:
    """Returns every operator of the library."""
    entries = json.loads(native.take_text(native.lib.leat_operators_json()))
    return tuple(
        OperatorInfo(
            name=entry["name"],
            doc=entry.get("doc", ""),
            inputs=int(entry["inputs"]),
            outputs=int(entry["outputs"]),
            random=bool(entry.get("random")),
            args=tuple(_arg(arg) for arg in entry["args"]),
            outputs_of=entry.get("outputs_of", ""),
            variadic=bool(entry.get("variadic")),
        )
        for entry in entries
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns ", did you mean 'x'?", or an empty text."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def _span(low_high: tuple[float, float]) -> str:
    """Returns a range for people: "1 … 16,777,216"."""
    return " … ".join(f"{n:,.0f}" if n % 1 == 0 and abs(n) < 1e16 else f"{n:g}" for n in low_high)


def shown(value: Any) -> str:
    """Returns `repr(value)` without what follows the scheme of an address, which may be a password or a signature."""
    return re.sub(r"://[^\s'\"]*", "://...", repr(value))


def _wrong(where: str, value: Any, expected: str) -> InvalidArgument:
    return InvalidArgument(
        f"{where} = {shown(value):.120} ({type(value).__name__}); expected {expected}{unpack.hint(value)}"
    )


def _bool(where: str, value: Any) -> bool:
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise _wrong(where, value, "True or False")


def _int(where: str, value: Any) -> int:
    if not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
        if isinstance(value, numbers.Real) and float(value).is_integer():
            return int(float(value))
    raise _wrong(where, value, "a whole number")


def _float(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise _wrong(where, value, "a number")
    if not is_finite(value):
        raise _wrong(where, value, "a finite number")
    return float(value)


def _list(where: str, value: Any, one: Callable[[str, Any], Any]) -> list[Any]:
    if isinstance(value, (set, frozenset)):
        raise _wrong(where, value, "a list: a set has no order, and another process would have another one")
    single = isinstance(value, (str, bytes, dict)) or hasattr(value, "__fspath__")
    if single or not hasattr(value, "__iter__") or getattr(value, "ndim", 1) == 0:
        return [one(where, value)]
    items = list(value)
    try:
        return [one(where, item) for item in items]
    except InvalidArgument:  # again, to name the first wrong one: a list may have a million
        return [one(f"{where}[{i}]", item) for i, item in enumerate(items)]


def _string(where: str, value: Any, choices: tuple[str, ...]) -> str:
    if hasattr(value, "__fspath__"):
        value = value.__fspath__()
    if not isinstance(value, str):
        raise _wrong(where, value, "a text")
    if "\0" in value or not native.is_unicode(value):
        raise _wrong(where, value, "a text of Unicode characters other than zero")
    if choices and value not in choices:
        raise _wrong(where, value, f"one of {', '.join(map(repr, choices))}{nearest(value, choices)}")
    return value


def coerce(operator_name: str, arg: Arg, value: Any) -> Any:
    """Converts the value to the argument's type; raises InvalidArgument with operator, argument, value, expectation."""
    where = f"fn.{operator_name}: {arg.name}"
    if isinstance(value, Node):
        if arg.per_sample:
            return value
        raise _wrong(where, value, f"a constant {arg.type}: this argument is the same for every sample")
    if arg.type == "string":
        return _string(where, value, arg.choices)
    if arg.type == "strings":
        return _list(where, value, functools.partial(_string, choices=arg.choices))
    if arg.type == "bool":
        return _bool(where, value)
    one = _int if arg.type in ("int", "ints") else _float
    result = _list(where, value, one) if arg.type in ("ints", "floats") else one(where, value)
    for number in result if isinstance(result, list) else [result]:
        if arg.range and not arg.range[0] <= number <= arg.range[1]:
            raise _wrong(where, value, _span(arg.range))
    return result


def _is_none(operator_name: str, arg: Arg, value: Any) -> bool:
    """True for an empty list that means the same as no argument: a graph has no element type for an empty list."""
    if not isinstance(value, list) or value:
        return False
    if arg.type == "strings" and arg.default != ():
        raise _wrong(f"fn.{operator_name}: {arg.name}", value, "at least one text (a pattern that found no files?)")
    return arg.default == ()


def _bind(info: OperatorInfo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Splits a call into inputs and given arguments by name."""
    inputs = list(args if info.variadic else args[: info.inputs])
    if info.name in _TAKE_NUMBERS:
        inputs = [constant(value) for value in inputs]
    for i, value in enumerate(inputs):
        if not isinstance(value, Node):
            name = f"inputs[{i}]" if info.variadic else info.input_names[i]
            raise _wrong(f"fn.{info.name}: {name}", value, "the output of another operator")
    if len(inputs) < info.inputs:
        raise InvalidArgument(f"fn.{info.name}: {len(inputs)} inputs given; expected {info.inputs}, before all else")
    names = [arg.name for arg in info.args]
    positional = args[len(inputs) :]
    if len(positional) > len(names):
        raise InvalidArgument(
            f"fn.{info.name}: {len(args)} positional values given; expected at most {info.inputs + len(names)}"
        )
    given = dict(zip(names, positional))
    for name, value in kwargs.items():
        if name not in names:
            known = f"it has {', '.join(names)}" if names else "it has none"
            raise InvalidArgument(f"fn.{info.name} has no argument {name!r}{nearest(name, names)} ({known})")
        if name in given:
            raise InvalidArgument(f"fn.{info.name}: {name} is given twice, by position and by name")
        given[name] = value
    missing = [arg.name for arg in info.args if arg.default is _REQUIRED and arg.name not in given]
    if missing:
        raise InvalidArgument(f"fn.{info.name}: {' and '.join(missing)} must be given")
    return inputs, given


def _signature(info: OperatorInfo) -> inspect.Signature:
    kind = inspect.Parameter.VAR_POSITIONAL if info.variadic else inspect.Parameter.POSITIONAL_ONLY
    parameters = [inspect.Parameter(name, kind) for name in info.input_names]
    optional_seen = False
    for i, arg in enumerate(info.args):
        # A required argument after an optional one can be given by name only.
        optional_seen = optional_seen or arg.default is not _REQUIRED
        required_later = any(later.default is _REQUIRED for later in info.args[i:])
        by_name = info.variadic or (optional_seen and required_later)
        kind = inspect.Parameter.KEYWORD_ONLY if by_name else inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(inspect.Parameter(arg.name, kind, default=arg.default, annotation=arg.annotation))
    if info.outputs_of or info.variadic:
        result = "tuple[Node, ...]"
    else:
        result = "Node" if info.outputs == 1 else f"tuple[{', '.join(['Node'] * info.outputs)}]"
    return inspect.Signature(parameters, return_annotation=result)


def _outputs(info: OperatorInfo, args: dict[str, Arg], values: dict[str, Any], inputs: int) -> int:
    """Returns how many outputs a call with these arguments, and so many inputs, has."""
    if info.variadic:
        return info.outputs + inputs
    if not info.outputs_of:
        return info.outputs
    values_of = values.get(info.outputs_of, args[info.outputs_of].default)
    return len(values_of)


# Arguments of readers that are paths or URIs (IsPlace in core/plan/job.cc).
_PLACES = frozenset("path paths root files array annotations index".split())


def absolute(place: str) -> str:
    """Makes a relative path absolute now: it is relative to the script, not to the process that reads it later.

    A leading ~ or ~user is that home, as in a shell; ./~ is a folder of that name.
    """
    if place.startswith("~"):
        place = os.path.expanduser(place)
    if not place or place.startswith("/") or "://" in place:
        return place
    return os.path.join(os.getcwd(), "" if place == "." else place.removeprefix("./"))


def _make_absolute(reader: str, values: dict[str, Any]) -> None:
    places = _PLACES | {"images", "labels"} if reader == "readers.idx" else _PLACES
    for name in places & values.keys():
        if name == "files" and values.get("root"):
            continue  # below it
        value = values[name]
        values[name] = [absolute(each) for each in value] if isinstance(value, list) else absolute(value)


def make_function(info: OperatorInfo) -> Callable[..., Any]:
    """Makes the function of `leat.fn` for an operator."""
    args_by_name = {arg.name: arg for arg in info.args}

    def call(*args: Any, **kwargs: Any) -> Any:
        inputs, given = _bind(info, args, kwargs)
        values = {name: coerce(info.name, args_by_name[name], value) for name, value in given.items()}
        values = {name: value for name, value in values.items() if not _is_none(info.name, args_by_name[name], value)}
        if info.name.startswith("readers."):
            _make_absolute(info.name, values)
        operation = Operation(info.name, tuple(inputs), values)
        outputs = tuple(Node(operation, i) for i in range(_outputs(info, args_by_name, values, len(inputs))))
        return outputs[0] if len(outputs) == 1 and not info.outputs_of else outputs

    call.__name__ = info.name.rpartition(".")[2]
    call.__qualname__ = info.name
    call.__module__ = "leat.fn"
    call.__doc__ = info.docstring()
    call.__signature__ = _signature(info)  # type: ignore[attr-defined]
    return call

# SPDX-License-Identifier: Apache-2.0
"""Operators as classes over `leat.dali.fn`: the constructor takes arguments, the call inputs and further arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from leat.dali import fn
from leat.dali._operator import refuse_unknown, says_line

# Arguments that a constructor takes by position.
_POSITIONAL = {
    "external_source": ("source", "num_outputs"),
    "python_function": ("function", "num_outputs"),
    "readers.tfrecord": ("path", "index_path", "features"),
}
# Class names that are not the function's words with capitals.
_NAMES = {
    "caffe": "Caffe",
    "coco": "COCO",
    "mxnet": "MXNet",
    "tfrecord": "TFRecord",
}


class Operator:
    """An operator with arguments; a call with nodes adds it to the pipeline that is being defined."""

    _function: Callable[..., Any]
    _name: str

    @says_line
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = _POSITIONAL.get(self._name, ())
        where = f"ops.{type(self).__qualname__}"
        if len(args) > len(names):
            raise TypeError(f"{where}: {len(args)} values by position; expected its arguments by name")
        given = dict(zip(names, args))
        twice = sorted(set(given) & set(kwargs))
        if twice:
            raise TypeError(f"{where}: {twice[0]} is given by position and by name; expected one of them")
        self._arguments = {**given, **kwargs}
        refuse_unknown(where, self._arguments, inspect.signature(self._function).parameters)

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return type(self)._function(*inputs, **{**self._arguments, **kwargs})

    @property
    def device(self) -> str:
        """The device that the script gives; it has no effect."""
        return self._arguments.get("device") or "cpu"

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r:.40}" for name, value in self._arguments.items())
        return f"ops.{type(self).__qualname__}({arguments})"


def class_name(name: str) -> str:
    """Returns the class name of a function of `fn`: "resize_crop_mirror" becomes ResizeCropMirror."""
    return _NAMES.get(name) or "".join(word.capitalize() for word in name.split("_"))


def class_of(module: str, name: str, function: Callable[..., Any]) -> type[Operator]:
    """Makes a class over a function.

    Args:
        module: its module: "leat.dali.ops", or one of its groups.
        name: the function's name, after "fn.".
    """
    title = class_name(name.rpartition(".")[2])
    namespace = {
        "__module__": module,
        "__doc__": f"`fn.{name}` as a class. {inspect.getdoc(function) or ''}",
        "_function": staticmethod(function),
        "_name": name,
    }
    return type(title, (Operator,), namespace)


def of_group(module: str, group: ModuleType | None = None) -> dict[str, type[Operator]]:
    """Returns the classes of a group of `fn`, by name; None: those of `fn` itself."""
    prefix = "" if group is None else f"{module.rpartition('.')[2]}."
    functions = {name: value for name, value in vars(group or fn).items() if name[0] != "_"}
    own = ("leat.dali.fn", "leat.dali._external_source")
    return {
        class_name(name): class_of(module, prefix + name, value)
        for name, value in functions.items()
        if getattr(value, "__module__", "") in own and value.__qualname__ == prefix + name
    }

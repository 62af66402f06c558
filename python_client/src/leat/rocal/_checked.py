# SPDX-License-Identifier: Apache-2.0
"""The signatures of rocAL's functions: unknown arguments are refused by name, arguments without effect are accepted."""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from leat._graphs.odd_values import says_values
from leat._graphs.operators import nearest
from leat.errors import InvalidArgument, Unimplemented
from leat.rocal import types
from leat.rocal._tensor import Tensor, dtype_of, image_of, layout_of

_Result = TypeVar("_Result")

# The arguments of each function that are accepted without effect; docs/guide/move-from-rocal.md lists them.
HINTS: dict[str, tuple[str, ...]] = {}
# Names of rocAL that Leat does not support, as scripts write them; docs/guide/move-from-rocal.md lists them.
REFUSED: set[str] = set()

_KINDS: tuple[tuple[type, type | tuple[type, ...], str], ...] = (
    (bool, (bool, int), "True or False"),
    (numbers.Real, numbers.Real, "a number"),
    (str, str, "a text"),
    (list, (list, tuple), "a list"),
)


def check_hint(where: str, value: Any, default: Any) -> None:
    """Raises InvalidArgument if a hint is not of its default's type; with a default of None any type is accepted."""
    for kind, allowed, expected in _KINDS:
        if isinstance(default, kind):
            if not isinstance(value, allowed):
                raise InvalidArgument(f"{where} = {value!r:.60}; expected {expected}")
            return


def refuse_unknown(where: str, given: Mapping[str, Any], known: Any) -> None:
    """Raises TypeError for the first unknown name."""
    for name in given:
        if name not in known:
            raise TypeError(f"{where} has no argument {name!r}{nearest(name, known)} (it has {', '.join(known)})")


def _public(function: Callable[..., Any], hints: Mapping[str, Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=hints[name]) for name in hints]
    return signature.replace(parameters=[*signature.parameters.values(), *added])


def with_options_of(other: Callable[..., Any]) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
    """Shows the keyword-only parameters of `other` in place of the `**` parameter through which the function takes
    them."""

    def decorate(function: Callable[..., _Result]) -> Callable[..., _Result]:
        *own, _ = inspect.signature(function).parameters.values()
        added = [each for each in inspect.signature(other).parameters.values() if each.kind is each.KEYWORD_ONLY]
        function.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
        return function

    return decorate


def operator(name: str, **hints: Any) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
    """Makes a function of `leat.rocal.fn` from one without hints among its parameters.

    Args:
        name: the name as scripts write it after "fn.".
        **hints: arguments, with their defaults, that are checked for their type and dropped.
    """

    def decorate(function: Callable[..., _Result]) -> Callable[..., _Result]:
        where = f"fn.{name}"
        signature = _public(function, hints)
        HINTS[where] = tuple(hints)
        names = [
            parameter.name
            for parameter in signature.parameters.values()
            if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            refuse_unknown(where, kwargs, names)
            for hint, default in hints.items():
                if hint in kwargs:
                    check_hint(f"{where}: {hint}", kwargs.pop(hint), default)
            try:
                bound = inspect.signature(function).bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{where}: {error}") from None
            with says_values(where, {**kwargs}):
                return function(*bound.args, **bound.kwargs)

        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__name__ = name.rpartition(".")[2]
        call.__qualname__ = name
        return call

    return decorate


def image_operator(name: str, **hints: Any) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Makes an operator from an image to an image: with rocAL's output_layout (NHWC) and output_dtype (UINT8)."""

    def decorate(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @functools.wraps(function)
        def call(
            image: Any, /, *args: Any, output_layout: Any = types.NHWC, output_dtype: Any = types.UINT8, **kwargs: Any
        ) -> Tensor:
            layout = layout_of(f"fn.{name}: output_layout", output_layout)
            dtype = dtype_of(f"fn.{name}: output_dtype", output_dtype)
            tensor = function(image_of(f"fn.{name}", image), *args, **kwargs)
            return Tensor(tensor.node, tensor.dtype, layout).cast(dtype)

        added = {"output_layout": types.NHWC, "output_dtype": types.UINT8}
        call.__signature__ = _public(function, added)  # type: ignore[attr-defined]
        return operator(name, device=None, **hints)(call)

    return decorate


Refused: TypeAlias = Callable[..., Any]


def refused(name: str, instead: str = "") -> Refused:
    """Returns a function of rocAL that Leat does not support: it raises when it is called."""
    REFUSED.add(f"fn.{name}")

    def call(*_: Any, **__: Any) -> Any:
        raise Unimplemented(f"fn.{name}: Leat has no such operator{'; ' + instead if instead else ''}")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Not in Leat: raises leat.Unimplemented."
    return call

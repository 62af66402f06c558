# SPDX-License-Identifier: Apache-2.0
"""Options of calls: each is checked, or an error names it, its value and what was expected."""

from __future__ import annotations

import numbers
import os
import pathlib
import sys
from typing import Any

import numpy as np

from leat._graphs.operators import nearest
from leat.errors import InvalidArgument


def chosen(name: str, value: Any, choices: dict[str, str]) -> str:
    if isinstance(value, str) and value in choices:
        return choices[value]
    hint = nearest(value, choices) if isinstance(value, str) else ""
    raise InvalidArgument(f"{name} = {value!r:.80}; expected one of {', '.join(map(repr, choices))}{hint}")


def whole(name: str, value: Any, low: int, high: int) -> int:
    try:
        number = value.__index__()
    except (AttributeError, TypeError):
        number = None
    if number is None or isinstance(value, bool) or not low <= number <= high:
        raise InvalidArgument(f"{name} = {value!r:.80}; expected a whole number from {low} to {high}")
    return number


def flag(name: str, value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise InvalidArgument(f"{name} = {value!r:.80}; expected True or False")


def _is_number(value: Any) -> bool:
    """NumPy's numbers too, as a configuration or a schedule has them."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def share(name: str, value: Any) -> float:
    if not _is_number(value) or not 0 <= value <= 1:
        raise InvalidArgument(f"{name} = {value!r:.80}; expected a share from 0.0 to 1.0")
    return float(value)


def positive_number(what: str, value: Any) -> float:
    """Returns a finite number of 0 or more."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        try:  # NumPy's numbers
            number = value.item()
        except (AttributeError, ValueError):
            number = None
        if not isinstance(number, (int, float)):
            raise InvalidArgument(f"{what} = {value!r:.40}; expected a number of 0 or more")
        value = number
    if not 0 <= value <= sys.float_info.max:
        raise InvalidArgument(f"{what} = {value!r:.40}; expected a number of 0 or more")
    return float(value)


def seconds(name: str, value: Any) -> float:
    if not _is_number(value) or not value > 0:
        raise InvalidArgument(f"{name} = {value!r:.80}; expected seconds, more than 0")
    return float(min(value, 1e9))


def file_text(what: str, path: str | os.PathLike[str] | None) -> str | None:
    if path is None:
        return None
    try:
        path = os.fspath(path)
        if not isinstance(path, str):
            raise TypeError
    except TypeError:
        raise InvalidArgument(f"{what} = {path!r:.80}; expected the path of a file") from None
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # also what is no text, and a path that no file can have
        raise InvalidArgument(f"{what} = {path!r}: {error}") from None
    if "\0" in text:  # said here, since later errors would show the text, which may be a key
        raise InvalidArgument(f"{what} = {path!r} has zero bytes in it; expected a file of text")
    return text

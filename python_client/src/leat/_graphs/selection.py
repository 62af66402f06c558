# SPDX-License-Identifier: Apache-2.0
"""The arguments of Pipeline.select, checked and in the JSON form of leat.v1.Selection.

These are pure functions, called when a pipeline is defined. A wrong argument raises InvalidArgument with its name. What
needs the dataset, such as the language of conditions, is checked by the coordinator and the workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from typing import Any

from leat._graphs.operators import absolute, shown
from leat._graphs.options import positive_number
from leat.errors import InvalidArgument

_MOST_GROUPS = 65536
_MOST_NUMBERS = 100_000
_MOST_SAMPLES = 2**48
# Types of arrays begin so in NumPy, PyTorch, JAX and pandas; what is not known is judged by its elements.
_NO_INTEGERS = ("float", "bfloat", "complex", "void", "str", "bytes", "datetime", "timedelta")


def _name(key: Any) -> str:
    """Returns the name of a group; a list of files calls its groups by their labels."""
    if isinstance(key, str):
        return key
    try:
        number = key.__index__()
    except (AttributeError, TypeError):
        number = None
    if number is None or isinstance(key, bool):
        raise InvalidArgument(f"weights has {key!r:.80}; expected the name of a class, or a label")
    return str(number)


def _range(numbers: range) -> dict[str, Any]:
    if numbers.step < 1:
        raise InvalidArgument(f"samples = {numbers!r}; expected a step of 1 or more")
    if not numbers:
        raise InvalidArgument(f"samples = {numbers!r} is empty; expected samples")
    if numbers.start < 0 or numbers[-1] >= _MOST_SAMPLES:
        raise InvalidArgument(f"samples = {numbers!r}; expected numbers of 0 or more, below {_MOST_SAMPLES}")
    return {"begin": str(numbers.start), "end": str(numbers.stop), "step": str(numbers.step)}


def _list(numbers: Iterable[Any]) -> dict[str, Any]:
    gaps: list[str] = []
    seen: set[int] = set()
    before = 0
    for number in numbers:
        if len(gaps) == _MOST_NUMBERS:
            raise InvalidArgument(
                f"samples has more than {_MOST_NUMBERS:,} numbers; expected at most that many, a range, or the place "
                "of a .npy file"
            )
        try:
            whole = number.__index__()
        except (AttributeError, TypeError):
            whole = None
        if type(number).__name__ in ("bool", "bool_"):
            raise InvalidArgument(f"samples[{len(gaps)}] = {number!r}; expected numbers; of a mask, numpy.flatnonzero")
        if whole is None or not 0 <= whole < _MOST_SAMPLES:
            raise InvalidArgument(f"samples[{len(gaps)}] = {number!r:.80}; expected a whole number of 0 or more")
        if whole in seen:
            raise InvalidArgument(f"samples has {whole} twice; expected each number once")
        seen.add(whole)
        gaps.append(str(whole - before))
        before = whole
    if not gaps:
        raise InvalidArgument("samples is empty; expected samples")
    return {"gaps": gaps}


def _check_array(samples: Any) -> None:
    """Refuses an array whose type or shape says that it has no numbers of samples."""
    dtype, shape = getattr(samples, "dtype", None), getattr(samples, "shape", None)
    if dtype is None or not isinstance(shape, tuple) or not shape:
        return
    if len(shape) > 1:
        raise InvalidArgument(f"samples is an array of shape {tuple(shape)}; expected integers along one axis")
    name = str(getattr(dtype, "name", dtype)).rpartition(".")[2].lower()
    if name.startswith("bool"):
        raise InvalidArgument("samples is a mask of bool; expected integers, as numpy.flatnonzero(mask) has them")
    if name.startswith(_NO_INTEGERS):
        raise InvalidArgument(
            f"samples is an array of {name}; expected integers, as samples.astype('int64') has them"
        )


def of_samples(samples: Any) -> dict[str, Any]:
    """Returns the JSON form of leat.v1.Numbers."""
    if isinstance(samples, range):
        return _range(samples)
    if isinstance(samples, (str, os.PathLike)):
        uri = os.fspath(samples)
        if not isinstance(uri, str) or not uri.partition("?")[0].endswith(".npy"):
            raise InvalidArgument(f"samples = {shown(samples):.80}; expected the place of a .npy file")
        return {"uri": absolute(uri)}
    _check_array(samples)
    try:
        if isinstance(samples, (bytes, set, frozenset, Mapping)):  # none of them is numbers in an order
            raise TypeError
        numbers = iter(samples)
    except TypeError:
        raise InvalidArgument(
            f"samples = {samples!r:.80}; expected a range, a list of numbers, or the place of a .npy file"
        ) from None
    return _list(numbers)


def of_where(where: Any) -> str:
    """Returns the condition; its language is checked by the coordinator."""
    if not isinstance(where, str) or not where.strip():
        raise InvalidArgument(f"where = {where!r:.80}; expected a condition, as 'width >= 256'")
    return where


def of_by(by: Any) -> str:
    """Returns the column; its name is checked by the coordinator and the workers."""
    if not isinstance(by, str) or not by.strip():
        raise InvalidArgument(f"by = {by!r:.80}; expected the name of a column, as 'label'")
    return by


def _of_samples_each(weights: Iterable[Any]) -> dict[str, Any]:
    numbers: list[float] = []
    for weight in weights:
        if len(numbers) == _MOST_NUMBERS:
            raise InvalidArgument(
                f"weights has more than {_MOST_NUMBERS:,} numbers; expected at most that many, or the place of a .npy "
                "file"
            )
        numbers.append(positive_number(f"weights[{len(numbers)}]", weight))
    if not any(numbers):
        raise InvalidArgument("weights has no number over 0; expected one for each sample of the dataset")
    return {"weights": {"list": numbers}}


def of_weights(weights: Any) -> dict[str, Any]:
    """Returns the JSON form of a leat.v1.Selection with these weights."""
    if isinstance(weights, str) and weights == "balanced":
        return {"balanced": True}
    if isinstance(weights, (str, os.PathLike)) and str(weights).partition("?")[0].endswith(".npy"):
        return {"weights": {"uri": absolute(os.fspath(weights))}}
    if isinstance(weights, Iterable) and not isinstance(weights, (str, bytes, Mapping, Set)):
        return _of_samples_each(weights)
    if not isinstance(weights, Mapping):
        raise InvalidArgument(
            f"weights = {shown(weights):.80}; expected 'balanced', a dict from names of classes to their shares, or a "
            "number for each sample: a list, an array, or the place of a .npy file"
        )
    if not 1 <= len(weights) <= _MOST_GROUPS:
        raise InvalidArgument(f"weights has {len(weights)} classes; expected 1 to {_MOST_GROUPS}")
    shares: dict[str, float] = {}
    for key, value in weights.items():
        name = _name(key)
        if name in shares:
            raise InvalidArgument(f"weights has {name!r:.80} twice")
        shares[name] = positive_number(f"weights[{key!r:.80}]", value)
    if not any(shares.values()):
        raise InvalidArgument("weights are all 0; expected one over 0")
    return {"shares": [{"name": name, "share": share} for name, share in shares.items()]}

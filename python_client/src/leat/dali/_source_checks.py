# SPDX-License-Identifier: Apache-2.0
"""Checks of an external source: of the function itself, and of its batches, one after the other."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leat.dali import types
from leat.dali._tensors import TensorCPU, TensorListCPU, plain
from leat.errors import InvalidArgument

WHERE = "fn.external_source"
_NAMES = {types.FLOAT: "float", types.FLOAT64: "double"}


def parameters_of(source: Callable[..., Any]) -> int:
    """Returns how many values a source takes: none, or one. TypeError: it takes others, as in DALI."""
    try:
        parameters = list(inspect.signature(source).parameters.values())
    except (TypeError, ValueError):
        return 1
    for each in parameters:
        wrong = {
            each.VAR_POSITIONAL: f"var-positional argument `*{each.name}`",
            each.VAR_KEYWORD: f"var-keyword argument `**{each.name}`",
            each.KEYWORD_ONLY: f"keyword-only argument `{each.name}`",
        }.get(each.kind)
        if wrong is not None:
            raise TypeError(f"{WHERE}: source {source!r:.60}: Found {wrong} which is not allowed.")
    required = [each for each in parameters if each.default is each.empty]
    if len(required) > 1:
        raise TypeError(
            f"{WHERE}: source {source!r:.60}: Found more than one positional argument, which is not allowed."
        )
    return 1 if parameters else 0


def makes_iterators(source: Any) -> bool:
    """True for a generator function, and for an object whose call is one."""
    return inspect.isgeneratorfunction(source) or inspect.isgeneratorfunction(getattr(type(source), "__call__", None))


def is_function(source: Any) -> bool:
    """True if the source is called for each batch: it can be called and not be iterated over, as in DALI."""
    iterable = hasattr(type(source), "__iter__") or hasattr(type(source), "__getitem__")
    return callable(source) and not iterable and not makes_iterators(source)


def check_cycle(source: Any, cycle: str) -> None:
    """Raises InvalidArgument if a source that cannot begin again has to."""
    if cycle != "no" and (is_function(source) or inspect.isgenerator(source)):
        raise InvalidArgument(
            f"{WHERE}: cycle = {cycle!r} of source {source!r:.60}; expected an iterable that can be iterated over "
            "again, or a generator function"
        )


def check_alike(where: str, samples: Sequence[np.ndarray]) -> None:
    """Raises InvalidArgument unless all samples of a batch have one type and number of axes."""
    kinds = sorted({f"{each.dtype.name} with {each.ndim} axes" for each in samples})
    if len(kinds) > 1:
        raise InvalidArgument(
            f"{where}: a batch has samples of {' and of '.join(kinds)}; expected one type and number of axes"
        )


def layout_in(data: Any) -> str:
    """Returns the layout of a batch; empty: it has none."""
    if isinstance(data, TensorListCPU):
        return data.layout()
    first = data[0] if isinstance(data, (list, tuple)) and data else None
    return first.layout() if isinstance(first, TensorCPU) else ""


def _name(dtype: Any) -> str:
    """Returns DALI's name of a type."""
    word = dtype if isinstance(dtype, types.DALIDataType) else types.from_numpy_type(str(dtype).rpartition(".")[2])
    return _NAMES.get(word, word.name.lower())


@dataclasses.dataclass
class Seen:
    """One output of a source: what the script declares for it and what was observed; every batch must match.

    Attributes:
        output: the output's index.
        wanted, ndim, said: the declared type, number of axes and layout; None: not declared.
        layout: the layout of its samples; empty: not known.
    """

    output: int
    wanted: Any
    ndim: int | None
    said: str | None
    layout: str = ""
    _dtype: Any = None
    _rank: int | None = None

    def __post_init__(self) -> None:
        self.layout = self.said or ""
        if self.said and self.ndim is not None and len(self.said) != self.ndim:
            raise InvalidArgument(
                f"{self._where}: Number of dimensions in the provided layout does not match the ndim argument. The "
                f'arguments provided: ndim = {self.ndim}, layout: "{self.said}".'
            )

    @property
    def _where(self) -> str:
        return f"{WHERE}: output {self.output}"

    def take_layout(self, layout: Any) -> None:
        """Takes the layout that a batch came with, and refuses one that differs from the known one."""
        if not isinstance(layout, str):
            raise InvalidArgument(f"{self._where}: layout = {layout!r:.40}; expected a text")
        if self.said and layout != self.said:
            raise InvalidArgument(f'{self._where}: Expected data with layout: "{self.said}" and got: "{layout}".')
        if self.layout and layout != self.layout:
            raise InvalidArgument(
                f"{self._where}: Layout of the data fed to the external source has changed from previous iteration. "
                f'Layout in the previous iteration was "{self.layout}" and the current is "{layout}".'
            )
        self.layout = layout

    def check(self, sample: Any) -> None:
        """Raises InvalidArgument unless a batch's first sample matches the declaration and the batches before."""
        dtype, rank = np.dtype(str(sample.dtype).rpartition(".")[2]), len(sample.shape)
        if self.wanted is not None and dtype != np.dtype(types.to_numpy_type(self.wanted)):
            raise InvalidArgument(
                f"{self._where}: ExternalSource expected data of type {_name(self.wanted)} and got: {_name(dtype)}"
            )
        if self.ndim is not None and rank != self.ndim:
            raise InvalidArgument(
                f"{self._where}: ExternalSource expected data with {self.ndim} dimensions and got {rank} dimensions"
            )
        if self.layout and rank != len(self.layout):
            raise InvalidArgument(
                f"{self._where} has {rank} axes a sample; its layout {self.layout!r} names {len(self.layout)}"
            )
        if self._dtype not in (None, dtype):
            raise InvalidArgument(
                f"{self._where}: Type of the data fed to the external source has changed from the previous iteration. "
                f"Type in the previous iteration was {_name(self._dtype)} and the current type is {_name(dtype)}."
            )
        if self._rank not in (None, rank):
            raise InvalidArgument(
                f"{self._where}: Number of dimensions of the data fed to the external source has changed from previous "
                f"iteration. Dimensionality in the previous iteration was {self._rank} and the current is {rank}."
            )
        self._dtype, self._rank = dtype, rank


def has_parts(value: Any, count: int) -> bool:
    """True if it gives a value for each output: a tuple or list of so many, or an array, whose first axis they are."""
    if isinstance(value, (tuple, list)):
        return len(value) == count
    shape = getattr(plain(value), "shape", None)
    return isinstance(shape, tuple) and len(shape) > 0 and int(shape[0]) >= count


def array_of(value: Any) -> np.ndarray:
    """Returns an array of a sample; InvalidArgument: it has no numbers."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(f"{WHERE}: the source gave {shown(value)}; expected arrays of numbers")
    return array


def shown(value: Any) -> str:
    """Returns a value's type and value, for messages."""
    return f"{type(value).__name__} {value!r:.60}"

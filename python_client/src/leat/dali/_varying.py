# SPDX-License-Identifier: Apache-2.0
"""Outputs of jobs whose samples have several shapes, or are files: a job's batch is one array.

Such an output is carried as the elements of each sample in a row, padded or cut to the job's room, and the sizes of its
axes. If a batch has a larger sample, it is requested again from a job with room for it, which is at least twice the
room. So at most as many jobs are made as the size of the largest sample has bits. A sample's elements do not depend on
the room, since random numbers are drawn from the seed and the operators' positions, which are the same.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from leat._graphs.graph import Node
from leat.dali import _node
from leat.errors import InvalidArgument

_Made = TypeVar("_Made")
# Messages of the library and the service about an output that a batch cannot have.
_VARIES = re.compile(r'output "([^"]+)" is \w+ \(([^()]*)\), whose size differs from sample to sample')
_IS_FILE = re.compile(r'output "([^"]+)" is an encoded image')
# The number of elements that the first job has room for.
_FIRST_ROOM = 1 << 12


@dataclasses.dataclass(frozen=True)
class Form:
    """How a job carries an output whose samples may differ in shape.

    Attributes:
        file: it is an image file, carried as its bytes.
        sizes: the sizes of its axes, None where samples differ; None: all samples have one shape.
        room: the number of elements that a sample may have.
    """

    file: bool = False
    sizes: tuple[int | None, ...] | None = None
    room: int = _FIRST_ROOM

    def carried(self, name: str, node: Node) -> dict[str, Node]:
        """Returns the job's outputs, by their names."""
        value = _node.apply("stored_bytes", node) if self.file else node
        if self.sizes is None:
            return {name: value}
        row = value if len(self.sizes) == 1 else _node.apply("reshape", value, shape=(-1,))
        result = {
            name: _node.apply("slice", row, axes=(0,), start=(0,), shape=(self.room,), out_of_bounds_policy="pad")
        }
        for axis in self._open_axes():
            result[_length(name, axis)] = _node.apply("length", value, axis=axis)
        return result

    def _open_axes(self) -> Iterable[int]:
        return [axis for axis, size in enumerate(self.sizes or ()) if size is None]

    def shapes(self, name: str, batch: Any) -> list[tuple[int, ...]]:
        """Returns the shape of each sample of a batch."""
        assert self.sizes is not None
        rows = len(batch[name])
        columns = [
            [size] * rows if size is not None else np.asarray(batch[_length(name, axis)]).tolist()
            for axis, size in enumerate(self.sizes)
        ]
        return list(zip(*columns))


def _length(name: str, axis: int) -> str:
    return f"{name}, size of axis {axis}"


def samples_of(rows: np.ndarray, shapes: list[tuple[int, ...]]) -> Any:
    """Returns an array with a batch axis if all shapes are the same, else a list of the samples; without a copy if
    possible.

    Args:
        rows: the elements of each sample, at the beginning of its row.
        shapes: the shapes of the samples.
    """
    if len(set(shapes)) == 1:
        return rows[:, : math.prod(shapes[0])].reshape(len(rows), *shapes[0])
    return [row[: math.prod(shape)].reshape(shape) for row, shape in zip(rows, shapes)]


class Outputs:
    """The outputs of one stage's jobs, in the forms that jobs can give.

    Use from one thread at a time.
    """

    def __init__(self) -> None:
        self._forms: dict[str, Form] = {}
        self._rooms: dict[str, int] = {}

    @property
    def vary(self) -> bool:
        """True if `values` must be called: the job's outputs differ from the stage's."""
        return any(form.sizes is not None for form in self._forms.values())

    def made(self, make: Callable[[Mapping[str, Form]], _Made]) -> _Made:
        """Returns the result of `make` for the forms that outputs need. It is called at most twice per output, and once
        more.

        Args:
            make: raises InvalidArgument for an output that no batch can have, with its name and sizes.
        """
        forms: dict[str, Form] = {}
        while True:
            try:
                result = make(forms)
            except InvalidArgument as error:
                if not self._learn(forms, str(error)):
                    raise
            else:
                self._forms = forms
                return result

    def _learn(self, forms: dict[str, Form], text: str) -> bool:
        """Changes the form of an output that the text names; False: the text names none."""
        is_file, varies = _IS_FILE.search(text), _VARIES.search(text)
        if is_file is not None and is_file[1] not in forms:
            forms[is_file[1]] = Form(file=True)
            return True
        before = forms.get(varies[1], Form()) if varies is not None else None
        if varies is None or before is None or before.sizes is not None:
            return False
        words = [each.strip() for each in varies[2].split(",") if each.strip()]
        sizes = tuple(None if each == "?" else int(each) for each in words)
        room = max(self._rooms.get(varies[1], 0), _FIRST_ROOM)
        forms[varies[1]] = dataclasses.replace(before, sizes=sizes, room=room)
        return True

    def values(self, batch: Any, names: Iterable[str]) -> dict[str, Any] | None:
        """Returns the stage's outputs from a batch of the job.

        Returns:
            By name: arrays with a batch axis, or lists with an array per sample where shapes differ. None: a sample is
            larger than the job's room; the job that `made` makes next has enough.
        """
        found, fits = {}, True
        for name in names:
            form = self._forms.get(name)
            if form is None or form.sizes is None:
                found[name] = batch[name]
                continue
            rows, shapes = np.asarray(batch[name]), form.shapes(name, batch)
            most = max(map(math.prod, shapes))
            if most > rows.shape[1]:  # the batch's own room: it may come from an earlier job
                self._rooms[name] = max(self._rooms.get(name, 0), 1 << (most - 1).bit_length())
                fits = False
            else:
                found[name] = samples_of(rows, shapes)
        return found if fits else None

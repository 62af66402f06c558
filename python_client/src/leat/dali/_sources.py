# SPDX-License-Identifier: Apache-2.0
"""External sources: batches that a script supplies itself."""

from __future__ import annotations

import collections
import inspect
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from leat.dali import types
from leat.dali._source_checks import (
    WHERE,
    Seen,
    array_of,
    check_alike,
    check_cycle,
    has_parts,
    is_function,
    layout_in,
    makes_iterators,
    parameters_of,
    shown,
)
from leat.dali._tensors import plain
from leat.errors import FailedPrecondition, InvalidArgument


# The epoch, how many batches of it were given, and how many before it since the source was at its beginning: below 0
# if it began again in the epoch.
Place = tuple[int, int, int]


class Given(NamedTuple):
    """A batch of a source: per output an array with a batch axis or a list of samples; and the position after it."""

    outputs: list[Any]
    after: Place


class BatchSource:
    """Asks a script's source for batches, once for each step of the pipeline.

    A batch is kept until its step has been handed out: if another source or a call raises, or Ctrl-C is pressed, the
    step is made again from the same batches. The `for` that asks the script for a value also stores it, since no signal
    handler runs between the two.

    Attributes:
        name: the operator's name, for Pipeline.feed_input; None: it has none.
        given: the source that the script gave; None: batches come by feed_input.
        has_users: True if operators take its values; their layout must be known when the pipeline is defined.
        used: the outputs that the pipeline needs, once it is built.
        ahead: the number of steps that DALI has computed ahead, which would not see a batch that is fed now.
        number: its number among the sources of the pipeline that is being defined; None: there is no such pipeline.
    """

    def __init__(
        self,
        given: Any,
        num_outputs: int | None,
        *,
        name: str | None,
        batch: bool,
        batch_info: bool,
        cycle: str,
        repeat_last: bool,
        dtypes: Sequence[Any],
        ndims: Sequence[Any],
        layouts: Sequence[Any],
    ) -> None:
        self.name, self.given = name, given
        self.has_users = False
        self.used: set[int] = set()
        self.number: int | None = None
        self.ahead = 0
        self._num_outputs = num_outputs
        self._batch, self._batch_info = batch, batch_info
        self._cycle, self._repeat_last = cycle, repeat_last
        self._dtypes = dtypes
        self._seen = [Seen(i, *each) for i, each in enumerate(zip(dtypes, ndims, layouts))]
        self._epoch, self._iteration, self._before = 0, 0, 0
        self._kept: dict[int, Given] = {}  # batches by step
        self._got: dict[int, Any] = {}  # the next batch, or its first samples
        self._iterator: Iterator[Any] | None = None
        self._drawn = 0  # values taken from the iterator
        self._exhausted = False
        self._ended = False  # it has ended since its last batch
        # Whether it has reported the end of the epoch, and whether it may still report the end of the previous one.
        self._stopped = self._owes_stop = False
        self._given_out = 0  # number of batches, over all epochs
        # Fed batches, the step each is meant for, and how many batches are given before DALI would see it.
        self._fed: collections.deque[tuple[Any, int | None, int]] = collections.deque()
        self._last: tuple[Any, int | None, int] | None = None
        check_cycle(given, cycle)
        self._parameters = parameters_of(given) if is_function(given) else None

    def feed(self, data: Any, step: int | None = None, layout: str | None = None) -> None:
        """Adds a batch for `batch`; `step`: the step it is meant for, if any; `layout`: that of its samples."""
        if self.given is not None:
            raise InvalidArgument(
                f"feed_input: Cannot use `feed_input` on the external source '{self.name}' with a `source` argument "
                "specified."
            )
        if layout:
            self._take_layout(0, layout)
        # The first step is computed on demand, and sees every batch that was fed before it.
        seen = self._given_out + self.ahead if self._given_out else 0
        self._fed.append((data, step, seen))

    @property
    def was_asked(self) -> bool:
        """True if the script's source has given something that was not handed out."""
        return self.given is not None and bool(self._got or self._kept)

    def take_fed(self, other: BatchSource) -> None:
        """Takes the batches that were fed to the same source of a discarded graph."""
        self._fed = other._fed

    def lacks(self, layout: Any) -> bool:
        """True if operators take its values and do not know the layout that a batch has."""
        return isinstance(layout, str) and not self._seen[0].layout and self.has_users

    def _take_layout(self, output: int, layout: Any) -> None:
        if self.has_users and isinstance(layout, str) and not self._seen[output].layout:
            raise InvalidArgument(
                f"layout = {layout!r} of a batch of {self.name!r}, and operators that take it were defined without "
                f"one; expected fn.external_source(layout={layout!r})"
            )
        self._seen[output].take_layout(layout)

    def unused(self) -> str | None:
        """Returns DALI's warning about outputs of the source that the pipeline does not need; None: it needs all."""
        left = [i for i in range(self._num_outputs or 1) if i not in self.used]
        if self.given is None or not left:
            return None
        places = ", ".join(map(str, left))
        which = f"output at the index {places} is" if len(left) == 1 else f"outputs at the indices {places} are"
        name = f"{type(self.given).__name__} {getattr(self.given, '__qualname__', '')}".strip()
        return (
            f"The external source node '{self.name} ({name})' produces {self._num_outputs} outputs, but the {which} "
            "not used. Stop producing unused outputs, for they cost time."
        )

    def has_type(self, output: int) -> bool:
        """True if the script gives the type of an output."""
        return self._dtypes[output] is not None

    def first_batch(self, output: int, rows: int) -> Any:
        """Asks for the first batch, keeps it, and returns an output of it; None: there is none, or it was asked for."""
        if self.given is None or self._iteration or self._kept:
            return None
        try:
            self._ask(rows)
        except StopIteration:
            return None
        return self._outputs(rows)[output]

    def layout_of(self, output: int) -> str:
        """Returns the layout of an output's samples; empty: not known."""
        return self._seen[output].layout

    def withdraw(self, step: int) -> None:
        """Removes batches that were fed for a step that was not handed out."""
        if self.given is None and self._last is not None and self._last[1] == step:
            self._kept.pop(step, None)
            self._got, self._last = {}, None
        while self._fed and self._fed[-1][1] == step:
            self._fed.pop()

    @property
    def position(self) -> Place:
        """The position after the last batch."""
        return self._epoch, self._iteration, self._before

    @property
    def _restarts(self) -> bool:
        """True if each epoch begins with the source's first batch; otherwise it continues where the last one ended."""
        return bool(self._parameters) or self._cycle == "raise"

    def begun_again(self, position: Place) -> Place:
        """Returns the position if an epoch begins at `position`."""
        epoch, iteration, before = position
        return epoch + 1, 0, 0 if self._restarts else before + iteration

    def go_to(self, position: Place, rows: int) -> None:
        """Moves to a checkpoint's position; a source that gets no batch number is read up to there."""
        epoch, iteration, before = position
        if self.given is None or self._parameters:
            self._got = {} if iteration else self._got  # the first batch, if it was asked for
        else:
            for count in range(before + iteration):
                self._skip(count, before + iteration, rows)
            # It may still report the end of the epoch before.
            self._owes_stop = epoch > 0 and iteration == 0 and not self._restarts
        self._epoch, self._iteration, self._before = position

    def _skip(self, count: int, of: int, rows: int) -> None:
        """Asks for a batch and drops it. A source that begins again by itself reports an end in between."""
        for last in (False, True):
            try:
                self._ask(rows)
            except StopIteration:
                if last or count == 0:
                    raise InvalidArgument(
                        f"{WHERE}: the checkpoint is behind {of} batches of the source, which ended after {count}; "
                        "expected the same source"
                    ) from None
            else:
                self._got = {}
                return

    def go_on(self, step: int, position: Place) -> None:
        """Prepares for `step`, which follows `position`: the position at that time, or the beginning of a new epoch."""
        self.forget(step)
        if position[0] == self._epoch:
            return
        if self._restarts:
            self._kept, self._got = {}, {}
            self._iterator, self._drawn, self._exhausted = None, 0, False
            self._epoch, self._iteration, self._before = position
        else:  # it continues: batches already given belong to the new epoch
            epoch, _, before = position
            kept = {n: Given(each.outputs, (epoch, i, before)) for i, (n, each) in enumerate(self._kept.items(), 1)}
            self._owes_stop, self._stopped = not self._stopped and not kept, False
            self._kept, self._epoch, self._iteration, self._before = kept, epoch, len(kept), before

    def forget(self, step: int) -> None:
        """Drops the batches of steps before this one, which have been handed out."""
        for each in [each for each in self._kept if each < step]:
            self._kept.pop(each, None)

    def batch(self, step: int, rows: int) -> Given | None:
        """Returns the kept batch of a step, or the next one; None at the end.

        After an exception, a source that gets batch numbers is asked for the same batch again. An invalid batch stays
        the next one if the source gives its batches one after the other.
        """
        kept = self._kept.get(step)
        if kept is not None:
            return kept
        if not self._asked(rows):
            return None
        try:
            outputs = self._outputs(rows)
        except InvalidArgument:
            if self._parameters or self.given is None:
                self._got = {}
            raise
        given = Given(outputs, (self._epoch, self._iteration + 1, self._before))
        # No calls from here on: an interrupt finds all of it done, or nothing.
        self._kept[step] = given
        self._iteration += 1
        self._given_out += 1
        self._got = {}
        return given

    def _asked(self, rows: int) -> bool:
        """True if there is a batch, which `_got` holds.

        An iterator with a size ends its epoch without asking the source again. A source that begins again by itself
        then still reports the end of its own epoch, which is not the end of the new one.
        """
        while True:
            try:
                self._ask(rows)
            except StopIteration:
                if not self._owes_stop or self._iteration:
                    self._stopped = True
                    return False
                self._owes_stop = False
            else:
                return True

    def _ask(self, rows: int) -> None:
        """Fills `_got`; raises StopIteration at the end, and then drops samples that do not fill a batch, as DALI."""
        try:
            self._fill(rows)
        except StopIteration:
            self._got, self._ended = {}, True
            raise
        if self._ended:  # it has begun again: nothing came before this batch
            self._before, self._ended = -self._iteration, False

    def _fill(self, rows: int) -> None:
        while len(self._got) < (1 if self._batch or self.given is None else rows):
            row = len(self._got)
            if self.given is None:
                self._take(row)
            elif not self._batch:
                number = self._iteration * rows + row
                self._one(types.SampleInfo(number, row, self._iteration, self._epoch), row)
            elif self._batch_info:
                self._one(types.BatchInfo(self._iteration, self._epoch), row)
            else:
                self._one(self._iteration, row)

    def _outputs(self, rows: int) -> list[Any]:
        data: Any = self._got[0]
        if self.given is None:
            data = data[0]
        elif not self._batch:
            data = self._columns([self._got[row] for row in range(rows)])
        if self._num_outputs is None:
            return [self._checked(0, data, rows)]
        if not has_parts(data, self._num_outputs):
            raise InvalidArgument(
                f"{WHERE}: the source gave {shown(data)}; num_outputs says a tuple of {self._num_outputs}"
            )
        return [self._checked(i, data[i], rows) for i in range(self._num_outputs)]

    def _columns(self, samples: list[Any]) -> list[Any]:
        if self._num_outputs is None:
            return samples
        for sample in samples:
            if not has_parts(sample, self._num_outputs):
                raise InvalidArgument(
                    f"{WHERE}: a sample is {shown(sample)}; expected {self._num_outputs} values"
                )
        return [[sample[i] for sample in samples] for i in range(self._num_outputs)]

    def _take(self, row: int) -> None:
        # Without repeat_last each step takes the next batch, whenever it was fed.
        waits = self._repeat_last and self._last is not None
        if self._fed and (not waits or self._fed[0][2] <= self._given_out):
            for self._last in itertools.starmap(self._fed.popleft, ((),)):
                self._got[row] = self._last
        elif waits:
            self._got[row] = self._last
        else:
            raise FailedPrecondition(
                f"{WHERE}: {self.name!r} has no source and no batch left; call feed_input before each run"
            )

    def _one(self, info: Any, row: int) -> None:
        if self._parameters is not None:
            for self._got[row] in itertools.starmap(self.given, ((info,) if self._parameters else (),)):
                return
            raise StopIteration
        self._open()
        assert self._iterator is not None
        for self._got[row] in _following(self._iterator):
            self._drawn += 1
            return
        self._exhausted = True
        if self._cycle != "quiet":
            raise StopIteration
        self._iterator, self._drawn, self._exhausted, self._ended = None, 0, False, row == 0
        self._open()
        for self._got[row] in _following(self._iterator):
            self._drawn += 1
            return
        raise StopIteration

    def _open(self) -> None:
        """Makes the iterator. If an exception ended a generator, another one is made and moved to the same position."""
        ended = inspect.isgenerator(self._iterator) and self._iterator.gi_frame is None and not self._exhausted
        if self._iterator is not None and not ended:
            return
        if ended and self._iterator is self.given:
            raise FailedPrecondition(
                f"{WHERE}: the source is a generator, which an exception ended after {self._drawn} values; "
                "expected a function that makes generators, which can be brought to where it was"
            )
        iterator = iter(self.given() if makes_iterators(self.given) else self.given)
        for _ in range(self._drawn):
            next(iterator, None)
        self._iterator = iterator

    def _checked(self, i: int, value: Any, rows: int) -> Any:
        """Returns an array with a batch axis, or a list of arrays."""
        # A layout in the script overrides the layout of the source's batches.
        layout = "" if self.given is None or self._seen[i].said else layout_in(value)
        # Operators treat values without a layout as HWC.
        if layout and not (self.has_users and layout == "HWC" and not self._seen[i].layout):
            self._take_layout(i, layout)
        value = plain(value)
        if isinstance(value, (list, tuple)):
            samples = [array_of(each) for each in value]
            check_alike(f"{WHERE}: output {i}", samples)
            count = len(samples)
            uniform = samples and all(each.shape == samples[0].shape for each in samples)
            result: Any = np.stack(samples) if uniform else samples
        else:
            result = value if hasattr(value, "dtype") and hasattr(value, "shape") else array_of(value)
            count = result.shape[0] if len(result.shape) else 0
        if count != rows:
            raise InvalidArgument(
                f"{WHERE}: the source gave a batch of {count} samples for output {i}; Leat takes batches of "
                f"max_batch_size, {rows}"
            )
        self._seen[i].check(result[0])
        return result


def _following(iterator: Any) -> Iterator[Any]:
    """Yields the next value of an iterator without calling iter() on it, as a `for` over it would do."""
    return itertools.starmap(next, ((iterator,),))

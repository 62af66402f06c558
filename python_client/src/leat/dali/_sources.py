# SPDX-License-Identifier: Apache-2.0
"""External sources: what a script brings itself, batch by batch."""

from __future__ import annotations

import collections
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from leat._graph import Node
from leat.dali import types
from leat.dali._node import ConsumerOperation, DataNode
from leat.dali._operator import HINTS, check_hint, refuse_unknown
from leat.errors import FailedPrecondition, InvalidArgument

_WHERE = "fn.external_source"
_CYCLES = {None: "no", False: "no", "no": "no", True: "quiet", "quiet": "quiet", "raise": "raise"}


class BatchSource:
    """Asks a script's source for batches.

    Attributes:
        name: of the operator, for Pipeline.feed_input; None: it has none.
        given: what the script gave; None: batches come by feed_input.
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
    ) -> None:
        self.name, self.given = name, given
        self._num_outputs = num_outputs
        self._batch, self._batch_info = batch, batch_info
        self._cycle, self._repeat_last = cycle, repeat_last
        self._dtypes, self._ndims = dtypes, ndims
        self._epoch, self._iteration = 0, 0
        self._iterator: Iterator[Any] | None = None
        self._fed: collections.deque[Any] = collections.deque()
        self._last: Any = None
        self._parameters = _parameters(given) if callable(given) and not _makes_iterators(given) else None

    def feed(self, data: Any) -> None:
        """One batch, for `next_batch`."""
        if self.given is not None:
            raise InvalidArgument(f"{_WHERE}: {self.name!r} has a source; feed_input is for those that have none")
        self._fed.append(data)

    def begin_again(self) -> None:
        """A new epoch."""
        self._epoch += 1
        self._iteration = 0
        if self._cycle == "raise":
            self._iterator = None

    @property
    def place(self) -> tuple[int, int]:
        """The epoch, and how many batches of it were given."""
        return self._epoch, self._iteration

    def go_to(self, place: tuple[int, int], rows: int) -> None:
        """Goes to where a checkpoint says; what a source that is told no number gives before is passed over."""
        self._epoch, self._iteration = place[0], 0
        if self.given is None or self._parameters:
            self._iteration = place[1]
            return
        for _ in range(place[1]):
            self.next_batch(rows)

    def next_batch(self, rows: int) -> list[Any] | None:
        """A value for each output, with a batch axis or a list of samples; None at the end."""
        try:
            data = self._next(rows)
        except StopIteration:
            return None
        outputs = [data] if self._num_outputs is None else data
        if self._num_outputs is not None:
            if not isinstance(outputs, (tuple, list)) or len(outputs) != self._num_outputs:
                raise InvalidArgument(
                    f"{_WHERE}: the source gave {_shown(data)}; num_outputs says a tuple of {self._num_outputs}"
                )
        self._iteration += 1
        return [self._checked(i, each, rows) for i, each in enumerate(outputs)]

    def _next(self, rows: int) -> Any:
        if self.given is None:
            return self._taken()
        if self._batch:
            return self._one(types.BatchInfo(self._iteration, self._epoch) if self._batch_info else self._iteration)
        samples = []
        for row in range(rows):
            number = self._iteration * rows + row
            samples.append(self._one(types.SampleInfo(number, row, self._iteration, self._epoch)))
        if self._num_outputs is None:
            return samples
        for sample in samples:
            if not isinstance(sample, (tuple, list)) or len(sample) != self._num_outputs:
                raise InvalidArgument(f"{_WHERE}: a sample is {_shown(sample)}; expected {self._num_outputs} values")
        return [list(each) for each in zip(*samples)]

    def _taken(self) -> Any:
        if self._fed:
            self._last = self._fed.popleft()
        elif not self._repeat_last or self._last is None:
            raise FailedPrecondition(
                f"{_WHERE}: {self.name!r} has no source and no batch left; call feed_input before each run"
            )
        return self._last

    def _one(self, info: Any) -> Any:
        if self._parameters is not None:
            return self.given(info) if self._parameters else self.given()
        if self._iterator is None:
            self._iterator = iter(self.given() if callable(self.given) else self.given)
        try:
            return next(self._iterator)
        except StopIteration:
            if self._cycle != "quiet":
                raise
            self._iterator = iter(self.given() if callable(self.given) else self.given)
            return next(self._iterator)

    def _checked(self, i: int, value: Any, rows: int) -> Any:
        """An array with a batch axis, or a list of arrays."""
        if isinstance(value, (list, tuple)):
            samples = [_array(each) for each in value]
            count = len(samples)
            uniform = samples and all(each.shape == samples[0].shape for each in samples)
            result: Any = np.stack(samples) if uniform else samples
        else:
            result = value if hasattr(value, "dtype") and hasattr(value, "shape") else _array(value)
            count = result.shape[0] if len(result.shape) else 0
        if count != rows:
            raise InvalidArgument(
                f"{_WHERE}: the source gave a batch of {count} samples for output {i}; Leat takes batches of "
                f"max_batch_size, {rows}"
            )
        first = result[0]
        dtype, ndim = self._dtypes[i], self._ndims[i]
        if dtype is not None and np.dtype(str(first.dtype).rpartition(".")[2]) != np.dtype(types.to_numpy_type(dtype)):
            raise InvalidArgument(f"{_WHERE}: output {i} is {first.dtype}; expected {dtype}, as dtype says")
        if ndim is not None and len(first.shape) != ndim:
            raise InvalidArgument(f"{_WHERE}: output {i} has {len(first.shape)} axes a sample; expected {ndim}")
        return result


def _array(value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(f"{_WHERE}: the source gave {_shown(value)}; expected arrays of numbers")
    return array


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.60}"


def _makes_iterators(source: Any) -> bool:
    return inspect.isgeneratorfunction(source)


def _parameters(source: Callable[..., Any]) -> int:
    """How many values the source takes: none, or one."""
    try:
        parameters = list(inspect.signature(source).parameters.values())
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [each for each in parameters if each.kind in kinds and each.default is each.empty]
    if len(required) > 1:
        raise InvalidArgument(f"{_WHERE}: source {source!r:.60} takes {len(required)} values; expected none or one")
    return 1 if required or any(each.kind in (*kinds, each.VAR_POSITIONAL) for each in parameters) else 0


def _each(name: str, value: Any, count: int) -> list[Any]:
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise InvalidArgument(f"{_WHERE}: {name} has {len(values)} entries; expected {count}, one for each output")
    return values


_numbers = itertools.count()


def external_source(
    source: Any = None,
    num_outputs: int | None = None,
    *,
    cycle: Any = None,
    name: str | None = None,
    device: str = "cpu",
    layout: Any = None,
    dtype: Any = None,
    ndim: Any = None,
    cuda_stream: Any = None,
    use_copy_kernel: Any = None,
    blocking: Any = None,
    batch: bool = True,
    repeat_last: bool = False,
    parallel: Any = None,
    no_copy: Any = None,
    prefetch_queue_depth: Any = None,
    bytes_per_sample_hint: Any = None,
    batch_info: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Batches that this process brings; workers compute what follows.

    Args:
        source: a function (of nothing; of the batch's number, or a BatchInfo; with batch=False of a SampleInfo), or an
            iterable, or a generator function. StopIteration ends the epoch. None: batches come by Pipeline.feed_input.
        num_outputs: None: one value; otherwise the source gives tuples of so many.
        cycle: of an iterable: None, "no": once; "quiet", True: again and again; "raise": again after each reset.
        batch: whether it gives whole batches, or samples.
        layout, dtype, ndim: of the values; one, or one for each output. dtype and ndim are checked.
        repeat_last: feed_input's last batch is used again.
        batch_info: the function takes a BatchInfo.

    Returns:
        A node; a list of nodes if num_outputs is given.
    """
    refuse_unknown(_WHERE, kwargs, inspect.signature(external_source).parameters)
    hints = {"device": device, "cuda_stream": cuda_stream, "use_copy_kernel": use_copy_kernel, "blocking": blocking}
    hints |= {"parallel": parallel, "no_copy": no_copy, "prefetch_queue_depth": prefetch_queue_depth}
    for hint, value in {**hints, "bytes_per_sample_hint": bytes_per_sample_hint}.items():
        assert hint in HINTS
        check_hint(_WHERE, hint, value)
    if cycle not in _CYCLES:
        raise InvalidArgument(f'{_WHERE}: cycle = {cycle!r}; expected "no", "quiet", "raise", True, False or None')
    if source is not None and not callable(source) and not hasattr(source, "__iter__"):
        raise InvalidArgument(f"{_WHERE}: source is {_shown(source)}; expected a function or an iterable")
    if num_outputs is not None and (
        isinstance(num_outputs, bool) or not isinstance(num_outputs, int) or num_outputs < 1
    ):
        raise InvalidArgument(f"{_WHERE}: num_outputs = {num_outputs!r}; expected at least 1")
    count = 1 if num_outputs is None else num_outputs
    layouts, dtypes, ndims = (_each(*each, count) for each in (("layout", layout), ("dtype", dtype), ("ndim", ndim)))
    operation = ConsumerOperation("external_source", (), count)
    operation.source = BatchSource(  # type: ignore[attr-defined]
        source,
        num_outputs,
        name=name or f"external_source_{next(_numbers)}",
        batch=bool(batch),
        batch_info=bool(batch_info),
        cycle=_CYCLES[cycle],
        repeat_last=bool(repeat_last),
        dtypes=dtypes,
        ndims=ndims,
    )
    nodes = []
    for i in range(count):
        axes = ndims[i] if ndims[i] is not None else len(layouts[i] or "") or None
        nodes.append(
            DataNode(
                Node(operation, i),
                layout=layouts[i],
                sizes=None if axes is None else (None,) * axes,
                dtype=None if dtypes[i] is None else np.dtype(types.to_numpy_type(dtypes[i])).name,
                device="gpu" if device == "gpu" else "cpu",
            )
        )
    return nodes[0] if num_outputs is None else nodes

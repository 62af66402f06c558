# SPDX-License-Identifier: Apache-2.0
"""fn.external_source: a node whose batches a script supplies itself."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import numpy as np

from leat._graphs.graph import Node
from leat.dali import _current, types
from leat.dali._node import ConsumerOperation, DataNode
from leat.dali._operator import HINTS, check_hint, refuse_unknown, says_line, warn_of_slower
from leat.dali._source_checks import WHERE, shown
from leat.dali._sources import BatchSource
from leat.errors import InvalidArgument

_CYCLES = {None: "no", False: "no", "no": "no", True: "quiet", "quiet": "quiet", "raise": "raise"}


def _each(name: str, value: Any, count: int) -> list[Any]:
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise InvalidArgument(f"{WHERE}: {name} has {len(values)} entries; expected {count}, one for each output")
    return values


_numbers = itertools.count()


@says_line
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
    batch: bool | None = True,
    repeat_last: bool | None = False,
    parallel: Any = None,
    no_copy: Any = None,
    prefetch_queue_depth: Any = None,
    bytes_per_sample_hint: Any = None,
    batch_info: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Batches that this process supplies; workers compute what follows.

    Args:
        source: a function (of nothing; of the batch's number, or a BatchInfo; with batch=False of a SampleInfo), or an
            iterable, or a generator function. StopIteration ends the epoch. None: batches come by Pipeline.feed_input.
        num_outputs: None: one value; otherwise the source gives tuples of so many.
        cycle: for an iterable: None, "no": once; "quiet", True: again and again; "raise": again after each reset.
        batch: True if it gives whole batches, False if samples.
        layout, dtype, ndim: those of the values; one, or one for each output. dtype and ndim are checked.
        repeat_last: feed_input's last batch is used again.
        batch_info: the function takes a BatchInfo.

    Returns:
        A node; a list of nodes if num_outputs is given.
    """
    refuse_unknown(WHERE, kwargs, inspect.signature(external_source).parameters)
    hints = {"device": device, "cuda_stream": cuda_stream, "use_copy_kernel": use_copy_kernel, "blocking": blocking}
    hints |= {"parallel": parallel, "no_copy": no_copy, "prefetch_queue_depth": prefetch_queue_depth}
    for hint, value in {**hints, "bytes_per_sample_hint": bytes_per_sample_hint}.items():
        assert hint in HINTS
        check_hint(WHERE, hint, value)
    if parallel:
        warn_of_slower(WHERE, "parallel=True")
    if cycle not in _CYCLES:
        raise InvalidArgument(f'{WHERE}: cycle = {cycle!r}; expected "no", "quiet", "raise", True, False or None')
    if source is not None and not callable(source) and not hasattr(source, "__iter__"):
        raise InvalidArgument(f"{WHERE}: source is {shown(source)}; expected a function or an iterable")
    if num_outputs is not None and (
        isinstance(num_outputs, bool) or not isinstance(num_outputs, int) or num_outputs < 1
    ):
        raise InvalidArgument(f"{WHERE}: num_outputs = {num_outputs!r}; expected at least 1")
    count = 1 if num_outputs is None else num_outputs
    layouts, dtypes, ndims = (_each(*each, count) for each in (("layout", layout), ("dtype", dtype), ("ndim", ndim)))
    pipeline, number = _current.pipeline(), None
    if pipeline is not None:
        number = pipeline._sources_made
        pipeline._sources_made += 1
        layouts[0] = layouts[0] or pipeline._fed_layouts.get(number)
    operation = ConsumerOperation("external_source", (), count)
    operation.source = BatchSource(  # type: ignore[attr-defined]
        source,
        num_outputs,
        name=name or f"external_source_{next(_numbers)}",
        batch=batch is None or bool(batch),
        batch_info=bool(batch_info),
        cycle=_CYCLES[cycle],
        repeat_last=bool(repeat_last),
        dtypes=dtypes,
        ndims=ndims,
        layouts=layouts,
    )
    operation.source.number = number
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

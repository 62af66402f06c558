# SPDX-License-Identifier: Apache-2.0
"""Python functions in this process, sample by sample or batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leat.dali import _current, _node
from leat.dali._node import DataNode
from leat.dali._operator import operator
from leat.dali._source_checks import check_alike
from leat.errors import InvalidArgument

_WHERE = "fn.python_function"


def _batch(output: int, samples: Any, rows: int) -> Any:
    """Returns an array with a batch axis, or a list of arrays if shapes differ."""
    arrays = [np.asarray(each) for each in samples]
    if len(arrays) != rows:
        raise InvalidArgument(f"{_WHERE}: output {output} has {len(arrays)} samples; expected {rows}, as the batch has")
    check_alike(f"{_WHERE}: output {output}", arrays)
    return np.stack(arrays) if len({each.shape for each in arrays}) == 1 else arrays


@operator("python_function")
def python_function(
    *input: DataNode,
    function: Callable[..., Any],
    batch_processing: bool = False,
    num_outputs: int = 1,
    output_layouts: Any = None,
) -> Any:
    """Applies a function of this process to each sample, or with batch_processing to lists of samples."""
    batch_size = _current.pipeline().max_batch_size  # a function that held the pipeline would keep it alive

    def results_of(given: tuple[Any, ...]) -> tuple[Any, ...]:
        result = function(*given)
        results = result if isinstance(result, tuple) else () if result is None else (result,)
        if len(results) != num_outputs:
            raise InvalidArgument(f"{_WHERE}: {function!r:.60} gave {len(results)} values; expected {num_outputs}")
        return results

    def call(batches: list[Any]) -> list[Any]:
        arrays = [each if isinstance(each, list) else np.asarray(each) for each in batches]
        count = len(arrays[0]) if arrays else batch_size
        if batch_processing:
            return [_batch(i, part, count) for i, part in enumerate(results_of(tuple(map(list, arrays))))]
        rows = [results_of(tuple(each[row] for each in arrays)) for row in range(count)]
        return [_batch(i, [row[i] for row in rows], count) for i in range(num_outputs)]

    layouts = [""] * num_outputs if output_layouts is None else output_layouts
    nodes = _node.consumer_call(call, input, num_outputs, layouts, preserve=num_outputs == 0)
    return nodes[0] if num_outputs == 1 else nodes or None

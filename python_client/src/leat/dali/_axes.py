# SPDX-License-Identifier: Apache-2.0
"""The axes of a value, as far as they are known while a pipeline is defined, and the same elements in other axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leat.dali import _current, _node
from leat.dali._node import ConsumerOperation, DataNode


def sizes_of(x: DataNode) -> _node.Sizes | None:
    """Returns the sizes of a sample's axes, with None for each unknown size; None: even their number is unknown.

    An external source without ndim and layout in the script is asked for its first batch.
    """
    if x.sizes is not None or x.ndim is not None:
        return x.sizes if x.sizes is not None else (None,) * (x.ndim or 0)
    batch = _first_batch(x)
    if batch is None:
        return None
    ranks = {len(each.shape) for each in batch} if isinstance(batch, list) else {len(batch.shape) - 1}
    return (None,) * ranks.pop() if len(ranks) == 1 else None


def type_of(x: DataNode) -> str | None:
    """Returns the name of the elements' type; None: not known. A source without dtype is asked for its first batch."""
    batch = _first_batch(x) if x.dtype is None else None
    return x.dtype if batch is None else str(batch[0].dtype).rpartition(".")[2]


def _first_batch(x: DataNode) -> Any:
    """Returns the first batch of an external source's value; None: the value is not an external source's."""
    operation, pipeline = x.node._operation, _current.pipeline()
    if not isinstance(operation, ConsumerOperation) or operation.source is None or pipeline is None:
        return None
    return operation.source.first_batch(x.node._output, pipeline.max_batch_size)


def regrouped(x: DataNode, axes: Sequence[int], layout: str | None = "") -> DataNode:
    """Returns the same elements with some of the value's axes, in their order, and with new axes.

    Args:
        axes: for each axis of the result, its axis of the value, or -1 for a new one of size 1. Axes that are left
            out must have size 1, or the sample is bad.
    """
    sizes = sizes_of(x)
    assert sizes is not None
    found = [1 if axis < 0 else sizes[axis] for axis in axes]
    left = [size for axis, size in enumerate(sizes) if axis not in axes]
    # A size of -1 would also take up what is left of an axis that turns out to be larger than 1.
    if found.count(None) <= (0 if None in left else 1):
        node = _node.apply("reshape", x, shape=[-1 if size is None else size for size in found])
    else:
        node = _node.apply("reshape", x, shape=[1 if axis < 0 else 0 for axis in axes], axes=list(axes))
    return DataNode(node, layout=layout, sizes=found, dtype=x.dtype, device=x.device)

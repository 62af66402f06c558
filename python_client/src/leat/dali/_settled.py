# SPDX-License-Identifier: Apache-2.0
"""Decisions made when a pipeline is built and run: layouts of outputs, the number of steps ahead, unique names."""

from __future__ import annotations

from typing import Any

from leat.dali._node import DataNode
from leat.dali._plan import Plan
from leat.errors import InvalidArgument


def layout_of(node: DataNode, batch: Any) -> str:
    """Returns an output's layout if it names all axes, else ""; for an external source, the layout that was fed."""
    source = getattr(node.node._operation, "source", None)
    layout = node.layout if source is None else node.layout or source.layout_of(node.node._output)
    if node.node.op == "constant" and layout and len(layout) != len(batch[0].shape):
        raise InvalidArgument(
            f"Layout '{layout}' has {len(layout)} dimensions but output shape has {len(batch[0].shape)}: a constant of "
            f"shape {tuple(batch[0].shape)} ({node.node.where})"
        )
    return layout if len(layout) == len(batch[0].shape) else ""


def steps_ahead(plan: Plan, value: Any) -> int:
    """Returns how many steps ahead this process computes: the least of DALI's numbers; 1 if a script feeds a source."""
    numbers = (
        list(value.values()) if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
    )
    if not numbers or any(isinstance(each, bool) or not isinstance(each, int) or each < 1 for each in numbers):
        raise TypeError(f"Pipeline: prefetch_queue_depth = {value!r:.60}; expected a whole number, at least 1")
    return 1 if any(each.source.given is None for each in plan.sources) else min(64, min(numbers))


def require_names(plan: Plan) -> None:
    """Raises InvalidArgument if two sources or readers have the same name."""
    names = [each.source.name for each in plan.sources]
    names += [each.reader.name for each in plan.readers]
    for name in names:
        if name is not None and names.count(name) > 1:
            raise InvalidArgument(f"two operators have the name {name!r}; expected each at most once")


def meta_of(reader: Any, samples: int) -> dict[str, int]:
    """Returns Pipeline.reader_meta of a reader with so many samples."""
    shards = reader.num_shards
    return {
        "epoch_size": samples,
        "epoch_size_padded": -(-samples // shards) * shards if reader.pad_last_batch else samples,
        "number_of_shards": shards,
        "shard_id": reader.shard_id,
        "pad_last_batch": int(reader.pad_last_batch),
        "stick_to_shard": int(reader.stick_to_shard or reader.shuffle_after_epoch),
    }

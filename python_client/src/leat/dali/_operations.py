# SPDX-License-Identifier: Apache-2.0
"""Operations of a graph that hold more than what workers get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from leat._graphs.graph import Node, Operation


class ReaderOperation(Operation):
    """A reader, with its arguments about shards.

    Attributes:
        reader: a fn.readers.Reader.
    """

    def __init__(self, like: Operation, reader: Any) -> None:
        super().__init__(like.op, like.inputs, like.args)
        self.reader = reader


class ConsumerOperation(Operation):
    """An operation that runs in this process, on whole batches.

    Attributes:
        call: a function of a list of arrays with batch axis; None for an external source.
        source: for an external source: a _sources.BatchSource.
        outputs: how many values it gives.
        preserve: it runs even if nothing needs its values.
        exact: for an output whose type the script does not give: the operator whose values depend on the type, and the
            types with which they are right.
    """

    def __init__(self, op: str, inputs: Sequence[Node], outputs: int) -> None:
        super().__init__(op, tuple(inputs), {})
        self.call: Callable[[list[Any]], Sequence[Any]] | None = None
        self.source: Any = None
        self.outputs = outputs
        self.preserve = False
        self.exact: dict[int, tuple[str, frozenset[str]]] = {}

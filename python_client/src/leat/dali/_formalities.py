# SPDX-License-Identifier: Apache-2.0
"""Methods and properties of DALI's pipelines that do nothing here, or that are refused by name."""

from __future__ import annotations

from typing import Any, NoReturn

from leat.dali import _refused


class Formalities:
    """Members that scripts use of a pipeline besides defining and running it."""

    prefetch_queue_depth: Any
    exec_pipelined: Any

    def start_py_workers(self) -> None:
        """Does nothing: sources are asked in this process."""

    @property
    def exec_separated(self) -> bool:
        """True if prefetch_queue_depth has two numbers. It has no effect: the smaller one counts."""
        return isinstance(self.prefetch_queue_depth, dict)

    @property
    def cpu_queue_size(self) -> int:
        """The number in prefetch_queue_depth for DALI's CPU stage."""
        depth = self.prefetch_queue_depth
        return depth["cpu_size"] if isinstance(depth, dict) else depth

    @property
    def gpu_queue_size(self) -> int:
        """The number in prefetch_queue_depth for DALI's GPU stage."""
        depth = self.prefetch_queue_depth
        return depth["gpu_size"] if isinstance(depth, dict) else depth

    @property
    def steps_unseen(self) -> int:
        """How many steps DALI has computed beyond the one that it gives; they do not see batches that are fed later."""
        return max(self.cpu_queue_size, self.gpu_queue_size) - 1 if self.exec_pipelined in (None, True) else 0

    def serialize(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: a graph holds functions of this process."""
        raise _refused.unimplemented("Pipeline.serialize")

    @classmethod
    def deserialize(cls, *_: Any, **__: Any) -> NoReturn:
        """Refused, as `serialize`."""
        raise _refused.unimplemented("Pipeline.deserialize")

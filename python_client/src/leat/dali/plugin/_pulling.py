# SPDX-License-Identifier: Apache-2.0
"""Takes the batch of each pipeline of an iterator; pipelines that share a job use one iterator of Leat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leat._iterators.numbered import Numbered

Outputs = list[list[Any]]
# The position of each pipeline.
Positions = tuple[Any, ...]


class Each:
    """Takes batches from each pipeline by itself."""

    def __init__(self, pipelines: Sequence[Any]) -> None:
        self._pipelines = list(pipelines)
        self.looks_ahead = all(getattr(pipeline, "_may_look_ahead", False) for pipeline in self._pipelines)
        # For each pipeline that had a batch in time: the position that was requested, and the result.
        self._pulled: list[tuple[Any, Any] | None] = [None] * len(self._pipelines)

    def at(self, positions: Positions, timeout: float | None) -> tuple[Outputs, Positions]:
        """Returns each pipeline's outputs at its position, and the positions after it. May be called again for the
        same.

        Args:
            positions: the initial positions, or those that an earlier call returned.
            timeout: seconds; given only if `looks_ahead`.

        Raises:
            leat.DeadlineExceeded: a pipeline has none within the timeout; nothing is lost.
            StopIteration: a source ended.
        """
        found = []
        for i, (pipeline, position) in enumerate(zip(self._pipelines, positions)):
            pulled = self._pulled[i]
            if pulled is None or pulled[0] != position:
                taken = pipeline._take(position) if timeout is None else pipeline._take(position, timeout)
                self._pulled[i] = pulled = position, taken
            found.append(pulled[1])
        self._pulled = [None] * len(self._pipelines)
        return [taken.outputs for taken in found], tuple([taken.after for taken in found])


class Together:
    """Takes the rows of all pipelines at once: one wait and one buffer per step, rather than one per device.

    REQUIRES: `possible`.
    """

    looks_ahead = True

    def __init__(self, pipelines: Sequence[Any]) -> None:
        self._runners = [pipeline._runner for pipeline in pipelines]
        rows = np.concatenate([np.arange(runner.block.start, runner.block.stop) for runner in self._runners])
        self._batches = Numbered(self._runners[0].readers[0].job, rows=rows)

    @staticmethod
    def possible(pipelines: Sequence[Any]) -> bool:
        """True if there are several, all built, at one step of one job, with different rows, and with no other
        stage."""
        runners: list[Any] = [getattr(pipeline, "_runner", None) for pipeline in pipelines]
        if len(runners) < 2 or any(runner is None or runner.direct is None for runner in runners):
            return False
        if any(any(pipeline._checks.values()) for pipeline in pipelines):
            return False
        jobs = {(each.readers[0].job.name, each.readers[0].job.plan_hash, each.position.steps) for each in runners}
        return len(jobs) == 1 and len({runner.block.start for runner in runners}) == len(runners)

    def at(self, positions: Positions, timeout: float | None) -> tuple[Outputs, Positions]:
        """As `Each.at`."""
        (step,) = {position.steps for position in positions}
        batch = self._batches.at(step, timeout)
        if batch is None:
            raise StopIteration
        outputs = []
        for i, runner in enumerate(self._runners):
            runner.position = positions[i]
            rows = len(runner.block)
            outputs.append([batch[name][i * rows : (i + 1) * rows] for name in runner.direct])
        return outputs, tuple([position._replace(steps=step + 1) for position in positions])


def of(pipelines: Sequence[Any]) -> Each | Together:
    """Returns the faster of the two that is possible."""
    return Together(pipelines) if Together.possible(pipelines) else Each(pipelines)

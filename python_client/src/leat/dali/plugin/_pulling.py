# SPDX-License-Identifier: Apache-2.0
"""Takes the next batch of each pipeline of an iterator; of pipelines that share a job, all by one iterator of Leat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leat.errors import FailedPrecondition

Outputs = list[list[Any]]


class Each:
    """From each pipeline by itself."""

    def __init__(self, pipelines: Sequence[Any]) -> None:
        self._pipelines = list(pipelines)
        self.looks_ahead = all(getattr(pipeline, "_may_look_ahead", False) for pipeline in self._pipelines)
        # Of those pipelines that had some in time.
        self._pulled: list[Any] = [None] * len(self._pipelines)

    def next(self, timeout: float | None) -> Outputs:
        """The outputs of each pipeline.

        Args:
            timeout: seconds; given only if `looks_ahead`.

        Raises:
            leat.DeadlineExceeded: one has none within the timeout; nothing is lost.
            StopIteration: a source ended.
        """
        for i, pipeline in enumerate(self._pipelines):
            if self._pulled[i] is None:
                self._pulled[i] = pipeline._next() if timeout is None else pipeline._next(timeout)
        outputs, self._pulled = self._pulled, [None] * len(self._pipelines)
        return outputs


class Together:
    """The rows of all pipelines at once: one wait and one buffer for a step, rather than one for each device.

    REQUIRES: `possible`.
    """

    looks_ahead = True

    def __init__(self, pipelines: Sequence[Any]) -> None:
        self._runners = [pipeline._runner for pipeline in pipelines]
        self._batches: Any = None
        self._step = -1

    @staticmethod
    def possible(pipelines: Sequence[Any]) -> bool:
        """Whether they are built, several, of one job, at one step, of different rows, and nothing but the job."""
        runners: list[Any] = [getattr(pipeline, "_runner", None) for pipeline in pipelines]
        if len(runners) < 2 or any(runner is None or runner.direct is None for runner in runners):
            return False
        if any(any(pipeline._checks.values()) for pipeline in pipelines):
            return False
        jobs = {(runner.reader.job.name, runner.reader.job.plan_hash, runner.steps) for runner in runners}
        return len(jobs) == 1 and len({runner.block.start for runner in runners}) == len(runners)

    def next(self, timeout: float | None) -> Outputs:
        """As of Each."""
        if self._batches is None or any(runner.steps != self._step for runner in self._runners):
            self._open()
        batch = self._batches.next(timeout)
        if batch is None:
            raise StopIteration
        self._step += 1
        outputs = []
        for i, runner in enumerate(self._runners):
            runner.steps += 1
            rows = len(runner.block)
            outputs.append([batch[name][i * rows : (i + 1) * rows] for name in runner.direct])
        return outputs

    def _open(self) -> None:
        steps = {runner.steps for runner in self._runners}
        if len(steps) != 1:
            raise FailedPrecondition(
                f"the pipelines of an iterator are at different steps, {sorted(steps)}: one of them was run by itself"
            )
        if self._batches is not None:
            self._batches.close()
        (self._step,) = steps
        job = self._runners[0].reader.job
        rows = np.concatenate([np.arange(runner.block.start, runner.block.stop) for runner in self._runners])
        self._batches = job.batches(epochs=0, rows=rows, start=divmod(self._step, len(job)))


def of(pipelines: Sequence[Any]) -> Each | Together:
    """The quickest way that gives the same."""
    return Together(pipelines) if Together.possible(pipelines) else Each(pipelines)

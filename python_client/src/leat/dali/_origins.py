# SPDX-License-Identifier: Apache-2.0
"""Says where the samples of a pipeline's outputs are stored: `source_info` of DALI's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Origin:
    """Reports where the samples of one output of one step are stored. It asks the service at its first call.

    Args:
        readers: for each reader whose samples the output depends on: its job, and the pipeline's rows in a batch of
            that job.
        step: counted over all epochs.
    """

    def __init__(self, readers: Sequence[tuple[Any, range]], step: int) -> None:
        self._readers, self._step = readers, step

    def __call__(self, row: int) -> str:
        """As `TensorCPU.source_info`, for a row of the pipeline's batch."""
        return ";".join(self._stored(job, rows[row]) for job, rows in self._readers)

    def _stored(self, job: Any, row: int) -> str:
        epoch, step = divmod(self._step, len(job))
        record = job.record(int(job.samples(epoch, step, [row])[0]))
        return record.path if record.index is None else f"{record.path} at index {record.index}"

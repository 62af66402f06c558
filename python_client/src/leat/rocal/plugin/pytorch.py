# SPDX-License-Identifier: Apache-2.0
"""Iterators of torch tensors, as in `amd.rocal.plugin.pytorch`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from leat.errors import InvalidArgument
from leat.rocal._feed import Taken
from leat.rocal.plugin import generic

__all__ = ["ROCALClassificationIterator", "ROCALGenericIterator"]


class ROCALGenericIterator(generic.ROCALGenericIterator):
    """Batches as (list of tensors, labels): int64 labels, one per row, or int32 (1, rows, classes) if one-hot.

    Tensors stay unchanged when the next batch is taken. labels are None if the reader has none. Under LAST_BATCH_MASK a
    bool tensor follows: False for the rows that fill the last batch.
    """

    def __init__(self, pipeline: Any, *, device: str = "cpu", device_id: int = 0, **options: Any) -> None:
        """Builds the pipeline if it is not built.

        Args:
            pipeline: the pipeline that makes the batches.
            device: "cpu", or "gpu" (also "cuda"): tensors are on the GPU of this number.
            device_id: see device.
            **options: docs/guide/move-from-rocal.md lists those without effect.
        """
        if device not in ("cpu", "gpu", "cuda"):
            raise InvalidArgument(f"device = {device!r}; expected 'cpu' or 'gpu'")
        super().__init__(pipeline, **options)
        self._device = torch.device("cpu") if device == "cpu" else torch.device("cuda", device_id)

    def __len__(self) -> int:
        """Returns the samples of an epoch in whole batches, since rocAL's iterators for torch count these."""
        return self._feed.length * self.batch_size

    def result(self, taken: Taken) -> Any:
        """See the class."""
        labels = None
        if taken.labels is not None:
            labels = self._tensor(taken.labels)
            if not self.loader._one_hot_encoding:
                labels = labels.long()
        outputs = [self._tensor(array) for array in taken.outputs]
        return (outputs, labels) if taken.valid is None else (outputs, labels, self._tensor(taken.valid))

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device)


class ROCALClassificationIterator(ROCALGenericIterator):
    """The same, for a pipeline with one output."""

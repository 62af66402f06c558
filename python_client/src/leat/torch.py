# SPDX-License-Identifier: Apache-2.0
"""Batches as torch tensors: pinned copies where CUDA is there, else tensors that borrow the buffer as NumPy's do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from leat._batches import Batches
    from leat._client import Job

__all__ = ["TensorBatches", "batches"]


class TensorBatches(Iterator[dict[str, torch.Tensor]]):
    """Batches in order, each a dict of tensors; made by `leat.torch.batches`."""

    def __init__(self, host: Batches, pin_memory: bool) -> None:
        self._host = host
        self._pin_memory = pin_memory

    def __iter__(self) -> TensorBatches:
        return self

    def __enter__(self) -> TensorBatches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> dict[str, torch.Tensor]:
        tensors = {name: torch.from_numpy(array) for name, array in next(self._host).items()}
        if self._pin_memory:
            tensors = {name: tensor.pin_memory() for name, tensor in tensors.items()}
        return tensors

    def token(self) -> bytes:
        """As `leat.Batches.token`."""
        return self._host.token()

    def stats(self) -> dict[str, Any]:
        """As `leat.Batches.stats`."""
        return self._host.stats()

    def close(self) -> None:
        """Ends the iterator. Idempotent; tensors handed out stay valid."""
        self._host.close()


def batches(job: Job, *, pin_memory: bool | None = None, **options: Any) -> TensorBatches:
    """Opens an iterator over batches of torch tensors.

    Args:
        job: of `Service.job`.
        pin_memory: copy into page-locked memory, for asynchronous transfers; None: if CUDA is there.
        **options: as for `Job.batches`: epochs, rows, token, window, progress, …

    Returns:
        An iterator of dicts of tensors.
    """
    pin = torch.cuda.is_available() if pin_memory is None else pin_memory
    return TensorBatches(job.batches(**options), pin)

# SPDX-License-Identifier: Apache-2.0
"""Batches as torch tensors.

In a GPU's memory with `device="cuda:0"`; else pinned copies where CUDA is
there, or tensors that borrow the buffer as NumPy's do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import torch

from leat import _finish, _plane

if TYPE_CHECKING:
    from leat._batches import Batches
    from leat._client import Job

__all__ = ["TensorBatches", "batches"]


class _Finisher:
    """What is left to do to one array, with torch's operators on `device`."""

    def __init__(self, finish: _finish.Finish, device: torch.device) -> None:
        self._columns = 1
        self._table: torch.Tensor | None = None
        self._offsets: torch.Tensor | None = None
        if finish.table is not None:
            self._columns = finish.table.shape[1]
            self._table = torch.from_numpy(finish.table.reshape(-1).copy()).to(device)
            if self._columns > 1:
                self._offsets = torch.arange(self._columns, dtype=torch.int32, device=device)
        self._perm = None if finish.perm is None else (0, *(1 + axis for axis in finish.perm))

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if self._table is not None:
            entry = tensor.to(torch.int32)
            if self._offsets is not None:
                entry = entry * self._columns + self._offsets
            tensor = self._table.index_select(0, entry.reshape(-1)).reshape(tensor.shape)
        if self._perm is not None:
            tensor = tensor.permute(self._perm).contiguous()
        return tensor


class TensorBatches(Iterator[dict[str, torch.Tensor]]):
    """Batches in order, each a dict of tensors; made by `leat.torch.batches`."""

    def __init__(self, host: Batches, pin_memory: bool, device: torch.device | None, in_place: bool = False) -> None:
        self._host = host
        self._in_place = in_place  # batches are on the device already
        self._pin_memory = pin_memory
        self._device = device
        target = torch.device("cpu") if device is None else device
        self._finishers = {name: _Finisher(finish, target) for name, finish in host._finish.items()}

    def __iter__(self) -> TensorBatches:
        return self

    def __enter__(self) -> TensorBatches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> dict[str, torch.Tensor]:
        batch = next(self._host)
        if not self._in_place:
            return {name: self._placed(name, torch.from_numpy(array)) for name, array in batch.items()}
        return {name: self._finished(name, torch.from_dlpack(tensor)) for name, tensor in batch.items()}

    def _finished(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        finisher = self._finishers.get(name)
        return finisher(tensor) if finisher else tensor

    def _placed(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        if self._device is None or self._device.type == "cpu":
            tensor = self._finished(name, tensor)
            return tensor.pin_memory() if self._pin_memory else tensor
        if self._pin_memory:
            tensor = tensor.pin_memory()
        return self._finished(name, tensor.to(self._device, non_blocking=self._pin_memory))

    def token(self) -> bytes:
        """As `leat.Batches.token`."""
        return self._host.token()

    def stats(self) -> dict[str, Any]:
        """As `leat.Batches.stats`."""
        return self._host.stats()

    def close(self) -> None:
        """Ends the iterator. Idempotent; tensors handed out stay valid."""
        self._host.close()


def batches(
    job: Job,
    *,
    pin_memory: bool | None = None,
    device: torch.device | str | None = None,
    finish: Literal["worker", "device"] = "worker",
    **options: Any,
) -> TensorBatches:
    """Opens an iterator over batches of torch tensors.

    Args:
        job: of `Service.job`.
        pin_memory: copy into page-locked memory, for asynchronous transfers; None: if CUDA is there.
        device: where the tensors go, such as "cuda:0"; None: they stay in host memory. A worker of the same GPU writes
            into that memory itself. It is used again after the work that is queued, when a tensor dies, on the stream
            that was current when it was handed out: as torch's own memory, so mind other streams.
        finish: where normalize, cast and transpose at the pipeline's end run. "device": on `device`, by torch;
            workers send uint8, a quarter of float32. The same bits, and the same tokens.
        **options: as for `Job.batches`: epochs, rows, token, window, progress, …

    Returns:
        An iterator of dicts of tensors.
    """
    target = None if device is None else torch.device(device)
    pin = torch.cuda.is_available() if pin_memory is None else pin_memory
    _finish.chosen(finish)
    numbers = []
    if target is not None and target.type == "cuda" and torch.version.cuda is not None:
        numbers = [torch.cuda.current_device() if target.index is None else target.index]
    opened = _plane.open_on(numbers, lambda _, number: job._open(finish=finish, device=number, **options))
    host = opened[0] if opened else job._open(finish=finish, **options)
    try:
        return TensorBatches(host, pin, target, in_place=opened is not None)
    except BaseException:
        host.close()
        raise

# SPDX-License-Identifier: Apache-2.0
"""Batches that are in a GPU's memory already, for `leat.torch`: which stream, when to copy, when to give back.

A tensor that a trainer holds is torch's own memory, so that torch's rules hold for it: of other streams
(`Tensor.record_stream`), graphs, processes and GPUs. The library's buffer is read by one copy, or by the finishing of
its bytes, on the stream that is current when the batch is handed out, and is given back on that stream. So it is
written again after that read, whatever becomes of the tensors; and a stream that is being captured into a graph makes
the read a part of the graph, which the library sees, and keeps the buffer for the graph.

Only on request a tensor is the buffer itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from leat._dlpack import Tensor

_Made = TypeVar("_Made")  # torch.Tensor, or what tests have in its place


class Cuda(Protocol[_Made]):
    """What is asked of torch, on one device. `leat.torch` has torch's; tests have one over a driver of their own."""

    def current_stream(self) -> int:
        """The stream on which the trainer's next work is queued, as DLPack names it: 1 is the legacy default stream."""
        ...

    def is_capturing(self) -> bool:
        """Whether that stream is being captured into a graph."""
        ...

    def view(self, tensor: Any) -> _Made:
        """What has `__dlpack__`, without a copy."""
        ...

    def copy(self, tensor: _Made) -> _Made:
        """The same in memory of torch's own, made on the current stream."""
        ...

    def shares(self, tensor: _Made, other: _Made) -> bool:
        """Whether both begin at the same address."""
        ...


class _OnStream:
    """A tensor for a consumer that uses it on this stream, whichever one it would choose."""

    def __init__(self, tensor: Tensor, stream: int) -> None:
        self._tensor = tensor
        self._stream = stream

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, **wishes: Any) -> Any:
        return self._tensor.__dlpack__(stream=self._stream, **wishes)


class Handing(Generic[_Made]):
    """Makes what a trainer gets of the tensors of a batch.

    Args:
        cuda: torch, on the batches' device.
        finishers: what is left to do, by name.
        view: hand out the library's memory itself, where nothing is left to do.
    """

    def __init__(self, cuda: Cuda[_Made], finishers: Mapping[str, Callable[[_Made], _Made]], *, view: bool) -> None:
        self._cuda = cuda
        self._finishers = finishers
        self._view = view

    def __call__(self, tensors: Mapping[str, Tensor]) -> dict[str, _Made]:
        stream = self._cuda.current_stream()
        return {name: self._made(name, tensor, stream) for name, tensor in tensors.items()}

    def _made(self, name: str, tensor: Tensor, stream: int) -> _Made:
        # Dropped on return: the last one of a batch gives the buffer back, behind what was queued here.
        seen = self._cuda.view(_OnStream(tensor, stream))
        finisher = self._finishers.get(name)
        made = seen if finisher is None else finisher(seen)
        if self._view or not self._cuda.shares(made, seen):
            return made
        return self._cuda.copy(made)

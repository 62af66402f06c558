# SPDX-License-Identifier: Apache-2.0
"""Batches that are already in a GPU's memory, for `leat.torch`: on which stream, when to copy, when to give back.

A tensor that a trainer holds is torch's own memory, so that torch's rules apply to it: for other streams
(`Tensor.record_stream`), graphs, processes and GPUs. One copy, or the finishing of its bytes, reads the library's
buffer, on the stream that is current when the batch is handed out, and the buffer is given back on that stream. So it
is reused after that read, whatever becomes of the tensors. If that stream is being captured into a graph, the read
becomes a part of the graph; the library sees this, and keeps the buffer for the graph.

Only on request (`view`) a tensor is the buffer itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from leat._library.dlpack import OnStream, Tensor

_Made = TypeVar("_Made")  # torch.Tensor, or a substitute in tests


class Cuda(Protocol[_Made]):
    """The calls of torch that are needed, on one device. `leat.torch` has torch's; tests implement it over a fake
    driver."""

    def current_stream(self) -> int:
        """Returns the stream on which the trainer's next work is queued, as in DLPack: 1 is the legacy default
        stream."""
        ...

    def is_capturing(self) -> bool:
        """True if that stream is being captured into a graph."""
        ...

    def view(self, tensor: Any) -> _Made:
        """Returns a tensor of an object with `__dlpack__`, without a copy."""
        ...

    def copy(self, tensor: _Made) -> _Made:
        """Returns a copy in torch's own memory, made on the current stream."""
        ...

    def shares(self, tensor: _Made, other: _Made) -> bool:
        """True if both begin at the same address."""
        ...


class Handing(Generic[_Made]):
    """Makes the tensors that a trainer gets from the tensors of a batch.

    Args:
        cuda: torch, on the batches' device.
        epilogues: the operators still to be applied, by name.
        view: hand out the library's memory itself, for tensors without an epilogue.
    """

    def __init__(self, cuda: Cuda[_Made], epilogues: Mapping[str, Callable[[_Made], _Made]], *, view: bool) -> None:
        self._cuda = cuda
        self._epilogues = epilogues
        self._view = view

    def __call__(self, tensors: Mapping[str, Tensor]) -> dict[str, _Made]:
        stream = self._cuda.current_stream()
        return {name: self._made(name, tensor, stream) for name, tensor in tensors.items()}

    def _made(self, name: str, tensor: Tensor, stream: int) -> _Made:
        # Dropped on return: the last one of a batch gives the buffer back, after the work that was queued here.
        seen = self._cuda.view(OnStream(tensor, stream))
        epilogue = self._epilogues.get(name)
        made = seen if epilogue is None else epilogue(seen)
        if self._view or not self._cuda.shares(made, seen):
            return made
        return self._cuda.copy(made)

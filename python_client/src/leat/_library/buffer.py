# SPDX-License-Identifier: Apache-2.0
"""The library's memory of one batch, as seen by NumPy arrays and DLPack tensors.

A buffer goes back to the library's pool when nothing refers to it any more: each array's base is a `_Memory`, which
holds the `Buffer` of the whole batch, and views, slices, memoryviews, DLPack capsules, torch tensors and aliasing JAX
arrays all hold the array. The last reference frees the batch, in any thread.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from leat._library import dlpack as _dlpack, dtypes, native


@functools.cache
def _dtype(name: bytes) -> np.dtype:
    return dtypes.of(name.decode())


def _is_foreign(name: bytes) -> bool:
    """True if NumPy's array interface has no text for the dtype, which a view has to set."""
    return name == b"bfloat16"


class Buffer:
    """Holds one batch of the library, which is freed once, with the last array that refers to it.

    The job outlives the batch, in the library too: ending a connection takes time, and must not happen in
    leat_batch_free, which keeps the GIL.

    Attributes:
        out: the batch's address, for as long as the buffer lives; 0 until there is a batch.
    """

    # CPython clears attributes in the order of their names: the batch before the job.
    __slots__ = ("_batch", "_job", "out")

    def __init__(self, job: Any) -> None:
        self._job = job
        self._batch = native.Cell("leat_batch_free")
        self.out = self._batch.made

    @property
    def cell(self) -> native.Cell:
        """The cell for calls that make a batch and may go on after an interrupt: it keeps the memory that they write
        to."""
        return self._batch

    def epoch_and_step(self) -> tuple[int, int]:
        """Returns epoch and step of the batch."""
        return native.quick.leat_batch_epoch(self.out), native.quick.leat_batch_step(self.out)

    def views(self) -> list[native.Tensor]:
        """Returns name, dtype, shape and address of each tensor, as in leat_tensor."""
        quick = native.quick
        return [quick.leat_batch_tensor(self.out, i) for i in range(quick.leat_batch_num_tensors(self.out))]

    def dlpack(self, index: int, versioned: bool, stream: int) -> Any:
        """Returns a capsule of tensor `index`, which shares ownership of the batch."""
        assert self.out.value
        return _dlpack.capsule(self.out.value, index, versioned, stream)


class _Memory:
    """The base of a NumPy array: gives address and shape to NumPy, and keeps the buffer alive."""

    __slots__ = ("__array_interface__", "_buffer")

    def __init__(self, buffer: Buffer, tensor: native.Tensor) -> None:
        self._buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(tensor.shape[: tensor.rank]),
            "typestr": _dtype(tensor.dtype).str,
            "data": (tensor.data, False),
        }


def arrays(buffer: Buffer) -> dict[str, np.ndarray]:
    """Returns the arrays of a batch in host memory, by name; each keeps the buffer."""
    result = {}
    for tensor in buffer.views():
        name = tensor.name.decode()
        if tensor.bytes == 0:
            result[name] = np.empty(tuple(tensor.shape[: tensor.rank]), _dtype(tensor.dtype))
        else:
            array = np.asarray(_Memory(buffer, tensor))
            result[name] = array.view(_dtype(tensor.dtype)) if _is_foreign(tensor.dtype) else array
    return result


def tensors(buffer: Buffer) -> dict[str, _dlpack.Tensor]:
    """Returns the tensors of a batch by name, wherever its memory is; each keeps the buffer."""
    return {view.name.decode(): _dlpack.Tensor(buffer, i, view) for i, view in enumerate(buffer.views())}


def stack_one(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns a batch of one row without its row axis."""
    return {name: array[0] for name, array in batch.items()}

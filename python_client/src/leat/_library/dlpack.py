# SPDX-License-Identifier: Apache-2.0
"""Tensors of a batch as DLPack producers, also those in a GPU's memory, which NumPy cannot hold.

Each importer shares ownership of the batch. The batch's memory is reused when the last importer's deleter has run and
the last array and `Tensor` are gone. The deleter is the library's own, and needs neither the GIL nor an interpreter.
"""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

from leat._library import dtypes, native


class _Owner(Protocol):
    def dlpack(self, index: int, versioned: bool, stream: int) -> Any: ...


_CPU, _CUDA = 1, 2  # DLPack's device types
# These names outlive the capsules, which keep pointers to them.
_NAME, _VERSIONED = b"dltensor", b"dltensor_versioned"

_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_destructor = ctypes.cast(native.quick.leat_dlpack_capsule_free, ctypes.c_void_p)


class Tensor:
    """One tensor of a batch, for `from_dlpack` of JAX, torch, CuPy and NumPy (in host memory).

    Attributes:
        name, dtype, shape: those of the array.
        device: -1 in host memory, otherwise the CUDA device's number.
    """

    __slots__ = ("_buffer", "_index", "device", "dtype", "name", "shape")

    def __init__(self, buffer: _Owner, index: int, tensor: native.Tensor) -> None:
        self._buffer = buffer
        self._index = index
        self.name: str = tensor.name.decode()
        self.dtype = dtypes.of(tensor.dtype.decode())
        self.shape = tuple(tensor.shape[: tensor.rank])
        self.device: int = tensor.device

    def __repr__(self) -> str:
        place = "host memory" if self.device < 0 else f"CUDA device {self.device}"
        return f"<leat tensor {self.name!r}: {self.dtype} {self.shape} in {place}>"

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CPU, 0) if self.device < 0 else (_CUDA, self.device)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Returns a new capsule, as the array API standard specifies.

        Args:
            stream: for device memory: the stream on which the consumer uses it. 1 or None: CUDA's legacy default
                stream, 2: the per-thread stream, -1: the consumer waits for its work before it drops the tensor.
            max_version: the consumer's version; from (1, 0) on it gets a versioned capsule.
            dl_device: must be the tensor's own device.
            copy: True is refused.

        Raises:
            BufferError: it cannot be exported like that.
        """
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"{self!r} is on device {self.__dlpack_device__()}, not {tuple(dl_device)}")
        if copy:
            raise BufferError(f"{self!r} is given without a copy only")
        return self._buffer.dlpack(self._index, self._version(max_version), self._stream(stream))

    @staticmethod
    def _version(max_version: tuple[int, int] | None) -> bool:
        return max_version is not None and tuple(max_version) >= (1, 0)

    def _stream(self, stream: int | None) -> int:
        if self.device < 0:
            if stream is not None and stream != -1:
                raise BufferError(f"{self!r} has no stream; expected None, got {stream!r}")
            return 0
        if stream is None:
            return 1
        if isinstance(stream, bool) or not isinstance(stream, int) or stream < -1 or stream == 0:
            raise BufferError(f"stream = {stream!r}; expected None, -1, 1, 2 or a CUDA stream's address")
        return max(stream, 0)


class OnStream:
    """A tensor for a consumer that uses it on this stream, whichever one it would choose; -1: the consumer drops it
    when its work is done."""

    def __init__(self, tensor: Tensor, stream: int) -> None:
        self._tensor = tensor
        self._stream = stream

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None, **wishes: Any) -> Any:
        return self._tensor.__dlpack__(stream=self._stream, **wishes)


def capsule(batch: int, index: int, versioned: bool, stream: int) -> Any:
    """Returns a capsule of a tensor of the batch at this address. `stream`: 0: none."""
    managed = native.quick.leat_batch_dlpack(batch, index, versioned, stream)
    if not managed:
        raise BufferError(f"the tensors of a batch have to be used on one CUDA stream, not also on {stream:#x}")
    return _new_capsule(managed, _VERSIONED if versioned else _NAME, _destructor)

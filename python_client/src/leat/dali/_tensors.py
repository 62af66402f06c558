# SPDX-License-Identifier: Apache-2.0
"""The results of Pipeline.run: a batch of one output, and its samples."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from leat.dali import types
from leat.errors import InvalidArgument


class TensorCPU:
    """An array in host memory, with the names of its axes. It shares the memory of the object it was made from.

    NumPy, torch and JAX take it as an array (`__array__`, `__dlpack__`). `is_pinned` has no effect.
    """

    # The GPU on which the script has it, where a plugin may place it.
    _target: int | None = None
    # Returns where the sample is stored.
    _origin: Callable[[], str] | None = None

    def __init__(self, object: Any, layout: str | None = None, is_pinned: bool = False) -> None:
        if isinstance(object, TensorCPU):
            layout = object.layout() if layout is None else layout
        elif not hasattr(object, "__array__") and hasattr(object, "__dlpack__"):
            object = np.from_dlpack(object)
        self._array = np.asarray(object)
        self._layout = _checked(layout or "", self._array.ndim, "a tensor")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self._array if dtype is None else self._array.astype(dtype, copy=False)
        return array.copy() if copy and array is self._array else array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._array.__array_interface__

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"TensorCPU({self._array!r}, layout={self._layout!r})"

    def shape(self) -> list[int]:
        """Returns the sizes of its axes."""
        return list(self._array.shape)

    def strides(self) -> list[int]:
        """Returns the bytes from an element to the next, along each axis."""
        return list(self._array.strides)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def dtype(self) -> types.DALIDataType:
        """The type of the elements, as a DALIDataType."""
        return types.from_numpy_type(self._array.dtype)

    def layout(self) -> str:
        """Returns the names of its axes."""
        return self._layout

    def source_info(self) -> str:
        """Returns the path of the file that the sample is read from, followed by " at index 3" in a file of several
        records.

        For a sample that combines those of several readers, it lists all of them, separated by ";". Empty: the sample
        comes from no reader. Each call asks the service.
        """
        return "" if self._origin is None else self._origin()

    def get_property(self, key: str) -> str | None:
        """Returns the layout or the source; None for other keys."""
        return self.source_info() if key == "source_info" else {"layout": self._layout}.get(key)

    def as_cpu(self) -> TensorCPU:
        """Returns itself: it is in host memory."""
        return self

    def device_id(self) -> int | None:
        """Returns None: it is on no GPU."""
        return None

    def data_ptr(self) -> int:
        """Returns the address of the first element."""
        return self._array.ctypes.data

    def copy_to_external(self, ptr: Any) -> None:
        """Copies the elements, in row-major order, to an address, which must have room for all of them."""
        address = getattr(ptr, "value", ptr)
        if isinstance(address, bool) or not isinstance(address, int) or address <= 0:
            raise InvalidArgument(f"copy_to_external: ptr = {ptr!r:.60}; expected an address")
        array = np.ascontiguousarray(self._array)
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def squeeze(self, dim: int | None = None) -> bool:
        """Removes the axes of size 1, or the given one if its size is 1; returns True if it removed any."""
        rank = self._array.ndim
        if dim is not None and not -rank <= dim < rank:
            raise IndexError(f"squeeze: axis {dim} of a tensor of {rank} axes")
        dim = None if dim is None else dim % rank
        kept = [i for i, size in enumerate(self._array.shape) if size != 1 or dim not in (None, i)]
        squeezed = len(kept) < rank
        self._array = self._array.reshape([self._array.shape[i] for i in kept])
        self._layout = "".join(self._layout[i] for i in kept) if self._layout else ""
        return squeezed


class TensorListCPU:
    """The samples of one output of one step; arrays share the library's memory, and keep it alive.

    It is made from a list of arrays, one per sample, or from an array with a batch axis. `is_pinned` has no effect.
    """

    _target: int | None = None  # as in TensorCPU
    _origin: Callable[[int], str] | None = None  # as in TensorCPU, by the sample's index

    def __init__(self, batch: Any, layout: str | None = None, is_pinned: bool = False) -> None:
        first = batch[0] if isinstance(batch, (list, tuple)) and batch else batch
        if layout is None:
            layout = first.layout() if isinstance(first, (TensorCPU, TensorListCPU)) else ""
            layout = layout[1:] if first is batch and isinstance(batch, TensorCPU) else layout
        if isinstance(batch, TensorListCPU):
            batch = batch._batch
        elif isinstance(batch, (list, tuple)):
            samples = [np.asarray(each) for each in batch]
            kinds = {(each.shape, each.dtype) for each in samples}
            batch = np.stack(samples) if len(kinds) == 1 else samples
        elif isinstance(batch, TensorCPU):
            batch = np.asarray(batch)
        self._batch = batch
        self._layout = layout if not len(batch) else _checked(layout, len(batch[0].shape), "a sample")

    def __len__(self) -> int:
        return len(self._batch)

    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self[at] for at in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(f"sample {i} of a batch of {len(self)}")
        sample = self._placed(TensorCPU(self._batch[i], self._layout))
        if self._origin is not None:
            sample._origin = functools.partial(self._origin, i % len(self))
        return sample

    def _placed(self, tensor: TensorCPU) -> TensorCPU:
        tensor._target = self._target
        return tensor

    def __iter__(self) -> Iterator[TensorCPU]:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.as_array(), dtype=dtype) if copy else np.asarray(self.as_array(), dtype=dtype)

    def __repr__(self) -> str:
        return f"TensorListCPU({len(self)} samples, {self.dtype}, layout={self._layout!r})"

    def at(self, i: int) -> np.ndarray:
        """Returns one sample, as an array."""
        return np.asarray(self._batch[i])

    def shape(self) -> list[tuple[int, ...]]:
        """Returns the shape of each sample."""
        return [tuple(each.shape) for each in self._batch]

    def layout(self) -> str:
        """Returns the names of a sample's axes."""
        return self._layout

    @property
    def dtype(self) -> types.DALIDataType:
        """The type of the elements; NO_TYPE: there are no samples."""
        if not len(self):
            return types.NO_TYPE
        return types.from_numpy_type(np.dtype(str(self._batch[0].dtype)))

    def is_dense_tensor(self) -> bool:
        """True if all samples have one shape."""
        return not isinstance(self._batch, list)

    def _dense(self) -> Any:
        if isinstance(self._batch, list):
            raise InvalidArgument("samples of several shapes are no tensor; .at(i) gives one of them")
        return self._batch

    def as_tensor(self) -> TensorCPU:
        """Returns the batch as one tensor with a batch axis, named N if the other axes have names."""
        return self._placed(TensorCPU(self._dense(), f"N{self._layout}" if self._layout else ""))

    def as_reshaped_tensor(self, shape: Sequence[int]) -> TensorCPU:
        """Returns the elements of the batch in other axes."""
        return TensorCPU(self.as_array().reshape(tuple(shape)))

    def as_array(self) -> np.ndarray:
        """Returns the batch as one NumPy array."""
        return np.asarray(self._dense())

    def as_cpu(self) -> TensorListCPU:
        """Returns itself: it is in host memory."""
        return self

    def device_id(self) -> int | None:
        """Returns None: it is on no GPU."""
        return None

    def get_property(self, key: str) -> Any:
        """Returns the layout, or the sources of all samples; None for other keys."""
        if key == "source_info":
            return [each.source_info() for each in self]
        return {"layout": self._layout}.get(key)


TensorList = TensorListCPU


def plain(value: Any) -> Any:
    """Returns the array or list that a tensor or a batch of them holds; any other value unchanged."""
    if isinstance(value, TensorListCPU):
        return value._batch
    return np.asarray(value) if isinstance(value, TensorCPU) else value


def _checked(layout: str, axes: int, what: str) -> str:
    if not isinstance(layout, str) or layout and len(layout) != axes:
        raise InvalidArgument(f"layout = {layout!r:.40} of {what} of {axes} axes; expected a letter for each")
    return layout

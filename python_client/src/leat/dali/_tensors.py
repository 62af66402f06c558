# SPDX-License-Identifier: Apache-2.0
"""What Pipeline.run gives: a batch of one output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from leat.dali import types
from leat.errors import InvalidArgument


class TensorList:
    """The samples of one output of one step; arrays look into the library's memory, and keep it."""

    def __init__(self, batch: Any, layout: str = "") -> None:
        self._batch = batch
        self._layout = layout

    def __len__(self) -> int:
        return len(self._batch)

    def __getitem__(self, i: int) -> Any:
        return self._batch[i]

    def __iter__(self) -> Iterator[Any]:
        return (self._batch[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"TensorList({len(self)} samples, {self.dtype}, layout={self._layout!r})"

    def at(self, i: int) -> np.ndarray:
        """One sample, as an array."""
        return np.asarray(self._batch[i])

    def shape(self) -> list[tuple[int, ...]]:
        """Of each sample."""
        return [tuple(each.shape) for each in self]

    def layout(self) -> str:
        """The names of a sample's axes."""
        return self._layout

    @property
    def dtype(self) -> types.DALIDataType:
        """Of the elements."""
        return types.from_numpy_type(np.dtype(str(self._batch[0].dtype)))

    def is_dense_tensor(self) -> bool:
        """Whether all samples have one shape."""
        return not isinstance(self._batch, list)

    def as_tensor(self) -> Any:
        """The batch as one array with a batch axis."""
        if isinstance(self._batch, list):
            raise InvalidArgument("samples of several shapes are no tensor; .at(i) gives one of them")
        return self._batch

    def as_array(self) -> np.ndarray:
        """The batch as one NumPy array."""
        return np.asarray(self.as_tensor())

    def as_cpu(self) -> TensorList:
        """The same: it is in the host's memory."""
        return self

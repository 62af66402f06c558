# SPDX-License-Identifier: Apache-2.0
"""The rest of a pipeline for arrays of bytes with epilogue="device": a table lookup, and an order of the axes."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from leat._iterators.placement import Piece
from leat._library import dtypes, native
from leat.errors import InvalidArgument

CHOICES = ("worker", "device")


def chosen(epilogue: Any) -> str:
    """Returns `epilogue` if it is one of the two words; otherwise raises."""
    if isinstance(epilogue, str) and epilogue in CHOICES:
        return epilogue
    raise InvalidArgument(f"epilogue = {epilogue!r:.80}; expected 'worker' or 'device'")


@dataclasses.dataclass(frozen=True)
class Epilogue:
    """For one array: each byte x at index c of the last axis becomes table[x, c], then the axes are transposed.

    Attributes:
        dtype: the dtype of the finished array.
        table: (256, 1) if all indices share one column, else (256, size of the last axis); None: the bytes stay.
        perm: axis i of a finished row is axis perm[i] of the row of bytes; None: the axes stay.
    """

    dtype: np.dtype
    table: np.ndarray | None
    perm: tuple[int, ...] | None

    def row_of(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of a row of bytes, given the finished shape."""
        return self._turned_back(tuple(shape))

    def piece_of(self, piece: Piece) -> Piece:
        """Returns the part of the bytes that a part of the finished array comes from."""
        return dataclasses.replace(piece, rest=self._turned_back(piece.rest) if piece.rest else ())

    def table_of(self, piece: Piece) -> np.ndarray | None:
        """Returns the columns of the table for a part of the bytes."""
        if self.table is None or self.table.shape[1] == 1 or not piece.rest:
            return self.table
        return self.table[:, piece.rest[-1]]

    def _turned_back(self, axes: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.perm is None:
            return axes
        return tuple(axes[self.perm.index(i)] for i in range(len(axes)))


def of_batches(pointer: int, names: Iterable[str]) -> dict[str, Epilogue]:
    """Returns the Epilogue of each array of an iterator, by name; arrays that come finished are left out."""
    result = {}
    for i, name in enumerate(names):
        left = native.quick.leat_batches_epilogue(pointer, i)
        if left.dtype is None:
            continue
        dtype = dtypes.of(left.dtype.decode())
        table = None
        if left.table:
            data = ctypes.string_at(left.table, left.table_bytes)
            table = np.frombuffer(data, dtype).reshape(256, left.channels)
        perm = tuple(left.perm[: left.rank]) if left.perm else None
        result[name] = Epilogue(dtype, table, perm)
    return result

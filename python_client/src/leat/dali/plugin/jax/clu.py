# SPDX-License-Identifier: Apache-2.0
"""Iterators that can be looked ahead in, as the training loops of Google's CLU and T5X expect them.

They need nothing from CLU. If it is installed, element specs are its `ArraySpec`s; otherwise tuples with the same
fields.
"""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import numpy as np

from leat._iterators.array_spec import ArraySpec, spec_of
from leat._iterators.peekable import Peekable
from leat.dali.plugin.jax import _iterator
from leat.dali.plugin.jax._iterator import DALIGenericIterator, MakesIterators, iterators_of

_Self = TypeVar("_Self", bound="DALIGenericPeekableIterator")

__all__ = ["ArraySpec", "DALIGenericPeekableIterator", "get_spec_for_array", "peekable_data_iterator"]


def get_spec_for_array(jax_array: jax.Array) -> Any:
    """Returns the `ArraySpec` of an array."""
    return spec_of(jax_array)


class DALIGenericPeekableIterator(Peekable, DALIGenericIterator):
    __doc__ = (
        "Iterates over batches of pipelines, as dicts of `jax.Array` whose shapes and dtypes never change; the next "
        "one can be seen before it is taken." + _iterator._ITERATOR
    )

    def _begin(self) -> None:
        self._begin_peeking()

    def __iter__(self: _Self) -> _Self:
        """Begins the next epoch, if the last one is finished and no batch of the next was peeked."""
        return self if self._known() is not None else super().__iter__()

    def checkpoints(self) -> list[str]:
        """As in `DALIGenericIterator`; RuntimeError while a peeked batch has not been taken."""
        if self._known() is not None:
            raise RuntimeError(
                "a peeked batch belongs to no checkpoint; expected a call of next() before checkpoints(), for each peek"
            )
        return super().checkpoints()

    @property
    def is_nonpadding(self) -> Any:
        """For each row of the last batch, True if it is a sample of its shard, False if it only fills the batch.

        The array is on the `sharding`, if there is one; otherwise it is a NumPy array over all pipelines.

        Raises:
            ValueError: the iterator has no `reader_name`.
        """
        if self._reader_name is None:
            raise ValueError("is_nonpadding is known by readers only; expected an iterator with reader_name")
        known = self._known()
        counting = self._counting if known is None else known.after.counting
        flags = [np.arange(self.batch_size) < rows for rows in counting.rows_of_shards()]
        if self._sharding is None:
            return np.concatenate(flags)
        if self._place is None:
            self._place = self._placing()
        return self._place(flags)


peekable_data_iterator: MakesIterators[DALIGenericPeekableIterator] = iterators_of(
    "peekable_data_iterator", DALIGenericPeekableIterator
)

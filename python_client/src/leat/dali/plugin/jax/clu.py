# SPDX-License-Identifier: Apache-2.0
"""Iterators that can be looked ahead in, as the training loops of Google's CLU and T5X expect them.

Needs nothing of CLU. Where it is installed, element specs are its `ArraySpec`s; otherwise tuples with the same fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import jax
import numpy as np

from leat._array_spec import ArraySpec, spec_of
from leat._peekable import Peekable
from leat.dali.plugin.base_iterator import LastBatchPolicy
from leat.dali.plugin.jax import _iterator
from leat.dali.plugin.jax._iterator import DALIGenericIterator

_Self = TypeVar("_Self", bound="DALIGenericPeekableIterator")

__all__ = ["ArraySpec", "DALIGenericPeekableIterator", "get_spec_for_array", "peekable_data_iterator"]


def get_spec_for_array(jax_array: jax.Array) -> Any:
    """The `ArraySpec` of an array."""
    return spec_of(jax_array)


class DALIGenericPeekableIterator(Peekable, DALIGenericIterator):
    __doc__ = (
        "Iterates over batches of pipelines, as dicts of `jax.Array` whose shapes and dtypes never change; the next "
        "one can be seen before it is taken." + _iterator._ITERATOR
    )

    def __init__(
        self,
        pipelines: Any,
        output_map: list[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        sharding: jax.sharding.Sharding | None = None,
        pmap_compatible: bool | None = None,
    ) -> None:
        self._begin_peeking()
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            sharding,
            pmap_compatible,
        )

    def __iter__(self: _Self) -> _Self:
        """Begins the next epoch, if the last one has been gone through and no batch of the next was peeked."""
        return self if self._known() is not None else super().__iter__()

    def checkpoints(self) -> list[str]:
        """As of `DALIGenericIterator`; RuntimeError while a peeked batch has not been taken."""
        if self._known() is not None:
            raise RuntimeError(
                "a peeked batch belongs to no checkpoint; expected a call of next() before checkpoints(), for each peek"
            )
        return super().checkpoints()

    @property
    def is_nonpadding(self) -> Any:
        """Of each row of the last batch whether it is a sample of its shard, rather than one that filled it up.

        On the `sharding`, if there is one; otherwise a NumPy array over all pipelines.

        Raises:
            ValueError: without `reader_name` nobody knows.
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


@overload
def peekable_data_iterator(
    pipeline_fn: Callable[..., Any],
    output_map: list[str] = ...,
    size: int = ...,
    reader_name: str | None = ...,
    auto_reset: str | bool | None = ...,
    last_batch_padded: bool = ...,
    last_batch_policy: LastBatchPolicy = ...,
    prepare_first_batch: bool = ...,
    sharding: jax.sharding.Sharding | None = ...,
    devices: list[Any] | None = ...,
    pmap_compatible: bool | None = ...,
) -> Callable[..., DALIGenericPeekableIterator]: ...
@overload
def peekable_data_iterator(
    pipeline_fn: None = None,
    output_map: list[str] = ...,
    size: int = ...,
    reader_name: str | None = ...,
    auto_reset: str | bool | None = ...,
    last_batch_padded: bool = ...,
    last_batch_policy: LastBatchPolicy = ...,
    prepare_first_batch: bool = ...,
    sharding: jax.sharding.Sharding | None = ...,
    devices: list[Any] | None = ...,
    pmap_compatible: bool | None = ...,
) -> Callable[[Callable[..., Any]], Callable[..., DALIGenericPeekableIterator]]: ...
def peekable_data_iterator(
    pipeline_fn: Callable[..., Any] | None = None,
    output_map: list[str] = [],  # noqa: B006 (read only)
    size: int = -1,
    reader_name: str | None = None,
    auto_reset: str | bool | None = False,
    last_batch_padded: bool = False,
    last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
    prepare_first_batch: bool = True,
    sharding: jax.sharding.Sharding | None = None,
    devices: list[Any] | None = None,
    pmap_compatible: bool | None = None,
) -> Any:
    options = {name: value for name, value in locals().items() if name not in ("pipeline_fn", "devices")}
    return _iterator.decorate(DALIGenericPeekableIterator, pipeline_fn, options, devices)


peekable_data_iterator.__doc__ = (
    "Turns the function of a pipeline into one that makes a `DALIGenericPeekableIterator`." + _iterator._DECORATOR
)

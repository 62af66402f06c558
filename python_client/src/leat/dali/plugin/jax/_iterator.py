# SPDX-License-Identifier: Apache-2.0
"""DALIGenericIterator, and the decorator that makes one from a pipeline's function."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, overload

import jax

from leat._arrays import pipeline_placing as _placing
from leat.dali.plugin.base_iterator import BaseIterator, LastBatchPolicy, check_names

_NUM_THREADS = 4

ARGUMENTS = """
        output_map: a name for each of the pipelines' outputs, in their order, all different. Batches are dicts of
            them; outputs beyond the names are left out.
        size: samples of an epoch, summed over the pipelines, where no reader says it. -1, with one pipeline: the
            epoch ends when its source does, and neither last_batch_policy nor last_batch_padded has a meaning.
        reader_name: the reader (its `name` argument) from which the size of an epoch, and whether it pads, are known.
            Then neither size nor last_batch_padded may be given.
        auto_reset: False, None or "no": after an epoch's end, `reset()` or `iter()` begins the next one. True or
            "yes": it has begun when StopIteration is raised.
        last_batch_padded: whether the reader repeats its last sample in the last batch (True), or goes on with the
            samples that follow (False).
        last_batch_policy: FILL, DROP or MASK, which adds the bool array "valid". A `jax.Array` of fewer rows has no
            place on a mesh: PARTIAL is refused.
        prepare_first_batch: whether the first batch is made before the first `next`.
        sharding: of the global arrays; the rows of each of its parts come from one pipeline. Any mesh, with axes that
            cut other axes of the outputs or that replicate, on any number of processes.
        pmap_compatible: whether arrays have the devices as their first axis, (devices, batch / devices, …); None: if
            there are several pipelines and no sharding."""

_EXAMPLE = """

    Of the data set [1, 2, 3, 4, 5, 6, 7] with a batch of 2, the last batch, and the first one of the next epoch:

        FILL, padded       [7, 7]   [1, 2]
        FILL, not padded   [7, 1]   [2, 3]
        DROP, padded       [5, 6]   [1, 2]
        DROP, not padded   [5, 6]   [2, 3]
    """

_ITERATOR = f"""

    Args:
        pipelines: of `leat.dali.Pipeline`: one, or a list of them with the same batch size.{ARGUMENTS}

    Raises:
        AssertionError, ValueError: an argument is wrong, or two exclude each other.
        RuntimeError: there is no data.{_EXAMPLE}"""

_DECORATOR = f"""

    The function is called with the keyword arguments that it declares; the others (batch_size, num_threads, seed,
    enable_checkpointing, …) are the pipeline's. With `sharding` or `devices`, `batch_size` is that of the global batch,
    and the function must take `shard_id` and `num_shards`, which it gives to its reader: it is called once for each
    part of the rows that this process holds. What comes back takes `checkpoints`, of the iterator's method of that
    name, to go on there. May be used as `@name(…)`, or as `name(function, …)`.

    Args:
        pipeline_fn: as of `pipeline_def`.{ARGUMENTS}
        devices: of the only process, instead of `sharding`: arrays are as `jax.pmap` over these devices takes them.

    Raises:
        ValueError: both of `sharding` and `devices` are given.{_EXAMPLE}"""


def check_sharding(sharding: Any) -> None:
    """Raises AssertionError unless it is a sharding, or None."""
    if sharding is not None and not isinstance(sharding, jax.sharding.Sharding):
        raise AssertionError(
            "`sharding` should be an instance of `NamedSharding` or `PositionalSharding`, or another "
            f"`jax.sharding.Sharding`; got {type(sharding)}"
        )


class DALIGenericIterator(BaseIterator[dict[str, jax.Array]]):
    __doc__ = "Iterates over batches of pipelines, as dicts of `jax.Array`." + _ITERATOR

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
        check_names(output_map, last_batch_policy)
        check_sharding(sharding)
        if last_batch_policy is LastBatchPolicy.PARTIAL:
            raise AssertionError(
                "JAX iterator does not support partial last batch policy. LastBatchPolicy.MASK keeps the shape and "
                "marks the rows."
            )
        self.output_map = output_map
        self._sharding = sharding
        self._stacks = bool(pmap_compatible)
        self._place: Any = None
        self._begin()
        super().__init__(
            pipelines,
            size,
            reader_name,
            auto_reset,
            None,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )

    def _begin(self) -> None:
        """Called before the first batch is made; for subclasses."""

    def _placing(self) -> Callable[[list[Any]], jax.Array]:
        numbers = [pipe.device_id for pipe in self._pipes]
        if self._sharding is not None:
            return _placing.Global(self._sharding, numbers)
        devices = [_placing.local_device(number) for number in numbers]
        if len(devices) == 1 and not self._stacks:
            return _placing.Single(devices[0])
        return _placing.Stacked(devices)

    def _mark(self, batch: dict[str, jax.Array], valid: list[Any]) -> dict[str, jax.Array]:
        return {**batch, "valid": self._place(valid)}

    def _convert(self, outputs: list[list[Any]]) -> dict[str, jax.Array]:
        if self._place is None:
            self._place = self._placing()
        if len(self.output_map) > len(outputs[0]):
            raise ValueError(f"output_map has the names {self.output_map}, and the pipeline {len(outputs[0])} outputs")
        return {name: self._place([arrays[i] for arrays in outputs]) for i, name in enumerate(self.output_map)}


_Iterator_co = TypeVar("_Iterator_co", bound=DALIGenericIterator, covariant=True)
_OPTIONS = frozenset(inspect.signature(DALIGenericIterator).parameters) - {"pipelines"}


def _shares(sharding: Any, devices: Sequence[jax.Device] | None) -> tuple[int, list[tuple[int, int | None]]]:
    """Returns the number of shards, and the shard and device of each pipeline of this process."""
    if devices is None:
        parts = _placing.parts_of(sharding)
        return parts.total, [(part, _placing.local_number(parts.first_device(part))) for part in parts.local]
    if jax.process_count() > 1:
        raise RuntimeError(
            "Iterator compatible with pmapped JAX functions does not support running in multiprocess mode. Use "
            "`sharding` argument instead."
        )
    if not devices or len(set(devices)) != len(devices):
        raise ValueError(f"`devices` = {devices}; expected different devices, at least one")
    return len(devices), [(i, _placing.local_number(device)) for i, device in enumerate(devices)]


def _check_takes_shards(function: Callable[..., Any]) -> None:
    takes = inspect.signature(function).parameters
    missing = [name for name in ("shard_id", "num_shards") if name not in takes]
    if missing:
        raise TypeError(
            f"{getattr(function, '__name__', function)} does not take {' and '.join(missing)}; with `sharding` or "
            "`devices` each pipeline reads a shard of its own"
        )


def _local_batch(batch: int, shards: int) -> int:
    rows, rest = divmod(batch, shards)
    if rows == 0:
        raise ValueError(f"batch_size = {batch} is of the global batch; expected at least a row for each of {shards}")
    if rest:
        warnings.warn(
            f"batch_size = {batch} does not divide by {shards}: global batches have {rows * shards} rows",
            Warning,
            stacklevel=4,
        )
    return rows


def _decorate(
    iterator_type: type[DALIGenericIterator],
    pipeline_fn: Callable[..., Any] | None,
    options: Mapping[str, Any],
    devices: Sequence[jax.Device] | None,
) -> Any:
    """Implements `data_iterator` and its like. `options`: those of the iterator's constructor."""
    sharding = options["sharding"]
    if sharding is not None and devices is not None:
        raise ValueError("Only one of `sharding` and `devices` arguments can be provided.")
    if devices is not None and options["pmap_compatible"] is None:
        options = {**options, "pmap_compatible": True}

    def decorator(function: Callable[..., Any]) -> Callable[..., DALIGenericIterator]:
        @functools.wraps(function)
        def create_iterator(*args: Any, checkpoints: list[str] | None = None, **kwargs: Any) -> DALIGenericIterator:
            from leat.dali import pipeline_def

            kwargs.setdefault("num_threads", _NUM_THREADS)
            if sharding is None and devices is None:
                shares: list[dict[str, Any]] = [{"device_id": kwargs.pop("device_id", 0)}]
            else:
                check_sharding(sharding)
                batch = kwargs.pop("batch_size", None)
                if batch is None:
                    raise ValueError(
                        "`batch_size` is missing; with `sharding` or `devices` it is that of the global batch: give it "
                        "when the iterator is made"
                    )
                _check_takes_shards(function)
                count, numbers = _shares(sharding, devices)
                kwargs["batch_size"] = _local_batch(batch, count)
                shares = [{"device_id": at, "shard_id": shard, "num_shards": count} for shard, at in numbers]
            if checkpoints and len(checkpoints) != len(shares):
                raise RuntimeError(
                    f"The number of checkpoints provided ({len(checkpoints)}) should match the number of devices to "
                    f"use ({len(shares)})."
                )
            make = pipeline_def(function)
            states: list[str | None] = [*checkpoints] if checkpoints else [None for _ in shares]
            pipelines = [
                make(*args, checkpoint=checkpoint, **kwargs, **share) for share, checkpoint in zip(shares, states)
            ]
            return iterator_type(pipelines, **options)

        return create_iterator

    return decorator if pipeline_fn is None else decorator(pipeline_fn)


class MakesIterators(Protocol[_Iterator_co]):
    """The type of `data_iterator` and its like: used as `@name(…)`, or as `name(function, …)`."""

    @overload
    def __call__(
        self,
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
    ) -> Callable[..., _Iterator_co]: ...
    @overload
    def __call__(
        self,
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
    ) -> Callable[[Callable[..., Any]], Callable[..., _Iterator_co]]: ...


def iterators_of(name: str, iterator_type: type[_Iterator_co]) -> MakesIterators[_Iterator_co]:
    """Returns the decorator `name`, which makes iterators of this type."""

    def data_iterator(
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
        options = {option: value for option, value in locals().items() if option in _OPTIONS}
        return _decorate(iterator_type, pipeline_fn, options, devices)

    data_iterator.__name__ = data_iterator.__qualname__ = name
    data_iterator.__module__ = iterator_type.__module__
    kind = iterator_type.__name__
    data_iterator.__doc__ = f"Turns the function of a pipeline into one that makes a `{kind}`." + _DECORATOR
    return data_iterator


data_iterator: MakesIterators[DALIGenericIterator] = iterators_of("data_iterator", DALIGenericIterator)

# SPDX-License-Identifier: Apache-2.0
"""Batches of pipelines as torch tensors: one dict of tensors per pipeline."""

from __future__ import annotations

from typing import Any

try:
    import torch
except ImportError as _error:
    raise ImportError("leat.dali.plugin.pytorch needs PyTorch: pip install 'leat-data[torch]'") from _error

import numpy as np

from leat.dali.plugin._torch_feeding import feed_ndarray, sparse_tensor
from leat.dali.plugin.base_iterator import BaseIterator, LastBatchPolicy, check_names

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIRaggedIterator",
    "LastBatchPolicy",
    "feed_ndarray",
]

_ARGUMENTS = """
        size: samples of an epoch, summed over the pipelines, where no reader says it. -1, with one pipeline: the
            epoch ends when its source does, and neither last_batch_policy nor last_batch_padded has a meaning.
        reader_name: the reader (its `name` argument) from which the size of an epoch, and whether it pads, are known.
            Then neither size nor last_batch_padded may be given.
        auto_reset: False, None or "no": after an epoch's end, `reset()` or `iter()` begins the next one. True or
            "yes": it has begun when StopIteration is raised.
        fill_last_batch: deprecated: True for the policy FILL, False for PARTIAL.
        dynamic_shape: decides nothing.
        last_batch_padded: whether the reader repeats its last sample in the last batch (True), or goes on with the
            samples that follow (False).
        last_batch_policy: FILL, DROP, PARTIAL, whose tensors have fewer rows, or MASK, which adds the bool tensor
            "valid".
        prepare_first_batch: whether the first batch is made before the first `next`.

    Raises:
        AssertionError, ValueError: an argument is wrong, or two exclude each other.
        RuntimeError: there is no data.

    Of the data set [1, 2, 3, 4, 5, 6, 7] with a batch of 2, the last batch, and the first one of the next epoch:

        PARTIAL, padded       [7]      [1, 2]
        PARTIAL, not padded   [7]      [2, 3]
        FILL, padded          [7, 7]   [1, 2]
        FILL, not padded      [7, 1]   [2, 3]
        DROP, padded          [5, 6]   [1, 2]
        DROP, not padded      [5, 6]   [2, 3]
    """


def _device(number: int | None) -> torch.device | None:
    """Returns the device of a pipeline's tensors; None: they stay in host memory."""
    if number is None or number < 0 or not torch.cuda.is_available():
        return None
    return torch.device("cuda", number)


def _tensor(array: Any, device: torch.device | None) -> torch.Tensor:
    tensor = torch.from_numpy(array) if isinstance(array, np.ndarray) else torch.from_dlpack(array)
    return tensor if device is None else tensor.to(device, non_blocking=True)


class DALIGenericIterator(BaseIterator[list[dict[str, torch.Tensor]]]):
    __doc__ = (
        """Iterates over batches of pipelines, as lists with a dict of `torch.Tensor` for each pipeline.

    Tensors in host memory borrow the buffer of the batch; it is used again when none of them is left. With CUDA,
    the outputs that the script has on the GPU (`.gpu()`, `device="gpu"` or "mixed", and what is made of such) are
    on the device of the pipeline's `device_id`; the others stay in host memory.

    Args:
        pipelines: of `leat.dali.Pipeline`: one, or a list of them with the same batch size.
        output_map: a name for each of the pipelines' outputs, in their order, all different."""
        + _ARGUMENTS
    )

    def __init__(
        self,
        pipelines: Any,
        output_map: list[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        check_names(output_map, last_batch_policy)
        self.output_map = output_map
        super().__init__(
            pipelines,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )

    def _convert(self, outputs: list[list[Any]]) -> list[dict[str, torch.Tensor]]:
        if len(self.output_map) != len(outputs[0]):
            raise ValueError(f"output_map has the names {self.output_map}, and the pipeline {len(outputs[0])} outputs")
        return [
            {
                name: _tensor(array, device if on_gpu else None)
                for name, array, on_gpu in zip(self.output_map, arrays, pipe._on_gpu())
            }
            for arrays, pipe, device in zip(outputs, self._pipes, [_device(pipe.device_id) for pipe in self._pipes])
        ]

    def _mark(self, batch: list[dict[str, torch.Tensor]], valid: list[Any]) -> list[dict[str, torch.Tensor]]:
        devices = [_device(pipe.device_id) if any(pipe._on_gpu()) else None for pipe in self._pipes]
        return [
            {**tensors, "valid": _tensor(flags, device)} for tensors, flags, device in zip(batch, valid, devices)
        ]

    def _trim(self, batch: list[dict[str, torch.Tensor]], rows: list[int]) -> list[dict[str, torch.Tensor]]:
        return [{name: tensor[:count] for name, tensor in tensors.items()} for tensors, count in zip(batch, rows)]


class DALIClassificationIterator(DALIGenericIterator):
    __doc__ = (
        """A `DALIGenericIterator` of pipelines with two outputs, which it calls "data" and "label".

    Args:
        pipelines: of `leat.dali.Pipeline`: one, or a list of them with the same batch size."""
        + _ARGUMENTS
    )

    def __init__(
        self,
        pipelines: Any,
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        super().__init__(
            pipelines,
            ["data", "label"],
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )


class DALIRaggedIterator(BaseIterator[list[dict[str, Any]]]):
    __doc__ = (
        """Iterates over batches of pipelines whose samples may have several shapes.

    Args:
        pipelines: of `leat.dali.Pipeline`: one, or a list of them with the same batch size.
        output_map: a name for each of the pipelines' outputs, in their order, all different.
        output_types: what each output becomes. DENSE_TAG: a tensor; its samples have one shape. SPARSE_LIST_TAG: a
            list of a tensor for each sample. SPARSE_COO_TAG: a sparse tensor, as large as the largest sample, in which
            the elements of all samples are given. None: all are dense."""
        + _ARGUMENTS
    )
    DENSE_TAG = "dense"
    SPARSE_LIST_TAG = "sparse_list"
    SPARSE_COO_TAG = "sparse_coo"
    _takes_lists = True

    def __init__(
        self,
        pipelines: Any,
        output_map: list[str],
        size: int = -1,
        reader_name: str | None = None,
        output_types: list[str] | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        tags = [self.DENSE_TAG] * len(output_map) if output_types is None else list(output_types)
        check_names(output_map, last_batch_policy)
        if len(tags) != len(output_map):
            raise AssertionError(f"output_types has {len(tags)} entries for the names {output_map}; expected as many")
        known = (self.DENSE_TAG, self.SPARSE_LIST_TAG, self.SPARSE_COO_TAG)
        if not set(tags) <= set(known):
            raise AssertionError(f"output_types = {tags}; expected each to be one of {known}")
        self.output_map: list[str] = output_map
        self._tags = tags
        super().__init__(
            pipelines,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )

    def _convert(self, outputs: list[list[Any]]) -> list[dict[str, Any]]:
        if len(self.output_map) != len(outputs[0]):
            raise ValueError(f"output_map has the names {self.output_map}, and the pipeline {len(outputs[0])} outputs")
        return [
            {
                name: self._converted(name, tag, batch, _device(pipe.device_id) if on_gpu else None)
                for name, tag, batch, on_gpu in zip(self.output_map, self._tags, batches, pipe._on_gpu())
            }
            for batches, pipe in zip(outputs, self._pipes)
        ]

    def _converted(self, name: str, tag: str, batch: Any, device: torch.device | None) -> Any:
        if tag == self.DENSE_TAG:
            if isinstance(batch, list):
                shapes = sorted({tuple(each.shape) for each in batch})
                raise ValueError(
                    f"{name!r} has samples of several shapes, {shapes[0]} and {shapes[-1]} among them; expected "
                    "SPARSE_LIST_TAG or SPARSE_COO_TAG in output_types"
                )
            return _tensor(batch, device)
        if tag == self.SPARSE_LIST_TAG:
            return [_tensor(each, device) for each in batch]
        sparse = sparse_tensor([np.asarray(each) for each in batch])
        return sparse if device is None else sparse.to(device)

    def _mark(self, batch: list[dict[str, Any]], valid: list[Any]) -> list[dict[str, Any]]:
        return [{**values, "valid": _tensor(flags, None)} for values, flags in zip(batch, valid)]

    def _trim(self, batch: list[dict[str, Any]], rows: list[int]) -> list[dict[str, Any]]:
        return [{name: _first(value, n) for name, value in values.items()} for values, n in zip(batch, rows)]


def _first(value: Any, count: int) -> Any:
    """Returns the first samples of a tensor, a sparse tensor, or a list."""
    if isinstance(value, torch.Tensor) and value.is_sparse:
        return value.index_select(0, torch.arange(count, device=value.device))
    return value[:count]

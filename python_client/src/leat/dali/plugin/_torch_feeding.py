# SPDX-License-Identifier: Apache-2.0
"""What DALI's PyTorch plugin has beside its iterators."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from leat.dali import _refused
from leat.dali._tensors import TensorCPU, TensorListCPU
from leat.errors import InvalidArgument


def feed_ndarray(
    dali_tensor: TensorCPU | TensorListCPU, arr: torch.Tensor, cuda_stream: Any = None, non_blocking: bool = False
) -> torch.Tensor:
    """Copies a batch, or a sample, into a tensor of the same shape and type.

    Args:
        dali_tensor: what Pipeline.run gives, or one of its samples.
        arr: the tensor, on any device.
        cuda_stream: the torch.cuda.Stream of the copy; None: the current one.
        non_blocking: as of torch.Tensor.copy_.

    Returns:
        `arr`.

    Raises:
        TypeError: one of the two is something else.
        leat.InvalidArgument: their shapes or types differ, or the samples have several shapes.
    """
    if not isinstance(dali_tensor, (TensorCPU, TensorListCPU)) or not isinstance(arr, torch.Tensor):
        raise TypeError(
            f"feed_ndarray: {type(dali_tensor).__name__} into {type(arr).__name__}; expected a TensorCPU or "
            "TensorListCPU into a torch.Tensor"
        )
    given = torch.from_numpy(np.ascontiguousarray(np.asarray(dali_tensor)))
    if given.shape != arr.shape or given.dtype != arr.dtype:
        raise InvalidArgument(
            f"feed_ndarray: {given.dtype} {tuple(given.shape)} into {arr.dtype} {tuple(arr.shape)}; expected the same "
            "type and shape"
        )
    if cuda_stream is None:
        return arr.copy_(given, non_blocking=non_blocking)
    with torch.cuda.stream(cuda_stream):
        return arr.copy_(given, non_blocking=non_blocking)


class DALIRaggedIterator:
    """Refused: batches of Leat's workers have one shape."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise _refused.unimplemented("plugin.pytorch.DALIRaggedIterator")

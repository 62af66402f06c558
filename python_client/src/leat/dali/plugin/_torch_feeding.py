# SPDX-License-Identifier: Apache-2.0
"""Parts of DALI's PyTorch plugin besides its iterators, and batches of several shapes as sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from leat.dali._tensors import TensorCPU, TensorListCPU


def feed_ndarray(
    dali_tensor: TensorCPU | TensorListCPU, arr: torch.Tensor, cuda_stream: Any = None, non_blocking: bool = False
) -> torch.Tensor:
    """Copies a batch, or a sample, into a tensor of the same shape and type.

    Args:
        dali_tensor: a result of Pipeline.run, or one of its samples.
        arr: the tensor, on any device.
        cuda_stream: the torch.cuda.Stream of the copy; None: the current one.
        non_blocking: as in torch.Tensor.copy_.

    Returns:
        `arr`.

    Raises:
        TypeError: an argument is of another type.
        AssertionError: their shapes or types differ.
        leat.InvalidArgument: the samples have several shapes.
    """
    if not isinstance(dali_tensor, (TensorCPU, TensorListCPU)) or not isinstance(arr, torch.Tensor):
        raise TypeError(
            f"feed_ndarray: {type(dali_tensor).__name__} into {type(arr).__name__}; expected a TensorCPU or "
            "TensorListCPU into a torch.Tensor"
        )
    given = torch.from_numpy(np.asarray(dali_tensor, order="C"))  # ascontiguousarray would give a scalar an axis
    if given.dtype != arr.dtype:
        raise AssertionError(
            "The element type of DALI Tensor/TensorList doesn't match the element type of the target PyTorch Tensor: "
            f"{given.dtype} and {arr.dtype}; expected one type"
        )
    if given.shape != arr.shape:
        raise AssertionError(
            f"feed_ndarray: a value of shape {tuple(given.shape)} into {tuple(arr.shape)}; expected one shape"
        )
    if cuda_stream is None:
        return arr.copy_(given, non_blocking=non_blocking)
    with torch.cuda.stream(cuda_stream):
        return arr.copy_(given, non_blocking=non_blocking)


def sparse_tensor(samples: Sequence[np.ndarray]) -> torch.Tensor:
    """Returns a sparse tensor with a batch axis that holds all elements of each sample, including zeros.

    Args:
        samples: at least one; all of the same type and number of axes.
    """
    sizes = [max(each) for each in zip(*(sample.shape for sample in samples))]
    places = [
        np.concatenate([np.full((1, sample.size), row), np.indices(sample.shape).reshape(sample.ndim, -1)])
        for row, sample in enumerate(samples)
    ]
    values = np.concatenate([sample.ravel() for sample in samples])
    return torch.sparse_coo_tensor(
        torch.from_numpy(np.concatenate(places, axis=1)), torch.from_numpy(values), (len(samples), *sizes)
    )

# SPDX-License-Identifier: Apache-2.0
"""Tensors for `leat.torch`: over NumPy's memory, and the rest of a pipeline with epilogue="device"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from leat._iterators.epilogue import Epilogue
from leat._library import dtypes
from leat.errors import InvalidArgument


def tensor_of(array: np.ndarray) -> torch.Tensor:
    """Returns a tensor over the same memory."""
    if dtypes.name_of(array.dtype) == "bfloat16":  # from_numpy does not know it
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


_WIDER = {"uint16": "int32", "uint32": "int64"}


def check_types(schema: Mapping[str, Any]) -> None:
    """Raises InvalidArgument for a field of a job's schema whose type this release of torch does not have."""
    for name, field in schema.items():
        dtype = dtypes.name_of(field.dtype)
        if not hasattr(torch, dtype):
            raise InvalidArgument(
                f"output {name!r} is {dtype}, which PyTorch {torch.__version__} does not have (2.3 does); expected "
                f'fn.cast({name}, dtype="{_WIDER[dtype]}") in the pipeline'
            )


class DeviceEpilogue:
    """The operators still to be applied to one array, with torch on `device`."""

    def __init__(self, epilogue: Epilogue, device: torch.device) -> None:
        self._columns = 1
        self._table: torch.Tensor | None = None
        self._offsets: torch.Tensor | None = None
        if epilogue.table is not None:
            self._columns = epilogue.table.shape[1]
            self._table = tensor_of(epilogue.table.reshape(-1).copy()).to(device)
            if self._columns > 1:
                self._offsets = torch.arange(self._columns, dtype=torch.int32, device=device)
        self._perm = None if epilogue.perm is None else (0, *(1 + axis for axis in epilogue.perm))

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if self._table is not None:
            entry = tensor.to(torch.int32)
            if self._offsets is not None:
                entry = entry * self._columns + self._offsets
            tensor = self._table.index_select(0, entry.reshape(-1)).reshape(tensor.shape)
        if self._perm is not None:
            tensor = tensor.permute(self._perm).contiguous()
        return tensor

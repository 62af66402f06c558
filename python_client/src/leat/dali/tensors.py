# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.tensors`: batches and samples in the host's memory."""

from __future__ import annotations

from typing import NoReturn

from leat.dali import _refused
from leat.dali._tensors import TensorCPU, TensorListCPU

__all__ = ["TensorCPU", "TensorListCPU"]


def __getattr__(name: str) -> NoReturn:
    if name in ("TensorGPU", "TensorListGPU"):
        raise _refused.unimplemented(f"tensors.{name}")
    raise AttributeError(f"leat.dali.tensors has no {name!r}; it has {', '.join(__all__)}")

# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.tensors`: batches and samples in the host's memory."""

from __future__ import annotations

from typing import NoReturn

from leat.dali._tensors import TensorCPU, TensorListCPU
from leat.errors import Unimplemented

__all__ = ["TensorCPU", "TensorListCPU"]


def __getattr__(name: str) -> NoReturn:
    if name in ("TensorGPU", "TensorListGPU"):
        raise Unimplemented(
            f"tensors.{name}: what Pipeline.run gives is in the host's memory, as {name[:-3]}CPU; the iterators of "
            "plugin.jax and plugin.pytorch put it on a device"
        )
    raise AttributeError(f"leat.dali.tensors has no {name!r}; it has {', '.join(__all__)}")

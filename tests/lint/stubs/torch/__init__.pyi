# SPDX-License-Identifier: Apache-2.0
"""What examples and leat.torch use of torch, some of which has parameters without types."""

from collections.abc import Sequence
from typing import Any

import torch.cuda as _cuda
import torch.distributed as _distributed
import torch.nn as _nn
import torch.utils as _utils
from torch._C import Size as Size
from torch._C import device as device
from torch._C import dtype as dtype
from torch._C._VariableFunctions import relu as relu
from torch._tensor import Tensor as _Tensor

from . import optim as optim

# These are the package's own modules. Imported by their own names they would be looked for here.
cuda = _cuda
distributed = _distributed
nn = _nn
utils = _utils

class Tensor(_Tensor):
    def backward(self) -> None: ...

def cat(tensors: Sequence[Tensor]) -> Tensor: ...
def empty_like(input: Tensor) -> Tensor: ...
def manual_seed(seed: int) -> object: ...
def load(f: str, map_location: device) -> Any: ...
def ones(*size: int, device: device) -> Tensor: ...
def save(obj: object, f: str) -> None: ...
def tensor(data: Sequence[int]) -> Tensor: ...

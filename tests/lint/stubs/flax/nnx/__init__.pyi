# SPDX-License-Identifier: Apache-2.0
"""What examples use of flax.nnx, some of which has parameters without types."""

from typing import Any, Generic, TypeVar

from flax.nnx.module import Module as Module
from flax.nnx.nn.linear import Conv as Conv
from flax.nnx.nn.linear import Linear as Linear
from flax.nnx.nn.normalization import BatchNorm as BatchNorm
from flax.nnx.rnglib import Rngs as Rngs
from flax.nnx.transforms.autodiff import value_and_grad as value_and_grad
from flax.nnx.transforms.compilation import jit as jit
from flax.nnx.variablelib import Param as Param
from optax import GradientTransformation

_M = TypeVar("_M")

class Optimizer(Generic[_M]):
    def __init__(self, model: _M, tx: GradientTransformation, *, wrt: type[Param[Any]]) -> None: ...
    def update(self, model: _M, grads: Any) -> None: ...

def state(node: object) -> Any: ...
def update(node: object, state: Any) -> None: ...

# SPDX-License-Identifier: Apache-2.0
"""What examples use of JAX. Functions of functions have the types of what they are given, which JAX's own lose."""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import jax.distributed as _distributed
import jax.nn as _nn
import jax.numpy as _numpy
import jax.random as _random
import jax.sharding as _sharding
import jax.tree as _tree
import jax.tree_util as _tree_util
from jax.numpy import ndarray
from jax.sharding import AbstractMesh, Mesh, PartitionSpec, Sharding
from jaxlib._jax import Device as Device

from . import lax as lax

# These are the package's own modules. Imported by their own names they would be looked for here.
distributed = _distributed
nn = _nn
numpy = _numpy
random = _random
sharding = _sharding
tree = _tree
tree_util = _tree_util

Array = ndarray

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")

class _Config:
    def update(self, name: str, val: object) -> None: ...

config: _Config

def default_backend() -> str: ...
def block_until_ready(x: _T) -> _T: ...
def jit(fun: Callable[_P, _R], *, out_shardings: Sharding = ...) -> Callable[_P, _R]: ...
def pmap(fun: Callable[_P, _R], axis_name: str, *, devices: Sequence[Device] = ...) -> Callable[_P, _R]: ...
def value_and_grad(fun: Callable[_P, _R]) -> Callable[_P, tuple[_R, Any]]: ...
def device_put(x: _T, device: Device | Sharding) -> _T: ...
def device_get(x: _T) -> _T: ...
def vmap(fun: Callable[_P, _R]) -> Callable[_P, _R]: ...
def shard_map(
    f: Callable[_P, _R], *, mesh: Mesh | AbstractMesh, in_specs: PartitionSpec, out_specs: PartitionSpec
) -> Callable[_P, _R]: ...
def device_count() -> int: ...
def devices() -> list[Device]: ...
def local_devices() -> list[Device]: ...

# SPDX-License-Identifier: Apache-2.0
"""What examples use of jax.lax, some of which has parameters without types."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from jax import Array

_T = TypeVar("_T")

def add(x: Array, y: Array) -> Array: ...
def conv_general_dilated(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: str,
    *,
    dimension_numbers: tuple[str, str, str],
) -> Array: ...
def pmean(x: _T, axis_name: str) -> _T: ...
def pshuffle(x: Array, axis_name: str, perm: Sequence[int]) -> Array: ...
def reduce_window(
    operand: Array,
    init_value: float,
    computation: Callable[[Array, Array], Array],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> Array: ...

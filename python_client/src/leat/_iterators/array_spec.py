# SPDX-License-Identifier: Apache-2.0
"""The description of an array by iterators that can be looked ahead in: CLU's ArraySpec if CLU is installed, otherwise
a tuple with its fields."""

from __future__ import annotations

from typing import Any

try:
    from clu.data.dataset_iterator import ArraySpec
except (ImportError, AttributeError):  # not installed, or made for another JAX
    from typing import NamedTuple

    class ArraySpec(NamedTuple):  # type: ignore[no-redef]
        """Type and shape of an array."""

        dtype: Any
        shape: tuple[int, ...]


def spec_of(array: Any) -> Any:
    """Returns the `ArraySpec` of an array."""
    return ArraySpec(shape=tuple(array.shape), dtype=array.dtype)

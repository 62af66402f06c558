# SPDX-License-Identifier: Apache-2.0
"""What iterators that can be looked ahead in say of an array: CLU's ArraySpec where CLU is, otherwise a tuple with its
fields."""

from __future__ import annotations

from typing import Any

try:
    from clu.data.dataset_iterator import ArraySpec
except (ImportError, AttributeError):  # not there, or made for another JAX
    from typing import NamedTuple

    class ArraySpec(NamedTuple):  # type: ignore[no-redef]
        """Type and shape of an array."""

        dtype: Any
        shape: tuple[int, ...]


def spec_of(array: Any) -> Any:
    """The `ArraySpec` of an array."""
    return ArraySpec(shape=tuple(array.shape), dtype=array.dtype)

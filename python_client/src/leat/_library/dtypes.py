# SPDX-License-Identifier: Apache-2.0
"""The types of elements: NumPy's dtypes for the names that the library gives.

NumPy itself has no bfloat16. The package ml_dtypes, which JAX brings, has it. Without that package, values of bfloat16
are shown as their bits, in a uint16 whose metadata has the true name; the first such use warns.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

NAMES = (
    "bool",
    "uint8",
    "int32",
    "int64",
    "float16",
    "float32",
    "int8",
    "int16",
    "uint16",
    "uint32",
    "bfloat16",
)
_KEY = "leat"  # of the metadata


@functools.cache
def of(name: str) -> np.dtype:
    """Returns the dtype of one of the NAMES."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        warnings.warn(
            "NumPy has no bfloat16, so that its bits are given as uint16: pip install ml_dtypes", stacklevel=2
        )
        return np.dtype(np.uint16, metadata={_KEY: name})
    return np.dtype(ml_dtypes.bfloat16)


def name_of(dtype: Any) -> str:
    """Returns the name of a dtype or of what np.dtype takes; of bfloat16, also where it is given as its bits.

    Raises:
        TypeError: it is no dtype.
    """
    if isinstance(dtype, str) and dtype == "bfloat16":
        return dtype
    dtype = np.dtype(dtype)
    return (dtype.metadata or {}).get(_KEY, dtype.name)


def is_bits(dtype: np.dtype) -> bool:
    """True if the dtype stands for another, whose bits it shows."""
    return name_of(dtype) != dtype.name

# SPDX-License-Identifier: Apache-2.0
"""The names of `nvidia.dali.tfrecord`, which describe a feature of a tf.Example."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from leat.errors import InvalidArgument

# DALI's names of the types.
int64: str = "int64"
string: str = "string"
float32: str = "float32"


@dataclasses.dataclass(frozen=True)
class Feature:
    """A feature of a tf.Example.

    Attributes:
        dtype: "int64", "float32" or "string".
        shape: the shape of the value; None for a feature of any length.
        tail: for a feature of any length: the sizes after the first axis.
    """

    dtype: str
    shape: tuple[int, ...] | None
    tail: tuple[int, ...] = ()


def _checked(dtype: Any) -> str:
    if dtype not in (int64, string, float32):
        raise InvalidArgument(f"dtype = {dtype!r:.40}; expected tfrecord.int64, tfrecord.float32 or tfrecord.string")
    return dtype


def FixedLenFeature(shape: Sequence[int], dtype: str, default_value: Any = None) -> Feature:  # noqa: N802
    """A feature that has the same number of values in every record.

    Args:
        shape: the shape of the value; empty: one value.
        dtype: int64, float32 or string.
        default_value: accepted; a record without the feature is a bad sample.
    """
    if _checked(dtype) == string and tuple(shape) not in ((), (1,)):
        raise InvalidArgument(f"a feature of texts has shape {tuple(shape)}; expected []: one text")
    return Feature(dtype, tuple(int(size) for size in shape))


def VarLenFeature(*arguments: Any) -> Feature:  # noqa: N802
    """A feature with any number of values: VarLenFeature([shape after the first axis,] dtype, default_value)."""
    if len(arguments) not in (2, 3):
        raise InvalidArgument(f"VarLenFeature takes ([shape,] dtype, default_value), not {len(arguments)} values")
    dtype = _checked(arguments[-2])
    if dtype == string:
        return Feature(dtype, ())
    tail = tuple(int(size) for size in arguments[0]) if len(arguments) == 3 else ()
    return Feature(dtype, None, tail)

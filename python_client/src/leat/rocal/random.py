# SPDX-License-Identifier: Apache-2.0
"""Random numbers, one per sample, as in `amd.rocal.fn.random`. Each sample draws anew in each epoch."""

from __future__ import annotations

import numbers
from typing import Any

from leat import fn
from leat.errors import InvalidArgument
from leat.rocal._checked import operator
from leat.rocal._tensor import Tensor

__all__ = ["coin_flip", "normal", "uniform"]


def drawn_uniformly(where: str, range: Any) -> Tensor:  # noqa: A002
    """Draws numbers from a range."""
    ends = list(range) if isinstance(range, (list, tuple)) else []
    if len(ends) != 2 or not all(isinstance(end, numbers.Real) for end in ends) or ends[0] >= ends[1]:
        raise InvalidArgument(f"{where}: range = {range!r}; expected two numbers, the lesser first")
    return Tensor(fn.uniform(low=float(ends[0]), high=float(ends[1])), "float32")


@operator("random.coin_flip")
def coin_flip(*inputs: Any, probability: float = 0.5) -> Tensor:
    """Draws True with a probability; `inputs` are not used."""
    return Tensor(fn.coin_flip(probability=probability), "bool")


@operator("random.uniform")
def uniform(*inputs: Any, range: Any = (-1.0, 1.0)) -> Tensor:  # noqa: A002
    """Draws a number from a range; `inputs` are not used."""
    return drawn_uniformly("fn.random.uniform", range)


@operator("random.normal")
def normal(*inputs: Any, mean: float = 0.0, stddev: float = 1.0) -> Tensor:
    """Draws a normally distributed number; `inputs` are not used."""
    return Tensor(fn.normal(mean=mean, stddev=stddev), "float32")

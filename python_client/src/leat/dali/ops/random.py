# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.ops.random`: the operators of `leat.dali.fn.random` as classes."""

from leat.dali.fn import random as _functions
from leat.dali.ops import _classes

_CLASSES = _classes.of_group(__name__, _functions)
globals().update(_CLASSES)

__all__ = [*_CLASSES]

# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.ops.decoders`: the operators of `leat.dali.fn.decoders` as classes."""

from leat.dali.fn import decoders as _functions
from leat.dali.ops import _classes

_CLASSES = _classes.of_group(__name__, _functions)
globals().update(_CLASSES)

__all__ = [*_CLASSES]

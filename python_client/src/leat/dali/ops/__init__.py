# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.ops`: the operators of `leat.dali.fn` as classes.

    resize = ops.Resize(device="gpu", size=(224, 224))
    images = resize(images)
"""

from __future__ import annotations

from typing import Any

from leat.dali._legacy import LEGACY, warn_of_legacy
from leat.dali.ops import _classes, decoders, noise, random, readers
from leat.dali.ops._classes import Operator

_CLASSES = _classes.of_group(__name__)
_LEGACY = {_classes.class_name(old): new for old, new in LEGACY.items()} | {
    "COCOReader": "readers.coco",
    "MXNetReader": "readers.mxnet",
    "TFRecordReader": "readers.tfrecord",
}
globals().update(_CLASSES)

__all__ = ["Operator", "decoders", "noise", "random", "readers", *_CLASSES]


def __getattr__(name: str) -> Any:
    if name in _LEGACY:
        new = _LEGACY[name]
        group, _, function = new.rpartition(".")
        title = f"{group}.{_classes.class_name(function)}"
        warn_of_legacy(f"ops.{name}", f"ops.{title}")
        return getattr(globals()[group], _classes.class_name(function))
    raise AttributeError(
        f"ops.{name}: Leat has no such operator; docs/guide/move-from-dali.md lists those of fn, whose names are in "
        f"capitals here ({', '.join(sorted(_CLASSES)[:3])} …)"
    )


def __dir__() -> list[str]:
    return sorted([*__all__, *_LEGACY])


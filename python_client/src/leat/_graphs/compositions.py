# SPDX-License-Identifier: Apache-2.0
"""Functions of `leat.fn` that combine several operators."""

from __future__ import annotations

from typing import Any

from leat._graphs import operators
from leat._graphs.graph import Node


def _apply(op: str, *inputs: Any, **args: Any) -> Node:
    info = next(info for info in operators.table() if info.name == op)
    return operators.make_function(info)(*inputs, **args)


def _classes(label: Node, num_classes: int | None) -> Node:
    return label if num_classes is None else _apply("one_hot", label, num_classes=num_classes)


def _blend(x: Node, share: Node) -> Node:
    return share * x + (1 - share) * _apply("partner", x)


def mixup(
    image: Node, label: Node, /, *, num_classes: int | None = None, alpha: float = 1.0, per: str = "batch"
) -> tuple[Node, Node]:
    """Each image and its label blended with those of its partner, another row of the batch.

    lam * x + (1 - lam) * partner(x), for x both image and label (Zhang et al., "mixup: beyond empirical risk
    minimization", ICLR 2018; torchvision's v2.MixUp).

    Args:
        image: a node (positional); of any shape that all samples have.
        label: a node (positional): a class, or what it is as numbers (one-hot, or mixed before).
        num_classes: int; labels become one-hot vectors of this length first. None: they are numbers already.
        alpha: float; lam is drawn from Beta(alpha, alpha).
        per: what lam is drawn for: "batch", as torchvision does, or "sample".

    Returns:
        A tuple of two nodes, float32: the image, in the values that it had, and the label.
    """
    lam = _apply("beta", alpha=alpha, beta=alpha, per=per)
    return _blend(image, lam), _blend(_classes(label, num_classes), lam)


def cutmix(
    image: Node, label: Node, /, *, num_classes: int | None = None, alpha: float = 1.0, per: str = "batch"
) -> tuple[Node, Node]:
    """Each image with a box of its partner's in it, and the labels blended by the areas.

    The partner is another row of the batch. Boxes are those of torchvision's v2.CutMix: sides of sqrt(1 - lam), a
    centre anywhere, cut off at the edges (Yun et al., "CutMix", ICCV 2019).

    Args:
        image: a node (positional): height, width, channels.
        label: a node (positional): a class, or what it is as numbers (one-hot, or mixed before).
        num_classes: int; labels become one-hot vectors of this length first. None: they are numbers already.
        alpha: float; lam is drawn from Beta(alpha, alpha).
        per: what the box is drawn for: "batch", as torchvision does, or "sample".

    Returns:
        A tuple of two nodes: the image, of its own type, and the label, float32.
    """
    box = {
        "lam": _apply("beta", alpha=alpha, beta=alpha, per=per),
        "center_y": _apply("beta", per=per),
        "center_x": _apply("beta", per=per),
    }
    mixed = _apply("cutmix_paste", image, _apply("partner", image), **box)
    return mixed, _blend(_classes(label, num_classes), _apply("cutmix_share", image, **box))


ALL = (cutmix, mixup)

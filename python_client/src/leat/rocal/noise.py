# SPDX-License-Identifier: Apache-2.0
"""Noise, as in `amd.rocal.fn.noise`."""

from __future__ import annotations

from typing import Any

from leat import fn
from leat.errors import InvalidArgument
from leat.rocal._checked import Refused, image_operator, refused
from leat.rocal._tensor import Tensor, per_sample

__all__ = ["gaussian", "shot", "snp"]


def _shade(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InvalidArgument(f"fn.noise.snp: {name} = {value!r:.60}; expected 0 … 1")
    return 255.0 * value


@image_operator("noise.snp", seed=0)
def snp(
    image: Tensor, *, p_noise: Any = 0.0, p_salt: Any = 0.0, noise_val: float = 0.0, salt_val: float = 0.0
) -> Tensor:
    """Replaces pixels by salt or pepper with a probability.

    Args:
        image: a tensor (positional).
        p_noise: the probability that a pixel is replaced; a number, or one per sample.
        p_salt: the probability that it is replaced by salt rather than pepper.
        noise_val: the value of pepper, 0 … 1: black to white.
        salt_val: the value of salt.
    """
    node = fn.noise_salt_and_pepper(
        image.node,
        prob=per_sample("fn.noise.snp: p_noise", p_noise),
        salt_vs_pepper=per_sample("fn.noise.snp: p_salt", p_salt),
        salt_val=(_shade("salt_val", salt_val),),
        pepper_val=(_shade("noise_val", noise_val),),
    )
    return Tensor(node, image.dtype)


gaussian: Refused = refused("noise.gaussian", "leat.fn.noise_gaussian has other units")
shot: Refused = refused("noise.shot", "leat.fn.noise_shot has other units")

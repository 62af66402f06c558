# SPDX-License-Identifier: Apache-2.0
"""rocAL's windows.

A window lies at pos · (side - window), rounded half to even. One that is larger than the image is cut to it, and the
result is padded at its end with zeros (rocAL leaves there what the memory held). If the image's size is known when the
pipeline is made, the position is computed here; otherwise operators compute it for each sample. Both then give
`crop_mirror_normalize` a position that rounding cannot move.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leat import fn
from leat._graphs.graph import Node
from leat.errors import InvalidArgument
from leat.rocal import types
from leat.rocal._checked import image_operator, operator
from leat.rocal._tensor import Tensor, dtype_of, flag, image_of, layout_of, per_sample, pixels


def window_size(where: str, crop: Any, crop_h: Any, crop_w: Any) -> tuple[int, int]:
    """Returns height and width: crop is (height, width), (depth, height, width), or zeros: then crop_h and crop_w
    count."""
    sides = list(crop) if isinstance(crop, (list, tuple)) else None
    if sides is None or len(sides) not in (0, 2, 3):
        raise InvalidArgument(f"{where}: crop = {crop!r:.60}; expected (height, width)")
    height, width = sides[-2:] if any(sides) else (crop_h, crop_w)
    size = pixels(f"{where}: the crop's height", height), pixels(f"{where}: the crop's width", width)
    if not all(size):
        raise InvalidArgument(f"{where}: the crop's height and width are {size}; expected 1 or more")
    return size


def _fixed_position(side: int, window: int, pos: float) -> float:
    """Returns the relative position of a window in a side of known length."""
    room = side - window
    if room <= 0:
        return 0.0
    return float(np.rint(np.float32(pos) * np.float32(room))) / room


def _position(image: Tensor, axis: int, window: int, pos: Any) -> Node:
    """Returns the same position for each sample, as a node."""
    side = fn.cast(fn.length(image.node, axis=axis), dtype="float32")
    room = fn.max(side - float(window), 0.0)
    first = fn.cast(fn.cast(room * pos, dtype="int32"), dtype="float32")
    return first / fn.max(room, 1.0)


def _checked_pos(where: str, pos: Any) -> Any:
    value = per_sample(where, pos)
    if not isinstance(value, Node) and not (isinstance(value, (int, float)) and 0 <= value <= 1):
        raise InvalidArgument(f"{where} = {pos!r:.60}; expected 0 … 1")
    return value


def cut(
    where: str,
    image: Tensor,
    height: int,
    width: int,
    pos_y: Any = 0.5,
    pos_x: Any = 0.5,
    mirror: Any = False,
    dtype: str = "uint8",
    mean: Any = (0.0,),
    std: Any = (1.0,),
) -> Tensor:
    """Returns the window of an image, mirrored and normalized; always of this size."""
    if not height or not width:
        raise InvalidArgument(f"{where}: the crop's height and width are {(height, width)}; expected 1 or more")
    pos_y, pos_x = _checked_pos(f"{where}: crop_pos_y", pos_y), _checked_pos(f"{where}: crop_pos_x", pos_x)
    sizes = None if isinstance(pos_y, Node) or isinstance(pos_x, Node) else image.size()
    arguments: dict[str, Any] = {"mirror": mirror, "dtype": dtype, "mean": mean, "std": std}
    if sizes is None:
        arguments.update(crop=(height, width), out_of_bounds_policy="trim")
        arguments.update(pos_y=_position(image, 0, height, pos_y), pos_x=_position(image, 1, width, pos_x))
        fill = True
    else:
        fill = sizes[0] < height or sizes[1] < width
        crop = min(sizes[0], height), min(sizes[1], width)
        if crop != sizes[:2]:
            arguments["crop"] = crop
            arguments["pos_y"] = _fixed_position(sizes[0], crop[0], pos_y)
            arguments["pos_x"] = _fixed_position(sizes[1], crop[1], pos_x)
    node = fn.crop_mirror_normalize(image.node, output_layout="HWC", **arguments)
    planar = fn.crop_mirror_normalize(image.node, output_layout="CHW", **arguments)
    if fill:
        node = fn.pad(node, axes=(0, 1), shape=(height, width))
        planar = fn.pad(planar, axes=(1, 2), shape=(height, width))
    return Tensor(node, dtype, None, planar)


@operator("crop_mirror_normalize", device=None)
def crop_mirror_normalize(
    image: Any,
    *,
    crop: Any = (0, 0),
    crop_pos_x: Any = 0.5,
    crop_pos_y: Any = 0.5,
    crop_w: int = 0,
    crop_h: int = 0,
    mean: Any = (0.0,),
    std: Any = (1.0,),
    mirror: Any = 1,
    output_layout: Any = types.NHWC,
    output_dtype: Any = types.UINT8,
) -> Tensor:
    """Takes a window of the image, mirrors it, and computes x / std - mean / std.

    Args:
        image: a tensor (positional).
        crop: height and width of the window, or crop_h and crop_w.
        crop_pos_x: 0: at the left, 1: at the right; a number, or one per sample.
        crop_pos_y: 0: at the top, 1: at the bottom.
        crop_w: see crop.
        crop_h: see crop.
        mean: one number, or one per channel.
        std: one number, or one per channel.
        mirror: left and right: 0, 1 (the default, as in rocAL), or what fn.random.coin_flip gives.
        output_layout: types.NHWC or types.NCHW.
        output_dtype: types.UINT8 (rounded, saturated), types.FLOAT or types.FLOAT16.
    """
    where = "fn.crop_mirror_normalize"
    layout = layout_of(f"{where}: output_layout", output_layout)
    window = cut(
        where,
        image_of(where, image),
        *window_size(where, crop, crop_h, crop_w),
        pos_y=crop_pos_y,
        pos_x=crop_pos_x,
        mirror=flag(f"{where}: mirror", mirror),
        dtype=dtype_of(f"{where}: output_dtype", output_dtype),
        mean=mean,
        std=std,
    )
    window.layout = layout
    return window


def _kept(image: Tensor) -> str:
    """Returns the type of a window that keeps the image's values: float32 holds those of a type that is not known."""
    return image.dtype or "float32"


@image_operator("crop", crop_pos_z=0.5, crop_d=1)
def crop(
    image: Tensor, *, crop: Any = (0, 0), crop_pos_x: Any = 0.5, crop_pos_y: Any = 0.5, crop_w: int = 0, crop_h: int = 0
) -> Tensor:
    """Takes a window of the image; the arguments are those of `crop_mirror_normalize`."""
    size = window_size("fn.crop", crop, crop_h, crop_w)
    return cut("fn.crop", image, *size, pos_y=crop_pos_y, pos_x=crop_pos_x, dtype=_kept(image))


@image_operator("center_crop", crop_d=1)
def center_crop(image: Tensor, *, crop: Any = (0, 0), crop_h: int = 0, crop_w: int = 0) -> Tensor:
    """Takes the window in the middle of the image."""
    return cut("fn.center_crop", image, *window_size("fn.center_crop", crop, crop_h, crop_w), dtype=_kept(image))

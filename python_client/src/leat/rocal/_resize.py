# SPDX-License-Identifier: Apache-2.0
"""rocAL's operators that give an image another size."""

from __future__ import annotations

from typing import Any

from leat import fn
from leat.errors import InvalidArgument, Unimplemented
from leat.rocal import types
from leat.rocal._checked import image_operator, operator, with_options_of
from leat.rocal._crop import cut
from leat.rocal._tensor import Tensor, constant_of, dtype_of, flag, image_of, layout_of, pixels

# The filter, and whether it is widened when shrinking: rocAL's linear one is not, its triangular one is.
_FILTERS: dict[types.Interpolation, tuple[Any, bool]] = {
    types.NEAREST_NEIGHBOR_INTERPOLATION: ("nearest", False),
    types.LINEAR_INTERPOLATION: ("linear", False),
    types.TRIANGULAR_INTERPOLATION: ("linear", True),
    types.CUBIC_INTERPOLATION: ("cubic", True),
    types.LANCZOS_INTERPOLATION: ("lanczos3", True),
    types.GAUSSIAN_INTERPOLATION: ("gaussian", True),
}
_MODES = {
    types.SCALING_MODE_DEFAULT: "default",
    types.SCALING_MODE_STRETCH: "stretch",
    types.SCALING_MODE_NOT_SMALLER: "not_smaller",
    types.SCALING_MODE_NOT_LARGER: "not_larger",
}


def resized(
    where: str,
    image: Tensor,
    *,
    max_size: Any = (),
    resize_longer: int = 0,
    resize_shorter: int = 0,
    resize_width: int = 0,
    resize_height: int = 0,
    scaling_mode: Any = types.SCALING_MODE_DEFAULT,
    interpolation_type: Any = types.LINEAR_INTERPOLATION,
) -> Tensor:
    """Resizes the image; exactly one way of giving the size must be used."""
    name, antialias = _FILTERS[constant_of(f"{where}: interpolation_type", interpolation_type, types.Interpolation)]
    mode = constant_of(f"{where}: scaling_mode", scaling_mode, types.ScalingMode)
    size = pixels(f"{where}: resize_height", resize_height), pixels(f"{where}: resize_width", resize_width)
    longer = pixels(f"{where}: resize_longer", resize_longer)
    shorter = pixels(f"{where}: resize_shorter", resize_shorter)
    if sum((any(size), longer > 0, shorter > 0)) != 1:
        raise InvalidArgument(
            f"{where}: resize_height and resize_width = {size}, resize_longer = {longer}, resize_shorter = {shorter}; "
            "expected one of the three"
        )
    if any(size):
        if mode not in _MODES:
            raise Unimplemented(
                f"{where}: scaling_mode = types.{mode.name}; Leat has default, stretch, not_smaller and not_larger"
            )
        how: dict[str, Any] = {"size": size, "mode": _MODES[mode]}
    else:
        how = {"longer": longer} if longer else {"shorter": shorter}
    if max_size:
        how["max_size"] = max_size
    return Tensor(fn.resize(image.node, interpolation=name, antialias=antialias, **how), image.dtype)


@image_operator("resize", antialias=True)
@with_options_of(resized)
def resize(image: Tensor, **size: Any) -> Tensor:
    """Resizes the image.

    Args:
        image: a tensor (positional).
        max_size: greatest height and width, or one number for both.
        resize_longer: length of the longer side; the aspect is kept.
        resize_shorter: length of the shorter side; the aspect is kept.
        resize_width: width of the result; 0: by the mode.
        resize_height: height of the result; 0: by the mode.
        scaling_mode: default (a side of 0 keeps the aspect), stretch (it stays), not_smaller, not_larger.
        interpolation_type: the filter. Linear does not antialias, triangular is linear and does; cubic, Lanczos and
            Gaussian do.
    """
    return resized("fn.resize", image, **size)


@image_operator(
    "resize_crop_mirror",
    max_size=[],
    resize_longer=0,
    resize_shorter=0,
    scaling_mode=types.SCALING_MODE_DEFAULT,
    interpolation_type=types.LINEAR_INTERPOLATION,
)
def resize_crop_mirror(
    image: Tensor,
    *,
    resize_width: int = 0,
    resize_height: int = 0,
    crop_w: int = 0,
    crop_h: int = 0,
    mirror: Any = 1,
) -> Tensor:
    """Resizes the image with the linear filter, takes the window in its middle, and mirrors it.

    Args:
        image: a tensor (positional).
        resize_width: width of the whole resized image.
        resize_height: height of the whole resized image.
        crop_w: width of the window.
        crop_h: height of the window.
        mirror: left and right: 0, 1, or what fn.random.coin_flip gives.
    """
    where = "fn.resize_crop_mirror"
    whole = resized(where, image, resize_width=resize_width, resize_height=resize_height)
    window = cut(where, whole, pixels(f"{where}: crop_h", crop_h), pixels(f"{where}: crop_w", crop_w))
    return Tensor(fn.flip(window.node, horizontal=flag(f"{where}: mirror", mirror)), image.dtype)


@image_operator(
    "random_crop", crop_pox_x=0, crop_pox_y=0, all_boxes_above_threshold=True, allow_no_crop=True, ltrb=True
)
def random_crop(
    image: Tensor,
    *,
    crop_area_factor: Any = (0.08, 1.0),
    crop_aspect_ratio: Any = (0.75, 1.333333),
    num_attempts: int = 20,
) -> Tensor:
    """Takes a random window; its size differs from sample to sample.

    Args:
        image: a tensor (positional).
        crop_area_factor: least and largest fraction of the image's area.
        crop_aspect_ratio: least and largest width / height.
        num_attempts: windows that are drawn before the central one is taken.
    """
    node = fn.random_crop(image.node, area=crop_area_factor, aspect=crop_aspect_ratio, attempts=num_attempts)
    return Tensor(node, image.dtype)


@operator("resize_mirror_normalize", device=None)
@with_options_of(resized)
def resize_mirror_normalize(
    image: Any,
    *,
    mean: Any = (0.0,),
    std: Any = (1.0,),
    mirror: Any = 1,
    output_layout: Any = types.NHWC,
    output_dtype: Any = types.UINT8,
    **size: Any,
) -> Tensor:
    """Applies `resize`, mirrors, and computes x / std - mean / std; arguments of `resize` and
    `crop_mirror_normalize`."""
    where = "fn.resize_mirror_normalize"
    layout = layout_of(f"{where}: output_layout", output_layout)
    whole = resized(where, image_of(where, image), **size)
    arguments: dict[str, Any] = {
        "mirror": flag(f"{where}: mirror", mirror),
        "dtype": dtype_of(f"{where}: output_dtype", output_dtype),
        "mean": mean,
        "std": std,
    }
    node = fn.crop_mirror_normalize(whole.node, output_layout="HWC", **arguments)
    planar = fn.crop_mirror_normalize(whole.node, output_layout="CHW", **arguments)
    return Tensor(node, arguments["dtype"], layout, planar)

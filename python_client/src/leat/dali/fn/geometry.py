# SPDX-License-Identifier: Apache-2.0
"""Operators on position and shape: crops, slices, flips, warps, axes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leat.dali import _args, _node, _refused, types
from leat.dali._node import DataNode
from leat.dali._operator import operator
from leat.dali.fn._regions import SLICE, axes_of, policy_of, region, rounded, slice_arguments, sliced
from leat.errors import InvalidArgument, Unimplemented

__all__ = ["axes_of", "region", "slice_arguments", "sliced"]


def pixels_last(x: DataNode) -> tuple[DataNode, bool]:
    """Returns the image with channels last, and True if they were first. InvalidArgument: the layout is no image's."""
    if x.layout and not {"H", "W"} <= set(x.layout):
        raise InvalidArgument(f'the input has the layout {x.layout!r}; expected one with H and W, as "HWC" has')
    if x.layout not in ("", "HW", "HWC", "CHW"):
        raise InvalidArgument(f'the input has the layout {x.layout!r}; expected "HWC" or "CHW" (fn.transpose)')
    if x.layout != "CHW":
        return x, False
    sizes = None if x.sizes is None else (x.sizes[1], x.sizes[2], x.sizes[0])
    node = _node.apply("transpose", x, perm=(1, 2, 0))
    return DataNode(node, layout="HWC", sizes=sizes, dtype=x.dtype, device=x.device), True


def pixels_first(x: DataNode) -> DataNode:
    """Returns the image with its channels first."""
    sizes = None if x.sizes is None else (x.sizes[2], x.sizes[0], x.sizes[1])
    return DataNode(
        _node.apply("transpose", x, perm=(2, 0, 1)), layout="CHW", sizes=sizes, dtype=x.dtype, device=x.device
    )


def image_of(
    x: DataNode, node: Any, height: int | None = None, width: int | None = None, *, turned: bool, dtype: Any = None
) -> DataNode:
    """Returns the result of an operator on an image, transposed back if it was transposed.

    Args:
        x: the image with its channels last.
        node: the node of the result.
        height, width: the sizes of the result, if they are known.
        turned: True if the channels were first.
        dtype: the type of the result; None: the image's.
    """
    channels = x.sizes[2] if x.sizes is not None and len(x.sizes) == 3 else None
    result = DataNode(node, layout="HWC", sizes=(height, width, channels), dtype=dtype or x.dtype, device=x.device)
    return pixels_first(result) if turned else result


def typed(where: str, x: DataNode, dtype: Any) -> DataNode:
    """Converts to the type of the argument `dtype`."""
    return x if dtype is None else _node.cast(x, types.name_of(f"{where}: dtype", dtype))


def wide(where: str, x: DataNode, dtype: Any) -> DataNode:
    """Returns the input of an operator that interpolates: in float32 if the result is to be floats, so that the values
    between the pixels are not rounded before they become floats."""
    if dtype is None or x.dtype == "float32" or not types.name_of(f"{where}: dtype", dtype).startswith("float"):
        return x
    return _node.cast(x, "float32")


# DALI's arguments of a window of one size, and their defaults.
WINDOW: dict[str, Any] = {
    "crop": None,
    "crop_h": 0.0,
    "crop_w": 0.0,
    "crop_d": 0.0,
    "crop_pos_y": 0.5,
    "crop_pos_x": 0.5,
    "crop_pos_z": 0.5,
    "rounding": "round",
}


@dataclasses.dataclass
class Crop:
    """A window of one size, at a position that may vary.

    Attributes:
        size: height and width; None: the whole image.
    """

    size: tuple[int, int] | None
    y: Any
    x: Any
    rounding: str

    @classmethod
    def of(cls, where: str, given: Mapping[str, Any]) -> Crop:
        """Returns the window that DALI's arguments describe; those of WINDOW that are not given have their defaults."""
        crop, crop_h, crop_w, crop_d, pos_y, pos_x, pos_z, rounding = (given.get(name, WINDOW[name]) for name in WINDOW)
        if rounding not in ("round", "truncate"):
            raise InvalidArgument(f'{where}: rounding = {rounding!r}; expected "round" or "truncate"')
        _args.scalar(f"{where}: crop_pos_z", pos_z, "float")  # an image has no depth: a position in it has no effect
        if isinstance(crop_d, DataNode) or crop_d:
            raise Unimplemented(_refused.ARGUMENTS[where, "crop_d"].of(f"{where}: crop_d = {crop_d!r:.60}"))
        for name, value in (("crop_h", crop_h), ("crop_w", crop_w)):
            if isinstance(value, DataNode):
                raise InvalidArgument(
                    f"{where}: {name} is a node; a window that is cropped has one size for all samples"
                )
        size = None
        if crop is not None:
            numbers = _args.numbers(f"{where}: crop", crop)
            if crop_h or crop_w:
                raise InvalidArgument(f"{where}: crop is given, and crop_h or crop_w; expected one of them")
            if len(numbers) != 2:
                raise InvalidArgument(f"{where}: crop = {crop!r}; expected height and width")
            size = (_whole(f"{where}: crop", numbers[0]), _whole(f"{where}: crop", numbers[1]))
        elif crop_h or crop_w:
            if not (crop_h and crop_w):
                raise InvalidArgument(f"{where}: crop_w and crop_h must be provided together")
            size = (_whole(f"{where}: crop_h", crop_h), _whole(f"{where}: crop_w", crop_w))
        y, x = (_args.scalar(f"{where}: crop_pos_{axis}", pos, "float") for axis, pos in (("y", pos_y), ("x", pos_x)))
        return cls(size, y, x, rounding)

    def applied(self, where: str, image: DataNode, policy: str = "error", fill: Sequence[float] = (0.0,)) -> DataNode:
        """Returns the window of an image."""
        if self.size is None:
            return image
        pixels, turned = pixels_last(image)
        if policy == "error" and self.rounding == "round":
            node = _node.apply("crop", pixels, size=self.size, pos_y=self.y, pos_x=self.x)
        elif pixels.dtype in ("uint8", "float16", "float32"):
            node = _node.apply(
                "crop_mirror_normalize",
                pixels,
                crop=self.size,
                pos_y=self.y,
                pos_x=self.x,
                dtype=pixels.dtype,
                output_layout="HWC",
                rounding=self.rounding,
                out_of_bounds_policy=policy,
                fill_values=list(fill),
            )
        else:
            raise InvalidArgument(f"{where}: rounding and out_of_bounds_policy are of UINT8, FLOAT16 and FLOAT")
        size = self.size if policy != "trim" else (None, None)
        return image_of(pixels, node, *size, turned=turned)


def _whole(where: str, value: Any) -> int:
    number = int(value)  # DALI drops a fraction
    if number < 1:
        raise InvalidArgument(f"{where} = {value!r}; expected at least 1")
    return number


@operator("crop", more=WINDOW)
def crop(
    input: DataNode,
    *,
    dtype: Any = None,
    fill_values: Any = (0.0,),
    out_of_bounds_policy: str = "error",
    **place: Any,
) -> DataNode:
    """Returns a window of the image."""
    where = "fn.crop"
    window = Crop.of(where, place)
    fill = _args.numbers(f"{where}: fill_values", fill_values)
    return typed(where, window.applied(where, input, policy_of(where, out_of_bounds_policy), fill), dtype)


@operator("slice", optional_inputs=2, more=SLICE)
def slice(
    data: DataNode,
    anchor: DataNode | None = None,
    shape_input: DataNode | None = None,
    *,
    dtype: Any = None,
    fill_values: Any = (0.0,),
    out_of_bounds_policy: str = "error",
    **part: Any,
) -> DataNode:
    """Returns a part of the value, at a position that may vary from sample to sample."""
    where = "fn.slice"
    kept = slice_arguments(where, data, anchor, shape_input, part)
    policy = policy_of(where, out_of_bounds_policy)
    return typed(where, sliced(where, data, kept, policy, _args.numbers(f"{where}: fill_values", fill_values)), dtype)


@operator("crop_mirror_normalize", more=WINDOW)
def crop_mirror_normalize(
    input: DataNode,
    *,
    dtype: Any = types.FLOAT,
    fill_values: Any = (0.0,),
    mean: Any = (0.0,),
    mirror: Any = 0,
    out_of_bounds_policy: str = "error",
    output_layout: Any = "CHW",
    pad_output: bool = False,
    scale: float = 1.0,
    shift: float = 0.0,
    std: Any = (1.0,),
    **place: Any,
) -> DataNode:
    """Returns a mirrored window, scale * (x - mean) / std + shift, channels first unless output_layout says
    otherwise."""
    where = "fn.crop_mirror_normalize"
    window = Crop.of(where, place)
    layout = output_layout or input.layout or "HWC"
    if layout not in ("CHW", "HWC"):
        raise InvalidArgument(f'{where}: output_layout = {output_layout!r}; expected "CHW", "HWC" or ""')
    name = types.name_of(f"{where}: dtype", dtype, types.computed_by(where))
    policy = policy_of(where, out_of_bounds_policy)
    pixels, _ = pixels_last(input)
    node = _node.apply(
        "crop_mirror_normalize",
        pixels,
        crop=window.size,
        pos_y=window.y,
        pos_x=window.x,
        mirror=_args.scalar(f"{where}: mirror", mirror, "bool"),
        mean=_args.numbers(f"{where}: mean", mean),
        std=_args.numbers(f"{where}: std", std),
        scale=scale,
        shift=shift,
        dtype=name,
        output_layout=layout,
        pad_output=bool(pad_output),
        rounding=window.rounding,
        out_of_bounds_policy=policy,
        fill_values=_args.numbers(f"{where}: fill_values", fill_values),
    )
    sizes = pixels.sizes if pixels.sizes is not None and len(pixels.sizes) == 3 else (None, None, None)
    if window.size is not None and policy != "trim":
        sizes = (*window.size, sizes[2])
    channels = 4 if pad_output and sizes[2] == 3 else sizes[2]
    shape = (channels, sizes[0], sizes[1]) if layout == "CHW" else (sizes[0], sizes[1], channels)
    return DataNode(node, layout=layout, sizes=shape, dtype=name)


@operator("flip")
def flip(input: DataNode, *, depthwise: Any = 0, horizontal: Any = 1, vertical: Any = 0) -> DataNode:
    """Mirrors the image."""
    where = "fn.flip"
    _args.scalar(f"{where}: depthwise", depthwise, "bool")  # an image has no depth that could be mirrored
    pixels, turned = pixels_last(input)
    node = _node.apply(
        "flip",
        pixels,
        horizontal=_args.scalar(f"{where}: horizontal", horizontal, "bool"),
        vertical=_args.scalar(f"{where}: vertical", vertical, "bool"),
    )
    height, width = pixels.sizes[:2] if pixels.sizes is not None and len(pixels.sizes) == 3 else (None, None)
    return image_of(pixels, node, height, width, turned=turned)


def rule_of(op: str) -> str | None:
    """Returns the argument that selects DALI's arithmetic, if the library has that choice."""
    return "dali" if _node.has_argument(op, "rule") else None


def _warped(where: str, op: str, x: DataNode, size: Any, fill_value: Any, interp_type: Any, **args: Any) -> DataNode:
    pixels, turned = pixels_last(x)
    sizes = rounded(_args.numbers(f"{where}: size", size))
    node = _node.apply(
        op,
        pixels,
        size=sizes or None,
        fill_value=None if fill_value is None else _args.numbers(f"{where}: fill_value", fill_value),
        interpolation=types.filter_of(f"{where}: interp_type", interp_type),
        rule=rule_of(op),
        **args,
    )
    same = op == "warp_affine" or args.get("keep_size")
    known = pixels.sizes is not None and len(pixels.sizes) == 3 and same
    height, width = sizes if len(sizes) == 2 else (pixels.sizes[:2] if known else (None, None))  # type: ignore[index]
    return image_of(pixels, node, height, width, turned=turned)


def _rotated_size(x: DataNode, degrees: Any) -> tuple[int, ...]:
    """Returns height and width that hold all corners, with the parity of the sides that they come from.

    Empty if the angle or the image's size is not known, and near odd multiples of 45 degrees, where rounded sine and
    cosine do not tell which side's parity applies: the worker finds the size then.
    """
    if not isinstance(degrees, float) or x.sizes is None or len(x.sizes) != 3:
        return ()
    height, width = x.sizes[1:] if x.layout == "CHW" else x.sizes[:2]
    if height is None or width is None:
        return ()
    sine, cosine = abs(math.sin(math.radians(degrees))), abs(math.cos(math.radians(degrees)))
    if abs(sine - cosine) < 1e-6:
        return ()
    upright = sine < cosine

    def side(exact: float, parity: int) -> int:
        least = math.ceil(exact - 0.01)
        return least + (least + parity) % 2

    return (
        side(cosine * height + sine * width, height if upright else width),
        side(cosine * width + sine * height, width if upright else height),
    )


@operator("rotate")
def rotate(
    input: DataNode,
    *,
    angle: Any,
    axis: Any = None,
    dtype: Any = None,
    fill_value: Any = None,
    interp_type: Any = types.INTERP_LINEAR,
    keep_size: bool = False,
    size: Any = (),
) -> DataNode:
    """Rotates the image about its centre."""
    where = "fn.rotate"
    if axis is not None:
        raise Unimplemented(_refused.ARGUMENTS[where, "axis"].of(f"{where}: axis = {axis!r:.60}"))
    turn = _args.scalar(f"{where}: angle", angle, "float")
    size = size if keep_size or np.size(size) or isinstance(size, DataNode) else _rotated_size(input, turn)
    pixels = wide(where, input, dtype)
    result = _warped(where, "rotate", pixels, size, fill_value, interp_type, angle=turn, keep_size=bool(keep_size))
    return typed(where, result, dtype)


@operator("warp_affine", optional_inputs=1)
def warp_affine(
    data: DataNode,
    mtx: DataNode | None = None,
    *,
    dtype: Any = None,
    fill_value: Any = None,
    interp_type: Any = types.INTERP_LINEAR,
    inverse_map: bool = True,
    matrix: Any = (),
    size: Any = (),
) -> DataNode:
    """Maps the image by an affine map."""
    where = "fn.warp_affine"
    values = _args.numbers(f"{where}: matrix", matrix)
    if mtx is not None:
        if values:
            raise InvalidArgument(f"{where}: matrix is given twice, as an input and as an argument")
        values = _args.constant_values(f"{where}: its second input", mtx)
    if len(values) != 6:
        raise InvalidArgument(f"{where}: matrix has {len(values)} numbers; expected two rows of three")
    pixels = wide(where, data, dtype)
    result = _warped(
        where, "warp_affine", pixels, size, fill_value, interp_type, matrix=values, inverse_map=bool(inverse_map)
    )
    return typed(where, result, dtype)

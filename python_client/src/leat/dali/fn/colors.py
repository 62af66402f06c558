# SPDX-License-Identifier: Apache-2.0
"""Operators on colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from leat.dali import _args, _node, _refused, types
from leat.dali._node import DataNode
from leat.dali._operator import operator
from leat.dali.fn import geometry
from leat.dali.fn._regions import ROWS_LAST, plane_of
from leat.errors import InvalidArgument, Unimplemented

_FLOATS = frozenset(("float16", "float32", "float64"))
# Types that workers compute as a wider one: the wider type, and the type's own bounds.
NARROW = {
    "int8": ("int32", -(1 << 7), (1 << 7) - 1),
    "int16": ("int32", -(1 << 15), (1 << 15) - 1),
    "uint16": ("int32", 0, (1 << 16) - 1),
    "uint32": ("int64", 0, (1 << 32) - 1),
}


def _colored(op: str, x: DataNode, dtype: Any, varying: dict[str, Any], **args: Any) -> DataNode:
    """Applies a linear map to an image's values.

    Its middle and its range are those of DALI's type. For a type that workers compute as a wider one, the result is
    computed in float32, whose range is 1, and limited to the bounds of the type.
    """
    where = f"fn.{op}"
    pixels, turned = geometry.pixels_last(x)
    name = None if dtype is None else types.name_of(f"{where}: dtype", dtype)
    if x.dtype is None:
        _args.need_type(x, where, _FLOATS | {"uint8", *(() if op == "color_twist" else ("int32", "int64"))})
    if op == "color_twist" and x.dtype not in (None, "uint8", *_FLOATS):
        result = _mapped(op, _node.cast(pixels, "float32"), "float32", varying, **args)
        result = _typed_as(result + _middle_of_bytes(**varying), name, x.dtype)
    elif x.dtype in NARROW:
        _, low, high = NARROW[x.dtype]
        if "contrast" in varying and args.get("contrast_center") is None:
            args["contrast_center"] = [(high + 1) // 2]
        shift = varying.pop("brightness_shift", None) if name is None else None
        result = _mapped(op, pixels, name or "float32", varying, **args)
        if shift is not None:
            result = result + (shift if isinstance(shift, DataNode) else np.asarray(shift)) * float(high)
        result = _typed_as(result, name, x.dtype)
    else:
        result = _mapped(op, pixels, name, varying, **args)
    return geometry.pixels_first(result) if turned else result


def _mapped(op: str, x: DataNode, name: str | None, varying: dict[str, Any], **args: Any) -> DataNode:
    scalars = {key: _args.scalar(f"fn.{op}: {key}", value, "float") for key, value in varying.items()}
    node = _node.apply(op, x, dtype=name, **scalars, **args)
    return DataNode(node, layout=x.layout, sizes=x.sizes, dtype=name or x.dtype, device=x.device)


def _middle_of_bytes(*, brightness: Any, contrast: Any, **_: Any) -> Any:
    """Returns the difference between contrast about 128, the middle of whole numbers, and about 0.5, that of floats."""
    left, factor = (each if isinstance(each, DataNode) else np.asarray(each) for each in (contrast, brightness))
    return (1 - left) * factor * 127.5


def _typed_as(x: DataNode, name: str | None, dtype: str) -> DataNode:
    """Converts to the type requested by name, or to DALI's type of the input, limited to its bounds."""
    if name is not None or dtype not in NARROW:
        return _node.cast(x, name or dtype)
    return cut(_node.cast(x, NARROW[dtype][0]), dtype)


def cut(x: DataNode, dtype: str | None) -> DataNode:
    """Limits the values to the bounds of a type of NARROW; returns other types unchanged."""
    if dtype not in NARROW:
        return x
    _, low, high = NARROW[dtype]
    within = _node.binary("min", _node.binary("max", x, low), high)
    return DataNode(within.node, layout=x.layout, sizes=x.sizes, dtype=dtype, device=x.device)


def _center(where: str, value: Any) -> list[float] | None:
    return None if value is None else _args.numbers(f"{where}: contrast_center", value)


@operator("brightness")
def brightness(input: DataNode, *, brightness: Any = 1.0, brightness_shift: Any = 0.0, dtype: Any = None) -> DataNode:
    """x * brightness + brightness_shift * range."""
    return _colored("brightness", input, dtype, {"brightness": brightness, "brightness_shift": brightness_shift})


@operator("contrast")
def contrast(input: DataNode, *, contrast: Any = 1.0, contrast_center: Any = None, dtype: Any = None) -> DataNode:
    """contrast_center + contrast * (x - contrast_center)."""
    center = _center("fn.contrast", contrast_center)
    return _colored("contrast", input, dtype, {"contrast": contrast}, contrast_center=center)


@operator("brightness_contrast")
def brightness_contrast(
    input: DataNode,
    *,
    brightness: Any = 1.0,
    brightness_shift: Any = 0.0,
    contrast: Any = 1.0,
    contrast_center: Any = None,
    dtype: Any = None,
) -> DataNode:
    """brightness_shift * range + brightness * (contrast_center + contrast * (x - contrast_center))."""
    varying = {"brightness": brightness, "brightness_shift": brightness_shift, "contrast": contrast}
    center = _center("fn.brightness_contrast", contrast_center)
    return _colored("brightness_contrast", input, dtype, varying, contrast_center=center)


def _rgb(where: str, image_type: Any) -> None:
    if image_type is not types.RGB:
        raise InvalidArgument(f"{where}: image_type = {image_type!r}; expected types.RGB")


@operator("hue")
def hue(input: DataNode, *, dtype: Any = None, hue: Any = 0.0, image_type: Any = types.RGB) -> DataNode:
    """Rotates colours around the gray axis, in degrees."""
    _rgb("fn.hue", image_type)
    return _colored("hue", input, dtype, {"hue": hue})


@operator("saturation")
def saturation(input: DataNode, *, dtype: Any = None, image_type: Any = types.RGB, saturation: Any = 1.0) -> DataNode:
    """Multiplies distances from gray by a factor."""
    _rgb("fn.saturation", image_type)
    return _colored("saturation", input, dtype, {"saturation": saturation})


@operator("hsv")
def hsv(
    input: DataNode, *, dtype: Any = types.UINT8, hue: Any = 0.0, saturation: Any = 1.0, value: Any = 1.0
) -> DataNode:
    """Applies hue, saturation and value at once."""
    return _colored("hsv", input, dtype, {"hue": hue, "saturation": saturation, "value": value})


@operator("color_twist")
def color_twist(
    input: DataNode,
    *,
    brightness: Any = 1.0,
    contrast: Any = 1.0,
    dtype: Any = None,
    hue: Any = 0.0,
    image_type: Any = types.RGB,
    saturation: Any = 1.0,
) -> DataNode:
    """Applies hue, saturation, contrast and brightness at once."""
    _rgb("fn.color_twist", image_type)
    varying = {"brightness": brightness, "contrast": contrast, "hue": hue, "saturation": saturation}
    return _colored("color_twist", input, dtype, varying)


@operator("color_space_conversion")
def color_space_conversion(input: DataNode, *, image_type: Any, output_type: Any) -> DataNode:
    """Converts the colours to another space."""
    where = "fn.color_space_conversion"
    pixels, turned = geometry.pixels_last(input)
    output = types.colours_of(f"{where}: output_type", output_type)
    node = _node.apply(
        "color_space_conversion",
        pixels,
        image_type=types.colours_of(f"{where}: image_type", image_type),
        output_type=output,
    )
    height, width = pixels.sizes[:2] if pixels.sizes is not None and len(pixels.sizes) == 3 else (None, None)
    sizes = (height, width, 1 if output == "gray" else 3)
    result = DataNode(node, layout="HWC", sizes=sizes, dtype=pixels.dtype)
    return geometry.pixels_first(result) if turned else result


@operator("equalize")
def equalize(input: DataNode) -> DataNode:
    """Spreads each channel's values over the whole range."""
    return input.like("equalize")


@operator("gaussian_blur")
def gaussian_blur(input: DataNode, *, dtype: Any = None, sigma: Any = (0.0,), window_size: Any = (0,)) -> DataNode:
    """Blurs the image."""
    where = "fn.gaussian_blur"
    window = _args.numbers(f"{where}: window_size", window_size)
    if len(window) != 1 or not isinstance(sigma, DataNode) and len(_args.numbers(f"{where}: sigma", sigma)) != 1:
        raise Unimplemented(f"{where}: sigma and window_size of each axis; Leat blurs all axes alike")
    if not input.layout:
        raise Unimplemented(
            f"{where}: a value without a layout: DALI blurs all its axes, also channels; expected layout of its "
            "source, or fn.reshape(layout=…)"
        )
    pixels, turned = geometry.pixels_last(geometry.wide(where, input, dtype))
    result = pixels.like(
        "gaussian_blur", sigma=_args.scalar(f"{where}: sigma", sigma, "float"), window_size=int(window[0])
    )
    return geometry.typed(where, geometry.pixels_first(result) if turned else result, dtype)


@operator("jpeg_compression_distortion")
def jpeg_compression_distortion(input: DataNode, *, quality: Any = 50) -> DataNode:
    """Returns the image after JPEG compression of that quality."""
    quality = _args.scalar("fn.jpeg_compression_distortion: quality", quality, "float")
    return input.like("jpeg_compression_distortion", quality=quality)


@operator("normalize")
def normalize(
    input: DataNode,
    *,
    axes: Any = None,
    axis_names: Any = None,
    batch: bool = False,
    ddof: int = 0,
    dtype: Any = types.FLOAT,
    epsilon: float = 0.0,
    mean: Any = None,
    scale: float = 1.0,
    shift: float = 0.0,
    stddev: Any = None,
) -> DataNode:
    """Returns scale * (x - mean) / stddev + shift; statistics that are not given are computed from the sample."""
    where = "fn.normalize"
    if batch:
        raise Unimplemented(_refused.ARGUMENTS[where, "batch"].of(f"{where}: batch = {batch!r:.40}"))
    name = types.name_of(f"{where}: dtype", dtype)
    args = {
        key: None if each is None else _args.numbers(f"{where}: {key}", each)
        for key, each in (("mean", mean), ("stddev", stddev))
    }
    chosen = geometry.axes_of(where, input, axes, axis_names) or None
    if chosen is None and input.ndim is not None:
        chosen = _axes_left(where, input.ndim, mean, stddev)
    node = _node.apply(
        "standardize",
        input,
        axes=chosen,
        ddof=ddof,
        epsilon=float(epsilon),
        scale=float(scale),
        shift=float(shift),
        dtype=name,
        **args,
    )
    return DataNode(node, layout=input.layout, sizes=input.sizes, dtype=name)


def _axes_left(where: str, rank: int, *given: Any) -> list[int] | None:
    """Returns the axes over which the given statistics were taken: those where their arrays have size 1."""
    for each in given:
        shape = getattr(each, "shape", ())
        if len(shape) == rank:
            return [i for i, size in enumerate(shape) if size == 1]
        if len(shape) > 0 or isinstance(each, (list, tuple)) and len(each) > 1:
            raise InvalidArgument(f"{where}: statistics of shape {shape} for a value of {rank} axes; give axes")
    return None


@operator("erase")
def erase(
    input: DataNode,
    *,
    anchor: Any = (),
    axes: Any = ROWS_LAST,
    axis_names: Any = "HW",
    centered_anchor: bool = False,
    fill_value: Any = (0.0,),
    normalized: bool = False,
    normalized_anchor: bool = False,
    normalized_shape: bool = False,
    shape: Any = (),
) -> DataNode:
    """Fills regions of the value."""
    where = "fn.erase"
    if not normalized and normalized_anchor != normalized_shape:
        raise Unimplemented(f"{where}: normalized_anchor and normalized_shape differ; expected both or neither")
    args = {
        "axes": plane_of(where, input, axes, axis_names, "HW"),
        "normalized": bool(normalized or normalized_anchor),
        "centered_anchor": bool(centered_anchor),
        "fill_value": _args.numbers(f"{where}: fill_value", fill_value),
    }
    if not isinstance(anchor, DataNode) and not isinstance(shape, DataNode):
        corners, extents = _args.numbers(f"{where}: anchor", anchor), _args.numbers(f"{where}: shape", shape)
        return input.like("erase", anchor=corners or None, shape=extents or None, **args)
    if len(args["axes"]) != 2:  # type: ignore[arg-type]
        raise InvalidArgument(f"{where}: a region that varies from sample to sample has two axes")
    places = []
    for name, value in (("anchor", anchor), ("shape", shape)):
        if isinstance(value, DataNode):  # of any other number of elements the sample is bad
            pair = DataNode(_node.apply("reshape", value, shape=(2,)), sizes=(2,), dtype=value.dtype)
            parts = [_args.element(pair, i) for i in (0, 1)]
        else:
            parts = _args.numbers(f"{where}: {name}", value)
        if len(parts) != 2:
            raise InvalidArgument(f"{where}: {name} = {value!r:.60}; expected two numbers: only one region may vary")
        places += [_args.scalar(f"{where}: {name}", each, "float") for each in parts]
    return input.like("erase", y=places[0], x=places[1], height=places[2], width=places[3], **args)

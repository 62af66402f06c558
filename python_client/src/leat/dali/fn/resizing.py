# SPDX-License-Identifier: Apache-2.0
"""Resizing: DALI's ways to give a size."""

from __future__ import annotations

from typing import Any

from leat.dali import _args, _node, _refused, types
from leat.dali._node import DataNode
from leat.dali._operator import operator
from leat.dali.fn import geometry
from leat.errors import InvalidArgument, Unimplemented

_HINTS = "minibatch_size temp_buffer_hint"
_MODES = ("default", "stretch", "not_larger", "not_smaller")


def _extents(where: str, value: Any) -> list[float]:
    """Returns height and width; one number is both."""
    numbers = [float(each) for each in _args.numbers(where, value)]
    if len(numbers) == 1:
        numbers *= 2
    if len(numbers) != 2:
        raise InvalidArgument(f"{where} = {value!r}; expected height and width")
    return numbers


def _is_given(value: Any) -> bool:
    return isinstance(value, DataNode) or value is not None and bool(value)


def size_arguments(where: str, options: dict[str, Any]) -> tuple[dict[str, Any], tuple[bool, bool]]:
    """Returns the size as arguments of `leat.fn.resize`, and whether the image is mirrored (vertically, horizontally):
    negative sizes mean that in DALI."""
    mode = options["mode"]
    if mode not in _MODES:
        raise InvalidArgument(f"{where}: mode = {mode!r}; expected one of {', '.join(map(repr, _MODES))}")
    if _is_given(options["resize_z"]):
        refusal = _refused.ARGUMENTS[where, "resize_z"]
        raise Unimplemented(refusal.of(f"{where}: resize_z = {options['resize_z']!r:.60}"))
    sides = [name for name in ("resize_x", "resize_y") if _is_given(options[name])]
    methods = [name for name in ("resize_shorter", "resize_longer") if _is_given(options[name])]
    methods += ["size"] if options["size"] is not None else []
    methods += [" and ".join(sides)] if sides else []
    if len(methods) != 1:
        what = f"{', '.join(methods)} are given" if methods else "no size is given"
        raise InvalidArgument(
            f"{where}: {what}; expected exactly one method: size, resize_x and resize_y, resize_shorter, resize_longer"
        )
    args: dict[str, Any] = {}
    if options["max_size"] is not None:
        args["max_size"] = [round(each) for each in _extents(f"{where}: max_size", options["max_size"])]
    if methods[0] in ("resize_shorter", "resize_longer"):
        if mode != "default":
            raise InvalidArgument(f"{where}: {methods[0]} excludes mode = {mode!r}")
        key = methods[0].removeprefix("resize_")
        args[key] = _args.scalar(f"{where}: {methods[0]}", options[methods[0]], "float")
        return args, (False, False)
    if methods[0] == "size":
        height, width = _extents(f"{where}: size", options["size"])
    else:
        height, width = (
            float(_args.number(f"{where}: {name}", options[name] or 0.0)) for name in ("resize_y", "resize_x")
        )
    if not height and not width:
        raise InvalidArgument(f"{where}: both sizes are 0; expected at least one")
    args["mode"] = mode
    args["size"] = [_side(where, height), _side(where, width)]
    return args, (height < 0, width < 0)


def _side(where: str, value: float) -> int:
    whole = round(abs(value))
    if whole != abs(value):
        raise InvalidArgument(f"{where}: a size of {value:g}; Leat takes whole numbers (resize_shorter takes any)")
    return whole


def filters(where: str, options: dict[str, Any]) -> dict[str, Any]:
    """Returns the filters as arguments of `leat.fn.resize`."""
    args: dict[str, Any] = {
        "interpolation": types.filter_of(f"{where}: interp_type", options["interp_type"]),
        "antialias": bool(options["antialias"]),
    }
    for name in ("min_filter", "mag_filter"):
        if options[name] is not None:
            args[name] = types.filter_of(f"{where}: {name}", options[name])
    return args


def _region(where: str, options: dict[str, Any]) -> dict[str, Any]:
    start, end = options["roi_start"], options["roi_end"]
    if (start is None) != (end is None):
        raise InvalidArgument(f"{where}: roi_start and roi_end must be provided together")
    if start is None:
        return {}
    low, high = _extents(f"{where}: roi_start", start), _extents(f"{where}: roi_end", end)
    if any(b <= a for a, b in zip(low, high)):
        raise InvalidArgument(f"{where}: roi_end = {end!r} is not behind roi_start = {start!r}; flip mirrors")
    return {"roi_start": low, "roi_end": high, "roi_relative": bool(options["roi_relative"])}


def _checked(where: str, x: DataNode, dtype: Any) -> DataNode:
    """Returns the image, if the requested type is its own. If the type of a source is not known, it has to be that."""
    if dtype is not None and x.dtype is None:
        _args.need_type(x, f"{where}: dtype = {dtype!r}", frozenset(("uint8",)))
    if dtype is not None and types.name_of(f"{where}: dtype", dtype) != (x.dtype or "uint8"):
        raise Unimplemented(f"{where}: dtype = {dtype!r}; Leat resizes bytes to bytes: cast the result")
    return x


def resized(where: str, x: DataNode, options: dict[str, Any]) -> tuple[DataNode, bool, tuple[bool, bool]]:
    """Returns the image resized, with channels last; True if they were first; and the mirroring that is still to do."""
    pixels, turned = geometry.pixels_last(_checked(where, x, options["dtype"]))
    size, mirrored = size_arguments(where, options)
    node = _node.apply(
        "resize",
        pixels,
        subpixel_scale=bool(options["subpixel_scale"]),
        rule=geometry.rule_of("resize"),
        **size,
        **filters(where, options),
        **_region(where, options),
    )
    height, width = size.get("size", (0, 0))
    exact = size.get("mode") == "stretch" or height and width and size.get("mode") == "default"
    known = exact and "max_size" not in size and height and width
    return (
        geometry.image_of(pixels, node, *((height, width) if known else (None, None)), turned=False),
        turned,
        mirrored,
    )


_SIZE: dict[str, Any] = {
    "antialias": True,
    "dtype": None,
    "interp_type": types.INTERP_LINEAR,
    "mag_filter": None,
    "max_size": None,
    "min_filter": None,
    "mode": "default",
    "resize_longer": 0.0,
    "resize_shorter": 0.0,
    "resize_x": 0.0,
    "resize_y": 0.0,
    "resize_z": 0.0,
    "roi_end": None,
    "roi_relative": False,
    "roi_start": None,
    "size": None,
    "subpixel_scale": True,
}


@operator("resize", hints=_HINTS, more={**_SIZE, "save_attrs": False})
def resize(input: DataNode, **options: Any) -> DataNode:
    """Resizes the image, or a region of it."""
    where = "fn.resize"
    if options.pop("save_attrs", False):
        raise Unimplemented(_refused.ARGUMENTS[where, "save_attrs"].of(f"{where}: save_attrs = True"))
    result, turned, (vertical, horizontal) = resized(where, input, {**_SIZE, **options})
    if vertical or horizontal:
        result = result.like("flip", horizontal=horizontal, vertical=vertical)
    return geometry.pixels_first(result) if turned else result


def _mirrored(where: str, mirror: Any) -> dict[str, Any]:
    """Returns the flips of a mask of directions: 1 is horizontal, 2 vertical, 3 both."""
    if isinstance(mirror, DataNode) and (mirror.flag is not None or mirror.dtype == "bool"):
        return {"horizontal": _args.scalar(f"{where}: mirror", mirror, "bool")}
    if isinstance(mirror, DataNode):
        whole = _node.cast(mirror, "int32")
        bits = {name: _node.binary("bitwise_and", whole, bit) for name, bit in (("horizontal", 1), ("vertical", 2))}
        return {name: _args.scalar(f"{where}: mirror", bit, "bool") for name, bit in bits.items()}
    mask = _args.number(f"{where}: mirror", mirror)
    if mask not in (0, 1, 2, 3):
        raise InvalidArgument(f"{where}: mirror = {mirror!r:.60}; expected 0, 1 (horizontal), 2 (vertical) or 3 (both)")
    return {"horizontal": bool(int(mask) & 1), "vertical": bool(int(mask) & 2)}


@operator(
    "resize_crop_mirror",
    hints=_HINTS,
    more={**_SIZE, **geometry.WINDOW, "mirror": 0},
)
def resize_crop_mirror(input: DataNode, **options: Any) -> DataNode:
    """Resizes the image, takes a window of the result, and mirrors it."""
    where = "fn.resize_crop_mirror"
    window = geometry.Crop.of(where, {name: options.pop(name) for name in geometry.WINDOW if name in options})
    flips = _mirrored(where, options.pop("mirror", 0))
    result, turned, (vertical, horizontal) = resized(where, input, {**_SIZE, **options})
    if vertical or horizontal:
        result = result.like("flip", horizontal=horizontal, vertical=vertical)
    result = window.applied(where, result).like("flip", **flips)
    return geometry.pixels_first(result) if turned else result


@operator("random_resized_crop", hints=_HINTS, random=True)
def random_resized_crop(
    input: DataNode,
    *,
    size: Any,
    antialias: bool = True,
    dtype: Any = None,
    interp_type: Any = types.INTERP_LINEAR,
    mag_filter: Any = None,
    min_filter: Any = None,
    num_attempts: int = 10,
    random_area: Any = (0.08, 1.0),
    random_aspect_ratio: Any = (0.75, 1.333333),
) -> DataNode:
    """Resizes a random window of the image."""
    where = "fn.random_resized_crop"
    if {min_filter, mag_filter} - {None, interp_type}:
        raise InvalidArgument(f"{where}: min_filter and mag_filter; Leat takes one filter here, interp_type")
    height, width = (_side(where, each) for each in _extents(f"{where}: size", size))
    pixels, turned = geometry.pixels_last(_checked(where, input, dtype))
    node = _node.apply(
        "random_resized_crop",
        pixels,
        size=(height, width),
        area=_args.numbers(f"{where}: random_area", random_area),
        aspect=_args.numbers(f"{where}: random_aspect_ratio", random_aspect_ratio),
        attempts=num_attempts,
        interpolation=types.filter_of(f"{where}: interp_type", interp_type),
        antialias=bool(antialias),
        rule=geometry.rule_of("random_resized_crop"),
    )
    return geometry.image_of(pixels, node, height, width, turned=turned)

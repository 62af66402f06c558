# SPDX-License-Identifier: Apache-2.0
"""Decoders of images, whole or a window of each."""

from __future__ import annotations

from typing import Any, NoReturn

from leat.dali import _args, _node, _refused, types
from leat.dali._node import DataNode
from leat.dali._operator import operator
from leat.dali.fn import geometry
from leat.dali.fn._regions import SLICE
from leat.errors import InvalidArgument

_HINTS = (
    "affine device_memory_padding device_memory_padding_jpeg2k host_memory_padding host_memory_padding_jpeg2k "
    "hw_decoder_load hybrid_huffman_threshold jpeg_fancy_upsampling memory_stats preallocate_height_hint "
    "preallocate_width_hint use_fast_idct"
)
_CACHE = " cache_batch_copy cache_debug cache_size cache_threshold cache_type"


def _decoded(where: str, data: DataNode, output_type: Any, adjust_orientation: bool) -> DataNode:
    if data.dtype not in (None, "uint8") or data.ndim not in (None, 1):
        raise InvalidArgument(f"{where}: its input is {data!r}; expected the bytes of image files")
    colours = types.colours_of(f"{where}: output_type", output_type)
    node = _node.apply("decode", data, output=colours, orient=bool(adjust_orientation))
    return DataNode(node, layout="HWC", sizes=(None, None, 1 if colours == "gray" else 3), dtype="uint8")


def _typed(where: str, image: DataNode, dtype: Any) -> DataNode:
    """Converts to another type: scaled to its range, as in DALI."""
    name = types.name_of(f"{where}: dtype", dtype, types.computed_by(where))
    return image if name == "uint8" else _node.cast(image * (1.0 / 255.0), name)


@operator("decoders.image", hints=_HINTS + _CACHE)
def image(
    input: DataNode, *, adjust_orientation: bool = True, dtype: Any = types.UINT8, output_type: Any = types.RGB
) -> DataNode:
    """Image files -> images, HWC."""
    where = "fn.decoders.image"
    return _typed(where, _decoded(where, input, output_type, adjust_orientation), dtype)


@operator("decoders.image_random_crop", hints=_HINTS, random=True)
def image_random_crop(
    input: DataNode,
    *,
    adjust_orientation: bool = True,
    dtype: Any = types.UINT8,
    num_attempts: int = 10,
    output_type: Any = types.RGB,
    random_area: Any = (0.08, 1.0),
    random_aspect_ratio: Any = (0.75, 1.333333),
) -> DataNode:
    """Image files -> a random window of each; only as much of the file is decoded as the window needs."""
    where = "fn.decoders.image_random_crop"
    decoded = _decoded(where, input, output_type, adjust_orientation)
    node = _node.apply(
        "random_crop",
        decoded,
        area=_args.numbers(f"{where}: random_area", random_area),
        aspect=_args.numbers(f"{where}: random_aspect_ratio", random_aspect_ratio),
        attempts=num_attempts,
    )
    return _typed(where, DataNode(node, layout="HWC", sizes=decoded.sizes, dtype="uint8"), dtype)


@operator("decoders.image_crop", hints=_HINTS, more=geometry.WINDOW)
def image_crop(
    input: DataNode,
    *,
    adjust_orientation: bool = True,
    dtype: Any = types.UINT8,
    output_type: Any = types.RGB,
    **place: Any,
) -> DataNode:
    """Image files -> a window of one size of each."""
    where = "fn.decoders.image_crop"
    decoded = _decoded(where, input, output_type, adjust_orientation)
    return _typed(where, geometry.Crop.of(where, place).applied(where, decoded), dtype)


@operator("decoders.image_slice", hints=_HINTS, optional_inputs=2, more=SLICE)
def image_slice(
    data: DataNode,
    anchor: DataNode | None = None,
    shape_input: DataNode | None = None,
    *,
    adjust_orientation: bool = True,
    dtype: Any = types.UINT8,
    output_type: Any = types.RGB,
    **part: Any,
) -> DataNode:
    """Image files -> the given region of each."""
    where = "fn.decoders.image_slice"
    decoded = _decoded(where, data, output_type, adjust_orientation)
    kept = geometry.slice_arguments(where, decoded, anchor, shape_input, part)
    return _typed(where, geometry.sliced(where, decoded, kept, "error", [0.0]), dtype)


@operator("peek_image_shape")
def peek_image_shape(
    input: DataNode, *, adjust_orientation: bool = True, dtype: Any = types.INT64, image_type: Any = types.RGB
) -> DataNode:
    """Image files -> height, width and channels of each, without decoding them."""
    where = "fn.peek_image_shape"
    if image_type is types.GRAY:
        raise InvalidArgument(f"{where}: image_type = GRAY; the channels are those that the file has")
    types.colours_of(f"{where}: image_type", image_type)
    node = _node.apply("peek_shape", input, orient=bool(adjust_orientation))
    shape = DataNode(node, sizes=(3,), dtype="int64")
    return _node.cast(shape, types.name_of(f"{where}: dtype", dtype))


def __getattr__(name: str) -> NoReturn:
    raise _refused.missing("fn.decoders", name, ("image", "image_crop", "image_random_crop", "image_slice"))

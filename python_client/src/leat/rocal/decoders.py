# SPDX-License-Identifier: Apache-2.0
"""Decoders, as in `amd.rocal.fn.decoders`. In rocAL the decoders select the part of the data that is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from leat import fn
from leat.errors import InvalidArgument, Unimplemented
from leat.rocal import types
from leat.rocal._checked import Refused, operator, refused
from leat.rocal._source import SHARDING, Encoded, Sharding
from leat.rocal._tensor import Tensor, constant_of, pixels

__all__ = ["audio", "image", "image_random_crop", "image_raw", "image_slice"]

# The location of the data: readers already have it, except for COCO's images.
_SOURCE = {"path": "", "file_root": "", "annotations_file": ""}
# rocAL's own names for pad_last_batch, in one version or another.
_PADS = ("pad_last_batch_repeated", "last_batch_padded")
_HINTS: dict[str, Any] = {
    "decoder_type": types.DECODER_TJPEG,
    "decode_size_policy": types.USER_GIVEN_SIZE_ORIG,
    "max_decoded_width": 1000,
    "max_decoded_height": 1000,
    "device": None,
    "user_feature_key_map": None,
    "index_path": "",
}
_COLORS: dict[types.Color, Any] = {types.RGB: "rgb", types.BGR: "bgr", types.GRAY: "gray", types.RGB_PLANAR: "rgb"}


def _decoder(name: str, without: tuple[str, ...] = ()) -> Callable[[Callable[..., Tensor]], Callable[..., Any]]:
    """Adds the arguments that all decoders share."""
    where = f"fn.decoders.{name}"
    shared = {**_SOURCE, **SHARDING}

    def decorate(function: Callable[..., Tensor]) -> Callable[..., Any]:
        def call(jpegs: Any, **kwargs: Any) -> Tensor:
            if not isinstance(jpegs, Encoded):
                raise InvalidArgument(f"{where}: {jpegs!r:.80}; expected the encoded images of one of fn.readers")
            own = {key: value for key, value in kwargs.items() if key not in shared and key not in _PADS}
            color = constant_of(f"{where}: output_type", own.pop("output_type", types.RGB), types.Color)
            pads = [kwargs[key] for key in ("pad_last_batch", *_PADS) if key in kwargs]
            sharding = {key: kwargs[key] for key in SHARDING if key in kwargs}
            sharding["pad_last_batch"] = pads[0] if pads else True
            known = _known(jpegs.source._arguments)
            jpegs.source.update(where, **{key: kwargs.get(key, "") for key in known})
            jpegs.source.shard(where, Sharding.of(where, **sharding))
            tensor = function(jpegs, color, **own)
            layout = types.NCHW if color is types.RGB_PLANAR else types.NHWC
            return Tensor(tensor.node, "uint8", layout)

        parameters = list(inspect.signature(function).parameters.values())
        added = {"output_type": types.RGB, **shared, **{each: True for each in _PADS}}
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                parameters[0],
                *parameters[2:],
                *(inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=added[key]) for key in added),
            ]
        )
        call.__doc__ = function.__doc__
        hints = {key: value for key, value in _HINTS.items() if key not in without}
        return operator(f"decoders.{name}", **hints)(call)

    return decorate


def _known(arguments: dict[str, Any]) -> list[str]:
    """Returns the names in _SOURCE that the reader uses. rocAL's decoders repeat them; for COCO's images they come
    first."""
    known = [key for key in _SOURCE if key in arguments]
    return [*known, "file_root"] if "annotations_file" in known else known


def _decoded(jpegs: Encoded, color: types.Color) -> Tensor:
    # rocAL ignores EXIF when decoding.
    return Tensor(fn.decode(jpegs.source.encoded(), output=_COLORS[color], orient=False), "uint8")


def _window(jpegs: Encoded, color: types.Color, area: Any, aspect: Any, attempts: Any) -> Tensor:
    window = fn.random_crop(_decoded(jpegs, color).node, area=area, aspect=aspect, attempts=attempts)
    return Tensor(window, "uint8")


@_decoder("image")
def image(jpegs: Encoded, color: types.Color) -> Tensor:
    """Decodes images, each in its own size.

    Args:
        jpegs: encoded images (positional).
        output_type: types.RGB, BGR, GRAY or RGB_PLANAR.
        path: the location of the data, as given to the reader; likewise file_root and annotations_file. For COCO's
            images file_root is the folder.
        shard_id: the part that is read, of num_shards; the arguments from here on are those of `readers.cifar10`.
    """
    return _decoded(jpegs, color)


@_decoder("image_random_crop")
def image_random_crop(
    jpegs: Encoded,
    color: types.Color,
    *,
    random_area: Any = (0.08, 1.0),
    random_aspect_ratio: Any = (0.8, 1.25),
    num_attempts: int = 10,
) -> Tensor:
    """Decodes a random window of each image.

    Args:
        jpegs: encoded images (positional).
        random_area: least and largest fraction of the image's area.
        random_aspect_ratio: least and largest width / height.
        num_attempts: windows that are drawn before the central one is taken.

    The other arguments are those of `image`.
    """
    return _window(jpegs, color, random_area, random_aspect_ratio, num_attempts)


@_decoder("image_slice")
def image_slice(
    jpegs: Encoded,
    color: types.Color,
    *,
    random_area: Any = (0.08, 1.0),
    random_aspect_ratio: Any = (0.75, 1.33333),
    num_attempts: int = 100,
) -> Tensor:
    """`image_random_crop` with other defaults."""
    return _window(jpegs, color, random_area, random_aspect_ratio, num_attempts)


@_decoder("image_raw", without=("max_decoded_width", "max_decoded_height"))
def image_raw(
    jpegs: Encoded, color: types.Color, *, max_decoded_width: int = 1000, max_decoded_height: int = 1000
) -> Tensor:
    """Returns the raw pixels that a TFRecord file holds.

    Args:
        jpegs: the "image/encoded" of `readers.tfrecord` (positional).
        max_decoded_width: the images' width: all have the same.
        max_decoded_height: their height.

    The other arguments are those of `image`.
    """
    where = "fn.decoders.image_raw"
    channels = {types.RGB: 3, types.BGR: 3, types.GRAY: 1}.get(color)
    if channels is None:
        raise Unimplemented(f"{where}: output_type = types.{color.name}; expected types.RGB, BGR or GRAY")
    height = pixels(f"{where}: max_decoded_height", max_decoded_height)
    width = pixels(f"{where}: max_decoded_width", max_decoded_width)
    return Tensor(fn.reshape(jpegs.source.raw(where), shape=(height, width, channels)), "uint8")


audio: Refused = refused("decoders.audio")

# SPDX-License-Identifier: Apache-2.0
"""The operators, as in `amd.rocal.fn`, for use within `with pipeline:`.

Images have the layout `output_layout` (NHWC) and the type `output_dtype` (UINT8: rounded and saturated).
docs/guide/move-from-rocal.md lists the differences from rocAL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from leat import fn as _leat
from leat._graphs.operators import nearest
from leat._graphs.options import whole
from leat.errors import InvalidArgument, Unimplemented
from leat.rocal import decoders, noise, random, readers, types
from leat.rocal._checked import Refused, image_operator, operator, refused
from leat.rocal._crop import center_crop, crop, crop_mirror_normalize
from leat.rocal._resize import random_crop, resize, resize_crop_mirror, resize_mirror_normalize
from leat.rocal._tensor import Tensor, constant_of, flag, image_of, per_sample, pixels
from leat.rocal.pipeline import Pipeline

snp_noise: Callable[..., Tensor] = noise.snp


@operator("uniform", device=None)
def uniform(*inputs: Any, range: Any = (-1, 1)) -> Tensor:  # noqa: A002
    """Draws a random number from a range, for arguments that take one per sample; `inputs` are not used."""
    return random.drawn_uniformly("fn.uniform", range)


@operator("one_hot", device=None)
def one_hot(labels: Any, *, num_classes: int = 0) -> Tensor:
    """Makes the iterators' labels one-hot: int32 (1, rows, classes).

    Args:
        labels: the labels of a reader (positional).
        num_classes: how many there are; a label that is not below it is a bad sample.

    Returns:
        The same vectors, for set_outputs: int32 (rows, classes).
    """
    classes = whole("fn.one_hot: num_classes", num_classes, 1, 10**7)
    pipeline = Pipeline.current("fn.one_hot")
    pipeline.one_hot(classes)
    if not isinstance(labels, Tensor):
        raise InvalidArgument(f"fn.one_hot: {labels!r:.60}; expected the labels of a reader")
    return Tensor(_leat.one_hot(labels.node, num_classes=classes, dtype="int32"), "int32")


def _same(where: str, value: Any) -> Tensor:
    return image_of(where, value)


@operator("nop", device=None)
def nop(image: Any) -> Tensor:
    """Returns the image unchanged."""
    return _same("fn.nop", image)


@operator("copy", device=None)
def copy(image: Any) -> Tensor:
    """Returns the image unchanged."""
    return _same("fn.copy", image)


@image_operator("flip")
def flip(image: Tensor, *, horizontal: Any = 0, vertical: Any = 0) -> Tensor:
    """Mirrors the image.

    Args:
        image: a tensor (positional).
        horizontal: left and right: 0, 1, or what fn.random.coin_flip gives.
        vertical: top and bottom.
    """
    node = _leat.flip(
        image.node, horizontal=flag("fn.flip: horizontal", horizontal), vertical=flag("fn.flip: vertical", vertical)
    )
    return Tensor(node, image.dtype)


_BETWEEN = {types.LINEAR_INTERPOLATION: "linear", types.NEAREST_NEIGHBOR_INTERPOLATION: "nearest"}


def _between(where: str, value: Any) -> Any:
    chosen = constant_of(where, value, types.Interpolation)
    if chosen not in _BETWEEN:
        raise Unimplemented(f"{where} = types.{chosen.name}; expected linear or nearest neighbour")
    return _BETWEEN[chosen]


def _target(where: str, width: Any, height: Any) -> tuple[int, int] | None:
    """Returns height and width of the result; None: the image's."""
    size = pixels(f"{where}: dest_height", height), pixels(f"{where}: dest_width", width)
    if all(size):
        return size
    if any(size):
        raise InvalidArgument(f"{where}: dest_height and dest_width = {size}; expected both or neither")
    return None


@image_operator("rotate", fill_value=None)
def rotate(
    image: Tensor,
    *,
    angle: Any = None,
    dest_width: int = 0,
    dest_height: int = 0,
    interpolation_type: Any = types.LINEAR_INTERPOLATION,
) -> Tensor:
    """Rotates the image about its centre; the area outside it is black.

    Args:
        image: a tensor (positional).
        angle: degrees, counter-clockwise; a number, or what fn.uniform gives.
        dest_width: width of the result; with dest_height. 0: the image's.
        dest_height: see dest_width.
        interpolation_type: linear or nearest neighbour.
    """
    size = _target("fn.rotate", dest_width, dest_height)
    node = _leat.rotate(
        image.node,
        angle=per_sample("fn.rotate: angle", angle),
        fill_value=(0.0,),
        interpolation=_between("fn.rotate: interpolation_type", interpolation_type),
        keep_size=size is None,
        size=size or (),
    )
    return Tensor(node, image.dtype)


@image_operator("warp_affine")
def warp_affine(
    image: Tensor,
    *,
    dest_width: int = 0,
    dest_height: int = 0,
    matrix: Any = (0, 0, 0, 0, 0, 0),
    interpolation_type: Any = types.LINEAR_INTERPOLATION,
) -> Tensor:
    """Maps the image by an affine map; the area outside it is black.

    Args:
        image: a tensor (positional).
        dest_width: width of the result; with dest_height. 0: the image's.
        dest_height: see dest_width.
        matrix: x0, x1, y0, y1, o0, o1: the result's pixel (x, y) is the image's (x0 x + x1 y + o0, y0 x + y1 y + o1).
        interpolation_type: linear or nearest neighbour.
    """
    values = list(matrix) if isinstance(matrix, (list, tuple)) else []
    if len(values) != 6 or not any(values[:4]):
        raise InvalidArgument(f"fn.warp_affine: matrix = {matrix!r:.80}; expected six numbers, x0, x1, y0, y1, o0, o1")
    x0, x1, y0, y1, o0, o1 = values
    size = _target("fn.warp_affine", dest_width, dest_height)
    node = _leat.warp_affine(
        image.node,
        matrix=(x0, x1, o0, y0, y1, o1),
        fill_value=(0.0,),
        interpolation=_between("fn.warp_affine: interpolation_type", interpolation_type),
        size=size or (),
    )
    return Tensor(node, image.dtype)


def _brightened(where: str, image: Tensor, brightness: Any, brightness_shift: Any) -> Tensor:
    shift = per_sample(f"{where}: brightness_shift", brightness_shift)
    if image.dtype is None:  # the library's shift is a part of the type's range
        image = image.cast("float32")
    node = _leat.brightness(
        image.node,
        brightness=per_sample(f"{where}: brightness", brightness),
        brightness_shift=shift / 255.0 if image.dtype == "uint8" else shift,
    )
    return Tensor(node, image.dtype)


@image_operator("brightness")
def brightness(image: Tensor, *, brightness: Any = None, brightness_shift: Any = None) -> Tensor:
    """Computes x * brightness + brightness_shift, numbers or one per sample; None draws in rocAL and is refused."""
    return _brightened("fn.brightness", image, brightness, brightness_shift)


@image_operator("brightness_fixed")
def brightness_fixed(image: Tensor, *, brightness: float = 1.0, brightness_shift: float = 0.0) -> Tensor:
    """Computes x * brightness + brightness_shift."""
    return _brightened("fn.brightness_fixed", image, brightness, brightness_shift)


@image_operator("contrast")
def contrast(image: Tensor, *, contrast: Any = None, contrast_center: Any = None) -> Tensor:
    """Computes (x - contrast_center) * contrast + contrast_center; the centre is a number, None: 128 for uint8."""
    center = () if contrast_center is None else (contrast_center,)
    node = _leat.contrast(image.node, contrast=per_sample("fn.contrast: contrast", contrast), contrast_center=center)
    return Tensor(node, image.dtype)


@image_operator("exposure")
def exposure(image: Tensor, *, exposure: float = 0.5) -> Tensor:
    """Computes x * 2 ** exposure, a number."""
    if isinstance(exposure, Tensor):
        raise Unimplemented("fn.exposure: exposure; expected a number, the same for every sample")
    return Tensor(_leat.brightness(image.node, brightness=2.0**exposure), image.dtype)


@image_operator("gamma_correction")
def gamma_correction(image: Tensor, *, gamma: float = 0.5) -> Tensor:
    """Computes 255 * (x / 255) ** gamma for uint8; gamma is a number."""
    if isinstance(gamma, Tensor) or image.dtype != "uint8":
        raise Unimplemented("fn.gamma_correction: expected a gamma that is a number, and an image of uint8")
    values = [255.0 * (x / 255.0) ** gamma for x in range(256)]
    return Tensor(_leat.lookup_table(image.node, keys=range(256), values=values, dtype="uint8"), "uint8")


@image_operator("hue", seed=0)
def hue(image: Tensor, *, hue: Any = None) -> Tensor:
    """Rotates the colours by `hue` degrees around the gray axis of YIQ: a number, or one per sample."""
    return Tensor(_leat.hue(image.node, hue=per_sample("fn.hue: hue", hue)), image.dtype)


@image_operator("saturation")
def saturation(image: Tensor, *, saturation: Any = 1.0) -> Tensor:
    """Multiplies distances from gray, in YIQ, by a factor: a number, or one per sample."""
    factor = per_sample("fn.saturation: saturation", saturation)
    return Tensor(_leat.saturation(image.node, saturation=factor), image.dtype)


@image_operator("color_twist")
def color_twist(
    image: Tensor, *, brightness: Any = 1.0, contrast: Any = 1.0, hue: Any = 0.0, saturation: Any = 1.0
) -> Tensor:
    """Applies hue and saturation in YIQ, then contrast around the middle, then brightness: numbers, or one per
    sample."""
    given = {"brightness": brightness, "contrast": contrast, "hue": hue, "saturation": saturation}
    values = {name: per_sample(f"fn.color_twist: {name}", value) for name, value in given.items()}
    return Tensor(_leat.color_twist(image.node, **values), image.dtype)


@image_operator("blur")
def blur(image: Tensor, *, window_size: Any = None, sigma: Any = 0.0) -> Tensor:
    """Applies a Gaussian blur.

    Args:
        image: a tensor (positional).
        window_size: diameter of the kernel, odd; None: as sigma needs it.
        sigma: in pixels, a number or one per sample; 0: as the window needs it.
    """
    if window_size is None and not isinstance(sigma, Tensor) and sigma == 0:
        raise InvalidArgument("fn.blur: window_size = None and sigma = 0; expected one of them")
    node = _leat.gaussian_blur(
        image.node,
        window_size=0 if window_size is None else window_size,
        sigma=per_sample("fn.blur: sigma", sigma),
    )
    return Tensor(node, image.dtype)


@image_operator("blend")
def blend(image: Tensor, other: Any, *, ratio: Any = None) -> Tensor:
    """Computes image * ratio + other * (1 - ratio); ratio is a number, or one per sample."""
    second = image_of("fn.blend", other).node
    share = per_sample("fn.blend: ratio", ratio)
    return Tensor(image.node * share + second * (1 - share), "float32")


def _refuse(names: str) -> None:
    for name in names.split():
        globals()[name] = refused(name)


_refuse(
    "box_encoder box_iou_matcher color_temp fish_eye fog jitter lens_correction mel_filter_bank normalize pixelate "
    "preemphasis_filter rain random_bbox_crop resample resize_crop snow spectrogram ssd_random_crop "
    "tensor_add_tensor_float tensor_mul_scalar_float to_decibels vignette"
)
external_source: Refused = refused("external_source", "leat.external_source does that outside of leat.rocal")


def __getattr__(name: str) -> NoReturn:
    known = [each for each in globals() if not each.startswith("_")]
    raise AttributeError(f"leat.rocal.fn has no {name!r}{nearest(name, known)}")

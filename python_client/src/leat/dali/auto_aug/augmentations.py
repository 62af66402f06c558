# SPDX-License-Identifier: Apache-2.0
"""`nvidia.dali.auto_aug.augmentations`: the named augmentations of the policies.

Each takes images (uint8, HWC, with 3 channels or 1) and a magnitude's bin; `shear_x.augmentation(mag_range=(0, 0.5))`
is the same with other magnitudes. `fill_value` fills the area outside the image (None: the nearest pixel of its edge),
`interp_type` is the interpolation between pixels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leat.dali import _args, fn
from leat.dali._node import DataNode
from leat.dali.auto_aug._common import augmented
from leat.dali.auto_aug.core import Augmentation, augmentation, refused

__all__ = [
    "auto_contrast",
    "brightness",
    "color",
    "contrast",
    "equalize",
    "identity",
    "invert",
    "posterize",
    "rotate",
    "sharpness",
    "shear_x",
    "shear_y",
    "solarize",
    "solarize_add",
    "translate_x",
    "translate_x_no_shape",
    "translate_y",
    "translate_y_no_shape",
]

_BYTE_BITS = 8


def _changed(
    operation: str, data: DataNode, magnitude: Any = None, fill_value: Any = 128, interp_type: Any = None
) -> DataNode:
    """Applies one operation of `leat.fn.augment`."""
    where = f"augmentations.{operation}"
    magnitude = _args.scalar(f"{where}: magnitude", magnitude, "float")
    return augmented(where, "augment", data, fill_value, interp_type, operation=operation, magnitude=magnitude)


def warp_x_param(magnitude: Any) -> list[Any]:
    """Returns a vector along x."""
    return [magnitude, 0]


def warp_y_param(magnitude: Any) -> list[Any]:
    """Returns a vector along y."""
    return [0, magnitude]


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_x_param)
def shear_x(data: DataNode, shear: DataNode, fill_value: Any = 128, interp_type: Any = None) -> DataNode:
    """x + shear · y; the shear is (shear, 0)."""
    return _changed("shear_x", data, shear[0], fill_value, interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_y_param)
def shear_y(data: DataNode, shear: DataNode, fill_value: Any = 128, interp_type: Any = None) -> DataNode:
    """y + shear · x; the shear is (0, shear)."""
    return _changed("shear_y", data, shear[1], fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_x_param)
def translate_x(
    data: DataNode, rel_offset: DataNode, shape: Any, fill_value: Any = 128, interp_type: Any = None
) -> DataNode:
    """Moves the image to the right by a fraction of its width, which is shape[1]."""
    return _changed("translate_x", data, rel_offset[0] * shape[1], fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_x_param, name="translate_x")
def translate_x_no_shape(data: DataNode, offset: DataNode, fill_value: Any = 128, interp_type: Any = None) -> DataNode:
    """Moves the image to the right by a number of pixels."""
    return _changed("translate_x", data, offset[0], fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_y_param)
def translate_y(
    data: DataNode, rel_offset: DataNode, shape: Any, fill_value: Any = 128, interp_type: Any = None
) -> DataNode:
    """Moves the image down by a fraction of its height, which is shape[0]."""
    return _changed("translate_y", data, rel_offset[1] * shape[0], fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_y_param, name="translate_y")
def translate_y_no_shape(data: DataNode, offset: DataNode, fill_value: Any = 128, interp_type: Any = None) -> DataNode:
    """Moves the image down by a number of pixels."""
    return _changed("translate_y", data, offset[1], fill_value, interp_type)


@augmentation(mag_range=(0, 30), randomly_negate=True)
def rotate(
    data: DataNode, angle: DataNode, fill_value: Any = 128, interp_type: Any = None, rotate_keep_size: bool = True
) -> DataNode:
    """Rotates the image by degrees, counter-clockwise."""
    if rotate_keep_size:
        return _changed("rotate", data, angle, fill_value, interp_type)
    return fn.rotate(data, angle=angle, fill_value=fill_value, interp_type=interp_type, keep_size=False)


def shift_enhance_range(magnitude: Any) -> Any:
    """Returns a factor that keeps the image at magnitude 0."""
    return 1 + magnitude


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def brightness(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiplies every value by the parameter."""
    return _changed("brightness", data, parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def contrast(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiplies every value's distance from the mean of the image's gray by the parameter."""
    return _changed("contrast", data, parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def color(data: DataNode, parameter: DataNode) -> DataNode:
    """Multiplies every value's distance from its pixel's gray by the parameter."""
    return _changed("color", data, parameter)


def sharpness_kernel(magnitude: Any) -> np.ndarray:
    """Returns the 3 × 3 filter that sharpens (1), keeps (0) or smooths (-1)."""
    smooth = np.ones((3, 3), np.float32)
    smooth[1, 1] = 5
    keep = np.zeros((3, 3), np.float32)
    keep[1, 1] = 1
    return keep + magnitude * (keep - smooth / smooth.sum())


def sharpness_kernel_shifted(magnitude: Any) -> np.ndarray:
    """Returns `sharpness_kernel` for magnitudes from 0 to 2, where 1 keeps the image."""
    return sharpness_kernel(magnitude - 1)


class _Sharpness(Augmentation):
    """Maps a filter to its strength: workers take a strength, not an arbitrary filter."""

    def parameter_of(self, magnitude: Any) -> np.ndarray:
        """Returns the factor: the filter that mag_to_param gives has a magnitude, and the factor is 1 more."""
        kernel = super().parameter_of(magnitude)
        strength = -kernel[0, 0] / np.float32(1 / 13) if kernel.shape == (3, 3) else np.nan
        if not np.allclose(kernel, sharpness_kernel(strength), atol=1e-5):
            raise refused(
                f"augmentation {self.name}: mag_to_param gives a filter of its own for the magnitude "
                f"{magnitude}; expected what sharpness_kernel gives: workers have no other filters"
            )
        return np.asarray(1 + strength, np.float32)


@augmentation(
    mag_range=(0, 0.9),
    randomly_negate=True,
    mag_to_param=sharpness_kernel,
    param_device="auto",
    augmentation_cls=_Sharpness,
)
def sharpness(data: DataNode, factor: DataNode) -> DataNode:
    """Adds a factor of the difference between the image and its smoothed form to the latter; 1 keeps the image."""
    return _changed("sharpness", data, factor)


def poster_mask_uint8(magnitude: Any) -> np.ndarray:
    """Returns the mask of the highest bits; their number is the magnitude, rounded, within 1 to 8."""
    kept = min(max(int(np.round(magnitude)), 1), _BYTE_BITS)
    return np.asarray(256 - (1 << (_BYTE_BITS - kept)), np.uint8)


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8, param_device="auto")
def posterize(data: DataNode, mask: DataNode) -> DataNode:
    """Keeps the bits of the mask."""
    return data & mask


@augmentation(mag_range=(256, 0), param_device="auto")
def solarize(data: DataNode, threshold: DataNode) -> DataNode:
    """Replaces values from the threshold on by 255 minus the value."""
    return _changed("solarize", data, threshold)


def solarize_add_shift(shift: Any) -> Any:
    """Returns the amount to add to the lower half of the values, which must not leave the range of bytes."""
    if not 0 <= shift < 128:
        raise refused(f"augmentation solarize_add: shift = {shift!r:.60}; expected 0 to 127")
    return np.uint8(shift)


@augmentation(mag_range=(0, 110), param_device="auto", mag_to_param=solarize_add_shift)
def solarize_add(data: DataNode, shift: DataNode) -> DataNode:
    """Adds the shift to values below 128."""
    return _changed("solarize_add", data, shift)


@augmentation
def invert(data: DataNode, _: Any) -> DataNode:
    """Replaces each value by 255 minus the value."""
    return _changed("invert", data)


@augmentation
def equalize(data: DataNode, _: Any) -> DataNode:
    """Equalizes each channel's histogram."""
    return _changed("equalize", data)


@augmentation
def auto_contrast(data: DataNode, _: Any) -> DataNode:
    """Stretches each channel to 0 … 255."""
    return _changed("auto_contrast", data)


@augmentation
def identity(data: DataNode, _: Any) -> DataNode:
    """Returns the image unchanged."""
    return data

# SPDX-License-Identifier: Apache-2.0
"""Former names of DALI's operators, which scripts still use."""

from __future__ import annotations

import warnings

# The present name of each former function of `fn`.
LEGACY = {
    "caffe2_reader": "readers.caffe2",
    "caffe_reader": "readers.caffe",
    "coco_reader": "readers.coco",
    "coin_flip": "random.coin_flip",
    "file_reader": "readers.file",
    "image_decoder": "decoders.image",
    "image_decoder_crop": "decoders.image_crop",
    "image_decoder_random_crop": "decoders.image_random_crop",
    "image_decoder_slice": "decoders.image_slice",
    "mxnet_reader": "readers.mxnet",
    "normal_distribution": "random.normal",
    "numpy_reader": "readers.numpy",
    "tfrecord_reader": "readers.tfrecord",
    "uniform": "random.uniform",
}


def warn_of_legacy(old: str, new: str) -> None:
    """Gives a DeprecationWarning at the line that uses the old name."""
    warnings.warn(f"{old} is deprecated; use {new}", DeprecationWarning, stacklevel=3)

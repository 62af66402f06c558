# SPDX-License-Identifier: Apache-2.0
"""The constants that rocAL's scripts name."""

from __future__ import annotations

import enum
from typing import Any


class _Constant(enum.IntEnum):
    """The base of all groups of constants."""


class Status(_Constant):
    """The results of `Pipeline.rocal_run`."""

    OK = 0
    CONTEXT_INVALID = 1
    RUNTIME_ERROR = 2
    UPDATE_PARAMETER_FAILED = 3
    INVALID_PARAMETER_TYPE = 4


class ProcessMode(_Constant):
    """The processor on which rocAL computes."""

    GPU = 0
    CPU = 1


class TensorType(_Constant):
    """The type of an output's values."""

    FLOAT = 0
    FLOAT16 = 1
    UINT8 = 2
    INT8 = 3
    UINT32 = 4
    INT32 = 5
    INT16 = 6


class MemoryType(_Constant):
    """The memory in which rocAL leaves an output."""

    HOST_MEMORY = 0
    DEVICE_MEMORY = 1
    PINNED_MEMORY = 2


class SizePolicy(_Constant):
    """The size that rocAL gives to decoded images."""

    MAX_SIZE = 0
    USER_GIVEN_SIZE = 1
    MOST_FREQUENT_SIZE = 2
    MAX_SIZE_ORIG = 3
    USER_GIVEN_SIZE_ORIG = 4


class Color(_Constant):
    """The colours of an image."""

    RGB = 0
    BGR = 1
    GRAY = 2
    RGB_PLANAR = 3


class Layout(_Constant):
    """The order of an output's axes."""

    NHWC = 0
    NCHW = 1
    NFHWC = 2
    NFCHW = 3
    NHW = 4
    NFT = 5
    NTF = 6
    NONE = 7


class DecodeDevice(_Constant):
    """The processor on which rocAL decodes videos."""

    HARDWARE_DECODE = 0
    SOFTWARE_DECODE = 1


class Decoder(_Constant):
    """The decoder that rocAL uses."""

    DECODER_TJPEG = 0
    DECODER_OPENCV = 1
    DECODER_HW_JEPG = 2
    DECODER_VIDEO_FFMPEG_SW = 3
    DECODER_VIDEO_FFMPEG_HW = 4
    DECODER_AUDIO_GENERIC = 5
    DECODER_VIDEO_ROCDECODE = 6
    DECODER_ROCJPEG = 7


class ScalingMode(_Constant):
    """The rule for a resized image's size."""

    SCALING_MODE_DEFAULT = 0
    SCALING_MODE_STRETCH = 1
    SCALING_MODE_NOT_SMALLER = 2
    SCALING_MODE_NOT_LARGER = 3
    SCALING_MODE_MIN_MAX = 4


class Interpolation(_Constant):
    """The filter between pixels."""

    NEAREST_NEIGHBOR_INTERPOLATION = 0
    LINEAR_INTERPOLATION = 1
    CUBIC_INTERPOLATION = 2
    LANCZOS_INTERPOLATION = 3
    GAUSSIAN_INTERPOLATION = 4
    TRIANGULAR_INTERPOLATION = 5


class ExternalSourceMode(_Constant):
    """The kind of data that rocAL's external source gives."""

    EXTSOURCE_FNAME = 0
    EXTSOURCE_RAW_COMPRESSED = 1
    EXTSOURCE_RAW_UNCOMPRESSED = 2


class LastBatchPolicy(_Constant):
    """The treatment of the samples of a shard that fill no batch.

    LAST_BATCH_MASK, only in Leat: the last sample is repeated, as LAST_BATCH_FILL does with pad_last_batch=True, and
    each batch ends with a bool array that is False for the rows that fill.
    """

    LAST_BATCH_FILL = 0
    LAST_BATCH_DROP = 1
    LAST_BATCH_PARTIAL = 2
    LAST_BATCH_MASK = 3


class MissingComponent(_Constant):
    """The treatment of a WebDataset sample without one of its components."""

    MISSING_COMPONENT_ERROR = 0
    MISSING_COMPONENT_SKIP = 1
    MISSING_COMPONENT_EMPTY = 2


OK = Status.OK
CONTEXT_INVALID = Status.CONTEXT_INVALID
RUNTIME_ERROR = Status.RUNTIME_ERROR
UPDATE_PARAMETER_FAILED = Status.UPDATE_PARAMETER_FAILED
INVALID_PARAMETER_TYPE = Status.INVALID_PARAMETER_TYPE
GPU = ProcessMode.GPU
CPU = ProcessMode.CPU
FLOAT = TensorType.FLOAT
FLOAT16 = TensorType.FLOAT16
UINT8 = TensorType.UINT8
INT8 = TensorType.INT8
UINT32 = TensorType.UINT32
INT32 = TensorType.INT32
INT16 = TensorType.INT16
HOST_MEMORY = MemoryType.HOST_MEMORY
DEVICE_MEMORY = MemoryType.DEVICE_MEMORY
PINNED_MEMORY = MemoryType.PINNED_MEMORY
MAX_SIZE = SizePolicy.MAX_SIZE
USER_GIVEN_SIZE = SizePolicy.USER_GIVEN_SIZE
MOST_FREQUENT_SIZE = SizePolicy.MOST_FREQUENT_SIZE
MAX_SIZE_ORIG = SizePolicy.MAX_SIZE_ORIG
USER_GIVEN_SIZE_ORIG = SizePolicy.USER_GIVEN_SIZE_ORIG
RGB = Color.RGB
BGR = Color.BGR
GRAY = Color.GRAY
RGB_PLANAR = Color.RGB_PLANAR
NHWC = Layout.NHWC
NCHW = Layout.NCHW
NFHWC = Layout.NFHWC
NFCHW = Layout.NFCHW
NHW = Layout.NHW
NFT = Layout.NFT
NTF = Layout.NTF
NONE = Layout.NONE
HARDWARE_DECODE = DecodeDevice.HARDWARE_DECODE
SOFTWARE_DECODE = DecodeDevice.SOFTWARE_DECODE
DECODER_TJPEG = Decoder.DECODER_TJPEG
DECODER_OPENCV = Decoder.DECODER_OPENCV
DECODER_HW_JEPG = Decoder.DECODER_HW_JEPG
DECODER_VIDEO_FFMPEG_SW = Decoder.DECODER_VIDEO_FFMPEG_SW
DECODER_VIDEO_FFMPEG_HW = Decoder.DECODER_VIDEO_FFMPEG_HW
DECODER_AUDIO_GENERIC = Decoder.DECODER_AUDIO_GENERIC
DECODER_VIDEO_ROCDECODE = Decoder.DECODER_VIDEO_ROCDECODE
DECODER_ROCJPEG = Decoder.DECODER_ROCJPEG
SCALING_MODE_DEFAULT = ScalingMode.SCALING_MODE_DEFAULT
SCALING_MODE_STRETCH = ScalingMode.SCALING_MODE_STRETCH
SCALING_MODE_NOT_SMALLER = ScalingMode.SCALING_MODE_NOT_SMALLER
SCALING_MODE_NOT_LARGER = ScalingMode.SCALING_MODE_NOT_LARGER
SCALING_MODE_MIN_MAX = ScalingMode.SCALING_MODE_MIN_MAX
NEAREST_NEIGHBOR_INTERPOLATION = Interpolation.NEAREST_NEIGHBOR_INTERPOLATION
LINEAR_INTERPOLATION = Interpolation.LINEAR_INTERPOLATION
CUBIC_INTERPOLATION = Interpolation.CUBIC_INTERPOLATION
LANCZOS_INTERPOLATION = Interpolation.LANCZOS_INTERPOLATION
GAUSSIAN_INTERPOLATION = Interpolation.GAUSSIAN_INTERPOLATION
TRIANGULAR_INTERPOLATION = Interpolation.TRIANGULAR_INTERPOLATION
EXTSOURCE_FNAME = ExternalSourceMode.EXTSOURCE_FNAME
EXTSOURCE_RAW_COMPRESSED = ExternalSourceMode.EXTSOURCE_RAW_COMPRESSED
EXTSOURCE_RAW_UNCOMPRESSED = ExternalSourceMode.EXTSOURCE_RAW_UNCOMPRESSED
LAST_BATCH_FILL = LastBatchPolicy.LAST_BATCH_FILL
LAST_BATCH_DROP = LastBatchPolicy.LAST_BATCH_DROP
LAST_BATCH_PARTIAL = LastBatchPolicy.LAST_BATCH_PARTIAL
LAST_BATCH_MASK = LastBatchPolicy.LAST_BATCH_MASK
MISSING_COMPONENT_ERROR = MissingComponent.MISSING_COMPONENT_ERROR
MISSING_COMPONENT_SKIP = MissingComponent.MISSING_COMPONENT_SKIP
MISSING_COMPONENT_EMPTY = MissingComponent.MISSING_COMPONENT_EMPTY


def data_type_function(dtype: Any) -> str:
    """Returns the name of a constant. Raises RuntimeError for anything else."""
    if isinstance(dtype, _Constant):
        return dtype.name
    raise RuntimeError(f"{dtype!r} is none of the constants of leat.rocal.types")

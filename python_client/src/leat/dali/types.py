# SPDX-License-Identifier: Apache-2.0
"""The constants of `nvidia.dali.types`: data types, colours, filters, layouts, and the infos for external sources."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np

from leat.dali import _node
from leat.errors import InvalidArgument


class _Word(enum.Enum):
    def __int__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__


class DALIDataType(_Word):
    """Types of elements."""

    NO_TYPE = -1
    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    UINT64 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    FLOAT16 = 8
    FLOAT = 9
    FLOAT64 = 10
    BOOL = 11
    STRING = 12


class DALIImageType(_Word):
    """Colours of an image."""

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4


class DALIInterpType(_Word):
    """Filters of resampling."""

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5


UINT8, UINT16, UINT32, UINT64 = DALIDataType.UINT8, DALIDataType.UINT16, DALIDataType.UINT32, DALIDataType.UINT64
INT8, INT16, INT32, INT64 = DALIDataType.INT8, DALIDataType.INT16, DALIDataType.INT32, DALIDataType.INT64
FLOAT16, FLOAT, FLOAT64 = DALIDataType.FLOAT16, DALIDataType.FLOAT, DALIDataType.FLOAT64
BOOL, NO_TYPE, STRING = DALIDataType.BOOL, DALIDataType.NO_TYPE, DALIDataType.STRING
RGB, BGR, GRAY = DALIImageType.RGB, DALIImageType.BGR, DALIImageType.GRAY
YCbCr: DALIImageType = DALIImageType.YCbCr
ANY_DATA = DALIImageType.ANY_DATA
INTERP_NN, INTERP_LINEAR, INTERP_CUBIC = (
    DALIInterpType.INTERP_NN,
    DALIInterpType.INTERP_LINEAR,
    DALIInterpType.INTERP_CUBIC,
)
INTERP_LANCZOS3, INTERP_TRIANGULAR, INTERP_GAUSSIAN = (
    DALIInterpType.INTERP_LANCZOS3,
    DALIInterpType.INTERP_TRIANGULAR,
    DALIInterpType.INTERP_GAUSSIAN,
)
NCHW, NHWC, NFCHW, NFHWC = "CHW", "HWC", "FCHW", "FHWC"

_NUMPY = {
    UINT8: np.uint8,
    UINT16: np.uint16,
    UINT32: np.uint32,
    UINT64: np.uint64,
    INT8: np.int8,
    INT16: np.int16,
    INT32: np.int32,
    INT64: np.int64,
    FLOAT16: np.float16,
    FLOAT: np.float32,
    FLOAT64: np.float64,
    BOOL: np.bool_,
}
_OF_NUMPY = {np.dtype(value): key for key, value in _NUMPY.items()}
# The types that workers compute with.
_OURS = {"bool", "uint8", "int32", "int64", "float16", "float32"}
# Those that workers carry, and do not compute with.
_CARRIED = {"int8", "int16", "uint16", "uint32"}
_OF_CARRIED = {"fn.cast", "fn.readers.webdataset"}
_PIXELS = {"uint8", "float16", "float32"}
_DECODERS = ("image", "image_crop", "image_random_crop", "image_slice")
_OF_PIXELS = {"fn.crop_mirror_normalize", *(f"fn.decoders.{each}" for each in _DECODERS)}


def to_numpy_type(dali_type: DALIDataType) -> Any:
    """Returns NumPy's type."""
    try:
        return _NUMPY[dali_type]
    except KeyError:
        raise InvalidArgument(f"{dali_type!r} has no type of NumPy's") from None


def cast_of(method: str) -> DALIDataType | None:
    """Returns the type that a method of ScalarConstant casts to; None: the method does not cast."""
    return next((key for key, value in _NUMPY.items() if np.dtype(value).name == method), None)


def from_numpy_type(numpy_type: Any) -> DALIDataType:
    """Returns DALI's type for a NumPy type."""
    try:
        return _OF_NUMPY[np.dtype(numpy_type)]
    except (KeyError, TypeError):
        raise InvalidArgument(f"{numpy_type!r} is no type of DALI's") from None


def computed_by(operator: str) -> set[str]:
    """Returns the names of the output types that an operator, such as "fn.cast", supports."""
    if operator in _OF_CARRIED:
        return _OURS | _CARRIED
    return _PIXELS if operator in _OF_PIXELS else _OURS


def name_of(where: str, dtype: Any, allowed: set[str] = _OURS) -> str:
    """Returns the name of a type in Leat's operators; raises InvalidArgument with the possible ones."""
    if isinstance(dtype, DALIDataType):
        name = np.dtype(_NUMPY[dtype]).name if dtype in _NUMPY else str(dtype)
    else:
        try:
            name = np.dtype(dtype).name
        except TypeError:
            raise InvalidArgument(f"{where} = {dtype!r:.80}; expected a DALIDataType") from None
    if name not in allowed:
        possible = ", ".join(str(from_numpy_type(each)) for each in sorted(allowed))
        raise InvalidArgument(f"{where} = {dtype!r}; Leat's workers compute {possible}")
    return name


_COLOURS = {RGB: "rgb", BGR: "bgr", GRAY: "gray", YCbCr: "ycbcr"}
_FILTERS = {
    INTERP_NN: "nearest",
    INTERP_LINEAR: "linear",
    INTERP_TRIANGULAR: "linear",
    INTERP_CUBIC: "cubic",
    INTERP_LANCZOS3: "lanczos3",
    INTERP_GAUSSIAN: "gaussian",
}


def colours_of(where: str, image_type: Any) -> str:
    """Returns the name of colours in Leat's operators."""
    if image_type is ANY_DATA:
        raise InvalidArgument(f"{where} = ANY_DATA; Leat decodes to RGB, BGR, GRAY or YCbCr: alpha is dropped")
    if not isinstance(image_type, DALIImageType) or image_type not in _COLOURS:
        raise InvalidArgument(f"{where} = {image_type!r:.80}; expected types.RGB, BGR, GRAY or YCbCr")
    return _COLOURS[image_type]


def filter_of(where: str, interp_type: Any) -> str:
    """Returns the name of a filter in Leat's operators."""
    if not isinstance(interp_type, DALIInterpType):
        raise InvalidArgument(f"{where} = {interp_type!r:.80}; expected a DALIInterpType, the same for every sample")
    return _FILTERS[interp_type]


@dataclasses.dataclass
class SampleInfo:
    """The sample that an external source is asked for."""

    idx_in_epoch: int
    idx_in_batch: int
    iteration: int
    epoch_idx: int


@dataclasses.dataclass
class BatchInfo:
    """The batch that an external source is asked for."""

    iteration: int
    epoch_idx: int


class PipelineAPIType(enum.Enum):
    """The way in which a pipeline is run: by run, by an iterator over it, or by schedule_run and outputs."""

    BASIC = 0
    ITERATOR = 1
    SCHEDULED = 2


_NUMBERS = (bool, int, float, np.number, np.bool_)


_NARROWER = {"float64": "float32", "int64": "int32"}


def _is_whole(name: str) -> bool:
    return name != "bool" and not name.startswith("float")


def saturated(array: np.ndarray, name: str) -> np.ndarray:
    """Converts numbers to a type as DALI does: rounds float32 with halves away from zero, and cuts to the bounds."""
    if not _is_whole(name):
        return array.astype(name)
    if array.dtype.kind == "f":
        wide = array.astype(np.float32).astype(np.float64)
        if np.isnan(wide).any():
            raise InvalidArgument(f"a constant of {name} has a NaN in it; expected numbers")
        array = np.trunc(wide + np.copysign(0.5, wide))
    elif array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(2**63 - 1))
    array = array if array.dtype.kind == "f" else array.astype(np.int64)
    bounds = np.iinfo(name)
    low, high = array <= bounds.min, array >= bounds.max
    within = np.where(low | high, 0, array).astype(name)
    return np.where(low, bounds.min, np.where(high, bounds.max, within)).astype(name)


def _narrowed(where: str, value: Any, array: np.ndarray) -> np.ndarray:
    """Returns 64 bits as 32, as DALI documents it for arrays; Python's own numbers have to fit."""
    narrow = array.astype(_NARROWER.get(array.dtype.name, array.dtype))
    if array.dtype.kind in "iu" and not isinstance(value, np.ndarray) and not np.array_equal(narrow, array):
        raise InvalidArgument(f"{where}: value = {value!r:.60}; expected whole numbers of 32 bits, or dtype")
    return narrow


def _elements(value: Any, dtype: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(f"Constant: value = {value!r:.60}; expected numbers")
    if dtype is None:
        return _narrowed("Constant", value, array)
    return saturated(array, name_of("Constant: dtype", dtype))


def _scalar(value: Any, dtype: Any) -> np.ndarray:
    """Returns one number as DALI's ScalarConstant holds it: int() drops a fraction; NumPy's numbers keep their type."""
    array = np.asarray(value)
    if dtype is None and isinstance(value, np.generic):
        return array.astype("float32") if array.dtype == np.float64 else array
    if dtype is None:
        return _narrowed("ScalarConstant", value, array)
    name = name_of("ScalarConstant: dtype", dtype)
    if not _is_whole(name):
        return array.astype(name)
    try:
        whole = np.asarray(int(value), np.int64)
    except (OverflowError, ValueError):
        raise InvalidArgument(f"ScalarConstant: value = {value!r:.60} of {dtype!r}; expected a number") from None
    if name != "int64" and not -(2**31) <= int(whole) < 2**31:
        raise InvalidArgument(f"ScalarConstant: value = {value!r:.60} of {dtype!r}; expected 32 bits")
    return whole.astype(name)


_Cast: TypeAlias = Callable[["ScalarConstant"], "ScalarConstant"]


def _as(dtype: DALIDataType) -> _Cast:
    def method(self: ScalarConstant) -> ScalarConstant:
        return ScalarConstant(self.value, dtype)

    method.__doc__ = f"The same number as {dtype.name}; raises InvalidArgument if workers do not compute that."
    return method


class ScalarConstant(_node.DataNode):
    """A constant of one number, the same for every sample.

    Attributes:
        value: the number, as a Python value.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any, dtype: DALIDataType | None = None) -> None:
        if not isinstance(value, _NUMBERS):
            raise TypeError(f"ScalarConstant: value = {value!r:.60} ({type(value).__name__}); expected a number")
        array = _scalar(value, dtype)
        made = _node.constant(array)
        super().__init__(made.node, sizes=(), dtype=made.dtype)
        self.value: Any = array.item()

    bool: ClassVar[_Cast] = _as(BOOL)
    uint8: ClassVar[_Cast] = _as(UINT8)
    uint16: ClassVar[_Cast] = _as(UINT16)
    uint32: ClassVar[_Cast] = _as(UINT32)
    uint64: ClassVar[_Cast] = _as(UINT64)
    int8: ClassVar[_Cast] = _as(INT8)
    int16: ClassVar[_Cast] = _as(INT16)
    int32: ClassVar[_Cast] = _as(INT32)
    int64: ClassVar[_Cast] = _as(INT64)
    float16: ClassVar[_Cast] = _as(FLOAT16)
    float32: ClassVar[_Cast] = _as(FLOAT)
    float64: ClassVar[_Cast] = _as(FLOAT64)


def Constant(  # noqa: N802 (DALI's name)
    value: Any,
    dtype: DALIDataType | None = None,
    shape: Any = None,
    layout: str | None = None,
    device: str | None = None,
    *,
    name: str | None = None,
) -> Any:
    """Returns a value that is the same for every sample.

    Args:
        value: a number, a list of numbers, or an array.
        dtype: the type of the elements; None: an array's own (float64 becomes float32), int32, float32 or bool for
            numbers.
        shape: the shape of the result; a number fills it, a list must have as many elements.
        layout: the names of its axes.
        device: "gpu": the script has it on the GPU, as after `.gpu()`.
        name: accepted; only sources and readers are looked up by name.

    Returns:
        A node; a ScalarConstant for a number that is given neither layout nor device, and no shape but that of one
        element.
    """
    if name is not None and not isinstance(name, str):
        raise TypeError(f"Constant: name = {name!r:.60}; expected a text")
    one = shape is None or not isinstance(shape, _node.DataNode) and np.size(shape) <= 1 and np.prod(shape) == 1
    if one and layout is None and device is None and isinstance(value, _NUMBERS):
        return ScalarConstant(value, dtype)
    array = _elements(value, dtype)
    if shape is not None:
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        if array.size != 1 and array.size != int(np.prod(sizes)):
            raise InvalidArgument(f"Constant: {array.size} values for shape {sizes}")
        array = np.broadcast_to(array, sizes) if array.size == 1 else array.reshape(sizes)
    node = _node.constant(array, layout=layout)
    return node.on("gpu") if device == "gpu" else node

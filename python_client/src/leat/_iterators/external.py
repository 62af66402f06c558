# SPDX-License-Identifier: Apache-2.0
"""Samples that come from this process: `external_source`, and the threads that supply iterators with them."""

from __future__ import annotations

import ctypes
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from leat._graphs.graph import Node, Operation
from leat._library import dtypes, native, threads
from leat.errors import Error, FailedPrecondition, InvalidArgument, OutOfRange

_OP = "readers.external"
# Larger samples are copied without the GIL; for smaller ones, releasing it costs more.
_SMALL_BYTES = 64 << 10
_UNKNOWN = 2  # the code of an exception that is not a leat.Error

# "encoded", "uint8[28,28]", "float32[?,4]"; or a dtype and a shape, where None stands for any size.
Type = str | tuple[Any, Sequence[int | None]]


class _FieldType(NamedTuple):
    text: str
    dtype: np.dtype | None  # None: an encoded image
    shape: tuple[int | None, ...]

    @classmethod
    def parse(cls, text: str) -> _FieldType:
        """REQUIRES: the library has checked the text."""
        if text == "encoded":
            return cls(text, None, ())
        name, _, sizes = ("uint8[?]" if text == "bytes" else text).rstrip("]").partition("[")
        shape = tuple(None if size == "?" else int(size) for size in sizes.split(",")) if sizes else ()
        return cls(text, dtypes.of(name), shape)

    @property
    def is_open(self) -> bool:
        return None in self.shape

    def array(self, value: Any) -> np.ndarray:
        """Returns the value as contiguous memory; raises InvalidArgument if it is of another type."""
        if isinstance(value, (bytes, bytearray, memoryview)) and (self.dtype is None or self.shape == (None,)):
            value = np.frombuffer(value, np.uint8) if len(value) else np.empty(0, np.uint8)
        if self.dtype is None:
            if isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 1 and value.size:
                return np.ascontiguousarray(value)
            raise InvalidArgument(f"got {_shown(value)}; expected the bytes of an image file")
        array = np.asarray(value)
        if not hasattr(value, "dtype") and array.dtype.kind in "biuf":
            array = self._as_wanted(array)  # Python's numbers have no type of their own
        fits = len(array.shape) == len(self.shape) and all(
            want is None or want == size for want, size in zip(self.shape, array.shape)
        )
        if array.dtype != self.dtype or not fits:
            raise InvalidArgument(f"got {_shown(value)}; expected {self.text}")
        return np.asarray(array, order="C")

    def _as_wanted(self, array: np.ndarray) -> np.ndarray:
        """Returns the numbers in the type, if it holds them; floats are rounded to it."""
        if self.dtype is None or array.dtype == self.dtype or dtypes.is_bits(self.dtype):
            return array
        converted = array.astype(self.dtype)
        floats = array.dtype.kind == "f" and "float" in self.dtype.name
        return converted if floats or np.array_equal(converted, array) else array


def _shown(value: Any) -> str:
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{value.dtype} of shape {value.shape}"
    return f"{type(value).__name__} {value!r:.60}"


def _type_text(given: Any) -> str:
    if isinstance(given, str):
        return given
    try:
        dtype, shape = given
        name = dtypes.name_of(dtype)
        sizes = ["?" if size is None else str(size.__index__()) for size in shape]
    except (TypeError, ValueError, AttributeError):
        raise InvalidArgument(
            f"types has {given!r:.80}; expected a text such as 'encoded', 'int32', 'uint8[?,?,3]', or (dtype, shape)"
        ) from None
    if name not in dtypes.NAMES:
        raise InvalidArgument(f"types has dtype {name}; expected one of {', '.join(dtypes.NAMES)}")
    return f"{name}[{','.join(sizes)}]" if sizes else name


class Source:
    """The source that was given to external_source; it is asked for one sample at a time, from any thread.

    Attributes:
        in_order: it gives samples only one after the other.
    """

    def __init__(self, source: Any) -> None:
        self.given = source
        self._lock = threading.Lock()
        self._spent = False
        self.in_order: bool = False
        if isinstance(source, Mapping):
            raise InvalidArgument(
                f"source is a mapping, {_shown(source)}, whose keys are no sample numbers; expected a function of a "
                "sample's number, a sequence, or an iterable, such as list(source.values())"
            )
        if callable(source):
            parameters = _positional_parameters(source)
            if parameters == 0:
                self.in_order = True
            elif parameters == 1:
                self._read: Callable[[int, int], Any] = lambda epoch, sample: source(sample)
            else:
                self._read = source
        elif hasattr(source, "__getitem__"):
            self._read = lambda epoch, sample: source[sample]
        elif isinstance(source, Iterable):
            self.in_order = True
        else:
            raise InvalidArgument(
                f"source is {_shown(source)}; expected a function of a sample's number, a sequence, or an iterable"
            )

    def check_length(self, num_samples: int) -> None:
        """Raises InvalidArgument if the source knows its length and has too few samples."""
        length = _length(self.given)
        if length is not None and length < num_samples:
            raise InvalidArgument(f"source has {length} samples; expected {num_samples}, as num_samples says")

    def reader(self, num_samples: int) -> Callable[[int, int], Any]:
        """Returns a function of epoch and sample, for one iterator over batches."""
        return _InOrder(self, num_samples) if self.in_order else self.read

    def read(self, epoch: int, sample: int) -> Any:
        """Returns the value of one sample. REQUIRES: not in_order."""
        with self._lock:
            return self._read(epoch, sample)

    def epoch(self) -> Any:
        """Returns an iterator over one epoch's samples. REQUIRES: in_order."""
        iterable = self.given() if callable(self.given) else self.given
        iterator = iter(iterable)
        if iterator is self.given:
            if self._spent:
                raise FailedPrecondition(
                    "the source is an iterator, which gives its samples once; for several epochs or iterators give an "
                    "iterable that begins anew (a function that returns a generator), or a function of the sample's "
                    "number"
                )
            self._spent = True
        return iterator


class _InOrder:
    """Reads samples of a source that gives them one after the other."""

    def __init__(self, source: Source, num_samples: int) -> None:
        self._source = source
        self._num_samples = num_samples
        self._epoch: int | None = None
        self._iterator: Any = None
        self._next = 0

    def __call__(self, epoch: int, sample: int) -> Any:
        if epoch != self._epoch:
            self._iterator, self._epoch, self._next = self._source.epoch(), epoch, 0
        while True:
            try:
                value = next(self._iterator)
            except StopIteration:
                raise OutOfRange(
                    f"the source ended after {self._next} samples; expected {self._num_samples}, as num_samples says"
                ) from None
            self._next += 1
            if self._next > sample:  # samples before it were delivered before the position
                return value


def _positional_parameters(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function in C: assume one argument, as most have
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(each.kind in kinds and each.default is each.empty for each in parameters)
    if count == 0 and any(each.kind in (*kinds, inspect.Parameter.VAR_POSITIONAL) for each in parameters):
        count = 1
    if count > 2:
        raise InvalidArgument(f"source {function!r:.80} takes {count} arguments; expected (sample) or (epoch, sample)")
    return count


def _length(source: Any) -> int | None:
    try:
        return len(source)
    except TypeError:
        return None


@overload
def external_source(
    source: Any, types: str, *, num_samples: int | None = ..., name: str = ...
) -> Node: ...
@overload
def external_source(
    source: Any, types: list[Type] | tuple[str, ...], *, num_samples: int | None = ..., name: str = ...
) -> tuple[Node, ...]: ...
@overload
def external_source(
    source: Any, types: tuple[Any, Sequence[int | None]], *, num_samples: int | None = ..., name: str = ...
) -> Node: ...
@overload
def external_source(
    source: Any, types: Sequence[Type], *, num_samples: int | None = ..., name: str = ...
) -> tuple[Node, ...]: ...
def external_source(
    source: Any,
    types: Type | Sequence[Type],
    *,
    num_samples: int | None = None,
    name: str = "external",
) -> Node | tuple[Node, ...]:
    """A reader of samples that this process supplies, for use in a `leat.pipeline`.

    Workers decode and augment them like any others; order, sharding, epochs, positions and fail-over are those of any
    dataset. A process is asked only for the samples of its own rows, ahead of the batches, by a thread of its own.

        photos = leat.external_source(read_photo, ("encoded", "int32"), num_samples=50_000)

    Every process of a job makes the same pipeline, with a source of the same data. A process that attaches to the job
    by its name passes `Job.batches(source=...)`.

    Args:
        source: gives a sample's value, or a tuple of values if there are several types. It is a function of the
            sample's number, or of epoch and number; or a sequence (anything with `source[number]`, as a torch Dataset).
            Both may be asked for any sample, also twice, and must answer the same: batches are then a pure function of
            the job. Or it is an iterable, or a function without arguments that returns one for each epoch. An iterable
            is consumed in order, so the job must have shuffle=False, last_batch other than "fill" and no num_parts, and
            the process must take all rows; continuing from a position skips the samples before it. One call at a time.
        types: the type of each value: "encoded" (an image file's bytes), "bytes", "int32" (a number), "float32[4]",
            "uint8[?,?,3]" (an array whose first sizes vary); or a dtype and a shape: ("uint8", (None, None, 3)).
            Elements are bool, int8 to int64, uint8 to uint32, float16, float32 or bfloat16.
        num_samples: how many samples there are; None: the source's length.
        name: the data's name, part of the plan hash: equal names, types and numbers promise equal samples.

    Returns:
        A node; a tuple of nodes if `types` is a list or a tuple of types.

    Raises:
        leat.InvalidArgument: a type is wrong, or the source is none of these.
    """
    wrapped = Source(source)
    if num_samples is None:
        num_samples = _length(source)
        if num_samples is None:
            raise InvalidArgument(f"num_samples must be given: the source, {_shown(source)}, has no length")
    if isinstance(num_samples, bool) or not hasattr(num_samples, "__index__"):
        raise InvalidArgument(f"num_samples = {num_samples!r:.40}; expected a whole number")
    if not isinstance(name, str):
        raise InvalidArgument(f"name = {name!r:.40}; expected a text")
    wrapped.check_length(num_samples)
    one = not isinstance(types, (tuple, list)) or _is_pair(types)
    texts = [_type_text(each) for each in ([types] if one else types)]
    operation = Operation(_OP, (), {"num_samples": num_samples.__index__(), "types": texts, "name": name})
    operation.source = wrapped
    nodes = tuple(Node(operation, i) for i in range(len(texts)))
    return nodes[0] if one else nodes


def _is_pair(types: Any) -> bool:
    """True if it is (dtype, shape), and not a list of types."""
    if not isinstance(types, tuple) or len(types) != 2 or not isinstance(types[1], (tuple, list)):
        return False
    return not any(isinstance(each, (str, tuple, list)) for each in types[1])


class Reader(NamedTuple):
    """The external reader of a job."""

    name: str
    num_samples: int
    types: tuple[_FieldType, ...]

    @classmethod
    def of(cls, spec: dict[str, Any]) -> Reader | None:
        """Returns the reader in a job's spec in JSON form; None: workers read its samples themselves."""
        for node in spec.get("pipeline", {}).get("nodes", ()):
            if node.get("op") != _OP:
                continue
            args = node["args"]
            value = {name: next(iter(args[name].values())) for name in ("name", "num_samples", "types")}
            types = tuple(_FieldType.parse(text) for text in value["types"]["values"])
            return cls(value["name"], int(value["num_samples"]), types)
        return None

    def fields(self, value: Any) -> list[np.ndarray]:
        """Returns a sample's value as the library takes it."""
        if len(self.types) == 1 and not (isinstance(value, tuple) and len(value) == 1):
            value = (value,)
        if not isinstance(value, (tuple, list)) or len(value) != len(self.types):
            got = f"{len(value)} values" if isinstance(value, (tuple, list)) else _shown(value)
            raise InvalidArgument(f"got {got}; expected a tuple of {len(self.types)}")
        arrays = []
        for i, (each, type_) in enumerate(zip(value, self.types)):
            try:
                arrays.append(type_.array(each))
            except InvalidArgument as error:
                raise InvalidArgument(f"value {i}: {error}") from None
        return arrays

    def pointer(self, arrays: list[np.ndarray]) -> Any:
        """Returns a leat_field array, which is valid as long as `arrays`."""
        fields = (native.Field * len(arrays))()
        for field, array, type_ in zip(fields, arrays, self.types):
            field.data, field.bytes = array.ctypes.data, array.nbytes
            if type_.is_open:
                field.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
                field.rank = array.ndim
        return fields

    def chosen(self, source: Any, job: str, options: dict[str, Any]) -> Source:
        """Returns the source for an iterator of the job, checked against what the iterator needs.

        Args:
            source: None, what external_source takes, or a Source.
            job: the job's name.
            options: conditions that a source that gives samples in order does not support: their texts, and whether
                they hold.
        """
        if source is None:
            raise FailedPrecondition(
                f"job {job!r}: its {self.num_samples} samples {self.name!r} are in no storage, each consumer supplies "
                "those of its rows; expected source=..., or a job made here of a pipeline with leat.external_source"
            )
        if not isinstance(source, Source):
            source = Source(source)
        source.check_length(self.num_samples)
        for text, is_so in options.items():
            if source.in_order and is_so:
                raise InvalidArgument(
                    f"job {job!r}: source {source.given!r:.60} gives samples in order only, but {text}; expected "
                    "shuffle=False, last_batch other than 'fill', no num_parts and all rows, or a source that can be "
                    "asked for any sample (a function of its number, a sequence)"
                )
        return source


class Feeder:
    """Supplies one iterator with samples, by a thread that ends with it.

    The thread has no reference to the iterator, so that this may be collected; closing it does not wait for the source.

    Attributes:
        error: the exception that the source raised; None: it raised none.
    """

    def __init__(self, feed: native.Cell, reader: Reader, source: Source) -> None:
        self.error: BaseException | None = None
        assert feed.made.value is not None
        self._cell: native.Cell | None = feed
        self._feed = feed.made.value
        self._reader = reader
        self._read = source.reader(reader.num_samples)
        # Such a thread may hang: a source that never returns does not keep the interpreter from ending.
        threads.start(self._run)

    def _run(self) -> None:
        epoch, samples, count = ctypes.c_uint64(), ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_size_t()
        wanted = (ctypes.byref(epoch), ctypes.byref(samples), ctypes.byref(count))
        try:
            while True:
                native.check(native.lib.leat_feed_next(self._feed, -1.0, *wanted))
                if count.value == 0:
                    return
                if not all(self._bring(epoch.value, sample) for sample in samples[: count.value]):
                    return
        finally:
            self._cell = None

    def _bring(self, epoch: int, sample: int) -> bool:
        try:
            arrays = self._reader.fields(self._read(epoch, sample))
        except BaseException as error:  # also SystemExit, which would end only this thread
            self.error = error
            code = error.code if isinstance(error, Error) else _UNKNOWN
            text = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            native.lib.leat_feed_fail(self._feed, sample, code, text.encode("utf-8", "replace").replace(b"\0", b"?"))
            return False
        large = sum(array.nbytes for array in arrays) > _SMALL_BYTES
        bring = (native.lib if large else native.quick).leat_feed_supply
        status = bring(self._feed, sample, self._reader.pointer(arrays), len(arrays))
        if status:  # the iterator fails with it too, or has ended
            native.lib.leat_status_free(status)
        return not status

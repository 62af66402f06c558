# SPDX-License-Identifier: Apache-2.0
"""leat.h by ctypes: finds libleat.so, declares its functions, turns statuses into exceptions.

There are two views of one library. Calls through `lib` release the GIL (they may wait or copy). Calls through `quick`
keep it: they only read a field, and under load releasing the GIL costs far more than the call.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from ctypes import py_object
from typing import Any

from leat import errors
from leat._library import alone, threads

alone.check(str(pathlib.Path(__file__).parents[2]))

ABI_VERSION = 5


class Tensor(ctypes.Structure):
    """leat_tensor."""

    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_char_p),
        ("shape", POINTER(c_int64)),
        ("rank", c_size_t),
        ("data", c_void_p),
        ("bytes", c_size_t),
        ("device", c_int32),
    ]


class Epilogue(ctypes.Structure):
    """leat_epilogue."""

    _fields_ = [
        ("dtype", c_char_p),
        ("channels", c_uint32),
        ("table", c_void_p),
        ("table_bytes", c_size_t),
        ("perm", POINTER(c_int64)),
        ("rank", c_size_t),
    ]


class Field(ctypes.Structure):
    """leat_field."""

    _fields_ = [("data", c_void_p), ("bytes", c_size_t), ("shape", POINTER(c_int64)), ("rank", c_size_t)]


_STATUS = c_void_p
_OWNED_TEXT = c_void_p  # a char* to be freed by leat_string_free; c_char_p would lose the pointer

# name: (result, arguments)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "leat_string_free": (None, [c_void_p]),
    "leat_status_free": (None, [_STATUS]),
    "leat_operators_json": (_OWNED_TEXT, []),
    "leat_pipeline_check": (_STATUS, [c_char_p, POINTER(c_void_p)]),
    "leat_connect": (_STATUS, [c_char_p, POINTER(c_void_p)]),
    "leat_service_address": (c_char_p, [c_void_p]),
    "leat_service_free": (None, [c_void_p]),
    "leat_service_get": (_STATUS, [c_void_p, c_char_p, c_char_p, POINTER(c_void_p)]),
    "leat_service_do": (_STATUS, [c_void_p, c_char_p, c_char_p]),
    "leat_service_on_waiting": (None, [c_void_p, c_void_p, c_void_p]),
    "leat_job_create": (_STATUS, [c_void_p, c_char_p, c_char_p, c_double, POINTER(c_void_p)]),
    "leat_job_get": (_STATUS, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "leat_job_json": (_OWNED_TEXT, [c_void_p]),
    "leat_job_sample": (_STATUS, [c_void_p, c_uint64, c_double, POINTER(c_void_p)]),
    "leat_job_step_of": (_STATUS, [c_void_p, c_char_p, c_size_t, POINTER(c_uint64), POINTER(c_uint64)]),
    "leat_job_rows_before": (_STATUS, [c_void_p, c_uint64, c_uint64, POINTER(c_uint64), c_size_t]),
    "leat_job_samples": (_STATUS, [c_void_p, c_uint64, c_uint64, POINTER(c_uint32), c_size_t, POINTER(c_int64)]),
    "leat_job_record": (_STATUS, [c_void_p, c_uint64, c_uint64, c_double, POINTER(c_void_p)]),
    "leat_job_explain": (
        _STATUS,
        [c_void_p, c_uint64, c_uint64, POINTER(c_uint32), c_size_t, c_int, c_double, POINTER(c_void_p)],
    ),
    "leat_job_free": (None, [c_void_p]),
    "leat_batches_open": (
        _STATUS,
        [c_void_p, c_char_p, c_char_p, c_size_t, POINTER(c_uint32), c_size_t, POINTER(c_void_p)],
    ),
    "leat_batches_open_fed": (
        _STATUS,
        [c_void_p, c_char_p, c_char_p, c_size_t, POINTER(c_uint32), c_size_t, POINTER(c_void_p), POINTER(c_void_p)],
    ),
    "leat_feed_next": (
        _STATUS,
        [c_void_p, c_double, POINTER(c_uint64), POINTER(POINTER(c_uint64)), POINTER(c_size_t)],
    ),
    "leat_feed_supply": (_STATUS, [c_void_p, c_uint64, POINTER(Field), c_size_t]),
    "leat_feed_fail": (None, [c_void_p, c_uint64, c_int, c_char_p]),
    "leat_feed_free": (None, [c_void_p]),
    "leat_job_sample_supplied": (
        _STATUS,
        [c_void_p, c_uint64, POINTER(Field), c_size_t, c_double, POINTER(c_void_p)],
    ),
    "leat_batches_next": (_STATUS, [c_void_p, c_double, POINTER(c_void_p)]),
    "leat_batches_cancel": (None, [c_void_p]),
    "leat_batches_stats_json": (_OWNED_TEXT, [c_void_p]),
    "leat_batches_free": (None, [c_void_p]),
    "leat_batch_release_on_stream": (_STATUS, [c_void_p, c_void_p]),
}
_QUICK_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "leat_abi_version": (c_int, []),
    "leat_version": (c_char_p, []),
    "leat_log_grpc": (None, []),
    "leat_status_code": (c_int, [_STATUS]),
    "leat_status_message": (c_char_p, [_STATUS]),
    "leat_batches_position": (c_size_t, [c_void_p, c_void_p, c_size_t]),
    "leat_batches_position_at": (c_size_t, [c_void_p, c_uint64, c_uint64, c_void_p, c_size_t]),
    "leat_batches_begin_wait": (None, [c_void_p]),
    "leat_batches_end_wait": (None, [c_void_p, c_int]),
    "leat_batches_epilogue": (Epilogue, [c_void_p, c_size_t]),
    "leat_feed_supply": (_STATUS, [c_void_p, c_uint64, POINTER(Field), c_size_t]),
    "leat_batch_epoch": (c_uint64, [c_void_p]),
    "leat_batch_step": (c_uint64, [c_void_p]),
    "leat_batch_rows": (c_uint32, [c_void_p]),
    "leat_batch_num_tensors": (c_size_t, [c_void_p]),
    "leat_batch_tensor": (Tensor, [c_void_p, c_size_t]),
    "leat_batch_free": (None, [c_void_p]),
    "leat_dlpack_capsule_free": (None, [c_void_p]),
    "leat_slot_capsule": (py_object, [c_void_p, c_int]),
    "leat_batch_dlpack": (c_void_p, [c_void_p, c_size_t, c_int, c_void_p]),
}


def _find() -> pathlib.Path:
    """Returns the folder of libleat.so and the daemons: LEAT_NATIVE_DIR, or the one inside the package."""
    configured = os.environ.get("LEAT_NATIVE_DIR")
    folder = pathlib.Path(configured) if configured else pathlib.Path(__file__).parents[1] / "_native"
    if not (folder / "libleat.so").exists():
        raise ImportError(
            f"no libleat.so in {errors.one_line(str(folder))}: install the wheel of leat-data "
            "(pip install ./python_client), or set LEAT_NATIVE_DIR to the folder that holds libleat.so and the daemons"
        )
    return folder


def _declare(library: ctypes.CDLL, functions: dict[str, tuple[Any, list[Any]]]) -> ctypes.CDLL:
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def _load(kind: type[ctypes.CDLL]) -> ctypes.CDLL:
    # RTLD_LOCAL (ctypes' default) hides the library's symbols from other libraries of the process.
    try:
        return kind(str(folder / "libleat.so"))
    except OSError as error:  # "version `GLIBCXX_3.4.30' not found": conda, an old machine
        raise ImportError(
            f"{errors.one_line(str(error))}; libleat.so wants the glibc and libstdc++ of its build, or newer ones"
        ) from error


folder = _find()
lib: Any = _declare(_load(ctypes.CDLL), _FUNCTIONS)
quick: Any = _declare(_load(ctypes.PyDLL), _QUICK_FUNCTIONS)

if quick.leat_abi_version() != ABI_VERSION:
    raise ImportError(
        f"{errors.one_line(str(folder))}/libleat.so has ABI version {quick.leat_abi_version()}, "
        f"this package needs {ABI_VERSION}"
    )
quick.leat_log_grpc()


def check(status: int | None) -> None:
    """Raises the exception of a status; None is success. Frees the status."""
    if not status:
        return
    code = quick.leat_status_code(status)
    message = (quick.leat_status_message(status) or b"").decode("utf-8", "replace")
    lib.leat_status_free(status)
    raise errors.from_status(code, message)


def take_text(pointer: int | None) -> str:
    """Copies and frees a char* of the library."""
    if not pointer:
        return ""
    try:
        return ctypes.string_at(pointer).decode("utf-8", "replace")
    finally:
        lib.leat_string_free(pointer)


def text(value: str | None, what: str = "a text") -> bytes | None:
    """Returns UTF-8 for a const char*. Refuses zero bytes, where the C side would stop, and what is no Unicode."""
    if value is None:
        return None
    if "\0" in value or not is_unicode(value):
        raise errors.InvalidArgument(f"{what} = {value!r:.80}; expected a text of Unicode characters other than zero")
    return value.encode()


def is_unicode(value: str) -> bool:
    """Returns whether `value` has no surrogate, as a file's name in another encoding has."""
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def json_text(document: Any) -> bytes:
    """Returns a document as JSON for a const char*. A text of it that is no Unicode is an error with its place."""
    written = json.dumps(document)
    if "\\ud" in written or "\\u0000" in written:  # maybe: a graph may have a million texts
        _check_texts(document, "")
    return written.encode()


def _check_texts(value: Any, place: str) -> None:
    if isinstance(value, str):
        text(value, place)
    elif isinstance(value, dict):
        for key, each in value.items():
            _check_texts(each, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list) and any(isinstance(each, (str, dict)) for each in value):
        for i, each in enumerate(value):
            _check_texts(each, f"{place}[{i}]")


def _interruptible(call: Callable[[], int | None]) -> int | None:
    """Returns the status of `call()`. In the main thread it runs in a thread of its own, so that Ctrl-C ends the
    wait."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    # The thread takes the call with everything that it refers to, so that nothing of it is left when the wait is over.
    calls, deserted, results = [call], threading.Lock(), []

    def drop_if_deserted() -> None:
        # Both this thread and the waiting one come here; the second one frees the status.
        if not deserted.acquire(blocking=False) and not isinstance(results[0], BaseException) and results[0]:
            lib.leat_status_free(results[0])

    def run() -> None:
        try:
            results.append(calls.pop()())
        except BaseException as error:
            results.append(error)
        drop_if_deserted()

    try:
        threads.wait(threads.start(run))
    except BaseException:
        drop_if_deserted()
        raise
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


_SLOT = b"leat_slot"
_pointer_of = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


class Cell:
    """The place where a call of the library stores a new pointer, which is freed with the cell.

    The pointer has an owner at every moment, wherever a signal handler raises: the library writes it into a capsule of
    its own, and frees it in the capsule's destructor, where no handler runs. In a forked child nothing is freed.

    Attributes:
        made: the pointer, for as long as the cell lives.
    """

    __slots__ = ("_slot", "made")

    def __init__(self, free: str) -> None:
        """Makes an empty cell. `free`: the name of the function that frees the pointer."""
        waits = free not in _QUICK_FUNCTIONS
        release = ctypes.cast(getattr(lib if waits else quick, free), c_void_p)
        self._slot: Any = quick.leat_slot_capsule(release, waits)
        self.made: c_void_p = c_void_p.from_address(_pointer_of(self._slot, _SLOT) or 0)

    def text(self) -> str:
        """Returns the text of a char* cell."""
        return ctypes.string_at(self.made.value or b"").decode("utf-8", "replace")


def make(function: Any, *args: Any, out: Cell, of: Handle | None = None) -> None:
    """Calls `function(*args, &out)`; Ctrl-C ends the wait in the main thread.

    Args:
        function: a function of the library.
        args: its arguments.
        out: receives the pointer. It lives until the call has returned, even if the caller stops waiting.
        of: its first argument, if that is a handle; the handle is not freed before the call has returned.
    """

    def call() -> int | None:
        if of is None:
            return function(*args, ctypes.byref(out.made))
        with of.in_use() as pointer:
            return function(pointer, *args, ctypes.byref(out.made))

    check(_interruptible(call))


class Handle:
    """Holds a cell's pointer until it is closed, in the process that made it.

    A forked child has none of the library's threads: there, use raises and dropping the handle does nothing.
    Thread-safe: each user of the pointer holds the cell, so a handle that is closed during a call of `make`, `do`,
    `call` or `in_use` is freed when the call has returned.
    """

    def __init__(self, cell: Cell, what: str) -> None:
        """REQUIRES: the cell is not empty."""
        self._cell: Cell | None = cell
        self._what = what
        self._pid = os.getpid()

    def make(self, function: Any, *args: Any, out: Cell) -> None:
        """As the function `make`, with this handle as the first argument."""
        self.check()
        make(function, *args, out=out, of=self)

    def do(self, function: Any, *args: Any) -> None:
        """Calls `function(pointer, *args)`, which returns only a status. Ctrl-C ends the wait in the main thread."""
        self.check()

        def call() -> int | None:
            with self.in_use() as pointer:
                return function(pointer, *args)

        check(_interruptible(call))

    @contextlib.contextmanager
    def in_use(self) -> Iterator[int]:
        """Yields the pointer, which stays valid inside the `with`."""
        cell = self._held()
        yield cell.made.value or 0
        del cell

    def _held(self) -> Cell:
        if self._pid != os.getpid():
            raise errors.FailedPrecondition(
                f"this {self._what} belongs to process {self._pid}, from which process {os.getpid()} was forked: "
                "start processes by multiprocessing's 'spawn', and call leat.connect in each"
            )
        cell = self._cell
        if cell is None:
            raise errors.FailedPrecondition(f"this {self._what} is closed")
        return cell

    def call(self, function: Any, *args: Any) -> Any:
        """Returns `function(pointer, *args)`. Ctrl-C does not end its wait.

        The pointer stays valid during the call, even if a signal handler closes the handle just before it.
        """
        cell = self._held()
        return function(cell.made.value or 0, *args)

    def check(self) -> None:
        """Raises FailedPrecondition if it is closed or belongs to the parent process."""
        self._held()

    @property
    def closed(self) -> bool:
        return self._cell is None

    def close(self) -> None:
        """Closes the handle. Idempotent."""
        self._cell = None

    def __reduce__(self) -> Any:
        raise TypeError(f"a {self._what} cannot be pickled: call leat.connect in the other process")

# SPDX-License-Identifier: Apache-2.0
"""leat.h by ctypes: finds libleat.so, declares its functions, turns statuses into exceptions.

Two views of one library: calls through `lib` release the GIL (they may wait or
copy); calls through `quick` keep it, because they only read a field, and
giving the GIL up under load costs far more than they do.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from ctypes import py_object
from typing import Any

from leat import _alone, _threads, errors

_alone.check(str(pathlib.Path(__file__).parents[1]))

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


class Finish(ctypes.Structure):
    """leat_finish."""

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
_OWNED_TEXT = c_void_p  # char* that leat_string_free frees; c_char_p would lose the pointer

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
    "leat_job_create": (_STATUS, [c_void_p, c_char_p, c_double, POINTER(c_void_p)]),
    "leat_job_get": (_STATUS, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "leat_job_json": (_OWNED_TEXT, [c_void_p]),
    "leat_job_sample": (_STATUS, [c_void_p, c_uint64, c_double, POINTER(c_void_p)]),
    "leat_job_position": (_STATUS, [c_void_p, c_char_p, c_size_t, POINTER(c_uint64), POINTER(c_uint64)]),
    "leat_job_samples": (_STATUS, [c_void_p, c_uint64, c_uint64, POINTER(c_uint32), c_size_t, POINTER(c_int64)]),
    "leat_job_record": (_STATUS, [c_void_p, c_uint64, c_double, POINTER(c_void_p)]),
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
    "leat_feed_bring": (_STATUS, [c_void_p, c_uint64, POINTER(Field), c_size_t]),
    "leat_feed_fail": (None, [c_void_p, c_uint64, c_int, c_char_p]),
    "leat_feed_free": (None, [c_void_p]),
    "leat_job_sample_brought": (
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
    "leat_status_code": (c_int, [_STATUS]),
    "leat_status_message": (c_char_p, [_STATUS]),
    "leat_batches_token": (c_size_t, [c_void_p, c_void_p, c_size_t]),
    "leat_batches_token_at": (c_size_t, [c_void_p, c_uint64, c_uint64, c_void_p, c_size_t]),
    "leat_batches_begin_wait": (None, [c_void_p]),
    "leat_batches_end_wait": (None, [c_void_p, c_int]),
    "leat_batches_finish": (Finish, [c_void_p, c_size_t]),
    "leat_feed_bring": (_STATUS, [c_void_p, c_uint64, POINTER(Field), c_size_t]),
    "leat_batch_epoch": (c_uint64, [c_void_p]),
    "leat_batch_step": (c_uint64, [c_void_p]),
    "leat_batch_rows": (c_uint32, [c_void_p]),
    "leat_batch_num_tensors": (c_size_t, [c_void_p]),
    "leat_batch_tensor": (Tensor, [c_void_p, c_size_t]),
    "leat_batch_free": (None, [c_void_p]),
    "leat_dlpack_capsule_free": (None, [c_void_p]),
    "leat_batch_slot_capsule": (py_object, []),
    "leat_batch_dlpack": (c_void_p, [c_void_p, c_size_t, c_int, c_void_p]),
}


def _find() -> pathlib.Path:
    """The folder of libleat.so and the daemons: LEAT_NATIVE_DIR, or the one inside the package."""
    configured = os.environ.get("LEAT_NATIVE_DIR")
    folder = pathlib.Path(configured) if configured else pathlib.Path(__file__).parent / "_native"
    if not (folder / "libleat.so").exists():
        raise ImportError(
            f"no libleat.so in {folder}: install the wheel of leat-data (pip install ./python_client), "
            "or set LEAT_NATIVE_DIR to the folder that holds libleat.so and the daemons"
        )
    return folder


def _declare(library: ctypes.CDLL, functions: dict[str, tuple[Any, list[Any]]]) -> ctypes.CDLL:
    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def _load(kind: type[ctypes.CDLL]) -> ctypes.CDLL:
    # RTLD_LOCAL (ctypes' default): nothing of ours is visible to other libraries of the process.
    try:
        return kind(str(folder / "libleat.so"))
    except OSError as error:  # "version `GLIBCXX_3.4.30' not found": conda, an old machine
        raise ImportError(f"{error}; libleat.so wants the glibc and libstdc++ of its build, or newer ones") from error


folder = _find()
lib: Any = _declare(_load(ctypes.CDLL), _FUNCTIONS)
quick: Any = _declare(_load(ctypes.PyDLL), _QUICK_FUNCTIONS)

if quick.leat_abi_version() != ABI_VERSION:
    raise ImportError(
        f"{folder}/libleat.so has ABI version {quick.leat_abi_version()}, this package needs {ABI_VERSION}"
    )


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


def text(value: str | os.PathLike[str] | None) -> bytes | None:
    """UTF-8 for a const char*; the C side would stop at a zero byte, so none is let through."""
    if value is None:
        return None
    encoded = os.fspath(value).encode("utf-8", "surrogateescape")
    if b"\0" in encoded:
        raise errors.InvalidArgument(f"text with a zero byte: {value!r}")
    return encoded


def _interruptible(call: Callable[[], int | None], drop: Callable[[int | None], None]) -> int | None:
    """The status of `call()`. Ctrl-C ends the wait for it in the main thread, where it runs in a thread of its own.

    Args:
        call: of the library.
        drop: frees what `call` gave, if nobody waits any more.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    deserted, results = threading.Lock(), []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            results.append(error)
        if not deserted.acquire(blocking=False) and not isinstance(results[0], BaseException):
            drop(results[0])

    try:
        _threads.wait(_threads.start(run))
    except BaseException:
        # If it has come all the same, nobody else drops it.
        if not deserted.acquire(blocking=False) and not isinstance(results[0], BaseException):
            drop(results[0])
        raise
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def _free_of(name: str) -> Any:
    return getattr(quick if name in _QUICK_FUNCTIONS else lib, name)


def make(free: str, function: Any, *args: Any, of: Handle | None = None, out: Any = None) -> int:
    """Calls `function(*args, &out)` and returns the new pointer; Ctrl-C ends the wait in the main thread.

    Args:
        free: the name of the function that frees the result if it comes after an interrupt.
        function: of the library.
        args: its arguments.
        of: its first argument, if that is a handle, which is not freed before the call has returned.
        out: a c_void_p that gets the pointer, and whose owner frees it; or a Cell, which lives until the call has
            returned, whoever waits for it, so that it alone frees what nobody takes.
    """
    cell = out if isinstance(out, Cell) else None
    made = cell.made if cell is not None else c_void_p() if out is None else out

    def call() -> int | None:
        if of is None:
            return function(*args, ctypes.byref(made))
        with of.in_use() as pointer:
            return function(pointer, *args, ctypes.byref(made))

    def drop(status: int | None) -> None:
        if status:
            lib.leat_status_free(status)
        elif cell is None and made.value:
            pointer, made.value = made.value, None
            _free_of(free)(pointer)

    check(_interruptible(call, drop))
    return made.value or 0


class Cell:
    """Where a call of the library stores a new pointer; frees it with itself, unless a Handle takes it.

    An interrupt behind the call finds the pointer here, and not in a variable that is lost with its frame.
    """

    def __init__(self, free: str) -> None:
        self._pid = os.getpid()
        self._free = _free_of(free)
        self.made: c_void_p = c_void_p()

    def text(self) -> str:
        """Of a char*."""
        return ctypes.string_at(self.made.value or b"").decode("utf-8", "replace")

    def free(self, _getpid: Callable[[], int] = os.getpid) -> None:
        """Idempotent; in a forked child it does nothing."""
        # Nothing is called between the two stores, so that no signal handler comes in between.
        pointer, self.made.value = self.made.value, None
        if pointer is not None and self._pid == _getpid():
            self._free(pointer)

    def __del__(self) -> None:
        if hasattr(self, "made"):
            self.free()


class Handle:
    """Owns one pointer of the library and frees it once, in the process that made it.

    A forked child has none of the library's threads: there, use raises and
    dropping the handle does nothing. Thread-safe: closing a handle in the middle of a call of `make` or `in_use` frees
    the pointer when the call has returned.
    """

    def __init__(self, pointer: int | None, free: str, what: str) -> None:
        self._pointer = pointer
        self._free = _free_of(free)
        self._what = what
        self._lock = threading.RLock()  # re-entrant: a signal handler may close in the middle of anything
        self._users = 0
        self._left: int | None = None  # closed, and freed by the last user
        self._pid = os.getpid()

    def make(self, free: str, function: Any, *args: Any, out: Any = None) -> int:
        """As `make`, of a function whose first argument this is."""
        self.get()
        return make(free, function, *args, of=self, out=out)

    def do(self, function: Any, *args: Any) -> None:
        """Calls `function(pointer, *args)`, which gives a status only. Ctrl-C ends the wait in the main thread."""
        self.get()

        def call() -> int | None:
            with self.in_use() as pointer:
                return function(pointer, *args)

        check(_interruptible(call, lambda status: lib.leat_status_free(status) if status else None))

    @contextlib.contextmanager
    def in_use(self) -> Iterator[int]:
        """The pointer, which stays valid inside of `with`. For threads that no signal handler interrupts."""
        with self._lock:
            pointer = self.get()
            self._users += 1
        try:
            yield pointer
        finally:
            with self._lock:
                self._users -= 1
                left = None if self._users else self._left
                if left is not None:
                    self._left = None
            if left is not None:
                self._free(left)

    def get(self) -> int:
        """The pointer; raises if it is closed or belongs to the parent process."""
        if self._pid != os.getpid():
            raise errors.FailedPrecondition(
                f"this {self._what} belongs to process {self._pid}, which was forked: "
                f"call leat.connect in process {os.getpid()}"
            )
        if self._pointer is None:
            raise errors.FailedPrecondition(f"this {self._what} is closed")
        return self._pointer

    def take(self, cell: Cell) -> None:
        """Takes a cell's pointer over; the handle has none before."""
        # Nothing is called between the two stores, so that one of them owns the pointer at any moment.
        self._pointer, cell.made.value = cell.made.value, None

    @property
    def closed(self) -> bool:
        return self._pointer is None

    def close(self, _getpid: Callable[[], int] = os.getpid) -> None:
        """Idempotent."""
        if self._pid != _getpid():
            self._pointer = None
            return
        with self._lock:
            # Nothing is called between the stores and _free, so that no signal handler comes in between.
            pointer, self._pointer = self._pointer, None
            if pointer is not None:
                if self._users:
                    self._left = pointer
                else:
                    self._free(pointer)

    def __del__(self) -> None:
        if hasattr(self, "_pid"):
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {self._what} cannot be pickled: call leat.connect in the other process")

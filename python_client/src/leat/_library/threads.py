# SPDX-License-Identifier: Apache-2.0
"""Threads that the main thread may start and wait for while Ctrl-C is pressed."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable

# An interrupt that arrives in the moment before a wait begins does not end that wait: CPython looks for interrupts
# only between bytecodes, and when a signal ends a system call. So the main thread waits in slices of this length, and
# such an interrupt is seen at the next slice.
SLICE_S = 0.25


def start(run: Callable[[], None]) -> _thread.LockType:
    """Calls `run()` in a thread that does not keep the interpreter from ending.

    It does not use threading.Thread, whose start() waits by a threading.Condition. An interrupt in that wait raises
    RuntimeError instead of KeyboardInterrupt, or leaves the thread, with all that `run` refers to, in Python's list of
    threads for ever. For the same reason the result is a lock.

    Args:
        run: handles its own exceptions.

    Returns:
        A lock that is held until `run` has returned, to wait for that; acquiring it is optional. In the main thread,
        acquire it by `wait`.

    Raises:
        RuntimeError: the system allows no further thread.
    """
    running = _thread.allocate_lock()
    running.acquire()

    def call() -> None:
        try:
            run()
        finally:
            running.release()

    _thread.start_new_thread(call, ())
    return running


def wait(running: _thread.LockType) -> None:
    """Acquires a lock. An interrupt ends the wait within SLICE_S; the lock is then not held."""
    while not running.acquire(timeout=SLICE_S):
        pass


def to_its_end(run: Callable[[], None]) -> None:
    """Calls `run()`, and returns or raises only when it has returned: an interrupt does not leave it half done.

    In the main thread `run` gets a thread of its own, where no signal handler runs. It must not acquire a lock that the
    main thread holds.

    Raises:
        KeyboardInterrupt, or another exception that a signal handler raised meanwhile. If it came before `run` began,
        `run` is never called.
        Any exception that `run` raised.
        RuntimeError: the system allows no further thread; `run` was not called.
    """
    if threading.current_thread() is not threading.main_thread():
        run()
        return
    begun, ended = _thread.allocate_lock(), _thread.allocate_lock()
    ended.acquire()
    done: list[bool] = []
    failed: list[BaseException] = []

    def call() -> None:
        if not begun.acquire(blocking=False):
            return  # an interrupted start was repeated
        try:
            run()
        except BaseException as error:
            failed.append(error)
        done.append(True)
        ended.release()

    interrupt: BaseException | None = None
    while not done:
        try:
            if not begun.locked():
                _thread.start_new_thread(call, ())
            wait(ended)
        except BaseException as error:
            if not begun.locked() and isinstance(error, RuntimeError):
                raise
            interrupt = error
    if interrupt is not None:
        raise interrupt
    if failed:
        raise failed[0]

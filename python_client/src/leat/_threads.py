# SPDX-License-Identifier: Apache-2.0
"""Threads that the main thread may start and wait for while Ctrl-C is pressed."""

from __future__ import annotations

import _thread
from collections.abc import Callable

# An interrupt that arrives in the moment before a wait begins does not end that wait: CPython looks for interrupts
# only between bytecodes, and when a signal ends a system call. Whoever waits in the main thread waits in slices of
# this length, so that such an interrupt is seen with the next one.
SLICE_S = 0.25


def start(run: Callable[[], None]) -> _thread.LockType:
    """Calls `run()` in a thread that does not keep the interpreter from ending.

    Not by threading.Thread: its start() waits by a threading.Condition. An interrupt in that wait raises RuntimeError
    instead of KeyboardInterrupt, or leaves the thread, with all that `run` refers to, in Python's list of threads for
    ever. For the same reason the result is a lock.

    Args:
        run: handles its own exceptions.

    Returns:
        A lock that is held until `run` has returned. Whoever acquires it knows that; nobody has to. In the main
        thread, acquire it by `wait`.

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
    """Acquires a lock. An interrupt ends the wait within SLICE_S, and the lock is not held then."""
    while not running.acquire(timeout=SLICE_S):
        pass

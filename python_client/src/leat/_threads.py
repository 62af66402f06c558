# SPDX-License-Identifier: Apache-2.0
"""Threads that the main thread may start and wait for while Ctrl-C is pressed."""

from __future__ import annotations

import _thread
from collections.abc import Callable


def start(run: Callable[[], None]) -> _thread.LockType:
    """Calls `run()` in a thread that does not keep the interpreter from ending.

    Not by threading.Thread: its start() waits by a threading.Condition. An interrupt in that wait raises RuntimeError
    instead of KeyboardInterrupt, or leaves the thread, with all that `run` refers to, in Python's list of threads for
    ever. For the same reason the result is a lock, whose acquire() an interrupt ends cleanly.

    Args:
        run: handles its own exceptions.

    Returns:
        A lock that is held until `run` has returned. Whoever acquires it knows that; nobody has to.

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

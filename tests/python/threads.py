# SPDX-License-Identifier: Apache-2.0
"""The package's own threads, which are in no list of Python's: it starts them without `threading`."""

import gc
import sys
import threading
import time

PATIENCE_S = 60


def _modules(frame):
    while frame is not None:
        yield frame.f_globals.get("__name__")
        frame = frame.f_back


def running(module):
    """Returns the identifiers of the other threads that are inside a function of `module`."""
    return {
        ident
        for ident, frame in sys._current_frames().items()
        if ident != threading.get_ident() and module in _modules(frame)
    }


def wait_until(holds, otherwise):
    """Returns when `holds()`; fails after PATIENCE_S with the text of `otherwise()`."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, otherwise()
        time.sleep(0.001)


def wait_until_ended(module):
    """Returns when no other thread runs in `module`; fails after PATIENCE_S."""
    gc.collect()
    wait_until(lambda: not running(module), lambda: f"a thread of {module} goes on")

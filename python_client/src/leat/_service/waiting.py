# SPDX-License-Identifier: Apache-2.0
"""The lines of the logger "leat" that say what Service.job waits for."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections import Counter
from collections.abc import Iterator
from ctypes import c_char_p, c_void_p

from leat._library import native
from leat._service.private import logger
from leat.errors import one_line

# The names of the jobs that callers wait for. A call that Ctrl-C has left goes on in the library, and says no more.
_names: Counter[str] = Counter()
_lock = threading.Lock()


@ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
def _tell(_: int | None, job: bytes, waits_for: bytes) -> None:
    name = job.decode("utf-8", "replace")
    with _lock:
        waited = _names[name] > 0
    if waited:
        logger.warning("job %s waits: %s", one_line(name), one_line(waits_for.decode("utf-8", "replace")))


def listen(service: native.Handle) -> None:
    """Has the library say what the service's jobs wait for, after two seconds and then every ten."""
    service.call(native.lib.leat_service_on_waiting, ctypes.cast(_tell, c_void_p), None)


@contextlib.contextmanager
def aloud(name: str) -> Iterator[None]:
    """Inside the `with`, what the job waits for is logged."""
    with _lock:
        _names[name] += 1
    try:
        yield
    finally:
        with _lock:
            _names[name] -= 1
            if _names[name] <= 0:
                del _names[name]

# SPDX-License-Identifier: Apache-2.0
"""A thread that takes batches and brings them to the devices while the trainer uses the previous one.

`next()` then costs the trainer as much as a queue. The thread waits for workers all the time, so the library is told
separately when the trainer waits: its statistics then show stalls of the training, and nothing else.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from leat._library import threads

if TYPE_CHECKING:
    from leat._iterators.batches import Batches
    from leat._iterators.together import Together

# How long to wait for the transfer in progress when the thread has to end.
_STOP_TIMEOUT_S = 30.0


class Placed(NamedTuple):
    """A batch on the devices, and the iterator's position after it."""

    arrays: dict[str, jax.Array]
    position: bytes
    epoch: int
    step: int


class Ended(NamedTuple):
    """No batch follows.

    Attributes:
        error: the failure; None: the last batch was handed out, or the iterator was closed.
    """

    error: BaseException | None


def _wide() -> Any:
    """Returns a context with the calling thread's choice of 64-bit types, for use in another thread."""
    enable = getattr(jax, "enable_x64", None)
    if not callable(enable):  # before 0.8
        from jax.experimental import enable_x64 as enable
    return enable(bool(jax.config.jax_enable_x64))


class Ahead:
    """Takes batches one ahead of the trainer. Call `take` from one thread at a time, `stop` from any.

    `take` shows the next batch and leaves it where it is; the caller then hands it out by

        ahead.slots[ahead.number & 1] = None
        ahead.number += 1

    without a call in between, so that after an interrupt it is either still the next batch or handed out (see
    _iterators/batches.py).

    Args:
        host: an iterator opened with ahead=True; nothing else takes batches from it.
        place: makes global arrays from one batch.

    Attributes:
        number: the number of the batch that is handed out next.
        slots: batch n, Placed or Ended, in slot n & 1; None: not there yet.
    """

    def __init__(self, host: Batches | Together, place: Callable[[Any], dict[str, jax.Array]]) -> None:
        self._host = host
        self._place = place
        self._wide = _wide()
        self._stopped = False
        self._pid = os.getpid()
        self.number = 0
        self.slots: list[Placed | Ended | None] = [None, None]
        # Both are queues, because a queue's wait is the cheapest that Ctrl-C ends. An entry of _filled says that a slot
        # was filled. An entry of _room is the number of a batch that there is room for. An interrupt may lose an entry
        # of the first, or put one of the second again.
        self._filled: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._begun = False
        self._first = threading.Lock()  # an interrupted start may leave several threads: only one works
        self._thread: int | None = None
        self._ended = threading.Lock()  # held by the thread that works
        atexit.register(self.stop)  # after JAX's, so it runs before: no transfer runs when JAX ends

    def take(self) -> Placed | Ended:
        """Returns the next batch, or Ended. Do not call again after the end: nothing follows."""
        if not self._begun:
            threads.start(self._run)
            self._begun = True
        at = self.number & 1
        if self.slots[at] is None:
            self._host.begin_wait()
            try:
                while self.slots[at] is None:
                    with contextlib.suppress(queue.Empty):
                        self._filled.get(timeout=threads.SLICE_S)
            finally:
                self._host.end_wait(isinstance(self.slots[at], Placed))
        else:
            with contextlib.suppress(queue.Empty):
                self._filled.get_nowait()
            self._host.end_wait(isinstance(self.slots[at], Placed))
        self._room.put(self.number + 1)
        taken = self.slots[at]
        assert taken is not None
        return taken

    def stop(self) -> None:
        """Closes the host's iterator and waits for the thread; wakes a caller that waits in `take`. Idempotent.

        Does nothing in a forked child, which has no such thread.
        """
        if self._pid != os.getpid():
            return
        self._stopped = True
        atexit.unregister(self.stop)
        self._host.close()
        self._room.put(self.number)
        if self._thread != threading.get_ident() and self._ended.acquire(timeout=_STOP_TIMEOUT_S):
            self._ended.release()

    def _run(self) -> None:
        if self._first.acquire(blocking=False):
            self._thread = threading.get_ident()
            with self._ended:
                self._place_all()

    def _place_all(self) -> None:
        number, room = 0, 0
        error: BaseException | None = None
        try:
            with self._wide:
                while True:
                    while room < number and not self._stopped:
                        room = max(room, self._room.get())
                    if self._stopped or not self._one(number):
                        break
                    number += 1
        except BaseException as raised:
            error = raised
        self._fill(number, Ended(error))

    def _one(self, number: int) -> bool:
        """Places a batch; False: there is none. Keeps no reference to it afterwards."""
        batch = self._host.next()
        if batch is None:
            return False
        epoch, step = self._host.epoch, self._host.step
        assert epoch is not None and step is not None
        self._fill(number, Placed(self._place(batch), self._host.position(), epoch, step))
        return True

    def _fill(self, number: int, what: Placed | Ended) -> None:
        self.slots[number & 1] = what
        self._filled.put(None)

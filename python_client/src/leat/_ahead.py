# SPDX-License-Identifier: Apache-2.0
"""A thread that takes batches and brings them to the devices while the trainer uses the one before.

`next()` then costs the trainer what a queue costs. That thread waits for
workers all the time; when the trainer waits is told to the library here, so
that its statistics show stalls of the training, and nothing else.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

if TYPE_CHECKING:
    from leat._batches import Batches
    from leat._together import Together

# For the transfer that is under way when the thread has to end.
_STOP_TIMEOUT_S = 30.0


class Placed(NamedTuple):
    """A batch on the devices, and where the iterator was after it."""

    arrays: dict[str, jax.Array]
    token: bytes
    epoch: int
    step: int


def _wide() -> Any:
    """A context with the calling thread's choice of 64-bit types, for another thread."""
    enable = getattr(jax, "enable_x64", None)
    if not callable(enable):  # before 0.8
        from jax.experimental import enable_x64 as enable
    return enable(bool(jax.config.jax_enable_x64))


class Ahead:
    """One batch ahead of the trainer. `take` from one thread at a time, `stop` from any.

    Args:
        host: opened with ahead=True; nobody else takes batches from it.
        place: makes global arrays of one.
    """

    def __init__(self, host: Batches | Together, place: Callable[[Any], dict[str, jax.Array]]) -> None:
        self._host = host
        self._place = place
        self._wide = _wide()
        self._stopped = False
        self._pid = os.getpid()
        # Placed, None at the end, or what went wrong. Queues, because theirs are the cheapest waits that Ctrl-C ends.
        self._placed: queue.SimpleQueue[Placed | BaseException | None] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._room.put(None)
        self._thread = threading.Thread(target=self._run, name="leat placing", daemon=True)
        self._thread.start()
        atexit.register(self.stop)  # later than JAX's, so before it: no transfer is under way when JAX ends

    def take(self) -> Placed | BaseException | None:
        """The next batch; None: the end. After that and after a failure, nothing follows: do not call again."""
        if self._placed.empty():
            self._host.begin_wait()
        taken = None
        try:
            taken = self._placed.get()
        finally:
            self._host.end_wait(isinstance(taken, Placed))
        if isinstance(taken, Placed):
            self._room.put(None)
        return taken

    def stop(self) -> None:
        """Closes the host's iterator and waits for the thread; wakes who is in `take`. Idempotent.

        A forked child has none of it: there, nothing is done.
        """
        if self._pid != os.getpid():
            return
        self._stopped = True
        atexit.unregister(self.stop)
        self._host.close()
        self._room.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join(_STOP_TIMEOUT_S)

    def _run(self) -> None:
        end: BaseException | None = None
        try:
            with self._wide:
                while self._one():
                    pass
        except BaseException as error:
            end = error
        self._placed.put(end)

    def _one(self) -> bool:
        """Keeps no reference to a batch while it waits for room."""
        self._room.get()
        if self._stopped:
            return False
        batch = self._host.next()
        if batch is None:
            return False
        epoch, step = self._host.epoch, self._host.step
        assert epoch is not None and step is not None
        self._placed.put(Placed(self._place(batch), self._host.token(), epoch, step))
        return True

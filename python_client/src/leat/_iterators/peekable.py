# SPDX-License-Identifier: Apache-2.0
"""Iterators whose next batch can be seen before it is taken, as the training loops of Google's CLU and T5X need."""

from __future__ import annotations

import concurrent.futures
import threading
from typing import Any, NamedTuple

from leat._iterators.array_spec import spec_of
from leat._library import threads


class Found(NamedTuple):
    """The batch to hand out when the iterator is at `before`; afterwards it is at `after`."""

    before: Any
    batch: Any
    after: Any


def _specs_of(batch: Any) -> dict[Any, Any]:
    """Returns the `ArraySpec` of each array, by name or by number."""
    return {key: spec_of(array) for key, array in (batch.items() if isinstance(batch, dict) else enumerate(batch))}


class Peekable:
    """Adds `peek` and related methods, from any thread, to an iterator of dicts or lists of `jax.Array`.

    REQUIRES of the base class:
        _find() returns the Found to hand out next, the same one until that is done; StopIteration at the end.
        _known() returns that Found if there is one already, else None.
        _hand_out(found) stores the iterator's position after it.
        __next__ begins with _find_next().
    """

    def _begin_peeking(self) -> None:
        """Call before anything else."""
        self._lock = threading.RLock()
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._asked: list[concurrent.futures.Future[Any]] = []  # peeks that are not done
        self._specs: dict[Any, Any] | None = None

    def _find(self) -> Found:
        with self._lock:
            known: Found | None = self._known()  # type: ignore[attr-defined]
            return self._checked(super()._find()) if known is None else known  # type: ignore[misc]

    def _find_next(self) -> Found:
        self._settle()
        return self._find()

    def _settle(self) -> None:
        """Waits for pending peeks: each is for the batch that was the next one when it was called."""
        while concurrent.futures.wait(list(self._asked), timeout=threads.SLICE_S).not_done:
            pass

    def _checked(self, found: Found) -> Found:
        specs = _specs_of(found.batch)
        if self._specs is None:
            self._specs = specs
        for key, spec in specs.items():
            if spec != self._specs[key]:
                self._hand_out(found)  # type: ignore[attr-defined]
                raise ValueError(
                    f"The shape or type of the output changed between iterations. Output {key!r} is {spec}, and was "
                    f"{self._specs[key]}; expected the same at every step"
                )
        return found

    def peek(self) -> Any:
        """Returns the batch that the next `next` returns. Raises StopIteration at the end of the epoch."""
        return self._find().batch

    def peek_async(self) -> concurrent.futures.Future[Any]:
        """Calls `peek` in another thread; returns a future of the batch that is the next one at this moment."""
        with self._lock:
            if self._pool is None:
                self._pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="leat-peek")
            self._asked = [future for future in self._asked if not future.done()]
            self._asked.append(self._pool.submit(self.peek))
            return self._asked[-1]

    @property
    def element_spec(self) -> Any:
        """The `ArraySpec` of each output, with global shapes, as in batches; peeks if there was no batch yet."""
        if self._specs is None:
            self._find()
        specs = self._specs
        assert specs is not None
        return dict(specs) if any(isinstance(key, str) for key in specs) else list(specs.values())

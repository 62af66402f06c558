# SPDX-License-Identifier: Apache-2.0
"""Several iterators of one job in step: one for each GPU of a process, with that GPU's rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from leat._iterators import progress

if TYPE_CHECKING:
    from leat._iterators.batches import Batches

# Statistics of the parts that are added up; the others are those of the part that waits longest.
_SUMS = (
    "rows",
    "bytes",
    "rows_per_s",
    "hedged_rows",
    "failed_over_rows",
    "duplicate_rows",
    "payload_copies",
    "damaged_streams",
    "unproven_streams",
)


class Together:
    """Acts as one iterator whose batches are lists, one entry per part. Use from one thread at a time; `close` from
    any."""

    def __init__(self, parts: list[Batches]) -> None:
        self._parts = parts
        self._got: list[Any] = []  # batches of the next step, from the first parts
        self._position = parts[0].position()
        self._bar: progress.Bar | None = None
        self._shows_progress = False
        self.job: Any = parts[0].job
        self.epoch: int | None = None
        self.step: int | None = None

    @property
    def _epilogues(self) -> Any:
        return self._parts[0]._epilogues

    def show_progress(self) -> None:
        """As `Batches.show_progress`."""
        self._shows_progress = True
        self._bar = progress.Bar(self, self._parts[0]._end)

    def next(self, timeout: float | None = None) -> list[Any] | None:
        """As `Batches.next`: None at the end; after a DeadlineExceeded nothing is lost."""
        until = None if timeout is None else time.monotonic() + timeout
        while len(self._got) < len(self._parts):
            left = None if until is None else max(until - time.monotonic(), 0.0)
            batch = self._parts[len(self._got)].next(left)
            if batch is None:  # the end of all parts, since they have the same steps
                return None
            self._got.append(batch)
        batches, self._got = self._got, []
        last = self._parts[-1]
        self._position, self.epoch, self.step = last.position(), last.epoch, last.step
        if self._bar:
            assert last.epoch is not None and last.step is not None
            self._bar.update(last.epoch, last.step)
        return batches

    def __len__(self) -> int:
        return len(self._parts[0])

    def __bool__(self) -> bool:
        return True

    def position(self) -> bytes:
        """Returns the position after the last step that `next` returned."""
        return self._position

    def prepared(self, state: bytes) -> Callable[[], None]:
        """As `Batches.prepared`: no part moves before all of them have opened at the state."""
        moves = [part.prepared(state) for part in self._parts]

        def go_on() -> None:
            for move in moves:
                move()
            self._close_bar()
            self._got, self._position = [], self._parts[0].position()
            self.epoch = self.step = None
            if self._shows_progress:
                self.show_progress()

        return go_on

    def begin_wait(self) -> None:
        """As `Batches.begin_wait`, for all parts."""
        for part in self._parts:
            part.begin_wait()

    def end_wait(self, delivered: bool) -> None:
        """As `Batches.end_wait`, for all parts."""
        for part in self._parts:
            part.end_wait(delivered)

    def stats(self) -> dict[str, Any]:
        """As `Batches.stats`, for all parts."""
        stats: list[dict[str, Any]] = [part.stats() for part in self._parts]
        stalls = [each.get("stall_fraction", 0.0) for each in stats]
        result = dict(stats[stalls.index(max(stalls))])
        for name in _SUMS:
            if name in result:
                result[name] = sum(each[name] for each in stats)
        if "workers" in result:
            result["workers"] = [worker for each in stats for worker in each["workers"]]
        return result

    def close(self) -> None:
        """Ends all parts. Idempotent."""
        for part in self._parts:
            part.close()
        self._got = []
        self._close_bar()

    def _close_bar(self) -> None:
        if self._bar:
            self._bar.close()

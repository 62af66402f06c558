# SPDX-License-Identifier: Apache-2.0
"""A job's batches by their number, for callers that keep the number themselves.

The caller keeps the number of the next batch, and increments it by a store after its last call: see batches.py.
Everything below can be called again for the same number, so that an interrupt costs at most a new iterator.
"""

from __future__ import annotations

from typing import Any

from leat.errors import DeadlineExceeded, Error


class Numbered:
    """Gives the batch of step 0, 1, 2, … over all epochs. The step after the last one comes from the open iterator.

    Use `at` from one thread at a time.

    Args:
        job: the job whose batches they are.
        options: those of `Job.batches`.
    """

    def __init__(self, job: Any, **options: Any) -> None:
        self._job, self._options = job, options
        self._batches: Any = None
        self._start = (0, 0)
        self._closed = False

    @property
    def next(self) -> int | None:
        """The step that needs no new iterator; None: there is no iterator."""
        batches = self._batches
        if batches is None:
            return None
        length = len(self._job)
        if batches.step is None:
            return self._start[0] * length + self._start[1]
        return batches.epoch * length + batches.step + 1

    def at(self, step: int, timeout: float | None = None) -> Any:
        """Returns the batch of a step; None: it was closed meanwhile.

        Args:
            step: counted over all epochs.
            timeout: seconds to wait; None: without limit.

        Raises:
            leat.DeadlineExceeded: the batch was not there in time; call again.
            leat.Error: the iterator failed; the next call opens another one.
        """
        if self._closed:
            return None
        if self.next != step:
            self.rewind()
            start = divmod(step, len(self._job))
            batches = self._job.batches(epochs=0, start=start, **self._options)
            self._start, self._batches = start, batches
        try:
            return self._batches.next(timeout)
        except DeadlineExceeded:
            raise
        except Error:  # final for that iterator
            self.rewind()
            raise

    def rewind(self) -> None:
        """Ends the iterator; the next `at` opens another one."""
        # An interrupted `close` must not leave a closed iterator here: that would report the end of the batches.
        batches, self._batches = self._batches, None
        if batches is not None:
            batches.close()

    def close(self) -> None:
        """Ends the iterator for good, even while another thread waits in it. Idempotent."""
        self._closed = True
        if self._batches is not None:
            self._batches.close()

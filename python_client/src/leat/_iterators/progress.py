# SPDX-License-Identifier: Apache-2.0
"""The progress bar of `progress=True`: steps, img/s and the fraction of time spent waiting for data."""

from __future__ import annotations

import time
from typing import Any

from leat.errors import Error

_REFRESH_S = 0.5
_NAMED = 4  # sources that are shown: those with the most passes


def passes_text(job: Any, epoch: int, step: int) -> str:
    """Returns where the sources of a mixture are: ", web 0.41, books 3.02 passes"; "" of any other job."""
    if not job.sources:
        return ""
    passes = {name: each.number + each.done for name, each in job.passes(epoch, step).items()}
    named = sorted(passes, key=passes.__getitem__, reverse=True)[:_NAMED]
    more = f" and {len(passes) - len(named)} more" if len(passes) > len(named) else ""
    return ", " + ", ".join(f"{name} {passes[name]:.2f}" for name in named) + f"{more} passes"


class Bar:
    """A tqdm bar over the steps of a batches iterator. Only the iterating thread uses it."""

    def __init__(self, batches: Any, end: int | None) -> None:
        """`end`: the first epoch that is not delivered; None: there is no end."""
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise ImportError("progress=True needs tqdm: pip install 'leat-data[progress]'") from None
        steps = batches.job._steps
        total = end * steps if end is not None and batches.job.last_batch != "stream" else None
        self._steps_per_epoch = steps
        self._batches = batches
        self._started = False
        self._refreshed = 0.0
        self._at = (0, 0)  # the step that was shown last
        self._bar = tqdm(total=total, unit="step", desc=batches.job.name, dynamic_ncols=True)

    def update(self, epoch: int, step: int) -> None:
        """Reports that the batch of this step has come."""
        done = epoch * self._steps_per_epoch + step + 1
        if not self._started:  # a position may lie within an epoch
            self._started = True
            self._bar.initial = self._bar.n = done - 1
        self._at = epoch, step
        now = time.monotonic()
        if now - self._refreshed >= _REFRESH_S:
            self._refreshed = now
            self._show()
        self._bar.update(done - self._bar.n)

    def _show(self) -> None:
        try:
            stats = self._batches.stats()
        except Error:
            return  # closed meanwhile
        rate, stall = stats.get("rows_per_s", 0.0), stats.get("stall_fraction", 0.0)
        passes = passes_text(self._batches.job, *self._at)
        self._bar.set_postfix_str(f"{rate:,.0f} img/s, stall {stall:.0%}{passes}", refresh=False)

    def close(self) -> None:
        """Leaves the last state on the screen. Idempotent."""
        self._show()
        self._bar.close()

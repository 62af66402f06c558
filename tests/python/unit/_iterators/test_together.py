# SPDX-License-Identifier: Apache-2.0
"""Several iterators in step: each batch is of one step, also after a state that cannot be restored."""

import pytest

import leat
from leat._iterators.together import Together


def labels(together):
    return [part["label"].tolist() for part in together.next()]


def test_parts_move_together_or_not_at_all(job, monkeypatch):
    together = Together([job.batches(rows=range(5)), job.batches(rows=range(5, 10))])
    next(later := job.batches())
    monkeypatch.setattr(together._parts[1], "_open_at", lambda _: job.batches(window=0))
    with pytest.raises(leat.InvalidArgument, match="window"):
        together.prepared(later.position())()
    assert labels(together) == [[*range(5)], [*range(5, 10)]]
    monkeypatch.undo()
    together.prepared(later.position())()
    assert labels(together) == [[*range(10, 15)], [*range(15, 20)]]
    together.close()

# SPDX-License-Identifier: Apache-2.0
"""Iterators of NumPy arrays, as in `amd.rocal.plugin.generic`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leat.errors import InvalidArgument, Unimplemented
from leat.rocal import types
from leat.rocal._checked import HINTS, check_hint, refuse_unknown
from leat.rocal._feed import Feed, OverFeed, Standing, Taken
from leat.rocal.pipeline import Pipeline

__all__ = ["ROCALClassificationIterator", "ROCALGenericIterator", "ROCALNumpyIterator"]

_HINTS: dict[str, Any] = {
    "tensor_layout": types.NCHW,
    "reverse_channels": False,
    "multiplier": [1.0, 1.0, 1.0],
    "offset": [0.0, 0.0, 0.0],
    "tensor_dtype": types.FLOAT,
}
_CLASSIFICATION: dict[str, Any] = {
    "size": 0,
    "auto_reset": False,
    "fill_last_batch": True,
    "dynamic_shape": False,
    "last_batch_padded": False,
}
HINTS["ROCALGenericIterator"] = tuple(_HINTS)
HINTS["ROCALClassificationIterator"] = tuple(_CLASSIFICATION)


def check_iterator(where: str, given: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Raises TypeError for an unknown argument, and InvalidArgument for a hint of the wrong type."""
    refuse_unknown(where, given, (*hints, "display", "device", "device_id"))
    for name, value in given.items():
        if name in hints:
            check_hint(f"{where}: {name}", value, hints[name])
    if given.get("display"):
        raise Unimplemented(f"{where}: display; Leat writes no pictures here (`leat sheet` does)")


class OneFeed(OverFeed):
    """An iterator over one pipeline's batches; an epoch ends with StopIteration until `reset`."""

    def __init__(self, pipeline: Any) -> None:
        if not isinstance(pipeline, Pipeline):
            raise InvalidArgument(f"pipeline = {pipeline!r:.80}; expected a Pipeline")
        self.loader = pipeline
        self.batch_size: int = pipeline._batch_size
        self._feed = Feed([pipeline._member()])
        pipeline._run_by(self._feed, 0)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        batch, after = self._found()
        # No calls from here on: see Feed.
        self._feed.standing = after
        return batch

    def next(self) -> Any:
        """Returns the next batch, as `next(iterator)`."""
        batch, after = self._found()
        # No calls from here on: see Feed.
        self._feed.standing = after
        return batch

    def _found(self) -> tuple[Any, Standing]:
        found = self._feed.find()
        if found is None:
            raise StopIteration
        return self.result(found.parts[0]), found.after

    def result(self, taken: Taken) -> Any:
        """Converts a batch to the form in which it is handed out."""
        raise NotImplementedError


class ROCALGenericIterator(OneFeed):
    """Batches as (list of NumPy arrays, labels): int64 labels, one per row, or int32 (1, rows, classes) if one-hot.

    labels are None if the reader has none.
    Under LAST_BATCH_MASK they are (list, labels, valid): a bool for each row, False for those that fill the last batch.
    """

    def __init__(self, pipeline: Any, **options: Any) -> None:
        """Builds the pipeline if it is not built. docs/guide/move-from-rocal.md lists the options without effect."""
        check_iterator(type(self).__name__, options, {**_HINTS, **_CLASSIFICATION})
        super().__init__(pipeline)

    def result(self, taken: Taken) -> tuple[Any, ...]:
        """See the class."""
        labels = taken.labels
        if labels is not None and not self.loader._one_hot_encoding:
            labels = labels.astype(np.int64)
        return (taken.outputs, labels) if taken.valid is None else (taken.outputs, labels, taken.valid)


class ROCALClassificationIterator(ROCALGenericIterator):
    """The same, for a pipeline with one output."""


class ROCALNumpyIterator(OneFeed):
    """Batches as lists of NumPy arrays, without labels; under LAST_BATCH_MASK the last array is `valid`."""

    def __init__(self, pipeline: Any, **options: Any) -> None:
        """As `ROCALGenericIterator`."""
        check_iterator("ROCALNumpyIterator", options, _HINTS)
        super().__init__(pipeline)

    def result(self, taken: Taken) -> list[np.ndarray]:
        """See the class."""
        return taken.outputs if taken.valid is None else [*taken.outputs, taken.valid]

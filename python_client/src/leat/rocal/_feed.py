# SPDX-License-Identifier: Apache-2.0
"""Pipelines in step: each batch of all of them, epoch by epoch.

Pipelines of one job request their blocks of its rows with one iterator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from leat._iterators.numbered import Numbered
from leat.errors import Cancelled, FailedPrecondition, InvalidArgument
from leat.rocal import types


class Member(NamedTuple):
    """The facts about a pipeline that a feed needs.

    Attributes:
        job: the job that computes its batches.
        rows: its rows of a batch.
        outputs: the number of outputs.
        one_hot: labels are vectors.
        sharding: its reader's sharding.
        reader: its reader's name, for messages.
        text: the pipeline, for messages.
    """

    job: Any
    rows: int
    outputs: int
    one_hot: bool
    sharding: Any
    reader: str
    text: str


class Taken(NamedTuple):
    """One pipeline's part of a step.

    Attributes:
        outputs: in the order of set_outputs, rows first.
        labels: int32, one per row, or (1, rows, classes); None: the reader has none.
        valid: bool, one per row, False for rows that only fill; None: the policy is not LAST_BATCH_MASK.
        rows: the number of rows.
    """

    outputs: list[np.ndarray]
    labels: np.ndarray | None
    valid: np.ndarray | None
    rows: int


class OutputTensor:
    """An output of the last batch, with the methods of rocAL's tensors; valid for any time."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return np.asarray(self._array, *args, **kwargs)

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        # rocAL's method takes the device's number.
        return self._array.__dlpack__(**{name: kwargs[name] for name in kwargs if name == "stream"})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def dimensions(self) -> list[int]:
        """Returns the sizes of its axes, rows first."""
        return list(self._array.shape)

    def dtype(self) -> str:
        """Returns the type's name, as in NumPy and torch."""
        return self._array.dtype.name

    def batch_size(self) -> int:
        """Returns the number of rows."""
        return len(self._array)

    def at(self, index: int) -> np.ndarray:
        """Returns one row."""
        return self._array[index]

    def copy_data(self, array: np.ndarray, *_: Any) -> None:
        """Copies it into a NumPy array of the same shape."""
        if not isinstance(array, np.ndarray):
            raise InvalidArgument("copy_data: expected a NumPy array, not an address")
        np.copyto(array, self._array)


class Standing(NamedTuple):
    """A position between two steps.

    Attributes:
        epoch: the current epoch.
        taken: how many of its steps were handed out.
        last: each pipeline's part of the last step; None: there was none.
        at: epoch and number of the last step.
    """

    epoch: int
    taken: int
    last: list[Taken] | None
    at: tuple[int, int] = (0, 0)


class Found(NamedTuple):
    """Each pipeline's part of a step, and the feed's position after it."""

    parts: list[Taken]
    after: Standing


class _Group:
    """The pipelines of one job: blocks of its rows, pulled together."""

    def __init__(self, first: Member) -> None:
        self.job = first.job
        self.rows = first.rows
        self.blocks: list[int] = []
        self._batches: Numbered | None = None

    def block_of(self, shard_id: int) -> int:
        """Returns the index of a shard's block among those that are pulled."""
        if shard_id not in self.blocks:
            self.blocks.append(shard_id)
        return self.blocks.index(shard_id)

    def take(self, epoch: int, step: int) -> list[dict[str, np.ndarray]]:
        """Returns the step's arrays for each block; may be called again for the same step."""
        if self._batches is None:
            ranges = [np.arange(block * self.rows, (block + 1) * self.rows) for block in self.blocks]
            self._batches = Numbered(self.job, rows=np.concatenate(ranges))
        batch = self._batches.at(epoch * len(self.job) + step)
        if batch is None:
            raise Cancelled("the iterator was closed while it waited for a batch")
        if len(self.blocks) == 1:  # the only one may have fewer rows: LAST_BATCH_PARTIAL
            return [batch]
        cuts = [slice(i * self.rows, (i + 1) * self.rows) for i in range(len(self.blocks))]
        return [{name: array[cut] for name, array in batch.items()} for cut in cuts]

    def close(self) -> None:
        """Ends the iterator. Idempotent."""
        if self._batches is not None:
            self._batches.rewind()


def _steps(member: Member) -> int:
    """Returns the number of batches in an epoch of one pipeline."""
    sharding, where, rows = member.sharding, member.reader, member.rows
    size = sharding.shard_size
    if size == -1:
        return len(member.job)
    shortest = member.job.num_samples // sharding.num_shards
    if size > shortest:
        raise InvalidArgument(
            f"{where}: shard_size = {size}, but a shard of {sharding.num_shards} has {shortest} samples"
        )
    if sharding.policy in (types.LAST_BATCH_PARTIAL, types.LAST_BATCH_MASK) and size % rows:
        raise InvalidArgument(
            f"{where}: shard_size = {size} with {sharding.policy.name}; expected a multiple of {rows}"
        )
    return size // rows if sharding.policy is types.LAST_BATCH_DROP else -(-size // rows)


class Feed:
    """The batches of pipelines, in step; use from one thread at a time.

    Attributes:
        members: the pipelines.
        length: the steps of an epoch.
        standing: the position after the last step that was handed out. The caller that hands a step out stores it, and
            makes no call after that: an interrupt then finds the step either handed out or still the next one.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)
        self.standing = Standing(0, 0, None)
        self._groups: dict[str, _Group] = {}
        self._places: list[tuple[str, int]] = []
        lengths = []
        for member in self.members:
            group = self._groups.setdefault(member.job.name, _Group(member))
            self._places.append((member.job.name, group.block_of(member.sharding.shard_id)))
            lengths.append(_steps(member))
        self.length = lengths[0]
        if len(set(lengths)) != 1:
            raise InvalidArgument(f"the pipelines have {lengths} batches in an epoch; expected as many in each")
        if self.length == 0:
            first = self.members[0]
            raise InvalidArgument(
                f"{first.text}: an epoch has no batch: its shard has fewer than {first.rows} samples and "
                "LAST_BATCH_DROP drops them"
            )

    @property
    def taken(self) -> int:
        """The steps of the epoch that were handed out."""
        return self.standing.taken

    def find(self) -> Found | None:
        """Returns the next step, which stays the next one; None at the end of the epoch, until `reset`."""
        standing = self.standing
        if standing.taken == self.length:
            return None
        pulled = {name: group.take(standing.epoch, standing.taken) for name, group in self._groups.items()}
        parts = [_taken(member, pulled[name][block]) for member, (name, block) in zip(self.members, self._places)]
        if not any(each.rows for each in parts):  # LAST_BATCH_PARTIAL, and only other shards have this batch
            self.standing = standing._replace(taken=standing.taken + 1)
            return None
        at = standing.epoch, standing.taken
        return Found(parts, Standing(standing.epoch, standing.taken + 1, parts, at))

    def last(self, member: int) -> Taken:
        """Returns a pipeline's part of the last step. Raises FailedPrecondition before the first."""
        if self.standing.last is None:
            raise FailedPrecondition("no batch has been taken yet: run the pipeline first")
        return self.standing.last[member]

    def reset(self) -> None:
        """Begins the next epoch, even in the middle of this one; before the first batch of an epoch it does nothing."""
        standing = self.standing
        self.standing = standing._replace(epoch=standing.epoch + (standing.taken > 0), taken=0)

    def samples(self) -> np.ndarray:
        """Returns the sample in each row of the last step, as int64: pipeline after pipeline.

        Raises:
            leat.FailedPrecondition: there was no step.
        """
        standing, numbers = self.standing, []
        for i, member in enumerate(self.members):
            first = member.sharding.shard_id * member.rows
            rows = range(first, first + self.last(i).rows)
            if not rows:  # LAST_BATCH_PARTIAL
                continue
            # The same counting as in Numbered: the epochs of a shard may be shorter than the job's.
            epoch, step = divmod(standing.at[0] * len(member.job) + standing.at[1], len(member.job))
            numbers.append(member.job.samples(epoch, step, rows))
        return np.concatenate(numbers)

    def text(self, what: str) -> str:
        """Returns the text for `repr` of an iterator."""
        first = self.members[0].text
        more = f" and {len(self.members) - 1} more" if len(self.members) > 1 else ""
        return f"<{what} over {first}{more}: {self.taken} of {self.length} batches of epoch {self.standing.epoch}>"

    def close(self) -> None:
        """Ends all iterators. Idempotent; what was handed out stays valid."""
        for group in self._groups.values():
            group.close()


class OverFeed:
    """The methods that the iterators over a feed share."""

    _feed: Feed

    def __len__(self) -> int:
        """Returns the number of batches of an epoch."""
        return self._feed.length

    def samples(self) -> np.ndarray:
        """Returns the sample in each row of the last batch, as int64: pipeline after pipeline.

        Raises:
            leat.FailedPrecondition: no batch has been handed out.
        """
        return self._feed.samples()

    def __repr__(self) -> str:
        return self._feed.text(f"leat.rocal {type(self).__name__}")

    def reset(self) -> None:
        """Begins the next epoch, even in the middle of this one; before the first batch of an epoch it does nothing."""
        self._feed.reset()

    def close(self) -> None:
        """Ends the streams of batches. Idempotent; arrays handed out stay valid."""
        self._feed.close()


def _taken(member: Member, arrays: dict[str, np.ndarray]) -> Taken:
    outputs = [arrays[f"output{i}"] for i in range(member.outputs)]
    labels = arrays.get("label")
    rows = len(outputs[0])
    if labels is not None:
        labels = labels.astype(np.int32, copy=False)
        if member.one_hot:
            labels = labels[None]
    return Taken(outputs, labels, arrays.get("valid"), rows)

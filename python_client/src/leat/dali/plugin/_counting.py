# SPDX-License-Identifier: Apache-2.0
"""How many batches an epoch of DALI's iterators has, and what carries over into the next.

This is pure arithmetic. A reader is a stream without end: it goes through its shard, then on into the next (or its own
again, if it sticks), and knows no epochs. An epoch is a number of batches that the iterator counts. If the last batch
is filled from the stream, each reader begins the next epoch some samples into its shard, so that epochs of 7 samples in
batches of 2 have 4, 3, 4, 3 … batches.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any


class LastBatchPolicy(enum.Enum):
    """The treatment of the last batch of an epoch, for which there are not enough samples.

    FILL: it is filled up, by repeating the last sample if the reader pads, else with the samples that follow.
    DROP: it is left out.
    PARTIAL: it is smaller.
    MASK: only in Leat: it is filled up, and each pipeline's dict has a bool array "valid", False for the rows that
        fill. Needs `reader_name`, and a reader with pad_last_batch=True.
    """

    FILL = 0
    DROP = 1
    PARTIAL = 2
    MASK = 3


_SAME = {
    "epoch_size": "size value",
    "epoch_size_padded": "padded size value",
    "number_of_shards": "`num_shards` argument set",
    "pad_last_batch": "`pad_last_batch` argument set",
    "stick_to_shard": "`stick_to_shard` argument set",
}


@dataclasses.dataclass(frozen=True)
class Reader:
    """The properties that the readers of one name share in all pipelines of an iterator, and each one's shard.

    Attributes:
        samples: the number of samples of the dataset.
        padded: `samples` plus the padding that makes all shards equal.
        shards: how many shards the dataset is cut into.
        pads: True if the last sample of a shard is repeated until all have given the same number of whole batches.
        sticks: True if it stays with its shard in the next epoch.
        ids: the shard that each pipeline begins with.
    """

    samples: int
    padded: int
    shards: int
    pads: bool
    sticks: bool
    ids: tuple[int, ...]

    @classmethod
    def common(cls, metas: Sequence[Mapping[str, Any]]) -> Reader:
        """Makes one from the `reader_meta` of each pipeline; raises AssertionError if they differ."""
        for key, what in _SAME.items():
            found = [meta[key] for meta in metas]
            if any(value != found[0] for value in found):
                raise AssertionError(f"Reader Operator should have the same {what} in all the pipelines: got {found}")
        first = metas[0]
        return cls(
            samples=int(first["epoch_size"]),
            padded=int(first["epoch_size_padded"]),
            shards=int(first["number_of_shards"]),
            pads=bool(first["pad_last_batch"]),
            sticks=bool(first["stick_to_shard"]),
            ids=tuple(int(meta["shard_id"]) for meta in metas),
        )


class Counting:
    """The position within an epoch.

    Attributes:
        size: samples of this epoch: of a shard if there is a reader, else of all pipelines; -1: not known.
        counter: samples handed out since its beginning; the first may have been in the previous epoch's batches.
        policy, padded: the values in effect, which may differ from those requested.
    """

    def __init__(
        self,
        batch: int,
        pipelines: int,
        policy: LastBatchPolicy,
        *,
        size: int = -1,
        padded: bool = False,
        reader: Reader | None = None,
    ) -> None:
        self.batch = batch
        self.policy: LastBatchPolicy = policy
        self.padded: bool = padded
        self.size: int = size
        self.counter: int = 0
        self._reader = reader
        self._step = batch if reader else batch * pipelines
        if reader is not None:
            n = reader.shards
            self.padded = reader.pads
            # The samples of each shard, in the order of their numbers.
            self._shards = [reader.samples * (k + 1) // n - reader.samples * k // n for k in range(n)]
            # Indexed by the pipeline's number, over all processes: what it reads in this epoch, and how much of that it
            # read before the epoch began.
            self._sizes = list(self._shards)
            self._before = [0] * n
            self._ids = list(reader.ids)
            self.size = self._first_size(reader)
        elif size < 0:
            self.policy = LastBatchPolicy.FILL
            self.padded = False

    def _first_size(self, reader: Reader) -> int:
        if self.policy is LastBatchPolicy.DROP:
            return reader.samples // reader.shards
        if reader.pads:
            return reader.padded // reader.shards
        return self._rounded(-(-reader.samples // reader.shards))

    def _rounded(self, samples: int) -> int:
        """Rounds up to whole batches."""
        return -(-samples // self.batch) * self.batch

    def __len__(self) -> int:
        """Returns the number of batches of this epoch; 0 if not known."""
        if self.policy is LastBatchPolicy.DROP:
            return self.size // self._step
        return max(0, -(-self.size // self._step))

    @property
    def ended(self) -> bool:
        """True if the epoch's batches have been handed out."""
        return 0 < self.size <= self.counter

    @property
    def may_restart(self) -> bool:
        """True if the next epoch may begin."""
        return self.counter >= self.size or self.size < 0

    def overflows(self) -> bool:
        """Returns True if the next batch is one that is dropped."""
        if self.policy is not LastBatchPolicy.DROP:
            return False
        counter = self.counter + self._step
        if self._reader is None:
            return counter > self.size
        return any(before + counter > size for before, size in zip(self._before, self._sizes))

    def advance(self) -> bool:
        """Counts a batch. Returns True if it is to be dropped, which ends the epoch."""
        dropped = self.overflows()
        self.counter += self._step
        return dropped

    def restart(self) -> None:
        """Begins the next epoch. REQUIRES: may_restart."""
        if self.policy is LastBatchPolicy.FILL and not self.padded:
            self._carry_over()
        else:
            self.counter = 0
        if self._reader is not None and not self._reader.sticks:
            self._ids = [(k + 1) % self._reader.shards for k in self._ids]

    def _carry_over(self) -> None:
        """Begins an epoch where batches are filled from the stream: each reader is some samples into its next shard."""
        if self._reader is None:
            self.counter %= self.size
            return
        read = self.counter - min(self._before)
        self._before = [before + read - size for before, size in zip(self._before, self._sizes)]
        self.counter = min(self._before)
        if not self._reader.sticks:
            self._roll()
        self.size = self._rounded(max(size - before for size, before in zip(self._sizes, self._before)))
        if self.size == 0:  # the last batch went through a whole epoch, which is skipped
            self._before = [0] * self._reader.shards
            self.counter = 0
            self._roll()
            self.size = self._rounded(max(self._sizes))

    def _roll(self) -> None:
        self._sizes = [self._sizes[-1], *self._sizes[:-1]]

    def rows_of_shards(self) -> list[int]:
        """Returns how many rows of the last counted batch are from each pipeline's shard. REQUIRES: a reader."""
        return [max(0, min(self.batch, self.batch - self.counter + self._shards[k])) for k in self._ids]

    def rows_kept(self) -> list[int] | None:
        """Returns the rows of each pipeline that has any in a smaller last batch. None: it is not such a batch."""
        if self.policy is not LastBatchPolicy.PARTIAL:
            return None
        if self._reader is not None:
            rows = self.rows_of_shards()
            return rows if min(rows) < self.batch else None
        over = self.counter - self.size
        if self.size < 0 or over <= 0:
            return None
        whole, rest = divmod(self._step - over, self.batch)
        return [self.batch] * whole + [rest] * (rest > 0)

    def state(self) -> dict[str, Any]:
        """Returns the state for a checkpoint."""
        state: dict[str, Any] = {"counter": self.counter, "size": self.size}
        if self._reader is not None:
            state.update(before=self._before, sizes=self._sizes, ids=self._ids)
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes to the position at which `state` was taken.

        Raises:
            ValueError: the state is of an iterator over other shards.
        """
        here = self.state()
        lists = [key for key, value in here.items() if isinstance(value, list)]
        if set(state) != set(here) or any(len(state[key]) != len(here[key]) for key in lists):
            raise ValueError(
                f"the checkpoint is of another iterator: it counts {state}, and this one {here}; expected that of an "
                "iterator over pipelines of the same number and the same shards"
            )
        self.counter = int(state["counter"])
        self.size = int(state["size"])
        if self._reader is not None:
            self._before, self._sizes, self._ids = ([int(v) for v in state[key]] for key in ("before", "sizes", "ids"))

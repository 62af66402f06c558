# SPDX-License-Identifier: Apache-2.0
"""Pipelines that need no service, as the iterators of leat.dali see them, over samples 0, 1, 2 …"""

import json
import types

import numpy as np

from leat.dali._ways import Ways
from leat.errors import DeadlineExceeded


def labels(samples):
    """Returns one output, of shape (rows, 1)."""
    return [np.asarray(samples, np.int32)[:, None]]


class FakePipeline:
    """A reader named "reader", or without one a source that ends after `samples`."""

    num_threads, seed, exec_dynamic = 1, 0, True

    def __init__(
        self,
        samples=7,
        batch=2,
        shard_id=0,
        num_shards=1,
        *,
        pad=False,
        stick=False,
        device_id=0,
        outputs=labels,
        source=False,
        ahead=False,
        enable_checkpointing=False,
        checkpoint=None,
    ):
        self.max_batch_size = self.batch_size = batch
        self.device_id = device_id
        self.enable_checkpointing = enable_checkpointing
        self.built = self.resets = self.pulled = 0
        self.hold = False  # as if the next batch were on its way
        self._samples, self._shard, self._shards = samples, shard_id, num_shards
        self._pad, self._stick, self._outputs, self._source = pad, stick, outputs, source
        self._may_look_ahead = ahead
        self._ways = Ways()
        self.is_restored_from_checkpoint = checkpoint is not None
        self._checkpoint = checkpoint
        self._step = 0 if checkpoint is None else json.loads(checkpoint)["steps"]

    def build(self):
        self.built += 1

    def reader_meta(self, name=None):
        meta = {
            "epoch_size": self._samples,
            "epoch_size_padded": -(-self._samples // self._shards) * self._shards if self._pad else self._samples,
            "number_of_shards": self._shards,
            "shard_id": self._shard,
            "pad_last_batch": self._pad,
            "stick_to_shard": self._stick,
        }
        if name not in (None, "reader"):
            raise KeyError(name)
        return meta if name else {"reader": meta}

    def _on_gpu(self):
        return [False, True]

    def _position(self):
        return self._step

    def _begun_again(self, step):
        self.resets += 1
        return 0 if self._source else step

    def _state(self, step=None):
        step = self._step if step is None else step
        return json.dumps({"steps": step, "plan": f"{self._samples} in {self._shards}"}).encode()

    def _take(self, step, timeout=None):
        if timeout is not None and self.hold:
            raise DeadlineExceeded("not here yet")
        rows = range(step * self.batch_size, (step + 1) * self.batch_size)
        if self._source and rows.stop > self._samples:
            raise StopIteration
        self.pulled += 1
        return types.SimpleNamespace(outputs=self._outputs([self._sample(row) for row in rows]), after=step + 1)

    def _samples_at(self, step):
        return np.array([self._sample(row) for row in range(step * self.batch_size, (step + 1) * self.batch_size)])

    def _bounds(self, shard):
        return shard * self._samples // self._shards, (shard + 1) * self._samples // self._shards

    def _sample(self, row):
        first, end = self._bounds(self._shard)
        if self._pad:
            each = -(-self._samples // self._shards)
            each = -(-each // self.batch_size) * self.batch_size
            epoch, at = divmod(row, each)
            first, end = self._bounds(self._shard if self._stick else (self._shard + epoch) % self._shards)
            return min(first + at, end - 1)
        if self._stick:
            return first + row % (end - first)
        return (first + row) % self._samples

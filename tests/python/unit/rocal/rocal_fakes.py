# SPDX-License-Identifier: Apache-2.0
"""Jobs that compute their rows in this process, and pipelines over them, for the tests of leat.rocal."""

import types as python_types

import numpy as np
import pytest
from leat import fn as leat_fn
from leat._service import shared
from leat.rocal import Pipeline, _source, _tensor, types

SAMPLES = 50


class FakeJob:
    """Sample i of epoch e has the image [i, e] and the label i; parts and last batches are as in the service."""

    opened = 0
    interrupt = False  # Ctrl-C loses the next batch

    def __init__(self, name, samples, outputs, spec):
        self.name, self.num_samples, self.spec, self.outputs = name, samples, spec, outputs
        self.parts, self.rows = spec["num_parts"], spec["batch"] // spec["num_parts"]
        field = python_types.SimpleNamespace
        self.schema = {name: field(dtype=np.dtype(np.float32), shape=(2,)) for name in outputs}

    def __len__(self):
        smallest, rest = divmod(self.num_samples, self.parts)
        return smallest // self.rows if self.spec["last_batch"] == "drop" else -(-(smallest + (rest > 0)) // self.rows)

    def _sample(self, epoch, step, row):
        block, offset = divmod(row, self.rows)
        part = (block + epoch) % self.parts if self.spec.get("rotate_parts") else block
        begin, end = (self.num_samples * k // self.parts for k in (part, part + 1))
        walked, size = step * self.rows + offset, end - begin
        if walked >= size and self.spec["last_batch"] == "partial":
            return None
        return begin + (walked if walked < size else walked % size if self.spec["last_batch"] == "fill" else size - 1)

    def fills(self, epoch, step, row):
        block, offset = divmod(row, self.rows)
        part = (block + epoch) % self.parts if self.spec.get("rotate_parts") else block
        begin, end = (self.num_samples * k // self.parts for k in (part, part + 1))
        return step * self.rows + offset >= end - begin

    def samples(self, epoch, step, rows):
        found = [self._sample(epoch, step, row) for row in rows]
        if self.spec["last_batch"] == "mask":
            found = [None if self.fills(epoch, step, row) else sample for row, sample in zip(rows, found)]
        return np.array([-1 if sample is None else sample for sample in found])

    def batches(self, epochs, rows, start):
        assert epochs == 0
        FakeJob.opened += 1
        return FakeBatches(self, rows.tolist(), *start)


class FakeBatches:
    def __init__(self, job, rows, epoch, step):
        self.job, self.rows, self.at, self.closed = job, rows, (epoch, step), False
        self.epoch = self.step = None

    def next(self, timeout=None):
        assert not self.closed
        self.epoch, self.step = self.at
        samples = [self.job._sample(self.epoch, self.step, row) for row in self.rows]
        samples = [sample for sample in samples if sample is not None]
        images = np.array([[sample, self.epoch] for sample in samples], np.float32).reshape(-1, 2)
        batch = {name: images for name in self.job.outputs}
        if "label" in batch:
            batch["label"] = np.array(samples, np.int32)
        if self.job.spec["last_batch"] == "mask":
            batch["valid"] = np.array([not self.job.fills(*self.at, row) for row in self.rows])
        last = self.step + 1 == len(self.job)
        self.at = (self.epoch + 1, 0) if last else (self.epoch, self.step + 1)
        interrupt, FakeJob.interrupt = FakeJob.interrupt, False
        if interrupt:
            raise KeyboardInterrupt
        return batch

    def close(self):
        self.closed = True


def fake_jobs():
    """Makes all jobs fakes from here on; returns every job that was made, by name."""
    made = {}

    def job(graph, **spec):
        name = repr((graph.outputs, sorted(spec.items())))
        return made.setdefault(name, FakeJob(name, SAMPLES, graph.outputs, spec))

    shared.job = job
    FakeJob.opened = 0
    return made


@pytest.fixture(autouse=True)
def jobs(monkeypatch):
    decode = leat_fn.decode  # the fake library's has fewer arguments
    monkeypatch.setattr(leat_fn, "decode", lambda encoded, **_: decode(encoded))
    monkeypatch.setattr(shared, "job", shared.job)  # puts it back
    return fake_jobs()


def make(batch_size=4, shard_id=0, num_shards=1, device_id=None, seed=1, outputs=1, **sharding):
    """Makes a pipeline whose images are their samples' numbers, as fn.readers.cifar10 makes one."""
    pipeline = Pipeline(batch_size=batch_size, device_id=shard_id if device_id is None else device_id, seed=seed)
    source = _source.Source("fn.readers.test", "labelReader", lambda: leat_fn.readers.image_folder("/photos"))
    given = dict(
        random_shuffle=False,
        last_batch_policy=types.LAST_BATCH_FILL,
        pad_last_batch=True,
        stick_to_shard=True,
        shard_size=-1,
    )
    given.update(sharding, shard_id=shard_id, num_shards=num_shards)
    source.shard("fn.readers.test", _source.Sharding.of("fn.readers.test", **given))
    with pipeline:
        pipeline.read(source)
        image = _tensor.Tensor(leat_fn.decode(source.encoded()), "uint8", types.NHWC)
        pipeline.set_outputs(*[image] * outputs)
    return pipeline


def samples(iterator, steps=None):
    """Returns the samples of each remaining batch of the epoch."""
    batches = []
    while steps is None or len(batches) < steps:
        try:
            batch = next(iterator)
        except StopIteration:
            break
        batches.append(np.asarray(batch[0])[..., 0].astype(int).tolist())
    return batches

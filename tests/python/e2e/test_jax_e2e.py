# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import digest, train

jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat  # noqa: E402
import leat.jax  # noqa: E402


@pytest.fixture(params=["1-d", "2-d, reversed"])
def sharding(request):
    devices = np.array(jax.devices())
    assert devices.size == 8
    if request.param == "1-d":
        return NamedSharding(Mesh(devices, ("data",)), P("data"))
    return NamedSharding(Mesh(devices[::-1].reshape(4, 2), ("data", "model")), P("data"))


def test_global_arrays_are_the_batches(job, sharding):
    expected = [digest(batch) for batch in job.batches(epochs=2)]
    got = [
        digest({name: np.asarray(array) for name, array in batch.items()})
        for batch in leat.jax.batches(job, sharding=sharding, epochs=2)
    ]
    assert got == expected


def test_arrays_kept_alive_do_not_change(job, sharding):
    kept = [next(it) for it in [leat.jax.batches(job, sharding=sharding, epochs=0)] for _ in range(30)]
    it = leat.jax.batches(job, sharding=sharding, epochs=0)
    for _ in range(100):
        next(it)
    it.close()
    for batch, expected in zip(kept, job.batches(epochs=10)):
        np.testing.assert_array_equal(np.asarray(batch["image"]), expected["image"])


def test_two_halves_make_the_whole(job):
    """Like two processes for the service: each iterator has its own rows."""
    halves = [job.batches(rows=range(0, 8)), job.batches(rows=range(8, 16))]
    for whole in job.batches():
        parts = [next(half) for half in halves]
        np.testing.assert_array_equal(np.concatenate([part["image"] for part in parts]), whole["image"])


@pytest.mark.parametrize("first", ["import jax; jax.devices(); import leat", "import leat; import jax; jax.devices()"])
def test_either_may_be_imported_first(folder, first):
    code = f"""
{first}
from leat import fn
service = leat.connect()
pipeline = leat.pipeline(lambda: fn.readers.image_folder({str(folder)!r})[1])
print(sum(len(batch["output"]) for batch in service.job("a", pipeline, batch=10).batches()))
assert float(jax.jit(lambda x: x * 2)(21.0)) == 42
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, timeout=120, capture_output=True, text=True)
    assert out.stdout.strip() == "100"


def test_a_position_of_another_job_pipeline_or_batch_is_refused(service, job, folder):
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
    it = leat.jax.batches(job, sharding=sharding)
    next(it)
    position = it.position()
    another = service.job("another", train(folder), batch=16, seed=8)
    with pytest.raises(leat.InvalidArgument, match='position: of job "tiny" .* want one of job "another"'):
        leat.jax.batches(another, sharding=sharding, position=position)
    with leat.connect(threads=1) as elsewhere:  # in another service the name is free for other specs
        for pipeline, batch in ((train(folder, size=8), 16), (train(folder), 8)):
            changed = elsewhere.job("tiny", pipeline, batch=batch, seed=7)
            with pytest.raises(
                leat.InvalidArgument, match='another plan of job "tiny" .* pipeline, seed, batch, order or shares'
            ):
                leat.jax.batches(changed, sharding=sharding, position=position)
            moved = leat.jax.batches(changed, sharding=sharding)
            with pytest.raises(leat.InvalidArgument, match='another plan of job "tiny"'):
                moved.set_state(position)
            assert next(moved)["image"].shape[0] == batch  # where it was
            elsewhere.delete_job("tiny")
    with pytest.raises(leat.InvalidArgument, match="damaged"):
        leat.jax.batches(job, sharding=sharding, position=position[:-1])
    with pytest.raises(leat.InvalidArgument, match="position is str; expected the bytes"):
        leat.jax.batches(job, sharding=sharding, position="position")


def test_statistics_count_the_trainers_waits_and_not_the_placing_threads(job, sharding, monkeypatch):
    with leat.jax.batches(job, sharding=sharding, epochs=0) as it:
        for _ in range(11):
            next(it)
            wait_for_the_next(it)
        make_the_next_but_one_wait(it, 0.02, monkeypatch)
        next(it)  # it has been placed
        next(it)
        wait_for_the_next(it)
        stats = it.stats()
    assert stats["steps"] == 14  # the thread has taken one more
    assert stats["wait"]["count"] == 13
    assert stats["wait"]["p50_ms"] < 1 and stats["wait"]["max_ms"] >= 20
    assert 0 < stats["stall_fraction"] < 1


def wait_for_the_next(it):
    """Acts as a training step that lasts until the next batch is placed."""
    while it._ahead.slots[it._ahead.number & 1] is None:
        time.sleep(0.001)


def make_the_next_but_one_wait(it, seconds, monkeypatch):
    """Delays the placing of that batch until the trainer has waited `seconds` for it."""
    ahead, waits = it._ahead, threading.Event()
    place, begin_wait = ahead._place, ahead._host.begin_wait

    def begin():
        begin_wait()
        waits.set()

    def place_one_late(batch):
        monkeypatch.setattr(ahead, "_place", place)
        assert waits.wait(30)
        time.sleep(seconds)
        return place(batch)

    monkeypatch.setattr(ahead._host, "begin_wait", begin)
    monkeypatch.setattr(ahead, "_place", place_one_late)

# SPDX-License-Identifier: Apache-2.0
"""The thread that places batches while the trainer uses the previous one."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import threads

jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import leat  # noqa: E402
import leat.jax  # noqa: E402

PATIENCE_S = 30
PLACING = "leat._arrays.ahead"


@pytest.fixture
def sharding():
    return NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))


@pytest.fixture
def job(service, graph):
    return service.job("images", graph.images, batch=16)


def wait_until(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def wait_for_the_next(it):
    """Waits until a batch is on the devices, beyond the one in use; the thread takes no other before that is taken."""
    wait_until(lambda: it._ahead.slots[it._ahead.number & 1] is not None)


def take_the_last_quick_one(fake, it, delay):
    """All batches after the returned one take `delay` seconds."""
    wait_for_the_next(it)
    fake.set_delay(delay)
    next(it)


def test_one_batch_is_placed_while_the_one_before_is_used(job, sharding):
    threads.wait_until_ended(PLACING)  # of other tests
    it = leat.jax.batches(job, sharding=sharding)
    assert not threads.running(PLACING)  # no batch was requested yet
    assert int(next(it)["label"][0]) == 0
    position = it.position()
    wait_for_the_next(it)
    assert (it.epoch, it.step, it.position()) == (0, 0, position)
    assert it._host.step == 1 and it._ahead._room.empty()  # one, not all
    assert int(next(it)["label"][0]) == 16
    it.close()
    threads.wait_until_ended(PLACING)


def test_waits_of_the_trainer_are_told_and_no_others(fake, job, sharding):
    begun, ended = fake.waits()
    with leat.jax.batches(job, sharding=sharding, epochs=2) as it:
        next(it)
        for _ in range(5):
            wait_for_the_next(it)
            before, _ = fake.waits()
            next(it)
            assert fake.waits()[0] == before
        fake.set_delay(0.2)
        next(it), next(it)
        assert fake.waits()[0] > before
        fake.set_delay(0)
        for _ in it:
            pass
    assert fake.waits()[1] - ended == 2 * len(job)
    with job.batches() as plain:
        begun, ended = fake.waits()
        next(plain)
        assert fake.waits() == (begun, ended)


def test_everything_but_next_answers_while_a_batch_is_waited_for(fake, job, sharding):
    it = leat.jax.batches(job, sharding=sharding)
    next(it), next(it)
    take_the_last_quick_one(fake, it, 1000)
    position = it.position()
    assert it.stats()["rows_per_s"] == 1234.5
    with pytest.raises(leat.InvalidArgument, match="another job"):
        it.set_state(b"nonsense")
    it.close()
    fake.set_delay(0)
    it.set_state(position)
    assert int(next(it)["label"][0]) == 48
    take_the_last_quick_one(fake, it, 1000)
    threading.Timer(0.1, it.close).start()
    assert next(it, None) is None  # the other thread ended it
    assert next(it, None) is None
    threads.wait_until_ended(PLACING)


def test_ctrl_c_loses_no_batch(fake, job, sharding):
    it = leat.jax.batches(job, sharding=sharding)
    next(it)
    take_the_last_quick_one(fake, it, 1.0)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        next(it), next(it)
    fake.set_delay(0)
    expected = (it.step + 1) * 16
    assert int(next(it)["label"][0]) == expected


def test_a_transfer_that_fails_is_no_silent_gap(job, sharding, monkeypatch):
    it = leat.jax.batches(job, sharding=sharding)
    next(it)
    wait_for_the_next(it)

    def fail(*_):
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr("leat._arrays.assembling.Assembling.__call__", fail)
        assert int(next(it)["label"][0]) == 16
        position = it.position()
        for _ in range(2):
            with pytest.raises(RuntimeError, match="out of memory"):
                next(it)
    it.set_state(position)
    assert int(next(it)["label"][0]) == 32


def test_an_iterator_that_is_dropped_ends_its_thread(fake, job, sharding):
    it = leat.jax.batches(job, sharding=sharding)
    next(it)
    take_the_last_quick_one(fake, it, 1000)
    del it
    threads.wait_until_ended(PLACING)


@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning", "ignore:.*fork:DeprecationWarning")
def test_a_forked_child_is_told_and_leaves_the_parents_iterator_alone(job, sharding):
    it = leat.jax.batches(job, sharding=sharding)
    next(it), next(it)
    for has_next in (False, True):
        if has_next:
            wait_for_the_next(it)
        child = os.fork()
        if child == 0:
            try:
                with pytest.raises(leat.FailedPrecondition, match="was forked: .*call leat.connect"):
                    next(it)
                it.close()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert int(next(it)["label"][0]) == (48 if has_next else 32)


@pytest.mark.parametrize("wide", [False, True])
def test_64_bits_are_as_the_trainers_thread_has_them(job, sharding, wide, monkeypatch):
    from leat._arrays import assembling

    enable = getattr(jax, "enable_x64", None)
    if not callable(enable):
        from jax.experimental import enable_x64 as enable
    assemble = assembling.assemble

    def widened(array, placement):
        return assemble(array.astype(np.int64), placement)

    monkeypatch.setattr(assembling, "assemble", widened)
    with enable(wide), leat.jax.batches(job, sharding=sharding, fields=["label"]) as it:
        assert next(it)["label"].dtype == (np.int64 if wide else np.int32)


@pytest.mark.parametrize("delay", [0, 1000])
def test_python_ends_while_batches_are_placed(delay):
    script = f"""
        import ctypes, os, time, weakref
        weakref.finalize(os, print, end="")  # so that finalizers run after what JAX does at the end
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
        import jax, numpy as np, leat, leat.jax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        from leat import fn

        @leat.pipeline
        def images():
            encoded, label = fn.readers.image_folder("/photos")
            return {{"image": fn.random_resized_crop(fn.decode(encoded), size=(8, 8)), "label": label}}

        job = leat.connect().job("images", images, batch=16)
        sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
        it = leat.jax.batches(job, sharding=sharding, epochs=0)
        next(it), next(it)
        while it._ahead.slots[it._ahead.number & 1] is None:
            time.sleep(0.001)
        fake = ctypes.CDLL(os.path.join(os.environ["LEAT_NATIVE_DIR"], "libleat.so"))
        fake.fake_set_delay.argtypes = [ctypes.c_double]
        fake.fake_set_delay({delay})
        next(it)
        print("done")
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=4 * PATIENCE_S
    )
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr

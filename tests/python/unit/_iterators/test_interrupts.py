# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C at random moments: every iterator hands out every batch once, and its position matches.

A system timer sends the signal, so that it arrives anywhere in the main thread, also in the middle of a call.
"""

import ctypes
import signal
import sys
import threading

import numpy as np
import pytest
import threads
from interrupts import INTERRUPTS, Held, Interrupts

import leat
from leat._library import native
from leat._library.buffer import Buffer

BATCH = 10


def first_label(batch):
    return int(np.asarray(batch["label"][0]))


def check(make, job, fake, seed):
    """Runs epochs until enough interrupts have come, and compares the batches with the expected ones."""
    it = make(epochs=1)  # starts everything that is started only once
    for _ in it:
        pass
    it.close()
    del it, _
    epochs, live, held = 30, fake.live(), Held()
    with Interrupts(seed) as interrupts:
        while interrupts.raised < INTERRUPTS:
            it = make(epochs=epochs)
            got = []
            ended = False
            while not ended:
                try:
                    interrupts.arm()
                    # No signal handler runs between the batch's leaving `it` and its being in `got`.
                    for batch in it:
                        got.append(batch["label"])
                        interrupts.arm()
                    interrupts.armed = False
                    ended = True
                except KeyboardInterrupt:
                    if it.step is not None:
                        assert it.epoch * len(job) + it.step + 1 == len(got)
            steps = len(job)
            assert [int(np.asarray(label)[0]) for label in got] == [
                number % steps * BATCH for number in range(epochs * steps)
            ]
            it.close()
            del it, batch, got
    assert fake.live() == live
    held.assert_no_more()


def test_numpy_batches_are_neither_lost_nor_repeated(job, fake):
    check(job.batches, job, fake, 1)


def test_torch_batches_are_neither_lost_nor_repeated(job, fake):
    pytest.importorskip("torch")
    import leat.torch

    check(lambda **options: leat.torch.batches(job, **options), job, fake, 2)


def test_global_arrays_are_neither_lost_nor_repeated(fake, job):
    jax = pytest.importorskip("jax")
    import leat.jax

    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    check(lambda **options: leat.jax.batches(job, sharding=sharding, **options), job, fake, 3)


def check_moves(it):
    """An interrupted set_state has either moved the iterator or not: it never leaves it closed."""
    for _ in range(5):
        next(it)
    state = it.get_state()
    before = 40
    with Interrupts(4) as interrupts:
        while interrupts.raised < INTERRUPTS:
            try:
                interrupts.arm()
                while interrupts.armed:
                    it.set_state(state)
            except KeyboardInterrupt:
                pass
            label = first_label(next(it))
            assert label in (50, (before + 10) % 100)
            before = label
    it.close()
    threads.wait_until_ended("leat._library.threads")


def test_an_interrupted_set_state_leaves_no_iterator_closed(job):
    check_moves(job.batches(epochs=0))


def test_an_interrupted_set_state_leaves_no_global_iterator_closed(job):
    jax = pytest.importorskip("jax")
    import leat.jax

    check_moves(leat.jax.batches(job, sharding=jax.sharding.SingleDeviceSharding(jax.devices()[0]), epochs=0))


def test_the_position_goes_on_with_the_batch_that_was_not_handed_out(job, fake):
    """A batch arrives in the slice in which Ctrl-C is pressed: it is the next one, here and by the position."""
    for _ in range(20):
        it = job.batches(epochs=3)
        next(it)
        fake.set_delay(0.01)
        timer = threading.Timer(0.005, signal.raise_signal, (signal.SIGINT,))
        try:
            timer.start()
            for _ in it:  # takes one; it has an owner at every moment
                break
            timer.join()
        except KeyboardInterrupt:
            pass
        timer.join()
        fake.set_delay(0)
        goes_on = job.batches(position=it.position())
        expected = (it.step + 1) * BATCH
        assert first_label(next(goes_on)) == expected
        assert first_label(next(it)) == expected
        goes_on.close()
        it.close()


def test_the_passes_of_a_dataset_are_whole(job, fake):
    """torch's dataset opens its stream again after an interrupt, at the batch that was not handed out."""
    pytest.importorskip("torch")
    import leat.torch

    data = leat.torch.IterableDataset(job)
    with Interrupts(4) as interrupts:
        while interrupts.raised < INTERRUPTS:
            state, seen = None, []
            epoch = data.state_dict()["epoch"]
            while len(seen) < len(job):
                try:
                    interrupts.arm()
                    for batch in data:
                        seen.append(batch["label"])
                        interrupts.arm()
                    interrupts.armed = False
                except KeyboardInterrupt:
                    state = data.state_dict()
                    assert (state["epoch"] - epoch) * len(job) + state["step"] == len(seen)
                    data.load_state_dict(state)
            assert [int(label[0]) for label in seen] == [step * BATCH for step in range(len(job))]
    data.close()


def test_closing_a_service_waits_for_the_call_that_is_under_way(service, fake, graph):
    """Ctrl-C leaves a call running in the library; the objects that it uses are freed after it."""
    fake.set_delay(2)
    with pytest.raises(KeyboardInterrupt):
        with service:
            threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()
            service.job("slow", graph.images, batch=10)
    threads.wait_until_ended("leat._library.threads")
    assert fake.freed_in_use() == 0
    with pytest.raises(leat.FailedPrecondition, match="closed"):
        service.job("late", graph.images, batch=10)


def test_no_python_runs_when_something_is_freed(graph, fake):
    """An interrupt in a finalizer would end it, and the memory would not be freed."""
    service = leat.connect()
    job = service.job("again", graph.images, batch=10)
    batches = job.batches()
    handles, called = fake.handles(), []

    def call(frame, event, arg):
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(call)
    del batches, job, service
    sys.setprofile(None)
    assert called == [] and fake.handles() == handles - 2


def test_what_a_call_writes_to_is_there_until_it_returns(job, monkeypatch):
    """Ctrl-C leaves the call running, and its sample is not wanted any more."""
    returns, written = threading.Event(), []

    def sample(handle, number, timeout, out):
        written.append(ctypes.addressof(out._obj))
        signal.raise_signal(signal.SIGINT)
        returns.wait(60)

    monkeypatch.setattr(native.lib, "leat_job_sample", sample)
    try:
        job.sample(0)
    except KeyboardInterrupt:
        pass
    others = [Buffer(job) for _ in range(8)]  # they get the memory that was freed last
    returns.set()
    assert len(written) == 1 and written[0] not in [ctypes.addressof(each.out) for each in others]
    threads.wait_until_ended("leat._library.threads")


# Moments within the duration of a call of the fake, and after it.
MOMENTS = (20e-6, 50e-6, 100e-6, 200e-6, 400e-6)


def interrupted(seed, call, fake):
    """Interrupts `call` often enough; it leaks nothing, neither in the library nor in the system."""
    call()
    handles, held, before = fake.handles(), Held(), threading.active_count()
    with Interrupts(seed, MOMENTS) as interrupts:
        while interrupts.raised < INTERRUPTS:
            try:
                interrupts.arm()
                call()  # its result is freed here; an interrupt may arrive during that, too
                interrupts.armed = False
            except KeyboardInterrupt:
                pass
    threads.wait_until_ended("leat._library.threads")
    # A thread drops its references after its last frame is gone.
    threads.wait_until(
        lambda: fake.handles() == handles, lambda: f"{fake.handles()} handles, of which {handles} were there before"
    )
    held.assert_no_more()
    assert threading.active_count() == before


def test_a_job_that_is_interrupted_raises_nothing_else_and_leaves_nothing(service, graph, fake):
    interrupted(6, lambda: service.job("again", graph.images, batch=10), fake)


def test_a_connection_that_is_interrupted_raises_nothing_else_and_leaves_nothing(fake):
    interrupted(7, leat.connect, fake)


def test_an_answer_that_is_interrupted_raises_nothing_else_and_leaves_nothing(job, fake):
    interrupted(8, lambda: job.why(3, 7), fake)


def test_a_handler_that_closes_just_before_a_call_frees_nothing_under_it(monkeypatch, job, fake):
    before = fake.iterators()
    it = job.batches(epochs=1)
    next(it)
    there = []

    def interrupted(*_):
        it.close()
        there.append(fake.iterators() - before)

    monkeypatch.setattr(native.lib, "leat_batches_next", interrupted)
    with pytest.raises(StopIteration):
        next(it)
    assert there == [1] and fake.iterators() == before

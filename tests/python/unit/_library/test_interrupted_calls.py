# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C at random moments in every call of a service, a job and an iterator: it leaks and changes nothing.

tests/python/unit/_iterators/test_interrupts.py has those that hand out batches, and those that make services and jobs.
"""

import threading

import numpy as np
import pytest
import threads
from interrupts import INTERRUPTS, Held, Interrupts

# Moments within the duration of a call, and after it.
MOMENTS = (10e-6, 20e-6, 50e-6, 100e-6, 200e-6)

CALLS = {
    "Service.get": lambda service, job, it: service.get("workers"),
    "Service.address": lambda service, job, it: service.address,
    "Job.to_dict": lambda service, job, it: job.to_dict(),
    "Job.step_of": lambda service, job, it: job.step_of(it.position()),
    "Job.samples": lambda service, job, it: job.samples(0, 3),
    "Job.record": lambda service, job, it: job.record(42),
    "Job.why of a row": lambda service, job, it: job.why(3, 7),
    "Job.why of a step": lambda service, job, it: job.why(3),
    "Job.sample": lambda service, job, it: job.sample(42),
    "Job.batches": lambda service, job, it: job.batches(epochs=1),
    "Batches.close": lambda service, job, it: job.batches(epochs=1).close(),
    "Batches.next": lambda service, job, it: job.batches(epochs=1).next(timeout=1),
    "Batches.position": lambda service, job, it: it.position(),
    "Batches.get_state": lambda service, job, it: it.get_state(),
    "Batches.set_state": lambda service, job, it: it.set_state(it.get_state()),
    "Batches.samples": lambda service, job, it: it.samples(),
    "Batches.stats": lambda service, job, it: it.stats(),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupted_call_leaves_and_changes_nothing(name, service, job, fake):
    it = job.batches(epochs=None)
    for step in range(3):
        assert int(np.asarray(next(it)["label"])[0]) == step * 10
    position = it.position()

    def call():
        CALLS[name](service, job, it)

    call()  # starts everything that is started only once
    live, handles, held, before = fake.live(), fake.handles(), Held(), threading.active_count()
    with Interrupts(list(CALLS).index(name), MOMENTS) as interrupts:
        while interrupts.raised < INTERRUPTS:
            try:
                interrupts.arm()
                while interrupts.armed:
                    call()
            except KeyboardInterrupt:
                pass
    threads.wait_until_ended("leat._library.threads")
    assert (fake.live(), fake.handles()) == (live, handles)
    held.assert_no_more()
    assert threading.active_count() == before
    assert it.position() == position
    for step in range(3, 10):
        assert int(np.asarray(next(it)["label"])[0]) == step * 10
    it.close()

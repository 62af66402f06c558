# SPDX-License-Identifier: Apache-2.0
"""KeyboardInterrupt at random moments: a system timer sends a signal, which arrives anywhere in the thread.

LEAT_TEST_INTERRUPTS is how many a test waits for. 1000 take about a minute of one core in all.
"""

import gc
import os
import random
import signal
import sys
import time

INTERRUPTS = int(os.environ.get("LEAT_TEST_INTERRUPTS", "200"))


class Interrupts:
    """SIGALRM raises KeyboardInterrupt, as SIGINT does, at a random moment after each `arm`, once.

    Attributes:
        armed: whether the next signal raises. Storing False here takes no call, so that none comes in between.
        raised: how many interrupts were raised.
    """

    def __init__(self, seed, moments=(20e-6, 50e-6, 100e-6, 300e-6, 3e-3)):
        self._moments = moments
        self._random = random.Random(seed)
        self.armed = False
        self.raised = 0

    def _raise(self, *_):
        if self.armed:
            self.armed = False
            self.raised += 1
            raise KeyboardInterrupt

    def __enter__(self):
        self._before = signal.signal(signal.SIGALRM, self._raise)
        # An interrupt in a finalizer is ignored; keeping it would keep the frames below.
        self._hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        return self

    def arm(self):
        """Arms the timer; the signal should often arrive in a call of `next`, and sometimes after it."""
        self.armed = True
        signal.setitimer(signal.ITIMER_REAL, self._random.choice(self._moments))

    def __exit__(self, *_):
        self.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)
        sys.unraisablehook = self._hook


PATIENCE_S = 60


class Held:
    """The descriptors and threads of a process, including libraries' threads. Made before the interrupts."""

    def __init__(self):
        gc.collect()
        self._before = self._now()

    @staticmethod
    def _now():
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def assert_no_more(self):
        """Waits for threads that are about to end."""
        until = time.monotonic() + PATIENCE_S
        gc.collect()
        while any(now > before for now, before in zip(self._now(), self._before)):
            assert time.monotonic() < until, f"descriptors and threads: {self._now()}, and {self._before} before"
            time.sleep(0.001)


def gone_through(interrupts, iterator, count):
    """Returns the first `count` batches of an iterator that is interrupted all the time.

    A batch is in the list if no signal handler can have run since it was handed out. After the end of an epoch the next
    one begins.
    """
    got = []
    while len(got) < count:
        try:
            interrupts.arm()
            for batch in iterator:
                got.append(batch)
                if len(got) == count:
                    break
                interrupts.arm()
            interrupts.armed = False
        except KeyboardInterrupt:
            pass
    interrupts.armed = False
    return got

# SPDX-License-Identifier: Apache-2.0
"""A soak: random faults, one at a time, in a cluster of three workers that trains job after job.

Two of the workers can be reached at any moment, so that no step has a reason to wait for long. The soak reports the
events around the longest waits, and fails if one is longer than allowed: if more than LONGEST_S is left of it without
the load of the machine (RunQueues). The logs of a failed soak are kept. The first step of a job may wait longer when
the coordinator has just come back: it assigns no owners until workers are back, and no more of them come.
"""

import dataclasses
import datetime
import errno
import os
import pathlib
import random
import shutil
import tempfile
import time

LONGEST_S = 2.0   # the longest wait, without the time that the machine's load adds
BACK_S = 3.0      # a worker's longest pause before it connects again is 2 s, --lost-after-ms of these clusters is 1 s
TOP = 5           # how many waits are described
BEFORE_S = 6.0   # faults that ended within this time before a wait are named
CONTEXT_S = 5.0   # seconds of logs around a wait


@dataclasses.dataclass
class Fault:
    number: int
    name: str
    worker: int
    begin: float
    end: float = float("inf")

    def seen_from(self, begin, end):
        """Returns how a wait in this interval relates to the fault; empty: it does not."""
        if self.begin > end or self.end < begin - BEFORE_S:
            return ""
        text = f"{self.number} {self.name} worker={self.worker}"
        if self.end >= end:
            return f"{text} since {end - self.begin:.1f} s"
        return f"{text} for {self.end - self.begin:.1f} s until {end - self.end:.1f} s ago"


@dataclasses.dataclass
class Wait:
    """The wait of one step. `end` is monotonic, `at` is a wall time in UTC."""

    job: int
    epoch: int
    step: int
    seconds: float
    starved_s: float
    end: float
    at: datetime.datetime

    @property
    def judged_s(self):
        """The part that would remain if the machine had a core for every ready thread of the soak's processes."""
        return max(0.0, self.seconds - self.starved_s)

    def describe(self, faults):
        met = [text for fault in faults if (text := fault.seen_from(self.end - self.seconds, self.end))]
        return (f"wait {self.seconds:.2f} s, {self.starved_s:.2f} s of it for a core: job={self.job} "
                f"epoch={self.epoch} step={self.step} until {self.at:%H:%M:%S.%f}; faults: {'; '.join(met) or 'none'}")


class Record:
    """Keeps the faults and the waits of a soak, and finds waits that are too long."""

    def __init__(self):
        self.faults, self.waits = [], []

    def longest(self):
        return sorted(self.waits, key=lambda wait: wait.seconds, reverse=True)[:TOP]

    def too_long(self):
        return [wait for wait in self.waits if wait.judged_s > LONGEST_S + self._more_s(wait)]

    def _more_s(self, wait):
        first = wait.epoch == wait.step == 0
        begin = wait.end - wait.seconds
        back = any(fault.name in ("kill_coordinator", "stop_coordinator") and begin - BEFORE_S < fault.end <= wait.end
                   for fault in self.faults)
        return BACK_S if first and back else 0.0


class RunQueues:
    """Measures how long threads were ready without a core, since another program had it.

    A step depends on one worker, the consumer, the coordinator and this process (whose proxies are between them). So
    for each of these roles the thread that waited longest is counted. Overlapping times are counted twice, so the
    result is an upper estimate of the cost of the load; a thread that sleeps, or waits for an answer, does not count.
    """

    def __init__(self):
        self._last = {}

    @staticmethod
    def _of(pid):
        delays = {}
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                    delays[pid, thread] = int(file.read().split()[1])
        except (OSError, IndexError):  # it has ended, or this kernel has no such counts
            pass
        return delays

    def since(self, roles):
        """Returns seconds since the last call; `roles`: the processes of each role."""
        last, self._last, total = self._last, {}, 0
        for pids in roles:
            now = {}
            for pid in pids:
                now |= self._of(pid)
            total += max((delay - last.get(thread, delay) for thread, delay in now.items()), default=0)
            self._last |= now
        return total / 1e9


def log_time(line):
    """Returns the time at the beginning of a log line; None: it has none."""
    try:
        return datetime.datetime.fromisoformat(line.split(" ", 1)[0].removesuffix("Z"))
    except ValueError:
        return None


def lines_around(folder, begin, end):
    """Returns the lines of all logs between two times, by time."""
    found = []
    for log in sorted(folder.glob("*.log")):
        for line in log.read_text(errors="replace").splitlines():
            at = log_time(line)
            if at is not None and begin <= at <= end:
                found.append((at, f"{log.stem}: {line}"))
    return [line for _, line in sorted(found, key=lambda pair: pair[0])]


class Soak:
    """Three workers behind proxies, a coordinator with a state, and a job that is trained again and again."""

    def __init__(self, test, seed):
        self.test, self.random = test, random.Random(seed)
        self.counts = {"faults": 0, "steps": 0, "rows": 0, "hashes_compared": 0, "jobs": 0, "damaged_streams": 0}
        self.record, self.queues = Record(), RunQueues()
        self.files = test.file_faults(test.photos)
        test.start_coordinator()
        self.between = test.proxy(test.coordinator.address)
        self.workers = [None] * 3
        self.addresses = [f"127.0.0.1:{test.free_port()}" for _ in self.workers]
        self.proxies = [test.proxy(address) for address in self.addresses]
        for number in range(len(self.workers)):
            self.start(number)

    def start(self, number):
        if self.workers[number] is not None:
            self.workers[number].close()
        self.workers[number] = self.test.start_worker(
            "--listen", self.addresses[number], "--advertise", self.proxies[number].address, "--cache", "0",
            name=f"w{number}", coordinator=self.between.address, env=self.files.env if number == 0 else None)

    # Each fault breaks something, and returns a function that repairs it.

    def narrow(self, number):
        self.proxies[number].set(bytes_per_s=self.random.choice((200_000, 2_000_000)))
        return self.proxies[number].clear

    def late(self, number):
        self.proxies[number].set(delay_s=self.random.uniform(0.01, 0.3), jitter_s=0.02)
        return self.proxies[number].clear

    def black_hole(self, number):
        self.proxies[number].set(hole=True)
        return self.proxies[number].clear

    def reset(self, number):
        self.proxies[number].reset()
        return lambda: None

    def reset_sessions(self, _):
        self.between.reset()
        return lambda: None

    def kill_worker(self, number):
        self.workers[number].kill9()
        return lambda: self.start(number)

    def drain_worker(self, number):
        self.workers[number].signal(15)
        self.workers[number].process.wait(60)
        return lambda: self.start(number)

    def stop_worker(self, number):
        self.workers[number].signal(19)
        return lambda: self.workers[number].signal(18)

    def stop_coordinator(self, _):
        self.test.coordinator.signal(19)
        return lambda: self.test.coordinator.signal(18)

    def kill_coordinator(self, _):
        self.test.coordinator.kill9()

        def restart():
            self.test.coordinator.close()
            self.test.restart_coordinator()
        return restart

    def short_reads(self, _):
        self.files.set(read=self.files.SHORT)
        return self.files.clear

    def slow_files(self, _):
        self.files.set(read=self.files.HANG)
        return self.files.clear

    def failing_files(self, _):
        self.files.set_storage(self.random.choice((errno.EIO, errno.ENOENT, errno.ESTALE)))
        return self.files.clear

    def jumping_clock(self, _):
        self.files.jump(self.random.uniform(-1e5, 1e5))
        return lambda: self.files.jump(0)

    def corrupt(self, number):
        self.proxies[number].set(corrupt_every=self.random.choice((100_000, 1_000_000)))
        return self.proxies[number].clear

    def flood_worker(self, number):
        flood = self.test.flood(self.addresses[number], 200)
        flood.__enter__()
        return lambda: flood.__exit__(None, None, None)

    FAULTS = (narrow, late, black_hole, reset, reset_sessions, kill_worker, drain_worker, stop_worker, stop_coordinator,
              kill_coordinator, short_reads, slow_files, failing_files, jumping_clock, corrupt, flood_worker)

    def run(self, end):
        while time.monotonic() < end:
            self.train(end)

    def begin_fault(self):
        kind, number = self.random.choice(self.FAULTS), self.random.randrange(len(self.workers))
        fault = Fault(self.counts["faults"], kind.__name__, number, time.monotonic())
        self.counts["faults"] += 1
        self.record.faults.append(fault)
        print(f"fault {fault.number} {fault.name} worker={number} job={self.counts['jobs']}", flush=True)
        mend = kind(self, number)

        def end_fault():
            mend()
            fault.end = time.monotonic()
        return end_fault

    def pull(self, consumer, steps):
        for _ in range(steps):
            roles = ([consumer.process.pid], [self.test.coordinator.process.pid],
                     [worker.process.pid for worker in self.workers], [os.getpid()])
            self.queues.since(roles)
            consumer.pull(1)
            epoch, step, _ = consumer.steps[-1]
            self.record.waits.append(Wait(self.counts["jobs"], epoch, step, consumer.waits_ms[-1] / 1000,
                                          self.queues.since(roles), time.monotonic(),
                                          datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)))

    def train(self, end):
        """Trains one job with its own seed; after it has begun, injects faults now and then, one at a time."""
        self.counts["jobs"] += 1
        spec = self.test.chaos_spec(name=f"soak{self.counts['jobs']}", seed=self.random.randrange(1 << 30))
        expected = self.test.oracle_steps(spec, self.test.epochs)
        consumer = self.test.train("--log-level", "debug", spec=spec)
        self.pull(consumer, 1)
        mend = None
        while len(consumer.steps) < len(expected):
            if mend is None and time.monotonic() < end:
                mend = self.begin_fault()
            # One time in three it runs to the next epoch's beginning, so that many faults happen there.
            to_epoch = self.test.steps - len(consumer.steps) % self.test.steps
            steps = to_epoch if self.random.random() < 1 / 3 else self.random.randint(1, 4)
            self.pull(consumer, min(steps, len(expected) - len(consumer.steps)))
            if mend is not None and self.random.random() < 0.5:
                mend()
                mend = None
        if mend is not None:
            mend()
        consumer.finish()
        consumer.close()
        self.test.assertIsNone(consumer.error)
        self.test.assertEqual(consumer.steps, expected)
        self.counts["steps"] += len(expected)
        self.counts["rows"] += len(expected) * self.test.batch
        self.counts["hashes_compared"] += len(expected)
        self.counts["damaged_streams"] += consumer.end["damaged"]

    def keep_logs(self, waits, folder):
        """Keeps all logs, and an extract around each of the waits; returns the folder."""
        folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="leat-soak-"))
        folder.mkdir(parents=True, exist_ok=True)
        for log in self.test.folder.glob("*.log"):
            shutil.copy(log, folder)
        context = datetime.timedelta(seconds=CONTEXT_S)
        for number, wait in enumerate(waits):
            begin = wait.at - datetime.timedelta(seconds=wait.seconds)
            lines = lines_around(self.test.folder, begin - context, wait.at + context)
            (folder / f"wait-{number}.txt").write_text("\n".join([wait.describe(self.record.faults), *lines, ""]))
        return folder

# SPDX-License-Identifier: Apache-2.0
"""The soak's judgement of waits."""

import datetime
import os
import pathlib
import select
import tempfile
import unittest

import soak

AT = datetime.datetime(2026, 5, 1, 12, 0, 10)


def wait(seconds, starved_s=0.0, end=100.0, epoch=0, step=3):
    return soak.Wait(7, epoch, step, seconds, starved_s, end, AT)


class Waits(unittest.TestCase):
    def too_long(self, waits, faults=()):
        record = soak.Record()
        record.waits, record.faults = list(waits), list(faults)
        return record.too_long()

    def test_what_the_load_adds_is_not_counted(self):
        waits = [wait(1.9), wait(2.1), wait(2.9, 1.0), wait(9.0, 1.0), wait(1.0, 5.0)]
        self.assertEqual(self.too_long(waits), [waits[1], waits[3]])

    def test_the_first_step_waits_for_workers_of_a_coordinator_that_is_back(self):
        first, later = wait(4.0, step=0), wait(4.0)
        back = soak.Fault(1, "kill_coordinator", 0, begin=80.0, end=95.5)
        self.assertEqual(self.too_long([first, later]), [first, later])
        self.assertEqual(self.too_long([first, later], [back]), [later])
        self.assertEqual(self.too_long([wait(5.5, step=0)], [back]), [wait(5.5, step=0)])
        for other in (soak.Fault(1, "black_hole", 0, 80.0, 95.5), soak.Fault(1, "kill_coordinator", 0, 70.0, 89.0)):
            self.assertEqual(self.too_long([first], [other]), [first])

    def test_the_longest_come_first(self):
        record = soak.Record()
        record.waits = [wait(0.1 * i) for i in range(10)]
        self.assertEqual(record.longest(), record.waits[9:4:-1])

    def test_it_says_which_faults_a_wait_met(self):
        faults = [soak.Fault(0, "narrow", 1, 50.0, 90.9), soak.Fault(1, "late", 2, 90.0, 95.0),
                  soak.Fault(2, "black_hole", 0, 98.0), soak.Fault(3, "reset", 0, 101.0)]
        self.assertEqual(wait(3.0).describe(faults),
                         "wait 3.00 s, 0.00 s of it for a core: job=7 epoch=0 step=3 until 12:00:10.000000; faults: "
                         "1 late worker=2 for 5.0 s until 5.0 s ago; 2 black_hole worker=0 since 2.0 s")
        self.assertIn("faults: none", wait(3.0).describe([]))


class Logs(unittest.TestCase):
    def test_lines_around_a_wait_come_by_time(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "a.log").write_text("2026-05-01T12:00:03.000Z one\nno time\n2026-05-01T12:00:09.500Z three\n")
            (folder / "b.log").write_text("2026-05-01T12:00:04.000Z two\n2026-05-01T12:00:30.000Z four\n")
            self.assertEqual(soak.lines_around(folder, AT - datetime.timedelta(seconds=6.5), AT),
                             ["b: 2026-05-01T12:00:04.000Z two", "a: 2026-05-01T12:00:09.500Z three"])


class Load(unittest.TestCase):
    def test_threads_that_want_one_core_wait_for_it(self):
        queues, core = soak.RunQueues(), min(os.sched_getaffinity(0))
        if not queues._of(os.getpid()):
            self.skipTest("this kernel does not count how long threads wait for a core")
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os.sched_setaffinity(0, {core})
                while True:
                    pass
            children.append(child)
        nobody = 1 << 22  # larger than any process id
        roles = (children, [os.getpid()], [nobody])
        try:
            queues.since(roles)
            waited, looks = 0.0, 0
            while waited < 0.05 and looks < 1000:
                select.select([], [], [], 0.01)
                waited, looks = waited + queues.since(roles), looks + 1
        finally:
            for child in children:
                os.kill(child, 9)
                os.waitpid(child, 0)
        self.assertGreaterEqual(waited, 0.05)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Daemons are confined by a filter of system calls before they serve, in every thread, and work nevertheless."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/e2e"))
import cluster  # noqa: E402


def filters(status):
    """Returns (filters of system calls, no_new_privs) of a thread, from /proc. A container may have filters, too."""
    lines = dict(line.split(":\t", 1) for line in pathlib.Path(status).read_text().splitlines() if ":\t" in line)
    return int(lines.get("Seccomp_filters", 2 * int(lines["Seccomp"] == "2"))), int(lines["NoNewPrivs"])


def sanitized():
    """True for builds for sanitizers, which are not confined, since they need ptrace."""
    symbols = subprocess.run(["nm", "-D", cluster.program("WORKER")], capture_output=True, text=True).stdout
    return "__asan_" in symbols or "__tsan_" in symbols


class Confined(cluster.PhotosTest):

    def setUp(self):
        super().setUp()
        if sanitized():
            self.skipTest("a build for sanitizers is not confined")
        self.own = filters("/proc/self/status")[0]

    def of_threads(self, daemon):
        return [filters(task / "status") for task in pathlib.Path(f"/proc/{daemon.process.pid}/task").iterdir()]

    def test_every_thread_of_a_daemon_is_confined_and_rows_are_the_oracles(self):
        self.start_coordinator()
        worker = self.start_worker(threads=2)
        consumer = self.consumer(self.spec()).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        for daemon in (self.coordinator, worker):
            threads = self.of_threads(daemon)
            self.assertGreater(len(threads), 4)
            self.assertEqual(set(threads), {(self.own + 1, 1)}, daemon.name)
            self.assertIn("process.confined", pathlib.Path(daemon.log).read_text())
        # An orderly end uses no forbidden system call.
        self.assertEqual([worker.stop(), self.coordinator.stop()], [0, 0])

    def test_without_the_filter_the_log_says_so(self):
        self.start_coordinator("--no-seccomp")
        worker = self.start_worker("--no-seccomp")
        for daemon in (self.coordinator, worker):
            self.assertEqual({count for count, _ in self.of_threads(daemon)}, {self.own}, daemon.name)
            self.assertIn("process.not_confined", pathlib.Path(daemon.log).read_text())
        found = [finding for finding in self.get("status")["findings"] if finding["code"] == "NOT_CONFINED"]
        self.assertEqual([finding.get("subjects", []) for finding in found], [[], ["worker/w0"]])
        for finding in found:
            self.assertIn("--no-seccomp", finding["summary"])


if __name__ == "__main__":
    unittest.main()

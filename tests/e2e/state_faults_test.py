# SPDX-License-Identifier: Apache-2.0
"""A coordinator whose disk fails: it ends with a code of its own, and trainings go on.

LEAT_STORAGE_SHIM is the library of tests/support/storage_shim.cc, which makes its fsync fail."""

import os
import unittest

import cluster

STATE_FAILED = 74  # kStateFailedExitCode of server/daemon.h


class StateFaults(cluster.PhotosTest):
    def setUp(self):
        super().setUp()
        if not os.path.exists(os.environ.get("LEAT_STORAGE_SHIM", "")):
            self.skipTest("LEAT_STORAGE_SHIM names no library")
        self.control = self.folder / "control"
        self.control.touch()
        self.start_coordinator(env={"LD_PRELOAD": os.environ["LEAT_STORAGE_SHIM"],
                                    "LEAT_SHIM_CONTROL": str(self.control),
                                    "LEAT_SHIM_PREFIX": str(self.folder / "state"),
                                    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"})
        self.start_worker(threads=2)

    def test_a_failed_fsync_ends_the_coordinator_and_no_training(self):
        consumer = self.consumer(self.spec(), "--paced", "--window", 1)
        consumer.pull(3)
        self.control.write_text("FSYNC")
        refused = self.consumer(self.spec(name="other"), "--timeout-s", 60, epochs=1)
        self.assertEqual(self.coordinator.process.wait(cluster.PATIENCE_S), STATE_FAILED)
        self.assertEqual(self.coordinator.tail().count("state.failed"), 1)
        self.assertIn("fsync", self.coordinator.tail())
        consumer.pull(3)  # without a coordinator
        self.restart_coordinator()  # on a disk that works
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        # Who was creating a job meanwhile has waited.
        self.assertIsNone(refused.finish().error)
        jobs = [job["job"]["spec"]["name"] for job in self.get("jobs")["jobs"]]
        self.assertEqual(sorted(jobs), ["job", "other"])


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Workers with another JPEG decoder do not change the bytes of a job that began without them.

LEAT_FAULT_SHIM with LEAT_FAULT_PIXELS stands for another release of libjpeg: it changes the library's output."""

import os
import pathlib
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import cluster  # noqa: E402


def other_library():
    shim = os.environ.get("LEAT_FAULT_SHIM", "")
    if not os.path.exists(shim):
        raise unittest.SkipTest("LEAT_FAULT_SHIM names no library")
    return {"LD_PRELOAD": shim, "LEAT_FAULT_PIXELS": "1",
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


class Decoders(cluster.PhotosTest):
    def workers_by_name(self):
        return {worker["name"]: worker for worker in self.get("workers")["workers"]}

    def assert_oracle(self, consumer):
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)

    def test_a_worker_with_another_library_joins_a_running_job(self):
        self.start_coordinator()
        self.start_worker(name="sound")
        consumer = self.consumer(self.spec(), "--paced", "--window", 1)
        consumer.pull(1)
        self.start_worker(name="other", threads=4, env=other_library())
        self.start_worker(name="alike")
        self.until("alike owns shards", lambda: int(self.workers_by_name()["alike"].get("shards_owned", 0)) > 0)
        consumer.finish()
        self.assert_oracle(consumer)
        other, alike = self.workers_by_name()["other"], self.workers_by_name()["alike"]
        self.assertEqual(int(other.get("shards_owned", 0)), 0)
        self.assertIn("but 1 plan began with", other["decoders_differ"])
        self.assertEqual(alike.get("decoders_differ", ""), "")
        self.assertNotEqual(other["decoders"], alike["decoders"])

    def test_a_worker_is_upgraded_in_its_place(self):
        self.start_coordinator()
        sound = self.start_worker(name="w")
        consumer = self.consumer(self.spec(), "--paced", "--window", 1)
        consumer.pull(1)
        # At the address that consumers have, and under the name that they know.
        sound.kill9()
        upgraded = self.start_worker("--listen", sound.address, name="w", env=other_library())
        consumer.process.stdin.write(b"\n" * 4)
        self.until("it is asked, and refuses", lambda: "job.refused" in pathlib.Path(upgraded.log).read_text())
        # The same after the coordinator's restart.
        self.coordinator.kill9()
        self.restart_coordinator()
        self.start_worker(name="sound")
        consumer.finish()
        self.assert_oracle(consumer)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""A process that listens at a dead worker's address is not accepted as the worker: a trainer takes no row from it, and
continues when the worker is back. The false worker is a real one, of another coordinator, and would serve the job."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/e2e"))
import cluster  # noqa: E402

QUIET_S = 2  # long enough for the false worker to serve whole batches


class FalseWorker(cluster.PhotosTest):
    def paced(self):
        return self.consumer(self.spec(), "--paced", "--window", 1, "--row-timeout-s", 100, epochs=cluster.EPOCHS)

    def start_false_worker(self, address):
        """Starts a worker at this address, for a coordinator that the trainer does not know, which has the job."""
        own, self.coordinator = self.coordinator, None
        self.start_coordinator(state=False)
        false = self.start_worker("--listen", address, threads=2, name="w0")
        served = self.consumer(self.spec(), epochs=cluster.EPOCHS).finish()
        self.assertEqual(served.steps, self.expected, "it serves those who know it")
        self.coordinator = own
        return false

    def test_a_false_worker_at_a_dead_ones_address_gives_no_row(self):
        self.start_coordinator()
        worker = self.start_worker(threads=2, name="w0")
        address = worker.address
        consumer = self.paced()
        consumer.pull(2)
        worker.kill9()
        false = self.start_false_worker(address)
        # Batches that had come from the worker are handed out; then no more come.
        with self.assertRaisesRegex(AssertionError, "no line within"):
            while True:
                consumer.process.stdin.write(b"\n")
                words = cluster.read_line(consumer.process.stdout, "consumer", QUIET_S).split(" ")
                self.assertEqual(words[0], "step", words)
                consumer.steps.append((int(words[1]), int(words[2]), words[4]))
                self.assertLess(len(consumer.steps), 6, "rows of the false worker were taken")
        false.kill9()
        self.start_worker("--listen", address, threads=2, name="w0")
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        self.assertGreater(consumer.end["unproven"], 0)
        log = "".join(path.read_text() for path in self.folder.glob("*-consumer.log"))
        self.assertRegex(log, f"link.unproven worker=w0 reason=.*{address}.* by another key")

    def test_other_workers_take_its_rows_and_a_restart_of_the_coordinator_changes_nothing(self):
        self.start_coordinator()
        dead = self.start_worker(name="w0")
        address = dead.address
        self.start_worker(name="w1")
        consumer = self.paced()
        consumer.pull(2)
        dead.kill9()
        self.start_false_worker(address)
        consumer.pull(3)
        self.coordinator.kill9()
        consumer.pull(3)
        self.restart_coordinator()
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)


if __name__ == "__main__":
    unittest.main()

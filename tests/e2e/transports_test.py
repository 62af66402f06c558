# SPDX-License-Identifier: Apache-2.0
"""Transports: rows by bytes or written into the consumer's memory are the same bytes, and workers write only where they
may.

Consumers hold on to batches and hash them again (--hold): a late write into a batch that was handed out fails a test.
"""

import os
import pathlib
import random
import shutil
import subprocess
import unittest

import cluster
from cluster import EPOCHS, STEPS, signal

PRECONDITION, INVALID = 9, 3
SHM, GRPC = {"LEAT_TRANSPORT": "shm"}, {"LEAT_TRANSPORT": "grpc"}


def shared_memories(process):
    """Returns the number of mappings of consumers' memory in a process."""
    maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
    return sum("memfd:leat-batch" in line for line in maps.splitlines())


class TransportsTest(cluster.PhotosTest):

    def assert_oracle(self, consumer, epochs=EPOCHS):
        self.assertIsNone(consumer.error)
        # Later epochs are not compared with the oracle, but their batches were held.
        self.assertEqual(consumer.steps[:EPOCHS * STEPS], self.expected)
        self.assertEqual(len(consumer.steps), epochs * STEPS)

    def copied(self):
        return sum(int(worker["stats"].get("payload_copies_total", 0)) for worker in self.get("workers")["workers"])

    # The same bytes.

    def test_every_transport_has_the_oracles_bytes(self):
        self.start_cluster(workers=2)
        for transport in ("grpc", "shm", "auto"):
            with self.subTest(transport=transport):
                consumer = self.consumer(self.spec(), "--hold", 5, env={"LEAT_TRANSPORT": transport}).finish()
                self.assert_oracle(consumer)
                self.assertIn(consumer.transport, {"auto": ("shm", "shm+grpc")}.get(transport, (transport,)))

    def test_nothing_is_copied_in_shared_memory(self):
        self.start_cluster(workers=2)
        consumer = self.consumer(self.spec(), env=SHM).finish()
        self.assert_oracle(consumer)
        if consumer.end["hedged"] == 0:  # a second answer comes by bytes
            self.assertEqual(consumer.end["copies"], 0)
        self.assertEqual(self.copied(), 0)

    def test_rows_of_parts_of_the_batch(self):
        self.start_cluster(workers=1)
        consumer = self.consumer(self.spec(), "--rows", 7, 30, env=SHM).finish()
        again = self.consumer(self.spec(), "--rows", 7, 30, env=GRPC).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, again.steps)

    def test_the_transport_is_shown(self):
        self.start_cluster(workers=1)
        consumer = self.consumer(self.spec(), "--paced", env=SHM)
        consumer.pull(3)
        self.until("the consumer reports its transport",
                   lambda: [c for c in self.get("consumers")["consumers"] if c["stats"].get("transport") == "shm"])
        consumer.finish()
        self.assert_oracle(consumer)

    # Processes that die or stop.

    def test_a_worker_is_killed_while_it_writes(self):
        self.start_cluster(workers=2)
        for kill in range(3):
            consumer = self.consumer(self.spec(), "--paced", "--window", 4, "--hold", 3, env=SHM)
            consumer.pull(random.randrange(1, 6))
            self.workers[kill].kill9()
            self.start_worker()
            consumer.finish()
            with self.subTest(kill=kill):
                self.assert_oracle(consumer)

    def test_a_stopped_worker_holds_up_nobody_and_writes_to_no_batch_later(self):
        for transport in ("auto", "shm"):
            self.workers.clear()
            self.start_cluster(workers=2)
            consumer = self.consumer(self.spec(), "--paced", "--window", 4, "--hold", 6, epochs=4,
                                     env={"LEAT_TRANSPORT": transport})
            consumer.pull(5)
            self.workers[0].signal(signal.SIGSTOP)
            consumer.pull(EPOCHS * STEPS - 5)  # the trainer goes on
            self.workers[0].signal(signal.SIGCONT)
            consumer.finish()
            with self.subTest(transport=transport):
                self.assert_oracle(consumer, 4)
            self.coordinator.close()
            shutil.rmtree(self.folder / "state")

    def test_the_only_worker_stops_and_goes_on(self):
        self.start_cluster(workers=1)
        consumer = self.consumer(self.spec(), "--paced", "--window", 4, "--hold", 3, env=SHM)
        consumer.pull(2)
        self.workers[0].signal(signal.SIGSTOP)
        consumer.process.stdin.write(b"\n" * 4)
        for _ in range(2):  # rows that were done already may come; the rest cannot
            self.get("status")
        self.workers[0].signal(signal.SIGCONT)
        for _ in range(4):
            consumer.next()
        consumer.finish()
        self.assert_oracle(consumer)

    def test_a_consumer_is_killed_while_the_worker_writes(self):
        self.start_cluster(workers=1)
        worker = self.workers[0].process
        descriptors = len(os.listdir(f"/proc/{worker.pid}/fd"))
        for _ in range(3):
            consumer = self.consumer(self.spec(), "--paced", "--window", 8, epochs=100, env=SHM)
            consumer.pull(3)
            self.assertGreater(shared_memories(worker), 0)
            consumer.process.kill()
            consumer.process.wait()
            self.until("the worker unmaps the dead consumer's memory", lambda: shared_memories(worker) == 0)
        self.until("the worker's descriptors are closed",
                   lambda: len(os.listdir(f"/proc/{worker.pid}/fd")) <= descriptors + 4)
        self.assert_oracle(self.consumer(self.spec(), env=SHM).finish())

    # Where it is not available.

    def test_a_wrong_transport_is_refused_by_name(self):
        self.start_cluster(workers=1)
        for transport, code, words in (("tcp", INVALID, ("LEAT_TRANSPORT", '"tcp"', "auto, grpc, shm or cuda")),
                                   ("cuda", PRECONDITION, ("LEAT_TRANSPORT=cuda", "host memory"))):
            consumer = self.consumer(self.spec(), env={"LEAT_TRANSPORT": transport}).finish()
            self.assertEqual(consumer.error[0], code)
            for word in words:
                self.assertIn(word, consumer.error[1])

    def test_a_consumer_in_another_network_namespace_gets_bytes(self):
        """As from another host: the worker's memory socket does not exist there. The data socket is a path, which
        does."""
        if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
            self.skipTest("unshare -n is not allowed")
        self.start_coordinator(listen=f"unix:{self.folder}/coordinator.sock")
        self.start_worker("--listen", f"unix:{self.folder}/worker.sock")
        alone = lambda transport: self._keep(cluster.Consumer(
            ["--spec", str(self.spec()), "--epochs", str(EPOCHS), "--address", self.coordinator.address],
            self._log("consumer"), {"LEAT_TRANSPORT": transport}, before=["unshare", "-n"])).finish()
        consumer = alone("auto")
        self.assert_oracle(consumer)
        self.assertEqual(consumer.transport, "grpc")
        refused = alone("shm")
        self.assertIsNotNone(refused.error)
        self.assertEqual(refused.error[0], PRECONDITION)
        for word in ("LEAT_TRANSPORT=shm", "w0", "memory socket"):
            self.assertIn(word, refused.error[1])


if __name__ == "__main__":
    unittest.main()

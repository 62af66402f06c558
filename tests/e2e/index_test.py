# SPDX-License-Identifier: Apache-2.0
"""Indexes in blocks: tiny ones, so that 500 photos have dozens, and processes that die while blocks are moved."""

import json
import subprocess
import unittest

import cluster

BLOCK = ("--index-block-bytes", "256")
# A few blocks at a time.
CACHE = ("--index-cache", "1100")


class IndexTest(cluster.PhotosTest):
    def start_coordinator(self, *flags, **options):
        return super().start_coordinator(*BLOCK, *flags, **options)

    def start_worker(self, *flags, **options):
        return super().start_worker(*CACHE, *flags, **options)

    def blocks(self):
        """Returns the files of whole blocks. Looking costs little, and an upload takes less than a second."""
        folder = self.folder / "state" / "blocks"
        return [path.name for path in folder.iterdir() if len(path.name) == 64]

    def contents(self):
        folder = self.folder / "state" / "blocks"
        return {name: (folder / name).read_bytes() for name in self.blocks()}

    def fetched(self):
        return sum(int(worker["stats"].get("index_blocks_fetched_total", 0))
                   for worker in self.get("workers")["workers"])

    def test_an_epoch_over_blocks_that_come_and_go(self):
        self.start_cluster(workers=2)
        consumer = self.consumer(self.spec(), epochs=2).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        self.assertGreater(len(self.blocks()), 20)
        self.until("blocks have been fetched again and again", lambda: self.fetched() > len(self.blocks()))

    def test_processes_die_while_an_index_is_uploaded(self):
        self.start_coordinator()
        worker = self.start_worker()
        consumer = self.consumer(self.spec(), epochs=2)
        self.until("some blocks are there", lambda: len(self.blocks()) >= 3)
        worker.kill9()
        kept = set(self.blocks())
        self.start_worker()
        self.until("more blocks are there", lambda: len(self.blocks()) > len(kept))
        self.coordinator.kill9()
        kept |= set(self.blocks())
        self.restart_coordinator()
        consumer.finish()
        if consumer.error:  # the call that made the job ended with the coordinator
            consumer = self.consumer(self.spec(), epochs=2).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        self.assertLessEqual(kept, set(self.blocks()), "what was there is used")

    def test_processes_die_in_an_epoch(self):
        self.start_cluster(workers=2)
        consumer = self.consumer(self.spec(), "--paced", epochs=2)
        consumer.pull(3)
        self.workers[0].kill9()
        consumer.pull(3)
        self.coordinator.kill9()
        self.restart_coordinator()
        self.start_worker()
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        self.assert_damage_is_mended()

    def assert_damage_is_mended(self):
        """A disk that has lost power: one block has a wrong bit, one is empty, one consists of zeros, one is gone."""
        self.coordinator.kill9()
        folder = self.folder / "state" / "blocks"
        flipped, cut, zeros, gone, *_ = sorted(self.blocks())
        before = self.contents()
        (folder / flipped).write_bytes(bytes([before[flipped][0] ^ 1]) + before[flipped][1:])
        (folder / cut).write_bytes(b"")
        (folder / zeros).write_bytes(bytes(len(before[zeros])))
        (folder / gone).unlink()
        self.restart_coordinator()
        # Workers that have an epoch's records in memory do not read its blocks again.
        for worker in self.workers:
            worker.kill9()
        self.start_worker()
        consumer = self.consumer(self.spec(), epochs=2).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        self.until("all blocks are there again", lambda: self.contents() == before)
        command = [cluster.program("CLI"), "events", "-o", "json", "--coordinator", self.coordinator.address]
        told = subprocess.run(command, capture_output=True, text=True, timeout=cluster.PATIENCE_S)
        events = {event["type"] for event in json.loads(told.stdout)["events"]}
        self.assertIn("dataset.index_damaged", events)
        self.assertIn("dataset.index_restored", events)


if __name__ == "__main__":
    unittest.main()

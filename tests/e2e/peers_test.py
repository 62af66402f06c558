# SPDX-License-Identifier: Apache-2.0
"""Records that a worker takes from another owner of their shard, instead of slow storage: rows stay the same."""

import os
import pathlib
import subprocess
import sys
import unittest

import cluster
from cluster import PATIENCE_S, program

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
import web  # noqa: E402

PHOTOS, BATCH, EPOCHS, SIDE = 200, 25, 3, 64
STEPS = PHOTOS // BATCH
OWN = "an-own-token-of-the-daemon"


class Peers(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        self.objects = self.folder / "objects"
        self.objects.mkdir()
        photos = cluster.test_data.images(cluster.photos())[:PHOTOS]
        for number, photo in enumerate(photos):
            (self.objects / f"{number:03}.jpg").write_bytes(photo.read_bytes())
        (self.objects / "list.txt").write_text("".join(f"{i:03}.jpg {i % 10}\n" for i in range(len(photos))))
        self.web = self._keep(web.Web(self.objects))

    def spec_of(self, root):
        graph = cluster.train_graph("", SIDE)
        graph["nodes"][0] = cluster.node("readers.file_list", path={"string_value": f"{root}/list.txt"})
        return self.spec(graph, batch=BATCH)

    def worker(self, *flags, **options):
        return self.start_worker("--forms", "coefficients", *flags, **options)

    def stats(self, name, env=None):
        done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, "get", "workers", name, "-o",
                               "json"], capture_output=True, text=True, timeout=PATIENCE_S,
                              env={**os.environ, **(env or {})})
        self.assertEqual(done.returncode, 0, done.stderr)
        worker, = cluster.json.loads(done.stdout)["workers"]
        return worker

    def records(self, name, outcome, env=None):
        return int(self.stats(name, env)["stats"].get(f"peer_records_{outcome}_total", 0))

    def begin(self, env=None):
        """Runs an epoch with w0 alone, which then keeps all records."""
        consumer = self.consumer(self.spec_of(self.web.url), "--paced", "--window", 2, epochs=EPOCHS, env=env)
        consumer.pull(STEPS)
        return consumer

    def join(self, *flags, env=None, view=None):
        """Adds another worker, which owns half of the shards; storage is slow from now on."""
        self.web.set(late=1.0)
        self.worker(*flags, env=env)
        self.until("it owns shards", lambda: int(self.stats("w1", view).get("shards_owned", 0)) > 0)

    def finish(self, consumer):
        consumer.finish()
        self.assertIsNone(consumer.error)
        # The oracle reads the same files without http.
        self.assertEqual(consumer.steps, self.oracle_steps(self.spec_of(self.objects), EPOCHS))

    def test_a_worker_that_joins_takes_records_from_their_owner_before(self):
        self.start_coordinator()
        self.worker()
        consumer = self.begin()
        self.join()
        self.finish(consumer)
        # More than it requests before it knows storage's latency; late rows have come from w0.
        self.until("some were found", lambda: self.records("w1", "found") > 12)
        self.until("they were w0's", lambda: self.records("w0", "given") >= self.records("w1", "found"))
        self.assertEqual(self.records("w1", "refused"), 0)

    def test_a_worker_that_leaves_hands_over_what_it_keeps(self):
        # A worker waits for another at most twice as long as for storage. On a busy machine an answer takes longer than
        # these files do.
        self.web.set(late=0.4)
        self.start_coordinator()
        self.worker()
        leaving = self.worker()
        consumer = self.begin()
        self.until("both own shards", lambda: int(self.stats("w1").get("shards_owned", 0)) > 0)
        consumer.pull(2)
        kept = int(self.stats("w1")["stats"]["cached_datasets"][0]["entries"])
        self.web.set(late=1.0)
        self.assertEqual(leaving.stop(), 0)
        self.until("most of it was taken", lambda: self.records("w0", "found") > kept * 3 // 4)
        asked = self.web.asked
        self.finish(consumer)
        self.assertLess(self.web.asked - asked, PHOTOS // 4)

    def test_with_tokens(self):
        """A worker shows its own token to others, which know it from the coordinator."""
        own = {"LEAT_ACCESS_TOKEN": OWN}
        self.start_coordinator(env=own)
        made = {}
        for role in ("worker", "trainer"):
            done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, "access", "create",
                                   "--role", role, "--name", role], capture_output=True, text=True, timeout=PATIENCE_S,
                                  env={**os.environ, **own})
            self.assertEqual(done.returncode, 0, done.stderr)
            made[role] = {"LEAT_ACCESS_TOKEN": done.stdout.split()[-1]}
        self.worker(env=made["worker"])
        consumer = self.begin(env=made["trainer"])
        self.join(env=made["worker"], view=own)
        self.finish(consumer)
        self.until("some were found", lambda: self.records("w1", "found", own) > 0)

    def test_an_owner_that_dies_meanwhile(self):
        self.start_coordinator()
        owner = self.worker()
        consumer = self.begin()
        self.join()
        consumer.pull(2)
        self.web.set()
        owner.kill9()
        self.finish(consumer)

    def test_nobody_is_asked_if_the_operator_does_not_want_it(self):
        self.start_coordinator()
        self.worker()
        consumer = self.begin()
        self.join("--ask-peers", "false")
        self.web.set()
        self.finish(consumer)
        self.assertEqual([self.records("w1", outcome) for outcome in ("found", "missing", "failed")], [0, 0, 0])


if __name__ == "__main__":
    unittest.main()

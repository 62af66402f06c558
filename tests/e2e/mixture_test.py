# SPDX-License-Identifier: Apache-2.0
"""A mixture has the oracle's bytes, whichever worker computes its rows, on any number of hosts, and after any death."""

import hashlib
import json
import shutil
import unittest

import cluster

BATCH = 64
SIZES = {"web": 90, "books": 40, "code": 12}
SHARES = [{"from_step": "0", "weights": [7, 2, 1]}]
EPOCHS = 2


class MixtureTest(cluster.PhotosTest):

    def setUp(self):
        super().setUp()
        photos = sorted(cluster.photos().rglob("*.jpg"))
        for name, count in SIZES.items():
            folder = self.folder / "data" / name / "all"
            folder.mkdir(parents=True)
            for photo in photos[:count]:
                shutil.copy(photo, folder / f"{photo.parent.name}-{photo.name}")
            photos = photos[count:]

    def mixture(self, name="mix", ends="MIX_END_ALL", shares=None, **changes):
        """Returns the path of the spec of a mixture of the three folders. Books have other operators."""
        sources = [{"name": each, "pipeline": cluster.train_graph(self.folder / "data" / each, side=96)}
                   for each in SIZES]
        del sources[1]["pipeline"]["nodes"][4]  # books are not flipped, so their rows have another kernel
        del sources[1]["pipeline"]["nodes"][3]
        sources[1]["pipeline"]["outputs"][0]["ref"]["node"] = 2
        spec = {"name": name, "sources": sources, "shares": shares or SHARES, "mix_end": ends, "seed": 7,
                "batch": BATCH, "source_field": "source", **changes}
        spec.setdefault("last_batch", "LAST_BATCH_STREAM" if ends == "MIX_END_STREAM" else "LAST_BATCH_DROP")
        path = self.folder / f"{name}-{hashlib.sha256(json.dumps(spec).encode()).hexdigest()[:12]}.json"
        path.write_text(json.dumps(spec))
        return path

    def assert_oracle(self, consumer, steps):
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, steps)
        self.assertIsNotNone(consumer.end)

    def test_workers_of_any_number(self):
        expected = self.oracle_steps(self.mixture(), EPOCHS)
        self.assertGreater(len(expected), 6)
        self.assert_oracle(self.consumer(self.mixture(), embedded=True).finish(), expected)
        self.start_cluster(workers=1, threads=1)
        self.assert_oracle(self.consumer(self.mixture()).finish(), expected)
        for count in (1, 3):
            for _ in range(count):
                self.start_worker()
            self.assert_oracle(self.consumer(self.mixture()).finish(), expected)

    def hosts(self, spec, count, *flags):
        hosts = []
        for host in range(count):
            folder = self.folder / f"{count}-{host}-{len(self.workers)}"
            folder.mkdir()
            consumer = self.consumer(spec, "--rows", BATCH * host // count, BATCH * (host + 1) // count,
                                     "--dump", folder, "--position-out", folder / "position", *flags)
            hosts.append((consumer, folder))
        for consumer, _ in hosts:
            self.assertIsNone(consumer.finish().error)
        return hosts

    def joined(self, hosts):
        """Returns the steps of several hosts as one list, with the parts' tensors concatenated."""
        joined = []
        for epoch, step, _ in hosts[0][0].steps:
            digest = hashlib.sha256()
            for field in ("image", "label", "source"):
                digest.update(field.encode() + b"\0")
                for _, folder in hosts:
                    digest.update((folder / f"{epoch}-{step}-{field}").read_bytes())
            joined.append((epoch, step, digest.hexdigest()))
        return joined

    def test_hosts_of_any_number_and_a_resume_on_others(self):
        expected = self.oracle_steps(self.mixture(), EPOCHS)
        self.start_cluster(workers=2)
        two = self.hosts(self.mixture(), 2, "--stop-after", 5)
        position = two[0][1] / "position"
        self.assertEqual(position.read_bytes(), (two[1][1] / "position").read_bytes())
        three = self.hosts(self.mixture(), 3, "--resume", position)
        self.assertEqual(self.joined(two) + self.joined(three), expected)
        self.assertEqual(self.joined(self.hosts(self.mixture(), 4)), expected)

    def test_a_segment_is_appended_while_a_training_runs(self):
        appended = [*SHARES, {"from_step": "6", "weights": [1, 1, 8]}]
        spec = self.mixture(ends="MIX_END_STREAM")
        later = self.mixture("later", ends="MIX_END_STREAM", shares=appended)
        before, after = self.oracle_steps(spec, 5), self.oracle_steps(later, 5)
        self.assertEqual(before[:6], after[:6])
        self.assertNotEqual(before[6], after[6])
        self.start_cluster(workers=2)
        position = self.folder / "position"
        first = self.consumer(spec, "--stop-after", 4, "--position-out", position).finish()
        self.assertEqual(first.steps, after[:4])
        second = self.consumer(later, "--resume", position, "--stop-after", 5).finish()
        self.assertEqual(second.steps, after[4:9])
        self.consumer(spec, "--stop-after", 8, "--position-out", position).finish()
        refused = self.consumer(later, "--resume", position, "--stop-after", 1).finish()
        self.assertIn("position: of job \"mix\"", refused.error[1])
        self.assertIn("from step 6 on its shares are web 0.7, books 0.2, code 0.1, here web 0.1, books 0.1, code 0.8",
                      refused.error[1])

    def test_workers_and_the_coordinator_die(self):
        expected = self.oracle_steps(self.mixture(), EPOCHS)
        self.start_cluster(workers=2)
        consumer = self.consumer(self.mixture(), "--paced", "--window", 1)
        consumer.pull(2)
        self.workers[0].kill9()
        consumer.pull(2)
        self.coordinator.kill9()
        consumer.pull(1)
        self.restart_coordinator()
        self.start_worker(name="successor")
        second = self.consumer(self.mixture())  # the job is still known
        self.assert_oracle(consumer.finish(), expected)
        self.assert_oracle(second.finish(), expected)

    def test_a_source_that_cannot_be_read_is_named(self):
        self.start_cluster(workers=1)
        expected = self.oracle_steps(self.mixture(), 1)
        self.assert_oracle(self.consumer(self.mixture(), epochs=1).finish(), expected)
        for photo in (self.folder / "data/code/all").iterdir():
            photo.write_bytes(b"no photo, and of another size")
        ended = self.consumer(self.mixture("again"), epochs=1).finish()
        self.assertIn("/data/code/all/", ended.error[1])


if __name__ == "__main__":
    unittest.main()

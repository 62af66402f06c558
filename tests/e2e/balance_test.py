# SPDX-License-Identifier: Apache-2.0
"""Classes in shares: alone and as a member of a mixture, with the oracle's bytes on any number of workers and hosts."""

import hashlib
import json
import shutil
import struct
import unittest

import cluster
import hosts

BATCH = 48
CLASSES = {"ant": 110, "bee": 25, "cat": 3, "none": 0}
EPOCHS = 3
BALANCED = {"balanced": True}
SHARES = {"shares": [{"name": "cat", "share": 1}, {"name": "*", "share": 1}]}


class BalanceTest(hosts.Hosts, cluster.PhotosTest):

    batch = BATCH

    def setUp(self):
        super().setUp()
        photos = iter(sorted(cluster.photos().rglob("*.jpg")))
        self.files = []
        for label, (name, count) in enumerate(CLASSES.items()):
            folder = self.folder / "data" / name
            folder.mkdir(parents=True)
            for _ in range(count):
                photo = next(photos)
                self.files.append((shutil.copy(photo, folder / f"{photo.parent.name}-{photo.name}"), label))

    def balanced(self, selection=BALANCED, name="balanced", graph=None, **changes):
        graph = graph or cluster.train_graph(self.folder / "data", side=64)
        return self.spec(graph, name=name, batch=BATCH, last_batch="LAST_BATCH_DROP", selection=selection, **changes)

    def mixture(self):
        """Returns a mixture of the classes in balance and of the same photos as they are."""
        graph = cluster.train_graph(self.folder / "data", side=64)
        sources = [{"name": "even", "pipeline": graph, "selection": BALANCED}, {"name": "plain", "pipeline": graph}]
        path = self.folder / "mixture.json"
        path.write_text(json.dumps(
            {"name": "mixture", "sources": sources, "shares": [{"weights": [2, 1]}], "mix_end": "MIX_END_ALL",
             "last_batch": "LAST_BATCH_DROP", "seed": 7, "batch": BATCH}))
        return path

    def assert_oracle(self, consumer, steps):
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, steps)

    def labels(self, hosts_of_job, steps):
        """Yields the labels of all rows up to the end of each step."""
        seen = []
        for epoch, step, _ in steps:
            data = self.bytes_of(hosts_of_job, epoch, step, "label")
            seen += struct.unpack(f"<{len(data) // 4}i", data)
            yield seen

    def test_workers_of_any_number(self):
        self.start_cluster(workers=1)
        specs = [self.balanced(), self.balanced(SHARES, name="shares"), self.mixture()]
        expected = [self.oracle_steps(spec, EPOCHS) for spec in specs]
        self.assertEqual(len(expected[0]), EPOCHS * (sum(CLASSES.values()) // BATCH))
        for workers in (1, 2, 5):
            while len(self.workers) < workers:
                self.start_worker()
            for spec, steps in zip(specs, expected):
                self.assert_oracle(self.consumer(spec, epochs=EPOCHS).finish(), steps)

    def test_classes_have_their_shares_after_every_step(self):
        self.start_cluster(workers=2)
        for selection, shares in ((BALANCED, (1 / 3, 1 / 3, 1 / 3)), (SHARES, (1 / 4, 1 / 4, 1 / 2))):
            spec = self.balanced(selection, name=next(iter(selection)))
            two = self.hosts(spec, 2)
            for seen in self.labels(two, two[0][0].steps):
                for label, share in enumerate(shares):
                    self.assertLessEqual(abs(seen.count(label) - share * len(seen)), 1.68)

    def test_a_resume_in_mid_epoch_on_other_hosts(self):
        self.start_cluster(workers=2)
        for spec in (self.balanced(), self.mixture()):
            expected = self.oracle_steps(spec, 2)
            first = self.hosts(spec, 2, "--stop-after", 3)
            position = first[0][1] / "position"
            self.assertEqual(position.read_bytes(), (first[1][1] / "position").read_bytes())
            rest = self.hosts(spec, 3, "--resume", position)
            self.assertEqual(self.joined(first) + self.joined(rest), expected)
            for count in (1, 4):
                self.assertEqual(self.joined(self.hosts(spec, count)), expected)

    def test_workers_and_the_coordinator_die(self):
        spec, mixture = self.balanced(), self.mixture()
        expected, mixed = self.oracle_steps(spec, EPOCHS), self.oracle_steps(mixture, EPOCHS)
        self.start_cluster(workers=2)
        consumer = self.consumer(spec, "--paced", "--window", 1, epochs=EPOCHS)
        other = self.consumer(mixture, "--paced", "--window", 1, epochs=EPOCHS)
        consumer.pull(1)
        other.pull(1)
        self.workers[0].kill9()
        consumer.pull(1)
        other.pull(2)
        self.coordinator.kill9()
        consumer.pull(1)
        self.restart_coordinator()
        self.start_worker(name="successor")
        again = self.consumer(spec, epochs=EPOCHS)  # the groups are in the coordinator's state
        self.assert_oracle(consumer.finish(), expected)
        self.assert_oracle(other.finish(), mixed)
        self.assert_oracle(again.finish(), expected)

    def listed(self, files):
        """Returns the graph of the photos by a list of files and labels."""
        path = self.folder / f"list-{hashlib.sha256(repr(files).encode()).hexdigest()[:12]}.txt"
        path.write_text("".join(f"{file} {label}\n" for file, label in files))
        graph = cluster.train_graph(path, side=64)
        graph["nodes"][0] = cluster.node("readers.file_list", path={"string_value": str(path)})
        return graph

    def test_a_list_has_the_groups_of_its_labels(self):
        self.start_cluster(workers=1)
        selection = {"shares": [{"name": "2", "share": 0.5}, {"name": "*", "share": 0.5}]}
        spec = self.balanced(selection, graph=self.listed(self.files))
        expected = self.oracle_steps(spec, 1)
        self.assert_oracle(self.consumer(spec, epochs=1).finish(), expected)
        mixed = self.balanced(name="mixed", graph=self.listed(self.files[::2] + self.files[1::2]))
        refused = self.consumer(mixed, epochs=1).finish()
        self.assertIn("are not in runs by label, so it has no classes to weigh", refused.error[1])

    def test_what_has_no_meaning_is_refused(self):
        self.start_cluster(workers=1)
        for share, text in (
                ({"name": "bees", "share": 1}, 'weights has "bees", which is no group; did you mean "bee"?'),
                ({"name": "none", "share": 1}, 'weights["none"] = 1, but this group has no samples'),
                ({"name": "ant", "share": 1}, 'weights has no "bee"; want every group named, or "*"')):
            refused = self.consumer(self.balanced({"shares": [share]}, name="refused")).finish()
            self.assertIn(text, refused.error[1])

    def test_the_seed_of_operators_is_another(self):
        self.start_cluster(workers=1)
        spec, other = self.balanced(), self.balanced(name="other", augment_seed="8")
        one, two = self.hosts(spec, 1), self.hosts(other, 1)
        for epoch, step, _ in one[0][0].steps:
            self.assertEqual(*(self.bytes_of(each, epoch, step, "label") for each in (one, two)))
            self.assertNotEqual(*(self.bytes_of(each, epoch, step, "image") for each in (one, two)))
        self.assertEqual(self.joined(two), self.oracle_steps(other, 2))


if __name__ == "__main__":
    unittest.main()

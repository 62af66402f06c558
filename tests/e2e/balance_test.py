# SPDX-License-Identifier: Apache-2.0
"""Classes in shares: alone and as a member of a mixture, with the oracle's bytes on any number of workers and hosts."""

import hashlib
import json
import shutil
import struct
import subprocess
import unittest

import cluster
import hosts

BATCH = 48
CLASSES = {"ant": 110, "bee": 25, "cat": 3, "none": 0}
EPOCHS = 3
BALANCED = {"balanced": True}
# Every second photo; the large ones; all of them.
CHOSEN = {"balanced": True, "samples": {"begin": "0", "end": "138", "step": "2"}}
WHERE = {"shares": [{"name": "bee", "share": 2}, {"name": "*", "share": 1}], "where": "bytes > 9000 or label > 0"}
BY_SIZE = {"balanced": True, "by": "width", "where": "label < 2"}
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

    def weights(self, weights):
        """Writes a .npy file of weights, and returns the selection by them."""
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({len(weights)},), }}".ljust(117) + "\n"
        path = self.folder / f"weights-{hashlib.sha256(repr(weights).encode()).hexdigest()[:12]}.npy"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                         + struct.pack(f"<{len(weights)}d", *weights))
        return {"weights": {"uri": f"file://{path}"}}

    def test_a_part_in_balance_by_class_by_a_column_and_by_weights(self):
        self.start_cluster(workers=2)
        weighed = self.weights([(i * 7919 % 101) ** 2 / 1000 for i in range(len(self.files))])
        mixed = self.listed(self.files[::2] + self.files[1::2])
        specs = [self.balanced(CHOSEN, name="chosen"), self.balanced(WHERE, name="where"),
                 self.balanced({**BALANCED, "by": "label"}, name="labels", graph=mixed),
                 self.balanced(BY_SIZE, name="size"), self.balanced(weighed, name="file"),
                 self.balanced({**weighed, "where": "bytes > 9000"}, name="both")]
        for spec in specs:
            with self.subTest(spec.name):
                first = self.hosts(spec, 1, "--stop-after", 1)
                rest = self.hosts(spec, 2, "--resume", first[0][1] / "position")
                self.assertEqual(self.joined(first) + self.joined(rest), self.oracle_steps(spec, 2))

    def test_a_mixture_of_selections_whose_workers_die_while_they_list_it(self):
        graph = cluster.train_graph(self.folder / "data", side=64)
        selections = {"by": BY_SIZE, "weights": self.weights([i % 5 for i in range(len(self.files))]), "where": WHERE}
        sources = [{"name": name, "pipeline": graph, "selection": each} for name, each in selections.items()]
        path = self.folder / "mixture.json"
        path.write_text(json.dumps(
            {"name": "mixture", "sources": sources, "shares": [{"weights": [2, 1, 1]}], "mix_end": "MIX_END_ALL",
             "last_batch": "LAST_BATCH_DROP", "seed": 7, "batch": BATCH}))
        expected = self.oracle_steps(path, 1)
        self.start_coordinator("--index-block-bytes", "256")
        first = self.start_worker()
        consumer = self.consumer(path, "--paced", "--window", 1, epochs=1)
        folder = self.folder / "state" / "blocks"
        self.until("some blocks are there", lambda: folder.exists() and len(list(folder.iterdir())) >= 3)
        first.kill9()
        for _ in range(2):
            self.start_worker()
        consumer.pull(2)
        self.workers[1].kill9()
        consumer.pull(1)
        self.coordinator.kill9()
        self.restart_coordinator("--index-block-bytes", "256")
        self.start_worker()
        self.assert_oracle(consumer.finish(), expected)
        self.assert_oracle(self.consumer(path, epochs=1).finish(), expected)

    def test_rows_of_samples_are_as_many_as_their_weights_say(self):
        self.start_cluster(workers=1)
        # 110 ants of weight 1 and 25 bees of weight 4; no cat.
        spec = self.balanced({"weights": {"list": [{0: 1, 1: 4, 2: 0}[label] for _, label in self.files]}}, name="rows")
        one = self.hosts(spec, 1)
        for seen in self.labels(one, one[0][0].steps):
            self.assertLessEqual(abs(seen.count(0) - 110 / 210 * len(seen)), 1.68)
            self.assertEqual(seen.count(2), 0)
        shown = subprocess.run([cluster.program("CLI"), "--coordinator", self.coordinator.address, "describe", "job",
                                "rows"], capture_output=True, text=True).stdout
        self.assertRegex(shown, r"Weights of samples \(2\), after \d+ rows")
        self.assertRegex(shown, r"WEIGHT +SAMPLES +SHARE\(%\)")
        self.assertRegex(shown, r"\n4 +25 +47\.6 ")

    def test_what_has_no_meaning_is_refused(self):
        self.start_cluster(workers=1)
        for share, text in (
                ({"name": "bees", "share": 1}, 'weights has "bees", which is no group; did you mean "bee"?'),
                ({"name": "none", "share": 1}, 'weights["none"] = 1, but this group has no samples'),
                ({"name": "ant", "share": 1}, 'weights has no "bee"; want every group named, or "*"')):
            refused = self.consumer(self.balanced({"shares": [share]}, name="refused")).finish()
            self.assertIn(text, refused.error[1])
        for selection, text in (
                ({**SHARES, "where": "label < 2"}, 'weights["cat"] = 1, but this group has no samples; want 0'),
                ({**BALANCED, "by": "lable"}, "by: unknown column lable, did you mean label?"),
                ({**BALANCED, "by": "label == 1"}, "by: label == 1: want the name of a column"),
                ({"by": "label"}, 'by: label: want weights with it, "balanced" or shares by value'),
                ({"weights": {"list": [1, 2]}}, "weights has 2 numbers; want 138, one for each sample of dataset"),
                ({"weights": {"list": [1, 2]}, **BALANCED}, "weights are of samples, and of groups"),
                (self.weights([1] * 137 + [-1]), ".npy: weights[137] = -1; want a number of 0 to 1e+100"),
                (self.weights([0] * 138), "weights: none of 138 samples has a weight over 0")):
            refused = self.consumer(self.balanced(selection, name="refused")).finish()
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

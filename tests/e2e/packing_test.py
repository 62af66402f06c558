# SPDX-License-Identifier: Apache-2.0
"""Packed rows have the oracle's bytes: by any worker, on any number of hosts, and after any death."""

import json
import random
import struct
import unittest

import cluster
import hosts

BATCH = 8
EPOCHS = 2
DOCUMENTS = 700


def text(value):
    return {"string_value": value}


def number(value):
    return {"int_value": value}


def packed(path, fields=("tokens", "segments", "positions"), **args):
    """Returns the pipeline of rows that are packed of a token file."""
    args = {name: text(value) if isinstance(value, str) else number(value) for name, value in args.items()}
    return {
        "nodes": [
            cluster.node("readers.tokens", files={"strings_value": {"values": [str(path)]}}),
            cluster.node("pack", (0, 0), **args),
        ],
        "outputs": [{"name": name, "ref": {"node": 1, "output": i}} for i, name in enumerate(fields)],
    }


class PackingTest(hosts.Hosts, cluster.ClusterTest):
    batch = BATCH
    fields = ("tokens", "segments", "positions")

    def setUp(self):
        super().setUp()
        self.file = self.tokens("text", 1)

    def tokens(self, name, seed):
        """Makes a token file as Megatron-LM writes them; returns the .bin's path."""
        draw = random.Random(seed)
        lengths = [0 if draw.random() < 0.05 else int(draw.lognormvariate(3.5, 1)) for _ in range(DOCUMENTS)]
        offsets, end = [], 0
        for length in lengths:
            offsets.append(end)
            end += 2 * length
        path = self.folder / f"{name}.bin"
        path.write_bytes(struct.pack(f"<{end // 2}H", *(draw.randrange(50_000) for _ in range(end // 2))))
        count = len(lengths)
        path.with_suffix(".idx").write_bytes(
            b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1) + struct.pack(f"<{count}i", *lengths)
            + struct.pack(f"<{count}q", *offsets) + struct.pack(f"<{count + 1}q", *range(count + 1)))
        return path

    def job(self, graph, name="job", **changes):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"name": name, "pipeline": graph, "seed": 7, "batch": BATCH, **changes}))
        return path

    def assert_oracle(self, consumer, expected):
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, expected)
        self.assertIsNotNone(consumer.end)

    def test_both_ways(self):
        self.start_cluster(workers=2)
        for name, args in {
            "cut": {"length": 128},
            "targets": {"length": 129, "overlap": 1},
            "fit": {"length": 256, "how": "fit"},
            "few": {"length": 256, "how": "fit", "max_documents": 3, "longer": "drop"},
        }.items():
            with self.subTest(name):
                spec = self.job(packed(self.file, **args), name=name)
                expected = self.oracle_steps(spec, EPOCHS)
                self.assertGreater(len(expected), 8)
                self.assert_oracle(self.consumer(spec).finish(), expected)

    def test_without_a_service(self):
        spec = self.job(packed(self.file, length=256, how="fit"))
        self.assert_oracle(self.consumer(spec, embedded=True).finish(), self.oracle_steps(spec, EPOCHS))

    def test_processes_die_and_blocks_are_small(self):
        spec = self.job(packed(self.file, length=100, overlap=3))
        expected = self.oracle_steps(spec, EPOCHS)
        self.start_coordinator("--index-block-bytes", "256")
        for _ in range(2):
            self.start_worker("--index-cache", "1100")
        consumer = self.consumer(spec, "--paced", "--window", 1)
        consumer.pull(3)
        self.workers[0].kill9()
        consumer.pull(2)
        self.coordinator.kill9()
        self.restart_coordinator("--index-block-bytes", "256")
        self.start_worker("--index-cache", "1100")
        self.assert_oracle(consumer.finish(), expected)

    def test_a_resume_on_other_hosts_in_the_middle_of_a_window(self):
        spec = self.job(packed(self.file, length=256, how="fit"))
        expected = self.oracle_steps(spec, EPOCHS)
        self.start_cluster(workers=2)
        two = self.hosts(spec, 2, "--stop-after", 5)
        four = self.hosts(spec, 4, "--resume", two[0][1] / "position")
        self.assertEqual(self.joined(two) + self.joined(four), expected)

    def test_a_mixture_of_packed_sources_and_a_packed_subset(self):
        graph = packed(self.file, length=128, how="fit")
        sources = [
            {"name": "a", "pipeline": graph},
            {"name": "b", "pipeline": packed(self.tokens("other", 2), length=128, how="fit")},
            {"name": "part", "pipeline": graph, "selection": {"samples": {"begin": "10", "end": "600", "step": "3"}}},
            {"name": "short", "pipeline": graph, "selection": {"where": "length >= 10 and length < 60"}},
        ]
        spec = self.folder / "mix.json"
        spec.write_text(json.dumps({
            "name": "mix", "sources": sources, "shares": [{"from_step": "0", "weights": [5, 3, 2, 2]}],
            "mix_end": "MIX_END_ALL", "seed": 7, "batch": BATCH, "source_field": "source"}))
        self.start_cluster(workers=2)
        self.assert_oracle(self.consumer(spec, epochs=1).finish(), self.oracle_steps(spec, 1))

    def test_what_cannot_be_packed(self):
        self.start_cluster(workers=1)
        for args, wanted in (
            ({"length": 1_000_000}, "pack makes no row of 700 documents with"),
            ({"length": 64, "how": "fit", "longer": "error"}, "more than length=64: want longer="),
            ({"length": 64, "overlap": 64}, "overlap is 64: want less than length, which is 64"),
        ):
            with self.subTest(wanted):
                self.assertIn(wanted, self.consumer(self.job(packed(self.file, **args))).finish().error[1])

    def test_a_document_that_has_changed_makes_no_wrong_row(self):
        self.start_cluster(workers=1)
        consumer = self.consumer(self.job(packed(self.file, length=128)), "--paced", "--window", 1)
        consumer.pull(1)
        self.file.write_bytes(self.file.read_bytes()[::-1] + b"xx")
        self.workers[0].kill9()  # with all that it has read
        self.start_worker()
        ended = consumer.finish()
        self.assertIsNotNone(ended.error)
        self.assertIn("text.bin", ended.error[1])


if __name__ == "__main__":
    unittest.main()

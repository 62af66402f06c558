# SPDX-License-Identifier: Apache-2.0
"""Rows that are mixed with others of their batch: the oracle's bytes, and values that need no oracle."""

import array
import hashlib
import os
import struct
import subprocess
import unittest

import cluster
from cluster import node

SAMPLES, EPOCHS, BATCH = 90, 2, 16  # the last batch holds 10


def number(value):
    return {"float_value": value}


def mixup(path):
    """Returns a graph of rows with their own noise, their partners, and the blend of both."""
    files = {name: {"string_value": str(path / file)} for name, file in (("images", "x"), ("labels", "y"))}
    return {"nodes": [node("readers.idx", **files),
                      node("noise_gaussian", (0, 0), stddev=number(30)),
                      node("partner", (1, 0)),
                      node("beta", alpha=number(0.4), beta=number(0.4)),
                      node("beta", per={"string_value": "batch"}),
                      node("constant", values={"floats_value": {"values": [1]}}),
                      node("mul", (3, 0), (1, 0)),
                      node("sub", (5, 0), (3, 0)),
                      node("mul", (7, 0), (2, 0)),
                      node("add", (6, 0), (8, 0)),
                      node("one_hot", (0, 1), num_classes={"int_value": 8}),  # 8 and 9 are bad samples
                      node("partner", (10, 0))],
            "outputs": [{"name": name, "ref": {"node": at}}
                        for name, at in (("x", 1), ("other", 2), ("lam", 3), ("shared", 4), ("mixed", 9))]}


def with_classes(graph):
    return {**graph, "outputs": graph["outputs"] + [{"name": "hot", "ref": {"node": 10}},
                                                    {"name": "other_hot", "ref": {"node": 11}}]}


def rounded(value):
    return struct.unpack("f", struct.pack("f", value))[0]


class PartnersTest(cluster.ClusterTest):

    def setUp(self):
        super().setUp()
        (self.folder / "x").write_bytes(struct.pack(f">BBBBII{SAMPLES * 2}i", 0, 0, 12, 2, SAMPLES, 2,
                                                    *range(0, 200 * SAMPLES, 100)))
        (self.folder / "y").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, SAMPLES) +
                                        bytes(i % 10 for i in range(SAMPLES)))

    def oracle(self, spec):
        done = subprocess.run([cluster.program("ORACLE"), str(spec), str(EPOCHS)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [(int(e), int(s), sha) for e, s, sha in (line.split() for line in done.stdout.splitlines())]

    def test_two_hosts_and_two_workers_have_the_rows_that_the_formula_says(self):
        spec = self.spec(mixup(self.folder), batch=BATCH, last_batch="LAST_BATCH_PARTIAL")
        expected = self.oracle(spec)
        self.start_cluster(workers=2, threads=3)
        hosts = []
        for first, end in ((0, 5), (5, BATCH)):
            folder = self.folder / str(first)
            folder.mkdir()
            hosts.append((self.consumer(spec, "--rows", first, end, "--dump", folder, epochs=EPOCHS), folder))
        for consumer, _ in hosts:
            self.assertIsNone(consumer.finish().error)
        shifts = set()
        for epoch, step, sha in expected:
            fields = {name: b"".join((folder / f"{epoch}-{step}-{name}").read_bytes() for _, folder in hosts)
                      for name in ("x", "other", "lam", "shared", "mixed")}
            digest = hashlib.sha256()
            for name, data in fields.items():
                digest.update(name.encode() + b"\0" + data)
            self.assertEqual(digest.hexdigest(), sha)
            shifts.add(self.check_step(fields))
        self.assertGreater(len(shifts), 2, "partners are at a distance of each step's own")

    def check_step(self, fields):
        """Checks a step; returns the distance of the partners."""
        values = {name: array.array("i" if name in ("x", "other") else "f", data) for name, data in fields.items()}
        rows = [tuple(values["x"][i:i + 2]) for i in range(0, len(values["x"]), 2)]
        others = [tuple(values["other"][i:i + 2]) for i in range(0, len(values["other"]), 2)]
        shift = rows.index(others[0])
        self.assertGreater(shift, 0)
        self.assertEqual(others, rows[shift:] + rows[:shift])
        for i, (row, other) in enumerate(zip(rows, others)):
            lam = values["lam"][i]
            mixed = [rounded(rounded(lam * a) + rounded(rounded(1 - lam) * b)) for a, b in zip(row, other)]
            self.assertEqual(list(values["mixed"][2 * i:2 * i + 2]), mixed)
        self.assertGreater(len(set(values["lam"])), 1, "a draw for each sample")
        self.assertEqual(len(set(values["shared"])), 1, "a draw for each batch")
        return shift

    def test_bad_partners_are_what_the_policy_says(self):
        self.start_cluster(workers=2)
        for policy in ("REPLACE", "ZERO"):
            with self.subTest(policy=policy):
                spec = self.spec(with_classes(mixup(self.folder)), name=policy, batch=BATCH,
                                 on_bad_sample=f"BAD_SAMPLE_POLICY_{policy}")
                consumer = self.consumer(spec, epochs=EPOCHS).finish()
                self.assertIsNone(consumer.error)
                self.assertEqual(consumer.steps, self.oracle(spec))

    def test_a_stream_draws_anew_in_each_pass_and_once_for_a_step_of_two_passes(self):
        self.start_cluster(workers=2)
        for rotate in (True, False):  # parts that do not rotate end their passes at other steps
            with self.subTest(rotate=rotate):
                name = f"rotates-{rotate}"
                spec = self.spec(with_classes(mixup(self.folder)), name=name, batch=BATCH, num_parts=4,
                                 last_batch="LAST_BATCH_STREAM", rotate_parts=rotate,
                                 on_bad_sample="BAD_SAMPLE_POLICY_REPLACE")
                expected = self.oracle(spec)
                folder = self.folder / name
                folder.mkdir()
                consumer = self.consumer(spec, "--stop-after", len(expected), "--dump", folder, epochs=1).finish()
                self.assertIsNone(consumer.error)
                self.assertEqual(consumer.steps, expected)
                shared = [set(array.array("f", (folder / f"0-{step}-shared").read_bytes())) for _, step, _ in expected]
                self.assertEqual([len(numbers) for numbers in shared], [1] * len(expected), "a draw for each batch")
                self.assertEqual(len(set.union(*shared)), len(expected), "of its own")


if __name__ == "__main__":
    os.chdir(cluster.tempfile.gettempdir())
    unittest.main()

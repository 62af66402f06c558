# SPDX-License-Identifier: Apache-2.0
"""A mixture has the oracle's bytes, whichever worker computes its rows, on any number of hosts, and after any death."""

import hashlib
import json
import os
import shutil
import struct
import subprocess
import unittest

import cluster
import hosts

BATCH = 64
SIZES = {"web": 90, "books": 40, "code": 12}
SHARES = [{"from_step": "0", "weights": [7, 2, 1]}]
EPOCHS = 2


class MixtureTest(hosts.Hosts, cluster.PhotosTest):

    batch = BATCH
    fields = ("image", "label", "source")

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

    def test_why_names_the_source_of_each_row(self):
        self.start_cluster(workers=1)
        folder = self.folder / "dump"
        folder.mkdir()
        self.assertIsNone(self.consumer(self.mixture(), "--dump", folder, epochs=1).finish().error)
        why = [cluster.program("CLI"), "--coordinator", self.coordinator.address, "why", "mix", "--step", "2"]
        told = subprocess.run([*why, "-o", "json"], capture_output=True, text=True, timeout=cluster.PATIENCE_S)
        self.assertEqual(told.returncode, 0, told.stderr)
        rows = json.loads(told.stdout)["rows"]
        numbers = struct.unpack(f"<{BATCH}i", (folder / "0-2-source").read_bytes())
        self.assertEqual([row["record"]["source"] for row in rows], [[*SIZES][number] for number in numbers])
        for row in rows:
            self.assertIn(f"/data/{row['record']['source']}", f"{row['record']['root']}/{row['record']['file']}")


class ManySourcesTest(cluster.ClusterTest):
    """Forty sources of three photos each. The source "s07" has no rows before step FROM."""

    COUNT, FROM, BATCH = 40, 4, 40

    def setUp(self):
        super().setUp()
        photos = sorted(cluster.photos().rglob("*.jpg"))
        self.names = [f"s{i:02}" for i in range(self.COUNT)]
        for i, name in enumerate(self.names):
            folder = self.folder / "data" / name
            folder.mkdir(parents=True)
            for photo in photos[3 * i:3 * i + 3]:
                shutil.copy(photo, folder)

    def mixture(self, name="many", **changes):
        sources = []
        for each in self.names:
            graph = cluster.train_graph(self.folder / "data" / each, side=32)
            sources.append({"name": each, "pipeline": graph})
        late = [0 if each == "s07" else 1 for each in self.names]
        shares = [{"from_step": "0", "weights": late}, {"from_step": str(self.FROM), "weights": [1] * len(self.names)}]
        spec = {"name": name, "sources": sources, "shares": shares, "mix_end": "MIX_END_STREAM", "seed": 7,
                "batch": self.BATCH, "last_batch": "LAST_BATCH_STREAM", **changes}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(spec))
        return path

    def damage(self):
        """The photos of s07 become noise, which no listing and no look notices."""
        for photo in (self.folder / "data/s07").iterdir():
            before = photo.stat()
            photo.write_bytes(b"noise".ljust(before.st_size, b"."))
            os.utime(photo, ns=(before.st_atime_ns, before.st_mtime_ns))

    def listed(self, name="many", **changes):
        """Creates the job with sound photos; returns its spec."""
        spec = self.mixture(name, **changes)
        self.assertIsNone(self.consumer(spec, "--stop-after", 1).finish().error)
        return spec

    def test_the_others_go_on_until_rows_of_a_source_are_due_that_cannot_be_read(self):
        self.start_cluster(workers=2)
        spec = self.listed()
        expected = self.oracle_steps(spec, 3)[:self.FROM]
        self.damage()
        ended = self.consumer(spec, "--window", 1).finish()
        self.assertEqual(ended.steps, expected)
        self.assertIn("source \"s07\", sample ", ended.error[1])
        self.assertIn("/data/s07/", ended.error[1])

    def test_findings_and_the_budget_name_the_source(self):
        self.start_cluster(workers=2)
        spec = self.listed(on_bad_sample="BAD_SAMPLE_POLICY_ZERO")
        bounded = self.listed("bounded", on_bad_sample="BAD_SAMPLE_POLICY_ZERO", max_bad=0.01, seed=8)
        self.damage()
        self.assertIsNone(self.consumer(spec, "--stop-after", self.FROM + 3).finish().error)
        found = self.until("a finding", lambda: [each for each in self.get("status")["findings"]
                                                 if each["code"] == "BAD_SAMPLES"])
        self.assertIn("source \"s07\": ", found[0]["summary"])
        ended = self.consumer(bounded).finish()
        self.assertRegex(ended.error[1], "[23] of 120 samples are bad, but max_bad 0.01 allows 1; the first: "
                                         "source \"s07\": ")
        for job in self.get("jobs")["jobs"]:
            self.assertEqual({each["source"] for each in job["bad_samples"]}, {"s07"})

    def test_describe_says_the_bound_of_the_shares_that_holds_for_the_jobs_hosts(self):
        self.names = self.names[:8]
        self.start_cluster(workers=1)
        spec = self.mixture()

        def described():
            return " ".join(subprocess.run(
                [cluster.program("CLI"), "--coordinator", self.coordinator.address, "describe", "job", "many"],
                capture_output=True, text=True, timeout=cluster.PATIENCE_S, check=True).stdout.split())

        whole = self.consumer(spec, "--paced")
        whole.pull(1)
        self.until("its bound", lambda: "in the rows of its 1 consumer, a source has its share within 4 rows." in
                   described())
        part = self.consumer(spec, "--paced", "--rows", 0, 30)
        part.pull(1)
        self.until("the bound of both", lambda: "in the rows of 1 of its 2 consumers; the others have parts of runs of "
                   "64 rows, and add these parts, at most 30 rows." in described())

    def test_a_source_that_is_deleted_while_the_mixture_runs(self):
        self.start_coordinator()
        self.start_worker("--cache", "0")
        spec = self.listed()
        expected = self.oracle_steps(spec, 3)[:self.FROM + 1]
        waiting = self.consumer(spec, "--paced", "--window", 1, "--stop-after", self.FROM + 1)
        waiting.pull(2)
        away = (self.folder / "data/s07").rename(self.folder / "away")
        ended = self.consumer(spec, "--window", 1, "--row-timeout-s", 2).finish()
        self.assertEqual(ended.steps, expected[:self.FROM])
        self.assertIn("/data/s07", ended.error[1])
        waiting.pull(self.FROM - 2)
        waiting.process.stdin.write(b"\n")
        self.until("a finding", lambda: [each for each in self.get("status")["findings"]
                                         if each["code"] == "WORKER_STORAGE" and "/data/s07" in each["summary"]])
        away.rename(self.folder / "data/s07")
        self.assertTrue(waiting.next())
        self.assertEqual(waiting.steps, expected)

    def test_the_others_go_on_until_rows_of_a_source_are_due_that_cannot_be_opened(self):
        """s07 is a database: a worker opens its file together with its index."""
        data = self.folder / "data/s07"
        (self.folder / "kept/train/all").mkdir(parents=True)
        for photo in data.iterdir():
            photo.rename(self.folder / "kept/train/all" / photo.name)
        subprocess.run([cluster.program("CLI"), "convert", self.folder / "kept", data, "--to", "caffe2"], check=True,
                       capture_output=True, timeout=cluster.PATIENCE_S)
        self.start_cluster(workers=1)
        spec = self.mixture()
        text = json.loads(spec.read_text())
        text["sources"][7]["pipeline"]["nodes"][0] = cluster.node(
            "readers.caffe2", path={"strings_value": {"values": [str(next(data.glob("**/data.mdb")).parent)]}})
        spec.write_text(json.dumps(text))
        self.assertIsNone(self.consumer(spec, "--stop-after", 1).finish().error)
        expected = self.oracle_steps(spec, 3)[:self.FROM + 1]
        self.workers[0].stop()
        away = data.rename(self.folder / "away")
        self.start_worker("--cache", "0", name="successor")
        # The consumer does not need its rows yet.
        waiting = self.consumer(spec, "--paced", "--window", 1, "--stop-after", self.FROM + 1)
        waiting.pull(2)
        self.until("a finding", lambda: [each for each in self.get("status")["findings"]
                                         if each["code"] == "WORKER_STORAGE" and "/data/s07" in each["summary"]])
        ended = self.consumer(spec, "--window", 1, "--row-timeout-s", 2).finish()
        self.assertEqual(ended.steps, expected[:self.FROM])
        self.assertIn("/data/s07", ended.error[1])
        waiting.pull(self.FROM - 2)
        waiting.process.stdin.write(b"\n")
        away.rename(data)
        self.assertTrue(waiting.next())
        self.assertEqual(waiting.steps, expected)

    def test_two_sources_of_one_dataset_share_its_listing_its_owners_and_its_cache(self):
        self.names = ["one", "two"]
        (self.folder / "data/s00").rename(self.folder / "data/one")
        self.start_cluster(workers=1)
        spec = self.mixture()
        text = json.loads(spec.read_text())
        text["sources"][1]["pipeline"] = text["sources"][0]["pipeline"]
        text["shares"] = [{"weights": [3, 1]}]
        spec.write_text(json.dumps(text))
        expected = self.oracle_steps(spec, 100)[:6]
        self.assertEqual(self.consumer(spec, "--stop-after", 6).finish().steps, expected)
        datasets = self.get("datasets")["datasets"]
        self.assertEqual([each["jobs"] for each in datasets], [["many"]])
        # There are three files, whichever source has read them.
        def keeps_all(worker):
            return [int(each["entries"]) for each in worker["stats"].get("cached_datasets", [])] == [3]

        worker = self.until("the worker reports that it keeps them",
                            lambda: next(filter(keeps_all, self.get("workers")["workers"]), None))
        shards = datasets[0]["dataset"]["shards"]
        self.assertEqual(int(worker["shards_owned"]), -(-int(shards["num_samples"]) // int(shards["shard_size"])))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Every batch of two epochs has the oracle's bytes, whichever worker computes it and whatever dies meanwhile.

500 photos, batch 64, random-resized-crop and flip. A consumer's list of steps is compared as a whole, so a step that is
lost, repeated, out of order or has other bytes fails the test.
"""

import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import unittest

import cluster
from cluster import BATCH, EPOCHS, STEPS


class OracleTest(cluster.PhotosTest):

    def assert_oracle(self, consumer, steps=None):
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected if steps is None else steps)
        self.assertIsNotNone(consumer.end)

    # Workers.

    def test_embedded(self):
        self.assert_oracle(self.consumer(self.spec(), embedded=True).finish())

    def test_one_worker_of_one_thread(self):
        self.start_cluster(workers=1, threads=1)
        self.assert_oracle(self.consumer(self.spec()).finish())

    def test_two_workers(self):
        self.start_cluster(workers=2)
        self.assert_oracle(self.consumer(self.spec()).finish())

    def test_five_workers(self):
        self.start_cluster(workers=5)
        self.assert_oracle(self.consumer(self.spec()).finish())
        served = [worker for worker in self.get("workers")["workers"] if int(worker["stats"]["rows_total"]) > 0]
        self.assertGreater(len(served), 1, "the work was spread")

    def test_eight_threads(self):
        self.start_cluster(workers=1, threads=8)
        self.assert_oracle(self.consumer(self.spec()).finish())

    def test_records_that_are_read_ahead(self):
        self.start_coordinator()
        for _ in range(2):
            self.start_worker("--read-ahead-of", "all", "--read-threads", "3", "--read-ahead", "1MiB", threads=2)
        self.assert_oracle(self.consumer(self.spec()).finish())

    def test_caches_of_any_size(self):
        self.start_coordinator()
        self.start_worker("--cache", "0")
        self.start_worker("--cache", "1MiB")
        large = self.start_worker("--cache", "1GiB")
        self.assert_oracle(self.consumer(self.spec()).finish())

        def kept():
            stats = {each["name"]: each["stats"] for each in self.get("workers")["workers"]}
            return stats if int(stats.get(large.name, {}).get("cache_bytes", 0)) > 1 << 20 else None
        for name, each in self.until("the workers' figures", kept).items():
            self.assertLessEqual(int(each.get("cache_bytes", 0)), int(each.get("cache_limit_bytes", 0)), name)
            self.assertEqual(sum(int(dataset.get("bytes", 0)) for dataset in each.get("cached_datasets", [])),
                             int(each.get("cache_bytes", 0)), name)

    def test_forms_of_any_kind_in_caches_of_any_size(self):
        self.start_coordinator()
        flags = {"none": "1GiB", "seek": "1GiB", "coefficients": "1GiB", "pixels": "1GiB", "all": "12MiB"}
        kept = {self.start_worker("--forms", forms, "--cache", cache).name: forms for forms, cache in flags.items()}
        # Photos are decoded in every epoch, the second one by forms that the first has left.
        self.assert_oracle(self.consumer(self.spec()).finish())
        self.assert_oracle(self.consumer(self.spec()).finish())

        def used():
            found = {}
            for each in self.get("workers")["workers"]:
                stats = each.get("stats", {})
                self.assertLessEqual(int(stats.get("cache_bytes", 0)), int(stats.get("cache_limit_bytes", 0)))
                datasets = stats.get("cached_datasets", [])
                found[kept[each["name"]]] = {form["form"] for dataset in datasets for form in dataset.get("forms", [])
                                             if int(form.get("hits_total", 0)) > 0}
            return found if all(found.get(forms) for forms in flags if forms != "none") else None
        found = self.until("decodes by forms", used)
        self.assertEqual(found["none"], set())
        self.assertEqual(found["seek"], {"seek index"})
        self.assertEqual(found["coefficients"], {"coefficients"})
        self.assertEqual(found["pixels"], {"pixels"})

    def test_forms_on_disks_outlive_their_workers_and_damage(self):
        self.start_coordinator()
        kept = self.folder / "kept"
        kept.mkdir()

        def start(number):
            return self.start_worker("--cache", "0", "--disk-cache", str(kept / str(number)),
                                     "--disk-cache-bytes", "256MiB", "--disk-cache-of", "all")

        def used(worker):
            for each in self.get("workers")["workers"]:
                if each["name"] == worker.name:
                    return [form["form"] for dataset in each.get("stats", {}).get("disk_cached_datasets", [])
                            for form in dataset.get("forms", []) if int(form.get("hits_total", 0)) > 0]
            return []
        first = [start(number) for number in range(2)]
        for _ in range(2):
            self.assert_oracle(self.consumer(self.spec()).finish())
        for worker in first:
            self.until("decodes by forms from the disk", lambda worker=worker: len(used(worker)) == 2)
        for worker in first:
            worker.kill9()
        # One byte in a thousand of every file is changed.
        draws = random.Random(5)
        for path in sorted(kept.rglob("*.data")) + sorted(kept.rglob("*.index")):
            content = bytearray(path.read_bytes())
            for _ in range(len(content) // 1000 + 1):
                content[draws.randrange(len(content))] ^= 1 << draws.randrange(8)
            path.write_bytes(content)
        second = [start(number) for number in range(2)]
        for _ in range(2):
            self.assert_oracle(self.consumer(self.spec()).finish())
        for worker in second:
            self.until("decodes by forms from the disk", lambda worker=worker: used(worker))

    def test_seek_indexes_beside_a_dataset(self):
        photos = self.folder / "photos"
        shutil.copytree(cluster.photos(), photos)
        spec = self.spec(cluster.train_graph(photos))
        expected = self.oracle_steps(spec, 1)
        done = subprocess.run([cluster.program("WORKER"), "index", "--seek", str(photos)], capture_output=True,
                              text=True, check=True)
        seek = json.loads(done.stdout)["seek"]
        self.assertGreater(seek["indexes"], 400, "a few photos are progressive, or of other kinds without one")
        self.start_coordinator()
        using = self.start_worker("--cache", "0")
        plain = self.start_worker("--cache", "0", "--forms", "none")
        self.assert_oracle(self.consumer(spec, epochs=1).finish(), expected)
        self.assertIn("seek_index.opened", pathlib.Path(using.log).read_text())
        self.assertNotIn("seek_index", pathlib.Path(plain.log).read_text())

        def used():
            return [each["name"] for each in self.get("workers")["workers"]
                    for dataset in each.get("stats", {}).get("cached_datasets", [])
                    for form in dataset.get("forms", []) if int(form.get("hits_total", 0)) > 100]
        self.until("decodes by seek indexes in a first epoch", lambda: used() == [using.name])
        # One byte in a hundred is changed, except in the header.
        path = pathlib.Path(seek["path"])
        content = bytearray(path.read_bytes())
        draws = random.Random(7)
        for _ in range(len(content) // 100):
            content[draws.randrange(64, len(content))] ^= 1 << draws.randrange(8)
        path.write_bytes(content)
        using.kill9()
        self.start_worker("--cache", "0")
        self.assert_oracle(self.consumer(spec, epochs=1).finish(), expected)

    def test_real_photos(self):
        photos = cluster.test_data.real("imagenet-sample")
        self.start_cluster(workers=2)
        spec = self.spec(cluster.train_graph(photos))
        self.assert_oracle(self.consumer(spec, epochs=1).finish(), self.oracle_steps(spec, 1))

    def test_padding_is_marked(self):
        self.start_cluster(workers=2)
        spec = self.spec(name="masked", last_batch="LAST_BATCH_MASK")
        steps = self.oracle_steps(spec, EPOCHS)
        self.assertNotEqual(steps, self.oracle_steps(self.spec(last_batch="LAST_BATCH_PAD"), EPOCHS))
        self.assert_oracle(self.consumer(spec).finish(), steps)

    # Consumers.

    def hosts(self, count, *flags):
        """Starts consumers on contiguous parts of the batch, each in its own process, which keep their tensors."""
        hosts = []
        for host in range(count):
            folder = self.folder / f"{count}-{host}"
            folder.mkdir()
            first, end = BATCH * host // count, BATCH * (host + 1) // count
            consumer = self.consumer(self.spec(), "--rows", first, end, "--dump", folder,
                                     "--position-out", folder / "position", *flags)
            hosts.append((consumer, folder))
        return hosts

    def joined(self, hosts):
        """Returns the steps of several hosts as one list, with the parts' tensors concatenated."""
        lists = [[step[:2] for step in consumer.steps] for consumer, _ in hosts]
        for steps in lists:
            self.assertEqual(steps, lists[0])
        joined = []
        for epoch, step in lists[0]:
            digest = hashlib.sha256()
            for field in ("image", "label"):
                digest.update(field.encode() + b"\0")
                for _, folder in hosts:
                    digest.update((folder / f"{epoch}-{step}-{field}").read_bytes())
            joined.append((epoch, step, digest.hexdigest()))
        return joined

    def test_four_hosts_on_parts_of_the_batch(self):
        self.start_cluster(workers=2)
        hosts = self.hosts(4)
        for consumer, _ in hosts:
            self.assertIsNone(consumer.finish().error)
        self.assertEqual(self.joined(hosts), self.expected)

    def test_hosts_go_from_two_to_three_at_a_position(self):
        self.start_cluster(workers=2)
        two = self.hosts(2, "--stop-after", 5)
        for consumer, _ in two:
            self.assertIsNone(consumer.finish().error)
        positions = {(folder / "position").read_bytes() for _, folder in two}
        self.assertEqual(len(positions), 1, "hosts of one step have the same position")
        three = self.hosts(3, "--resume", two[0][1] / "position")
        for consumer, _ in three:
            self.assertIsNone(consumer.finish().error)
        self.assertEqual(self.joined(two) + self.joined(three), self.expected)

    def test_resume_at_a_random_step_in_a_new_process(self):
        self.start_cluster(workers=2)
        stop = random.randrange(1, EPOCHS * STEPS)
        with self.subTest(stop=stop):
            position = self.folder / "position"
            first = self.consumer(self.spec(), "--stop-after", stop, "--position-out", position).finish()
            self.assert_oracle(first, self.expected[:stop])
            second = self.consumer(self.spec(), "--resume", position).finish()
            self.assert_oracle(second, self.expected[stop:])

    # Failures.

    def test_a_worker_is_killed_in_mid_epoch_and_another_joins(self):
        self.start_cluster(workers=2)
        consumer = self.consumer(self.spec(), "--paced", "--window", 2)
        consumer.pull(3)
        self.workers[0].kill9()
        consumer.pull(3)
        self.start_worker()
        consumer.finish()
        self.assert_oracle(consumer)

    def test_the_last_worker_is_killed_and_another_comes(self):
        self.start_cluster(workers=1)
        consumer = self.consumer(self.spec(), "--paced", "--window", 1)
        consumer.pull(2)
        self.workers[0].kill9()
        self.start_worker(name="successor")
        consumer.finish()
        self.assert_oracle(consumer)

    def test_a_worker_hangs_and_its_rows_come_from_another(self):
        self.start_cluster(workers=2)
        consumer = self.consumer(self.spec(), "--paced", "--window", 1)
        consumer.pull(2)
        self.workers[0].signal(cluster.signal.SIGSTOP)
        consumer.finish()
        self.assert_oracle(consumer)
        self.workers[0].signal(cluster.signal.SIGCONT)

    def test_a_drained_worker_finishes_and_training_goes_on(self):
        self.start_cluster(workers=2)
        consumer = self.consumer(self.spec(), "--paced", "--window", 1)
        consumer.pull(3)
        self.assertEqual(self.workers[0].stop(), 0, self.workers[0].tail())
        consumer.finish()
        self.assert_oracle(consumer)

    def test_the_coordinator_is_killed_and_restarted_while_training_goes_on(self):
        self.start_cluster(workers=2)
        consumer = self.consumer(self.spec(), "--paced", "--window", 1)
        consumer.pull(3)
        self.coordinator.kill9()
        consumer.pull(5)  # there is no coordinator, and none is needed
        self.restart_coordinator()
        consumer.pull(2)
        self.until("both workers are back", lambda: len(
            [w for w in self.get("workers")["workers"] if w["state"] == "WORKER_STATE_READY"]) == 2)
        second = self.consumer(self.spec())  # the job is still known, and a new worker can serve it
        consumer.finish()
        self.assert_oracle(consumer)
        self.assert_oracle(second.finish())

    def test_everything_restarts_and_a_position_goes_on(self):
        self.start_cluster(workers=2)
        position = self.folder / "position"
        first = self.consumer(self.spec(), "--stop-after", 6, "--position-out", position).finish()
        for process in [*self.workers, self.coordinator]:
            process.kill9()
        self.workers.clear()
        self.restart_coordinator()
        self.start_worker(name="another")
        second = self.consumer(self.spec(), "--resume", position).finish()
        self.assertEqual(first.steps + second.steps, self.expected)

    # Costs.

    def test_pixels_are_copied_once_at_the_client_and_never_at_the_worker(self):
        self.start_cluster(workers=2)
        consumer = self.consumer(self.spec(), env={"LEAT_TRANSPORT": "grpc"}).finish()
        self.assert_oracle(consumer)
        rows = EPOCHS * STEPS * BATCH
        self.assertEqual(consumer.end["rows"], rows)
        # A row that comes again is copied, or dropped before that.
        self.assertGreaterEqual(consumer.end["copies"], rows)
        self.assertLessEqual(consumer.end["copies"], rows + consumer.end["duplicates"])
        workers = self.until("the workers have reported", lambda: self._reported(rows))
        self.assertEqual([int(w["stats"]["payload_copies_total"]) for w in workers], [0, 0])

    def _reported(self, rows):
        workers = self.get("workers")["workers"]
        return workers if sum(int(w["stats"]["rows_total"]) for w in workers) >= rows else None


if __name__ == "__main__":
    os.chdir(cluster.tempfile.gettempdir())
    unittest.main()

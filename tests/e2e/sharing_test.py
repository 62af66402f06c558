# SPDX-License-Identifier: Apache-2.0
"""Several trainers take the same rows: workers compute most of them once, and every trainer has the oracle's bytes.

500 photos, batch 64, random-resized-crop and flip.
"""

import unittest

import cluster
from cluster import STEPS


class SharingTest(cluster.PhotosTest):

    def begin(self, *specs, flags=()):
        """Starts a trainer for each spec; all have their first step, and wait."""
        trainers = [self.consumer(spec, "--paced", *flags) for spec in specs]
        for trainer in trainers:
            trainer.pull(1)
        return trainers

    def assert_oracle(self, trainer, steps=None):
        self.assertIsNone(trainer.error)
        self.assertEqual(trainer.steps, self.expected if steps is None else steps)
        self.assertIsNotNone(trainer.end)

    def shared(self):
        """Returns the workers' latest counts: rows in all, and rows that were computed for another trainer."""
        stats = [worker["stats"] for worker in self.get("workers")["workers"]]
        return (sum(int(each.get("rows_total", 0)) for each in stats),
                sum(int(each.get("rows_shared_total", 0)) for each in stats))

    def told(self, rows):
        """Returns `shared`, once workers have reported so many rows."""
        def all_of_them():
            now = self.shared()
            return now if now[0] >= rows else None
        return self.until(f"figures of {rows} rows", all_of_them)

    def test_four_trainers_in_step(self):
        self.start_cluster(workers=2, threads=2)
        trainers = self.begin(*4 * [self.spec()])
        for _ in range(2 * STEPS - 1):
            for trainer in trainers:
                trainer.pull(1)
        shown = self.until("a share of the job", lambda: [
            float(job["shared_fraction"]) for job in self.get("jobs")["jobs"]
            if float(job.get("shared_fraction", 0)) > 0.6])
        self.assertLess(shown[0], 0.76)
        for trainer in trainers:
            self.assert_oracle(trainer.finish())
        rows, shared = self.told(4 * 2 * STEPS * 64)
        self.assertGreater(shared, 0.65 * rows, "three of four rows")

    def test_trainers_that_run_as_they_like(self):
        self.start_coordinator()
        self.start_worker("--shared-rows", "1MiB", threads=2)
        trainers = [self.consumer(self.spec()) for _ in range(3)]
        for trainer in trainers:
            self.assert_oracle(trainer.finish())
        # How many rows meet in so small a window depends on the machine.
        self.told(3 * 2 * STEPS * 64)
        worker, = self.get("workers")["workers"]
        self.assertLessEqual(int(worker["stats"].get("shared_rows_bytes", 0)), 1 << 20)

    def test_a_trainer_comes_late_and_one_is_killed(self):
        self.start_cluster(workers=2, threads=1)
        first, killed = self.begin(*2 * [self.spec()])
        first.pull(STEPS)
        late, = self.begin(self.spec())
        killed.pull(2)
        killed.process.kill()
        self.assert_oracle(first.finish())
        self.assert_oracle(late.finish())

    def test_a_worker_is_killed_under_them(self):
        self.start_cluster(workers=2, threads=1)
        trainers = self.begin(*2 * [self.spec()])
        for trainer in trainers:
            trainer.pull(3)
        self.workers[0].kill9()
        for trainer in trainers:
            self.assert_oracle(trainer.finish())

    def test_jobs_of_other_batches_share_and_of_another_seed_do_not(self):
        self.start_coordinator()
        self.start_worker(threads=2)
        small, other = self.spec(name="small", batch=32), self.spec(name="other", seed=8)
        expected = {spec: self.oracle_steps(spec, 2) for spec in (small, other)}
        one, two, three = self.begin(self.spec(), small, other, flags=("--window", 1))
        two.pull(1)
        for _ in range(2 * STEPS - 1):
            one.pull(1)
            two.pull(2)
            three.pull(1)
        self.assert_oracle(one.finish())
        self.assert_oracle(two.finish(), expected[small])
        self.assert_oracle(three.finish(), expected[other])
        jobs = {job["job"]["spec"]["name"]: float(job.get("shared_fraction", 0)) for job in self.get("jobs")["jobs"]}
        self.assertEqual(jobs["other"], 0)
        rows, shared = self.told(3 * 2 * STEPS * 64)
        # A third of the rows, except the first ones, which no worker kept for a later trainer.
        self.assertGreater(shared, 0.2 * rows)

    def test_hosts_of_one_training_share_nothing(self):
        self.start_cluster(workers=1, threads=2)
        spec = self.spec(last_batch="LAST_BATCH_DROP")  # filled batches have samples of their epoch twice
        halves = [self.consumer(spec, "--rows", 0, 32), self.consumer(spec, "--rows", 32, 64)]
        for half in halves:
            self.assertIsNone(half.finish().error)
        _, shared = self.told(2 * (STEPS - 1) * 64)
        self.assertEqual(shared, 0)
        worker, = self.get("workers")["workers"]
        self.assertEqual(int(worker["stats"].get("shared_rows_bytes", 0)), 0)


if __name__ == "__main__":
    unittest.main()

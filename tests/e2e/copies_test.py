# SPDX-License-Identifier: Apache-2.0
"""Copies of a dataset: workers that have one each serve a job together, and a position outlives a move."""

import shutil
import unittest

import cluster

PHOTOS, BATCH = 40, 8


class CopiesTest(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        for i, photo in enumerate(sorted(cluster.photos().rglob("*.*"))[:PHOTOS]):
            (self.data / str(i % 3)).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(photo, self.data / str(i % 3) / f"{i}{photo.suffix}")

    def copy(self, name):
        """Copies the dataset, with other file times."""
        return shutil.copytree(self.data, self.folder / name, copy_function=shutil.copyfile)

    def spec_of(self, path, name):
        return self.spec(cluster.train_graph(path, side=64), batch=BATCH, name=name)

    def run_on(self, spec, *flags):
        return self.consumer(spec, *flags, epochs=2).finish()

    def test_a_worker_with_a_copy_elsewhere_goes_on_where_the_original_is_gone(self):
        spec = self.spec_of(self.data, "shared")
        expected = self.oracle_steps(spec, 2)
        self.start_coordinator()
        first = self.start_worker()
        consumer = self.consumer(spec, "--paced", "--window", 1, epochs=2)
        consumer.pull(1)
        copy = self.copy("copy")
        self.start_worker("--local-copy", f"{self.data}={copy}")
        first.kill9()
        self.data.rename(self.folder / "gone")
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, expected)

    def test_a_position_outlives_a_move_and_no_other_change(self):
        expected = self.oracle_steps(self.spec_of(self.data, "here"), 2)
        self.start_cluster(workers=1)
        position = self.folder / "position"
        begun = self.run_on(self.spec_of(self.data, "here"), "--stop-after", 3, "--position-out", position)
        self.assertEqual(begun.steps, expected[:3])
        moved = self.run_on(self.spec_of(self.copy("there"), "there"), "--resume", position)
        self.assertIsNone(moved.error)
        self.assertEqual(moved.steps, expected[3:])
        larger = self.copy("larger")
        with open(next((larger / "1").iterdir()), "ab") as photo:
            photo.write(b"\0")
        refused = self.run_on(self.spec_of(larger, "larger"), "--resume", position)
        self.assertEqual(refused.steps, [])
        self.assertIn("of job \"here\"", refused.error[1])


if __name__ == "__main__":
    unittest.main()

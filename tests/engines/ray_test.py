# SPDX-License-Identifier: Apache-2.0
"""A training whose workers are actors of a real Ray."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "e2e"))
sys.path.append(str(HERE.parents[1] / "python_client/src"))
import cluster  # noqa: E402
import pages  # noqa: E402
from cluster import program  # noqa: E402
from ray_cluster import RayCluster, ray  # noqa: E402

PATIENCE_S = 120


class Ray(cluster.PhotosTest):
    def setUp(self):
        super().setUp()
        native = os.environ["LEAT_NATIVE_DIR"]
        self.start_coordinator("--scale-down-after", "20s")
        self.ray = RayCluster(self.folder / "ray", {"LEAT_NATIVE_DIR": native,
                                                    "PYTHONPATH": str(HERE.parents[1] / "python_client/src")})
        self.addCleanup(self.ray.close)
        import leat.ray

        self.leat = leat

    def pool(self, least, most, **options):
        return self.leat.ray.Pool("ray", min=least, max=most, resources={"leat": 1}, grace=20.0,
                                  coordinator=self.coordinator.address,
                                  flags=["--insecure", "--cache=64MiB", f"--allow={cluster.photos()}"], **options)

    def bounds(self, least, most):
        subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, "pool", "set", "ray", "--min",
                        str(least), "--max", str(most)], check=True, capture_output=True)

    def reason(self):
        listed = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, "get", "pools", "-o",
                                 "json"], check=True, capture_output=True, text=True).stdout
        return json.loads(listed)["pools"][0]["reason"]

    def ready(self):
        return {each["name"] for each in self.get("workers")["workers"] if each["state"] == "WORKER_STATE_READY"}

    def patiently(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"never: {what}; {self.leat.ray.Pool('ray', max=1, coordinator='x').status()}, "
                                     f"{self.ray.nodes()} nodes, {self.get('workers')}")
            time.sleep(0.3)

    def until_ready(self, count):
        self.patiently(f"{count} workers", lambda: len(self.ready()) == count)
        return self.ready()

    def test_nodes_come_and_go_with_the_pool(self):
        pool = self.pool(2, 2)
        pool.up()
        pool.up()  # it is there
        self.assertEqual(self.ray.nodes(), 0, "the autoscaler has not looked yet")
        self.until_ready(2)
        consumer = self.consumer(self.spec(), "--paced")
        consumer.pull(2)
        self.bounds(3, 3)
        before = self.until_ready(3)
        consumer.pull(2)
        self.bounds(1, 1)
        after = self.until_ready(1)
        self.assertLess(after, before, "the one that stayed is of those that were there")
        consumer.pull(2)
        self.bounds(2, 2)
        self.until_ready(2)
        # Ray ends an actor without a word: its worker ends too, and another takes its place.
        [victim] = self.ready() - after
        ray.kill(ray.get_actor(f"leat-worker-{victim}", namespace="leat"))
        self.patiently("another worker", lambda: victim not in self.ready() and len(self.ready()) == 2)
        self.assertEqual(len(self.ray.processes("leat-worker ")), 2)
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        pool.down()
        pool.down()
        self.assertEqual(self.ray.processes("leat-worker "), [])
        self.patiently("no node", lambda: self.ray.nodes() == 0)

    def test_the_program_of_the_page_starts_a_pool(self):
        pool = pages.run("page_ray.py", {
            'ray.init("auto")': "", "cpus=4": 'resources={"leat": 1}', "**files": "",
            '"head:7411"': repr(self.coordinator.address), '"--allow=/data"': '"--insecure", "--cache=64MiB"'})["pool"]
        self.until_ready(1)
        self.assertEqual(list(pool.status()["workers"].values()), ["runs"])
        pool.down()
        self.assertEqual(self.ray.processes("leat-worker "), [])

    def test_a_training_that_waits_gets_workers(self):
        """By the policy alone: more workers while the trainer takes all that it gets, and fewer after."""
        pool = self.pool(1, 3)
        pool.up()
        self.until_ready(1)
        spec = self.spec(graph=cluster.train_graph(cluster.photos(), repeat=1000), name="long")
        waiting = self.consumer(spec, "--rate-s", "300", epochs=1)
        self.patiently("more than one serves", lambda: len(self.ready()) > 1)
        self.assertIn("waits for", self.reason())
        waiting.process.kill()
        consumer = self.consumer(self.spec(), "--paced")
        consumer.pull(1)
        self.until_ready(1)
        self.assertIn("wanted less", self.reason())
        consumer.finish()
        self.assertEqual(consumer.steps, self.expected)
        pool.down()
        self.patiently("no node", lambda: self.ray.nodes() == 0)

    def test_a_supervisor_that_is_killed_finds_its_workers_again(self):
        pool = self.pool(2, 2)
        pool.up()
        before = self.until_ready(2)
        with self.assertRaisesRegex(self.leat.AlreadyExists, "up with other threads"):
            self.pool(2, 2, cpus=2).up()
        [supervisor] = self.ray.processes("ray::_Supervisor")
        os.kill(supervisor, signal.SIGKILL)
        self.patiently("the supervisor", lambda: self.ray.processes("ray::_Supervisor") not in ([], [supervisor]))
        self.patiently("what it knows", lambda: pool.status()["workers"] == dict.fromkeys(before, "runs"))
        self.bounds(1, 1)
        self.assertLess(self.until_ready(1), before)
        pool.down()
        self.assertEqual(self.ray.processes("leat-worker "), [])

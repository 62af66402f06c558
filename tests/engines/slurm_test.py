# SPDX-License-Identifier: Apache-2.0
"""A training whose workers are tasks of a real Slurm."""

import json
import pathlib
import subprocess
import sys
import time
import types
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import cluster  # noqa: E402
from cluster import program  # noqa: E402
from slurm_cluster import SlurmCluster  # noqa: E402

POOL, WORKERS = "cpu", "leat-cpu"
LONG_S = 180


class Slurm(cluster.PhotosTest):
    def setUp(self):
        super().setUp()
        self.slurm = SlurmCluster(self.folder / "slurm")
        self.addCleanup(self.slurm.close)
        self.slurm.start()
        programs = self.folder / "bin"
        programs.mkdir()
        for name, variable in (("leat", "CLI"), ("leat-coordinator", "COORDINATOR"), ("leat-worker", "WORKER")):
            (programs / name).symlink_to(program(variable))
        self.environment = self.slurm.environment
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"
        self.pool = self.folder / "pool"

    def leat(self, *argv):
        done = subprocess.run(["leat", *argv], capture_output=True, text=True, env=self.environment, timeout=LONG_S)
        self.assertEqual(done.returncode, 0, f"{argv}: {done.stdout}{done.stderr}\n{self.logs()}")
        return done.stdout

    def up(self, *flags):
        address = self.leat("slurm", "up", POOL, "--dir", str(self.pool), "--listen", "127.0.0.1", "--array-size",
                            "30", "--worker=--threads=1", "--worker=--cache=64MiB",
                            "--coordinator-flag=--scale-down-after=20s", *flags).strip()
        self.environment["LEAT_COORDINATOR"] = address
        self.environment["LEAT_ACCESS_TOKEN"] = (self.pool / "token").read_text().strip()
        self.coordinator = types.SimpleNamespace(address=address)

    def logs(self):
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-1500:]}"
                         for path in sorted((self.pool / "log").glob("*.log"))) + self.slurm.tails()

    def bounds(self, least, most):
        self.leat("pool", "set", POOL, "--min", str(least), "--max", str(most))

    def state(self):
        pools = json.loads(self.leat("get", "pools", POOL, "-o", "json"))["pools"]
        return pools[0]

    def ready(self):
        workers = json.loads(self.leat("get", "workers", "-o", "json"))["workers"]
        return {each["name"] for each in workers if each["state"] == "WORKER_STATE_READY"}

    def until_ready(self, count):
        def settled():
            return len(self.ready()) == count and len(self.slurm.running(WORKERS)) == count
        self.patiently(f"{count} workers", settled)
        return self.ready()

    def said(self, *argv):
        done = subprocess.run(argv, capture_output=True, text=True, env=self.environment, timeout=LONG_S)
        return done.stdout + done.stderr

    def patiently(self, what, condition):
        end = time.monotonic() + LONG_S
        while not condition():
            if time.monotonic() > end:
                said = "\n".join(self.said(*argv) for argv in (
                    ("squeue",), ("leat", "get", "pools"), ("leat", "get", "workers")))
                raise AssertionError(f"never: {what}; {said}\n{self.logs()}")
            time.sleep(0.3)

    def train(self, **options):
        token = self.environment["LEAT_ACCESS_TOKEN"]
        return self.consumer(self.spec(), "--paced", "--access-token", token, **options)

    def assert_oracle(self, consumer):
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)

    def test_an_epoch_while_workers_come_and_go(self):
        self.up("--min", "1", "--max", "1")
        self.until_ready(1)
        consumer = self.train()
        consumer.pull(2)
        self.bounds(5, 5)
        self.until_ready(5)
        consumer.pull(4)
        before = self.ready()
        self.bounds(2, 2)
        after = self.until_ready(2)
        self.assertLess(after, before, "those that stayed are of those that were there")
        consumer.pull(3)
        # One is killed without grace, and another takes its place.
        victim = sorted(self.slurm.running(WORKERS))[0]
        self.slurm.run("scancel", "--signal=KILL", victim)
        self.patiently("another worker", lambda: f"{POOL}.{victim}" not in self.ready() and len(self.ready()) == 2)
        self.assert_oracle(consumer)
        self.assertIn("coordinator", self.leat("slurm", "status", POOL, "--dir", str(self.pool)))
        self.leat("slurm", "down", POOL)
        adapters = [each for each in self.slurm.commands_of(f"{WORKERS}-coordinator") if "slurm scale" in each]
        self.assertEqual(adapters, [], "one would submit more workers")
        self.patiently("an empty queue", lambda: not self.slurm.run("squeue", "-h").strip())
        self.assertFalse((self.pool / "address").exists())
        drained = [path for path in (self.pool / "log").glob("*_*.log")
                   if "worker.stopping signal=15" in path.read_text(errors="replace")]
        self.assertGreaterEqual(len(drained), 5, "three were drained, and two in the end")

    def test_a_node_is_lost(self):
        self.up("--min", "5", "--max", "5")
        self.until_ready(5)
        consumer = self.train()
        consumer.pull(3)
        coordinator = list(self.slurm.running(f"{WORKERS}-coordinator").values())[0]
        lost = "n2" if coordinator == "n1" else "n1"
        # The least loaded node comes first, so that each has some.
        self.assertIn(lost, self.slurm.running(WORKERS).values())
        self.slurm.kill_node(lost)
        consumer.pull(3)
        self.patiently("five workers again", lambda: len(self.ready()) == 5 and all(
            node != lost for node in self.slurm.running(WORKERS).values()))
        self.assert_oracle(consumer)

    def test_a_training_that_waits_gets_workers(self):
        """By the policy alone: more workers while the trainer takes all that it gets, and fewer after."""
        self.up("--min", "1", "--max", "3")
        self.until_ready(1)
        spec = self.spec(graph=cluster.train_graph(cluster.photos(), repeat=1000), name="long")
        waiting = self.consumer(spec, "--rate-s", "300", "--access-token", self.environment["LEAT_ACCESS_TOKEN"],
                                epochs=1)
        self.patiently("more than one is wanted", lambda: self.state()["desired"] > 1)
        self.assertIn("waits for", self.state()["reason"])
        self.patiently("they serve", lambda: len(self.ready()) > 1)
        waiting.process.kill()
        consumer = self.train()
        consumer.pull(1)
        self.until_ready(1)
        self.assertIn("wanted less", self.state()["reason"])
        self.assert_oracle(consumer)

    def test_the_coordinators_time_limit(self):
        """It goes back into the queue, and listens where it did: the training and its workers stay."""
        self.up("--min", "2", "--max", "2")
        before = self.until_ready(2)
        consumer = self.train()
        consumer.pull(2)
        (job,) = {task.split("_")[0] for task in self.slurm.running(f"{WORKERS}-coordinator")}
        time.sleep(35)  # a limit that leaves it less than half a minute is not tried again
        self.slurm.run("scancel", "--signal=USR1", "--batch", job)  # as Slurm does before the limit
        self.patiently("it waits", lambda: self.slurm.run("squeue", "-h", "-j", job, "-o", "%t").strip() == "PD")
        self.assertFalse((self.pool / "address").exists())
        consumer.pull(2)
        self.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
        self.patiently("it serves", (self.pool / "address").exists)
        self.assertEqual((self.pool / "address").read_text().strip(), self.coordinator.address)
        self.assertEqual(self.until_ready(2), before)
        self.assert_oracle(consumer)

    def test_two_adapters_on_one_pool(self):
        self.up("--min", "2", "--max", "2")
        with subprocess.Popen(["leat", "slurm", "scale", POOL, "--dir", str(self.pool), "--array-size", "30"],
                              env=self.environment, stderr=subprocess.DEVNULL) as second:
            try:
                self.until_ready(2)
                self.bounds(4, 4)
                self.until_ready(4)
                self.bounds(1, 1)
                self.until_ready(1)
            finally:
                second.kill()


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Storage that fails on some workers or on all: training gets the same bytes, or one clear error; and workers end.

LEAT_FAULT_SHIM is the library of tests/support/fault_shim.cc, which makes the calls of a worker fail."""

import errno
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
import unittest

import cluster
from cluster import train_graph
from file_faults import FileFaults

NOT_FOUND, EIO_S = 5, 30.0
POLICIES = ("FAIL", "REPLACE", "ZERO")


class StorageFaults(cluster.PhotosTest):
    def fault(self, name="fault"):
        return self._keep(FileFaults(self.folder / name, cluster.photos()))

    def shimmed(self, fault, *flags, **options):
        return self.start_worker("--cache", "0", *flags, env=fault.env, **options)

    def assert_oracle(self, consumer, expected=None):
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected if expected is None else expected)

    # Some workers.

    def test_a_worker_without_the_mount_under_each_policy(self):
        for policy in POLICIES:
            with self.subTest(policy=policy):
                self.one_without_the_mount(policy)

    def one_without_the_mount(self, policy):
        spec = self.spec(name=f"mount-{policy}", on_bad_sample=f"BAD_SAMPLE_POLICY_{policy}")
        expected = self.oracle_steps(spec, cluster.EPOCHS)
        self.start_coordinator(state=False)
        self.start_worker("--cache", "0", name=f"sound-{policy}")
        consumer = self.consumer(spec, "--paced", "--window", 1)
        consumer.pull(1)  # it has listed the dataset
        fault = self.fault(f"no-mount-{policy}")
        fault.set_storage(errno.ENOENT)
        self.shimmed(fault, name=f"bare-{policy}")
        consumer.finish()
        self.assert_oracle(consumer, expected)
        job = next(job for job in self.get("jobs")["jobs"] if job["job"]["spec"]["name"] == f"mount-{policy}")
        self.assertEqual(int(job.get("bad_samples_total", 0)), 0)

    def test_all_workers_without_the_mount_for_a_while(self):
        fault = self.fault()
        self.start_coordinator()
        for _ in range(2):
            self.shimmed(fault)
        consumer = self.consumer(self.spec(on_bad_sample="BAD_SAMPLE_POLICY_ZERO"), "--paced", "--window", 1)
        consumer.pull(1)
        fault.set_storage(errno.ENOENT)
        timer = threading.Timer(5, fault.clear)
        timer.start()
        self.addCleanup(timer.cancel)
        consumer.finish()
        self.assert_oracle(consumer, self.oracle_steps(self.spec(on_bad_sample="BAD_SAMPLE_POLICY_ZERO"), 2))

    def eio(self, *faults):
        """Trains while reads of these workers fail for half a minute."""
        consumer = self.consumer(self.spec(), "--paced", "--window", 1)
        consumer.pull(2)
        for fault in faults:
            fault.set_storage(errno.EIO)
        timer = threading.Timer(EIO_S, lambda: [fault.clear() for fault in faults])
        timer.start()
        self.addCleanup(timer.cancel)
        return consumer

    def test_io_errors_on_one_of_two_workers(self):
        self.start_coordinator()
        fault = self.fault()
        self.start_worker("--cache", "0")
        self.shimmed(fault)
        consumer = self.eio(fault)
        start = time.monotonic()
        consumer.pull(4)
        self.assertLess(time.monotonic() - start, EIO_S / 2, "the other worker has all that is wanted")
        consumer.finish()
        self.assert_oracle(consumer)

    def test_io_errors_on_all_workers(self):
        self.start_coordinator()
        faults = [self.fault(f"fault{i}") for i in range(2)]
        for fault in faults:
            self.shimmed(fault)
        consumer = self.eio(*faults)
        consumer.finish()
        self.assert_oracle(consumer)

    def test_a_worker_says_what_it_cannot_read_and_for_how_long(self):
        self.start_coordinator()
        fault = self.fault()
        worker = self.shimmed(fault)
        consumer = self.consumer(self.spec(), "--paced", "--window", 1)
        consumer.pull(1)
        fault.set_storage(errno.EIO)
        consumer.process.stdin.write(b"\n" * 10)
        self.until("the worker's log names the root",
                   lambda: f"storage.failure root={cluster.photos()}" in pathlib.Path(worker.log).read_text())
        fault.clear()
        self.until("it reads again, by itself",
                   lambda: f"storage.works root={cluster.photos()}" in pathlib.Path(worker.log).read_text())
        consumer.finish()
        self.assert_oracle(consumer)

    def test_a_mount_that_is_stale_for_a_while(self):
        fault = self.fault()
        self.start_coordinator()
        self.shimmed(fault)
        consumer = self.consumer(self.spec(), "--paced", "--window", 1)
        consumer.pull(1)
        fault.set_storage(errno.ESTALE)
        timer = threading.Timer(2, fault.clear)
        timer.start()
        self.addCleanup(timer.cancel)
        consumer.finish()
        self.assert_oracle(consumer)

    # A single file is missing.

    def missing(self, policy, workers):
        """Returns the steps of a job whose folder lacks a file that was listed, or the error."""
        images = self.folder / f"images-{policy}-{workers}" / "class"
        images.mkdir(parents=True)
        for number, photo in enumerate(cluster.test_data.images(cluster.photos())[:16]):
            shutil.copy2(photo, images / f"{number:02}.jpg")
        spec = self.spec(train_graph(images.parent, 32), name=f"missing-{policy}-{workers}", batch=4,
                         on_bad_sample=f"BAD_SAMPLE_POLICY_{policy}")
        self.start_coordinator(state=False)
        for worker in range(workers):
            self.start_worker("--cache", "0", name=f"missing-{policy}-{workers}-{worker}")
        first = self.consumer(spec, "--stop-after", 1, epochs=1).finish()
        self.assertIsNone(first.error)
        (images / "05.jpg").unlink()
        return self.consumer(spec, epochs=2).finish()

    def test_a_missing_file_follows_the_policy_with_one_worker_and_with_two(self):
        for policy in ("REPLACE", "ZERO"):
            with self.subTest(policy=policy):
                one, two = (self.missing(policy, workers) for workers in (1, 2))
                self.assertIsNone(one.error)
                self.assertIsNone(two.error)
                self.assertEqual(len(one.steps), 8)
                self.assertEqual(one.steps, two.steps)
        for workers in (1, 2):
            with self.subTest(policy="FAIL", workers=workers):
                consumer = self.missing("FAIL", workers)
                self.assertIsNotNone(consumer.error)
                self.assertEqual(consumer.error[0], NOT_FOUND, consumer.error)
                self.assertIn("05.jpg", consumer.error[1])

    def test_a_listing_that_hangs_does_not_hold_up_another(self):
        images = self.folder / "few" / "class"
        images.mkdir(parents=True)
        for photo in cluster.test_data.images(cluster.photos())[:4]:
            shutil.copy2(photo, images)
        fault = self.fault()
        fault.set_storage(FileFaults.HANG)
        self.start_coordinator()
        self.shimmed(fault)
        hangs = self.consumer(self.spec(), epochs=1)
        self.until("the listing hangs", lambda: fault.hits("list", "open") > 0)
        other = self.consumer(self.spec(train_graph(images.parent, 32), name="few", batch=4), epochs=1).finish()
        self.assertIsNone(other.error)
        fault.clear()
        self.assertIsNone(hangs.finish().error)

    # The end.

    def hanging(self, *flags):
        """Starts a worker with a read that does not return."""
        fault = self.fault()
        self.start_coordinator()
        worker = self.shimmed(fault, *flags)
        consumer = self.consumer(self.spec(), "--paced", "--window", 1)
        consumer.pull(1)
        before = fault.hits("open", "read")
        fault.set_storage(FileFaults.HANG)
        consumer.process.stdin.write(b"\n" * 10)
        self.until("a read hangs", lambda: fault.hits("open", "read") > before)
        return worker

    def test_a_hung_read_does_not_outlive_the_drain(self):
        worker = self.hanging("--drain-timeout-ms", "1000")
        start = time.monotonic()
        self.assertEqual(worker.stop(), 0, worker.tail())
        self.assertLess(time.monotonic() - start, 10)

    def test_a_second_signal_ends_a_worker_at_once(self):
        worker = self.hanging("--drain-timeout-ms", "3600000")
        worker.signal(signal.SIGTERM)
        self.until("it drains", lambda: "worker.draining" in pathlib.Path(worker.log).read_text())
        start = time.monotonic()
        worker.signal(signal.SIGTERM)
        self.assertNotEqual(worker.process.wait(cluster.PATIENCE_S), 0, worker.tail())
        self.assertLess(time.monotonic() - start, 5)
        self.assertRegex(worker.tail(), "a second (stop )?signal")

    def test_a_listing_that_hangs_does_not_hold_up_the_end(self):
        fault = self.fault()
        fault.set_storage(FileFaults.HANG)
        self.start_coordinator()
        worker = self.shimmed(fault, "--drain-timeout-ms", "1000")
        self.consumer(self.spec(), "--paced")
        self.until("the listing hangs", lambda: fault.hits("list", "open") > 0)
        start = time.monotonic()
        worker.stop()
        self.assertLess(time.monotonic() - start, 10)

    def test_a_worker_that_gets_no_threads_says_so_and_ends(self):
        self.start_coordinator()
        for threads in (0, 1, 2, 3, 5, 8):
            with self.subTest(threads=threads):
                fault = self.fault()
                done = subprocess.run(
                    [cluster.program("WORKER"), "--coordinator", self.coordinator.address, "--threads", "8"],
                    env={**os.environ, **fault.env, "LEAT_FAULT_THREADS": str(threads)}, capture_output=True,
                    text=True, timeout=cluster.PATIENCE_S)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("cannot start thread", done.stderr)


if __name__ == "__main__":
    unittest.main()

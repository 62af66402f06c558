# SPDX-License-Identifier: Apache-2.0
"""Processes that stop, stutter, end and come back, and files that fail."""

import errno
import threading
import time
import unittest

import faults
from faults import ChaosTest, FileFaults, Stutter, cluster, flood, free_port, prlimit, time


ALREADY_EXISTS = 6
STATE_FAILED = 74  # kStateFailedExitCode of server/daemon.h


class Stopped(ChaosTest):
    def test_the_coordinator_stops_for_five_seconds(self):
        self.start_cluster(workers=2)
        consumer = self.train()
        consumer.pull(3)
        self.coordinator.signal(cluster.signal.SIGSTOP)
        end = time.monotonic() + 5
        while time.monotonic() < end and len(consumer.steps) < 12:
            consumer.pull(1)
            time.sleep(0.5)  # a trainer's step
        self.coordinator.signal(cluster.signal.SIGCONT)
        self.finish(consumer, longest_s=10)
        self.until_ready(2)

    def test_one_of_six_workers_is_stuck_to_the_end(self):
        self.start_cluster(workers=6)
        consumer = self.train()
        consumer.pull(2)
        self.workers[0].signal(cluster.signal.SIGSTOP)
        self.finish(consumer, longest_s=10)

    def test_two_of_three_workers_stop_soon_after_another(self):
        self.start_cluster(workers=3)
        consumer = self.train()
        consumer.pull(6)
        for worker in self.workers[:2]:
            worker.signal(cluster.signal.SIGSTOP)
            consumer.pull(2)
        self.finish(consumer, longest_s=3)

    def test_a_slow_worker(self):
        self.start_cluster(workers=2)
        self._keep(Stutter(self.workers[0], on_s=0.02, off_s=0.3))
        self.finish(self.train(), longest_s=20)


class Restarted(ChaosTest):
    def test_a_worker_restarts_on_the_same_port(self):
        self.start_coordinator()
        address = f"127.0.0.1:{free_port()}"
        self.start_worker("--listen", address, name="same")
        self.start_worker(name="other")
        consumer = self.train()
        for _ in range(3):
            consumer.pull(3)
            self.workers[0].kill9()
            self.workers[0] = self.start_worker("--listen", address, name="same")
        self.finish(consumer, longest_s=20)

    def test_the_coordinator_restarts_five_times_with_ten_datasets(self):
        self.start_cluster(workers=2)
        specs = []
        for i in range(10):
            folder = self.folder / f"images-{i}" / "class"
            folder.mkdir(parents=True)
            for number, photo in enumerate(cluster.test_data.images(cluster.photos())[8 * i:8 * i + 8]):
                (folder / f"{number}.jpg").symlink_to(photo)
            specs.append(self.spec(cluster.train_graph(folder.parent, 32), name=f"job{i}", batch=4))
            self.assertIsNone(self.consumer(specs[-1], epochs=1).finish().error)
        consumer = self.train()
        for _ in range(5):
            consumer.pull(2)
            self.coordinator.kill9()
            self.restart_coordinator()
        self.finish(consumer, longest_s=20)
        self.until_ready(2)
        for spec in specs:
            again = self.consumer(spec, epochs=1).finish()
            self.assertIsNone(again.error)
            self.assertEqual(again.steps, self.oracle(spec, 1))

    def test_four_of_five_workers_go(self):
        self.start_cluster(workers=5)
        consumer = self.train()
        for worker in self.workers[:2]:
            consumer.pull(2)
            worker.kill9()
        for worker in self.workers[2:4]:
            consumer.pull(2)
            self.assertEqual(worker.stop(), 0)
        self.finish(consumer, longest_s=20)

    def test_the_client_is_there_first(self):
        address = f"127.0.0.1:{free_port()}"
        spec = self.chaos_spec()
        self.oracle(spec)
        consumer = self._keep(cluster.Consumer(
            ["--spec", str(spec), "--epochs", str(faults.EPOCHS), "--address", address], self._log("consumer"),
            {"LEAT_TRANSPORT": "grpc"}))
        self.start_coordinator(listen=address)
        self.start_worker()
        self.finish(consumer, longest_s=30)


    def test_a_job_of_its_name_and_another_mode_after_a_restart(self):
        """A name belongs to one job, also for a coordinator that has read it back."""
        self.start_cluster(workers=1)
        consumer = self.train()
        consumer.pull(1)
        self.coordinator.kill9()
        self.restart_coordinator()
        other = self.consumer(self.chaos_spec(order="ORDER_SEQUENTIAL"), epochs=1).finish()
        self.assertIsNotNone(other.error)
        self.assertEqual(other.error[0], ALREADY_EXISTS, other.error)
        self.finish(consumer, longest_s=5)


class Boundaries(ChaosTest):
    """Faults at the first step, at the last of an epoch, at the first of the next, and at the last of all."""

    def at_each(self, fault, longest_s=20):
        consumer = self.train()
        for steps in (1, faults.STEPS - 2, 1, 1, faults.STEPS - 2):
            consumer.pull(steps)
            fault()
        self.finish(consumer, longest_s)

    def test_a_worker_is_killed(self):
        self.start_coordinator()
        self.start_worker(name="other")
        address = f"127.0.0.1:{free_port()}"

        def restart():
            if len(self.workers) > 1:
                self.workers.pop().kill9()
            self.start_worker("--listen", address, name="same")
        restart()
        self.at_each(restart)

    def test_the_coordinator_is_killed(self):
        self.start_cluster(workers=2)

        def restart():
            self.coordinator.kill9()
            self.restart_coordinator()
        self.at_each(restart)


class Clients(ChaosTest):
    """A fault of one consumer does not affect another."""

    def setUp(self):
        super().setUp()
        self.start_cluster(workers=2)
        self.one, self.other = self.train(), self.train()
        for consumer in (self.one, self.other):
            consumer.pull(2)

    def test_one_is_killed(self):
        self.one.process.kill()
        self.finish(self.other, longest_s=5)
        self.finish(self.train(), longest_s=5)

    def test_one_stops_for_a_while(self):
        self.one.process.send_signal(cluster.signal.SIGSTOP)
        self.finish(self.other, longest_s=5)
        self.one.process.send_signal(cluster.signal.SIGCONT)
        self.finish(self.one, longest_s=10)


class Twice(ChaosTest):
    """Two processes where there may be only one."""

    def test_a_second_coordinator_of_the_same_state(self):
        self.start_cluster(workers=1)
        consumer = self.train()
        consumer.pull(2)
        first = self.coordinator
        with self.assertRaisesRegex(cluster.DaemonFailed, "state"):
            self.start_coordinator()
        self.assertIs(self.coordinator, first)
        self.finish(consumer, longest_s=5)

    def test_a_worker_of_the_same_name(self):
        """The new one stays, the old one is told and ends; rows come from either of them."""
        self.start_cluster(workers=2)
        consumer = self.train()
        consumer.pull(2)
        self.start_worker(name="w0")
        self.assertEqual(self.workers[0].process.wait(cluster.PATIENCE_S), 1)
        self.finish(consumer, longest_s=10)
        self.until_ready(2)


class Exhausted(ChaosTest):
    """100 descriptors and 300 connections that send nothing: they do not use up all, and others are served."""

    def test_of_the_coordinator(self):
        self.start_coordinator("--max-connections", "1000", before=prlimit(nofile=100))
        self.start_worker()
        with flood(self.coordinator.address, 300):
            self.until("it refuses", lambda: "listener.refused" in self.coordinator.tail())
        self.until_ready(1)
        self.assertNotIn("listener.rests", self.coordinator.tail())
        self.finish(self.train(), longest_s=20)

    def test_of_a_worker(self):
        self.start_coordinator()
        self.start_worker("--max-connections", "1000", before=prlimit(nofile=100))
        consumer = self.train()
        consumer.pull(2)
        with flood(self.workers[0].address, 300):
            self.until("it refuses", lambda: "listener.refused" in self.workers[0].tail())
        second = self.train()
        self.finish(consumer, longest_s=20)
        self.finish(second, longest_s=20)

    def test_caps_leave_descriptors_for_files(self):
        self.start_coordinator()
        self.start_worker("--max-connections-per-address", "20", before=prlimit(nofile=100))
        with flood(self.workers[0].address, 300):
            self.until("it refuses", lambda: "listener.refused" in self.workers[0].tail())
        self.finish(self.train(), longest_s=20)
        self.assertNotIn("listener.rests", self.workers[0].tail())


class Storage(ChaosTest):
    def test_the_state_cannot_be_synced(self):
        """The coordinator reports it and ends; training continues; clients that ask for a job wait for its
        successor."""
        state = self.file_faults(self.folder / "state")
        self.start_coordinator(env=state.env)
        for _ in range(2):
            self.start_worker()
        consumer = self.train()
        consumer.pull(3)
        state.set(sync=errno.EIO)
        late = self.consumer(self.chaos_spec(name="late"), "--timeout-s", 60, epochs=1)
        self.assertEqual(self.coordinator.process.wait(cluster.PATIENCE_S), STATE_FAILED)
        self.assertEqual(self.coordinator.tail().count("state.failed"), 1)
        self.assertIn("fsync", self.coordinator.tail())
        consumer.pull(3)  # without a coordinator
        self.restart_coordinator()  # on a disk that works
        back = time.monotonic()
        self.assertIsNone(late.finish().error)
        self.assertLess(time.monotonic() - back, 4)  # gRPC checks an unused connection every 5 s
        self.finish(consumer, longest_s=10)

    def test_the_power_goes_three_times(self):
        """The coordinator's disk keeps only synced data: everything that was acknowledged is there again."""
        folder = self.folder / "state"
        state = self.file_faults(folder)
        state.set(sync=FileFaults.COPY)
        self.start_coordinator(env=state.env)
        for _ in range(2):
            self.start_worker()
        consumer = self.train()
        for number in range(3):
            consumer.pull(2)
            made = self.chaos_spec(name=f"made{number}")
            self.assertIsNone(self.consumer(made, "--stop-after", 1, epochs=1).finish().error)
            self.coordinator.kill9()
            state.lose_power(folder)
            consumer.pull(1)
            self.restart_coordinator(env=state.env)
            names = {job["job"]["spec"]["name"] for job in self.get("jobs")["jobs"]}
            self.assertEqual(names, {"job", *(f"made{i}" for i in range(number + 1))})
        self.assertGreater(state.hits("sync"), 0)
        self.finish(consumer, longest_s=10)

    def test_the_disk_of_the_state_is_full(self):
        """Changes are refused while it is full, and accepted afterwards; training continues."""
        state = self.file_faults(self.folder / "state")
        self.start_coordinator(env=state.env)
        for _ in range(2):
            self.start_worker()
        consumer = self.train()
        consumer.pull(3)
        state.set(write=errno.ENOSPC)
        late = self.chaos_spec(name="late")
        refused = self.consumer(late, "--timeout-s", 5, epochs=1).finish()
        self.assertIsNotNone(refused.error)
        self.assertGreater(state.hits("write"), 0)
        state.clear()
        self.assertIsNone(self.consumer(late, epochs=1).finish().error)
        self.finish(consumer, longest_s=10)

    def test_short_reads(self):
        reads = self.file_faults(cluster.photos())
        self.start_coordinator()
        for _ in range(2):
            self.start_worker(env=reads.env)
        reads.set(read=FileFaults.SHORT)
        self.finish(self.train(), longest_s=20)
        self.assertGreater(reads.hits("read"), 0)

    def one_of_two_workers(self, operation, fault, longest_s, then_clear=True):
        broken = self.file_faults(cluster.photos())
        self.start_coordinator()
        self.start_worker("--cache", "0", env=broken.env)
        self.start_worker("--cache", "0")
        consumer = self.train()
        consumer.pull(2)
        broken.set(**{operation: fault})
        consumer.pull(6)
        if then_clear:
            broken.clear()
        self.finish(consumer, longest_s=longest_s)
        self.assertGreater(broken.hits(operation), 0)

    def test_reads_fail_at_one_worker(self):
        self.one_of_two_workers("read", errno.EIO, longest_s=20)

    def test_files_are_stale_at_one_worker(self):
        self.one_of_two_workers("read", errno.ESTALE, longest_s=20)

    def test_opens_fail_at_one_worker(self):
        self.one_of_two_workers("open", errno.EIO, longest_s=20)

    def test_reads_hang_at_one_worker(self):
        self.one_of_two_workers("read", FileFaults.HANG, longest_s=20)

    def test_opens_hang_at_one_worker(self):
        self.one_of_two_workers("open", FileFaults.HANG, longest_s=20)

    def test_a_file_that_changes_while_it_is_read(self):
        """The bytes that were read do not become a row: the job's policy decides."""
        images = self.folder / "images" / "class"
        images.mkdir(parents=True)
        for number, photo in enumerate(cluster.test_data.images(cluster.photos())[:16]):
            (images / f"{number:02}.jpg").write_bytes(photo.read_bytes())
        spec = self.spec(cluster.train_graph(images.parent, 32), batch=4)
        reads = self.file_faults(images)
        self.start_coordinator()
        self.start_worker("--cache", "0", env=reads.env)
        self.assertIsNone(self.consumer(spec, "--stop-after", 1, epochs=1).finish().error)
        reads.set(read=FileFaults.HANG)
        consumer = self.consumer(spec, epochs=1, env={"LEAT_TRANSPORT": "grpc"})
        self.until("a read hangs", lambda: reads.hits("read") > 0)
        for image in images.iterdir():
            with open(image, "r+b") as file:
                file.write(b"other bytes of the same file")
        reads.clear()
        consumer.finish()
        self.assertIsNotNone(consumer.error)
        self.assertIn("changed after indexing", consumer.error[1])

    def test_reads_fail_everywhere_for_three_seconds(self):
        broken = self.file_faults(cluster.photos())
        self.start_coordinator()
        for _ in range(2):
            self.start_worker("--cache", "0", env=broken.env)
        consumer = self.train()
        consumer.pull(2)
        broken.set(read=errno.EIO)
        timer = threading.Timer(3, broken.clear)
        timer.start()
        self.addCleanup(timer.cancel)
        self.finish(consumer, longest_s=30)
        self.assertGreater(broken.hits("read"), 0)


if __name__ == "__main__":
    faults.os.chdir(cluster.tempfile.gettempdir())
    unittest.main()

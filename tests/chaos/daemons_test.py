# SPDX-License-Identifier: Apache-2.0
"""The handling of daemons' own process: the watchdog, signals, certificates, limits."""

import resource
import select
import signal
import ssl
import subprocess
import unittest

import faults
from faults import ChaosTest, FileFaults, as_somebody, cluster, prlimit, time

DEAF, AT_ONCE = 69, 128 + signal.SIGTERM


class DaemonTest(ChaosTest):
    def await_log(self, daemon, *words):
        for word in words:
            self.until(word, lambda word=word: self.read_log(daemon, word))

    def read_log(self, daemon, word):
        select.select([], [], [], 0.02)  # a growing file cannot be selected on
        return word in daemon.tail()


class Watchdog(DaemonTest):
    def deaf(self, start):
        switch = self.file_faults("/nowhere")
        daemon = start("--watchdog-interval-ms", "1000", env=switch.env)
        switch.set(accept=FileFaults.HANG)
        began = time.monotonic()
        self.assertEqual(daemon.process.wait(cluster.PATIENCE_S), DEAF)
        self.assertLess(time.monotonic() - began, 15)
        self.assertIn("watchdog.deaf", daemon.tail())
        self.assertIn(daemon.address, daemon.tail())

    def test_a_deaf_coordinator_ends(self):
        self.deaf(self.start_coordinator)

    def test_a_deaf_worker_ends(self):
        self.start_coordinator()
        self.deaf(self.start_worker)

    def test_a_stopped_process_does_not_end(self):
        self.start_coordinator("--watchdog-interval-ms", "200")
        self.start_worker("--watchdog-interval-ms", "200")
        for daemon in (self.coordinator, self.workers[0]):
            daemon.signal(signal.SIGSTOP)
        time.sleep(4)
        for daemon in (self.coordinator, self.workers[0]):
            daemon.signal(signal.SIGCONT)
        self.until_ready(1)
        time.sleep(2)
        self.until_ready(1)
        for daemon in (self.coordinator, self.workers[0]):
            self.assertIsNone(daemon.process.poll(), daemon.tail())


class Signals(DaemonTest):
    def test_hangup_ends_nothing(self):
        self.start_cluster(workers=1)
        for daemon in (self.coordinator, self.workers[0]):
            daemon.signal(signal.SIGHUP)
            self.await_log(daemon, "process.hangup")
            self.assertIsNone(daemon.process.poll())
        self.finish(self.train(), longest_s=20)

    def test_the_first_signal_drains(self):
        self.start_cluster(workers=1)
        self.assertEqual(self.workers[0].stop(), 0, self.workers[0].tail())
        self.assertEqual(self.coordinator.stop(), 0, self.coordinator.tail())

    def test_the_coordinator_ends_within_its_timeout(self):
        """It also ends while a consumer holds a session, and the disk does not answer."""
        state = self.file_faults(self.folder / "state")
        self.start_coordinator("--drain-timeout-ms", "500", env=state.env)
        self.start_worker()
        consumer = self.train()
        consumer.pull(1)
        state.set(sync=FileFaults.HANG)
        late = self.consumer(self.chaos_spec(name="late"), "--timeout-s", 30, epochs=1)
        self.until("a write hangs", lambda: state.hits("sync") > 0)
        began = time.monotonic()
        self.coordinator.signal(signal.SIGTERM)
        self.assertEqual(self.coordinator.process.wait(cluster.PATIENCE_S), 1)
        self.assertLess(time.monotonic() - began, 5)
        state.clear()
        late.close()
        self.finish(consumer, longest_s=10)

    def health(self, daemon):
        return subprocess.run([cluster.program("HEALTH"), daemon.address], capture_output=True, text=True,
                              timeout=cluster.PATIENCE_S).stdout.strip()

    def test_a_worker_that_drains_says_so_and_the_second_signal_ends_it_at_once(self):
        reads = self.file_faults(cluster.photos())
        self.start_coordinator()
        worker = self.start_worker("--drain-timeout-ms", "60000", "--cache", "0", env=reads.env)
        consumer = self.train()
        consumer.pull(1)
        self.assertEqual(self.health(worker), "SERVING")
        reads.set(read=FileFaults.HANG)
        consumer.process.stdin.write(b"\n" * 4)
        self.until("a read hangs", lambda: reads.hits("read") > 0)
        worker.signal(signal.SIGTERM)
        self.await_log(worker, "worker.draining")
        self.assertEqual(self.health(worker), "NOT_SERVING")
        self.assertIsNone(worker.process.poll())
        worker.signal(signal.SIGTERM)
        self.assertEqual(worker.process.wait(cluster.PATIENCE_S), AT_ONCE)
        self.assertIn("at once", worker.tail())


class Certificates(DaemonTest):
    def make(self, name):
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
             "-keyout", f"{name}.key", "-out", f"{name}.pem"], cwd=self.folder, capture_output=True)
        if made.returncode != 0:
            self.skipTest("no openssl program here to make a certificate with")

    def show(self, name, key=None):
        for source, to in ((f"{name}.pem", "cert.pem"), (f"{key or name}.key", "key.pem")):
            (self.folder / to).write_bytes((self.folder / source).read_bytes())

    def shown(self, daemon):
        host, port = daemon.address.rsplit(":", 1)
        return ssl.get_server_certificate((host, int(port)), timeout=cluster.PATIENCE_S)

    def test_hangup_reads_them_again(self):
        self.make("old")
        self.make("new")
        self.show("old")
        old, new = ((self.folder / f"{name}.pem").read_text() for name in ("old", "new"))
        service = ["--tls-cert", str(self.folder / "cert.pem"), "--tls-key", str(self.folder / "key.pem")]
        self.start_coordinator(*service)
        self.assertEqual(self.shown(self.coordinator), old)
        self.show("new", key="old")
        self.coordinator.signal(signal.SIGHUP)
        self.until("the wrong key is said", lambda: self.read_log(self.coordinator, "--tls-key"))
        self.assertEqual(self.shown(self.coordinator), old)
        self.show("new")
        self.coordinator.signal(signal.SIGHUP)
        self.until("the new one is shown", lambda: self.shown(self.coordinator) == new)

    def test_they_change_while_training_goes_on(self):
        """Existing streams keep the old one; new connections get the new one. Both are trusted."""
        self.make("old")
        self.make("new")
        self.show("old")
        both = self.folder / "both.pem"
        both.write_text("".join((self.folder / f"{name}.pem").read_text() for name in ("old", "new")))
        cert, key = (str(self.folder / name) for name in ("cert.pem", "key.pem"))
        service = ["--tls-cert", cert, "--tls-key", key, "--tls-ca", str(both)]
        self.start_coordinator("--tls-cert", cert, "--tls-key", key)
        for _ in range(2):
            self.start_worker(*service)
        tls = ["--tls-ca", both, "--tls-cert", self.folder / "old.pem", "--tls-key", self.folder / "old.key"]
        consumer = self.train(*tls)
        consumer.pull(3)
        self.show("new")
        new = (self.folder / "new.pem").read_text()
        for daemon in (self.coordinator, *self.workers):
            daemon.signal(signal.SIGHUP)
        self.until("the coordinator shows the new one", lambda: self.shown(self.coordinator) == new)
        consumer.pull(5)
        self.workers[0].kill9()
        self.start_worker(*service)
        self.finish(consumer, longest_s=10)
        self.finish(self.train(*tls), longest_s=10)

    def test_a_wrong_key_is_said_at_the_start(self):
        self.make("one")
        self.make("two")
        self.show("one", key="two")
        service = ["--tls-cert", str(self.folder / "cert.pem"), "--tls-key", str(self.folder / "key.pem")]
        with self.assertRaisesRegex(cluster.DaemonFailed, "--tls-key.*not the key"):
            self.start_coordinator(*service)


class Limits(DaemonTest):
    def test_descriptors_are_raised_to_the_hard_limit(self):
        hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 4096)
        before = ["prlimit", f"--nofile=64:{hard}"]
        self.start_coordinator(before=before)
        self.start_worker(before=before)
        for daemon in (self.coordinator, self.workers[0]):
            self.assertEqual(resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE), (hard, hard))
            self.assertIn(f"process.descriptors limit={hard} before=64", daemon.tail())

    def few_threads(self, start):
        for count in (1, 3, 8, 14):
            with self.subTest(threads=count):
                uid = 54_000 + count
                with self.assertRaises(cluster.DaemonFailed) as failed:
                    start(before=[*as_somebody(uid), *prlimit(nproc=count)])
                self.assertIn("ended with 1", str(failed.exception))
                self.assertRegex(str(failed.exception), "may have .* threads")

    def test_a_coordinator_without_threads_says_so(self):
        self.few_threads(lambda before: self.start_coordinator(state=False, before=before))

    def test_a_worker_without_threads_says_so(self):
        self.start_coordinator()
        self.few_threads(lambda before: self.start_worker(before=before))

    def test_a_trainer_without_threads_says_so(self):
        self.start_cluster()
        self.folder.chmod(0o755)
        spec = self.chaos_spec()
        for count in (1, 3, 8, 14):
            with self.subTest(threads=count):
                consumer = self.train(spec=spec, before=[*as_somebody(54_100 + count), *prlimit(nproc=count)])
                consumer.finish()
                self.assertEqual(consumer.error[0], 8)  # RESOURCE_EXHAUSTED
                self.assertRegex(consumer.error[1], "may have .* threads, and wants at least .*ulimit -u")
        self.finish(self.train(spec=spec, before=[*as_somebody(54_100), *prlimit(nproc=200)]), longest_s=20)


if __name__ == "__main__":
    faults.os.chdir(cluster.tempfile.gettempdir())
    unittest.main()

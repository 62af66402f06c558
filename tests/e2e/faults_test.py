# SPDX-License-Identifier: Apache-2.0
"""Bad input and failures: the caller that caused one gets one clear error, and the service works on for all others."""

import os
import random
import shutil
import socket
import subprocess
import unittest

import cluster
from cluster import train_graph
from ports import free_port

INVALID, NOT_FOUND, EXISTS, DENIED, PRECONDITION, UNAVAILABLE, DATA_LOSS = 3, 5, 6, 7, 9, 14, 15


def photos(count):
    """Returns the first few photos."""
    return cluster.test_data.images(cluster.photos())[:count]


class FaultTest(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        self.images = self.folder / "images" / "class"
        self.images.mkdir(parents=True)
        for number, photo in enumerate(photos(8)):
            shutil.copy(photo, self.images / f"{number}.jpg")

    def small(self, side=32, **changes):
        return self.spec(train_graph(self.images.parent, side), **{"batch": 4, **changes})

    def assert_error(self, consumer, code, *words):
        consumer.finish()
        self.assertIsNotNone(consumer.error, f"no error after {consumer.steps}")
        self.assertEqual(consumer.error[0], code, consumer.error)
        for word in words:
            self.assertIn(word, consumer.error[1])

    def assert_works(self):
        self.good = getattr(self, "good", 0) + 1
        consumer = self.consumer(self.small(name=f"good{self.good}", seed=99 + self.good), epochs=1).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(len(consumer.steps), 2)


class BadInput(FaultTest):
    def setUp(self):
        super().setUp()
        self.start_cluster(workers=1)
        self.names = 0

    def fails(self, spec, code, *words, flags=()):
        self.assert_error(self.consumer(spec, *flags, epochs=1), code, *words)

    def bad(self, **changes):
        """Returns a spec under a new name."""
        self.names += 1
        return self.small(**{"name": f"bad{self.names}", **changes})

    def graph(self, **changes):
        graph = train_graph(self.images.parent, 32)
        for index, node in changes.items():
            graph["nodes"][int(index[1:])] |= node
        return graph

    def test_paths(self):
        self.fails(self.spec(train_graph(self.folder / "nowhere"), name="a"), NOT_FOUND, "nowhere")
        (self.folder / "empty").mkdir()
        self.fails(self.spec(train_graph(self.folder / "empty"), name="b"), NOT_FOUND, "empty", ".jp")
        self.assert_works()

    def test_the_spec(self):
        self.fails(self.bad(batch=0), INVALID, "batch", "0")
        self.fails(self.bad(batch=9, last_batch="LAST_BATCH_DROP"), INVALID, "batch", "9", "8")
        self.fails(self.bad(num_parts=3), INVALID, "3", "4")
        self.fails(self.bad(name="a b"), INVALID, "a b")
        self.assert_works()

    def test_the_pipeline(self):
        spec = self.bad(pipeline=self.graph(n1={"op": "decod"}))
        self.fails(spec, INVALID, "decod", "decode")
        for sides in ([0], [-1, 5]):
            crop = {"args": {"size": {"ints_value": {"values": sides}}}}
            self.fails(self.bad(pipeline=self.graph(n2=crop)), INVALID, "size", str(sides[0]))
        typo = {"args": {"sise": {"ints_value": {"values": [8]}}}}
        self.fails(self.bad(pipeline=self.graph(n2=typo)), INVALID, "sise", "size")
        self.assert_works()

    def test_a_name_has_one_spec(self):
        self.assertIsNone(self.consumer(self.small(name="taken")).finish().error)
        self.assertIsNone(self.consumer(self.small(name="taken")).finish().error)
        self.fails(self.small(name="taken", seed=8), EXISTS, "taken", "seed")

    def test_positions_belong_to_one_job(self):
        position = self.folder / "position"
        self.consumer(self.small(name="one"), "--stop-after", 1, "--position-out", position).finish()
        self.fails(self.small(name="two", seed=5), INVALID, "one", "two", flags=("--resume", position))
        position.write_bytes(b"not a position")
        self.fails(self.small(name="one"), INVALID, "position", flags=("--resume", position))

    def test_bad_files_under_each_policy(self):
        (self.images / "8.jpg").write_text("this is text")
        (self.images / "9.jpg").write_bytes(b"")
        (self.images / "a.jpg").write_bytes(photos(1)[0].read_bytes()[:2000])
        fail = self.small(name="fail", batch=11)
        self.assert_error(self.consumer(fail, epochs=1), self.code_of(fail), ".jpg")
        for policy in ("REPLACE", "ZERO"):
            consumer = self.consumer(self.small(name=policy, batch=11, on_bad_sample=f"BAD_SAMPLE_POLICY_{policy}"))
            self.assertIsNone(consumer.finish().error)
            self.assertEqual(len(consumer.steps), 2)
        jobs = {job["job"]["spec"]["name"]: job for job in self.until("bad samples are reported", self._reported)}
        self.assertGreaterEqual(len(jobs["ZERO"]["bad_samples"]), 3)
        self.assertTrue(all(bad["reason"] and bad["record"] for bad in jobs["ZERO"]["bad_samples"]))

    def code_of(self, spec):
        """The files are text, empty or cut off: the code depends on which of the bad files is read first."""
        error = self.consumer(spec, epochs=1).finish().error
        self.assertIn(error[0], (INVALID, DATA_LOSS), error)
        return error[0]

    def _reported(self):
        jobs = self.get("jobs")["jobs"]
        bad = {job["job"]["spec"]["name"]: int(job["bad_samples_total"]) for job in jobs}
        return jobs if bad.get("ZERO", 0) >= 3 and bad.get("REPLACE", 0) >= 3 else None

    def test_a_file_that_changed_after_indexing(self):
        spec = self.small(name="changed", batch=8)
        self.assertIsNone(self.consumer(spec, epochs=1).finish().error)
        self.workers[0].kill9()  # its cache has the old bytes
        self.start_worker(name="cold")
        (self.images / "3.jpg").write_bytes(photos(1)[0].read_bytes() + b"\0")
        self.assert_error(self.consumer(spec, epochs=1), PRECONDITION, "3.jpg")
        (self.images / "3.jpg").unlink()
        self.assert_error(self.consumer(spec, epochs=1), NOT_FOUND, "3.jpg")


class Budget(FaultTest):
    """Three of eleven files are damaged; two workers read them."""

    def setUp(self):
        super().setUp()
        for name in ("8", "9", "a"):
            (self.images / f"{name}.jpg").write_text("this is text")
        self.start_cluster(workers=2)

    def job(self, name, **changes):
        return self.small(name=name, batch=11, on_bad_sample="BAD_SAMPLE_POLICY_REPLACE", **changes)

    def test_a_job_within_its_budget_has_the_batches_of_one_without(self):
        free = self.consumer(self.job("free"), epochs=3).finish()
        self.assertIsNone(free.error)
        within = self.consumer(self.job("within", max_bad=0.3), epochs=3).finish()
        self.assertIsNone(within.error)
        self.assertEqual(within.steps, free.steps)
        self.assertEqual(within.steps, self.oracle_steps(self.job("within", max_bad=0.3), 3))

    def test_a_job_over_its_budget_ends_and_says_why(self):
        over = self.job("over", max_bad=0.2)
        words = ("over", "3 of 11", "max_bad 0.2 allows 2", ".jpg")
        self.assert_error(self.consumer(over, epochs=0), DATA_LOSS, *words)  # 0: without end
        self.assert_error(self.consumer(over, epochs=0), DATA_LOSS, *words)  # also a later consumer
        finding = next(finding for finding in self.get("status")["findings"] if finding["code"] == "JOB_GIVEN_UP")
        self.assertIn("3 of 11", finding["summary"])
        loose = self.consumer(self.job("loose", max_bad=1.0), epochs=1).finish()
        self.assertIsNone(loose.error)

    def test_a_run_over_its_budget_that_ends_before_a_heartbeat_is_no_success(self):
        self.coordinator.stop()
        self.restart_coordinator(heartbeat_ms=10_000)
        over = self.job("over", max_bad=0.2)
        self.assert_error(self.consumer(over, epochs=1), DATA_LOSS, "3 of 11", "max_bad 0.2 allows 2")
        within = self.consumer(self.job("within", max_bad=0.3), epochs=1).finish()
        self.assertIsNone(within.error)

    def test_a_budget_without_a_policy_that_goes_on_is_refused(self):
        spec = self.small(name="fails", max_bad=0.2)
        self.assert_error(self.consumer(spec, epochs=1), INVALID, "max_bad 0.2", "replace or zero")


class BadLuck(FaultTest):
    def fails_to_start(self, start, *words):
        with self.assertRaises(cluster.DaemonFailed) as caught:
            start()
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_no_coordinator_at_the_address(self):
        address = f"127.0.0.1:{free_port()}"
        consumer = self._keep(cluster.Consumer(["--spec", str(self.small()), "--address", address, "--timeout-s", "2"],
                                               self._log("consumer")))
        self.assert_error(consumer, UNAVAILABLE, address)

    def test_a_port_in_use(self):
        first = self.start_coordinator()
        self.fails_to_start(lambda: self.start_coordinator(listen=first.address, state=False), first.address, "in use")

    def test_a_locked_state_directory(self):
        self.start_coordinator()
        self.fails_to_start(self.start_coordinator, str(self.folder / "state"))

    def test_an_unwritable_state_directory(self):
        (self.folder / "file").write_text("")
        state = self.folder / "file" / "state"
        self.fails_to_start(lambda: self.start_coordinator("--state", str(state), state=False), str(state))

    def test_a_damaged_state_directory(self):
        self.start_cluster(workers=1)
        self.assert_works()
        self.coordinator.kill9()
        databases = [p for p in (self.folder / "state").rglob("*") if p.is_file() and p.read_bytes()[:6] == b"SQLite"]
        self.assertTrue(databases, list((self.folder / "state").rglob("*")))
        for path in (self.folder / "state").rglob("*"):
            if path.name.startswith(databases[0].name):
                content = bytearray(path.read_bytes())
                for at in range(100, len(content), 64):
                    content[at] ^= 0xFF
                path.write_bytes(content)
        self.fails_to_start(self.start_coordinator, str(self.folder / "state"))

    def test_random_bytes_on_every_port(self):
        self.start_cluster(workers=1)
        noise = random.Random(1)
        for address in (self.coordinator.address, self.workers[0].address):
            host, port = address.rsplit(":", 1)
            for size in (1, 100, 10_000, 1_000_000):
                with socket.create_connection((host, int(port)), timeout=5) as connection:
                    try:
                        connection.sendall(noise.randbytes(size))
                        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + noise.randbytes(size))
                    except OSError:
                        pass  # it may close the connection
        self.assert_works()

    def test_a_client_that_stops_reading_leaves_the_others_alone(self):
        self.start_cluster(workers=1)
        stopped = self.consumer(self.small(name="slow", side=224), "--paced", epochs=500)
        stopped.pull(1)
        stopped.process.send_signal(cluster.signal.SIGSTOP)
        for _ in range(3):
            self.assert_works()
        stopped.process.send_signal(cluster.signal.SIGCONT)
        stopped.pull(20)
        self.assertEqual([s[:2] for s in stopped.steps[:4]], [(0, 0), (0, 1), (1, 0), (1, 1)])

    def test_a_killed_clients_buffers_come_back(self):
        self.start_cluster(workers=1)
        killed = self.consumer(self.small(name="killed", side=224), "--paced", "--window", 32, epochs=500)
        killed.pull(1)
        killed.process.kill()
        killed.process.wait()

        def all_back():
            stats = self.get("workers")["workers"][0]["stats"]
            return int(stats["streams"]) == 0 and int(stats["buffers_in_use"]) == 0 and int(stats["rows_queued"]) == 0

        self.until("buffers_in_use is 0", all_back)
        self.assert_works()

    def test_a_daemon_dies_with_its_lifeline(self):
        self.start_cluster(workers=1)
        for daemon in (self.workers[0], self.coordinator):
            daemon.cut_lifeline()
            daemon.process.wait(cluster.PATIENCE_S)

    def test_a_private_service_dies_with_its_killed_script(self):
        consumer = self.consumer(self.small(), "--paced", embedded=True)
        consumer.pull(1)
        programs = [str(self.daemon_dir() / name) for name in ("leat-private", "leat-coordinator", "leat-worker")]
        pids = [int(pid) for pid in subprocess.run(["pgrep", "-f", f"^({'|'.join(programs)}) "], capture_output=True,
                                                   text=True).stdout.split()]
        self.assertEqual(len(pids), 3, "leat-private, coordinator and worker")
        watched = [os.pidfd_open(pid) for pid in pids]
        consumer.process.kill()
        for fd in watched:
            with open(fd, closefd=True):
                ready, _, _ = cluster.select.select([fd], [], [], cluster.PATIENCE_S)
                self.assertTrue(ready, "still alive")

    def test_a_token_is_asked_for(self):
        secret = self.folder / "secret"
        secret.write_text("a" * 40)
        self.start_coordinator("--access-token-file", str(secret))
        self.start_worker("--access-token-file", str(secret))
        self.assert_error(self.consumer(self.small()), 16, "token")
        consumer = self.consumer(self.small(), "--access-token", "a" * 40, epochs=1).finish()
        self.assertIsNone(consumer.error)

    def test_plaintext_stays_on_this_machine(self):
        self.fails_to_start(lambda: self.start_coordinator(listen="0.0.0.0:0"), "0.0.0.0", "TLS")

    def test_wrong_flags_exit_with_two(self):
        for name in ("COORDINATOR", "WORKER"):
            done = subprocess.run([cluster.program(name), "--no-such-flag"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--no-such-flag", done.stderr)

    def test_an_access_token_that_is_empty_is_an_error(self):
        for name, flags in (("COORDINATOR", []), ("WORKER", ["--coordinator", "127.0.0.1:1"])):
            done = subprocess.run([cluster.program(name), *flags], capture_output=True, text=True,
                                  env={**os.environ, "LEAT_ACCESS_TOKEN": ""}, timeout=cluster.PATIENCE_S)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("LEAT_ACCESS_TOKEN is set and empty", done.stderr)

    def test_spaces_and_line_ends_around_an_access_token_are_no_part_of_it(self):
        token = self.folder / "token"
        token.write_text(f"\n {'a' * 40}\t\r\n")
        token.chmod(0o600)
        for name, flags in (("COORDINATOR", []), ("WORKER", ["--coordinator", "127.0.0.1:1"])):
            for more, text in ([], token.read_text()), (["--access-token-file", token], "b" * 40):
                done = subprocess.run([cluster.program(name), *flags, *more, "--check-config"], capture_output=True,
                                      text=True, env={**os.environ, "LEAT_ACCESS_TOKEN": text},
                                      timeout=cluster.PATIENCE_S)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.start_coordinator("--access-token-file", token)
        consumer = self.consumer(self.small(), "--access-token", token.read_text(), epochs=1)
        self.start_worker("--access-token-file", token)
        self.assertIsNone(consumer.finish().error)

    def test_devices_that_are_not_there_are_named(self):
        self.start_coordinator()
        self.fails_to_start(lambda: self.start_worker("--devices", "0"), "devices")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""`leat pool run --kubernetes` with a real coordinator and real workers, which a small API server starts as pods."""

import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import cluster  # noqa: E402
from api_server import ApiServer, COST  # noqa: E402
from cluster import program  # noqa: E402

PATIENCE_S = cluster.PATIENCE_S


class AdapterTest(cluster.ClusterTest):
    def start(self, **options):
        self.start_coordinator()
        self.api = ApiServer(**options)
        self.addCleanup(self.api.close)

    def leat(self, *argv, **options):
        return subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, *argv], capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False, **options)

    def bounds(self, least, most):
        done = self.leat("pool", "set", "cpu", "--min", str(least), "--max", str(most))
        self.assertEqual(done.returncode, 0, done.stderr)

    def run_adapter(self, *flags, name="adapter"):
        log = open(self._log(name), "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen(
            [program("CLI"), "--coordinator", self.coordinator.address, "pool", "run", "cpu", "--kubernetes",
             "deployment/leat-worker", *flags], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return pathlib.Path(log.name)

    def once(self, *flags, **options):
        return self.leat("pool", "run", "cpu", "--kubernetes", "deployment/leat-worker", "--namespace", "leat",
                         "--once", *(flags or ("--server", self.api.url)), **options)

    def patiently(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                logs = "\n".join(path.read_text(errors="replace")[-1500:] for path in self.folder.glob("*adapter*.log"))
                raise AssertionError(f"never: {what}: {self.api.live()} {self.api.requests[-8:]}\n{logs}")
            time.sleep(0.05)

    def ready(self):
        workers = json.loads(self.leat("get", "workers", "-o", "json").stdout)["workers"]
        return sorted(each["name"] for each in workers if each["state"] == "WORKER_STATE_READY")


class Pods(AdapterTest, cluster.PhotosTest):
    def start_pods(self, count):
        self.running = {}
        self.kubelet = concurrent.futures.ThreadPoolExecutor(1)
        self.addCleanup(self.kubelet.shutdown)
        self.start(on_start=lambda name: self.kubelet.submit(self.start_pod, name), on_end=self.end_pod)
        self.api.set_replicas(count)

    def start_pod(self, name):
        self.running[name] = self.start_worker("--pool", "cpu", "--cache", "16MiB", "--buffers", "160MiB", name=name)

    def end_pod(self, name):
        self.running[name].signal(signal.SIGTERM)

    def test_an_epoch_while_pods_come_and_go(self):
        """2, 5 and 2 workers, one drained by an operator, one killed, and two adapters: the bytes are the oracle's."""
        self.start_pods(2)
        self.bounds(2, 2)
        logs = [self.run_adapter("--server", self.api.url, "--namespace", "leat", name=f"adapter{i}") for i in range(2)]
        self.patiently("two workers", lambda: self.ready() == self.api.live() and len(self.ready()) == 2)
        consumer = self.consumer(self.spec(), "--paced")
        consumer.pull(2)
        self.bounds(5, 5)
        self.patiently("five workers", lambda: self.ready() == self.api.live() and len(self.ready()) == 5)
        consumer.pull(2)
        before = self.api.live()
        self.bounds(2, 2)
        self.patiently("two again", lambda: self.ready() == self.api.live() and len(self.ready()) == 2)
        self.assertLess(set(self.api.live()), set(before))
        ended = [pod for pod in self.api.pods.values() if pod["ends"]]
        self.assertEqual([pod["annotations"] for pod in ended], [{COST: "-1000"}] * 3, "those that were chosen")
        for name in set(before) - set(self.api.live()):
            self.assertEqual(self.running[name].process.wait(PATIENCE_S), 0, "it drained")
        consumer.pull(1)
        drained = self.api.live()[0]
        self.assertEqual(self.leat("drain", drained).returncode, 0)
        self.patiently("another in its place", lambda: drained not in self.api.live()
                       and self.ready() == self.api.live() and len(self.ready()) == 2)
        # One is killed without grace; its pod is started again under its name, as a kubelet does.
        killed = self.api.live()[0]
        self.running[killed].kill9()
        self.start_pod(killed)
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        self.assertIn("is to go", "".join(log.read_text() for log in logs))


class Faults(AdapterTest):
    def test_a_server_that_fails_for_the_moment(self):
        self.start()
        self.bounds(3, 3)
        self.patiently("a decision", lambda: '"desired": 3' in self.leat("get", "pools", "-o", "json").stdout)
        self.api.faults = ["503", "cut", "slow"]
        done = self.once()
        self.assertEqual((done.returncode, len(self.api.live())), (0, 3), done.stderr)
        self.api.set_replicas(1)
        self.api.conflicts = 2
        done = self.once()
        self.assertEqual((done.returncode, len(self.api.live())), (0, 3), done.stderr)
        self.api.set_replicas(1)
        self.api.faults = ["html"]
        done = self.once()
        self.assertEqual(done.returncode, 1)
        self.assertIn("JSON", done.stderr)
        self.assertEqual(len(self.api.live()), 1)
        self.api.allowed.remove(("patch", "deployments/scale"))
        done = self.once()
        self.assertEqual(done.returncode, 5)
        self.assertIn('resources ["deployments/scale"], verbs ["patch"]', done.stderr)
        self.assertEqual(self.once("--server", "http://127.0.0.1:1").returncode, 4, "nobody listens")
        self.api.namespace = "other"
        done = self.once()
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_it_goes_on_after_what_was_refused(self):
        self.start()
        self.bounds(3, 3)
        self.api.allowed.clear()
        log = self.run_adapter("--server", self.api.url, "--namespace", "leat")
        self.patiently("its refusal", lambda: "the account may not get" in log.read_text())
        self.api.allowed = {("get", "deployments/scale"), ("patch", "deployments/scale"), ("list", "pods")}
        self.bounds(4, 4)
        self.patiently("four pods", lambda: len(self.api.live()) == 4)

    def test_tls_and_a_token_that_is_replaced(self):
        key, certificate, token = (self.folder / name for name in ("api.key", "api.pem", "token"))
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=api", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
            capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.start(token="first", certificate=(certificate, key))
        token.write_text("first\n")
        config = {"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                  "clusters": [{"name": "c", "cluster": {"server": self.api.url, "certificate-authority": "api.pem"}}],
                  "users": [{"name": "u", "user": {"tokenFile": "token"}}]}
        (self.folder / "config").write_text(json.dumps(config))
        log = self.run_adapter("--kubeconfig", str(self.folder / "config"), "--namespace", "leat")
        self.bounds(2, 2)
        self.patiently("two pods", lambda: len(self.api.live()) == 2)
        self.api.token = "second"
        token.write_text("second\n")
        self.bounds(3, 3)
        self.patiently("three pods", lambda: len(self.api.live()) == 3)
        self.assertNotIn("second", log.read_text())
        # A server of another authority gets no data.
        del config["clusters"][0]["cluster"]["certificate-authority"]
        (self.folder / "config").write_text(json.dumps(config))
        asked = len(self.api.requests)
        environment = {"KUBECONFIG": str(self.folder / "config"), "PATH": os.environ["PATH"]}
        done = self.once("--timeout", "10s", env=environment)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("certificate", done.stderr)
        self.assertEqual(len(self.api.requests), asked)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Secrets that are exchanged while daemons run."""

import json
import shutil
import signal
import subprocess
import time
import unittest

import cluster

FAILED_PRECONDITION = 9
AT_ONCE_S = 10  # of the 120 s that a consumer waits for a row; a machine may be busy


class Rotation(cluster.PhotosTest):
    FIRST = "the-first-access-token"
    SECOND = "the-second-access-token"

    def setUp(self):
        super().setUp()
        self.token = self.folder / "token"

    def pull(self, *flags):
        consumer = self.consumer(self.spec(), *flags, epochs=cluster.EPOCHS).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)

    def logged(self, worker, word):
        self.until(word, lambda: word in worker.tail())

    def test_a_worker_reads_its_token_again(self):
        self.token.write_text(self.FIRST)
        self.start_coordinator("--access-token-file", str(self.token))
        worker = self.start_worker("--access-token-file", str(self.token), threads=2)
        self.pull("--access-token", self.FIRST)

        self.token.write_text("")  # an error is logged, and changes nothing
        worker.signal(signal.SIGHUP)
        self.logged(worker, "tls.not_reloaded")
        self.pull("--access-token", self.FIRST)
        asks = ["--access-token", self.FIRST]
        self.found(asks, "worker w0 on host ", "the coordinator ")
        self.token.write_text(self.FIRST)  # as it was
        self.found(asks)

        self.coordinator.stop()
        self.token.write_text(self.SECOND)
        self.restart_coordinator("--access-token-file", str(self.token))
        worker.signal(signal.SIGHUP)
        self.logged(worker, "tls.reloaded")
        self.pull("--access-token", self.SECOND)

    def found(self, flags, *subjects):
        """Waits until the findings are that these do not use their files."""
        def agree():
            texts = [finding["summary"] for finding in self.get("status", *flags).get("findings", [])
                     if finding["code"] == "NOT_RELOADED"]
            return len(texts) == len(subjects) and all(any(text.startswith(one) for text in texts) for one in subjects)

        self.until(f"findings about {subjects}", agree)

    def certificate(self, name=""):
        """Makes a new pair, which is its own authority."""
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=leat", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{name}key.pem",
             "-out", f"{name}cert.pem"], cwd=self.folder, capture_output=True)
        self.assertEqual(made.returncode, 0, made.stderr)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl program here to make a certificate with")
    def test_a_worker_reads_its_certificates_again(self):
        self.certificate()
        flags = [word for flag, name in (("--tls-cert", "cert"), ("--tls-key", "key"), ("--tls-ca", "cert"))
                 for word in (flag, str(self.folder / f"{name}.pem"))]
        self.start_coordinator(*flags)
        worker = self.start_worker(*flags, threads=2)
        self.pull(*flags)

        key = self.folder / "key.pem"
        for name in ("cert", "key"):
            shutil.copy(self.folder / f"{name}.pem", self.folder / f"old-{name}.pem")
        asks = [flag.replace(str(self.folder) + "/", str(self.folder) + "/old-") for flag in flags]
        right = key.read_text()
        key.write_text("")
        self.found(asks, "worker w0 on host ", "the coordinator ")
        key.write_text(right)
        self.found(asks)

        self.coordinator.stop()
        self.certificate()
        self.restart_coordinator(*flags)
        worker.signal(signal.SIGHUP)
        self.logged(worker, "tls.reloaded")
        self.pull(*flags)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl program here to make a certificate with")
    def test_a_training_that_no_worker_lets_in_says_why_at_once(self):
        self.certificate()
        self.certificate("other-")
        cert, key, other_cert, other_key = (
            str(self.folder / f"{name}.pem") for name in ("cert", "key", "other-cert", "other-key"))
        own = ["--tls-cert", cert, "--tls-key", key]
        self.start_coordinator(*own)
        worker = self.start_worker(*own, "--tls-ca", cert, "--log-format", "json")
        self.pull("--tls-ca", cert, *own)
        for flags, why, logged in (
                ([], "wants a certificate of this caller, which shows none", "it shows no certificate"),
                (["--tls-cert", other_cert, "--tls-key", other_key], "refuses the certificate of this caller",
                 "its certificate is refused")):
            begin = time.monotonic()
            code, error = self.consumer(self.spec(), "--tls-ca", cert, *flags).finish().error
            self.assertLess(time.monotonic() - begin, AT_ONCE_S)
            self.assertEqual(code, FAILED_PRECONDITION)
            self.assertIn("no worker can be reached; w0 at 127.0.0.1:", error)
            self.assertIn(why, error)
            self.until("a finding", lambda: any(
                finding["code"] == "WORKER_UNREACHED" and why in finding["summary"]
                for finding in self.get("status", "--tls-ca", cert)["findings"]))
            self.until(logged, lambda: logged in worker.log.read_text())
        lines = [json.loads(line) for line in worker.log.read_text().splitlines()]
        refused = [line["fields"] for line in lines if line.get("event") == "listener.handshake_failed"]
        self.assertRegex(refused[0]["peer"], r"^127\.0\.0\.1:\d+$")
        self.assertNotIn("grpc.log", {line.get("event") for line in lines})


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Secrets that are exchanged while daemons run."""

import shutil
import signal
import subprocess
import unittest

import cluster


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

        self.token.write_text("")  # what is wrong is said, and changes nothing
        worker.signal(signal.SIGHUP)
        self.logged(worker, "tls.not_reloaded")
        self.pull("--access-token", self.FIRST)

        self.coordinator.stop()
        self.token.write_text(self.SECOND)
        self.restart_coordinator("--access-token-file", str(self.token))
        worker.signal(signal.SIGHUP)
        self.logged(worker, "tls.reloaded")
        self.pull("--access-token", self.SECOND)

    def certificate(self):
        """A new pair, which is its own authority."""
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=leat", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out",
             "cert.pem"], cwd=self.folder, capture_output=True)
        self.assertEqual(made.returncode, 0, made.stderr)

    @unittest.skipUnless(shutil.which("openssl"), "no openssl program here to make a certificate with")
    def test_a_worker_reads_its_certificates_again(self):
        self.certificate()
        flags = [word for flag, name in (("--tls-cert", "cert"), ("--tls-key", "key"), ("--tls-ca", "cert"))
                 for word in (flag, str(self.folder / f"{name}.pem"))]
        self.start_coordinator(*flags)
        worker = self.start_worker(*flags, threads=2)
        self.pull(*flags)

        self.coordinator.stop()
        self.certificate()
        self.restart_coordinator(*flags)
        worker.signal(signal.SIGHUP)
        self.logged(worker, "tls.reloaded")
        self.pull(*flags)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""A trainer that attempts forbidden calls, against real daemons over TLS.

The certificates are made by the script that docs/run/certificates.md shows.
"""

import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/e2e"))
import cluster  # noqa: E402

MAKE_CERTIFICATE = ROOT / "docs/examples/two_machines/make-certificate"
SECRET = "root-x-the-secret-of-this-machine"


@unittest.skipUnless(shutil.which("openssl"), "no openssl program here to make certificates with")
class HostileTrainer(cluster.PhotosTest):
    def setUp(self):
        super().setUp()
        self.make_certificates()
        (self.folder / "own-token").write_text("the-operators-first-token")
        self.start_coordinator("--access-token-file", str(self.folder / "own-token"), *self.tls("localhost")[2:])
        self.trainer = self.leat("access", "create", "--role", "trainer", "--name", "vision").stdout.strip()
        (self.folder / "worker-token").write_text(
            self.leat("access", "create", "--role", "worker", "--name", "nodes").stdout)
        self.secret = self.folder / "secret"
        (self.secret / "class").mkdir(parents=True)
        (self.secret / "list").write_text(f"{SECRET}\n")
        self.start_worker("--access-token-file", str(self.folder / "worker-token"), *self.tls("localhost"),
                          *(f"--allow={prefix}" for prefix in self.allowed()), threads=2, env=self.environment())

    def allowed(self):
        """Returns the folders that the worker may read, as for --allow."""
        return [cluster.photos()]

    def environment(self):
        """Returns the worker's environment."""
        return {}

    def make_certificates(self):
        for names in (("localhost", "DNS:localhost,IP:127.0.0.1"),
                      ("vision", "URI:spiffe://example.org/trainer/vision", "clientAuth")):
            done = subprocess.run(["sh", MAKE_CERTIFICATE, *names], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def tls(self, name):
        return ["--tls-ca", str(self.folder / "ca.pem"), "--tls-cert", str(self.folder / f"{name}.pem"), "--tls-key",
                str(self.folder / f"{name}.key")]

    def leat(self, *words, token="the-operators-first-token", code=0):
        own = {} if token is None else {"LEAT_ACCESS_TOKEN": token}
        done = subprocess.run(
            [cluster.program("CLI"), *words], capture_output=True, text=True, timeout=cluster.PATIENCE_S,
            env={"LEAT_COORDINATOR": self.coordinator.address, "LEAT_TLS_CA": str(self.folder / "ca.pem"),
                 "PATH": "/usr/bin:/bin", **own})
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def pull(self, graph=None, **changes):
        return self.consumer(self.spec(graph, **changes), "--access-token", self.trainer, *self.tls("vision"),
                             "--timeout-s", "20", "--row-timeout-s", "20", epochs=cluster.EPOCHS).finish()

    def works(self):
        consumer = self.pull()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)

    def reading(self, op, **args):
        graph = cluster.train_graph(cluster.photos())
        graph["nodes"][0] = cluster.node(op, **{name: self.argument(value) for name, value in args.items()})
        return graph

    @staticmethod
    def argument(value):
        if not isinstance(value, list):
            return {"string_value": str(value)}
        if isinstance(value[0], int):
            return {"ints_value": {"values": value}}
        return {"strings_value": {"values": [str(each) for each in value]}}

    def gets_nothing(self, what, graph=None, **changes):
        consumer = self.pull(graph, name=f"try-{what}", **changes)
        self.assertIsNotNone(consumer.error, what)
        self.assertEqual(consumer.steps, [], what)
        self.assertNotIn(SECRET, consumer.error[1], what)
        self.assertNotIn("root:", consumer.error[1], what)
        return consumer.error[1]

    def connect(self, address, certificate=None):
        host, port = address.rsplit(":", 1)
        context = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
        context.set_alpn_protocols(["h2"])
        if certificate:
            context.load_cert_chain(self.folder / f"{certificate}.pem", self.folder / f"{certificate}.key")
        connection = socket.create_connection((host, int(port)), timeout=60)
        return context.wrap_socket(connection, server_hostname="localhost")

# SPDX-License-Identifier: Apache-2.0
"""Invalid certificates, keys and access tokens, given to real programs: each prints a line that says what is wrong, who
is asking or what it is for, and what to do, and that contains no secret.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/e2e"))
import cluster  # noqa: E402

OWN = "the-operators-first-token"
SECRET = "5ec2e75ec2e75ec2e75ec2e7"
KEY = re.compile(r"PRIVATE KEY|" + SECRET + "|" + OWN)


class Certificates(cluster.ClusterTest):
    """Certificates of two authorities, made by openssl in the test's folder."""

    def setUp(self):
        super().setUp()
        for authority in ("ca", "other-ca"):
            self.openssl("req", "-x509", *self.new_key(authority), "-days", "30", "-subj", f"/CN={authority}",
                         "-out", f"{authority}.pem")
        self.certificate("good")
        self.certificate("expired", days=-1)
        self.certificate("nameless", names="")
        self.certificate("strange", authority="other-ca")
        self.write("own-token", OWN)

    def openssl(self, *words):
        done = subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    @staticmethod
    def new_key(name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key"]

    def certificate(self, name, names="subjectAltName=DNS:localhost\n", days=20, authority="ca"):
        self.openssl("req", "-new", *self.new_key(name), "-subj", f"/CN={name}", "-out", f"{name}.csr")
        self.write(f"{name}.ext", names)
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
                     "-CAcreateserial", "-days", str(days), "-extfile", f"{name}.ext", "-out", f"{name}.pem")

    def write(self, name, text, mode=0o600):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def path(self, name):
        return str(self.folder / name)

    def tls(self, cert, key=None):
        return ["--tls-cert", self.path(f"{cert}.pem"), "--tls-key", self.path(f"{key or cert}.key")]


@unittest.skipUnless(shutil.which("openssl"), "no openssl program here to make certificates with")
class SystemRoots(Certificates):
    """`--tls-ca system`: the authorities that the machine trusts, given here by SSL_CERT_FILE."""

    def test_everybody_speaks_tls_and_no_caller_is_asked_for_a_certificate(self):
        trust = {"SSL_CERT_FILE": self.path("ca.pem")}
        token = ["--access-token-file", self.path("own-token")]
        self.start_coordinator(*token, *self.tls("good"), state=False)
        address = "localhost:" + self.coordinator.address.rsplit(":", 1)[1]
        self.certificate("worker", names="subjectAltName=IP:127.0.0.1\n")
        self.start_worker(*token, *self.tls("worker"), "--tls-ca", "system", env=trust, coordinator=address)

        def leat(**env):
            return subprocess.run([cluster.program("CLI"), "--coordinator", address, "--tls-ca", "system", "get",
                                   "workers", "-o", "name"], capture_output=True, text=True, timeout=cluster.PATIENCE_S,
                                  env={"LEAT_ACCESS_TOKEN": OWN, **env})
        self.until("the worker", lambda: leat(**trust).stdout.strip() == "w0")
        consumer = self.consumer(self.spec(cluster.train_graph(cluster.photos())), "--tls-ca", self.path("ca.pem"),
                                 "--access-token", OWN, address=address, epochs=1).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(len(consumer.steps), cluster.STEPS)
        self.assertNotEqual(leat(SSL_CERT_FILE=self.path("other-ca.pem")).returncode, 0)
        missing = leat(SSL_CERT_FILE=self.path("no-such.pem"))
        self.assertIn("no-such.pem", missing.stderr)

    def test_a_coordinator_refuses_it(self):
        done = subprocess.run([cluster.program("COORDINATOR"), "--listen", "127.0.0.1:0", *self.tls("good"), "--tls-ca",
                               "system"], capture_output=True, text=True, timeout=cluster.PATIENCE_S,
                              env={"SSL_CERT_FILE": self.path("ca.pem")})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--tls-ca system", done.stderr)


@unittest.skipUnless(shutil.which("openssl"), "no openssl program here to make certificates with")
class BadInput(Certificates):
    def refused(self, program, flags, *parts, code=None, env=None):
        """The program does not start; the last line of its output has all of `parts`, and no secret."""
        done = subprocess.run([cluster.program(program), *flags], capture_output=True, text=True, env=env or {},
                              timeout=cluster.PATIENCE_S)
        self.assertNotEqual(done.returncode, 0, flags)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr)
        self.assertIsNone(KEY.search(done.stdout + done.stderr), done.stderr)
        line = (done.stderr.strip().splitlines() or [""])[-1]
        for part in parts:
            self.assertIn(part, line, flags)
        return line

    def test_a_daemon_does_not_start_with_what_will_not_do(self):
        both = self.write("wrong-order.pem", (self.folder / "ca.pem").read_text()
                          + (self.folder / "good.pem").read_text())
        token = ["--access-token-file", self.path("own-token")]
        listen, nobody = ["--listen", "127.0.0.1:0"], ["--coordinator", "127.0.0.1:1"]
        for flags, parts in (
                (self.tls("good", "strange"), ("--tls-key", f"not the key of --tls-cert {self.path('good.pem')}")),
                (["--tls-cert", str(both), "--tls-key", self.path("good.key")], ("--tls-cert", "want that one first")),
                (self.tls("nameless"), ("no subjectAltName", "want DNS:NAME")),
                (["--tls-cert", self.path("own-token"), "--tls-key", self.path("good.key")],
                 (f"--tls-cert {self.path('own-token')}: want a certificate in PEM",)),
                (["--tls-cert", self.path("good.pem"), "--tls-key", self.path("good.pem")],
                 (f"--tls-key {self.path('good.pem')}: want a private key in PEM",)),
                (["--tls-cert", self.path("none.pem"), "--tls-key", self.path("good.key")],
                 (f"--tls-cert {self.path('none.pem')}: No such file",))):
            for program, more in (("COORDINATOR", token), ("WORKER", [*nobody, "--check-config"])):
                self.refused(program, [*listen, *more, *flags], *parts, code=2)
        for text, parts in (("x", ("1 character:", "want 16 to")), (f"{SECRET}\n{SECRET}", ("unprintable",)),
                            ("", ("it is empty",))):
            bad = ["--access-token-file", str(self.write("bad-token", text))]
            self.refused("COORDINATOR", [*listen, *bad], "--access-token-file", *parts, code=2)
            self.refused("WORKER", [*nobody, *bad], "--access-token-file", *parts, code=2)
        # For callers on other machines it needs TLS, and credentials that tell callers apart.
        for flags, part in (([], "give --tls-cert and --tls-key"), (self.tls("good"), "give --access-token-file")):
            for program, more in (("COORDINATOR", []), ("COORDINATOR", ["--check-config"]), ("WORKER", nobody)):
                self.refused(program, ["--listen", "0.0.0.0:0", *more, *flags], "0.0.0.0:0", part, code=2)
                self.refused(program, [*listen, "--http", "0.0.0.0:0", *more, *flags], "--http: 0.0.0.0:0", part,
                             code=2)
        for rule in ("root", "x=root", "=trainer"):
            self.refused("COORDINATOR", [*listen, *self.tls("good"), "--tls-ca", self.path("ca.pem"), "--role-from-san",
                                         rule], "--role-from-san", code=2)

    def doctor(self, address, **changes):
        environment = {"LEAT_COORDINATOR": address, "LEAT_TLS_CA": self.path("ca.pem"), "LEAT_ACCESS_TOKEN": OWN,
                       "PATH": "/usr/bin:/bin", **changes}
        done = subprocess.run([cluster.program("CLI"), "doctor", "--timeout", "3"], capture_output=True, text=True,
                              env=environment, timeout=cluster.PATIENCE_S)
        self.assertIsNone(KEY.search(done.stdout + done.stderr))
        return done

    def says(self, done, code, *parts):
        self.assertEqual(done.returncode, 6, done.stdout)
        lines = [line for line in done.stdout.splitlines() if code in line]
        self.assertGreaterEqual(len(lines), 2, f"evidence and a remedy of {code} in {done.stdout}")
        for part in parts:
            self.assertIn(part, "\n".join(lines))

    def test_doctor_says_what_a_handshake_does_not(self):
        self.start_coordinator("--access-token-file", self.path("own-token"), *self.tls("good"), state=False)
        port = self.coordinator.address.rsplit(":", 1)[1]
        good = self.doctor(f"localhost:{port}")
        self.assertIn("shows a certificate for DNS:localhost", good.stdout)
        self.says(self.doctor(f"127.0.0.1:{port}"), "SERVER_CERTIFICATE", "DNS:localhost", "not for 127.0.0.1")
        self.says(self.doctor(f"localhost:{port}", LEAT_TLS_CA=self.path("other-ca.pem")), "SERVER_CERTIFICATE",
                  "no authority", "--tls-ca")
        own = {"LEAT_TLS_CERT": self.path("good.pem"), "LEAT_TLS_KEY": self.path("strange.key")}
        self.says(self.doctor(f"localhost:{port}", **own), "CERTIFICATE_KEY", "is not the key of")
        self.write("good.key", (self.folder / "good.key").read_text(), mode=0o644)
        own["LEAT_TLS_KEY"] = self.path("good.key")
        done = self.doctor(f"localhost:{port}", **own)
        self.assertRegex(done.stdout, r"KEY_FILE +warn +.*mode 644")
        self.start_coordinator("--access-token-file", self.path("own-token"), *self.tls("expired"), state=False)
        port = self.coordinator.address.rsplit(":", 1)[1]
        self.says(self.doctor(f"localhost:{port}"), "SERVER_CERTIFICATE", "has expired", "--tls-cert")
        self.start_coordinator("--access-token-file", self.path("own-token"), state=False)
        self.says(self.doctor(self.coordinator.address), "SERVER_CERTIFICATE", "does not speak TLS")

    def test_every_caller_says_what_is_wrong_with_a_certificate(self):
        """A command, a consumer and a worker: each error names the certificate, and a remedy."""
        self.write("own-token", OWN, mode=0o644)
        token = ["--access-token-file", self.path("own-token")]
        self.start_coordinator(*token, *self.tls("expired"), state=False)
        log = pathlib.Path(self.coordinator.log).read_text()
        for part in ("access.token_readable", "mode=644", "tls.expired", "its certificate expired at",
                     "callers refuse it: replace --tls-cert"):
            self.assertIn(part, log)
        address = "localhost:" + self.coordinator.address.rsplit(":", 1)[1]
        trusted = ["--tls-ca", self.path("ca.pem")]
        wanted = f"{address} shows a certificate that has expired: replace --tls-cert and --tls-key there"
        begin = time.monotonic()
        done = subprocess.run([cluster.program("CLI"), "--coordinator", address, "--timeout", "60", *trusted, "status"],
                              capture_output=True, text=True, timeout=cluster.PATIENCE_S,
                              env={"LEAT_ACCESS_TOKEN": OWN})
        self.assertLess(time.monotonic() - begin, 20)  # of the 60; a machine may be busy
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn(wanted, done.stderr.splitlines()[0])
        consumer = self.consumer(self.spec(cluster.train_graph(cluster.photos())), *trusted, "--access-token", OWN,
                                 "--timeout-s", "60", address=address, epochs=1).finish()
        self.assertIn(wanted, consumer.error[1])
        log = self.folder / "worker.log"
        with log.open("wb") as out:
            worker = subprocess.Popen([cluster.program("WORKER"), "--coordinator", address, *token, *trusted],
                                      stdout=out, stderr=out)
        try:
            self.until("the worker says it", lambda: wanted in log.read_text())
        finally:
            worker.kill()
            worker.wait()

    def leat(self, *words, token=OWN):
        environment = {"LEAT_COORDINATOR": self.coordinator.address}
        if token is not None:
            environment["LEAT_ACCESS_TOKEN"] = token
        return subprocess.run([cluster.program("CLI"), *words], capture_output=True, text=True, env=environment,
                              timeout=cluster.PATIENCE_S)

    def test_a_token_that_will_not_do_is_named_with_role_and_remedy(self):
        self.start_coordinator("--access-token-file", self.path("own-token"), state=False)
        viewer = self.leat("access", "create", "--role", "viewer", "--name", "wall").stdout.strip()
        revoked = self.leat("access", "create", "--role", "viewer", "--name", "gone").stdout.strip()
        self.assertEqual(self.leat("access", "revoke", "gone").returncode, 0)
        short = self.leat("access", "create", "--role", "viewer", "--name", "short", "--expires", "1s").stdout.strip()
        self.until("it has expired", lambda: self.leat("status", token=short).returncode == 5)
        other = "leat_01234567_" + "0" * 64
        for token, words, parts in (
                (None, ("status",), ("no access token", "--access-token-file", "for role viewer")),
                ("x", ("status",), ("wrong access token", "--access-token-file", "for role viewer")),
                (other, ("status",), ("access token 01234567", "another cluster", "leat access create")),
                (revoked, ("status",), (f"access token {revoked[5:13]}", "revoked", "leat access create")),
                (short, ("status",), (f"access token {short[5:13]}", "expired", "leat access create",
                                      "for role viewer")),
                (viewer, ("drain", "w0"), ("AdminService/DrainWorker", "for role operator", "viewer/wall", viewer[5:13],
                                           "leat access create"))):
            done = self.leat(*words, token=token)
            self.assertEqual(done.returncode, 5, done.stderr)
            lines = done.stderr.strip().splitlines()
            self.assertLessEqual(len(lines), 2, done.stderr)  # the second says where tokens are read from
            for part in parts:
                self.assertIn(part, lines[0])
            if len(token or "") > 20:
                self.assertNotIn(token[14:], done.stdout + done.stderr)
            # doctor, which the remedies name, prints the same.
            if words == ("status",) and len(token or "") > 1:
                done = self.leat("doctor", token=token)
                self.says(done, "ACCESS_TOKEN_REFUSED", parts[0], "leat access create")
        for text in (f"{OWN}\n{OWN}", "a\x01" * 12, "x" * 5000):
            done = self.leat("status", token=text)
            self.assertNotIn(done.returncode, (0, -6, -11), done.stderr)
            self.assertIn("LEAT_ACCESS_TOKEN", done.stderr)
            self.assertNotIn(text[:8], done.stderr)
            self.assertNotIn(OWN, done.stderr)
        done = self.leat("access", "create", "--role", "root", "--name", "me")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("viewer", done.stderr)


if __name__ == "__main__":
    unittest.main()

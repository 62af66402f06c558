# SPDX-License-Identifier: Apache-2.0
"""A trainer that attempts forbidden calls, against real daemons over TLS, gets nothing, and changes nothing."""

import json
import pathlib
import resource
import socket
import struct
import sys
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from hostile import HostileTrainer, cluster  # noqa: E402

MOST_BYTES = (256 << 10) + (16 << 20)  # for a connection without credentials, with the kernel's buffers
MOST_GROWTH = 32 << 20
RESET, CONTINUATION = 3, 9  # frames of HTTP/2


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")


class Calls:
    """Many calls over one connection, as HTTP/2 frames: gRPC's own clients would wait at a bound."""

    DATA, HEADERS, WINDOW = 0, 1, 8
    END_STREAM, END_HEADERS = 1, 4

    def __init__(self, connection, token):
        self.connection, self.token, self.next, self.read = connection, token, 1, b""
        connection.sendall(PREFACE + frame(self.WINDOW, 0, 0, struct.pack(">I", 1 << 30)))

    @classmethod
    def headers(cls, method, token, stream):
        fields = ((":method", "POST"), (":scheme", "https"), (":path", f"/leat.v1.{method}"), (":authority", "x"),
                  ("te", "trailers"), ("content-type", "application/grpc"), ("leat-version", "1.0"),
                  ("leat-token", token))
        return frame(cls.HEADERS, cls.END_HEADERS, stream, b"".join(
            b"\0" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()
            for name, value in fields))

    def begin(self, method, count, message=b""):
        """Begins calls that have sent their headers and, if given, all of their message. Returns their streams."""
        streams = range(self.next, self.next + 2 * count, 2)
        self.next += 2 * count
        self.connection.sendall(b"".join(
            self.headers(method, self.token, stream)
            + (frame(self.DATA, self.END_STREAM, stream, message) if message else b"") for stream in streams))
        return streams

    def ended(self, count):
        """Returns the answers of the next `count` calls that end: the text of a refusal, or an empty text."""
        told = []
        while len(told) < count:
            while len(self.read) < 9 or len(self.read) < 9 + int.from_bytes(self.read[:3], "big"):
                more = self.connection.recv(1 << 16)
                if not more:
                    raise AssertionError(f"the connection has ended after {told[-1:]}")
                self.read += more
            size, kind, flags = int.from_bytes(self.read[:3], "big"), self.read[3], self.read[4]
            payload, self.read = self.read[9:9 + size], self.read[9 + size:]
            # A stream that is refused while the caller's half is open is reset after the answer.
            if kind == self.HEADERS and flags & self.END_STREAM:
                told.append(payload.partition(b"grpc-message")[2][1:].decode(errors="replace"))
        return told


def resident(process):
    return int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


class Hostile(HostileTrainer):
    def test_it_reads_nothing_but_what_is_allowed(self):
        self.works()
        secret = self.secret
        (self.folder / "link").symlink_to(secret)
        for what, path in (("folder", secret), ("link", self.folder / "link"), ("none", self.folder / "none"),
                           ("dots", f"{cluster.photos()}/../../{secret}"), ("proc", "/proc/self/root" + str(secret)),
                           ("uri", f"file://{secret}"), ("bucket", "s3://bucket/key"), ("root", "/")):
            self.assertIn("--allow", self.gets_nothing(what, self.reading("readers.image_folder", path=path)), what)
        self.gets_nothing("host", self.reading("readers.image_folder", path=f"file://elsewhere{secret}"))
        for what, path in (("list", secret / "list"), ("passwd", "/etc/passwd"), ("environ", "/proc/self/environ"),
                           ("metadata", "http://169.254.169.254/latest/meta-data"), ("decimal", "http://2852039166/"),
                           ("mapped", "http://[::ffff:169.254.169.254]/"), ("loopback", "http://127.0.0.1:1/"),
                           ("own", f"https://localhost:{self.coordinator.address.rsplit(':')[-1]}/")):
            self.assertIn("--allow", self.gets_nothing(what, self.reading("readers.file_list", path=path, root="/")),
                          what)
        for what, path in (("numbers", secret / "list"), ("numbers-link", self.folder / "link/list"),
                           ("numbers-environ", "/proc/self/environ")):
            self.assertIn("--allow", self.gets_nothing(what, selection={"samples": {"uri": str(path)}}), what)
        self.works()

    def test_a_training_outlives_its_access_token(self):
        token = self.folder / "trainer-token"
        token.write_text(self.trainer)
        consumer = self.consumer(self.spec(), "--access-token-file", token, *self.tls("vision"), "--paced", "--window",
                                 1, "--timeout-s", "20", "--row-timeout-s", "20", epochs=cluster.EPOCHS)
        consumer.pull(2)
        successor = self.leat("access", "create", "--role", "trainer", "--name", "vision").stdout
        token.write_text("")  # as a moment before it is written
        consumer.pull(1)
        token.write_text(successor)
        self.leat("access", "revoke", self.trainer.split("_")[1])
        self.assertIsNone(consumer.finish().error)
        self.assertEqual(consumer.steps, self.expected)

    def test_it_changes_nothing_that_is_not_its_own(self):
        self.works()
        (self.folder / "trainer-token").write_text(self.trainer)
        for words in (("delete", "job", "job", "--yes"), ("drain", "w0"), ("access", "list"),
                      ("access", "revoke", "nodes"), ("access", "create", "--role", "operator", "--name", "me")):
            for token in (self.trainer, None, "x" * 40):
                done = self.leat(*words, token=token, code=None)
                self.assertNotEqual(done.returncode, 0, words)
                self.assertRegex(done.stdout + done.stderr, "role|access token", words)
                self.assertNotIn(self.trainer, done.stdout + done.stderr, words)
        for name in ("false", "w0"):
            with self.assertRaisesRegex(cluster.DaemonFailed, "role worker"):
                self.start_worker("--access-token-file", str(self.folder / "trainer-token"), *self.tls("vision"),
                                  name=name)
        listed = json.loads(self.leat("get", "workers", "-o", "json").stdout)
        self.assertEqual([worker["name"] for worker in listed["workers"]], ["w0"])
        self.works()

    def test_it_is_told_of_its_bounds_and_others_go_on(self):
        self.works()
        greedy = self.leat("access", "create", "--role", "trainer", "--name", "greedy").stdout.strip()
        before = resident(self.coordinator.process)
        with self.connect(self.coordinator.address) as connection, self.connect(self.coordinator.address) as another:
            calls, others = Calls(connection, greedy), Calls(another, self.trainer)
            empty, rate = b"\0" * 5, ""
            # Until its token is known, a connection may send 256 KiB: fewer than the 2049 headers.
            calls.begin("CoordinatorService/Hello", 1, empty)
            self.assertEqual(calls.ended(1), [""])
            calls.begin("CoordinatorService/ConsumerSession", 2049)
            streams = calls.ended(1)[0]
            calls.begin("CoordinatorService/PutIndexBlock", 1)
            upload = calls.ended(1)[0]
            for _ in range(100):
                calls.begin("CoordinatorService/Hello", 500, empty)
                rate = max(calls.ended(500), key=len)
                if rate:
                    break
            others.begin("CoordinatorService/Hello", 1, empty)
            self.assertEqual(others.ended(1), [""])
            self.works()
            for told, parts in ((streams, ("trainer/greedy has 2048 streams open from 127.0.0.1",
                                           "bound of role trainer", "close some")),
                                (upload, ("PutIndexBlock is for role worker", "(trainer/greedy)")),
                                (rate, ("trainer/greedy calls more than 1000 times a second from 127.0.0.1",
                                        "bound of role trainer", "call less often"))):
                for part in parts:
                    self.assertIn(part, told)
                self.assertNotIn(greedy[14:], told)
            # 26 KB per stream; all of them may be open.
            self.assertLess(resident(self.coordinator.process), before + 3 * MOST_GROWTH)

    # Floods, each by a caller without an access token; callers of the worker have a trainer's certificate.

    def until_cut_off(self, daemon, certificate, pieces):
        """Sends `pieces` until the daemon ends the connection, which must happen before MOST_BYTES of them."""
        with self.connect(daemon.address, certificate) as connection:
            sent = 0
            try:
                connection.sendall(PREFACE)
                for piece in pieces:
                    connection.sendall(piece)
                    sent += len(piece)
                    self.assertLess(sent, MOST_BYTES, daemon.name)
            except OSError:
                pass

    def headers_without_an_end(self, daemon, certificate):
        def pieces():
            yield frame(Calls.HEADERS, 0, 1, b"x" * 16_000)
            while True:
                yield frame(CONTINUATION, 0, 1, b"x" * 16_000)
        for _ in range(10):
            self.until_cut_off(daemon, certificate, pieces())

    def streams_that_are_reset_at_once(self, daemon, certificate):
        def pieces():
            for first in range(1, 1 << 30, 200):
                yield b"".join(Calls.headers("CoordinatorService/Hello", "x" * 40, stream)
                               + frame(RESET, 0, stream, b"\0\0\0\x08") for stream in range(first, first + 200, 2))
        for _ in range(10):
            self.until_cut_off(daemon, certificate, pieces())

    def calls_that_stay_open(self, daemon, certificate):
        def pieces():
            for first in range(1, 1 << 30, 200):
                yield b"".join(Calls.headers("CoordinatorService/Hello", "x" * 40, stream)
                               for stream in range(first, first + 200, 2))
        for _ in range(4):
            self.until_cut_off(daemon, certificate, pieces())

    def bodies_that_do_not_come(self, daemon, certificate):
        """100 connections that have sent the first byte of a message; they end after a while."""
        callers = [self.connect(daemon.address, certificate) for _ in range(100)]
        begun = Calls.headers("CoordinatorService/Hello", "x" * 40, 1) + frame(Calls.DATA, 0, 1, b"\0")
        for caller in callers:
            caller.sendall(PREFACE + begun)
        for caller in callers:
            caller.settimeout(cluster.PATIENCE_S)
            try:
                while caller.recv(1 << 16):
                    pass
            except ConnectionError:
                pass
            caller.close()

    def connections_that_say_nothing(self, daemon, _):
        """10,000 at once, from other addresses; clients that connect meanwhile are served."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        host, port = daemon.address.rsplit(":", 1)
        callers = [socket.create_connection((host, int(port)), timeout=60, source_address=(f"127.0.2.{1 + i % 250}", 0))
                   for i in range(min(10_000, most - 200))]
        self.assertEqual(self.leat("get", "workers", "-o", "name").stdout.strip(), "w0")
        for caller in callers:
            caller.close()

    def test_memory_after_all_floods_is_what_it_was(self):
        self.works()
        for daemon, certificate in ((self.coordinator, None), (self.workers[0], "vision")):
            before = resident(daemon.process)
            for flood in (self.headers_without_an_end, self.streams_that_are_reset_at_once, self.calls_that_stay_open,
                          self.bodies_that_do_not_come, self.connections_that_say_nothing):
                began = time.monotonic()
                flood(daemon, certificate)
                print(f"{daemon.name}: {flood.__name__}: {(resident(daemon.process) - before) / 2**20:+.1f} MiB, "
                      f"{time.monotonic() - began:.1f} s")
            self.until(f"{daemon.name} holds what it held",
                       lambda: resident(daemon.process) < before + MOST_GROWTH)
        self.works()


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Requests that mean harm to the daemons' pages leave the daemons as they were."""

import pathlib
import socket
import unittest

from cluster import PATIENCE_S
from pages import Pages, get

GROWTH_KIB = 8 << 10


def resident_kib(daemon):
    for line in pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


class AttackTest(Pages):
    def flood(self, address, begin, more):
        """Sends `more` until the server takes no more; returns how many bytes that were."""
        host, port = address.rsplit(":", 1)
        sent = 0
        with socket.create_connection((host, int(port)), PATIENCE_S) as caller:
            try:
                caller.sendall(begin)
                while sent < 200 << 20:
                    caller.sendall(more)
                    sent += len(more)
            except (BrokenPipeError, ConnectionResetError):
                pass
        return sent

    def test_daemons_are_as_they_were(self):
        head = b"GET /metrics HTTP/1.1\r\n"
        chunked = b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        bytes_, headers = b"a" * 65536, b"".join(b"X-%04d: a\r\n" % i for i in range(5000))
        addresses = self.start()
        for daemon, address in zip([self.coordinator, self.workers[0]], addresses):
            get(address, "/metrics")
            before = resident_kib(daemon)
            for begin, more in ((head + b"X: ", bytes_), (head, headers), (b"GET /", bytes_),
                                (chunked, b"10000\r\n" + bytes_ + b"\r\n"), (chunked + b"0\r\n", headers),
                                (chunked + b"-2\r\n", bytes_)):
                self.assertLess(self.flood(address, begin, more), 50 << 20, begin)
                self.assertEqual(get(address, "/metrics")[0], 200)
            host, port = address.rsplit(":", 1)
            half = []
            for _ in range(250):
                half.append(socket.create_connection((host, int(port)), PATIENCE_S))
                try:
                    half[-1].sendall(head + b"X: ")
                except (BrokenPipeError, ConnectionResetError):
                    pass
            self.assertEqual(get(address, "/metrics")[0], 200)
            grown = resident_kib(daemon) - before
            for each in half:
                each.close()
            # AddressSanitizer keeps freed memory.
            if "libasan" not in pathlib.Path(f"/proc/{daemon.process.pid}/maps").read_text():
                self.assertLessEqual(grown, GROWTH_KIB, daemon.name)


class PageAttackTest(Pages):
    """The same for the coordinator's page and its streams."""

    def test_the_coordinator_is_as_it_was(self):
        address = self.start()[0]
        host, port = address.rsplit(":", 1)

        def caller(request=b""):
            connection = socket.create_connection((host, int(port)), PATIENCE_S)
            self.addCleanup(connection.close)
            try:
                connection.sendall(request)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return connection

        def request(path, fields=b""):
            return b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + fields + b"\r\n"

        for path in ("/", "/api/state", "/metrics"):
            self.assertEqual(get(address, path)[0], 200)
        before = resident_kib(self.coordinator)
        # Streams that are left open, whose data is never read.
        streams = [caller(request(b"/live")) for _ in range(250)]
        self.assertEqual(get(address, "/api/state")[0], 200)
        # 10,000 requests, 100 at a time; the answers are read.
        paths = (b"/", b"/api/state", b"/api/history?job=none&minutes=60", b"/api/worker?name=" + b"x" * 500)
        for _ in range(25):
            several = caller(b"".join(request(paths[i % 4]) for i in range(399)) +
                             request(b"/api/state", b"Connection: close\r\n"))
            while several.recv(1 << 20):
                pass
            several.close()
        self.assertEqual(get(address, "/api/state")[0], 200)
        # Answers that are not read; unknown sessions; events of all times.
        slow = [caller(request(b"/") * 100) for _ in range(40)]
        for i in range(500):
            caller(b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 20\r\n\r\n" +
                   b"token=%014d" % i).close()
        for last in (b"0-0", b"18446744073709551615-18446744073709551615", b"-", b"x" * 8000):
            caller(request(b"/live", b"Last-Event-ID: " + last + b"\r\n")).close()
        self.assertEqual(get(address, "/api/state")[0], 200)
        grown = resident_kib(self.coordinator) - before
        for each in [*streams, *slow]:
            each.close()
        if "libasan" not in pathlib.Path(f"/proc/{self.coordinator.process.pid}/maps").read_text():
            self.assertLessEqual(grown, GROWTH_KIB)
        status, text = get(address, "/livez")
        self.assertEqual((status, text), (200, "ok\n"))

if __name__ == "__main__":
    unittest.main()

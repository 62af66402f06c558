# SPDX-License-Identifier: Apache-2.0
"""Web serves a folder over http with ranges and tags, and fails as object stores do."""

import email.utils
import http.server
import pathlib
import random
import socket
import struct
import threading
import time
import urllib.parse


class Web:
    """`set`: the share of GETs that end so: `busy` (503, SlowDown), `error` (500), `short` (half of the body, then the
    end), `reset` (RST in the body), `wrong_range` (another Content-Range than requested), `late` (after a second).
    `denied`: 403, until it is 0 again. `bytes_per_s`: of all bodies together, in the order of the requests; 0: no
    limit. `moved`: path -> redirect target. `asked`: requests so far."""

    FAULTS = ("busy", "error", "short", "reset", "wrong_range", "late", "denied")

    def __init__(self, folder, seed=0):
        self.folder = pathlib.Path(folder).resolve()
        self.shares = dict.fromkeys(self.FAULTS, 0.0)
        self.counts = dict.fromkeys(self.FAULTS, 0)
        self.moved, self.asked, self.bytes_per_s, self._free_at = {}, 0, 0, 0.0
        self._random, self._lock = random.Random(seed), threading.Lock()
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                web.answer(self, with_body=True)

            def do_HEAD(self):
                web.answer(self, with_body=False)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # ignores clients that have gone
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def set(self, **shares):
        unknown = set(shares) - set(self.FAULTS)
        if unknown:
            raise ValueError(f"{sorted(unknown)}: want some of {self.FAULTS}")
        self.shares = dict.fromkeys(self.FAULTS, 0.0) | shares

    def _wait_for_turn(self, size):
        """Waits until `size` bytes and all that were asked for earlier are sent at `bytes_per_s`."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(now, self._free_at) + size / self.bytes_per_s
            until = self._free_at - now
        threading.Event().wait(until)

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def _draw(self):
        with self._lock:
            at = self._random.random()
            for fault, share in self.shares.items():
                if at < share:
                    self.counts[fault] += 1
                    return fault
                at -= share
        return None

    def answer(self, request, with_body):
        with self._lock:
            self.asked += 1
        if request.path in self.moved:
            return self._status(request, 302, Location=self.moved[request.path])
        fault = self._draw() if with_body else None
        if fault in ("busy", "error", "denied"):
            return self._status(request, {"busy": 503, "error": 500, "denied": 403}[fault])
        path = (self.folder / urllib.parse.unquote(request.path).lstrip("/")).resolve()
        if self.folder not in path.parents or not path.is_file():
            return self._status(request, 404)
        body, about = path.read_bytes(), path.stat()
        tag = f'"{about.st_size}-{about.st_mtime_ns}"'
        if request.headers.get("If-Match", tag) != tag:
            return self._status(request, 412)
        first, last, wanted = 0, len(body) - 1, request.headers.get("Range")
        if wanted:
            begin, end = wanted.removeprefix("bytes=").split("-")
            first, last = int(begin), min(last, int(end) if end else last)
            if first > last:
                return self._status(request, 416)
        if fault == "late":
            threading.Event().wait(1)
        if with_body and self.bytes_per_s > 0:
            self._wait_for_turn(last + 1 - first)
        request.send_response(206 if wanted else 200)
        if wanted:
            moved = 1 if fault == "wrong_range" else 0
            request.send_header("Content-Range", f"bytes {first + moved}-{last + moved}/{len(body) + moved}")
        part = body[first:last + 1]
        request.send_header("Content-Length", str(len(part)))
        request.send_header("Accept-Ranges", "bytes")
        request.send_header("ETag", tag)
        request.send_header("Last-Modified", email.utils.formatdate(about.st_mtime, usegmt=True))
        request.end_headers()
        if not with_body:
            return None
        if fault in ("short", "reset"):
            request.wfile.write(part[:len(part) // 2])
            request.wfile.flush()
            if fault == "reset":
                request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.close_connection = True
            return None
        return request.wfile.write(part)

    @staticmethod
    def _status(request, status, **headers):
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", "0")
        request.end_headers()

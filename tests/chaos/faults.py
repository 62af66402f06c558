# SPDX-License-Identifier: Apache-2.0
"""Faults for real processes, and the checks of what training may notice.

Proxy relays TCP between two of them; FileFaults makes a process's files and its listener fail, and its clock jump
(tests/support/file_faults.py); flood and Stutter affect one process. Faults by the kernel are in kernel.py.
"""

import asyncio
import contextlib
import errno
import os
import pathlib
import random
import signal
import socket
import struct
import sys
import threading
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import cluster  # noqa: E402
from file_faults import FileFaults  # noqa: E402  (of tests/support, which cluster has added)
from kernel import ControlGroup, Lossy, Names, Network, as_somebody, prlimit  # noqa: E402
from ports import free_port  # noqa: E402

CHUNK = 256 << 10



class Proxy:
    """A TCP relay whose faults change while it runs. All methods may be called from any thread.

    `set`: delay_s and jitter_s of each piece, bytes_per_s of each direction, corrupt_every: one bit in every so many
    bytes is flipped, hole: all data is dropped silently.
    """

    def __init__(self, target, seed=0):
        self.target = target
        self._random = random.Random(seed)
        self._faults = {"delay_s": 0.0, "jitter_s": 0.0, "bytes_per_s": 0, "corrupt_every": 0, "hole": False}
        self.counts = {"connections": 0, "bytes": 0, "corrupted": 0, "reset": 0, "cut": 0}
        self._pairs = set()
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._flows.set()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._relay, "127.0.0.1", 0, limit=CHUNK))
        self.address = "127.0.0.1:%d" % self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def set(self, **faults):
        unknown = set(faults) - set(self._faults)
        if unknown:
            raise ValueError(f"{sorted(unknown)}: want some of {sorted(self._faults)}")
        self._call(self._set, faults)

    def clear(self):
        self.set(delay_s=0.0, jitter_s=0.0, bytes_per_s=0, corrupt_every=0, hole=False)

    def cut(self):
        """Closes all connections cleanly; returns how many."""
        return self._call(self._end, "cut")

    def reset(self):
        """Ends all connections by RST; returns how many."""
        return self._call(self._end, "reset")

    def close(self):
        if not self._loop.is_running():
            return
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _shut(self):
        self._server.close()
        self._end("reset")
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _call(self, function, *args):
        async def run():
            return function(*args)
        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    def _set(self, faults):
        self._faults |= faults
        (self._flows.clear if self._faults["hole"] else self._flows.set)()

    def _end(self, how):
        pairs = list(self._pairs)
        for pair in pairs:
            for writer in pair:
                if how == "reset":
                    link = writer.get_extra_info("socket")
                    if link is not None and link.fileno() >= 0:
                        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    writer.transport.abort()
                else:
                    writer.close()
        self.counts[how] += len(pairs)
        return len(pairs)

    async def _relay(self, reader, writer):
        self.counts["connections"] += 1
        other, pumps = None, []
        try:
            await self._flows.wait()
            host, port = self.target.rsplit(":", 1)
            back, other = await asyncio.open_connection(host, int(port), limit=CHUNK)
            pair = (writer, other)
            self._pairs.add(pair)
            try:
                pumps = [asyncio.create_task(self._pump(*ends)) for ends in ((reader, other), (back, writer))]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._pairs.discard(pair)
        except OSError:
            pass
        finally:
            for pump in pumps:
                pump.cancel()
            for end in (writer, other):
                if end is not None:
                    end.close()

    async def _pump(self, reader, writer):
        """Sends each piece that was read when its delay is over, in order; at most 32 pieces wait."""
        waiting = asyncio.Queue(32)
        sender = asyncio.create_task(self._send(waiting, writer))
        last = 0.0
        try:
            while data := await reader.read(CHUNK):
                await self._flows.wait()
                faults = self._faults
                late = faults["delay_s"] + self._random.uniform(-1, 1) * faults["jitter_s"]
                last = max(last, self._loop.time() + max(0.0, late))
                await waiting.put((last, self._corrupt(data)))
            await waiting.put((last, None))
            await sender
        except OSError:
            pass
        finally:
            sender.cancel()

    async def _send(self, waiting, writer):
        with contextlib.suppress(OSError):
            while True:
                due, data = await waiting.get()
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                await self._flows.wait()
                if data is None:
                    return
                if self._faults["bytes_per_s"]:
                    await asyncio.sleep(len(data) / self._faults["bytes_per_s"])
                writer.write(data)
                await writer.drain()
                self.counts["bytes"] += len(data)

    def _corrupt(self, data):
        every = self._faults["corrupt_every"]
        if not every or self._random.random() >= len(data) / every:
            return data
        self.counts["corrupted"] += 1
        changed = bytearray(data)
        changed[self._random.randrange(len(changed))] ^= 1 << self._random.randrange(8)
        return bytes(changed)


@contextlib.contextmanager
def flood(address, count):
    """Opens so many connections that send nothing. Returns how many the kernel accepted."""
    host, port = address.rsplit(":", 1)
    links = []
    try:
        for _ in range(count):
            link = socket.socket()
            link.setblocking(False)
            links.append(link)
            link.connect_ex((host, int(port)))
        yield len(links)
    finally:
        for link in links:
            link.close()


class Stutter:
    """Stops a process for `off_s` again and again, so that it is slow and never dead."""

    def __init__(self, process, on_s, off_s):
        self._process, self._on_s, self._off_s = process.process, on_s, off_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stop.wait(self._on_s):
            self._process.send_signal(signal.SIGSTOP)
            self._stop.wait(self._off_s)
            self._process.send_signal(signal.SIGCONT)

    def close(self):
        self._stop.set()
        self._thread.join(10)


EPOCHS, BATCH, STEPS, SIDE = 2, 64, 8, 64  # ChaosTest's: 500 / 64, the last batch filled


class ChaosTest(cluster.ClusterTest):
    """Training on the photos under a fault: its steps are the oracle's, and no wait is longer than the test allows."""

    expected = {}

    def chaos_spec(self, **changes):
        return self.spec(cluster.train_graph(cluster.photos(), SIDE), batch=BATCH, **changes)

    def oracle(self, spec, epochs=EPOCHS):
        key = (spec.read_text(), epochs)
        if key not in self.expected:
            self.expected[key] = self.oracle_steps(spec, epochs)
        return self.expected[key]

    def train(self, *flags, spec=None, **options):
        """Starts a paced consumer over gRPC, whose next steps the test asks for."""
        return self.consumer(spec or self.chaos_spec(), "--paced", *(() if "--window" in flags else ("--window", 2)),
                             *flags, **{"epochs": EPOCHS, "env": {"LEAT_TRANSPORT": "grpc"}, **options})

    def finish(self, consumer, longest_s, spec=None):
        """Runs the rest of the epochs; then checks and prints the hashes and the longest wait."""
        consumer.finish()
        expected = self.oracle(spec or self.chaos_spec())
        self.assertIsNone(consumer.error, f"after {len(consumer.steps)} steps")
        self.assertEqual(consumer.steps, expected)
        longest = max(consumer.waits_ms) / 1000
        print(f"chaos {self.id().split('.')[-1]} steps={len(expected)} rows={len(expected) * BATCH} "
              f"hashes_equal={len(expected)} longest_wait_s={longest:.2f}", file=sys.stderr, flush=True)
        self.assertLess(longest, longest_s)

    def proxy(self, target, **options):
        return self._keep(Proxy(target, **options))

    def file_faults(self, below):
        self._started += 1
        return self._keep(FileFaults(self.folder / f"switch-{self._started}", below))

    def worker_behind_a_proxy(self, *flags, **options):
        """Returns (worker, proxy): consumers reach the worker only through the proxy."""
        address = f"127.0.0.1:{free_port()}"
        proxy = self.proxy(address)
        worker = self.start_worker("--listen", address, "--advertise", proxy.address, *flags, **options)
        return worker, proxy

    def ready_workers(self):
        return [w["registration"]["name"] if "registration" in w else w.get("name")
                for w in self.get("workers")["workers"] if w["state"] == "WORKER_STATE_READY"]

    def until_ready(self, count):
        self.until(f"{count} workers are ready", lambda: len(self.ready_workers()) == count)


__all__ = ["BATCH", "ChaosTest", "ControlGroup", "EPOCHS", "FileFaults", "Lossy", "Names", "Network", "Proxy", "SIDE",
           "STEPS", "Stutter", "as_somebody", "cluster", "errno", "flood", "free_port", "prlimit", "time"]

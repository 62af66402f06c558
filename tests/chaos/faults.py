# SPDX-License-Identifier: Apache-2.0
"""Faults for real processes, and how a test says what training may notice of them.

Proxy stands between two of them on TCP; FileFaults makes a process's files and its listener fail (fault_shim.cc);
flood, Stutter and prlimit are about one process; Network is a link between namespaces of the network.
"""

import asyncio
import contextlib
import errno
import mmap
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import cluster  # noqa: E402

CHUNK = 256 << 10


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Proxy:
    """A TCP relay whose faults change while it runs. All methods may be called from any thread.

    `set`: delay_s and jitter_s of each piece, bytes_per_s of each direction, corrupt_every: one bit of so many bytes
    is turned over, hole: nothing passes, and nobody is told.
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
        """Ends all connections, politely; returns how many."""
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
        """What is read goes out when its time has come, in order; at most 32 pieces wait."""
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


class FileFaults:
    """The switch of fault_shim.cc. `env` is for the process that is to fail."""

    OPERATIONS = ("open", "read", "sync", "accept", "write")
    HANG, SHORT = 10_000, 10_001

    def __init__(self, path, below):
        shim = os.environ.get("LEAT_FAULT_SHIM", "")
        if not os.path.exists(shim):
            raise unittest.SkipTest("LEAT_FAULT_SHIM names no library")
        below = str(below).encode()
        pathlib.Path(path).write_bytes(bytes(64) + below + bytes(4096 - 64 - len(below)))
        with open(path, "r+b") as file:
            self._words = mmap.mmap(file.fileno(), 4096)
        self.env = {"LD_PRELOAD": shim, "LEAT_FAULT_SWITCH": str(path)}

    def set(self, **faults):
        """operation=errno, HANG, SHORT, or 0 for none."""
        for operation, fault in faults.items():
            struct.pack_into("<I", self._words, 4 * self.OPERATIONS.index(operation), fault)

    def clear(self):
        self.set(**dict.fromkeys(self.OPERATIONS, 0))

    def hits(self, operation):
        return struct.unpack_from("<I", self._words, 32 + 4 * self.OPERATIONS.index(operation))[0]

    close = clear


def prlimit(**limits):
    """Words before a program: prlimit(nofile=100) is its soft and hard limit."""
    if shutil.which("prlimit") is None:
        raise unittest.SkipTest("no prlimit here")
    return ["prlimit", *(f"--{name}={value}:{value}" for name, value in limits.items())]


def as_somebody(uid):
    """Words before a program, for limits that root does not have."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        raise unittest.SkipTest("only root can start programs as another user, by setpriv")
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


@contextlib.contextmanager
def flood(address, count):
    """So many connections that say nothing. Gives how many the kernel took."""
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
        self._process, self._on_s, self._off_s = process, on_s, off_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stop.wait(self._on_s):
            self._process.signal(signal.SIGSTOP)
            self._stop.wait(self._off_s)
            self._process.signal(signal.SIGCONT)

    def close(self):
        self._stop.set()
        self._thread.join(10)


class Network:
    """A namespace of the network, and a link into it that can be cut. `before`: words for a program in it."""

    def __init__(self, number):
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise unittest.SkipTest("a network namespace needs root and ip(8)")
        self.name = f"leat{os.getpid()}-{number}"
        self._link = f"lt{os.getpid() % 100_000}h{number}"
        inside = f"lt{os.getpid() % 100_000}n{number}"
        self.host, self.address = f"10.213.{number}.1", f"10.213.{number}.2"
        try:
            for words in (f"netns add {self.name}", f"link add {self._link} type veth peer name {inside}",
                          f"link set {inside} netns {self.name}", f"addr add {self.host}/24 dev {self._link}",
                          f"link set {self._link} up", f"-n {self.name} addr add {self.address}/24 dev {inside}",
                          f"-n {self.name} link set {inside} up", f"-n {self.name} link set lo up"):
                subprocess.run(["ip", *words.split()], check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            self.close()
            raise unittest.SkipTest(f"no network namespace here: {error.stderr.strip()}")
        self.before = ["ip", "netns", "exec", self.name]

    def cut(self):
        subprocess.run(["ip", "link", "set", self._link, "down"], check=True)

    def heal(self):
        subprocess.run(["ip", "link", "set", self._link, "up"], check=True)

    def close(self):
        for words in (["link", "del", self._link], ["netns", "del", self.name]):
            subprocess.run(["ip", *words], capture_output=True)


EPOCHS, BATCH, STEPS, SIDE = 2, 64, 8, 64  # of ChaosTest: 500 / 64, the last batch filled


class ChaosTest(cluster.ClusterTest):
    """Training on the photos under a fault: its steps are the oracle's, and no wait is longer than the test says."""

    expected = {}

    def chaos_spec(self, **changes):
        return self.spec(cluster.train_graph(cluster.photos(), SIDE), batch=BATCH, **changes)

    def oracle(self, spec, epochs=EPOCHS):
        key = (spec.read_text(), epochs)
        if key not in self.expected:
            self.expected[key] = self.oracle_steps(spec, epochs)
        return self.expected[key]

    def train(self, *flags, spec=None, **options):
        """A paced consumer over gRPC, whose next steps the test asks for."""
        return self.consumer(spec or self.chaos_spec(), "--paced", "--window", 2, *flags,
                             **{"epochs": EPOCHS, "env": {"LEAT_PLANE": "grpc"}, **options})

    def finish(self, consumer, longest_s, spec=None):
        """The rest of the epochs; then the hashes and the longest wait are judged, and said."""
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
        """(worker, proxy): consumers reach it by the proxy only."""
        address = f"127.0.0.1:{free_port()}"
        proxy = self.proxy(address)
        worker = self.start_worker("--listen", address, "--advertise", proxy.address, *flags, **options)
        return worker, proxy

    def ready_workers(self):
        return [w["registration"]["name"] if "registration" in w else w.get("name")
                for w in self.get("workers")["workers"] if w["state"] == "WORKER_STATE_READY"]

    def until_ready(self, count):
        self.until(f"{count} workers are ready", lambda: len(self.ready_workers()) == count)


__all__ = ["BATCH", "ChaosTest", "EPOCHS", "FileFaults", "Network", "Proxy", "SIDE", "STEPS", "Stutter", "as_somebody",
           "cluster", "errno", "flood", "free_port", "prlimit", "time"]

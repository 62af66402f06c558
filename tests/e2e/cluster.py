# SPDX-License-Identifier: Apache-2.0
"""Real daemons and consumers as processes, for tests: helpers to start, kill and watch them.

Programs come from the environment (set by CMake): LEAT_COORDINATOR_BIN, LEAT_WORKER_BIN, LEAT_CONSUMER_BIN,
LEAT_ORACLE_BIN, LEAT_CLI_BIN. No test sleeps: daemons say when they are ready, consumers are paced by their stdin.
"""

import hashlib
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import test_data  # noqa: E402

PATIENCE_S = float(os.environ.get("LEAT_TEST_PATIENCE_S", "60"))


def program(name):
    path = os.environ.get(f"LEAT_{name}_BIN")
    if not path or not os.access(path, os.X_OK):
        raise unittest.SkipTest(f"LEAT_{name}_BIN names no program")
    return path


def read_line(stream, what, patience=PATIENCE_S):
    """Reads a line of an unbuffered binary stream; fails with `what` if there is none in time."""
    line, end = b"", time.monotonic() + patience
    readable = select.poll()  # unlike select, it takes any descriptor
    readable.register(stream, select.POLLIN)
    while not line.endswith(b"\n"):
        if not readable.poll(max(0, end - time.monotonic()) * 1000):
            raise AssertionError(f"{what}: no line within {patience} s, only {line!r}")
        byte = os.read(stream.fileno(), 1)
        if not byte:
            break
        line += byte
    return line.decode().rstrip("\n")


class Daemon:
    """A coordinator or a worker. `address` is set once it serves."""

    def __init__(self, name, argv, log, env=None):
        self.name, self.log, self.argv = name, log, argv
        ready, ready_child = os.pipe()
        lifeline_child, self._lifeline = os.pipe()
        with open(log, "ab") as out:
            self.process = subprocess.Popen(
                [*argv, "--ready-fd", str(ready_child), "--lifeline-fd", str(lifeline_child)],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=(ready_child, lifeline_child),
                env={**os.environ, **(env or {})})
        os.close(ready_child)
        os.close(lifeline_child)
        with open(ready, "rb", buffering=0) as stream:
            self.address = read_line(stream, name)
        if not self.address:
            self.process.wait(PATIENCE_S)
            raise DaemonFailed(f"{name} ended with {self.process.returncode}: {self.tail()}")

    def tail(self):
        return pathlib.Path(self.log).read_text(errors="replace")[-2000:]

    def signal(self, number):
        self.process.send_signal(number)

    def kill9(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Asks it to stop; returns its exit code."""
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def cut_lifeline(self):
        os.close(self._lifeline)
        self._lifeline = None


class DaemonFailed(Exception):
    pass


class Consumer:
    """An e2e_consumer. `steps` collects the (epoch, step, sha256) that it printed."""

    def __init__(self, argv, log, env=None, before=()):
        self.steps, self.waits_ms, self.end, self.error, self.transport = [], [], None, None, None
        self._log = open(log, "ab")
        self.process = subprocess.Popen([*before, program("CONSUMER"), *argv], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self._log, bufsize=0,
                                        env={**os.environ, **(env or {})})

    def next(self):
        """Reads one line; False at the end."""
        words = read_line(self.process.stdout, "consumer").split(" ")
        if words[0] == "step":
            self.steps.append((int(words[1]), int(words[2]), words[4]))
            self.waits_ms.append(float(words[3]))
            return True
        if words[0] == "end":
            self.end = dict(zip(("steps", "rows", "copies", "hedged", "failed_over", "duplicates", "damaged"),
                                map(int, words[1:8])))
            self.transport, self.end["unproven"] = words[8], int(words[9])
        elif words[0] == "error":
            self.error = (int(words[1]), " ".join(words[2:]))
        return False

    def pull(self, count):
        """For paced consumers: takes `count` more steps."""
        for _ in range(count):
            self.process.stdin.write(b"\n")
            if not self.next():
                raise AssertionError(f"ended early: {self.error or self.end}")

    def finish(self):
        """Takes all remaining steps; returns self."""
        try:
            self.process.stdin.write(b"\n" * 10_000)
        except BrokenPipeError:
            pass
        while self.next():
            pass
        self.process.wait(PATIENCE_S)
        return self

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self._log.close()


def photos():
    """Returns the folder of 500 photos."""
    return test_data.made("imagenet-sample")


def node(op, *inputs, **args):
    return {"op": op, "inputs": [{"node": i, "output": o} for i, o in inputs], "args": args}


def train_graph(path, side=224, repeat=1):
    """Returns the usual pipeline: decode, random_resized_crop, flip; with labels."""
    return {
        "nodes": [
            node("readers.image_folder", path={"string_value": str(path)}, repeat={"int_value": repeat}),
            node("decode", (0, 0)),
            node("random_resized_crop", (1, 0), size={"ints_value": {"values": [side, side]}}),
            node("coin_flip", probability={"float_value": 0.5}),
            node("flip", (2, 0), horizontal={"ref": {"node": 3, "output": 0}}),
        ],
        "outputs": [{"name": "image", "ref": {"node": 4}}, {"name": "label", "ref": {"node": 0, "output": 1}}],
    }


class ClusterTest(unittest.TestCase):
    """Gives each test a folder of its own, and ends all processes that it started."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="leat-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.coordinator = None
        self.workers = []
        self._started = 0

    def _log(self, name):
        self._started += 1
        return self.folder / f"{self._started:03}-{name}.log"

    def _keep(self, thing):
        self.addCleanup(thing.close)
        return thing

    def start_coordinator(self, *flags, listen="127.0.0.1:0", state=True, env=None, before=(), heartbeat_ms=200):
        """`before`: words before the program, which end by executing it."""
        argv = [*before, program("COORDINATOR"), "--listen", listen, "--heartbeat-interval-ms", str(heartbeat_ms),
                "--lost-after-ms", str(5 * heartbeat_ms)]
        if state:
            argv += ["--state", str(self.folder / "state")]
        self.coordinator = self._keep(Daemon("coordinator", [*argv, *flags], self._log("coordinator"), env))
        return self.coordinator

    def restart_coordinator(self, *flags, **options):
        return self.start_coordinator(*flags, listen=self.coordinator.address, **options)

    def start_worker(self, *flags, threads=1, name=None, env=None, before=(), coordinator=None):
        name = name or f"w{len(self.workers)}"
        argv = [*before, program("WORKER"), "--coordinator", coordinator or self.coordinator.address, "--name", name,
                "--threads", str(threads)]
        worker = self._keep(Daemon(name, [*argv, *flags], self._log(name), env))
        self.workers.append(worker)
        return worker

    def start_cluster(self, workers=2, threads=1):
        self.start_coordinator()
        for _ in range(workers):
            self.start_worker(threads=threads)

    def spec(self, graph=None, **changes):
        """Writes a JobSpec; returns its path."""
        spec = {"name": "job", "pipeline": graph or train_graph(photos()), "seed": 7, "batch": 64,
                "last_batch": "LAST_BATCH_FILL", **changes}
        path = self.folder / f"spec-{hashlib.sha256(json.dumps(spec).encode()).hexdigest()[:12]}.json"
        if not path.exists():  # a consumer may be reading it
            path.write_text(json.dumps(spec))
        return path

    def oracle_steps(self, spec, epochs):
        """Returns (epoch, step, sha256) of every batch, by the oracle."""
        done = subprocess.run([program("ORACLE"), str(spec), str(epochs)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [(int(e), int(s), sha) for e, s, sha in (line.split() for line in done.stdout.splitlines())]

    def consumer(self, spec, *flags, embedded=False, epochs=2, env=None, before=(), address=None):
        argv = ["--spec", str(spec), "--epochs", str(epochs), *map(str, flags)]
        if embedded:  # a private service that no other test shares
            env = {"LEAT_PRIVATE_NAME": self.folder.name, **(env or {})}
            argv += ["--daemon-dir", str(self.daemon_dir())]
        else:
            argv += ["--address", address or self.coordinator.address]
        return self._keep(Consumer(argv, self._log("consumer"), env, before))

    def daemon_dir(self):
        """Returns a folder with both daemons, as in the wheel."""
        folder = self.folder / "bin"
        if not folder.exists():
            folder.mkdir()
            (folder / "leat-coordinator").symlink_to(program("COORDINATOR"))
            (folder / "leat-worker").symlink_to(program("WORKER"))
            (folder / "leat-private").symlink_to(program("PRIVATE"))
        return folder

    def get(self, what, *flags):
        """Returns one of the service's views, as the CLI gets it."""
        done = subprocess.run([program("CONSUMER"), "--address", self.coordinator.address, "--get", what, *flags],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def until(self, what, condition):
        """Asks the service again until `condition` holds. Each question is a call, so the test does not sleep."""
        end = time.monotonic() + PATIENCE_S
        while True:
            answer = condition()
            if answer:
                return answer
            self.assertLess(time.monotonic(), end, f"never: {what}")


EPOCHS, BATCH, STEPS = 2, 64, 8  # PhotosTest's: 500 / 64, the last batch filled


class PhotosTest(ClusterTest):
    """Tests of self.spec() on the photos; `expected` has the oracle's steps of its epochs."""

    expected = None

    def setUp(self):
        super().setUp()
        if PhotosTest.expected is None:
            PhotosTest.expected = self.oracle_steps(self.spec(), EPOCHS)
            self.assertEqual([step[:2] for step in self.expected],
                             [(e, s) for e in range(EPOCHS) for s in range(STEPS)])


def fake_gpu():
    """Returns the environment of a worker with one fake GPU; empty: there is no fake driver here."""
    fakes = {"LEAT_CUDA_LIBRARY": os.environ.get("LEAT_FAKE_CUDA_LIB", ""),
             "LEAT_NVJPEG_LIBRARY": os.environ.get("LEAT_FAKE_NVJPEG_LIB", "")}
    return fakes if all(os.path.exists(path) for path in fakes.values()) else {}


class FakeGpuTest(PhotosTest):
    """The same on the fake CUDA driver: LEAT_FAKE_CUDA_LIB, LEAT_FAKE_NVJPEG_LIB, set by CMake."""

    def setUp(self):
        self.fakes = fake_gpu()
        if not self.fakes:
            self.skipTest("no fake CUDA driver: this build has no GPU support")
        super().setUp()

    def start_gpu_worker(self, *flags, env=None, **options):
        """Starts a worker with one fake GPU."""
        return self.start_worker("--devices", "0", *flags, env={**self.fakes, **(env or {})}, **options)

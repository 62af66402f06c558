# SPDX-License-Identifier: Apache-2.0
"""Real daemons, and trainers without a model beside them, for the benchmarks."""

import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "e2e"))
import cluster  # noqa: E402  (starts daemons as the tests do)


class Service:
    """A coordinator and workers of their own processes, as `with` block."""

    def __init__(self, args, folder, workers=2, flags=()):
        self.args, self.folder, self.count, self.flags = args, pathlib.Path(folder), workers, flags
        self.daemons, self.start_ms = [], {}

    def _start(self, name, *argv):
        begin = time.perf_counter()
        daemon = cluster.Daemon(name, [str(self.args.native / argv[0]), *argv[1:]], self.folder / f"{name}.log")
        self.start_ms[name] = 1e3 * (time.perf_counter() - begin)
        self.daemons.append(daemon)
        return daemon

    def __enter__(self):
        threads = max(1, self.args.threads // self.count)
        self.coordinator = self._start("coordinator", "leat-coordinator", "--listen", "127.0.0.1:0",
                                       "--state", str(self.folder / "state"))
        self.workers = [self._start(f"worker{n}", "leat-worker", "--coordinator", self.coordinator.address, "--name",
                                    f"w{n}", "--threads", str(threads), *self.flags) for n in range(self.count)]
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.close()

    def peak_mib(self):
        """Returns the most memory that each daemon has had, as the kernel counted."""
        peaks = {}
        for daemon in self.daemons:
            try:
                status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
            except OSError:
                continue
            line = next((l for l in status.splitlines() if l.startswith("VmHWM")), None)
            if line:
                peaks[daemon.name] = int(line.split()[1]) / 1024
        return peaks


def puller(args, mode, *flags, stdin=None, images=None, **env):
    argv = [sys.executable, str(HERE / "puller.py"), mode, "--images", str(images or args.images), "--seconds",
            str(args.seconds), *flags]
    environment = {**os.environ, "LEAT_NATIVE_DIR": str(args.native), "PYTHONPATH": str(ROOT / "python_client/src"),
                   "JAX_PLATFORMS": "cpu", **env}
    environment.pop("LEAT_COORDINATOR", None)
    return subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, text=True, env=environment)


def result_of(process):
    for line in process.stdout:
        if line.startswith("RESULT "):
            process.wait()
            return json.loads(line[7:])
    raise RuntimeError(f"{process.args[2]} gave no result; exit code {process.wait()}")


def cpu_seconds(process):
    """Returns the process's processor time, user's and system's."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

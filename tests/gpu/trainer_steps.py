# SPDX-License-Identifier: Apache-2.0
"""Steps of several processes on one GPU: a trainer that computes beside a worker; NVIDIA's multi-process service."""

import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
import time

import cluster
import machine
import service
from service_steps import batch, compare, python_env
from tool_steps import without_gpu

READY_S = 60  # time to load torch, and to create the GPU's context
ALONE, BESIDE = "alone", "beside a trainer"


class Trainer:
    """A process of trainer_loop.py. RuntimeError: the last line of its output."""

    def __init__(self, env, folder):
        self._log = folder / "trainer.log"
        with open(self._log, "wb") as log:
            script = pathlib.Path(__file__).with_name("trainer_loop.py")
            self._process = subprocess.Popen([sys.executable, "-B", script], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=log, env=env, bufsize=0)

    def ready(self):
        self._answer()

    def start(self):
        self._process.stdin.write(b"start\n")

    def stop(self, begin, end):
        """Returns products per second between two times; before that it computes until now."""
        self._process.stdin.write(b"stop\n")
        samples = json.loads(self._answer())
        return (done_until(samples, end) - done_until(samples, begin)) / (end - begin)

    def rate(self, seconds):
        """Returns products per second, measured for so long."""
        self.start()
        begin = time.monotonic()
        time.sleep(seconds)
        return self.stop(begin + seconds / 10, time.monotonic())

    def _answer(self):
        line = cluster.read_line(self._process.stdout, "the trainer", READY_S)
        if not line:
            said = self._log.read_text(errors="replace").strip().splitlines()
            raise RuntimeError(f"the trainer: {(said or ['it ended'])[-1][:300]}")
        return line

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


def done_until(samples, time_s):
    """Returns the products done at a time, interpolated between samples [time, done]."""
    for (at, done), (next_at, next_done) in zip(samples, samples[1:]):
        if next_at >= time_s:
            share = (time_s - at) / max(next_at - at, 1e-9)
            return done + (next_done - done) * min(1.0, max(0.0, share))
    return samples[-1][1]


@contextlib.contextmanager
def multi_process_service(context, folder):
    """Returns (environment of its clients, its control program's process). No GPU's settings are touched."""
    control = machine.tool("nvidia-cuda-mps-control")
    env = {**context.env, "CUDA_MPS_PIPE_DIRECTORY": str(folder / "pipe"),
           "CUDA_MPS_LOG_DIRECTORY": str(folder / "log")}
    for name in ("pipe", "log"):
        (folder / name).mkdir()
    # In the foreground, so that it is in this step's session, and ends with it.
    daemon = subprocess.Popen([control, "-f"], env=env, stdin=subprocess.DEVNULL)
    try:
        yield env, daemon
    finally:
        subprocess.run([control], input="quit\n", env=env, capture_output=True, text=True)


def mps(context, lines):
    """Runs worker and consumer as clients of a multi-process service started by this step."""
    folder = context.folder / "mps"
    folder.mkdir()
    with multi_process_service(context, folder) as (env, daemon):
        running = None
        try:
            running = service.Service(dataclasses.replace(context, env=env), folder)
            job = service.spec(folder, "exact", context.photos, batch(context))
            compare(lines, running, "exact under MPS", job, 1, service.oracle(context, job, 1), "the oracle's")
        except cluster.DaemonFailed as error:
            if daemon.poll() is None:
                lines.check("a worker starts under MPS", False, str(error))
            else:
                lines.missing("NVIDIA's multi-process service", f"its control program ended with {daemon.returncode}")
        finally:
            if running:
                running.close()


def trainer(context, lines):
    """Measures rows per second and a trainer's products per second, of each alone and of both on one GPU."""
    folder = context.folder / "trainer"
    folder.mkdir()
    why = without_gpu("torch", context)
    if why:
        lines.missing("a trainer on the GPU of a worker", why)
    sharing(context, lines, folder / "slices", "no", not why)
    what = "a trainer on the GPU of a worker, under MPS"
    if why or not machine.tool("nvidia-cuda-mps-control"):
        lines.missing(what, why or "no nvidia-cuda-mps-control on this machine")
        return
    with multi_process_service(context, folder) as (env, daemon):
        try:
            sharing(dataclasses.replace(context, env=env), lines, folder / "mps", "yes", True)
        except (cluster.DaemonFailed, RuntimeError) as error:
            if daemon.poll() is None:
                raise
            lines.missing(what, f"its control program ended with {daemon.returncode}: {error}")


def sharing(context, lines, folder, under_mps, with_trainer):
    """`under_mps`: "yes" or "no", for the figures."""
    folder.mkdir()
    seconds = 0.3 if context.quick else 2.5
    loop = Trainer(context.env, folder) if with_trainer else None
    try:
        running = service.Service(context, folder)
        try:
            jobs = {name: service.spec(folder, name, context.photos, batch(context), name.upper())
                    for name in ("exact", "nvjpeg") if name == "exact" or not running.said("gpu.no_nvjpeg")}
            products = None
            if loop:
                loop.ready()
                products = loop.rate(seconds)
                lines.figure("a trainer's matrix products", products, "a second", beside="nothing", MPS=under_mps)
            for name, job in jobs.items():
                consumers = {"C++": lambda job=job: running.rate(job, "cuda", seconds)[0]}
                if loop:
                    env = python_env(context, folder)
                    if env:
                        consumers["torch"] = lambda name=name, env=env: running.pull(
                            name, "torch", "cuda", env, "--rate-s", seconds)["rate"]
                for consumer, rate in consumers.items():
                    of = {"class": name, "consumer": consumer, "MPS": under_mps}
                    beside(lines, loop, products, rate, seconds, of)
        finally:
            running.close()
    finally:
        if loop:
            loop.close()


def beside(lines, loop, products, rate, seconds, of):
    """Measures a consumer's rows alone, and with the trainer; and the loss of each."""
    alone = rate()
    lines.figure("rows beside a trainer", alone, "img/s", **of, rows=ALONE)
    if not loop:
        return
    loop.start()
    both = rate()
    end = time.monotonic()  # the consumer has counted for `seconds` before its end
    slowed = loop.stop(end - 0.9 * seconds, end)
    lines.figure("rows beside a trainer", both, "img/s", **of, rows=BESIDE)
    lines.figure("what a trainer loses by rows", 100 * (1 - slowed / products), "%", **of)
    lines.figure("what rows lose by a trainer", 100 * (1 - both / alone), "%", **of)

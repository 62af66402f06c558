# SPDX-License-Identifier: Apache-2.0
"""Coordinator, GPU workers and consumers of a bundle on this machine."""

import collections
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

import cluster  # tests/e2e/cluster.py
import machine

DECODERS = ("exact", "hardware", "cuda", "host")
DEVICE = {"cuda": ["--device", "0"]}  # a consumer's flags by transport
TRAINER = {"LEAT_FAKE_CUDA_TRAINER": "1"}  # a consumer's environment; only the fake driver reads it
MOST_MEMORY = 16 << 30  # for a worker: all photos of a run with their coefficients


def resources():
    """Returns a worker's flags for the machine's resources when it starts. By default a worker would keep less on a
    machine whose memory grows late, and then its cache would decide what is measured."""
    return ["--memory", str(max(1 << 30, min(MOST_MEMORY, machine.memory_bytes() // 4))),
            "--threads", str(len(os.sched_getaffinity(0)))]


class Service:
    """A coordinator and workers, each with GPU 0; close() stops them."""

    def __init__(self, context, folder, workers=("gpu",)):
        self.top, self.folder, self.env, self.daemons = context.top, folder, context.env, []
        self.folder.mkdir(exist_ok=True)
        self._started = 0.0  # when the last daemon was started
        try:
            self.coordinator = self._start("coordinator", "leat-coordinator", "--listen", "127.0.0.1:0",
                                           "--heartbeat-interval-ms", "200", "--lost-after-ms", "2000")
            self.workers = [self.start_worker(name) for name in workers]
        except BaseException:
            self.close()
            raise

    def start_worker(self, name):
        return self._start(name, "leat-worker", "--coordinator", self.coordinator.address, "--name", name, "--devices",
                           "0", *resources())

    def _start(self, name, program, *flags):
        self._started = time.time()
        daemon = cluster.Daemon(name, [str(self.top / "bin" / program), *flags], self.folder / f"{name}.log", self.env)
        self.daemons.append(daemon)
        return daemon

    def said(self, word):
        """Returns the lines of the first worker's log that contain `word`."""
        text = pathlib.Path(self.workers[0].log).read_text(errors="replace")
        return [line for line in text.splitlines() if word in line]

    def ready_seconds(self):
        """Returns the time from the last worker's start until its GPU was ready, from its log; None: it has none."""
        lines = self.said("gpu.ready")
        if not lines:
            return None
        at = datetime.datetime.fromisoformat(lines[0].split()[0].replace("Z", "+00:00"))
        return at.timestamp() - self._started

    def about(self):
        lines = self.said("gpu.")
        return lines[0][:300] if lines else "its log says nothing of a GPU"

    def worker_stats(self):
        """Returns the statistics of every worker, from its last heartbeat to the coordinator."""
        done = subprocess.run([str(self.top / "checks/e2e_consumer"), "--address", self.coordinator.address, "--get",
                               "workers"], capture_output=True, text=True, env=self.env)
        return [worker.get("stats", {}) for worker in json.loads(done.stdout).get("workers", [])]

    def stats(self):
        """Returns the same of every worker's GPU."""
        return [device for worker in self.worker_stats() for device in worker.get("devices", [])]

    def counts(self):
        """Returns {what: rows until now}: all, by kept form, by the GPU's decoder, from coefficients and from codes;
        and {"busy STAGE": nanoseconds} of the threads in a stage, and with a group on a GPU."""
        workers, found = self.worker_stats(), collections.Counter()
        for stats in workers:
            found["all"] += int(stats.get("rows_total", 0))
            for dataset in stats.get("cached_datasets", []):
                for form in dataset.get("forms", []):
                    found[f"kept {form['form']}"] += int(form.get("hits_total", 0))
            for device in stats.get("devices", []):
                for name in (*DECODERS, "coefficients", "codes"):
                    found[f"rows_{name}_total"] += int(device.get(f"rows_{name}_total", 0))
            for stage in stats.get("stages", []):
                found[f"busy {stage.get('stage', '')}"] += int(stage.get("busy_ns_total", 0))
        return found

    def gpu_rows(self):
        """Returns how many rows went through the GPU, by decoder."""
        return {name: sum(int(device.get(f"rows_{name}_total", 0)) for device in self.stats())
                for name in DECODERS}

    def consume(self, spec_path, epochs, transport):
        """Returns (hashes, transport) of a consumer in C++ over a forced transport. RuntimeError: its message."""
        done = self._consumer(spec_path, transport, "--epochs", epochs)
        lines = [line.split() for line in done.stdout.splitlines()]
        if done.returncode != 0 or not lines or lines[-1][0] != "end":
            raise RuntimeError((done.stdout.splitlines() or done.stderr.splitlines() or ["no answer"])[-1])
        return [words[4] for words in lines if words[0] == "step"], lines[-1][8]

    def rate(self, spec_path, transport, seconds):
        """Returns (rows per second, bytes of rows per second, transport) of such a consumer that hashes nothing."""
        done = self._consumer(spec_path, transport, "--rate-s", seconds)
        words = (done.stdout.splitlines() or [""])[-1].split()
        if done.returncode != 0 or words[:1] != ["rate"]:
            raise RuntimeError(" ".join(words) or done.stderr.strip() or "no answer")
        return float(words[1]), float(words[2]), words[3]

    def _consumer(self, spec_path, transport, *flags):
        return subprocess.run([str(self.top / "checks/e2e_consumer"), "--address", self.coordinator.address, "--spec",
                               str(spec_path), *DEVICE.get(transport, []), *map(str, flags)], capture_output=True,
                              text=True, env={**self.env, **TRAINER, "LEAT_TRANSPORT": transport})

    def paced(self, spec_path, transport, *flags, env=None):
        """Starts a consumer that takes a step when it is told to (cluster.Consumer)."""
        argv = ["--address", self.coordinator.address, "--spec", str(spec_path), *DEVICE.get(transport, []), *flags]
        return cluster.Consumer(argv, self.folder / "consumer.log",
                                {**self.env, **TRAINER, "LEAT_TRANSPORT": transport, **(env or {})})

    def pull(self, job, framework, transport, env, *flags):
        """Returns the output of pull.py, as a dict. RuntimeError: the last line of its output."""
        return self.script("pull.py", job, transport, env, "--framework", framework, *flags)

    def script(self, name, job, transport, env, *flags):
        """Returns the same of another script that pulls a job."""
        script = pathlib.Path(__file__).with_name(name)
        done = subprocess.run([sys.executable, "-B", str(script), "--address", self.coordinator.address, "--job", job,
                               *map(str, flags)], capture_output=True, text=True,
                              env={**env, "LEAT_TRANSPORT": transport})
        if done.returncode != 0:
            raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
        return json.loads(done.stdout.strip().splitlines()[-1])

    def stop(self):
        """Returns the exit codes of all daemons, in the order in which they were stopped."""
        return [daemon.stop() for daemon in reversed(self.daemons)]

    def close(self):
        for daemon in reversed(self.daemons):
            daemon.close()


def spec(folder, name, photos, batch, decoder="EXACT"):
    """Writes the JobSpec of decode, random_resized_crop 224 and flip, with labels; returns its path."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({
        "name": name, "pipeline": cluster.train_graph(photos), "seed": 7, "batch": batch,
        "last_batch": "LAST_BATCH_FILL", "decoder_class": f"DECODER_CLASS_{decoder}"}))
    return path


def oracle(context, spec_path, epochs):
    """Returns the hashes that every batch of a job of class exact must have, computed by the CPU only."""
    done = subprocess.run([str(context.program("leat_oracle")), str(spec_path), str(epochs)], capture_output=True,
                          text=True, env=context.env)
    if done.returncode != 0:
        raise RuntimeError(f"leat_oracle: {done.stderr.strip()}")
    return [line.split()[2] for line in done.stdout.splitlines()]


def site(top, folder):
    """Unpacks the bundle's wheel; returns the folder for PYTHONPATH."""
    import zipfile
    target = folder / "site"
    (wheel,) = (top / "wheel").glob("leat_data-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
        for entry in archive.infolist():
            if entry.external_attr >> 16 & 0o100:
                os.chmod(target / entry.filename, 0o755)
    return target

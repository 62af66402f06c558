# SPDX-License-Identifier: Apache-2.0
"""Coordinator, GPU workers and consumers of a bundle on this machine."""

import json
import os
import pathlib
import subprocess
import sys

import cluster  # tests/e2e/cluster.py

DEVICE = {"cuda": ["--device", "0"]}  # a consumer's flags by plane
TRAINER = {"LEAT_FAKE_CUDA_TRAINER": "1"}  # a consumer's environment; only the lookalike looks at it


class Service:
    """A coordinator and workers, each with GPU 0; stopped by close()."""

    def __init__(self, context, folder, workers=("gpu",)):
        self.top, self.folder, self.env, self.daemons = context.top, folder, context.env, []
        self.folder.mkdir(exist_ok=True)
        try:
            self.coordinator = self._start("coordinator", "leat-coordinator", "--listen", "127.0.0.1:0",
                                           "--heartbeat-interval-ms", "200", "--lost-after-ms", "2000")
            self.workers = [self.start_worker(name) for name in workers]
        except BaseException:
            self.close()
            raise

    def start_worker(self, name):
        return self._start(name, "leat-worker", "--coordinator", self.coordinator.address, "--name", name, "--devices",
                           "0")

    def _start(self, name, program, *flags):
        daemon = cluster.Daemon(name, [str(self.top / "bin" / program), *flags], self.folder / f"{name}.log", self.env)
        self.daemons.append(daemon)
        return daemon

    def said(self, word):
        """Lines of the first worker's log with `word` in them."""
        text = pathlib.Path(self.workers[0].log).read_text(errors="replace")
        return [line for line in text.splitlines() if word in line]

    def about(self):
        lines = self.said("gpu.")
        return lines[0][:300] if lines else "its log says nothing of a GPU"

    def stats(self):
        """The statistics of every worker's GPU, as the coordinator knows them by the last heartbeat."""
        done = subprocess.run([str(self.top / "checks/e2e_consumer"), "--address", self.coordinator.address, "--get",
                               "workers"], capture_output=True, text=True, env=self.env)
        return [device for worker in json.loads(done.stdout).get("workers", [])
                for device in worker.get("stats", {}).get("devices", [])]

    def gpu_rows(self):
        """How many rows went through the GPU, by decoder."""
        return {name: sum(int(device.get(f"rows_{name}_total", 0)) for device in self.stats())
                for name in ("exact", "hardware", "cuda", "host")}

    def consume(self, spec_path, epochs, plane):
        """(hashes, plane) of a consumer in C++ over a forced plane. RuntimeError: its message."""
        done = self._consumer(spec_path, plane, "--epochs", epochs)
        lines = [line.split() for line in done.stdout.splitlines()]
        if done.returncode != 0 or not lines or lines[-1][0] != "end":
            raise RuntimeError((done.stdout.splitlines() or done.stderr.splitlines() or ["no answer"])[-1])
        return [words[4] for words in lines if words[0] == "step"], lines[-1][8]

    def rate(self, spec_path, plane, seconds):
        """(rows a second, bytes of rows a second, plane) of such a consumer that hashes nothing."""
        done = self._consumer(spec_path, plane, "--rate-s", seconds)
        words = (done.stdout.splitlines() or [""])[-1].split()
        if done.returncode != 0 or words[:1] != ["rate"]:
            raise RuntimeError(" ".join(words) or done.stderr.strip() or "no answer")
        return float(words[1]), float(words[2]), words[3]

    def _consumer(self, spec_path, plane, *flags):
        return subprocess.run([str(self.top / "checks/e2e_consumer"), "--address", self.coordinator.address, "--spec",
                               str(spec_path), *DEVICE.get(plane, []), *map(str, flags)], capture_output=True,
                              text=True, env={**self.env, **TRAINER, "LEAT_PLANE": plane})

    def paced(self, spec_path, plane, *flags, env=None):
        """A consumer that takes a step when it is told to (cluster.Consumer)."""
        argv = ["--address", self.coordinator.address, "--spec", str(spec_path), *DEVICE.get(plane, []), *flags]
        return cluster.Consumer(argv, self.folder / "consumer.log",
                                {**self.env, **TRAINER, "LEAT_PLANE": plane, **(env or {})})

    def pull(self, job, framework, plane, env, *flags):
        """What pull.py prints, as a dict. RuntimeError: the last line of what it said."""
        return self.script("pull.py", job, plane, env, "--framework", framework, *flags)

    def script(self, name, job, plane, env, *flags):
        """The same of another script that pulls a job."""
        script = pathlib.Path(__file__).with_name(name)
        done = subprocess.run([sys.executable, "-B", str(script), "--address", self.coordinator.address, "--job", job,
                               *map(str, flags)], capture_output=True, text=True,
                              env={**env, "LEAT_PLANE": plane, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
        if done.returncode != 0:
            raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
        return json.loads(done.stdout.strip().splitlines()[-1])

    def stop(self):
        """Exit codes of all, in the order in which they were stopped."""
        return [daemon.stop() for daemon in reversed(self.daemons)]

    def close(self):
        for daemon in reversed(self.daemons):
            daemon.close()


def spec(folder, name, photos, batch, decoder="EXACT"):
    """Writes the JobSpec of decode, random_resized_crop 224 and flip, with labels; its path."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({
        "name": name, "pipeline": cluster.train_graph(photos), "seed": 7, "batch": batch,
        "last_batch": "LAST_BATCH_FILL", "decoder_class": f"DECODER_CLASS_{decoder}"}))
    return path


def oracle(context, spec_path, epochs):
    """The hashes that every batch of a job of class exact must have, computed by the CPU alone."""
    done = subprocess.run([str(context.program("leat_oracle")), str(spec_path), str(epochs)], capture_output=True,
                          text=True, env=context.env)
    if done.returncode != 0:
        raise RuntimeError(f"leat_oracle: {done.stderr.strip()}")
    return [line.split()[2] for line in done.stdout.splitlines()]


def site(top, folder):
    """Unpacks the bundle's wheel; the folder for PYTHONPATH."""
    import zipfile
    target = folder / "site"
    (wheel,) = (top / "wheel").glob("leat_data-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
        for entry in archive.infolist():
            if entry.external_attr >> 16 & 0o100:
                os.chmod(target / entry.filename, 0o755)
    return target

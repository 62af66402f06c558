# SPDX-License-Identifier: Apache-2.0
"""Coordinator, GPU worker and consumers of a bundle on this machine: bytes on every plane, and rates."""

import json
import os
import pathlib
import subprocess
import sys

import cluster  # tests/e2e/cluster.py


class Service:
    """A coordinator and one worker with GPU 0; stopped by close()."""

    def __init__(self, top, folder, env, threads=None):
        self.top, self.folder, self.env, self.daemons = top, folder, env, []
        try:
            self.coordinator = self._start("coordinator", "leat-coordinator", "--listen", "127.0.0.1:0")
            flags = [] if threads is None else ["--threads", str(threads)]
            self.worker = self._start("worker", "leat-worker", "--coordinator", self.coordinator.address, "--name",
                                      "gpu", "--devices", "0", *flags)
        except BaseException:
            self.close()
            raise

    def _start(self, name, program, *flags):
        daemon = cluster.Daemon(name, [str(self.top / "bin" / program), *flags], self.folder / f"{name}.log", self.env)
        self.daemons.append(daemon)
        return daemon

    def said(self, word):
        """Lines of the worker's log with `word` in them."""
        text = pathlib.Path(self.worker.log).read_text(errors="replace")
        return [line for line in text.splitlines() if word in line]

    def gpu_rows(self):
        """How many rows went through the GPU, by decoder, as the coordinator knows."""
        done = subprocess.run([str(self.top / "checks/e2e_consumer"), "--address", self.coordinator.address, "--get",
                               "workers"], capture_output=True, text=True, env=self.env, timeout=60)
        counts = {}
        for worker in json.loads(done.stdout).get("workers", []):
            for device in worker.get("stats", {}).get("devices", []):
                for name in ("exact", "hardware", "cuda", "host"):
                    counts[name] = counts.get(name, 0) + int(device.get(f"rows_{name}_total", 0))
        return counts

    def stop(self):
        """Exit codes of all, in the order in which they were stopped."""
        return [daemon.stop() for daemon in reversed(self.daemons)]

    def close(self):
        for daemon in reversed(self.daemons):
            daemon.close()


def spec(folder, name, photos, batch, decoder="EXACT"):
    """Writes the JobSpec of the issue's pipeline (decode, random_resized_crop 224, flip; labels); its path."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps({
        "name": name, "pipeline": cluster.train_graph(photos), "seed": 7, "batch": batch,
        "last_batch": "LAST_BATCH_FILL", "decoder_class": f"DECODER_CLASS_{decoder}"}))
    return path


def oracle(top, spec_path, epochs, env, timeout_s):
    """The hashes that every batch of a job of class exact must have, computed by the CPU alone."""
    done = subprocess.run([str(top / "checks/leat_oracle"), str(spec_path), str(epochs)], capture_output=True,
                          text=True, env=env, timeout=timeout_s)
    if done.returncode != 0:
        raise RuntimeError(f"leat_oracle: {done.stderr.strip()}")
    return [line.split()[2] for line in done.stdout.splitlines()]


def consume(top, service, spec_path, epochs, plane, env, timeout_s):
    """(hashes, words of the last line) of a consumer in C++ over a forced plane. RuntimeError: its message."""
    device = ["--device", "0"] if plane == "cuda" else []
    done = subprocess.run([str(top / "checks/e2e_consumer"), "--address", service.coordinator.address, "--spec",
                           str(spec_path), "--epochs", str(epochs), *device], capture_output=True, text=True,
                          env={**env, "LEAT_PLANE": plane}, timeout=timeout_s)
    lines = [line.split() for line in done.stdout.splitlines()]
    if done.returncode != 0 or not lines or lines[-1][0] != "end":
        raise RuntimeError((done.stdout.splitlines() or done.stderr.splitlines() or ["no answer"])[-1])
    return [words[4] for words in lines if words[0] == "step"], lines[-1]


def pull(service, job, framework, plane, env, timeout_s, *flags):
    """What pull.py prints, as a dict. RuntimeError: the last line of what it said."""
    script = pathlib.Path(__file__).with_name("pull.py")
    done = subprocess.run([sys.executable, "-B", str(script), "--address", service.coordinator.address, "--job", job,
                           "--framework", framework, *map(str, flags)], capture_output=True, text=True,
                          env={**env, "LEAT_PLANE": plane, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, timeout=timeout_s)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


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

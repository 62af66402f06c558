# SPDX-License-Identifier: Apache-2.0
"""A real Ray cluster on this machine, whose autoscaler adds nodes (processes of this machine) and takes them away."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest

try:
    import ray
except ModuleNotFoundError:
    ray = None

# A node of the autoscaler has room for one worker.
NODE = {"resources": {"CPU": 1, "leat": 1, "object_store_memory": 80_000_000}, "node_config": {}, "min_workers": 0,
        "max_workers": 4}
CONFIG = {
    "cluster_name": "leat", "max_workers": 4, "auth": {}, "docker": {}, "upscaling_speed": 10.0,
    "provider": {"type": "fake_multinode", "use_node_id_as_ip": True, "disable_node_updaters": True,
                 "disable_launch_config_check": True},
    "available_node_types": {"head": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0}, "node": NODE},
    "head_node_type": "head", "idle_timeout_minutes": 0.1, "file_mounts": {}, "cluster_synced_files": [],
    "file_mounts_sync_continuously": False, "rsync_exclude": [], "rsync_filter": [], "initialization_commands": [],
    "setup_commands": [], "head_setup_commands": [], "worker_setup_commands": [], "head_start_ray_commands": [],
    "worker_start_ray_commands": [],
}  # fmt: skip
PORT = 6379  # the fake nodes look for the head there
PATIENCE_S = 120


class RayCluster:
    """A head without cores; `ray` of this process is connected to it."""

    def __init__(self, folder, environment):
        if ray is None:
            raise unittest.SkipTest("no ray: deploy/install-dependencies --python engines build/venv-engines")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", PORT)) == 0:
                raise unittest.SkipTest(f"something listens on port {PORT}, where Ray's nodes look for the head")
        folder.mkdir()
        self._tag = f"LEAT_RAY_TEST={folder}"
        config = folder / "autoscaler.yaml"
        config.write_text(json.dumps(CONFIG))
        binaries = pathlib.Path(sys.executable).parent
        name, _, value = self._tag.partition("=")
        self._environment = {**os.environ, **environment, "AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_FAKE_CLUSTER": "1",
                             "RAY_DISABLE_IMPORT_WARNING": "1", "PATH": f"{binaries}:{os.environ['PATH']}", name: value}
        self._log = open(folder / "head.log", "wb")
        self._head = subprocess.Popen(
            [str(binaries / "ray"), "start", "--head", "--block", f"--port={PORT}", "--num-cpus=0",
             "--object-store-memory=80000000", "--include-dashboard=false", f"--autoscaling-config={config}",
             "--disable-usage-stats", "--node-ip-address=127.0.0.1"], env=self._environment, stdout=self._log,
            stderr=subprocess.STDOUT)
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                ray.init(f"127.0.0.1:{PORT}", log_to_driver=False, logging_level="ERROR")
                return
            except (ConnectionError, RuntimeError, ValueError):
                if time.monotonic() > end or self._head.poll() is not None:
                    self.close()
                    log = (folder / "head.log").read_text(errors="replace")
                    raise AssertionError(f"no Ray: {log[-3000:]}") from None
                time.sleep(0.5)

    def nodes(self):
        """How many nodes the autoscaler has added."""
        return sum(1 for each in ray.nodes() if each["Alive"] and each["Resources"].get("leat"))

    def processes(self, word):
        """The processes of this cluster whose command lines have the word."""
        found = []
        for each in pathlib.Path("/proc").iterdir():
            if each.name.isdigit() and int(each.name) != os.getpid():
                try:
                    tagged = self._tag.encode() in (each / "environ").read_bytes()
                    if tagged and word.encode() in (each / "cmdline").read_bytes().replace(b"\0", b" "):
                        found.append(int(each.name))
                except OSError:
                    continue
        return found

    def close(self):
        """Ends every process of it, and no other Ray's."""
        ray.shutdown()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self.processes(""):
                try:
                    os.kill(process, number)
                except OSError:
                    continue
            time.sleep(2)
        self._head.wait()
        self._log.close()

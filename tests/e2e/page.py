# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the coordinator's page: a coordinator with a page, and a crowd that it shows."""

import http.client
import json
import os
import pathlib
import re
import subprocess

import cluster
from browser import Browser
from cluster import PATIENCE_S, program

WORKERS, CONSUMERS, JOBS = 1000, 12, ("resnet50", "vit-l.pretrain")
MARKUP = "<img/src=x/onerror=alert(1)>"
OWN = "an-own-token-of-the-daemon"


class Crowd:
    """A leat_crowd that is ready."""

    def __init__(self, address, workers, consumers, jobs, env=None):
        self.process = subprocess.Popen(
            [program("CROWD"), address, MARKUP, str(workers), str(consumers), *jobs], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, bufsize=0, env={**os.environ, **(env or {})})
        line = cluster.read_line(self.process.stdout, "leat_crowd")
        if line != "ready":
            raise AssertionError(f"leat_crowd said {line!r}")

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()


def http_address(daemon):
    return re.search(r"http\.serving address=(\S+)", pathlib.Path(daemon.log).read_text())[1]


def ask(address, path, method="GET", body=None, **fields):
    """Returns status, headers and text."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body=body,
                           headers={name.replace("_", "-"): value for name, value in fields.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


class PageTest(cluster.ClusterTest):
    def start(self, *flags, listen="127.0.0.1:0", http="127.0.0.1:0", env=None):
        """Starts a coordinator that waits long for workers and consumers that are late on a busy machine."""
        argv = [program("COORDINATOR"), "--listen", listen, "--http", http, "--lost-after-ms", "30000",
                "--state", str(self.folder / "state"), *flags]
        self.coordinator = self._keep(cluster.Daemon("coordinator", argv, self._log("coordinator"), env))
        self.address = http_address(self.coordinator)
        return f"http://{self.address}/"

    def crowd(self, workers=WORKERS, consumers=CONSUMERS, jobs=JOBS, env=None):
        """Starts a crowd, and waits until the coordinator has its reports."""
        crowd = self._keep(Crowd(self.coordinator.address, workers, consumers, jobs, env))
        token = {"Authorization": f"Bearer {env['LEAT_ACCESS_TOKEN']}"} if env else {}

        def heard():
            state = json.loads(ask(self.address, "/api/state", **token)[2])
            told = sum("stats" in worker for worker in state["status"].get("workers", []))
            return told == workers and sum(int(each["stats"].get("rows_total", 0)) > 0
                                           for each in state["consumers"]) == consumers * len(jobs)

        self.until("the crowd is there", heard)
        return crowd

    def browser(self, **options):
        return self._keep(Browser(self.folder, **options))

    def state(self):
        return json.loads(ask(self.address, "/api/state")[2])

    def cli(self, *words):
        """Returns the CLI's output."""
        done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, *words, "-o", "json"],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertIn(done.returncode, (0, 6), done.stderr)
        return json.loads(done.stdout)

    def shown(self, browser):
        self.until("the page shows a state", lambda: browser.ask("document.body.dataset.shown"))

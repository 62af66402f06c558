# SPDX-License-Identifier: Apache-2.0
"""What `leat bottleneck` says of trainings that are limited by something known."""

import json
import subprocess
import threading
import time
import unittest

import faults
import web
from faults import ChaosTest, Stutter, cluster

SINCE_S = 6  # judged by so much
LARGE = 224  # a side: rows of 150 kB


class Limits(ChaosTest):
    """A trainer that takes whatever comes, and one thing that holds it up."""

    def setUp(self):
        super().setUp()
        self.start_coordinator()

    def train_on(self, side=LARGE, batch=64, window=4, graph=None, **flags):
        """A trainer without an end that does nothing with its batches."""
        spec = self.spec(graph or cluster.train_graph(cluster.photos(), side), batch=batch)
        return self.consumer(spec, "--rate-s", 600, "--window", window,
                             **{"env": {"LEAT_PLANE": "grpc"}, **flags})

    def bottleneck(self):
        done = subprocess.run([cluster.program("CLI"), "--coordinator", self.coordinator.address, "bottleneck", "job",
                               "--since", f"{SINCE_S}s", "-o", "json"],
                              capture_output=True, text=True, timeout=cluster.PATIENCE_S)
        return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr}

    def assert_limit(self, limit, subject=None):
        """The verdict comes to be `limit`."""
        end, answer = time.monotonic() + cluster.PATIENCE_S, None
        while time.monotonic() < end:
            answer = self.bottleneck()
            whole = int(answer.get("seen", "0s").rstrip("s") or 0) >= SINCE_S - 2
            if whole and answer["limit"] == limit and subject in (None, answer["subject"]):
                self.assertEqual(len(answer["figures"]), 3, answer)
                self.assertTrue(answer["advice"], answer)
                return answer
            threading.Event().wait(0.3)  # a look costs CPU, which is what is judged here
        self.fail(f"never {limit} {subject or ''}, but {json.dumps(answer, indent=1)}")

    def train_at(self, step_s, batch=8):
        """A trainer whose steps take so long: with others than that one thing there is time."""
        consumer = self.train(spec=self.spec(cluster.train_graph(cluster.photos(), faults.SIDE), batch=batch),
                              epochs=1000)
        stop = threading.Event()

        def train():
            while not stop.wait(step_s):
                consumer.pull(1)

        thread = threading.Thread(target=train, daemon=True)
        self.addCleanup(thread.join, cluster.PATIENCE_S)
        self.addCleanup(stop.set)
        thread.start()

    def test_a_slow_trainer(self):
        self.start_worker(threads=2)
        self.train_at(0.1)
        self.assert_limit("trainer")

    def test_few_threads(self):
        self.start_worker(threads=1)
        self.train_on()
        self.assert_limit("decode_cpu")

    def test_operators_that_are_long(self):
        self.start_worker(threads=1)
        graph = cluster.train_graph(cluster.photos(), 64)
        graph["nodes"].append(cluster.node("gaussian_blur", (4, 0), window_size={"int_value": 31}))
        graph["outputs"][0]["ref"]["node"] = 5
        self.train_on(graph=graph)
        self.assert_limit("decode_cpu")

    def serve_photos(self):
        """(server, graph): the photos over http."""
        photos = self.folder / "objects"
        photos.mkdir()
        names = []
        for number, photo in enumerate(cluster.test_data.images(cluster.photos())):
            names.append(f"{number:03}.jpg")
            (photos / names[-1]).write_bytes(photo.read_bytes())
        (photos / "list.txt").write_text("".join(f"{name} {i % 10}\n" for i, name in enumerate(names)))
        server = self._keep(web.Web(photos))
        graph = cluster.train_graph("", faults.SIDE)
        graph["nodes"][0] = cluster.node("readers.file_list", path={"string_value": f"{server.url}/list.txt"})
        return server, graph

    def test_a_slow_server(self):
        server, graph = self.serve_photos()
        self.start_worker("--cache", "0", threads=2)
        self.train_on(graph=graph, batch=16)
        server.set(late=1.0)
        self.assert_limit("storage")

    def test_few_reads_at_a_time(self):
        server, graph = self.serve_photos()
        self.start_worker("--cache", "0", "--read-threads", "2", threads=2)
        self.train_on(graph=graph, batch=16)
        server.set(late=0.1)
        self.assert_limit("storage")

    def test_a_narrow_link(self):
        _, proxy = self.worker_behind_a_proxy(threads=2)
        proxy.set(bytes_per_s=3_000_000)
        self.train_on()
        self.assert_limit("network")

    def test_a_narrow_link_of_one_worker(self):
        _, proxy = self.worker_behind_a_proxy(name="far", threads=1)
        self.start_worker(name="near", threads=1)
        proxy.set(bytes_per_s=100_000)
        self.train_at(0.15, batch=32)
        self.assert_limit("straggler", "far")

    def test_a_worker_that_stops_again_and_again(self):
        stopped = self.start_worker(name="stopped", threads=1)
        self.start_worker(name="running", threads=1)
        self._keep(Stutter(stopped, on_s=0.01, off_s=0.4))
        self.train_at(0.15, batch=32)
        self.assert_limit("straggler", "stopped")

    def test_a_small_window_over_a_long_way(self):
        _, proxy = self.worker_behind_a_proxy(threads=2)
        proxy.set(delay_s=0.15)
        self.train_on(side=16, batch=16, window=1)
        self.assert_limit("window")

    def test_no_worker(self):
        worker = self.start_worker()
        self.train_on(side=16, batch=16)
        self.until("a verdict", lambda: int(self.bottleneck().get("consumers", 0)) > 0)
        worker.kill9()
        self.assert_limit("workers")


if __name__ == "__main__":
    unittest.main()

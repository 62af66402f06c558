# SPDX-License-Identifier: Apache-2.0
"""What `leat bottleneck`, `leat top` and the page say of trainings that are limited by something known."""

import json
import pathlib
import re
import subprocess
import threading
import time
import unittest
import urllib.request

import faults
import web
from faults import ChaosTest, Stutter, cluster

SINCE_S = 6  # judged by so much
LARGE = 224  # a side: rows of 150 kB
# What a table calls them. The page and `leat top` judge by a minute, so they come to the verdict later.
TITLES = {"trainer": "trainer", "network": "network", "storage": "storage", "decode_cpu": "decode and augment",
          "decode_gpu": "decode and augment (GPU)", "straggler": "one straggler", "window": "too small a window",
          "workers": "no workers"}


class Limits(ChaosTest):
    """A trainer that takes whatever comes, and one thing that holds it up."""

    def setUp(self):
        super().setUp()
        log = pathlib.Path(self.start_coordinator("--http", "127.0.0.1:0").log)
        self.page = re.search(r"http\.serving address=(\S+)", log.read_text())[1]

    def train_on(self, side=LARGE, batch=64, window=4, graph=None, decoder_class="DECODER_CLASS_EXACT", **flags):
        """A trainer without an end that does nothing with its batches."""
        spec = self.spec(graph or cluster.train_graph(cluster.photos(), side), batch=batch, decoder_class=decoder_class)
        return self.consumer(spec, "--rate-s", 600, "--window", window,
                             **{"env": {"LEAT_PLANE": "grpc"}, **flags})

    def leat(self, *words):
        return subprocess.run([cluster.program("CLI"), "--coordinator", self.coordinator.address, *words],
                              capture_output=True, text=True, timeout=cluster.PATIENCE_S)

    def bottleneck(self):
        done = self.leat("bottleneck", "job", "--since", f"{SINCE_S}s", "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr}

    def on_the_page(self):
        """(limit, all that the page says of it) of the job, of its tables without scripts."""
        with urllib.request.urlopen(f"http://{self.page}/", timeout=cluster.PATIENCE_S) as answer:
            text = answer.read().decode()
        found = re.search(r'<section class="verdict"><h2>Job job</h2>\s*<p><strong>(\w+)</strong>(.*?)</section>', text,
                          re.S)
        return found.groups() if found else ("", "")

    def assert_shown(self, limit):
        """The table of `leat top jobs` and the page's say `limit`, too."""
        end, top, page = time.monotonic() + 2 * cluster.PATIENCE_S, "", ("", "")
        while time.monotonic() < end:
            top, page = self.leat("top", "jobs", "--count", "1").stdout, self.on_the_page()
            row = next((line for line in top.splitlines() if line.startswith("job ")), "")
            if f" {TITLES[limit]} (" in row and page[0] == limit:
                self.assertNotIn("\x1b", top)
                self.assertEqual(page[1].count("<li>"), 3, page)
                self.assertRegex(page[1], r"What to change: \w+")
                return
            threading.Event().wait(0.5)
        self.fail(f"never {limit}, but the page says {page}, and top\n{top}")

    def assert_limit(self, limit, subject=None):
        """The verdict comes to be `limit`, wherever it is shown."""
        end, answer = time.monotonic() + cluster.PATIENCE_S, None
        while time.monotonic() < end:
            answer = self.bottleneck()
            whole = int(answer.get("seen", "0s").rstrip("s") or 0) >= SINCE_S - 2
            if whole and answer["limit"] == limit and subject in (None, answer["subject"]):
                self.assertEqual(len(answer["figures"]), 3, answer)
                self.assertTrue(answer["advice"], answer)
                return self.assert_shown(limit)
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
        self.train_on(side=faults.SIDE)  # rows that take no time to send
        self.assert_limit("decode_cpu")

    def test_operators_that_are_long(self):
        self.start_worker(threads=1)
        graph = cluster.train_graph(cluster.photos(), 64)
        graph["nodes"].append(cluster.node("gaussian_blur", (4, 0), window_size={"int_value": 31}))
        graph["outputs"][0]["ref"]["node"] = 5
        self.train_on(graph=graph)
        self.assert_limit("decode_cpu")

    def test_a_slow_gpu(self):
        """A fake one, which computes on a core of the host, while the decode threads hand it files as they are."""
        fakes = cluster.fake_gpu()
        if not fakes:
            self.skipTest("no fake CUDA driver: this build has no GPU support")
        self.start_worker("--devices", "0", threads=2, env=fakes)
        self.train_on(decoder_class="DECODER_CLASS_NVJPEG")
        self.assert_limit("decode_gpu")

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

# SPDX-License-Identifier: Apache-2.0
"""Trainings whose bottleneck is known from their setup. `leat bottleneck`, asked every second from the beginning, must
answer with that limit, or that it is not known yet; in the end it must be the limit, in every view.

Each training has a service of its own, and all run in parallel, so delays rather than the processor's speed make the
limits. Those that compare workers with each other need a machine with spare processors: LEAT_LIMITS=all runs them, too.
LEAT_LIMITS=decode,network runs only these, and LEAT_LIMITS_SAID=1 prints the answers.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

import cluster

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
import faults  # noqa: E402
import web  # noqa: E402

LEAST_S = 25  # for which each is asked
STEADY = 5  # answers in a row, at the end
TINY, SMALL, LARGE = 16, 32, 224  # sides of rows
TITLES = {"unknown": "not known yet", "trainer": "trainer", "network": "network", "storage": "storage",
          "decode_cpu": "decode and augment", "decode_gpu": "decode and augment (GPU)", "straggler": "one straggler",
          "window": "too small a window", "workers": "no workers"}


class Training(faults.ChaosTest):
    """A service with a trainer, and the answers about it: (seconds since it began, answer)."""

    right = ""  # the limit
    subject = None  # the worker that it is about
    before = set()  # limits that were right for a while

    def runTest(self):
        """Allows making one outside of a suite."""

    def begin(self):
        self.setUp()
        self.said = []
        try:
            log = pathlib.Path(self.start_coordinator("--http", "127.0.0.1:0").log)
            self.page = re.search(r"http\.serving address=(\S+)", log.read_text())[1]
            self.build()
        except BaseException:
            self.doCleanups()
            raise
        self.asker = subprocess.Popen(
            [cluster.program("CLI"), "--coordinator", self.coordinator.address, "bottleneck", "job", "--watch",
             "--interval", "1s", "-o", "jsonl"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def listen(self):
        for line in self.asker.stdout:
            self.said.append((time.monotonic() - self.began, json.loads(line)))

    def end(self):
        self.asker.kill()
        self.asker.wait()
        self.reader.join(cluster.PATIENCE_S)
        self.asker.stdout.close()
        self.doCleanups()

    def watch(self):
        """Ends the service when the right limit has been reported for a while; sets `wrong`."""
        try:
            end = self.began + 2 * cluster.PATIENCE_S
            while time.monotonic() < end and not self.is_enough():
                threading.Event().wait(0.3)
            self.wrong = self.judge()
        except Exception as error:  # reported by the test
            self.wrong = repr(error)
        finally:
            self.end()

    def is_enough(self):
        newest = [answer["limit"] for _, answer in self.said[-STEADY:]]
        return newest == STEADY * [self.right] and time.monotonic() > self.began + LEAST_S

    def table(self):
        """Returns the answers that differ from the one before, for people."""
        lines, last = [], None
        for at, answer in self.said:
            one = (answer["limit"], answer.get("subject"))
            if one != last:
                figures = "; ".join(f"{figure['what']}: {figure.get('value', 0):.1f} {figure['unit']}"
                                    for figure in answer.get("figures", []))
                lines.append(f"  {at:5.1f} s  {' '.join(filter(None, one))}: {answer['summary']}. {figures}")
            last = one
        return "\n".join([f"{type(self).__name__}:", *lines, f"  {len(self.said)} answers"])

    def judge(self):
        """Returns what was wrong with the answers, "" for nothing."""
        for at, answer in self.said:
            if answer["limit"] not in {"unknown", self.right, *self.before}:
                return f"{answer['limit']} after {at:.0f} s"
            if answer["limit"] == self.right and self.subject not in (None, answer["subject"]):
                return f"{answer['subject']} after {at:.0f} s"
            if not answer["advice"] or len(answer.get("figures", [])) != (0 if answer["limit"] == "unknown" else 3):
                return f"no advice, or no three figures, after {at:.0f} s"
        if [answer["limit"] for _, answer in self.said[-STEADY:]] != STEADY * [self.right]:
            return f"not {self.right} in the end"
        return self.judge_shown()

    def judge_shown(self):
        """The page, `leat top`, `leat get` and `leat status` agree, as far as they are asked at the same time."""
        title, wrong = f" {TITLES[self.right]} (", ""
        for _ in range(20):
            tables = {words: self.leat(*words.split()) for words in ("top jobs --count 1", "get jobs", "status")}
            page = self.on_the_page()
            wrong = "\n".join([f"leat {words}: {text}" for words, text in tables.items() if title not in text])
            if page[0] != TITLES[self.right] or page[1].count("<li>") != 3:
                wrong += f"page: {page}"
            if not wrong:
                return ""
            threading.Event().wait(0.5)
        return wrong

    def leat(self, *words):
        done = subprocess.run([cluster.program("CLI"), "--coordinator", self.coordinator.address, *words],
                              capture_output=True, text=True, timeout=cluster.PATIENCE_S,
                              env={**os.environ, "COLUMNS": "200"})
        return done.stdout + done.stderr

    def on_the_page(self):
        """Returns (limit, the page's text about it) of the job, from its tables without scripts."""
        with urllib.request.urlopen(f"http://{self.page}/", timeout=cluster.PATIENCE_S) as answer:
            text = answer.read().decode()
        verdict = r'<section class="verdict"><h2>Job job</h2>\s*<p><strong>([^<]+)</strong>(.*?)</section>'
        found = re.search(verdict, text, re.S)
        return found.groups() if found else ("", "")

    def train_on(self, graph=None, side=SMALL, batch=16, window=4, step_s=0, decoder_class="DECODER_CLASS_EXACT"):
        """Starts a trainer without an end, whose steps take `step_s`."""
        spec = self.spec(graph or cluster.train_graph(cluster.photos(), side), batch=batch, decoder_class=decoder_class)
        self.consumer(spec, "--rate-s", 600, "--step-s", step_s, "--window", window, env={"LEAT_TRANSPORT": "grpc"})
        self.began = time.monotonic()
        self.until("a job", lambda: self.get("jobs").get("jobs") or threading.Event().wait(0.1))

    def serve_photos(self):
        """Returns (server, graph): the photos over http."""
        photos = self.folder / "objects"
        photos.mkdir()
        names = []
        for number, photo in enumerate(cluster.test_data.images(cluster.photos())):
            names.append(f"{number:03}.jpg")
            (photos / names[-1]).write_bytes(photo.read_bytes())
        (photos / "list.txt").write_text("".join(f"{name} {i % 10}\n" for i, name in enumerate(names)))
        server = self._keep(web.Web(photos))
        graph = cluster.train_graph("", SMALL)
        graph["nodes"][0] = cluster.node("readers.file_list", path={"string_value": f"{server.url}/list.txt"})
        return server, graph

    def start_slow_worker(self, *flags, on_s=0.01, off_s=0.04, **options):
        """Starts a worker whose processor is slow."""
        self._keep(faults.Stutter(self.start_worker(*flags, **options), on_s, off_s))


class Decode(Training):
    right = "decode_cpu"

    def build(self):
        self.start_slow_worker("--forms", "none", threads=1)
        self.train_on()


class Augment(Training):
    """Pixels that need no decoding."""

    right = "decode_cpu"

    def build(self):
        def square(side):
            return {"ints_value": {"values": [side, side]}}

        self.start_slow_worker(threads=1)
        images, labels = ({"string_value": str(cluster.test_data.made("mnist") / f"t10k-{name}-ubyte.gz")}
                          for name in ("images-idx3", "labels-idx1"))
        self.train_on({"nodes": [cluster.node("readers.idx", images=images, labels=labels),
                                 cluster.node("resize", (0, 0), size=square(LARGE)),
                                 cluster.node("gaussian_blur", (1, 0), window_size={"int_value": 31}),
                                 cluster.node("resize", (2, 0), size=square(TINY))],
                       "outputs": [{"name": "image", "ref": {"node": 3}}]})


class Storage(Training):
    right = "storage"

    def build(self):
        server, graph = self.serve_photos()
        self.start_worker("--cache", "0", "--read-threads", "8", threads=2)
        self.train_on(graph)
        server.set(late=1.0)


class StorageOfTwoWorkers(Training):
    """A server that is slow for both workers, and serves one of them before the other. A step takes seconds."""

    right = "storage"

    def build(self):
        server, graph = self.serve_photos()
        self.start_worker("--cache", "0", "--read-threads", "32", name="first", threads=1)
        self.start_worker("--cache", "0", "--read-threads", "2", name="second", threads=1)
        self.train_on(graph, batch=32)
        server.bytes_per_s = 150_000


class Network(Training):
    """A window of more rows than the sockets' buffers hold."""

    right = "network"

    def build(self):
        _, proxy = self.worker_behind_a_proxy(threads=2)
        proxy.set(bytes_per_s=2_000_000)
        self.train_on(side=LARGE, batch=64)


class Trainer(Training):
    right = "trainer"

    def build(self):
        self.start_worker(threads=2)
        self.train_on(batch=8, step_s=0.25)


class Window(Training):
    """Few rows over a long distance."""

    right = "window"

    def build(self):
        _, proxy = self.worker_behind_a_proxy(threads=2)
        proxy.set(delay_s=0.15)
        self.train_on(side=TINY, batch=8, window=1)


class OneSlowWorker(Training):
    """It stops for longer than a step takes, again and again."""

    right, subject = "straggler", "slow"

    def build(self):
        self.start_slow_worker("--forms", "none", name="slow", threads=1, on_s=0.005, off_s=0.3)
        self.start_worker("--forms", "none", name="fast", threads=1)
        self.train_on(batch=8, step_s=0.03, window=2)


class Again:
    """Does one thing for `on_s`, and the other for `off_s`, again and again."""

    def __init__(self, on, off, on_s, off_s):
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(on, off, on_s, off_s), daemon=True)
        self._thread.start()

    def _run(self, on, off, on_s, off_s):
        while not self._stop.wait(off_s):
            on()
            self._stop.wait(on_s)
            off()

    def close(self):
        self._stop.set()
        self._thread.join(10)


class OneBadMount(Training):
    """It hangs for longer than a step takes, again and again."""

    right, subject = "straggler", "bad"

    def build(self):
        mount = self.file_faults(cluster.photos())
        self.start_worker("--cache", "0", name="bad", env=mount.env)
        for name in ("good0", "good1"):
            self.start_worker("--cache", "0", name=name)
        self.train_on(batch=6, step_s=0.03, window=2)
        self._keep(Again(lambda: mount.set(open=mount.HANG), mount.clear, on_s=0.25, off_s=0.03))


class ColdCache(Training):
    """Storage that limits the first epoch."""

    right, before = "trainer", {"storage"}

    def build(self):
        self.server, graph = self.serve_photos()
        self.start_worker("--read-threads", "40", threads=2)
        self.train_on(graph, batch=32, step_s=0.5)
        self.server.set(late=1.0)
        self.asked = 0

    def is_enough(self):
        if self.server.asked > self.asked:
            self.asked, self.cold_s = self.server.asked, time.monotonic() - self.began
        return super().is_enough()

    def judge(self):
        for at, answer in self.said:
            if answer["limit"] == "trainer" and at < self.cold_s:
                return f"trainer after {at:.0f} s, in the epoch of {self.cold_s:.0f} s"
            if answer["limit"] == "storage" and at > self.cold_s + 20:
                return f"storage after {at:.0f} s, {at - self.cold_s:.0f} s after the cold epoch"
        if all(answer["limit"] != "storage" for _, answer in self.said):
            return "never storage"
        return super().judge()


class LookalikeGpu(Training):
    """A GPU whose kernels run on a slow processor's core."""

    right = "decode_gpu"

    def build(self):
        fakes = cluster.fake_gpu()
        if not fakes:
            raise unittest.SkipTest("no fake CUDA driver: this build has no GPU support")
        self.start_slow_worker("--devices", "0", threads=2, env=fakes, off_s=0.03)
        self.train_on(side=LARGE, decoder_class="DECODER_CLASS_NVJPEG")


class NarrowLinkOfOneWorker(Training):
    right, subject = "straggler", "far"

    def build(self):
        _, proxy = self.worker_behind_a_proxy(name="far", threads=1)
        self.start_worker(name="near", threads=1)
        proxy.set(bytes_per_s=20_000)
        self.train_on(batch=8, step_s=0.03, window=2)


class NoWorker(Training):
    right = "workers"

    def build(self):
        worker = self.start_worker()
        self.train_on(side=TINY, step_s=0.25)
        self.until("a batch", lambda: self.get("consumers").get("consumers") or threading.Event().wait(0.1))
        worker.kill9()


TRAININGS = (ColdCache, StorageOfTwoWorkers, Storage, Network, Decode, Augment, Trainer, Window, OneSlowWorker,
             OneBadMount, LookalikeGpu, NarrowLinkOfOneWorker, NoWorker)  # the longest first
COMPARE_WORKERS = (OneSlowWorker, OneBadMount, NarrowLinkOfOneWorker)


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trainings, cls.skipped = {}, {}
        names = {training.__name__.lower() for training in TRAININGS}
        wanted = {name for name in os.environ.get("LEAT_LIMITS", "").lower().split(",") if name}
        if unknown := wanted - names - {"all"}:
            raise ValueError(f"LEAT_LIMITS: {sorted(unknown)}: want all, or some of {sorted(names)}")
        if not wanted:
            wanted = names - {training.__name__.lower() for training in COMPARE_WORKERS}
        for training in TRAININGS:
            if not wanted & {"all", training.__name__.lower()}:
                cls.skipped[training] = "LEAT_LIMITS does not name it"
                continue
            one = training()
            try:
                one.begin()
            except unittest.SkipTest as why:
                cls.skipped[training] = str(why)
                continue
            cls.trainings[training] = one
            cls.addClassCleanup(one.watcher.join)

    def test_whatever_is_said_is_right(self):
        for training in TRAININGS:
            with self.subTest(training.__name__):
                if training in self.skipped:
                    self.skipTest(self.skipped[training])
                one = self.trainings[training]
                one.watcher.join()
                if os.environ.get("LEAT_LIMITS_SAID"):
                    print(one.table(), file=sys.stderr, flush=True)
                self.assertEqual(one.wrong, "", one.table())


if __name__ == "__main__":
    unittest.main(defaultTest="Limits")

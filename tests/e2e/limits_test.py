# SPDX-License-Identifier: Apache-2.0
"""Trainings whose bottleneck is known from their setup. `leat bottleneck`, asked every second from the beginning, must
answer with that limit, or that it is not known yet; in the end it must be the limit, in every view.

Each training has a service of its own, and all run in parallel, so delays rather than the processor's speed make the
limits. Those that compare workers, or times on a link, need a machine with spare processors: LEAT_LIMITS=all runs them.
LEAT_LIMITS=decode,network runs only these, and LEAT_LIMITS_SAID=1 prints the answers.
"""

import os
import sys
import threading
import time
import unittest

import cluster
from limits import SMALL, Training

TINY, LARGE = 16, 224  # sides of rows


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
    """A mixture, one of whose sources is slow."""

    right, subject = "storage", "far"

    def build(self):
        server, graph = self.serve_photos()
        near = cluster.train_graph(cluster.photos(), SMALL)
        self.start_worker("--cache", "0", "--read-threads", "8", threads=2)
        self.train_on(sources=[{"name": "near", "pipeline": near}, {"name": "far", "pipeline": graph}],
                      shares=[{"weights": [1, 1]}], pipeline={}, last_batch="LAST_BATCH_STREAM")
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


class SlowLink(Training):
    """The sockets' buffers hold all rows of the window."""

    right = "network"

    def build(self):
        _, proxy = self.worker_behind_a_proxy(threads=2)
        proxy.set(bytes_per_s=250_000)
        self.train_on()


class SlowLinkOfTwoWorkers(Training):
    """One of them is behind the narrower part of it."""

    right = "network"

    def build(self):
        for number, rate in enumerate((150_000, 100_000)):
            _, proxy = self.worker_behind_a_proxy(name=f"w{number}", threads=1)
            proxy.set(bytes_per_s=rate)
        self.train_on()


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


TRAININGS = (ColdCache, StorageOfTwoWorkers, Storage, Network, SlowLink, SlowLinkOfTwoWorkers, Decode, Augment, Trainer,
             Window, OneSlowWorker, OneBadMount, LookalikeGpu, NarrowLinkOfOneWorker, NoWorker)  # the longest first
BY_HAND = (OneSlowWorker, OneBadMount, NarrowLinkOfOneWorker, SlowLink, SlowLinkOfTwoWorkers)


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trainings, cls.skipped = {}, {}
        names = {training.__name__.lower() for training in TRAININGS}
        wanted = {name for name in os.environ.get("LEAT_LIMITS", "").lower().split(",") if name}
        if unknown := wanted - names - {"all"}:
            raise ValueError(f"LEAT_LIMITS: {sorted(unknown)}: want all, or some of {sorted(names)}")
        if not wanted:
            wanted = names - {training.__name__.lower() for training in BY_HAND}
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

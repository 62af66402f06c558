# SPDX-License-Identifier: Apache-2.0
"""A training whose bottleneck is known from its setup, and whether `leat bottleneck` names it."""

import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.request

import cluster

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
import faults  # noqa: E402
import web  # noqa: E402

LEAST_S = 25  # for which each is asked
STEADY = 5  # answers in a row, at the end
SMALL = 32  # the side of rows
TITLES = {"unknown": "not known yet", "trainer": "trainer", "network": "network", "storage": "storage",
          "decode_cpu": "decode and augment", "decode_gpu": "decode and augment (GPU)", "straggler": "one straggler",
          "window": "too small a window", "source": "the script's own source", "workers": "no workers"}


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

    def train_on(self, graph=None, side=SMALL, batch=16, window=4, step_s=0, decoder_class="DECODER_CLASS_EXACT",
                 **changes):
        """Starts a trainer without an end, whose steps take `step_s`."""
        spec = self.spec(graph or cluster.train_graph(cluster.photos(), side), batch=batch, decoder_class=decoder_class,
                         **changes)
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

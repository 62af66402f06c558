# SPDX-License-Identifier: Apache-2.0
"""A service's reports about its state, as `leat` shows them: events, reports, muted findings, contexts."""

import html.parser
import json
import os
import subprocess
import unittest

import cluster
from cluster import PATIENCE_S, program, read_line


class Watcher:
    """`leat events --watch -o jsonl`, line by line."""

    def __init__(self, address, log, *about):
        self._log = open(log, "ab")
        self.process = subprocess.Popen(
            [program("CLI"), "--coordinator", address, "events", "--watch", "-o", "jsonl", *about],
            stdout=subprocess.PIPE, stderr=self._log, bufsize=0)

    def until(self, kind, about=None):
        """Returns the next event of a type, about `about`."""
        while True:
            line = read_line(self.process.stdout, f"an event {kind}")
            if not line:
                raise AssertionError(f"ended before {kind}: {self.process.wait(PATIENCE_S)}")
            event = json.loads(line)
            if event["type"] == kind and (about is None or about in event["subjects"]):
                return event

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self._log.close()


class CliTest(cluster.ClusterTest):
    def leat(self, *words, env=None, address=True):
        """Returns exit code, stdout and stderr."""
        at = ["--coordinator", self.coordinator.address] if address else []
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("LEAT_", "XDG_"))}
        done = subprocess.run([program("CLI"), *at, *map(str, words)], capture_output=True, text=True,
                              timeout=PATIENCE_S, env={**clean, "HOME": str(self.folder), **(env or {})})
        return done.returncode, done.stdout, done.stderr

    def watch(self, *about):
        return self._keep(Watcher(self.coordinator.address, self._log("events"), *about))


class EventsTest(CliTest):
    def test_a_watcher_sees_workers_and_the_coordinators_restart(self):
        self.start_coordinator()
        watcher = self.watch()
        self.assertEqual(watcher.until("coordinator.started")["sequence"], 1)
        self.start_worker(name="gone").stop()  # so that no event from before the start is pending
        self.assertEqual(watcher.until("finding.raised", "finding/NO_WORKERS")["severity"], "error")
        first = self.start_worker(name="w0")
        joined = watcher.until("worker.joined", "worker/w0")
        self.assertRegex(joined["at"], r"^\d{4}-\d\d-\d\dT.*Z$")
        self.coordinator.kill9()
        self.restart_coordinator()
        watcher.until("coordinator.started")
        again = watcher.until("worker.joined", "worker/w0")
        self.assertLess(again["sequence"], 100)
        self.assertEqual(first.stop(), 0)
        watcher.until("worker.left", "worker/w0")

    def test_a_lost_worker_is_told_with_its_finding(self):
        self.start_coordinator()
        self.start_worker()
        self.start_worker()
        self.start_worker()
        watcher = self.watch("worker/w1")
        watcher.until("worker.joined")
        self.workers[1].kill9()
        watcher.until("worker.disconnected")
        watcher.until("worker.lost")
        self.assertIn("worker/w1", watcher.until("finding.raised")["subjects"])

    def test_a_job_that_ends_is_watched_to_its_end(self):
        self.start_cluster(workers=1)
        self.consumer(self.spec(), epochs=1).finish()
        code, out, err = self.leat("events", "--watch", "--count", "3", "job/job", "-o", "name")
        self.assertEqual((code, out), (0, "job.created\nconsumer.opened\nconsumer.closed\n"), err)
        # Shorter than the time between two reports, the run has told its end as it closed.
        self.assertIn("ended at epoch 1, step 0", self.leat("events", "job/job")[1])
        job = json.loads(self.leat("get", "jobs", "-o", "json")[1])["jobs"][0]
        self.assertEqual((job["consumers"], job["epoch"], job["step"]), (0, 1, 0))
        self.assertRegex(self.leat("describe", "job", "job")[1], r"Position +epoch 1, step 0 of \d+\n")
        # A look is no training.
        sheet = self.leat("sheet", "job", "-o", self.folder / "sheet.png")
        self.assertEqual(sheet[0], 0, sheet)
        self.assertEqual(json.loads(self.leat("get", "jobs", "-o", "json")[1])["jobs"][0]["epoch"], 1)
        self.assertEqual(self.leat("delete", "job", "job", "--yes")[0], 0)
        code, out, _ = self.leat("events", "job/job", "-o", "json")
        self.assertEqual(code, 0)
        self.assertEqual(json.loads(out)["events"][-1]["type"], "job.deleted")
        # Without a terminal: no colours, one line per event, and nothing is cut, whatever COLUMNS is.
        code, out, _ = self.leat("events", env={"COLUMNS": "40"})
        self.assertNotIn("\x1b", out)
        for line in out.splitlines():
            self.assertRegex(line, r"^\d\d-\d\d \d\d:\d\d:\d\d  ")

    def test_wrong_use_and_nobody_there_have_their_exit_codes(self):
        self.start_coordinator()
        self.assertEqual(self.leat("events", "wrk/x")[0], 2)
        self.assertEqual(self.leat("health", "mute", "NO_SUCH")[0], 2)
        self.coordinator.stop()
        self.assertEqual(self.leat("--timeout", "1s", "events", "--watch")[0], 4)


class HealthTest(CliTest):
    def test_a_muted_finding_stays_muted_over_a_restart(self):
        self.start_coordinator()
        self.assertEqual(self.leat("health")[0], 0)  # earlier workers may still be connecting
        self.start_worker().stop()
        self.until("none is there", lambda: self.leat("health")[0] == 6)
        self.assertEqual(self.leat("health", "mute", "NO_WORKERS", "--for", "1h")[0], 0)
        code, out, _ = self.leat("health")
        self.assertEqual(code, 0)
        self.assertIn("NO_WORKERS (muted for", out)
        self.coordinator.kill9()
        self.restart_coordinator()
        self.assertEqual(self.leat("status")[0], 0)
        self.start_worker().stop()
        self.until("it is muted still", lambda: "NO_WORKERS (muted for" in self.leat("health")[1])
        self.assertEqual(self.leat("health", "unmute", "NO_WORKERS")[0], 0)
        self.assertEqual(self.leat("status")[0], 6)


class Tags(html.parser.HTMLParser):
    """Collects every tag that begins, and the text between them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


class ReportTest(CliTest):
    def test_a_report_holds_the_job_and_no_token(self):
        token = self.folder / "token"
        token.write_text("a-long-secret-of-this-test\n")
        self.start_coordinator("--access-token-file", str(token))
        self.start_worker("--access-token-file", str(token), name="<b>w0")
        secret = token.read_text().strip()
        self.consumer(self.spec(), "--access-token", secret, epochs=1).finish()
        path = self.folder / "r.html"
        code, _, err = self.leat("report", "-o", path, env={"LEAT_ACCESS_TOKEN": secret})
        self.assertEqual(code, 0, err)
        text = path.read_text()
        self.assertNotIn("a-long-secret", text)
        page = Tags(text)
        self.assertNotIn("b", page.tags)
        self.assertNotIn("script", page.tags)
        for part in ("<b>w0", "job.created", "Workers", "This machine"):
            self.assertIn(part, page.text)


class ContextTest(CliTest):
    def test_a_context_leads_to_its_service(self):
        token = self.folder / "token"
        token.write_text("a-long-secret-of-this-test\n")
        self.start_coordinator("--access-token-file", str(token))
        code, _, err = self.leat("context", "set", "lab", "--access-token-file", token)
        self.assertEqual(code, 0, err)
        config = self.folder / ".config/leat/config.yaml"
        self.assertEqual(config.stat().st_mode & 0o777, 0o600)
        code, out, err = self.leat("get", "workers", "-o", "json", address=False)
        self.assertEqual((code, json.loads(out)), (0, {"workers": []}), err)
        self.assertEqual(self.leat("get", "workers")[0], 5)  # with only an address: without the context's token
        self.assertEqual(self.leat("--context", "lab", "health", address=False)[0], 0)
        self.assertEqual(self.leat("context", "delete", "lab")[0], 0)
        self.assertEqual(self.leat("--context", "lab", "health", address=False)[0], 3)


if __name__ == "__main__":
    unittest.main()

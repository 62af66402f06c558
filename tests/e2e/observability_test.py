# SPDX-License-Identifier: Apache-2.0
"""The daemons' pages over HTTP, as Prometheus and its linters see them; and alerts and boards on them."""

import http.client
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import time
import unittest
import urllib.parse

from cluster import PATIENCE_S, program
from pages import Pages, get, http_address
from ports import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALERTS, GUIDE = ROOT / "deploy/prometheus/alerts.yaml", ROOT / "docs/see/alerts.md"
CONFIGS = [ALERTS.with_name(name) for name in ("prometheus.yaml", "cluster.yaml")]
BOARDS = sorted((ROOT / "deploy/grafana").glob("*.json"))
# Prometheus's own metrics; and the suffixes of a histogram's series.
THEIR_OWN = {"up"}
HISTOGRAM = re.compile(r"_(bucket|sum|count)$")
METRIC = re.compile(r"\b(?:leat_[a-z0-9_]+|up)\b(?=\s*(?:\{|\[|[^\w\s(=~!]|\s|$))")
LEAT_JOB = re.compile(r"\bleat_job\b(?!_)")  # the label
GRAFANA = {"$__rate_interval": "5m", "$__interval": "1m", "$leat_job": ".*", "$instance": ".*"}

# For each alert: series, their values when it must fire, and when it must not; "a+b" grows by b per minute.
ALERT_SERIES = {
    "LeatCoordinatorDown": [('up{job="leat-coordinator"}', "0+0", "1+0")],
    "LeatWorkerDown": [('up{job="leat-worker"}', "0+0", "1+0")],
    "LeatNoWorkers": [('leat_workers{instance="c",state="ready"}', "0+0", "1+0"),
                      ('leat_jobs_in_use{instance="c"}', "1+0", "1+0")],
    "LeatWorkersLost": [('leat_workers{instance="c",state="lost"}', "2+0", "0+0")],
    "LeatWorkerUnregistered": [("leat_session_up", "0+0", "1+0")],
    "LeatFindingError": [('leat_findings{code="NO_WORKERS",severity="error"}', "1+0", "0+0"),
                         ('leat_findings{code="BAD_SAMPLES",severity="warn"}', "1+0", "1+0")],
    "LeatStateNotWritable": [("leat_state_writable", "0+0", "1+0")],
    "LeatCommitsSlow": [('leat_coordinator_commit_seconds_bucket{le="0.01"}', "0+0", "0+10"),
                        ('leat_coordinator_commit_seconds_bucket{le="1"}', "0+10", "0+10"),
                        ('leat_coordinator_commit_seconds_bucket{le="+Inf"}', "0+10", "0+10")],
    "LeatListenerDeaf": [("leat_listener_up", "0+0", "1+0")],
    "LeatConnectionsRefused": [('leat_connections_refused_total{bound="all"}', "0+1", "5+0")],
    "LeatJobStalled": [('leat_job_stall_ratio{leat_job="j"}', "0.5+0", "0.1+0")],
    "LeatBadSamples": [('leat_job_bad_samples_total{leat_job="j"}', "0+1", "7+0")],
    "LeatBadSampleBudget": [('leat_job_bad_samples{leat_job="j"}', "9+0", "5+0"),
                            ('leat_job_bad_samples_allowed{leat_job="j"}', "10+0", "10+0"),
                            ('leat_job_bad_samples{leat_job="unbounded"}', "9+0", "9+0"),
                            ('leat_job_bad_samples_allowed{leat_job="unbounded"}', "0+0", "0+0")],
    "LeatStorageRetries": [("leat_storage_retries_total", "0+2", "0+1"),
                           ("leat_storage_requests_total", "0+10", "0+100")],
    "LeatDamagedStreams": [("leat_damaged_streams_total", "0+1", "3+0")],
    "LeatDeviceGroupsFailed": [('leat_device_groups_failed_total{device="0"}', "0+1", "3+0")],
    # The test's clock begins in 1970.
    "LeatCertificateExpires": [("leat_cert_expiry_timestamp_seconds", "7500+0", "43200+0"),
                               ("leat_cert_begin_timestamp_seconds", "0+0", "0+0")],
}


def tool(name):
    path = shutil.which(name)
    if path is None:
        raise unittest.SkipTest(f"no {name} here: install Debian's package prometheus")
    return path


def metrics_in(expression):
    """Returns the names of metrics in a PromQL expression."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    bare = re.sub(r"\b(?:by|on|without|ignoring)\s*\([^)]*\)", "", bare)
    return {HISTOGRAM.sub("", name) if HISTOGRAM.search(name) else name
            for name in METRIC.findall(bare) if not LEAT_JOB.fullmatch(name)}


def alerts():
    """Returns the alerts of alerts.yaml as dicts. Parsed by its fixed layout, so that no package is needed."""
    found, key = [], None
    for line in ALERTS.read_text().splitlines():
        words = line.strip()
        if words.startswith("- alert: "):
            found.append({"alert": words[len("- alert: "):]})
        elif found and re.match(r"(expr|for|severity|summary|runbook_url): ", words):
            key, _, value = words.partition(": ")
            found[-1][key] = value
        elif found and key == "expr":
            found[-1]["expr"] = words
            key = None
    return found


def expressions():
    """Yields (board, panel, expression) of every board, with values for Grafana's variables."""
    for path in BOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                expression = target["expr"]
                for variable, value in GRAFANA.items():
                    expression = expression.replace(variable, value)
                yield path.name, panel["title"], expression


class DeployedFilesTest(Pages):
    def test_alerts_and_boards_name_metrics_that_exist(self):
        exist = set(THEIR_OWN)
        for address in self.start():
            exist |= set(re.findall(r"^# TYPE (\S+)", get(address, "/metrics")[1], re.M))
        self.assertGreater(len(exist), 50)
        headings = set(re.findall(r"^### (\w+)$", GUIDE.read_text(), re.M))
        self.assertEqual(len(alerts()), 17)
        for alert in alerts():
            with self.subTest(alert["alert"]):
                self.assertTrue(metrics_in(alert["expr"]))
                self.assertLessEqual(metrics_in(alert["expr"]), exist)
                self.assertIn(alert["severity"], ("warning", "critical"))
                self.assertTrue(alert["summary"])
                page, _, anchor = alert["runbook_url"].partition("#")
                self.assertEqual(ROOT / page, GUIDE)
                self.assertIn(anchor, {heading.lower() for heading in headings})
        self.assertEqual(headings, {alert["alert"] for alert in alerts()})
        self.assertEqual([path.name for path in BOARDS], ["cluster.json", "job.json", "worker.json"])
        for board, panel, expression in expressions():
            with self.subTest(board, panel=panel):
                self.assertTrue(metrics_in(expression))
                self.assertLessEqual(metrics_in(expression), exist)

    def test_promtool_accepts_metrics_alerts_and_boards(self):
        promtool = tool("promtool")
        for address in self.start():
            done = subprocess.run([promtool, "check", "metrics"], input=get(address, "/metrics")[1], text=True,
                                  capture_output=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        rules = self.folder / "boards.yaml"
        # JSON is YAML; a recording rule's expression is parsed like a panel's.
        rules.write_text(json.dumps({"groups": [{"name": "boards", "rules": [
            {"record": f"panel:{number}", "expr": expression}
            for number, (_, _, expression) in enumerate(expressions())]}]}))
        for check in (["rules", ALERTS, rules], ["config", "--syntax-only", *CONFIGS]):
            done = subprocess.run([promtool, "check", *check], text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_alert_fires_for_its_cause_alone(self):
        promtool = tool("promtool")
        self.assertEqual(set(ALERT_SERIES), {alert["alert"] for alert in alerts()})
        tests = []
        for sick in [None, *ALERT_SERIES]:
            series = [{"series": name, "values": (bad if alert == sick else good) + "x180"}
                      for alert, each in ALERT_SERIES.items() for name, bad, good in each]
            fires = [{"labels": f'{{alertname="{sick}"}}', "value": 1}] if sick else []
            tests.append({"interval": "1m", "input_series": series, "promql_expr_test": [
                {"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": "2h",
                 "exp_samples": fires}]})
        path = self.folder / "alerts_test.yaml"
        path.write_text(json.dumps({"rule_files": [str(ALERTS)], "tests": tests}))
        done = subprocess.run([promtool, "test", "rules", str(path)], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class ReadinessTest(Pages):
    def test_a_worker_is_ready_while_it_has_a_coordinator(self):
        coordinator, worker = self.start()
        self.assertEqual(get(coordinator, "/readyz"), (200, "ok\n"))
        self.assertEqual(get(worker, "/readyz"), (200, "ok\n"))
        for page in (coordinator, worker):
            done = subprocess.run([program("CLI"), "status", "--coordinator", page], capture_output=True, text=True,
                                  timeout=PATIENCE_S)
            self.assertIn(f"{page} is a web server's, as of a daemon's page (--http)", done.stderr)
        self.coordinator.kill9()
        self.until("the worker sees it", lambda: get(worker, "/readyz")[0] == 503)
        self.assertIn("not registered", get(worker, "/readyz")[1])
        self.assertIn("\nleat_session_up 0\n", get(worker, "/metrics")[1])
        self.assertEqual(get(worker, "/livez"), (200, "ok\n"))
        self.restart_coordinator()
        self.until("it has registered again", lambda: get(worker, "/readyz")[0] == 200)

    def test_pages_beyond_loopback_want_what_calls_want(self):
        done = subprocess.run([program("COORDINATOR"), "--listen", "127.0.0.1:0", "--http", "0.0.0.0:0"],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--http", done.stderr)
        self.assertIn("--tls-cert", done.stderr)

    def test_beyond_loopback_they_speak_tls(self):
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                               "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                               "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"],
                              cwd=self.folder, capture_output=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        cert, own = self.folder / "cert.pem", "an-own-token-of-the-daemon"
        self.start_coordinator("--http", "0.0.0.0:0", "--tls-cert", str(cert), "--tls-key",
                               str(self.folder / "key.pem"), env={"LEAT_ACCESS_TOKEN": own})
        address = "localhost:" + http_address(self.coordinator).rpartition(":")[2]
        tls = ssl.create_default_context(cafile=cert)
        self.assertEqual(get(address, "/readyz", tls=tls), (200, "ok\n"))
        self.assertEqual(get(address, "/metrics", tls=tls)[0], 401)
        status, page = get(address, "/metrics", own, tls=tls)
        self.assertEqual(status, 200)
        begin, expiry = (float(re.search(rf"^leat_cert_{name}_timestamp_seconds (\S+)$", page, re.M)[1])
                         for name in ("begin", "expiry"))
        self.assertLess(abs(expiry - begin - 2 * 86400) + abs(begin - time.time()), 600)
        with self.assertRaises((http.client.HTTPException, OSError)):
            get(address, "/readyz")

    def test_metrics_want_a_viewers_token_where_calls_want_one(self):
        own = "an-own-token-of-the-daemon"
        self.start_coordinator("--http", "127.0.0.1:0", env={"LEAT_ACCESS_TOKEN": own})
        address = http_address(self.coordinator)
        made = {}
        for role in ("viewer", "worker"):
            done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, "access", "create",
                                   "--role", role], capture_output=True, text=True, timeout=PATIENCE_S,
                                  env={**os.environ, "LEAT_ACCESS_TOKEN": own})
            self.assertEqual(done.returncode, 0, done.stderr)
            made[role] = done.stdout.split()[-1]
        self.assertEqual(get(address, "/metrics")[0], 401)
        self.assertEqual(get(address, "/metrics", own + "x")[0], 401)
        self.assertEqual(get(address, "/metrics", made["worker"])[0], 403)
        self.assertEqual(get(address, "/metrics", made["viewer"])[0], 200)
        self.assertEqual(get(address, "/metrics", own)[0], 200)
        self.assertEqual(get(address, "/readyz"), (200, "ok\n"))
        self.assertEqual(get(address, "/metrics", own, host="evil.example")[0], 421)


class Prometheus:
    """Debian's Prometheus, in a folder of its own."""

    def __init__(self, folder, targets):
        self.folder = folder / "prometheus"
        self.folder.mkdir()
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(ALERTS)],
                  "scrape_configs": [{"job_name": job, "static_configs": [{"targets": [target]}]}
                                     for job, target in targets.items()]}
        (self.folder / "config.yaml").write_text(json.dumps(config))
        self.address = f"127.0.0.1:{free_port()}"
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(
            [tool("prometheus"), "--config.file", str(self.folder / "config.yaml"), "--storage.tsdb.path",
             str(self.folder / "data"), "--web.listen-address", self.address], stdout=self.log, stderr=self.log)
        if not self._ready():
            self.close()
            raise AssertionError((self.folder / "log").read_text()[-2000:])

    def _ready(self):
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < end:
            try:
                if get(self.address, "/-/ready")[0] == 200:
                    return True
            except OSError:
                pass
            try:
                self.process.wait(0.1)
            except subprocess.TimeoutExpired:
                pass
        return False

    def query(self, expression):
        """Returns the values of the series that a query gives."""
        status, text = get(self.address, "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        if status != 200:
            raise AssertionError(f"{expression}: {text}")
        return [float(series["value"][1]) for series in json.loads(text)["data"]["result"]]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class ScrapeTest(Pages):
    def test_prometheus_counts_the_rows_of_an_epoch(self):
        tool("prometheus")
        coordinator, worker = self.start()
        prometheus = self._keep(Prometheus(self.folder, {"leat-coordinator": coordinator, "leat-worker": worker}))
        consumer = self.consumer(self.spec(), epochs=1).finish()
        self.assertEqual(consumer.error, None)
        rows = consumer.end["rows"]
        self.assertEqual(rows, 512)
        for expression in (f'sum(leat_samples_total{{outcome="served"}}) >= {rows}',
                           f"sum(leat_row_seconds_count) >= {rows}",
                           "sum(leat_coordinator_commit_seconds_count) >= 2",
                           'leat_workers{state="ready"} == 1 and on (instance) leat_jobs == 1',
                           'count(up == 1) == 2'):
            self.until(expression, lambda e=expression: prometheus.query(e))
        self.assertEqual(prometheus.query('ALERTS{alertstate="firing"}'), [])
        self.workers[0].kill9()
        self.until("it misses the worker", lambda: prometheus.query('up{job="leat-worker"} == 0'))
        self.until("the alert waits", lambda: prometheus.query('ALERTS{alertname="LeatWorkerDown"}'))


if __name__ == "__main__":
    unittest.main()

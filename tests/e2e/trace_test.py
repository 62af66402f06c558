# SPDX-License-Identifier: Apache-2.0
"""Spans of traced steps, as a collector of OpenTelemetry's own messages gets them and as `leat trace` writes them; and
`leat index` on the same photos."""

import concurrent.futures
import json
import pathlib
import re
import subprocess
import threading
import time
import unittest
import urllib.request

import cluster
from cluster import BATCH, PATIENCE_S, STEPS, program

try:
    import grpc
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
except ImportError as error:  # deploy/install-dependencies --python tests
    grpc, MISSING = None, str(error)

SECRET = "a-long-secret-of-this-test"
CLOCKS_NS = 50_000_000  # tolerated difference between two processes' clocks
IN_PROCESS = {"leat.queue", "leat.send", "leat.row", "leat.read", "leat.decode", "leat.augment", "leat.wait"}
MAY_BE = {"leat.open", "leat.group", "leat.other", "leat.read_ahead"}


class Collector:
    """Accepts exported spans. `held`: it answers no request while it is set."""

    def __init__(self):
        self.requests, self.held = [], threading.Event()
        self._changed = threading.Condition()
        handler = grpc.method_handlers_generic_handler(
            "opentelemetry.proto.collector.trace.v1.TraceService",
            {"Export": grpc.unary_unary_rpc_method_handler(
                self._export, trace_service_pb2.ExportTraceServiceRequest.FromString,
                trace_service_pb2.ExportTraceServiceResponse.SerializeToString)})
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers([handler])
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        self.endpoint = f"http://127.0.0.1:{port}"

    def _export(self, request, context):
        while self.held.is_set() and context.is_active():
            time.sleep(0.01)
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        return trace_service_pb2.ExportTraceServiceResponse()

    def close(self):
        self.held.clear()
        self._server.stop(0).wait(PATIENCE_S)

    def spans(self):
        """Returns (resource attributes, span) of all spans so far."""
        with self._changed:
            requests = list(self.requests)
        return [(attributes(all_of.resource), span) for request in requests for all_of in request.resource_spans
                for scope in all_of.scope_spans for span in scope.spans]

    def until(self, condition):
        """Returns the spans, once `condition` holds of them."""
        end = time.monotonic() + PATIENCE_S
        with self._changed:
            while not condition(self.spans()):
                if not self._changed.wait(end - time.monotonic()):
                    raise AssertionError("the spans never came")
        return self.spans()


def attributes(holder):
    return {each.key: each.value.string_value or each.value.int_value for each in holder.attributes}


def rows_of(spans, name):
    return sum(attributes(span).get("leat.rows", 0) for _, span in spans if span.name == name)


def traced_steps(spans, service):
    return {(attributes(span).get("leat.epoch", 0), attributes(span).get("leat.step", 0))
            for resource, span in spans if resource["service.name"] == service}


@unittest.skipIf(grpc is None, "no opentelemetry-proto or grpcio: deploy/install-dependencies --python tests")
class CollectorTest(cluster.PhotosTest):
    def setUp(self):
        super().setUp()
        self.collector = Collector()
        self.addCleanup(self.collector.close)

    def start(self, endpoint, ratio, workers=2, env=None):
        self.start_coordinator(env=env)
        for _ in range(workers):
            self.start_worker("--otlp-endpoint", endpoint, "--trace-ratio", str(ratio), "--http", "0", env=env)

    def run_epochs(self, endpoint, ratio, epochs, env=None):
        """Runs a consumer with the same settings; its batches are the oracle's."""
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_TRACES_SAMPLER_ARG": str(ratio),
                     "LEAT_TRANSPORT": "grpc", **(env or {})}
        consumer = self.consumer(self.spec(), epochs=epochs, env=variables).finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected[:epochs * STEPS])
        return consumer

    def dropped(self, worker):
        address = re.search(r"http\.serving address=(\S+)", pathlib.Path(worker.log).read_text())[1]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE_S) as page:
            text = page.read().decode()
        return {outcome: float(value)
                for outcome, value in re.findall(r'^leat_spans_total\{outcome="(\w+)"\} (\S+)$', text, re.M)}

    def test_an_epochs_spans_make_one_trace_a_step(self):
        env = {"LEAT_ACCESS_TOKEN": SECRET}
        self.start(self.collector.endpoint, 1, env=env)
        self.run_epochs(self.collector.endpoint, 1, 1, env)
        rows = BATCH * STEPS
        spans = self.collector.until(lambda spans: rows_of(spans, "leat.rows") >= rows and
                                     sum(span.name == "leat.step" for _, span in spans) >= STEPS)
        self.assertEqual(rows_of(spans, "leat.step"), rows)
        self.assertEqual({span.name for _, span in spans} - MAY_BE,
                         IN_PROCESS | {"leat.step", "leat.request", "leat.receive", "leat.rows"})
        self.check_tree(spans)
        self.check_attributes(spans)
        self.assertFalse([request for request in self.collector.requests if SECRET.encode() in
                          request.SerializeToString()])

    def check_tree(self, spans):
        by_id = {span.span_id: span for _, span in spans}
        self.assertEqual(len(by_id), len(spans), "ids differ")
        self.assertEqual(len({span.trace_id for _, span in spans}), STEPS)
        parents = {"leat.wait": {"leat.step"}, "leat.request": {"leat.step"}, "leat.receive": {"leat.request"},
                   "leat.rows": {"leat.request"}, "leat.queue": {"leat.rows"}, "leat.send": {"leat.rows"},
                   "leat.row": {"leat.rows"}, "leat.decode": {"leat.row"}, "leat.augment": {"leat.row"}}
        for _, span in spans:
            self.assertLessEqual(span.start_time_unix_nano, span.end_time_unix_nano)
            self.assertLess(abs(span.start_time_unix_nano / 1e9 - time.time()), 600)
            if span.name == "leat.step":
                self.assertEqual(span.parent_span_id, b"")
                continue
            self.assertIn(span.parent_span_id, by_id, f"{span.name} has no parent")
            parent = by_id[span.parent_span_id]
            self.assertEqual(span.trace_id, parent.trace_id)
            self.assertIn(parent.name, parents.get(span.name, {parent.name}))
            slack = 0 if span.name in IN_PROCESS | MAY_BE else CLOCKS_NS
            self.assertGreaterEqual(span.start_time_unix_nano, parent.start_time_unix_nano - slack, span.name)
            self.assertLessEqual(span.end_time_unix_nano, parent.end_time_unix_nano + slack, span.name)

    def check_attributes(self, spans):
        for resource, span in spans:
            of_consumer = span.name in ("leat.step", "leat.wait", "leat.request", "leat.receive")
            self.assertEqual(resource["service.name"], "leat-consumer" if of_consumer else "leat-worker")
            self.assertTrue(resource["service.version"])
            self.assertGreater(resource["process.pid"], 0)
            if not of_consumer:
                self.assertIn(resource["service.instance.id"], ("w0", "w1"))
            about = attributes(span)
            self.assertEqual(about["leat.job"], "job")
            self.assertLess(about["leat.step"], STEPS)
            self.assertTrue(about["leat.consumer"])
            if span.name == "leat.request":
                self.assertIn(about["leat.worker"], ("w0", "w1"))
            self.assertEqual(span.status.code, 0)

    def test_consumer_and_workers_trace_the_same_steps(self):
        self.start(self.collector.endpoint, 0.5)
        self.run_epochs(self.collector.endpoint, 0.5, 2)
        spans = self.collector.until(
            lambda spans: rows_of(spans, "leat.rows") > 0 and
            rows_of(spans, "leat.rows") >= rows_of(spans, "leat.step") > 0 and
            traced_steps(spans, "leat-worker") == traced_steps(spans, "leat-consumer"))
        self.assertGreater(len(traced_steps(spans, "leat-worker")), 2)
        self.assertLess(len(traced_steps(spans, "leat-worker")), 2 * STEPS - 2)

    def test_a_variable_that_leat_does_not_take_stops_nothing(self):
        self.start_coordinator()
        worker = self.start_worker(env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/v1/traces"})
        self.run_epochs("collector:4317", 1, 1)
        self.assertIn("OTEL_EXPORTER_OTLP_ENDPOINT: an OTLP endpoint: want http://HOST:PORT", worker.tail())

    def test_a_dead_and_a_slow_collector_hold_nothing_up(self):
        for what in ("dead", "slow"):
            with self.subTest(what):
                endpoint = "http://127.0.0.1:1"
                if what == "slow":
                    self.collector.held.set()
                    endpoint = self.collector.endpoint
                self.start(endpoint, 1, workers=1)
                self.run_epochs(endpoint, 1, 1)
                worker = self.workers.pop()
                self.until("spans are dropped", lambda: self.dropped(worker)["dropped"] > 0)
                self.assertEqual(self.dropped(worker)["exported"], 0)
                self.assertEqual(worker.stop(), 0)
                self.coordinator.close()


class TraceCommandTest(cluster.PhotosTest):
    def leat(self, *words, code=0):
        done = subprocess.run([program("CLI"), *map(str, words)], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_a_running_job_is_traced_into_a_file(self):
        self.start_cluster(workers=2)
        consumer = self.consumer(self.spec(), epochs=1000, env={"LEAT_TRANSPORT": "grpc"})
        self.assertTrue(consumer.next())
        file = self.folder / "t.json"
        done = self.leat("--coordinator", self.coordinator.address, "trace", "job", "--duration", "1s", "-o", file)
        consumer.process.kill()
        self.assertRegex(done.stderr, r"t\.json: \d+ spans of 2 workers, 1 consumer")
        trace = json.loads(file.read_text())
        events = trace["traceEvents"]
        tracks = {}
        for event in events:
            for field in ("ph", "ts", "dur", "pid", "tid", "name"):
                self.assertIn(field, event)
            if event["ph"] == "X":
                tracks.setdefault((event["pid"], event["tid"]), []).append(
                    (event["ts"], event["ts"] + event["dur"], event["name"]))
        names = {event["name"] for event in events}
        self.assertLessEqual({"rows", "queue", "send", "row", "decode", "augment", "reported"}, names)
        # The trainer's own spans are in the same file, on tracks of its own process.
        self.assertLessEqual({"step", "wait", "request", "receive"}, names)
        processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        for event in events:
            if event["name"] in ("step", "wait", "request", "receive"):
                self.assertRegex(processes[event["pid"]], "^consumer ")
            if event["name"] == "request":
                self.assertIn(event["args"]["worker"], ("w0", "w1"))
        steps, rows = ({event["args"]["step"] for event in events if event["name"] == kind}
                       for kind in ("step", "rows"))
        self.assertTrue(steps & rows, (steps, rows))
        for track in tracks.values():
            open_until = []
            for begin, end, name in sorted(track, key=lambda each: (each[0], -each[1])):
                while open_until and open_until[-1] <= begin + 0.002:
                    open_until.pop()
                self.assertTrue(not open_until or end <= open_until[-1] + 0.002, f"{name} overlaps")
                open_until.append(end)

    def test_an_index_is_what_the_service_has(self):
        told = self.leat("index", cluster.photos(), "--daemon-dir", self.daemon_dir(), "-o", "json")
        report = json.loads(told.stdout)
        self.start_cluster(workers=1)
        self.consumer(self.spec(), epochs=1).finish()
        told = self.leat("--coordinator", self.coordinator.address, "get", "datasets", "-o", "json")
        dataset = json.loads(told.stdout)["datasets"][0]["dataset"]
        self.assertEqual(report["records"], int(dataset["shards"]["num_samples"]))
        self.assertEqual(report["bytes"], int(dataset["bytes"]))
        self.assertEqual(report["classes"], dataset["classes"])
        self.assertEqual(report["bad_records"], 0)
        self.leat("index", self.folder / "none", "--daemon-dir", self.daemon_dir(), code=3)


if __name__ == "__main__":
    unittest.main()

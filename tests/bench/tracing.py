# SPDX-License-Identifier: Apache-2.0
"""The cost of traces for a worker, in its processor time per row: prints a table.

tracing.py [--rounds N] [--epochs N] [--cache BYTES]

A worker with one thread decodes the photos of the tests and crops them to 224 × 224. Three cases take turns: no
collector; a collector that gets one step in a hundred; a collector that gets all. The collector accepts spans and
ignores them. Programs are those of LEAT_BUILD_DIR (build/dev); needs opentelemetry-proto and grpcio, as the tests do.
"""

import argparse
import os
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/e2e"), str(ROOT / "tests/chaos")]
os.environ.setdefault("LEAT_BUILD_DIR", str(ROOT / "build/dev"))
HERTZ = os.sysconf("SC_CLK_TCK")
RATIOS = (None, 0.01, 1)
NAMES = {None: "nobody listens", 0.01: "a ratio of 0.01", 1: "a ratio of 1"}


def load():
    """Returns the helpers of the tests, with programs of the build."""
    build = pathlib.Path(os.environ["LEAT_BUILD_DIR"])
    for name, path in (("COORDINATOR", "server/leat-coordinator"), ("WORKER", "worker/leat-worker"),
                       ("CONSUMER", "tests/e2e/e2e_consumer")):
        os.environ.setdefault(f"LEAT_{name}_BIN", str(build / path))
    os.environ.setdefault("LEAT_MADE_DATA", str(build / "test-data"))
    import cluster
    import trace_test
    return cluster, trace_test


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / HERTZ


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=6, help="of 500 photos, in each turn")
    parser.add_argument("--cache", default="0", help="of the worker; 0: each row is decoded anew")
    flags = parser.parse_args()
    cluster, trace_test = load()

    class Turns(cluster.ClusterTest):
        def runTest(self):
            collector = self._keep(trace_test.Collector())
            sides = {}
            for ratio in RATIOS:
                coordinator = self.start_coordinator(state=False)
                export = () if ratio is None else ("--otlp-endpoint", collector.endpoint, "--trace-ratio", str(ratio))
                sides[ratio] = (coordinator, self.start_worker("--cache", flags.cache, *export))
            took = {ratio: [] for ratio in RATIOS}
            for turn in range(flags.rounds + 1):
                for ratio in RATIOS:
                    coordinator, worker = sides[ratio]
                    env = {"LEAT_TRANSPORT": "grpc"}
                    if ratio is not None:
                        env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
                                "OTEL_TRACES_SAMPLER_ARG": str(ratio)}
                    before = cpu_s(worker.process.pid)
                    consumer = self.consumer(self.spec(), epochs=flags.epochs, env=env, address=coordinator.address)
                    consumer.finish()
                    self.assertIsNone(consumer.error)
                    rows = len(consumer.steps) * 64
                    if turn > 0:  # the first turn fills caches
                        took[ratio].append(1e6 * (cpu_s(worker.process.pid) - before) / rows)
            for ratio in RATIOS:
                ratios = [own / off for own, off in zip(took[ratio], took[None])]
                rounds = ", ".join(f"{each:.1f}" for each in took[ratio])
                print(f"| {NAMES[ratio]} | {statistics.median(took[ratio]):.1f} | {rounds} | "
                      f"{statistics.median(ratios):.3f} |", flush=True)

    turns = Turns()
    result = turns.run()
    for _, text in result.errors + result.failures:
        print(text, file=sys.stderr)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

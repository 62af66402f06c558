# SPDX-License-Identifier: Apache-2.0
"""Batches in device memory, on the fake CUDA driver: the oracle's bytes from every mix of workers, under every fault.

LEAT_FAKE_CUDA_LIB, LEAT_FAKE_NVJPEG_LIB: the fakes, set by CMake.
"""

import re
import unittest

import cluster
from cluster import BATCH, signal

ROW_BYTES = 224 * 224 * 3 + 4
EXHAUSTED, PRECONDITION = 8, 9
CUDA, SHM, GRPC = ({"LEAT_TRANSPORT": transport} for transport in ("cuda", "shm", "grpc"))


class DeviceTest(cluster.FakeGpuTest):

    def start_cpu_worker(self, **options):
        return self.start_worker("--devices", "none", **options)

    def device_consumer(self, *flags, env=None, **options):
        """Starts a consumer with the fake GPU's memory; `report` receives its remaining allocations."""
        self.report = self.folder / f"report-{self._started}"
        env = {**self.fakes, "LEAT_FAKE_CUDA_REPORT": str(self.report), "LEAT_FAKE_CUDA_TRAINER": "1", **(env or {})}
        return self.consumer(self.spec(), "--device", 0, *flags, env=env, **options)

    def assert_oracle(self, consumer):
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        self.assert_clean()

    def assert_clean(self):
        """The consumer has freed all device memory, except for what its copies to the host took."""
        report = self.report.read_text()
        live = dict(re.findall(r"(\w+)=(\d+)", report))
        self.assertEqual(live["violations"], "0", report)
        for what in ("handles", "reservations", "mappings", "registrations", "events"):
            self.assertEqual(live.get(what, "0"), "0", report)

    def seen(self):
        return [(c["stats"].get("transport"), c["stats"].get("memory")) for c in self.get("consumers")["consumers"]]

    # The same bytes from every mix of workers.

    def test_a_gpu_worker_writes_rows_into_the_consumers_device_memory(self):
        self.start_coordinator()
        self.start_gpu_worker()
        consumer = self.device_consumer("--hold", 5, env=CUDA).finish()
        self.assert_oracle(consumer)
        self.assertEqual(consumer.transport, "cuda")
        if consumer.end["hedged"] == 0:
            self.assertEqual(consumer.end["copies"], 0)

    def test_rows_of_cpu_workers_are_copied_to_the_device(self):
        self.start_coordinator()
        self.start_cpu_worker()
        for transport in (SHM, GRPC, {}):
            with self.subTest(transport=transport):
                consumer = self.device_consumer("--hold", 5, env=transport).finish()
                self.assert_oracle(consumer)
                self.assertNotIn("cuda", consumer.transport)

    def test_cpu_and_gpu_workers_fill_one_batch(self):
        self.start_coordinator()
        self.start_gpu_worker()
        self.start_cpu_worker()
        consumer = self.device_consumer("--hold", 5).finish()
        self.assert_oracle(consumer)
        if consumer.end["hedged"] == 0:  # hedged rows come as bytes; `transport` is that of the newest rows
            self.assertIn("cuda", consumer.transport)

    def test_a_part_of_the_rows(self):
        self.start_coordinator()
        self.start_gpu_worker()
        self.start_cpu_worker()
        device = self.device_consumer("--rows", 7, 30).finish()
        host = self.consumer(self.spec(), "--rows", 7, 30).finish()
        self.assertIsNone(device.error)
        self.assertEqual(device.steps, host.steps)

    def test_batches_are_given_back_on_a_stream(self):
        self.start_coordinator()
        self.start_gpu_worker()
        self.assert_oracle(self.device_consumer("--hold", 3, "--release-on-stream").finish())

    def test_a_trainer_that_dies_inside_a_capture_leaves_nothing(self):
        self.start_coordinator()
        worker_report = self.folder / "worker-report"
        worker = self.start_gpu_worker(env={"LEAT_FAKE_CUDA_REPORT": str(worker_report)})
        consumer = self.device_consumer("--paced", "--window", 3, "--capture", env=CUDA)
        consumer.pull(4)
        self.assertEqual(consumer.steps, self.expected[:4])
        shared = lambda: int(self.get("workers")["workers"][0]["stats"].get("shared_memory_bytes", 0))  # noqa: E731
        self.until("the worker has the trainer's memory", lambda: shared() > 0)
        consumer.process.kill()
        consumer.close()
        self.until("the worker has given it back", lambda: shared() == 0)
        self.assert_oracle(self.device_consumer("--hold", 3, env=CUDA).finish())
        self.assertEqual(worker.stop(), 0)
        live = dict(re.findall(r"(\w+)=(\d+)", worker_report.read_text()))
        for what in ("handles", "reservations", "mappings", "violations"):
            self.assertEqual(live.get(what, "0"), "0", worker_report.read_text())

    def test_captures_that_eat_the_window_are_an_error(self):
        self.start_coordinator()
        self.start_gpu_worker()
        consumer = self.device_consumer("--window", 1, "--capture").finish()
        self.assertEqual(consumer.error[0], EXHAUSTED)
        self.assertRegex(consumer.error[1],
                         r"^memory for a batch: 4 batches of \d+ bytes were handed out or given back "
                         "on a stream that was being captured into a CUDA graph.* of 3 batches")
        self.assertEqual(consumer.steps, self.expected[:len(consumer.steps)])

    def test_transport_and_memory_are_shown(self):
        self.start_coordinator()
        self.start_gpu_worker()
        consumer = self.device_consumer("--paced", env=CUDA)
        consumer.pull(3)
        self.until("the consumer tells", lambda: ("cuda", "cuda:0") in self.seen())
        consumer.finish()
        self.assert_oracle(consumer)

    # Transports that are not available.

    def test_a_forced_transport_that_a_worker_has_not_is_an_error(self):
        self.start_coordinator()
        worker = self.start_cpu_worker()
        consumer = self.device_consumer(env=CUDA).finish()
        self.assertEqual(consumer.error[0], PRECONDITION)
        self.assertRegex(consumer.error[1], f"LEAT_TRANSPORT=cuda: worker {worker.name} at .*no GPU [0-9a-f]{{32}}")

    def test_a_worker_that_maps_in_other_units_takes_another_transport(self):
        """As in another slice of the GPU, or with another driver."""
        self.start_coordinator()
        worker = self.start_gpu_worker(env={"LEAT_FAKE_CUDA_GRANULARITY": str(4 << 20)})
        consumer = self.device_consumer("--hold", 3).finish()
        self.assert_oracle(consumer)
        self.assertNotIn("cuda", consumer.transport)
        consumer = self.device_consumer(env=CUDA).finish()
        self.assertEqual(consumer.error[0], PRECONDITION)
        self.assertRegex(consumer.error[1], f"worker {worker.name} .*not a multiple of 4194304 bytes")

    def test_without_a_driver(self):
        self.start_coordinator()
        self.start_cpu_worker()
        consumer = self.device_consumer(env={"LEAT_CUDA_LIBRARY": "/nonexistent/libcuda.so.1"}).finish()
        self.assertEqual(consumer.error[0], PRECONDITION)
        self.assertRegex(consumer.error[1], "device 0: .*/nonexistent/libcuda.so.1")

    def test_a_device_that_is_not_there(self):
        self.start_coordinator()
        self.start_cpu_worker()
        consumer = self.consumer(self.spec(), "--device", 3, env=self.fakes).finish()
        self.assertEqual(consumer.error, (PRECONDITION, "device 3: this process sees 1 CUDA device"))

    def test_a_device_without_room_names_the_bytes(self):
        self.start_coordinator()
        self.start_cpu_worker()
        consumer = self.device_consumer(env={"LEAT_FAKE_CUDA_MEMORY": str(3 * BATCH * ROW_BYTES)}).finish()
        self.assertEqual(consumer.error[0], EXHAUSTED)
        self.assertRegex(consumer.error[1], r"batch \d of 6 that a window of 4 takes: device 0 \(.*\): memory for a "
                                            rf"batch: \d+ bytes: .*of {3 * BATCH * ROW_BYTES} bytes are free")
        self.assert_clean()

    # Faults.

    def test_a_worker_is_killed_with_places_in_its_hands(self):
        self.start_coordinator()
        worker = self.start_gpu_worker()
        self.start_cpu_worker()
        consumer = self.device_consumer("--paced", "--window", 3, "--hold", 3)
        consumer.pull(3)
        worker.kill9()
        consumer.finish()
        self.assert_oracle(consumer)

    def test_a_worker_that_stops_neither_blocks_nor_scribbles(self):
        self.start_coordinator()
        worker = self.start_gpu_worker()
        self.start_cpu_worker()
        consumer = self.device_consumer("--paced", "--window", 3, "--hold", 5)
        consumer.pull(2)
        worker.signal(signal.SIGSTOP)
        consumer.pull(6)
        worker.signal(signal.SIGCONT)
        consumer.finish()
        self.assert_oracle(consumer)

    def test_calls_that_fail_are_errors_or_mended(self):
        self.start_coordinator()
        self.start_gpu_worker()
        self.start_cpu_worker()
        for symbol, mended in (("cuMemCreate", True), ("cuMemMap", True), ("cuMemExportToShareableHandle", True),
                               ("cuMemHostRegister_v2", True), ("cuStreamCreate", False), ("cuEventCreate", False),
                               ("cuMemcpyHtoDAsync_v2", False), ("cuEventSynchronize", False)):
            with self.subTest(symbol=symbol):
                consumer = self.device_consumer(env={"LEAT_FAKE_CUDA_FAIL": f"{symbol}:1:801"}).finish()
                if mended:
                    self.assert_oracle(consumer)
                elif consumer.error is None:  # no row needed it
                    self.assertEqual(consumer.steps, self.expected)
                else:
                    self.assertRegex(consumer.error[1], "device 0.*801")
                    self.assertEqual(consumer.steps, self.expected[:len(consumer.steps)])
                    self.assertEqual(consumer.process.returncode, 1)
                    self.assert_clean()


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""GPU workers as processes, on the fake CUDA driver: the oracle's bytes in class exact, alone or beside CPU workers,
over every host transport, and under every fault.

LEAT_FAKE_CUDA_LIB, LEAT_FAKE_NVJPEG_LIB: the fakes, set by CMake.
"""

import unittest

import cluster
from cluster import EPOCHS, STEPS


class GpuTest(cluster.FakeGpuTest):

    def assert_oracle(self, consumer):
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        self.assertIsNotNone(consumer.end)

    def devices(self, worker):
        workers = self.get("workers")["workers"]
        return next(each for each in workers if each["name"] == worker.name)

    def rows(self, worker, kind):
        stats = self.devices(worker)["stats"].get("devices", [{}])[0]
        return int(stats.get(f"rows_{kind}_total", 0))

    # Workers.

    def test_exact_rows_are_the_oracles_on_every_host_transport(self):
        self.start_coordinator()
        worker = self.start_gpu_worker()
        for transport in ("grpc", "shm"):
            with self.subTest(transport=transport):
                self.assert_oracle(self.consumer(self.spec(), env={"LEAT_TRANSPORT": transport}).finish())
        self.until("the GPU's rows are reported", lambda: self.rows(worker, "exact") >= 2 * EPOCHS * 500)
        self.assertEqual(worker.stop(), 0)

    def test_cpu_and_gpu_workers_serve_one_job(self):
        self.start_coordinator()
        worker = self.start_gpu_worker()
        self.start_worker("--devices", "none")
        self.assert_oracle(self.consumer(self.spec()).finish())
        self.until("the GPU worker had a part", lambda: self.rows(worker, "exact") > 0)

    def test_the_view_of_a_worker_names_its_gpu(self):
        self.start_coordinator()
        worker = self.start_gpu_worker()
        seen = self.devices(worker)
        self.assertEqual(len(seen["devices"]), 1)
        self.assertIn("DECODER_CLASS_NVJPEG", seen["decoder_classes"])
        self.assertEqual(len(seen["devices"][0]["uuid"]), 32)
        self.assertRegex(worker.tail(), 'gpu.ready gpu=0 name="Fake GPU" uuid=[0-9a-f]{32} memory_bytes=[0-9]+ '
                                        'compute=9.0 driver=13.0 nvjpeg=13.0.1 jpeg_engines=7 jpeg_cores=1 '
                                        'jpegs_at_once=7 no_engines="" slots=4 held_bytes=[0-9]+ most_bytes=[0-9]+')

    def test_class_nvjpeg_is_served_by_gpu_workers_only(self):
        self.start_coordinator()
        self.start_worker("--devices", "none")
        worker = self.start_gpu_worker()
        spec = self.spec(name="nvjpeg", decoder_class="DECODER_CLASS_NVJPEG")
        first, second = (self.consumer(spec).finish() for _ in range(2))
        self.assertIsNone(first.error)
        self.assertEqual(len(first.steps), EPOCHS * STEPS)
        self.assertEqual(first.steps, second.steps)
        self.until("engines decoded", lambda: self.rows(worker, "hardware") > 0)

    def test_a_gpu_that_was_named_and_is_not_there_is_an_error(self):
        self.start_coordinator()
        with self.assertRaisesRegex(cluster.DaemonFailed, "(?s)ended with 1.*--devices 5: there are 1 GPUs"):
            self.start_worker("--devices", "5", env=self.fakes)
        with self.assertRaisesRegex(cluster.DaemonFailed, "--devices 0: .*no CUDA driver"):
            self.start_worker("--devices", "0", env={"LEAT_CUDA_LIBRARY": "/nonexistent/libcuda.so.1"})

    def test_a_gpu_that_does_not_initialise_leaves_a_cpu_worker(self):
        self.start_coordinator()
        worker = self.start_worker("--devices", "all",
                                   env={**self.fakes, "LEAT_FAKE_CUDA_FAIL": "cuDevicePrimaryCtxRetain:1+:2"})
        self.assertIn("gpu.unusable", worker.tail())
        self.assertFalse(self.devices(worker).get("devices"))
        self.assert_oracle(self.consumer(self.spec()).finish())

    def test_without_nvjpeg_there_is_class_exact(self):
        self.start_coordinator()
        worker = self.start_gpu_worker(env={"LEAT_NVJPEG_LIBRARY": "/nonexistent/libnvjpeg.so.13"})
        self.assertEqual(self.devices(worker)["decoder_classes"], ["DECODER_CLASS_EXACT"])
        self.assert_oracle(self.consumer(self.spec()).finish())

    # Faults.

    def test_a_poisoned_context_ends_the_worker_and_another_goes_on(self):
        self.start_coordinator()
        # An illegal address at the second launch: a busy machine makes few launches, of many rows each.
        broken = self.start_gpu_worker(env={"LEAT_FAKE_CUDA_FAIL": "cuLaunchKernel:2+:700"})
        self.start_worker("--devices", "none")
        self.assert_oracle(self.consumer(self.spec()).finish())
        self.assertEqual(broken.process.wait(cluster.PATIENCE_S), 1)
        self.assertRegex(broken.tail(), "leat-worker: GPU 0 cannot be used any more: .*700")

    def test_a_gpu_that_goes_ends_the_worker_and_a_new_one_does_without(self):
        """As when MIG mode is switched on: first errors, then a driver that shows no GPU."""
        self.start_coordinator()
        broken = self.start_gpu_worker(env={"LEAT_FAKE_CUDA_FAIL": "cuLaunchKernel:2+:101"})
        consumer = self.consumer(self.spec())
        self.assertEqual(broken.process.wait(cluster.PATIENCE_S), 1)
        self.assertRegex(broken.tail(), "leat-worker: GPU 0 cannot be used any more: .* lost its MIG instance .*101")
        hidden = {**self.fakes, "LEAT_FAKE_CUDA_DEVICES": "0"}
        with self.assertRaisesRegex(cluster.DaemonFailed, "--devices 0: the driver shows this process no GPU"):
            self.start_worker("--devices", "0", env=hidden)
        worker = self.start_worker("--devices", "all", env=hidden)
        self.assertRegex(worker.tail(), "gpu.none .*shows this process no GPU")
        self.assert_oracle(consumer.finish())

    def test_a_gpu_that_fails_again_and_again_is_given_up(self):
        self.start_coordinator()
        broken = self.start_gpu_worker(env={"LEAT_FAKE_CUDA_FAIL": "cuLaunchKernel:4+:1"})
        self.start_worker("--devices", "none")
        self.assert_oracle(self.consumer(self.spec(), epochs=EPOCHS).finish())
        if broken.process.poll() is not None:  # it had enough groups to give up
            self.assertEqual(broken.process.returncode, 1)
            self.assertRegex(broken.tail(), "GPU 0 is given up after 8 failures")

    def test_a_single_failure_loses_no_row(self):
        self.start_coordinator()
        for symbol in ("cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuLaunchKernel", "cuEventRecord"):
            with self.subTest(symbol=symbol):
                worker = self.start_gpu_worker(env={"LEAT_FAKE_CUDA_FAIL": f"{symbol}:3:1"})
                self.assert_oracle(self.consumer(self.spec()).finish())
                self.assertEqual(worker.stop(), 0)

    def test_a_gpu_worker_is_killed(self):
        self.start_coordinator()
        worker = self.start_gpu_worker()
        self.start_worker("--devices", "none")
        consumer = self.consumer(self.spec(), "--paced", "--window", 2)
        consumer.pull(3)
        worker.kill9()
        consumer.finish()
        self.assert_oracle(consumer)

    def test_consumers_that_die_hold_no_slot(self):
        self.start_coordinator()
        worker = self.start_gpu_worker()
        for _ in range(3):
            consumer = self.consumer(self.spec(), "--paced", "--window", 4)
            consumer.pull(1)
            consumer.process.kill()
        self.until("all slots are free", lambda: int(
            self.devices(worker)["stats"]["devices"][0].get("slots_in_use", 0)) == 0)
        self.assert_oracle(self.consumer(self.spec()).finish())


if __name__ == "__main__":
    unittest.main()
